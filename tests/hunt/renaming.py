"""Renaming changes nothing: findings and diffs of a tree, and of the same tree with all names of its user changed.

``python -m tests.hunt.renaming PATH...`` does so with the Python files below each path, once with names that say
nothing and once with names that say the wrong thing, and prints what differs.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import difflib
import keyword
import os
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codemods.checking.check import check
from codemods.rewriting.apply import apply
from codemods.source.discovery import discover
from codemods.source.options import Options
from codemods.source.targets import read_targets
from tests.hunt.renaming_scopes import Key, Named

_TELLING = """
    save record evaluate process_batch scaler checkpoint optimism sample shuffle Loss cache prepare setup pack line
    write loss log evaluate_model train learn fit optimizer scheduler plot report Memory hidden state criterion meter
    display grad ones one one_hot Model accelerator engine writer logger progress model generator discriminator fake
    real total running history buffer add_scalar scale unscale minimize backprop visualize draw show dump output
    Encoder Wrapper Tokenizer validate test infer predict teacher target student net data batch inputs labels random
    choice seed dropout noise mask store push put append_all info debug warning error print_losses Variable Tensor
    volatile no_sync detach_state repackage no_grad_block init_hidden zero step_size step_once close reset lr_update
    FrozenModel DataParallel clip clip_gradients grads gradient_penalty zero_gradients backward_pass load_all get_loss
    compute_loss_value autocast ema update_average copy_weights sync freeze frozen retain keep
"""
"""Names that seem to say what a thing is."""


class Renamed(NamedTuple):
    """A tree with other names: texts by path, the paths as they were, and all words that came or went."""

    texts: dict[str, str]
    paths: dict[str, str]
    """What each new path was."""
    words: frozenset[str]
    count: int


def renamed(texts: Mapping[str, str], style: str = "neutral", seed: int = 0) -> Renamed:
    """Return a tree (texts by path) with all names changed that its user chose.

    With the style ``neutral`` names say nothing, with ``telling`` they are those of other things, in an order by
    ``seed``.
    """
    named = Named(texts)
    groups = list(named.renamable())
    going = {key for key, _ in groups}
    staying = {o.name for o in named.occurrences if named.find(o.key) not in going}
    places: dict[str, int] = {}
    for _, occurrences in groups:
        for o in occurrences:
            places[o.name] = places.get(o.name, 0) + 1
    mentioned: dict[str, int] = {}
    for text in texts.values():
        for word in re.findall(r"[^\W\d]\w*", text):
            mentioned[word] = mentioned.get(word, 0) + 1
    # a word may be given away if it stands nowhere but where it is changed itself
    staying |= {word for word, times in mentioned.items() if places.get(word, 0) < times}
    staying |= {*dir(builtins), *keyword.kwlist, *keyword.softkwlist, *sys.stdlib_module_names}
    names = _Names(style, random.Random(seed), staying)
    new: dict[Key, str] = {}
    for key, occurrences in groups:
        of_modules = any(o.key[0] == "m" for o in occurrences) or key[0] == "m"
        new[key] = names(_kind(named, key, occurrences, of_modules), len(groups))
    edits: dict[str, list[tuple[int, str, str]]] = {}
    for key, occurrences in groups:
        for o in occurrences:
            edits.setdefault(o.path, []).append((o.start, o.name, new[key]))
    changed = {path: _changed(text, edits.get(path, ())) for path, text in texts.items()}
    moved = {path: _moved(path, named, new) for path in texts}
    words = {name for _, occurrences in groups for name in (o.name for o in occurrences)} | set(new.values())
    return Renamed(
        {moved[path]: text for path, text in changed.items()},
        {after: before for before, after in moved.items()},
        frozenset(words),
        len(groups),
    )


def _kind(named: Named, key: Key, occurrences: Sequence[object], of_modules: bool) -> str:
    if of_modules:
        return "m"
    kinds = {named.kinds.get(o.key) for o in occurrences}  # type: ignore[attr-defined]
    return "C" if "class" in kinds else "f" if "def" in kinds else "v"


class _Names:
    """Hands out names that are not taken."""

    def __init__(self, style: str, chance: random.Random, taken: set[str]) -> None:
        self.style = style
        self.taken = taken
        self.telling = _TELLING.split()
        chance.shuffle(self.telling)
        self.turn = 0

    def __call__(self, kind: str, groups: int) -> str:
        while True:
            self.turn += 1
            if self.style == "neutral":
                name = f"{kind}{self.turn}"
            else:
                again, which = divmod(self.turn - 1, len(self.telling))
                name = self.telling[which] + (f"_{again}" if again else "")
                if kind == "m" and name in ("test", "lib", "src"):
                    continue
            if name not in self.taken:
                self.taken.add(name)
                return name


def _changed(text: str, edits: Sequence[tuple[int, str, str]]) -> str:
    data = text.encode()
    for start, old, new in sorted(set(edits), reverse=True):
        data = data[:start] + new.encode() + data[start + len(old.encode()) :]
    return data.decode()


def _moved(path: str, named: Named, new: Mapping[Key, str]) -> str:
    parts = path.split("/")
    for i, part in enumerate(parts):
        stem = part.removesuffix(".py")
        key = named.find(("m", "/".join([*parts[:i], stem]), stem))
        if key in new and stem != "__init__":
            parts[i] = new[key] + part[len(stem) :]
    # outer folders were looked up by their old names above
    return "/".join(parts) if parts == path.split("/") else "/".join(_each(path, named, new))


def _each(path: str, named: Named, new: Mapping[Key, str]) -> Iterator[str]:
    parts = path.split("/")
    for i, part in enumerate(parts):
        stem = part.removesuffix(".py")
        key = named.find(("m", "/".join([*parts[:i], stem]), stem))
        yield new[key] + part[len(stem) :] if key in new and stem != "__init__" else part


# what is found, up to the names


class Said(NamedTuple):
    """What ``check`` and ``apply`` say of a tree: findings, and files with their texts before and after."""

    findings: list[tuple[str, int, str, str, str, tuple[tuple[str, int], ...]]]
    rewrites: list[tuple[str, str, str]]

    def lines(self, words: frozenset[str], paths: Mapping[str, str]) -> list[str]:
        """The same as text, with ``words`` struck out and ``paths`` as they were."""

        def neutral(text: str) -> str:
            return re.sub(r"[^\W\d]\w*", lambda m: "_" if m[0] in words else m[0], text)

        findings = []
        for path, line, about, message, remedy, trail in self.findings:
            steps = sorted({(paths.get(p, p), at) for p, at in trail})
            # what is quoted is cut short where it is long, and how long it is depends on names
            spoken = [neutral(re.sub(r"write `[^`]*`", "write", text)) for text in (message, remedy)]
            findings.append(f"{paths.get(path, path)}:{line}: {about} {' | '.join(spoken)} | {steps}")
        diffs = []
        for path, old, new in sorted(self.rewrites, key=lambda one: paths.get(one[0], one[0])):
            both = [neutral(text).splitlines() for text in (old, new)]
            diff = difflib.unified_diff(*both, lineterm="", n=0)
            diffs += [f"{paths.get(path, path)}: {line}" for line in list(diff)[2:]]
        return sorted(findings) + diffs


def said(texts: Mapping[str, str], options: Options, *, jobs: int = 1, rewrite: bool = True) -> Said:
    """Check a tree in a folder of its own and, where ``rewrite`` is wanted, mend it."""
    with tempfile.TemporaryDirectory(prefix="renaming-") as folder:
        os.mkdir(os.path.join(folder, ".git"))
        for path, text in texts.items():
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode())
        before = os.getcwd()
        os.chdir(folder)
        try:
            targets = read_targets(["."])
            found = check(targets.sources, options=options, jobs=jobs).findings
            findings = []
            for f, obstacle in found:
                about = f"{f.rule} [{f.promise.value}] {'left' if obstacle else 'fixed'}"
                trail = tuple((step.path, step.line) for step in f.trail)
                findings.append((f.path, f.span.line, about, f.message, f.remedy, trail))
            rewrites = []
            if rewrite and any(one.fixable for one in found):
                made = apply(targets.sources, options=options, dry_run=True, jobs=jobs)
                rewrites = [(source.path, source.text, new) for source, new in made.rewrites]
        finally:
            os.chdir(before)
    return Said(findings, rewrites)


class Difference(NamedTuple):
    """What is said of the tree only as it was (``lost``), or only of that with other names (``gained``)."""

    style: str
    seed: int
    lost: list[str]
    gained: list[str]

    def __str__(self) -> str:
        lines = [f"  {self.style} {self.seed}"]
        lines += [f"    - {line}" for line in self.lost] + [f"    + {line}" for line in self.gained]
        return "\n".join(lines)


def differences(
    texts: Mapping[str, str],
    options: Options | None = None,
    *,
    styles: Sequence[tuple[str, int]] = (("neutral", 0), ("telling", 0)),
    jobs: int = 1,
    rewrite: bool = True,
) -> list[Difference]:
    """What changes in findings and diffs when all names do, in each of the ``styles`` with their seeds."""
    chosen = options or Options()
    one = said(texts, chosen, jobs=jobs, rewrite=rewrite)
    found = []
    for style, seed in styles:
        after = renamed(texts, style, seed)
        other = said(after.texts, chosen, jobs=jobs, rewrite=rewrite)
        before, now = one.lines(after.words, {}), other.lines(after.words, after.paths)
        if before != now:
            found.append(Difference(style, seed, _without(before, now), _without(now, before)))
    return found


def _without(lines: list[str], others: list[str]) -> list[str]:
    rest = list(others)
    found = []
    for line in lines:
        if line in rest:
            rest.remove(line)
        else:
            found.append(line)
    return found


def tree_of(path: str) -> dict[str, str]:
    """The Python files below ``path`` that can be read, by their path below it."""
    root = Path(path).resolve()
    if root.is_file():
        return {root.name: root.read_bytes().decode()}
    texts = {}
    for file in discover([str(root)]).files:
        try:
            text = Path(file).read_bytes().decode()
            ast.parse(text)
        except (SyntaxError, ValueError, OSError, RecursionError):
            continue
        relative = Path(file).resolve()
        if relative.suffix == ".py" and relative.is_relative_to(root):
            texts[relative.relative_to(root).as_posix()] = text
    return texts


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", help="folders, each a tree of its own, or files")
    parser.add_argument("--seeds", type=int, default=1, help="how many permutations of telling names")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--check-only", action="store_true", help="compare findings, not diffs")
    parser.add_argument("--unsafe", action="store_true")
    parser.add_argument("--show", metavar="STYLE", help="print the renamed tree instead")
    given = parser.parse_args(arguments)
    styles = [("neutral", 0), *(("telling", seed) for seed in range(given.seeds))]
    differing = 0
    for path in given.paths:
        texts = tree_of(path)
        if given.show:
            for name, text in renamed(texts, given.show).texts.items():
                print(f"# ---- {name}\n{text}")
            continue
        found = differences(
            texts, Options(unsafe=given.unsafe), styles=styles, jobs=given.jobs, rewrite=not given.check_only
        )
        print(f"{path}: {'differs' if found else 'the same'}", flush=True)
        for one in found:
            print(one)
        differing += bool(found)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
