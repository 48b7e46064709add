"""git among other people's repositories: nothing of theirs is executed, and nothing of ours is told."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods.batch import git as batch_git
from codemods.batch.campaign.settings import Limits
from codemods.batch.errors import Exhausted, Failed, Refused
from codemods.batch.git import Git
from codemods.batch.requests.upstream import remote_refs
from codemods.batch.sources import of_path, parse
from codemods.batch.stages.cloning import clone, pack, unpack_tree, write_tree
from codemods.batch.stages.inspection import inspect, read_tree
from tests.batch.forge import served
from tests.batch.tools import CLEAN, TRAIN, bare, commit, git, repository


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose git executes something at every occasion, and says so in ``ran``."""
    home = tmp_path / "home"
    (home / "hooks").mkdir(parents=True)
    (home / "template" / "hooks").mkdir(parents=True)
    for folder in (home / "hooks", home / "template" / "hooks"):
        for name in ("post-checkout", "reference-transaction", "pre-push", "post-index-change", "pre-commit"):
            hook = folder / name
            hook.write_text(f"#!/bin/sh\necho {name} >> {home}/ran\n")
            hook.chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[core]\nhooksPath = {home}/hooks\nattributesFile = {home}/attributes\n[init]\ntemplateDir = {home}/template\n"
        f'[filter "evil"]\nsmudge = "sh -c \'echo smudge >> {home}/ran; cat\'"\nclean = cat\nrequired = true\n'
        f'[filter "lfs"]\nsmudge = "sh -c \'echo lfs >> {home}/ran; cat\'"\n'
        f"[core]\nfsmonitor = \"sh -c 'echo monitor >> {home}/ran'\"\n"
        "[user]\nname = Me Myself\nemail = me@example.org\n"
        '[credential]\nhelper = "!echo password=stored; #"\n[url "https://me:sesame@evil/"]\ninsteadOf = https://host/\n'
    )
    (home / "attributes").write_text("* filter=evil\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    _forget()
    yield home
    _forget()


def _forget() -> None:
    batch_git._own_configuration.cache_clear()
    batch_git._trusted.cache_clear()


def test_nothing_is_executed(home: Path, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "train.py": b"x = 1\r\ny = 2\n",
        "latin.py": "# -*- coding: latin-1 -*-\n# $Id$ \xfc\n".encode("latin-1"),
        ".gitattributes": "*.py filter=evil text eol=crlf ident working-tree-encoding=UTF-16\n*.bin filter=lfs\n",
        "big.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        ".gitmodules": '[submodule "s"]\npath = s\nurl = ext::sh -c "touch ran"\nupdate = !touch ran\n',
    }
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "-q", "-b", "main")
    # As it stands in the objects, whatever the attributes would make of it.
    for name, content in files.items():
        raw = content if isinstance(content, bytes) else content.encode()
        made = git(source, "hash-object", "-w", "--stdin", "--no-filters", input=raw)
        git(source, "update-index", "--add", "--cacheinfo", f"100644,{made},{name}")
    git(source, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},s")
    git(source, "commit", "-q", "-m", "work")
    facts = clone(Git(of_path(source)), of_path(source), "", tmp_path / "clone", Limits())
    write_tree(Git(), tmp_path / "clone", tmp_path / "tree")
    unpack_tree(Git(), pack(tmp_path / "clone", ".git"), tmp_path / "unpacked")
    assert facts["submodules"] == 1
    assert not (home / "ran").exists()
    assert not list((tmp_path / "clone" / ".git").glob("hooks/*"))
    for tree in (tmp_path / "tree", tmp_path / "unpacked"):
        for name, content in files.items():
            assert (tree / name).read_bytes() == (content if isinstance(content, bytes) else content.encode()), name


def test_of_the_configuration_identity_and_credentials_are_taken(home: Path) -> None:
    assert batch_git.identity("") == ("Me Myself", "me@example.org")
    assert batch_git.identity("You <you@example.org>") == ("You", "you@example.org")
    assert dict(batch_git._own_configuration()) == {"credential.helper": "!echo password=stored; #"}


def test_traces_of_git_are_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    monkeypatch.setenv("GIT_TRACE_CURL", str(tmp_path / "trace"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    source = repository(tmp_path / "source", {"a.py": CLEAN})
    assert len(remote_refs(of_path(source))) == 2
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("address", ["ext::sh -c touch% ran", "file:///x", "/x"])
def test_only_what_was_named_is_reached(address: str, tmp_path: Path) -> None:
    remote = parse("https://host/a/b", tmp_path)
    with pytest.raises(Failed, match="not allowed"):
        Git(remote).run("ls-remote", "--", address, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_takes_too_long(tmp_path: Path) -> None:
    repository(tmp_path / "r", {"a.py": CLEAN})
    with pytest.raises(Failed, match="git cat-file took more than 0 seconds"):
        Git().run("cat-file", "--batch-check", cwd=tmp_path / "r", input=b"HEAD\n" * 10, timeout=0.0)


def test_a_full_disk_is_nobodys_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\necho 'fatal: write error: No space left on device' >&2\nexit 128\n")
    fake.chmod(0o755)
    monkeypatch.setattr(batch_git, "executable", lambda: str(fake))
    with pytest.raises(Exhausted, match="no space left"):
        Git().run("fetch", cwd=tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a forge that asks for a password, with the repository ``o/n.git``."""
    source = repository(tmp_path / "origin", {"a.py": CLEAN})
    bare(tmp_path / "forge" / "o" / "n.git", source)
    git(tmp_path / "forge" / "o" / "n.git", "config", "http.receivepack", "true")
    with served(tmp_path / "forge", "me:s3cr3t p@ss") as address:
        yield address


def test_credentials_in_an_address_open_the_door_and_are_seen_nowhere(server: str, tmp_path: Path) -> None:
    log: list[str] = []
    source = parse(f"http://me:s3cr3t%20p%40ss@{server}/o/n.git", tmp_path)
    facts = clone(Git(source, log.append), source, "", tmp_path / "clone", Limits())
    assert facts["base"] == git(tmp_path / "origin", "rev-parse", "HEAD")
    seen = "\n".join(log) + "".join(
        path.read_text(errors="replace") for path in (tmp_path / "clone").rglob("*") if path.is_file()
    )
    assert "s3cr3t" not in seen
    assert f"http://{server}/o/n.git" in seen
    assert "refs/heads/main" in remote_refs(source)


@pytest.mark.parametrize("user", ["", "me:wrong@", "me@"])
def test_without_the_password_it_fails_and_asks_nobody(user: str, server: str, tmp_path: Path) -> None:
    source = parse(f"http://{user}{server}/o/n.git", tmp_path)
    log: list[str] = []
    with pytest.raises(Failed) as caught:
        clone(Git(source, log.append), source, "", tmp_path / "clone", Limits())
    assert "wrong" not in f"{caught.value} {log}"


def test_a_repository_may_tell_a_reference(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"a.py": CLEAN})
    git(source, "checkout", "-q", "-b", "dev")
    head = commit(source, {"b.py": CLEAN})
    git(source, "checkout", "-q", "main")
    facts = clone(Git(of_path(source)), of_path(source), "dev", tmp_path / "clone", Limits())
    assert (facts["base"], facts["base_branch"], facts["tree_files"]) == (head, "dev", 2)
    with pytest.raises(Failed, match="nothing"):
        clone(Git(of_path(source)), of_path(source), "nothing", tmp_path / "other", Limits())


def _large(folder: Path) -> Path:
    return repository(folder, {"train.py": TRAIN, "model.bin": os.urandom(3 << 20)})


def test_a_file_that_is_too_large_is_not_even_fetched(tmp_path: Path) -> None:
    source = of_path(_large(tmp_path / "source"))
    with pytest.raises(Refused, match=r"model\.bin is 3 MiB; the limit is 1 MiB a file"):
        clone(Git(source), source, "", tmp_path / "clone", Limits(file_size=1 << 20))
    assert batch_git.size_of(tmp_path / "clone") < 1 << 20
    # Where it comes from another machine, nobody says how large it is.
    with pytest.raises(Refused, match=r"model\.bin is more than 1 MiB, the limit a file"):
        inspect(Git(), tmp_path / "clone", Limits(file_size=1 << 20))
    # A clone that lacks the file itself knows no size of it, and no limit is what keeps it out.
    partial = tmp_path / "clone"
    with pytest.raises(Refused, match=r"model\.bin is not in .*/clone, which is a partial clone"):
        inspect(Git(), partial, Limits(), partial)
    seen = clone(Git(source), source, "", tmp_path / "whole", Limits(file_size=4 << 20))
    assert seen["tree_bytes"] > 3 << 20


def test_nothing_of_a_source_that_leaves_objects_out_is_executed(tmp_path: Path) -> None:
    source = _large(tmp_path / "source")
    ran = tmp_path / "ran"
    for key, value in {
        "remote.evil.promisor": "true",
        "remote.evil.url": str(source),
        "remote.evil.uploadpack": f"touch {ran}; git-upload-pack",
        "extensions.partialClone": "evil",
        "core.repositoryFormatVersion": "1",
    }.items():
        git(source, "config", key, value)
    blob = git(source, "rev-parse", "HEAD:train.py")
    (source / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    # Git itself would: there is something to be kept from.
    subprocess.run(["git", "-C", str(source), "cat-file", "blob", blob], capture_output=True, check=False)
    assert ran.exists()
    ran.unlink()
    with pytest.raises(Failed):
        clone(Git(of_path(source)), of_path(source), "", tmp_path / "clone", Limits())
    assert read_tree(source, "HEAD")[:2] == ({}, "")
    assert not ran.exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
def test_a_source_of_somebody_else_is_taken_where_git_is_told_that_it_is_safe(home: Path, tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"train.py": TRAIN})
    for path in [source, *source.rglob("*")]:
        os.chown(path, 65534, 65534)
    with pytest.raises(Failed, match="ownership"):
        clone(Git(of_path(source)), of_path(source), "", tmp_path / "clone", Limits())
    with open(home / ".gitconfig", "a", encoding="utf-8") as file:
        file.write(f"[safe]\ndirectory = {source}\ndirectory = {source}/.git\n")
    _forget()
    assert clone(Git(of_path(source)), of_path(source), "", tmp_path / "taken", Limits())["tree_files"] == 1
    assert set(remote_refs(of_path(source))) == {"HEAD", "refs/heads/main"}
    assert set(read_tree(source, "HEAD")[0]) == {"train.py"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "remote: error: GH006: Protected branch update failed for refs/heads/x.\nremote:\n"
            "To https://host/o/n\n ! [remote rejected] x -> x (protected branch hook declined)\n"
            "error: failed to push some refs to 'https://host/o/n'\n",
            "error: GH006: Protected branch update failed for refs/heads/x.; "
            "! [remote rejected] x -> x (protected branch hook declined)",
        ),
        (
            "remote: Repository not found.\nfatal: repository 'https://host/' not found\n",
            "repository 'https://host/' not found",
        ),
        ("error: one\nerror: two\n", "two"),
        ("", ""),
    ],
)
def test_a_refusal_is_told_in_the_remotes_own_words(said: str, told: str) -> None:
    assert batch_git._last_words(said) == told


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_source_of_another_owner_is_taken_where_git_is_told_that_it_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = repository(tmp_path / "source", {"train.py": TRAIN})
    for path in (source, *source.rglob("*")):
        os.chown(path, 1234, 1234)
    (tmp_path / "gitconfig").write_text(f"[safe]\n\tdirectory = {source}/.git\n\tdirectory = {source}\n")
    for number, (config, fits) in enumerate(((os.devnull, False), (str(tmp_path / "gitconfig"), True))):
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", config)
        batch_git._trusted.cache_clear()
        where = of_path(source)
        with contextlib.nullcontext() if fits else pytest.raises(Failed, match="dubious ownership"):
            clone(Git(where), where, "", tmp_path / f"clone{number}", Limits())
    batch_git._trusted.cache_clear()
