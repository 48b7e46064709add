"""``apply --commit``: rewrites as commits of the user's, each of which can be read, built and reverted alone."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from codemods.analysis.analyse import analyse
from codemods.checking.check import Analyser
from codemods.commits.repository import CommitError, Repository, merged
from codemods.commits.splitting import Looking, Part, partition
from codemods.manual.explain import PROMISES, explanation, reason
from codemods.rewriting.changes import Change, Key, Proof
from codemods.rewriting.result import ApplyResult
from codemods.source.diffs import printable
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_bytes, read_source
from codemods.source.home import shareable
from codemods.source.options import STYLES, Options
from codemods.source.writing import write_atomically
from codemods.terms.counting import plain_count_text
from codemods.terms.findings import Promise

_WIDTH = 72
_SITES = 40


class Commit(NamedTuple):
    """A commit that was made: its hash, its subject, the files it changes (as they are shown), its changes."""

    hash: str
    subject: str
    paths: tuple[str, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Wording:
    """What stands in the messages beside our own words.

    ``prefix`` begins each subject (``fix: ``), ``trailers`` end each message (``Signed-off-by: ...``), ``command`` are
    the words of the command line, for who wants to do it again, ``root`` the folder that absolute paths are told from.
    """

    prefix: str = ""
    trailers: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    root: Path | None = None


def commit_result(
    result: ApplyResult,
    *,
    style: str = "per-rule",
    repository: Path | None = None,
    options: Options | None = None,
    jobs: int | None = None,
    proofs: Mapping[Key, Proof] | None = None,
    wording: Wording | None = None,
    author: str | None = None,
    hooks: bool = True,
    allow_dirty: bool = False,
    analyse: Analyser = analyse,
) -> tuple[Commit, ...]:
    """Write the rewrites of ``result``, which was a dry run, as commits; return them in their order.

    ``style`` is one of :data:`STYLES`. ``repository`` is a folder of the repository, by default that of all files that
    change. With ``options``, those of ``apply``, the analysis runs again after each commit; without, it is believed.
    ``proofs`` are what ``verify`` said. ``author`` (``Name <mail>``) is by default the user; the committer always is.
    Without ``hooks``, pre-commit and commit-msg hooks are skipped. ``allow_dirty`` permits uncommitted changes in other
    files, staged or not; they stay as they are.

    Raises :class:`CommitError`, after which branch, index and files are as before.
    """
    if style not in STYLES:
        raise ValueError(style)
    if not result.rewrites:
        return ()
    sources = {rewrite.source.path: rewrite.source for rewrite in result.rewrites}
    folder = repository or common_folder(source.absolute for source in sources.values())
    git = Repository(folder)
    git.require_ready()
    names = git.require_tracked([source.absolute for source in sources.values()])
    git.require_clean(names.values(), allow_dirty=allow_dirty)
    looking = Looking(result.sources, options, analyse, jobs) if options and result.sources else None
    parts = partition(result, style, merge=merged, looking=looking if style != "one" else None, proofs=proofs)
    known = {source.path: source for source in result.sources} | sources
    worded = replace(wording or Wording(), root=git.top)
    messages = [message(part, worded, known) for part in parts]
    return _committed(git, parts, messages, sources, names, author=author, hooks=hooks)


def require_committable(folder: Path, *, allow_dirty: bool) -> None:
    """Raise :class:`CommitError` where :func:`commit_result` would do so whatever it was to commit: to ask first."""
    git = Repository(folder)
    git.require_ready()
    git.require_clean((), allow_dirty=allow_dirty)


def common_folder(files: Iterable[Path]) -> Path:
    """Return the folder below which all ``files`` lie."""
    return Path(os.path.commonpath([os.path.realpath(file.parent) for file in files]))


# ----------------------------------------------------------------------------------------------------------------------
# making them, or none


def _committed(
    git: Repository,
    parts: Sequence[Part],
    messages: Sequence[str],
    sources: Mapping[str, SourceFile],
    names: Mapping[Path, str],
    *,
    author: str | None,
    hooks: bool,
) -> tuple[Commit, ...]:
    state = git.state()
    made: list[Commit] = []
    written: dict[str, str] = {}
    try:
        for part, message in zip(parts, messages, strict=True):
            for path, text in part.texts.items():
                _write(sources[path], written.get(path), text)
                written[path] = text
            own = [names[sources[path].absolute] for path in part.texts]
            # Two names of one file, by a link, are one file to git.
            name = git.commit(list(dict.fromkeys(own)), message, author=author, hooks=hooks)
            _require_as_written(sources, part.texts)
            made.append(Commit(name, message.split("\n", 1)[0], tuple(part.texts), part.changes))
    except BaseException as error:
        trouble = _taken_back(git, state, sources, written)
        if isinstance(error, SourceError):
            raise CommitError(f"{error}{trouble}; nothing was committed") from None
        if isinstance(error, CommitError):
            raise CommitError(f"{error}\nnothing was committed, and the files are as before{trouble}") from None
        raise
    return tuple(made)


def _write(source: SourceFile, before: str | None, text: str) -> None:
    """Replace the text that was read, or ``before``, which an earlier commit wrote, by ``text``."""
    if before is None:
        write_atomically(source, text)
        return
    now = read_source(source.absolute, source.path)
    if now.text != before:
        raise CommitError(f"{source.path} changed while we committed")
    write_atomically(now, text)


def _require_as_written(sources: Mapping[str, SourceFile], texts: Mapping[str, str]) -> None:
    for path, text in texts.items():
        if read_bytes(sources[path].absolute, path) != sources[path].encode(text):
            raise CommitError(f"a hook changed {path}; --no-hooks would commit what we wrote")


def _taken_back(git: Repository, state: object, sources: Mapping[str, SourceFile], written: Mapping[str, str]) -> str:
    """Bring files, index and branch back; return what could not be, as the end of a sentence."""
    trouble = []
    for path in written:
        source = sources[path]
        try:
            # Whoever changed it in between was a hook of this commit: nobody else knew these contents.
            write_atomically(read_source(source.absolute, path), source.text)
        except SourceError as error:
            trouble.append(str(error))
    try:
        git.restore(state)  # type: ignore[arg-type]
    except (CommitError, OSError) as error:
        trouble.append(f"the commits stay: {error}")
    return f", except that {'; '.join(trouble)}" if trouble else ""


# ----------------------------------------------------------------------------------------------------------------------
# messages


def message(part: Part, wording: Wording, sources: Mapping[str, SourceFile]) -> str:
    """Return the message of the commit that ``part`` becomes; ``sources`` are the files as they were read, by path."""
    body = [paragraph for paragraph in _body(part, wording, sources) if paragraph]
    return "\n\n".join([_cut(wording.prefix + _subject(part)), *body]) + "\n"


def _cut(subject: str) -> str:
    # The long form stands in the body anyway, which names rules and files.
    return subject if len(subject) <= _WIDTH else subject[: _WIDTH - 3].rstrip() + "..."


def _subject(part: Part) -> str:
    rules = list(dict.fromkeys(change.rule for change in part.changes))
    files = len(part.texts)
    where = os.path.basename(next(iter(part.texts))) if files == 1 else f"{files} files"
    where = "".join(character if character.isprintable() else "?" for character in where)
    if not part.changes:
        return f"Translate {where} from Python 2"
    if len(rules) <= 2:
        return f"Fix {' and '.join(rules)} in {where}"
    return f"Fix {len(part.changes)} autograd-graph mistakes in {where}"


def _body(part: Part, wording: Wording, sources: Mapping[str, SourceFile]) -> Iterator[str]:
    if part.translated:
        yield _filled("Translated from Python 2: " + ", ".join(part.translated))
    by_rule: dict[str, list[Change]] = {}
    for change in part.changes:
        for finding in change.findings:
            by_rule.setdefault(finding.rule, [])
            if change not in by_rule[finding.rule]:
                by_rule[finding.rule].append(change)
    for rule, changes in by_rule.items():
        findings = [finding for change in changes for finding in change.findings if finding.rule == rule]
        yield f"{rule}: {plain_count_text(len(findings), 'place')}" if len(by_rule) > 1 else ""
        told = explanation(rule)
        for paragraph in reason(told) if told is not None else ():
            yield _filled(paragraph)
        for promise in Promise:
            if any(finding.promise is promise for finding in findings):
                yield _filled(f"Promise: {promise.value}. The rewritten program {PROMISES[promise]}.")
        yield "\n".join(_sites(changes, rule, sources, wording.root))
    if part.tied:
        yield _filled(
            "These changes share lines or stand side by side: reverted one by one, they would be in conflict."
        )
    if wording.command:
        yield f"Made by: {shareable(wording.command)}"
    if wording.trailers:
        yield "\n".join(wording.trailers)


def _sites(changes: Sequence[Change], rule: str, sources: Mapping[str, SourceFile], root: Path | None) -> Iterator[str]:
    proofs = {change.proof for change in changes}
    told = 0
    for change in changes:
        for finding in change.findings:
            if finding.rule != rule:
                continue
            told += 1
            if told > _SITES:
                continue
            seen = f" ({change.proof.verdict})" if change.proof is not None else ""
            line = finding.span.line
            place = sources[finding.path].place(line) if finding.path in sources else line
            yield f"- {_shown(finding.path, root)}:{place}{seen}"
    if told > _SITES:
        yield f"- and {told - _SITES} more"
    if proofs != {None}:
        counts = Counter((change.proof.verdict, change.proof.why) for change in changes if change.proof is not None)
        yield ""
        for (verdict, why), number in counts.most_common(3):
            many = f" ({number} of {len(changes)})" if len(counts) > 1 else ""
            ran = "Verified by running" if verdict == "kept" else "Not verified"
            yield _filled(f"{ran}{many}: {verdict}: {why}")


def _shown(path: str, root: Path | None) -> str:
    real = Path(os.path.realpath(path))
    shown = real.relative_to(root).as_posix() if os.path.isabs(path) and root and real.is_relative_to(root) else path
    # A name can hold a line of its own, such as somebody's signature.
    return printable(shown)


def _filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), _WIDTH, break_long_words=False, break_on_hyphens=False)
