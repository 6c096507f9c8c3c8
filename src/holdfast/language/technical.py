"""Technical talk (C17): what a turn points at (P), what was done (A), what it defines (D_tech), and how much (T).

Groups and weights are the reference's. Its rules took every word in "e" for an error code, "go" and "make" for
commands, every slash for a path and every parenthesis for a call; the rules here ask for what only code has.
No pattern repeats inside a repetition, so that every text is read in linear time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_A = re.ASCII
# C17: characters per estimated token, and how many tokens of text one set of references may be spread over.
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_MEASURE = 100

# ------------------------------------------------------------------------------------------------------- addresses

_URL = re.compile(r"https?://[^\s<>\"'`]++", re.IGNORECASE)
# A rooted name, or names joined by slashes; it starts where no name is going on already.
_SLASHED = re.compile(r"(?<![\w.\-~/])(?:(?P<root>~/|\.{1,2}/|/)[\w.\-]++(?:/[\w.\-]++)*+|[\w.\-]++(?:/[\w.\-]++)++)")
# "and/or", "he/she" and "client/server" have no folder at their head; these do.
_FOLDERS = frozenset(
    """api app apps assets bin build cmd components config configs deploy dist doc docs etc examples feature fix home
    hotfix include internal lib libs node_modules opt origin packages pkg public refs release scripts site-packages
    src static test tests tmp tools upstream usr var vendor""".split()
)
_LONGEST_EXTENSION = 5
_VERSION = re.compile(r"v\d+", _A)


def _is_path(root: str | None, segments: list[str]) -> bool:
    """Return whether names joined by slashes are a path: rooted, in a known folder, or with a file in it."""
    if len(segments) < 2 or all(segment.replace(".", "").isdigit() for segment in segments):  # 24/7, 3/4/2026, 4.5/5
        return False
    return root is not None or segments[0].lower() in _FOLDERS or any(map(_is_file, segments))


def _is_file(segment: str) -> bool:
    stem, _, extension = segment.rstrip(".").rpartition(".")
    if len(stem) > 1 and extension.islower() and extension[0].isalpha() and len(extension) <= _LONGEST_EXTENSION:
        return True
    hidden = segment.startswith(".") and segment[1:2].isalpha() and "." not in segment[1:]
    return hidden or "_" in segment or _VERSION.fullmatch(segment) is not None


def _addresses(text: str) -> tuple[int, int]:
    """Return how many paths there are, and how many addresses: URLs and whatever starts or continues at a slash."""
    paths = addresses = 0
    for url in _URL.finditer(text):
        host_and_more = url.group().split("://", 1)[1].rstrip("/")
        paths += "/" in host_and_more
        addresses += 1
    for found in _SLASHED.finditer(_URL.sub(" ", text)):
        root = found["root"]
        segments = found.group().removeprefix(root or "").split("/")
        path = _is_path(root, segments)
        paths += path
        # "/tmp" is an address and no path; "/s" is a remark.
        addresses += path or (root is not None and len(segments[0]) > 1 and segments[0][0].isalpha())
    return paths, addresses


# ------------------------------------------------------------------------------------------- calls, errors, revisions

# A call has no space before its parenthesis; "colleague(s)" is no call.
_CALL = re.compile(r"(?<![A-Za-z0-9_])(?:func (?=\()|[A-Za-z_]\w*+)\((?!e?s\))", _A)
# "class" is a lesson too.
_CLASS = re.compile(r"\bclass\s+[A-Z]\w*+\s*(?:[:({<]|extends\b|implements\b)", _A)
# The usual errno names: in capitals "EUROPE" and "EVERYONE" look just like them.
_ERRNO = "|".join(
    """E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAGAIN EALREADY EBADF EBUSY ECANCELED ECHILD ECONNABORTED ECONNREFUSED
    ECONNRESET EDEADLK EDOM EEXIST EFAULT EFBIG EHOSTUNREACH EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR ELOOP EMFILE
    EMLINK EMSGSIZE ENAMETOOLONG ENETDOWN ENETUNREACH ENFILE ENOBUFS ENODEV ENOENT ENOEXEC ENOLCK ENOMEM ENOSPC ENOSYS
    ENOTCONN ENOTDIR ENOTEMPTY ENOTFOUND ENOTSOCK ENOTSUP ENOTTY ENXIO EOPNOTSUPP EOVERFLOW EPERM EPIPE EPROTO ERANGE
    EROFS ESPIPE ESRCH ETIMEDOUT ETXTBSY EWOULDBLOCK EXDEV""".split()
)
_ERROR_CODE = re.compile(
    rf"""
    \bERR_\w+ | \bE_[A-Z]\w* | \bE\d{{3,}}\b | \b(?:{_ERRNO})\b
    | \b(?i:http)(?:/\d(?:\.\d)?)?\s?[45]\d\d\b
    | \b(?i:error|status|code)(?:\s(?i:code))?[\s:=(\#]{{1,3}}[45]\d\d\b
    | \b[45]\d\d\s(?i:error|errors|status|response|responses|not\sfound|forbidden|unauthori[sz]ed|bad\sgateway)\b
    """,
    _A | re.VERBOSE,
)
# A run of digits is a number and "defaced" is a word: a hash has both.
_HASH = r"(?<![A-Za-z0-9_])(?=[0-9a-f]{0,39}\d)(?=[0-9a-f]{0,39}[a-f])[0-9a-f]{7,40}(?![A-Za-z0-9_])"
_ADDRESS_OF_MEMORY = r"\b0x[0-9a-fA-F]+"
_HEX = re.compile(rf"{_HASH}|{_ADDRESS_OF_MEMORY}", _A)
_REVISION = re.compile(rf"{_HASH}|{_ADDRESS_OF_MEMORY}|\bHEAD\b|\borigin/[\w.\-/]+|\b(?:main|master)\b", _A)

# ---------------------------------------------------------------------------------------------- commands and traces

# What follows a verb of English and not a subcommand: "go build a shed", "make all of them".
_PROSE_OBJECT = (
    r"(?!\s(?:an?|the|my|your|his|her|its|our|their|some|it|them|me|us|him|that|this|these|of|for|to|up)\b)"
)
_COMMAND = re.compile(
    rf"""
    ^[^\S\n]*\$[^\S\n]+[A-Za-z./~_]                          # a prompt; "$50" is money
    | ^[^\S\n]*(?:make|yarn)[^\S\n]*$
    | \b(?:git|npm|pnpm|docker|kubectl)\b
    | \bgo\ (?:build|test|vet|mod|fmt|generate|install|work)\b{_PROSE_OBJECT}
    | \bgo\ (?:run|get)\ (?:\.(?!\S)|[^\s./]*[./]\w)
    | \bmake\ (?:all|build|tests?|check|clean|install|lint|docs|dist|deploy|release|format|fmt)\b{_PROSE_OBJECT}
    | \bmake\ -\w
    | \byarn\ (?:add|install|build|test|run|dev|start|remove|upgrade)\b{_PROSE_OBJECT}
    """,
    _A | re.MULTILINE | re.VERBOSE,
)
# "don't panic: …", "with one exception: …" and "at 5:30" are prose.
_TRACE = re.compile(
    r"^[^\S\n]*(?:panic|exception)\s?:|\b[A-Za-z_]\w*(?-i:Exception|Error):|\bgoroutine\s\d|\bstack\s?trace\b"
    r"|\btraceback\b|\bat\s(?=[^\s:]{0,199}[A-Za-z_])[^\s:]{1,200}:\d",
    _A | re.IGNORECASE | re.MULTILINE,
)
_FENCE = "```"

# ------------------------------------------------------------------------------------------- actions and structure


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", _A | re.IGNORECASE)


_ACTIONS = (
    (
        0.5,
        _words(
            r"switched\sto|migrated\sto|replaced\swith|decided\sto|standardi[sz](?:ed?|ing)\son"
            r"|use\b[^\n]{0,80}?\binstead"
        ),
    ),
    (0.4, _words("fixed|resolved|patched|corrected|unblocked")),
    (0.3, _words(r"deployed|merged|released|shipped|rolled\sout")),
    (0.4, _words(r"set\s\S{1,80}\sto|configured|configuration\schanged|env(?:ironment)?\svar(?:iable)?s?")),
)
# Definitions and calls weigh .4 and are counted elsewhere.
_STRUCTURES = (
    (0.3, re.compile(r"\b(?:struct|interface|type|enum)\b|\bmap\[", _A)),
    (0.3, re.compile(r"\b(?:import|require|dependency)\b|\bgo\.mod\b|\bpackage\.json\b|\bdepends\son\b", _A)),
    (0.2, re.compile(r"\bfunc Test|\bdef test_|\b(?:describe|it|test)\(", _A)),
    (0.2, re.compile(r"^[^\S\n]*//|/\*\*|///", _A | re.MULTILINE)),
)


@dataclass(frozen=True, slots=True)
class Technical:
    """What a text says about technical work; `marks` is Σ s_i of T, before its normaliser."""

    marks: float = 0.0
    specificity: float = 0.0
    action: float = 0.0
    structure: float = 0.0


def technical(text: str) -> Technical:
    """Return the technical side of `text`."""
    paths, addresses = _addresses(text)
    calls = _count(_CALL, text)
    defines = calls > 0 or _CLASS.search(text) is not None
    marks = (
        (0.5, text.count(_FENCE) > 1),
        (0.4, paths > 0),
        (0.4, defines),
        (0.4, _COMMAND.search(text) is not None),
        (0.3, addresses > 0),
        (0.5, _TRACE.search(text) is not None),
        (0.3, _HEX.search(text) is not None),
    )
    references = (
        (0.4, paths),
        (0.3, calls),
        (0.5, _count(_ERROR_CODE, text)),
        (0.4, _count(_REVISION, text)),
        (0.3, addresses),
    )
    measures = max(tokens(text) / _TOKENS_PER_MEASURE, 1.0)
    structures = ((0.4, defines), *((weight, pattern.search(text) is not None) for weight, pattern in _STRUCTURES))
    return Technical(
        marks=_sum(marks),
        specificity=min(_sum(references) / measures, 1.0),
        action=min(_sum([(weight, pattern.search(text) is not None) for weight, pattern in _ACTIONS]), 1.0),
        structure=min(_sum(structures), 1.0),
    )


def tokens(text: str) -> int:
    """Return L, the gate's own estimate of tokens (C3): never to be used for a budget."""
    return max(len(text) // _CHARACTERS_PER_TOKEN, 1)


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _sum(weighted: tuple[tuple[float, int], ...] | list[tuple[float, int]]) -> float:
    total = 0.0
    for weight, times in weighted:
        total = total + weight * times
    return total
