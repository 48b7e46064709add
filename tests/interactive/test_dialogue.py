"""What answers mean: with a list of answers in the place of a person."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from codemods.interactive.dialogue import HELP, KEYS, Answer, Dialogue
from codemods.interactive.keeping import ReviewError, load, save
from codemods.rewriting.changes import Hunk, Proof
from tests.interactive.scripted import Editing, Script, Tree

THREE = {"a.py": "x = WRONG\n\n\ny = NEST(1)\n\n\nz = WRONG\n", "b.py": "v = WRONG\n"}


def to(text: str) -> Editing:
    return lambda proposed: dict.fromkeys(proposed, text)


def as_is(proposed: Mapping[Hunk, str]) -> Mapping[Hunk, str]:
    return proposed


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path, THREE)


def answers(tree: Tree, screen: Script) -> list[str]:
    made = tree.ask(screen).made
    return [made[index].answer.name if index in made else "-" for index in range(len(tree.items))]


def test_yes_and_no(tree: Tree) -> None:
    screen = Script("y", "n", "y", "n")
    assert answers(tree, screen) == ["YES", "NO", "YES", "NO"]
    assert screen.shown == ["1/4 wrong a.py:1", "2/4 nest a.py:4", "3/4 wrong a.py:7", "4/4 wrong b.py:1"]
    assert screen.questions[1] == "2/4 Make it?"


def test_all_of_this_rule(tree: Tree) -> None:
    assert answers(tree, Script("a", "n")) == ["YES", "NO", "YES", "YES"]
    assert answers(tree, Script("n", "a", "n", "n")) == ["NO", "YES", "NO", "NO"]


def test_all_of_this_rule_answers_one_again_that_is_gone_back_to(tree: Tree) -> None:
    assert answers(tree, Script("n", "k", "a", "n")) == ["YES", "NO", "YES", "YES"]


def test_all_of_this_rule_takes_only_the_same_verdict(tmp_path: Path) -> None:
    kept, broken = Proof("kept", ""), Proof("broken", "losses differ")
    tree = Tree(tmp_path, THREE, {"a.py:1": kept, "a.py:7": broken, "b.py:1": kept})
    assert answers(tree, Script("a", "n", "n")) == ["YES", "NO", "NO", "YES"]


@pytest.mark.parametrize("key", ["s", "d"])
def test_skip_the_rest_of_the_file(tree: Tree, key: str) -> None:
    assert answers(tree, Script("y", key, "y")) == ["YES", "NO", "NO", "YES"]


def test_undo_takes_back_one_answer_with_all_it_did(tree: Tree) -> None:
    assert answers(tree, Script("a", "u", "n", "n", "y", "y")) == ["NO", "NO", "YES", "YES"]
    assert answers(tree, Script("y", "n", "u", "u", "n", "y", "y", "y")) == ["NO", "YES", "YES", "YES"]
    screen = Script("s", "u", "y", "y", "y", "y")
    assert answers(tree, screen) == ["YES"] * 4
    screen = Script("u", "y", "y", "y", "y")
    assert answers(tree, screen) == ["YES"] * 4
    assert screen.said == ["There is no answer to undo."]


def test_help_and_unknown_keys_answer_nothing(tree: Tree) -> None:
    screen = Script("?", "x", "\n", "\x1b", "Y", "y", "y", "y", "y")
    assert answers(tree, screen) == ["YES"] * 4
    assert screen.said == [HELP] * 5
    assert screen.shown[:2] == ["1/4 wrong a.py:1", "2/4 nest a.py:4"]


def test_help_names_every_key() -> None:
    assert [line[0] for line in HELP.splitlines()[:-1]] == list(KEYS)


def test_explain_shows_the_page_and_the_change_again(tree: Tree) -> None:
    screen = Script("e", "y", "y", "y", "y")
    tree.ask(screen)
    assert screen.pages == ["page of wrong"]
    assert screen.shown[:3] == ["1/4 wrong a.py:1", "1/4 wrong a.py:1", "2/4 nest a.py:4"]


@pytest.mark.parametrize(("key", "write"), [("y", True), ("\n", True), ("n", False), ("", True)])
def test_quit_asks_whether_to_write(tree: Tree, key: str, write: bool) -> None:
    screen = Script("y", "n", "q", key)
    decisions = tree.ask(screen)
    assert decisions.write is write
    assert screen.questions[-1] == "Write 1 accepted? (yes, no, continue asking)"
    assert sorted(decisions.made) == [0, 1]


def test_quit_can_be_taken_back(tree: Tree) -> None:
    assert answers(tree, Script("y", "q", "x", "c", "n", "n", "n")) == ["YES", "NO", "NO", "NO"]


def test_quit_with_nothing_accepted_asks_nothing(tree: Tree) -> None:
    screen = Script("n", "q")
    assert tree.ask(screen).write is False
    assert len(screen.questions) == 2


def test_the_end_of_the_input_keeps_what_was_accepted(tree: Tree) -> None:
    decisions = tree.ask(Script("y"))
    assert decisions.write
    assert decisions.of(Answer.YES) == [0]


def test_ignore_wants_a_reason(tree: Tree) -> None:
    screen = Script("i", "", "i", "  it is  \x07meant ", "n", "n", "n")
    decisions = tree.ask(screen)
    assert [(finding.rule, reason) for finding, reason in decisions.ignored] == [("wrong", "it is meant")]
    assert tree.ask(Script("i", None, "q")).made == {}


def test_a_reason_that_the_file_cannot_hold_is_asked_for_again(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": b"# coding: latin-1\nx = WRONG\n"})
    screen = Script("i", "\u2603", "caf\xe9")
    decisions = tree.ask(screen)
    assert [reason for _, reason in decisions.ignored] == ["caf\xe9"]
    assert screen.said == ["a.py is iso-8859-1, which has not all of these characters."]


def test_comments_alone_are_worth_writing(tree: Tree) -> None:
    screen = Script("i", "because", "q", "\n")
    assert tree.ask(screen).write
    assert screen.questions[-1] == "Write 0 accepted and 1 comment? (yes, no, continue asking)"


def test_an_own_text(tree: Tree) -> None:
    decisions = tree.ask(Script("E", "n", "n", "n", editing=[to("x = mine()\n")]))
    assert decisions.of(Answer.OWN) == [0]
    assert list(decisions.own.values()) == ["x = mine()\n"]
    assert decisions.wanted == {("wrong", "a.py", 1)}


def test_an_own_text_that_is_empty_or_does_not_parse_is_asked_for_again(tree: Tree) -> None:
    seen: list[str] = []

    def look(proposed: Mapping[Hunk, str]) -> Mapping[Hunk, str]:
        seen.extend(proposed.values())
        return dict.fromkeys(proposed, "x = (1\n")

    screen = Script("E", "y", "\n", "n", "n", "n", editing=[to(""), look, to("x = 3\n")])
    assert answers(tree, screen) == ["OWN", "NO", "NO", "NO"]
    assert screen.said[0] == "An empty text changes nothing: answer n to leave the lines as they are."
    assert screen.said[1].startswith("a.py:1: ")
    # What was typed is not lost: the second time it is there to be put right.
    assert seen == [""]


def test_an_own_text_can_be_given_up(tree: Tree) -> None:
    screen = Script("E", "n", "y", "y", "y", "y", editing=[to("x = (1\n")])
    assert answers(tree, screen) == ["YES"] * 4


def test_an_own_text_that_is_none(tree: Tree) -> None:
    assert answers(tree, Script("E", "n", "n", "n", editing=[as_is])) == ["YES", "NO", "NO", "NO"]
    assert answers(tree, Script("E", "n", "n", "n", editing=[to("x = WRONG\n")])) == ["NO", "NO", "NO", "NO"]


def test_an_editor_that_fails_answers_nothing(tree: Tree) -> None:
    screen = Script("E", "n", "n", "n", "n")
    assert answers(tree, screen) == ["NO"] * 4
    assert screen.said == ["no editor"]


def test_an_own_text_of_shared_lines_answers_for_all_that_share_them(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "x = (WRONG, NEST(1))\n\n\ny = WRONG\n"})
    assert [item.shares for item in tree.items] == [(1,), (0,), ()]
    screen = Script("E", "n", editing=[to("x = (right, 5)\n")])
    assert answers(tree, screen) == ["OWN", "OWN", "NO"]
    assert screen.said == ["This answers 2 too, which shares these lines."]
    assert answers(tree, Script("E", "u", "n", "n", "n", editing=[to("x = (right, 5)\n")])) == ["NO"] * 3
    screen = Script("n", "E", "y", "n", editing=[to("x = (right, 5)\n")])
    assert answers(tree, screen) == ["NO", "YES", "NO"]
    assert screen.said == ["It shares lines with 1, which was declined: take that back first."]


def test_changes_of_one_name_are_one_question(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "x = (WRONG, WRONG)\n"})
    assert len(tree.items) == 1
    assert tree.made(Script("y"))[0] == {"a.py": "x = (right, right)\n"}


def test_nothing_to_ask(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "x = 1\n"})
    assert tree.ask(Script()).made == {}


def test_an_interrupt_goes_through(tree: Tree) -> None:
    class Interrupted(Script):
        def key(self, question: str, keys: str) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tree.ask(Interrupted())


MANY = {"a.py": "a = WRONG\nb = RIGHTHAND\nc = WRONG\nd = ODD\n"}


def test_going_to_and_fro_leaves_changes_undecided(tmp_path: Path) -> None:
    tree = Tree(tmp_path, MANY)
    total = len(tree.items)
    # Skip the first, take the second, leave the third, back to it, take it after all; then what is left: the first.
    script = Script("j", "y", "n", "k", "y", *("n" for _ in range(total - 3)), "y")
    decisions = tree.ask(script)
    assert [one.split("/")[0] for one in script.shown[:5]] == ["1", "2", "3", "4", "3"]
    assert script.questions[4] == f"3/{total} Make it? (declined so far)"
    assert decisions.of(Answer.YES) == [0, 1, 2]
    assert len(decisions.made) == total


def test_the_ends_and_numbers(tmp_path: Path) -> None:
    tree = Tree(tmp_path, MANY)
    total = len(tree.items)
    script = Script("k", "g", str(total), "j", "g", "99", "g", "", "g", "x", "q")
    tree.ask(script)
    assert script.said == ["That is the first one.", "That is the last one.", "There is no 99.", "There is no x."]
    assert [one.split("/")[0] for one in script.shown] == ["1", str(total)]


def test_a_text_is_looked_for_in_places_rules_and_lines(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "a = WRONG\n", "sub.py": "b = ODD\n"})
    script = Script("/", "SUB.py", "/", "even", "/", "wrong", "/", "nowhere", "/", "", "q")
    tree.ask(script)
    assert [one.split("/")[0] for one in script.shown] == ["1", "2", "1"]
    assert script.said == ["It is in no other one.", "It is in no other one."]


def test_an_answer_taken_back_is_asked_again_wherever_one_is(tmp_path: Path) -> None:
    tree = Tree(tmp_path, MANY)
    script = Script("j", "j", "y", "g", "1", "u", "n", "q")
    decisions = tree.ask(script)
    assert [one.split("/")[0] for one in script.shown[:5]] == ["1", "2", "3", "4", "1"]
    assert script.shown[5].startswith("3/")
    assert decisions.of(Answer.NO) == [2]


def test_answers_are_kept_and_taken_up_where_lines_have_moved(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    tree = Tree(tmp_path, MANY)
    made = tree.ask(Script("y", "i", "it is meant to be so", "q", "n")).made
    save(file, tree.items, made)
    assert load(file, tree.items) == made
    assert "a.py:1 wrong" in file.read_text()
    moved = Tree(tmp_path, {"a.py": "\n\n" + MANY["a.py"].replace("c = WRONG", "c = WRONG + 1")})
    known = load(file, moved.items)
    assert {index: one.answer for index, one in known.items()} == {0: Answer.YES, 1: Answer.IGNORED}
    script = Script("y", "y", "y")
    Dialogue(moved.items, script, moved.texts, made=known).run()
    assert script.shown[0].startswith("3/")


def test_equal_changes_are_told_apart_by_their_order(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "x = WRONG\nx = WRONG\nx = WRONG\n"})
    save(tmp_path / "a.json", tree.items, tree.ask(Script("n", "y", "q", "y")).made)
    known = load(tmp_path / "a.json", tree.items)
    assert {index: one.answer for index, one in known.items()} == {0: Answer.NO, 1: Answer.YES}


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"codemod-review": 2, "answers": {}}', '{"codemod-review": 1, "answers": 3}']
)
def test_what_is_no_file_of_answers_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ReviewError, match=r"a\.json: "):
        load(tmp_path / "a.json", Tree(tmp_path, MANY).items)
    assert load(tmp_path / "none.json", Tree(tmp_path, MANY).items) == {}
