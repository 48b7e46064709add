"""The campaign file: what is read from it, and what is said of one that is wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import _told, read
from codemods.batch.campaign.template import TEMPLATE, write
from codemods.batch.errors import CampaignError
from codemods.batch.stages.verifying import settings_of
from tests.batch.tools import CLEAN, campaign_file, repository
from tests.closed import as_nobody, closed_folder

HEAD = '[campaign]\nartifacts = ["patch"]\n'


def campaign(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "c.toml"
    file.write_text(HEAD + text, encoding="utf-8")
    return file


def test_what_a_file_says(tmp_path: Path) -> None:
    file = campaign(
        tmp_path,
        '[repositories]\nurls = ["https://host/a/b", "https://host/c/d"]\nlist = "more.txt"\n'
        '[[repository]]\nsource = "https://host/a/b"\nref = "dev"\nverify.commands = ["main.py"]\nverify.steps = 3\n'
        '[[repository]]\nsource = "https://host/x/y"\nskip = "archived"\n'
        '[rules]\nignore = ["empty-cache"]\nno_grad_style = "with"\nexclude = ["old/"]\n'
        '[verify]\ntimeout = 30\nmemory = "2G"\n[commit]\nbranch = "fix/graph"\nstyle = "one"\n'
        '[publish]\nrequire = "not-broken"\n[limits]\nfile-size = "1M"\nfiles = 7\n',
    )
    (tmp_path / "more.txt").write_text("https://host/c/d.git\nhttps://host/e/f\n")
    made = read(file)
    by_name = {one.source.name: one for one in made.repositories}
    assert list(by_name) == ["a+b", "c+d", "e+f", "x+y"]
    assert (by_name["a+b"].ref, by_name["a+b"].runs.commands, by_name["a+b"].runs.steps) == ("dev", ("main.py",), 3)
    assert (by_name["a+b"].runs.timeout, by_name["c+d"].runs.steps) == (30.0, 20)
    assert by_name["x+y"].skip == "archived"
    assert made.options.ignore == ("empty-cache",)
    assert (made.options.no_grad_style, made.exclude, made.runs.memory) == ("with", ("old/",), 2 << 30)
    assert (made.commits.branch, made.publishing.require, made.limits.files) == ("fix/graph", "not-broken", 7)
    assert made.limits.file_size == 1 << 20
    assert made.work == tmp_path / "c-work"


def test_the_interpreter_is_looked_for_from_the_campaign(tmp_path: Path) -> None:
    def pythons(text: str, own: str) -> list[str]:
        single = f'[[repository]]\nsource = "https://host/a/b"\nverify.python = "{own}"\n'
        urls = '[repositories]\nurls = ["https://host/c/d"]\n'
        made = read(campaign(tmp_path, f'[verify]\npython = "{text}"\n{urls}{single}'))
        return [one.runs.python for one in made.repositories]

    assert pythons("env/bin/python", "../python") == [str(tmp_path / "env/bin/python"), str(tmp_path.parent / "python")]
    assert pythons("python3.9", "/opt/python") == ["python3.9", "/opt/python"]


GROUPS = """
[repositories]
urls = ["https://host/acme/a.git", "https://host/acme/vision-b", "https://host/other/vision-c", "https://me:pw@host/x/d"]
globs = ["repos/*"]
[verify]
steps = 5
[[group]]
match = ["https://host/acme/*"]
verify.python = "3.10"
verify.steps = 7
labels = ["acme"]
[[group]]
match = ["*/vision-*", "./repos/old-*"]
verify.steps = 9
ref = "dev"
[[group]]
match = ["https://me:pw@host/*", "acme", "vision-?"]
verify.steps = 1
[[repository]]
source = "https://host/acme/vision-b"
verify.timeout = 8
[[repository]]
source = "https://host/acme/late"
verify.steps = 11
"""


def test_groups_are_on_terms_of_their_own(tmp_path: Path) -> None:
    for name in ("old-one", "new"):
        repository(tmp_path / "repos" / name, {"a.py": CLEAN})
    made = read(campaign(tmp_path, GROUPS))
    told = {
        one.source.name: (one.runs.steps, one.runs.python, one.runs.timeout, one.ref, one.labels)
        for one in made.repositories
    }
    assert told == {
        "acme+a": (7, "3.10", 120.0, "", ("acme",)),
        "acme+vision-b": (9, "3.10", 8.0, "dev", ("acme",)),
        "other+vision-c": (9, "", 120.0, "dev", None),
        "x+d": (5, "", 120.0, "", None),
        "old-one": (9, "", 120.0, "dev", None),
        "new": (5, "", 120.0, "", None),
        "acme+late": (11, "3.10", 120.0, "", ("acme",)),
    }
    # Nobody writes a password to tell a group; one that fits nothing is told.
    assert made.idle == ("[[group]] number 3: https://me:pw@host/*, acme, vision-?",)


WRONG = {
    "[[group]]\nverify.steps = 1\n": "needs match: patterns of addresses or names",
    '[group]\nmatch = ["x"]\n': "a table [[group]], with two brackets",
    '[[group]]\nmatch = ["x"]\nskip = "x"\n': "unknown key 'skip' in [[group]] number 1",
    "[repositry]\n": "unknown table [repositry]; did you mean 'repository'?",
    "[repositories]\nurl = []\n": "unknown key 'url' in [repositories]; did you mean 'urls'?",
    "[verify]\ntime-out = 3\n": "did you mean 'timeout'?",
    "[verify]\nsteps = 0\n": "'steps' in [verify] must be a whole number from 1, not 0",
    "[verify]\nmemory = 8\n": 'must be a size such as "500M" or "8G", not 8',
    '[verify]\nstand-ins = ["x.npy"]\n': "one looks like data/x.npy=float32",
    '[verify]\nenv = ["=x"]\n': "a list of variables",
    "[verify]\nrun = 1\n": "must be true or false",
    '[commit]\nbranch = "a..b"\n': "must be the name of a branch",
    '[commit]\nbranch = "-x"\n': "must be the name of a branch",
    '[commit]\nauthor = "me"\n': 'must be a text like "Name <name@example.org>"',
    '[publish]\nrequire = "all"\n': 'must be one of "kept", "not-broken"',
    '[rules]\nselect = ["surplus-retain"]\n': "surplus-retain",
    '[rules]\ntarget-torch = "new"\n': "a version of PyTorch",
    '[[repository]]\nref = "x"\n': "number 1 needs a source",
    '[repository]\nsource = "x"\n': "with two brackets",
    '[repositories]\nlist = "nothing.txt"\n': "nothing.txt: no such file",
    '[repositories]\nurls = ["ext::sh -c x"]\n': "git would execute them",
    "[campaign\n": "not valid TOML",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_said_of_a_wrong_one(text: str, tmp_path: Path) -> None:
    with pytest.raises(CampaignError) as caught:
        read(campaign(tmp_path, text))
    assert WRONG[text] in str(caught.value)
    assert "\n" not in str(caught.value).strip() or "TOML" in str(caught.value)


def test_a_form_of_report_that_there_is_none_of(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="there is no form 'pdf'; there are patch, "):
        read(campaign_file(tmp_path, artifacts='"pdf"'))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="codemod batch init"):
        read(tmp_path / "nothing.toml")
    with closed_folder() as closed:
        (closed / "c.toml").write_text(HEAD)
        closed.chmod(0)
        assert as_nobody(lambda: read(closed / "c.toml")) == f"CampaignError('{closed}/c.toml: permission denied')"


@pytest.mark.parametrize("work", [".", "/", "~"])
def test_the_work_folder_is_one_of_its_own(work: str, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f'[campaign]\nartifacts = ["patch"]\nwork = "{work}"\n')
    with pytest.raises(CampaignError, match="used for nothing else"):
        read(file)


def test_the_file_that_is_written_can_be_read_and_tells_the_truth(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    write(file)
    # With every default spelled out it says the same as without.
    lines = []
    for line in file.read_text().splitlines():
        spelled = line.startswith("# ") and " = " in line and not line.startswith(("# [[", "# artifacts"))
        sample = any(
            word in line for word in ("# source", "# ref", "# skip", "# verify", "# list", "# remote", "# match")
        )
        sample = sample or any(
            word in line
            for word in ("commands", "stand-ins", "python", "author", "exclude", "jobs", "per-day", "hours")
        )
        sample = sample or "memory" in line or line.startswith("# reach")
        lines.append(line[2:] if spelled and not sample else line)
    text = "\n".join(lines).replace("[campaign]", HEAD.strip())
    full, short = tmp_path / "full.toml", tmp_path / "short.toml"
    full.write_text(text)
    short.write_text(HEAD)
    one, other = read(full), read(short)
    assert (one.options, one.runs, one.commits, one.publishing) == (
        other.options,
        other.runs,
        other.commits,
        other.publishing,
    )
    assert one.limits == other.limits
    assert text.count("\n") == TEMPLATE.count("\n")


def test_nothing_is_written_over(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    write(file)
    mine = file.read_text() + "# mine\n"
    file.write_text(mine)
    with pytest.raises(CampaignError, match="--force"):
        write(file)
    assert file.read_text() == mine
    write(file, force=True)
    assert file.read_text() != mine


@pytest.mark.parametrize("force", [False, True])
def test_only_a_campaign_is_written_over(force: bool, tmp_path: Path) -> None:
    source, folder, pipe = tmp_path / "train.py", tmp_path / "folder", tmp_path / "pipe"
    source.write_text("print(1)\n")
    folder.mkdir()
    os.mkfifo(pipe)
    for file, why in (
        (source, "exists and is no campaign; name another file"),
        (folder, "is a directory"),
        (pipe, "is no file"),
    ):
        with pytest.raises(CampaignError, match=f"{why}$"):
            write(file, force=force)
    assert source.read_text() == "print(1)\n"


def test_what_results_depend_on(tmp_path: Path) -> None:
    text = '[repositories]\nurls = ["https://host/a/b"]\n'
    one = read(campaign(tmp_path, text))
    same = read(campaign(tmp_path, text + "[limits]\njobs = 3\n[publish]\ndraft = false\n"))
    other = read(campaign(tmp_path, text + "[rules]\nunsafe = true\n"))
    prints = [made.fingerprint(made.repositories[0]) for made in (one, same, other)]
    assert prints[0] == prints[1] != prints[2]


def test_a_file_can_begin_with_what_is_there(tmp_path: Path) -> None:
    for name in ("one", "two [x]", "three"):
        repository(tmp_path / "all" / name, {"lib.py": CLEAN})
    (tmp_path / "all" / "none").mkdir()
    file = tmp_path / "mine.toml"
    named = [str(tmp_path / "all"), str(tmp_path / "all" / "two [x]"), "https://me:sesame@host/o/n", "git@host:o/m.git"]
    assert write(file, named) == 6
    text = file.read_text()
    assert "sesame" not in text
    assert 'paths = ["all/two [x]"]' in text
    assert 'globs = ["all/*"]' in text
    made = read(file)
    # The one that is named twice is one.
    assert sorted(one.source.name for one in made.repositories) == ["o+m", "o+n", "one", "three", "two-x"]


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("empty", "empty: neither a repository nor a folder with repositories in it"),
        ("no/such", "no/such: no such folder"),
        ("ext::sh -c x", "ext:: addresses are not taken"),
        (os.fsdecode(b"n\xe4me"), "a name that no TOML file can hold"),
    ],
)
def test_what_a_file_cannot_begin_with(named: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    repository(tmp_path / os.fsdecode(b"n\xe4me"), {"lib.py": CLEAN})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CampaignError, match=re.escape(said)):
        write(tmp_path / "mine.toml", [named])
    assert not (tmp_path / "mine.toml").exists()


def test_how_long_is_looked_for_what_no_run_reaches(tmp_path: Path) -> None:
    """A setting of a later release: what was done without it is not stale, and none is other than no time."""
    urls = '[repositories]\nurls = ["https://host/a/b"]\n[verify]\nsteps = 3\n'
    plain = read(campaign(tmp_path, urls))
    prints = {plain.fingerprint(plain.repositories[0])}
    assert not {"reach", "within"} & _told(plain.runs).keys()
    assert settings_of(plain.runs).within == 3600
    assert settings_of(plain.runs).reach_seconds == 4 * 120
    for text, seconds in (("0", 0.0), ("900", 900.0)):
        made = read(campaign(tmp_path, f"{urls}reach = {text}\n"))
        assert settings_of(made.runs).reach_seconds == seconds
        prints.add(made.fingerprint(made.repositories[0]))
    assert len(prints) == 3
