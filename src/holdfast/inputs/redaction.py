"""Secrets out of text before it is kept: a named set of rules for keys, tokens, passwords and card numbers.

A secret becomes `[redacted: NAME]`; everything else stays to the letter. The rules know what secrets look like, not
what they mean: a password in a sentence of prose stays where nothing says that it is one. Hashes, ids and dates have
no rule, and pictures inside a text (`data:image/…;base64,…`) are not looked into.
No pattern repeats inside a repetition, so that every text is read in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holdfast.types import JSON

_MARK = "[redacted: "
_PICTURE = re.compile(r"(data:(?:image|audio|video|font)/[\w.+-]{1,40};base64,[A-Za-z0-9+/=]++)")


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and the names of the rules that found some, in the rules' order."""

    text: str
    found: tuple[str, ...] = ()


def _always(_: re.Match[str]) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _Rule:
    """What one kind of secret looks like; the group `secret` is what leaves, where there is one."""

    name: str
    pattern: re.Pattern[str]
    accept: Callable[[re.Match[str]], bool] = _always

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


# ------------------------------------------------------------------------------------------------------- card numbers

_ISSUERS = re.compile(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|35\d{14}|6(?:011|4[4-9]\d|5\d\d|2\d\d)\d{12}"
)


def _is_card(match: re.Match[str]) -> bool:
    """Return whether digits are a card number: an issuer's beginning and length, and Luhn's check digit."""
    digits = re.sub("[ -]", "", match.group())
    if not _ISSUERS.fullmatch(digits):
        return False
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(value // 10 + value % 10 for value in doubled) % 10 == 0


# -------------------------------------------------------------------------------------------------------- assignments

_KEY = (
    r"(?i:pass(?:word|wd|phrase|code)|pwd|secret(?:[_-]?(?:access[_-]?)?key)?|api[ _-]?key|api[ _-]?secret"
    r"|(?:access|account|private|sharedaccess|encryption|signing)[ _-]?key"
    r"|(?:auth|access|refresh|bearer|api)[ _-]?token)"
)
# Other words end in "token" too; what they are given is a secret only when it looks like one.
_LOOSE_KEY = r"(?i:token|credentials?)"
# JSON inside a JSON string has its quotes escaped.
_ASSIGNED = r"(?:(?:\\?[\"'])?[ \t]{0,3}(?::=|=>|[:=])[ \t]{0,3})"
_QUOTED = r"(?P<quote>\\?[\"'`])(?P<secret>(?:[^\s\"'`\\]|\\(?![\"'`])){4,}+)(?P=quote)"


def _bare(least: int) -> str:
    """Return a value without quotes, to the end of the word: half a secret is a secret. "$NAME" is none."""
    return rf"(?P<secret>(?!\$)[^\s\"'`,;&<>(){{}}\[\]|\\]{{{least},}}+)"


# What stands for a secret, and is none.
_STAND_IN = re.compile(
    r"(?i:none|null|nil|true|false|undefined|required|optional|string|str|text|bytes|value|password|passwd|secret"
    r"|token|key|changed?|your[_-].{0,40}|x+|\*+|\.+|-+|•+|hidden|masked|empty|example|n/a|\d+[-+][a-z]+"
    r"|(?:process\.env|os\.environ|env\.).{0,40})"
)
# A name or a path of names is read by a program; only the value it stands for would be a secret.
_NAME_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_NAME = re.compile(r"[^\W\d]+")


def _is_secret(match: re.Match[str]) -> bool:
    return not (match["secret"].startswith(_MARK) or _STAND_IN.fullmatch(match["secret"]))


def _is_bare_secret(match: re.Match[str]) -> bool:
    """Return whether a value without quotes is meant literally: it is no name, no stand-in and no call."""
    value = match["secret"]
    if not _is_secret(match) or _NAME_PATH.fullmatch(value):
        return False
    tight = match["assigned"] == "="
    # `key = name` is code and `key: word` is prose; `KEY=word` is neither.
    return tight or not _NAME.fullmatch(value)


# What has letters and digits and stands behind "password" in prose: ways to hash one, ordinals, versions, products.
_NO_PASSWORD = re.compile(
    r"(?i:argon2\w*|pbkdf2\S*|scrypt\S*|bcrypt\S*|blake\d\S*|sha-?\d\S*|md[45]\S*|hmac\S*|aes-?\d\S*|rsa-?\d\S*"
    r"|ed25519|base(?:32|58|64)\S*|oauth2\S*|utf-?\d\S*|pkcs\S*|web3\S*|1password\S*|v?\d+(?:\.\d+)+\S*"
    r"|\d+(?:st|nd|rd|th)\b\S*|[a-z]+-?\d[.:]?)"
)
# "hunter2", not "step2" or "part 3": a word and one digit is a password only if it is a long one.
_LONG_WORD = re.compile(r"(?i:[a-z]{6,}\d)")


def _mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _looks_random(match: re.Match[str]) -> bool:
    return _is_secret(match) and _mixed(match["secret"])


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


# -------------------------------------------------------------------------------------------------------------- rules

_T = r"[A-Za-z0-9_-]"
# The more telling name comes first: an assignment would find most of the others too.
_RULES = (
    _Rule(
        "private key",
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]|-(?!----))*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:(?:\s|\\n)*+[A-Za-z0-9+/=]{16,}+)++)"
        ),
    ),
    _Rule("aws access key", re.compile(r"(?:AKIA|ASIA)[0-9A-Z]{16,}")),
    _Rule(
        "aws secret key",
        re.compile(
            r"(?i:aws|secret)[\w .-]{0,30}(?i:key|secret|token)[\"'=:> \t]{1,8}"
            r"(?P<secret>[A-Za-z0-9/+]{40,}=*)"
        ),
        _looks_random,
    ),
    _Rule(
        "aws secret key",
        re.compile(r"(?i:key|secret|token)[\"'=:> \t]{1,8}(?P<secret>[A-Za-z0-9/+]{40,}=*)"),
        _is_aws_secret,
    ),
    _Rule("github token", re.compile(r"gh[oprsu]_[A-Za-z0-9]{36,}|github_pat_\w{22,}", re.ASCII)),
    _Rule("gitlab token", re.compile(rf"gl(?:pat|ptt|dt|rt|cbt|ft|soat|imt|agent)-{_T}{{20,}}")),
    _Rule(
        "slack token",
        re.compile(r"(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/[A-Za-z0-9/]{20,}"),
    ),
    _Rule("stripe key", re.compile(r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}")),
    _Rule("anthropic key", re.compile(rf"sk-ant-{_T}{{20,}}")),
    _Rule("openai key", re.compile(rf"sk-(?:proj|svcacct|admin)-{_T}{{20,}}|sk-[A-Za-z0-9]{{32,}}")),
    _Rule("google key", re.compile(rf"AIza{_T}{{35,}}|ya29\.{_T}{{20,}}|GOCSPX-{_T}{{20,}}")),
    _Rule("hugging face token", re.compile(r"hf_[A-Za-z0-9]{30,}")),
    _Rule("npm token", re.compile(r"npm_[A-Za-z0-9]{36,}")),
    _Rule("pypi token", re.compile(rf"pypi-{_T}{{50,}}")),
    _Rule("sendgrid key", re.compile(rf"SG\.{_T}{{16,}}\.{_T}{{16,}}")),
    _Rule("twilio key", re.compile(r"(?:SK|AC)[0-9a-f]{32}")),
    # The first part is read to its very start, so that what is glued to it leaves as well.
    _Rule(
        "json web token",
        re.compile(rf"(?<!{_T})(?={_T}*?eyJ){_T}++\.eyJ{_T}++\.{_T}*+"),
    ),
    _Rule(
        "authorization header",
        re.compile(
            r"(?i:authorization)[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?(?i:(?:basic|bearer|token|apikey|digest)[ \t]+)?"
            r"(?P<secret>[A-Za-z0-9._~+/-]{8,}=*)"
        ),
        _is_secret,
    ),
    _Rule("bearer token", re.compile(r"(?i:bearer)[ \t]{1,3}(?P<secret>[A-Za-z0-9._~+/-]{16,}=*)"), _looks_random),
    _Rule("password in a url", re.compile(r"://[^\s:/@\"'<>]*+:(?P<secret>[^\s/@\"'<>]+)@"), _is_secret),
    _Rule("assigned secret", re.compile(rf"{_KEY}{_ASSIGNED}{_QUOTED}"), _is_secret),
    _Rule(
        "assigned secret",
        re.compile(rf"{_KEY}(?P<assigned>{_ASSIGNED}){_bare(4)}(?![(\[])"),
        _is_bare_secret,
    ),
    # A key and one word alone on their line, as in a file of settings.
    _Rule(
        "assigned secret",
        re.compile(rf"^[ \t]*[\w.-]{{0,40}}?{_KEY}[ \t]*:[ \t]*{_bare(4)}[ \t]*$", re.MULTILINE),
        _is_secret,
    ),
    _Rule(
        "assigned secret",
        re.compile(rf"{_LOOSE_KEY}{_ASSIGNED}[\"'`]?(?P<secret>[\w.~+/-]{{8,}}+=*)"),
        _looks_random,
    ),
    _Rule("assigned secret", re.compile(rf"{_KEY}[ \t]+is:?[ \t]+[\"'`]?{_bare(6)}"), _looks_random),
    _Rule(
        "assigned secret",
        re.compile(rf"(?<!-)--[\w-]{{0,20}}?(?:{_KEY}|{_LOOSE_KEY})[ \t]+{_bare(6)}"),
        _looks_random,
    ),
    _Rule(
        "assigned secret",
        re.compile(rf"(?i:pass(?:word|wd|phrase|code))[ \t]{{1,3}}[\"'`]?{_bare(6)}"),
        _is_said_password,
    ),
    _Rule(
        "card number",
        re.compile(r"(?<![\d.])(?:\d{13,16}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}|\d{4}([ -])\d{6}\2\d{4,5})(?!\d)", re.A),
        _is_card,
    ),
)  # fmt: skip
RULES = tuple(dict.fromkeys(rule.name for rule in _RULES))
_SECRET_KEY = re.compile(rf"[\w.-]*?{_KEY}")
_LOOSE = re.compile(rf"[\w.-]*?{_LOOSE_KEY}")
# As in the rule for what a text assigns to a token.
_SHORTEST_TOKEN = 8


def redact(text: str) -> Redacted:
    """Return `text` without its secrets. Doing it twice changes nothing more."""
    pieces, found = [], set[str]()
    for place, piece in enumerate(_PICTURE.split(text)):
        if place % 2:
            pieces.append(piece)
            continue
        cleaned, names = _settled(piece)
        pieces.append(cleaned)
        found |= names
    return Redacted("".join(pieces), _in_order(found))


def redact_text(text: str) -> str:
    """Return `text` without its secrets."""
    return redact(text).text


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
        if _under_secret_key(node, key, secret=secret):
            return f"{_MARK}assigned secret]"
        return clean(node) if isinstance(node, str) else node

    return walk(value, "", secret=False)


def _under_secret_key(node: JSON, key: str, *, secret: bool) -> bool:
    """Return whether a value is a secret because of its key, and no stand-in for one."""
    if isinstance(node, bool) or not isinstance(node, str | int | float):
        return False
    if not isinstance(node, str):
        return secret
    if not node or node.startswith(_MARK) or _STAND_IN.fullmatch(node):
        return False
    return secret or (_LOOSE.fullmatch(key) is not None and _mixed(node) and len(node) >= _SHORTEST_TOKEN)


def _settled(text: str) -> tuple[str, set[str]]:
    """Apply the rules until nothing changes: what leaves may lay bare what stood glued to it."""
    found = set[str]()
    changed = True
    while changed:
        changed = False
        for rule in _RULES:
            cleaned = rule.apply(text)
            if cleaned != text:
                text, changed = cleaned, True
                found.add(rule.name)
    return text, found


def _in_order(found: set[str]) -> tuple[str, ...]:
    return tuple(name for name in RULES if name in found)
