"""Commits of a rewritten tree, made without a checkout, a hook or an index: one stream for ``git fast-import``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codemods.apply import ApplyResult, Mended
from codemods.batch.git import Git
from codemods.findings import Finding

#: Makes of the files as they were read those with the rewrites that are wanted.
Applier = Callable[[Callable[[tuple[Finding, ...]], bool]], ApplyResult]


class Commit(NamedTuple):
    """A commit to be made: its message, and the contents of the files that it changes, by path."""

    message: str
    files: Mapping[str, bytes]


def commits_of(result: ApplyResult, style: str, again: Applier) -> list[Commit]:
    """Return the commits that lead from the files as they were read to ``result``, by ``style``: rule, file or one.

    A commit a rule comes in the order of the promises, strongest first; ``again`` applies some of the rewrites only.
    Rules that hold only in company share a commit. All commits together are ``result``, whatever happens.
    """
    final = {rewrite.source.path: rewrite.encoded for rewrite in result.rewrites}
    if not final:
        return []
    if style == "file":
        commits = []
        for path, data in sorted(final.items()):
            findings = [finding for finding in result.fixed if finding.path == path]
            commits.append(Commit(_message(f"codemod: {path}", findings), {path: data}))
        return commits
    by_rule = _by_rule(result.mended)
    if style == "rule" and len(by_rule) > 1 and not result.translations:
        commits = list(_a_rule_each(final, by_rule, again))
        made: dict[str, bytes] = {}
        for commit in commits:
            made.update(commit.files)
        if made == final:
            return commits
    title = f"codemod: {', '.join(by_rule) or 'Python 3'}"
    return [Commit(_message(title, result.fixed), final)]


def _a_rule_each(
    final: Mapping[str, bytes], by_rule: Mapping[str, Sequence[Mended]], again: Applier
) -> Iterator[Commit]:
    before: dict[str, bytes] = {}
    allowed: set[tuple[str, str, int]] = set()
    pending: list[Finding] = []
    names: list[str] = []
    last = list(by_rule)[-1]
    for rule, groups in by_rule.items():
        allowed |= {finding.key for group in groups for finding in group.findings}
        pending += [finding for group in groups for finding in group.findings]
        names.append(rule)
        if rule == last:
            now: Mapping[str, bytes] = final
        else:
            keys = frozenset(allowed)
            made = again(lambda findings: all(finding.key in keys for finding in findings))  # noqa: B023
            now = {rewrite.source.path: rewrite.encoded for rewrite in made.rewrites}
        changed = {path: data for path, data in now.items() if before.get(path) != data}
        if set(before) - set(now) or not changed:
            # It holds only together with a later one: they share a commit.
            continue
        yield Commit(_message(f"codemod: {', '.join(names)}", pending), changed)
        before, pending, names = dict(now), [], []


def _by_rule(mended: Sequence[Mended]) -> dict[str, list[Mended]]:
    """Groups by the rule that names them, which is that of the weakest promise, strongest promises first."""
    groups: dict[tuple[int, str], list[Mended]] = {}
    for group in mended:
        leading = max(group.findings, key=lambda finding: finding.promise.rank)
        groups.setdefault((leading.promise.rank, leading.rule), []).append(group)
    by_rule: dict[str, list[Mended]] = {}
    for (_, rule), members in sorted(groups.items(), key=lambda item: item[0]):
        by_rule.setdefault(rule, []).extend(members)
    return by_rule


def _message(title: str, findings: Sequence[Finding]) -> str:
    lines = [title if len(title) <= 100 else title[:97] + "...", ""]
    for finding in sorted(findings, key=lambda one: (one.path, one.span)):
        lines.append(f"* {finding.path}:{finding.span.line}: {finding.message} ({finding.promise.value})")
    return "\n".join(" ".join(line.split()) for line in lines).rstrip() + "\n"


def write_branch(
    git: Git, tree: Path, branch: str, base: str, commits: Sequence[Commit], identity: tuple[str, str], when: int
) -> str:
    """Make ``commits`` on top of ``base`` in the repository of ``tree``; return the id of the last."""
    modes = _modes(git, tree, {path for commit in commits for path in commit.files})
    stream: list[bytes] = []
    person = f"{identity[0]} <{identity[1]}> {when} +0000".encode()
    for number, commit in enumerate(commits):
        message = commit.message.encode("utf-8", "backslashreplace")
        stream += [b"commit refs/heads/", branch.encode(), b"\nauthor ", person, b"\ncommitter ", person]
        stream += [b"\ndata %d\n" % len(message), message]
        if number == 0:
            stream += [b"from ", base.encode(), b"\n"]
        for path, data in sorted(commit.files.items()):
            raw = path.encode("utf-8", "surrogateescape")
            stream += [b"M ", modes.get(raw, b"100644"), b" inline ", _quoted(raw), b"\ndata %d\n" % len(data), data]
            stream.append(b"\n")
    git.run("fast-import", "--quiet", "--force", "--date-format=raw", cwd=tree, input=b"".join(stream))
    return git.run("rev-parse", f"refs/heads/{branch}", cwd=tree).decode().strip()


def _quoted(path: bytes) -> bytes:
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'


def _modes(git: Git, tree: Path, paths: set[str]) -> dict[bytes, bytes]:
    names = sorted(path.encode("utf-8", "surrogateescape") for path in paths)
    out = git.run("ls-tree", "-r", "-z", "--full-tree", "HEAD", cwd=tree)
    modes = {}
    for record in out.split(b"\0"):
        head, _, path = record.partition(b"\t")
        if path:
            modes[path] = head.split()[0]
    return {name: modes[name] for name in names if name in modes}


def bundle(git: Git, tree: Path, branch: str, base: str, file: Path) -> None:
    """Write ``branch``, as far as ``base`` does not have it, to a file that ``git fetch`` takes."""
    git.run("bundle", "create", "--quiet", str(file), f"refs/heads/{branch}", f"^{base}", cwd=tree)


def fetch_bundle(git: Git, clone: Path, branch: str, file: Path) -> str:
    """Put ``branch`` from a bundle in the place of whatever the clone has under that name; return its commit."""
    spec = f"+refs/heads/{branch}:refs/heads/{branch}"
    git.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-head-ok", str(file), spec, cwd=clone)
    return git.run("rev-parse", f"refs/heads/{branch}", cwd=clone).decode().strip()
