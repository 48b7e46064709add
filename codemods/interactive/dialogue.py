"""Which question comes next and what an answer means; how questions look and keys are read is the screen's business."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from codemods.interactive.items import Item, Texts
from codemods.rewriting.changes import Hunk
from codemods.source.suppressing import comment_text, is_reason
from codemods.terms.counting import plain_count_text
from codemods.terms.findings import Finding

HELP = """\
y  make this change
n  leave this one
a  make this and all unanswered changes of this rule (with --verify: of the same verdict)
s  leave this and all later changes of this file
j  leave it undecided, and go to the next one; answered ones can be answered again
k  likewise the previous one
g  go to the one with this number
/  go to the next one in which a text stands: its place, its rule, its lines
e  explain the rule
E  put your own text in the place of what is proposed, in $VISUAL or $EDITOR
i  leave it, and write a comment that says so, with your reason
u  take the last answer back
q  stop asking; what was accepted can still be written (with --resume, go on another time)
?  this help
Ctrl-C ends without writing anything.
"""
KEYS = "ynasjkg/eEiuq?"
_MOVES = "jkg/"


class Answer(enum.Enum):
    """What becomes of a change."""

    YES = "accepted"
    NO = "declined"
    OWN = "in your own words"
    IGNORED = "declined for good"


class Decision(NamedTuple):
    """An answer, with the reason of a comment or the texts that replace hunks."""

    answer: Answer
    reason: str = ""
    own: Mapping[Hunk, str] = {}

    @property
    def made(self) -> bool:
        """Whether the change is made, as proposed or in other words."""
        return self.answer in (Answer.YES, Answer.OWN)


class EditorError(Exception):
    """No text came back from the user's editor; says why."""


class Screen(Protocol):
    """What a dialogue needs of a terminal, and tests give from a list of answers."""

    def show(self, item: Item, number: int, total: int) -> None:
        """Show a change: reason, promise, verdict, trail, hunks."""

    def key(self, question: str, keys: str) -> str:
        """Ask for one of ``keys``; other keys are returned too, at the end of the input the empty text."""

    def line(self, question: str) -> str | None:
        """Ask for a line; None at the end of the input."""

    def say(self, text: str) -> None:
        """Show a sentence."""

    def page(self, text: str) -> None:
        """Show a long text, a screenful at a time."""

    def edit(self, item: Item, proposed: Mapping[Hunk, str]) -> Mapping[Hunk, str]:
        """Let the user change texts; raises :class:`EditorError`."""


@dataclass(frozen=True)
class Decisions:
    """What was decided, by the indices of the items; ``write`` is False if the user gave it all up."""

    items: Sequence[Item]
    made: Mapping[int, Decision] = field(default_factory=dict)
    write: bool = True

    def of(self, *answers: Answer) -> list[int]:
        """Return the indices of the items with one of ``answers``, in order."""
        return sorted(index for index, decision in self.made.items() if decision.answer in answers)

    @property
    def wanted(self) -> frozenset[tuple[str, str, int]]:
        """The keys of the findings to be mended."""
        made = (self.items[index].key for index in self.of(Answer.YES, Answer.OWN))
        return frozenset().union(*made)

    @property
    def own(self) -> dict[Hunk, str]:
        """The user's own texts, by the hunks in whose place they go."""
        return {hunk: text for decision in self.made.values() for hunk, text in decision.own.items()}

    @property
    def ignored(self) -> list[tuple[Finding, str]]:
        """The findings to be left alone for good, each with the reason."""
        return [
            (finding, self.made[index].reason)
            for index in self.of(Answer.IGNORED)
            for finding in self.items[index].findings
        ]


class Dialogue:
    """Asks about ``items`` one by one; ``explain`` gives the page of a rule, ``made`` are answers given before.

    ``keep`` is told all answers whenever they change.
    """

    def __init__(
        self,
        items: Sequence[Item],
        screen: Screen,
        texts: Texts,
        explain: Callable[[str], str] = lambda rule: "",
        *,
        made: Mapping[int, Decision] | None = None,
        keep: Callable[[Mapping[int, Decision]], None] = lambda made: None,
    ) -> None:
        self._keep = keep
        self._items = items
        self._screen = screen
        self._texts = texts
        self._explain = explain
        self.made: dict[int, Decision] = dict(made or {})
        self._past: list[dict[int, Decision]] = []

    def run(self) -> Decisions:
        """Ask until everything is answered or the user quits. Raises KeyboardInterrupt if that is how they do it."""
        write = True
        shown = -1
        index = self._next(-1)
        while index is not None:
            if index != shown:
                self._screen.show(self._items[index], index + 1, len(self._items))
                shown = index
            so_far = f" ({self.made[index].answer.value} so far)" if index in self.made else ""
            question = f"{index + 1}/{len(self._items)} Make it?{so_far}"
            key = self._screen.key(question, KEYS)
            if key in ("q", ""):
                answer = self._quit()
                if answer is None:
                    continue
                write = answer
                break
            if key == "e":
                # The rule's page has pushed the change off the screen.
                shown = -1
            index = self._after(index, key)
        return Decisions(self._items, self.made, write)

    def _next(self, index: int) -> int | None:
        """The first one behind ``index`` that is not answered, else the first of all."""
        order = (*range(index + 1, len(self._items)), *range(index + 1))
        return next((other for other in order if other not in self.made), None)

    def _after(self, index: int, key: str) -> int | None:
        """Do what ``key`` asks for, and return which item is shown next."""
        if key in _MOVES:
            return self._moved(index, key)
        if key == "u":
            return self._undo(index)
        answers = len(self._past)
        self._take(index, key)
        return self._next(index) if len(self._past) > answers else index

    def _moved(self, index: int, key: str) -> int:
        if key in "jk":
            other = index + (1 if key == "j" else -1)
            if not 0 <= other < len(self._items):
                self._screen.say("That is the last one." if key == "j" else "That is the first one.")
                return index
            return other
        if key == "g":
            given = (self._screen.line(f"Which one? (1 to {len(self._items)}; empty: back)") or "").strip()
            if given.isdecimal() and 0 < int(given) <= len(self._items):
                return int(given) - 1
            if given:
                self._screen.say(f"There is no {given}.")
            return index
        given = (self._screen.line("Which text? (empty: back)") or "").strip()
        order = (*range(index + 1, len(self._items)), *range(index))
        found = next((other for other in order if given.lower() in self._words(other)), None)
        if given and found is None:
            self._screen.say("It is in no other one.")
        return index if not given or found is None else found

    def _words(self, index: int) -> str:
        item = self._items[index]
        lines = [line for hunk in item.hunks for line in (*hunk.removed, *hunk.added)]
        rules = [word for finding in item.findings for word in (finding.rule, finding.message)]
        return "\n".join([item.place, *rules, *lines]).lower()

    def _take(self, index: int, key: str) -> None:
        item = self._items[index]
        match key:
            case "y":
                self._record({index: Decision(Answer.YES)})
            case "n":
                self._record({index: Decision(Answer.NO)})
            case "a":
                self._record(dict.fromkeys(self._alike(index), Decision(Answer.YES)))
            case "s" | "d":
                path = item.path
                later = [i for i in range(index, len(self._items)) if self._items[i].path == path]
                self._record({i: Decision(Answer.NO) for i in later if i not in self.made})
            case "e":
                rules = dict.fromkeys(finding.rule for finding in item.findings)
                self._screen.page("\n".join(map(self._explain, rules)))
            case "E":
                self._edit(index)
            case "i":
                self._ignore(index)
            case _:
                self._screen.say(HELP)

    def _record(self, decisions: Mapping[int, Decision]) -> None:
        self._past.append(dict(self.made))
        self.made.update(decisions)
        self._keep(self.made)

    def _undo(self, index: int) -> int:
        """Take the last answer back, and return the first one that it was an answer to."""
        if not self._past:
            self._screen.say("There is no answer to undo.")
            return index
        before, self.made = self.made, self._past.pop()
        self._keep(self.made)
        return min((other for other in before if before[other] != self.made.get(other)), default=index)

    def _alike(self, index: int) -> list[int]:
        """This item, and the unanswered ones of its rule and verdict: a broken one is not taken along with the kept."""

        def kind(item: Item) -> tuple[str, str]:
            return item.change.rule, item.change.proof.verdict if item.change.proof else ""

        wanted = kind(self._items[index])
        return [i for i, item in enumerate(self._items) if i == index or (i not in self.made and kind(item) == wanted)]

    def _quit(self) -> bool | None:
        """Ask whether to write; None to go on asking."""
        accepted = sum(decision.made for decision in self.made.values())
        recorded = sum(decision.answer is Answer.IGNORED for decision in self.made.values())
        if not accepted and not recorded:
            return False
        what = f"{accepted} accepted" + (f" and {plain_count_text(recorded, 'comment')}" if recorded else "")
        while True:
            key = self._screen.key(f"Write {what}? (yes, no, continue asking)", "Ync").lower()
            if key == "c":
                return None
            if key in ("y", "n", "", "\n"):
                # The end of the input is no "no": nothing that was accepted gets lost, as with `git add -p`.
                return key != "n"

    def _ignore(self, index: int) -> None:
        item = self._items[index]
        while True:
            reason = self._screen.line("Why? (one line; empty: back to the question)")
            reason = " ".join("".join(c if c.isprintable() else " " for c in reason or "").split())
            if not reason:
                return
            lacking = self._lacking(item, reason)
            if lacking is None:
                self._record({index: Decision(Answer.IGNORED, reason=reason)})
                return
            self._screen.say(lacking)

    def _lacking(self, item: Item, reason: str) -> str | None:
        if not is_reason(reason):
            return "That would be read as another comment: say it without one."
        for finding in item.findings:
            source = self._texts.sources.get(finding.path)
            try:
                comment_text([finding.rule], reason).encode(source.encoding if source else "utf-8")
            except UnicodeError:
                return f"{finding.path} is {source.encoding if source else ''}, which has not all of these characters."
        return None

    def _edit(self, index: int) -> None:
        item = self._items[index]
        declined = [i for i in item.shares if i in self.made and not self.made[i].made]
        if declined:
            self._screen.say(f"It shares lines with {declined[0] + 1}, which was declined: take that back first.")
            return
        answered = {hunk: text for i in item.shares if i in self.made for hunk, text in self.made[i].own.items()}
        proposed = {hunk: answered.get(hunk, "".join(hunk.added)) for hunk in item.hunks}
        draft: Mapping[Hunk, str] = proposed
        while True:
            try:
                draft = self._screen.edit(item, draft)
            except EditorError as error:
                self._screen.say(str(error))
                return
            objection = self._objection(draft, proposed)
            if objection is None:
                break
            self._screen.say(objection)
            if self._screen.key("Edit again?", "Yn").lower() not in ("y", "\n"):
                return
        self._record(self._edited(index, draft, proposed))

    def _objection(self, draft: Mapping[Hunk, str], proposed: Mapping[Hunk, str]) -> str | None:
        for hunk, text in draft.items():
            if not text.strip() and proposed[hunk].strip():
                return "An empty text changes nothing: answer n to leave the lines as they are."
        changed = {hunk: text for hunk, text in draft.items() if text != "".join(hunk.added)}
        return self._texts.objection(changed)

    def _edited(self, index: int, draft: Mapping[Hunk, str], proposed: Mapping[Hunk, str]) -> dict[int, Decision]:
        item = self._items[index]
        own = {hunk: text for hunk, text in draft.items() if text != "".join(hunk.added)}
        if draft == proposed and not own:
            self._screen.say("Nothing was changed: accepted as proposed.")
            return {index: Decision(Answer.YES)}
        if all(text == "".join(hunk.removed) for hunk, text in draft.items()):
            self._screen.say("That is the original: declined.")
            return {index: Decision(Answer.NO)}
        decisions = {index: Decision(Answer.OWN, own=own)}
        for other in item.shares:
            if not own.keys().isdisjoint(self._items[other].hunks):
                before = self.made[other].own if other in self.made else {}
                kept = {hunk: text for hunk, text in before.items() if hunk not in draft}
                decisions[other] = Decision(Answer.OWN, own=kept)
                self._screen.say(f"This answers {other + 1} too, which shares these lines.")
        return decisions
