"""Which variables look secret, and texts without their values."""

from __future__ import annotations

import base64
import html
import json
import urllib.parse

import pytest

from codemods.source.secrets import Secrets, is_secret


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "whatever-it-is"),
        ("WANDB_API_KEY", "0" * 40),
        ("AWS_SECRET_ACCESS_KEY", "word"),
        ("PGPASSWORD", "swordfish"),
        ("DB_PASSWD", "swordfish"),
        ("GITLAB_PAT", "abc"),
        ("SENTRY_DSN", "https://1@example.org/2"),
        ("myService.authToken", "x1"),
        ("HARMLESS", "ghp_0123456789abcdefABCD"),
        ("HARMLESS", "hf_0123456789abcdefABCD"),
        ("HARMLESS", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"),
        ("DATABASE", "postgres://me:swordfish@db.example.org/x"),
        ("HTTPS_PROXY", "http://me:swordfish@proxy:3128"),
        ("HARMLESS", "Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZg"),
        ("HARMLESS", "9f86d081884c7d659a2feaa0c55ad015"),
        ("PEM", "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END"),
    ],
)
def test_what_looks_secret(name: str, value: str) -> None:
    assert is_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("PWD", "/home/me/models/9f86d081884c7d659a2feaa0c55ad015"),
        ("OLDPWD", "/home/me"),
        ("HOME", "/home/me"),
        ("LANG", "en_US.UTF-8"),
        ("XKB_KEYMAP", "us"),
        ("MONKEY", "banana"),
        ("COMPASS", "north"),
        ("PYTHONPATH", "/home/me/src:/home/me/other"),
        ("CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"),
        ("GITHUB_SHA", "d3b07384d113edec49eaa6238ad5ff00d3b07384"),
        ("INVOCATION_ID", "9f86d081884c7d659a2feaa0c55ad015"),
        ("LS_COLORS", "rs=0:di=01;34:ln=01;36"),
        ("MIRROR", "https://mirror.example.org/simple"),
        ("TOKEN", ""),
        ("LESS", "-FRX"),
    ],
)
def test_what_does_not(name: str, value: str) -> None:
    assert not is_secret(name, value)


def test_values_are_masked_in_every_way_of_writing_them() -> None:
    value = "s3cr\"et<&>'\\é/+ 9"
    masked = Secrets([{"MY_TOKEN": value}])
    for text in (
        value,
        repr(value),
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        html.escape(value),
        urllib.parse.quote(value),
        base64.b64encode(value.encode()).decode(),
    ):
        said = masked.mask(f"before{text}after")
        assert "[MY_TOKEN is masked]" in said
        assert "s3cr" not in said
        assert said.startswith("before")
        assert said.endswith("after")


def test_password_of_an_address_and_lines_of_a_key_are_masked_alone() -> None:
    secrets = Secrets([{"URL": "https://me:swordfish@host/x", "SSH_KEY": "first line\nsecond line"}])
    assert secrets.mask("swordfish and second line") == "[URL is masked] and [SSH_KEY is masked]"


def test_longer_values_are_masked_before_their_parts() -> None:
    secrets = Secrets([{"A_TOKEN": "abcdef-12"}, {"B_TOKEN": "abcdef-12-345"}])
    assert secrets.mask("abcdef-12-345 abcdef-12") == "[B_TOKEN is masked] [A_TOKEN is masked]"


def test_numbers_and_words_stay_what_they_are() -> None:
    secrets = Secrets(
        [{"PIN_PASSWORD": "123456", "DB_PASSWORD": "banana", "MY_TOKEN": "true", "KEY": "1", "X": "plain"}]
    )
    text = "0.123456 1234567 x123456 123456.5 bananas a true 1 plain"
    assert secrets.mask(text) == text
    assert secrets.mask("pin 123456, banana.") == "pin [PIN_PASSWORD is masked], [DB_PASSWORD is masked]."


def test_data_is_masked_text_by_text() -> None:
    secrets = Secrets([{"MY_TOKEN": "hunter2-x"}])
    data = {"a": ["hunter2-x", 1, None, 2.5], "hunter2-x": {"b": "no"}}
    assert secrets.mask_all(data) == {"a": ["[MY_TOKEN is masked]", 1, None, 2.5], "[MY_TOKEN is masked]": {"b": "no"}}
    assert Secrets([]).mask_all(data) is data
