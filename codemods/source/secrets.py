"""Values that look secret, and texts without them.

A program that is run can print what it was given; whatever is told of it goes into reports, commits and pull requests.
"""

from __future__ import annotations

import base64
import html
import json
import math
import re
import urllib.parse
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from codemods.terms.words import words

#: Words of a variable's name (between underscores) that say what its value is.
_WORDS = words(
    "ACCESSKEY APIKEY AUTH AUTHORIZATION AUTHTOKEN BEARER COOKIE CRED CREDENTIAL CREDENTIALS CREDS DSN JWT KEY KEYS "
    "PASS PASSCODE PASSPHRASE PASSWD PASSWORD PAT PRIVATEKEY PSK PW PWD SECRET SECRETKEY SECRETS SESSIONID TOKEN TOKENS"
)
_ENDS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "CREDENTIALS")
#: What these words also name, and no secret: folders that a shell was in, a switch of a library.
_HARMLESS = frozenset({"PWD", "OLDPWD"})
#: How the tokens of well-known services begin, web tokens, and private keys.
_SHAPES = re.compile(
    r"gh[opsur]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|hf_\w{16,}|sk-[\w-]{16,}|xox[abeprs]-[\w-]{10,}"
    r"|(AKIA|ASIA)[A-Z0-9]{12,}|AIza[\w-]{20,}|npm_\w{16,}|pypi-[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]{8,}\.?[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_CREDENTIALS = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]*:(?P<password>[^/\s@]+)@", re.IGNORECASE)
#: What is random and no secret: the numbers of commits, devices, sessions, told by the name or by their shape.
_NUMBERS = words("COMMIT DIGEST HASH ID INODE REF REVISION SHA SHA1 SHA256 UUID VERSION")
_UUID = re.compile(r"([A-Za-z]+-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_OPAQUE = re.compile(r"[A-Za-z0-9+/_=-]{20,}|[0-9a-fA-F]{32,}")
#: Bits a character; words and paths have less, random letters and digits more.
_ENTROPY = 3.5
_HEXADECIMAL = 3.0
#: What is shorter is found in any text.
_SHORTEST = 6


def is_secret(name: str, value: str) -> bool:
    """Whether a variable of this name and value looks like a token, a key or a password."""
    words = re.split(r"[^A-Z0-9]+", name.upper())
    if not value.strip():
        return False
    return has_secret_name(name) or looks_secret(value) or (_NUMBERS.isdisjoint(words) and _random(value))


def has_secret_name(name: str) -> bool:
    """Whether the value of a variable of this name is a secret, whatever it looks like."""
    upper = name.upper()
    words = re.split(r"[^A-Z0-9]+", upper)
    return upper not in _HARMLESS and (upper.endswith(_ENDS) or not _WORDS.isdisjoint(words))


def looks_secret(value: str) -> bool:
    """Whether ``value`` is a token of a known shape, or an address with a password in it."""
    return bool(_SHAPES.search(value) or _CREDENTIALS.search(value))


def tokens(text: str) -> list[str]:
    """What in ``text`` has the shape of a token or a private key, or is the password of an address; each once."""
    found = [match[0] for match in _SHAPES.finditer(text)]
    found += [match["password"] for match in _CREDENTIALS.finditer(text) if match["password"] != "***"]
    return list(dict.fromkeys(found))


def _random(value: str) -> bool:
    """Whether ``value`` is one long word of letters and digits that nobody would choose."""
    if not _OPAQUE.fullmatch(value) or value.startswith("/") or _UUID.fullmatch(value):
        return False
    if not (re.search(r"\d", value) and re.search(r"[A-Za-z]", value)):
        return False
    hexadecimal = re.fullmatch(r"[0-9a-fA-F-]+", value) is not None
    return _entropy(value) > (_HEXADECIMAL if hexadecimal else _ENTROPY)


def _entropy(value: str) -> float:
    counts = Counter(value)
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())


class Secrets:
    """The values of variables that look secret; ``mask`` puts the name of the variable in their place."""

    def __init__(self, environments: Iterable[Mapping[str, str]]) -> None:
        """``environments`` map names of variables to values; those that do not look secret are left alone."""
        found: dict[str, str] = {}
        for environment in environments:
            for name, value in environment.items():
                if not is_secret(name, value):
                    continue
                parts = [match["password"] for match in _CREDENTIALS.finditer(value)]
                # A key of several lines is printed line by line.
                for part in [*parts, value, *value.splitlines()]:
                    if len(part.strip()) >= _SHORTEST:
                        found.setdefault(part.strip(), name)
        self._names: dict[str, str] = {}
        for value, name in found.items():
            for form in _forms(value):
                self._names.setdefault(form, name)
        # The longest first: one value can be a part of another.
        values = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_bounded, values))) if values else None

    def found(self, text: str) -> str:
        """Return the name of a variable whose value stands in ``text``; empty where none does."""
        match = self._pattern.search(text) if self._pattern is not None else None
        return self._names[match[0]] if match is not None else ""

    def mask(self, text: str) -> str:
        """Return ``text`` with ``[NAME is masked]`` for each value."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: f"[{self._names[match[0]]} is masked]", text)

    def mask_all(self, data: Any) -> Any:
        """Return JSON's kinds of data with every text in it masked; keys of objects, too."""
        if self._pattern is None:
            return data
        if isinstance(data, str):
            return self.mask(data)
        if isinstance(data, Mapping):
            return {self.mask_all(key): self.mask_all(value) for key, value in data.items()}
        if isinstance(data, (list, tuple)):
            return [self.mask_all(value) for value in data]
        return data


def _forms(value: str) -> Iterable[str]:
    """``value`` as it can stand in a text: as it is, and as Python, JSON, HTML, an address and base64 write it."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield html.escape(value)
    yield html.escape(value, quote=False)
    yield urllib.parse.quote(value)
    yield urllib.parse.quote(value, safe="")
    yield base64.b64encode(value.encode("utf-8", "surrogateescape")).decode()
    yield base64.b64encode(value.encode("utf-8", "surrogateescape")).decode().rstrip("=")


def _bounded(value: str) -> str:
    """A pattern for ``value``; a number or a word that is no more than that is not looked for inside of longer ones."""
    if value.isdigit() or (value.isalpha() and len(value) < 2 * _SHORTEST):
        return rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)"
    return re.escape(value)
