"""Addresses: which are taken, and that nobody sees what they keep secret."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codemods.batch.errors import CampaignError
from codemods.batch.sources import expand, parse, read_list, redact
from tests.batch.tools import CLEAN, repository

SECRETS = ["hunter2", "ghp_abcdef123456", "p%40ss", "p@ss"]


@pytest.mark.parametrize(
    ("text", "url", "name"),
    [
        ("https://github.com/owner/name", "https://github.com/owner/name", "owner+name"),
        ("https://github.com/owner/name.git", "https://github.com/owner/name.git", "owner+name"),
        ("https://gitlab.com/group/sub/name/", "https://gitlab.com/group/sub/name/", "sub+name"),
        ("git@github.com:owner/name.git", "git@github.com:owner/name.git", "owner+name"),
        ("ssh://git@host:2222/owner/name.git", "ssh://git@host:2222/owner/name.git", "owner+name"),
        ("https://host/o/n?x=1", "https://host/o/n", "o+n"),
        ("https://host/~me/a b.git", "https://host/~me/a b.git", "me+a-b"),
    ],
)
def test_urls(text: str, url: str, name: str, tmp_path: Path) -> None:
    source = parse(text, tmp_path)
    assert (source.url, source.name, source.local) == (url, name, None)


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/owner/name", "http://host:8080/o/n.git", "https://host/o//n/", "https://a.b-c.d/~me/x+y_z",
        "https://host//o/n", "https://host/", "https://host/o/n.git/",
    ],
)  # fmt: skip
def test_plain_addresses_are_read_as_all_others(text: str, tmp_path: Path) -> None:
    longer = text.replace("://", "://me@", 1)
    assert replace(parse(longer, tmp_path), user="") == parse(text, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "https://me:hunter2@host/o/n",
        "https://ghp_abcdef123456@host/o/n",
        "https://x-access-token:ghp_abcdef123456@host/o/n",
        "https://me:p%40ss@host/o/n",
        "https://host/o/n?private_token=hunter2",
    ],
)
def test_credentials_are_kept_apart(text: str, tmp_path: Path) -> None:
    source = parse(text, tmp_path)
    assert source.url == "https://host/o/n"
    assert not any(secret in f"{source!r} {source.url} {source.name} {source.key}" for secret in SECRETS)
    assert any(secret in source.secrets for secret in SECRETS)
    assert source.key == parse("https://host/o/n.git", tmp_path).key
    said = f"fatal: {text}: {' '.join(source.secrets)}"
    assert not any(secret in redact(said, source.secrets) for secret in SECRETS)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("at https://me:pw@host/x failed", "at https://***@host/x failed"),
        ("ssh://git@host/x", "ssh://git@host/x"),
        ("https://host/x?access_token=abc&page=2", "https://host/x?access_token=***&page=2"),
        ("git@host:x/y.git and me@example.org", "git@host:x/y.git and me@example.org"),
        ("decorator @property in https://host/x", "decorator @property in https://host/x"),
    ],
)
def test_redaction_takes_credentials_and_nothing_else(text: str, told: str) -> None:
    assert redact(text) == told


@pytest.mark.parametrize(
    "text",
    [
        "ext::sh -c 'touch /tmp/x'",
        "fd::17",
        "--upload-pack=touch /tmp/x",
        "ftp://host/x",
        "https:///x",
        "file://other/x",
        "a\nb",
        "",
    ],
)
def test_addresses_that_are_not_taken(text: str, tmp_path: Path) -> None:
    with pytest.raises(CampaignError):
        parse(text, tmp_path)


def test_an_address_that_is_wrong_is_told_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(CampaignError) as caught:
        parse("sftp://me:hunter2@host/x", tmp_path)
    assert "hunter2" not in str(caught.value)


def test_paths_are_relative_to_the_campaign(tmp_path: Path) -> None:
    assert parse("a/b", tmp_path).local == tmp_path / "a" / "b"
    assert parse((tmp_path / "c").as_uri(), Path("/")).local == tmp_path / "c"
    assert parse("a/../b", tmp_path).key == parse("b", tmp_path).key


def test_globs_give_repositories_only(tmp_path: Path) -> None:
    repository(tmp_path / "r" / "one", {"a.py": CLEAN})
    (tmp_path / "r" / "folder").mkdir()
    (tmp_path / "r" / "file").touch()
    assert [source.name for source in expand("r/*", tmp_path)] == ["one"]
    assert expand("nothing/*", tmp_path) == []


def test_a_list_has_comments_and_names_the_line_that_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "list"
    file.write_text("# all of them\nhttps://host/a/b  # this one\n\ngit@host:c/d#e\n")
    assert [source.url for source in read_list(file)] == ["https://host/a/b", "git@host:c/d#e"]
    file.write_text("https://host/a/b\nftp://host/x\n")
    with pytest.raises(CampaignError, match="list:2: "):
        read_list(file)
