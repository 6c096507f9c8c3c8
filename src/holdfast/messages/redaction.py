"""Secrets out of text before it is kept: a named set of rules for keys, tokens, passwords and card numbers.

A secret becomes `[redacted: NAME]`; everything else stays to the letter. The rules know what secrets look like, not
what they mean: a password in a sentence of prose stays where nothing says that it is one. Hashes, ids and dates have
no rule, and pictures inside a text (`data:image/…;base64,…`) are not looked into. The rules are in `secrets.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files

from holdfast.text.words import regex
from holdfast.types import JSON
from holdfast.values import dataclass

_MARK = "[redacted: "
_PICTURE = regex(r"(data:(?:image|audio|video|font)/[\w.+-]{1,40};base64,[A-Za-z0-9+/=]++)")
_DATA = tomllib.loads(files("holdfast.messages").joinpath("secrets.toml").read_text("utf-8"))
_PARTS: Mapping[str, str] = _DATA["parts"]


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and the names of the rules that found some, in the rules' order."""

    text: str
    found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _SecretRule:
    """What one kind of secret looks like; the group `secret` is what leaves, where there is one."""

    name: str
    pattern: re.Pattern[str]
    accept: Callable[[re.Match[str]], bool]

    def apply(self, text: str) -> str:
        part = "secret" if "secret" in self.pattern.groupindex else 0
        kept, done, place = [], 0, 0
        while match := self.pattern.search(text, place):
            if not self.accept(match):
                place = match.start() + 1  # a secret may start inside of what is none
                continue
            start, end = match.span(part)
            end -= text.endswith(".", start, end) if part else 0  # the end of a sentence
            kept += [text[done:start], f"{_MARK}{self.name}]"]
            done, place = end, max(end, match.end())
        return "".join([*kept, text[done:]])


# --------------------------------------------------------------------------------------------------- a closer look

_STAND_IN = regex(_DATA["none"]["stand_in"])
_NO_PASSWORD = regex(_DATA["none"]["no_password"])
# A name or a path of names is read by a program; only the value it stands for would be a secret.
_NAME_PATH = regex(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_NAME = regex(r"[^\W\d]+")
# "hunter2", not "step2" or "part 3": a word and one digit is a password only if it is a long one.
_LONG_WORD = regex(r"(?i:[a-z]{6,}\d)")
_ISSUERS = regex(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|35\d{14}|6(?:011|4[4-9]\d|5\d\d|2\d\d)\d{12}"
)


def _is_secret(match: re.Match[str]) -> bool:
    return not _is_stand_in(match["secret"])


def _is_stand_in(value: str) -> bool:
    return value.startswith(_MARK) or _STAND_IN.fullmatch(value) is not None


def _is_bare_secret(match: re.Match[str]) -> bool:
    """Return whether a value without quotes is meant literally: it is no name, no stand-in and no call."""
    value = match["secret"]
    if not _is_secret(match) or _NAME_PATH.fullmatch(value):
        return False
    # `key = name` is code and `key: word` is prose; `KEY=word` is neither.
    return match["assigned"] == "=" or not _NAME.fullmatch(value)


def _is_mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _looks_random(match: re.Match[str]) -> bool:
    return _is_secret(match) and _is_mixed(match["secret"])


def _is_said_password(match: re.Match[str]) -> bool:
    """Return whether the word behind "password" is one, where nothing says so but its looks."""
    value = match["secret"]
    if not _looks_random(match):
        return False
    return _LONG_WORD.fullmatch(value.rstrip(".:!?")) is not None or not _NO_PASSWORD.fullmatch(value)


def _is_aws_secret(match: re.Match[str]) -> bool:
    """Return whether forty characters are a key and no digest: these have one case."""
    value = match["secret"]
    return _looks_random(match) and value != value.lower() and value != value.upper()


def _is_card(match: re.Match[str]) -> bool:
    """Return whether digits are a card number: an issuer's beginning and length, and Luhn's check digit."""
    digits = re.sub("[ -]", "", match.group())
    if not _ISSUERS.fullmatch(digits):
        return False
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(value // 10 + value % 10 for value in doubled) % 10 == 0


_ACCEPT: dict[str, Callable[[re.Match[str]], bool]] = {
    "always": lambda _: True,
    "secret": _is_secret,
    "bare_secret": _is_bare_secret,
    "random": _looks_random,
    "said_password": _is_said_password,
    "aws_secret": _is_aws_secret,
    "card": _is_card,
}


def _compile(pattern: str) -> re.Pattern[str]:
    for name, part in _PARTS.items():
        pattern = pattern.replace(f"{{{name}}}", part)
    return regex(pattern)


_RULES = tuple(
    _SecretRule(rule["name"], _compile(rule["pattern"]), _ACCEPT[rule.get("accept", "always")])
    for rule in _DATA["rule"]
)
RULES = tuple(dict.fromkeys(rule.name for rule in _RULES))


# -------------------------------------------------------------------------------------------------------- redacting

_SECRET_KEY = _compile(r"[\w.-]*?{key}")
_LOOSE_KEY = _compile(r"[\w.-]*?{loose_key}")
# As in the rule for what a text assigns to a token.
_SHORTEST_TOKEN = 8


def redact(text: str) -> Redacted:
    """Return `text` without its secrets. Doing it twice changes nothing more."""
    pieces = _PICTURE.split(text)
    found = set[str]()
    for place in range(0, len(pieces), 2):
        pieces[place], names = _apply_rules(pieces[place])
        found |= names
    return Redacted("".join(pieces), tuple(name for name in RULES if name in found))


def redact_text(text: str) -> str:
    """Return `text` without its secrets."""
    return redact(text).text


def _apply_rules(text: str) -> tuple[str, set[str]]:
    """Apply the rules until nothing changes: what leaves may lay bare what stood glued to it."""
    found = set[str]()
    before = None
    while text != before:
        before = text
        for rule in _RULES:
            cleaned = rule.apply(text)
            if cleaned != text:
                text = cleaned
                found.add(rule.name)
    return text, found


def redact_json(value: JSON, clean: Callable[[str], str] = redact_text) -> JSON:
    """Return `value` without the secrets in its texts, as `clean` finds them; what a key calls a secret is one.

    Keys stay. Lists stay lists and tuples tuples; what is no JSON stays as it is.
    """

    def walk(node: JSON, key: str, *, secret: bool) -> JSON:
        secret = secret or _SECRET_KEY.fullmatch(key) is not None
        if isinstance(node, Mapping):
            return {name: walk(inner, str(name), secret=secret) for name, inner in node.items()}
        if isinstance(node, list | tuple):
            return type(node)(walk(inner, key, secret=secret) for inner in node)
        if _is_named_secret(node, key, secret=secret):
            return f"{_MARK}assigned secret]"
        return clean(node) if isinstance(node, str) else node

    return walk(value, "", secret=False)


def _is_named_secret(node: JSON, key: str, *, secret: bool) -> bool:
    """Return whether a value is a secret because of its key, and no stand-in for one."""
    if isinstance(node, bool) or not isinstance(node, str | int | float):
        return False
    if not isinstance(node, str):
        return secret
    if not node or _is_stand_in(node):
        return False
    return secret or (_LOOSE_KEY.fullmatch(key) is not None and _is_mixed(node) and len(node) >= _SHORTEST_TOKEN)
