"""Authored documents (C14): Markdown → ordered nodes, each hard, soft or variant.

The parser is CommonMark plus tables. A node is a run of whole source lines, so what reaches a prompt is what the
author wrote: fences, markers and nested items included. Every non-blank line belongs to exactly one node, but for
thematic breaks and link reference definitions at the top level, which belong to none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from holdfast.errors import InputError, shown
from holdfast.inputs.checks import check_name
from holdfast.language.deontic import deontic
from holdfast.settings import AuthoredSettings

Kind = Literal["front_matter", "item", "quote", "paragraph", "heading", "code", "html", "table"]
Tier = Literal["hard", "soft", "variant"]

_DEFAULTS = AuthoredSettings()
# A nested list takes two levels; the preset's 20 would lose the words (never the lines) of the eleventh.
_PARSER = MarkdownIt("commonmark", {"maxNesting": 40}).enable("table")
_KINDS: dict[str, Kind] = {
    "list_item_open": "item",
    "blockquote_open": "quote",
    "paragraph_open": "paragraph",
    "heading_open": "heading",
    "fence": "code",
    "code_block": "code",
    "html_block": "html",
    "table_open": "table",
}
_TIERS: dict[Kind, Tier] = {"front_matter": "hard", "item": "hard", "quote": "soft"}
_LISTS = ("bullet_list_open", "ordered_list_open")
_LITERAL = ("fence", "code_block", "html_block")

_BOM = b"\xef\xbb\xbf"
# CommonMark's line ends. A form feed or U+2028 is no line end, so str.splitlines would count differently.
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_BLANK = " \t\r\n"
# Stands for a code span when sentences are judged: `run` names a command, it does not give one.
_CODE_WORD = "x"


@dataclass(frozen=True, slots=True)
class Node:
    """One block of a document.

    `text` holds its words, for search and tokens, and may be empty; `markdown` its source lines, for the prompt.
    `position` is the byte at which `markdown` begins. `headings` are the ordinals of the headings above the node,
    outermost first.
    """

    kind: Kind
    tier: Tier
    text: str
    markdown: str
    position: int
    ordinal: int
    headings: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Partition:
    """A document in ordered nodes. `hop_targets` are links of every variant node (C12)."""

    name: str
    sha256: str
    nodes: tuple[Node, ...]
    hop_targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    """A node before it knows its place: its lines, first and past the last."""

    kind: Kind
    tier: Tier
    text: str
    first: int
    end: int
    level: int = 0


def partition(name: str, raw: bytes, *, max_bytes: int = _DEFAULTS.max_bytes) -> Partition:
    """Return the document's nodes in source order, each with its tier; one without content has none.

    Raises:
        InputError: it is too large, not UTF-8, holds a NUL, or its hop targets do not end.
    """
    check_name("document name", name)
    lines = _LINE.findall(_read(name, raw, max_bytes))
    front = _front_matter_end(lines)
    blocks = list(_blocks(lines[front:], front))
    targets: tuple[str, ...] = ()
    if front:
        inner = [line.rstrip("\r\n") for line in lines[1 : front - 1]]
        blocks.insert(0, _Block("front_matter", "hard", "\n".join(inner), 0, front))
        targets = _hop_targets(name, inner)
    offset = len(_BOM) if raw.startswith(_BOM) else 0
    return Partition(name, hashlib.sha256(raw).hexdigest(), tuple(_placed(blocks, lines, offset)), targets)


def _read(name: str, raw: bytes, max_bytes: int) -> str:
    """Return the text of a document without its byte order mark."""
    if len(raw) > max_bytes:
        raise InputError(
            f"{shown(name)} has {len(raw):,} bytes, more than authored.max_bytes = {max_bytes:,}; "
            "split it, or raise the limit"
        )
    if b"\x00" in raw:
        raise InputError(f"{shown(name)} holds a NUL byte at {raw.index(0)}; remove it, or save the file as UTF-8")
    try:
        return raw.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + len(raw) - len(error.object)
        raise InputError(
            f"{shown(name)} is not UTF-8: byte 0x{raw[at]:02x} at {at}; save the file as UTF-8"
        ) from error


def _placed(blocks: Sequence[_Block], lines: Sequence[str], offset: int) -> Iterator[Node]:
    """Yield the nodes of blocks, with their source, place and headings."""
    starts = [offset]
    for line in lines:
        starts.append(starts[-1] + len(line.encode("utf-8")))
    above: list[tuple[int, int]] = []  # (level, ordinal) of the headings in force
    for ordinal, block in enumerate(blocks):
        if block.kind == "heading":
            above = [heading for heading in above if heading[0] < block.level]
        source = "".join(lines[block.first : block.end]).rstrip("\r\n")
        headings = tuple(number for _, number in above)
        yield Node(block.kind, block.tier, block.text, source, starts[block.first], ordinal, headings)
        if block.kind == "heading":
            above.append((block.level, ordinal))


# ----------------------------------------------------------------------------------------------------------- blocks


def _blocks(lines: Sequence[str], first: int) -> Iterator[_Block]:
    """Yield the blocks of `lines`, which begin at line `first` of the document."""
    for group in _groups(_PARSER.parse("".join(lines))):
        head = group[0]
        if head.type not in _KINDS or head.map is None:
            continue  # thematic breaks
        start, end = head.map
        while not lines[end - 1].strip(_BLANK):
            end -= 1
        kind = _KINDS[head.type]
        tier = _TIERS.get(kind, "variant")
        if kind == "paragraph" and deontic(_prose(group)):
            tier = "soft"
        level = int(head.tag[1:]) if kind == "heading" else 0
        yield _Block(kind, tier, _text(group), first + start, first + end, level)


def _groups(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the tokens of each top-level block; a list is given item by item, each with all that is nested in it."""
    start, floor = 0, 0
    for i, token in enumerate(tokens):
        if token.type in _LISTS and token.level == 0:
            start, floor = i + 1, 1
        elif token.nesting == -1 and token.level == 0 and floor == 1:
            start, floor = i + 1, 0
        elif token.level == floor and token.nesting <= 0:
            yield tokens[start : i + 1]
            start = i + 1


# ------------------------------------------------------------------------------------------------------------ words


def _text(tokens: Iterable[Token]) -> str:
    """Return the words of a block: the leaves in order, a space between them, code as it is written."""
    leaves = []
    for token in tokens:
        if token.type in _LITERAL:
            leaves.append(token.content.strip("\n"))
        elif token.type == "inline":
            leaves.append(" ".join("".join(_inline(token.children or (), None)).split()))
    return " ".join(leaf for leaf in leaves if leaf)


def _prose(tokens: Iterable[Token]) -> str:
    """Return the sentences of a paragraph, without what its code spans say."""
    return "".join(
        piece for token in tokens if token.type == "inline" for piece in _inline(token.children or (), _CODE_WORD)
    )


def _inline(tokens: Iterable[Token], code: str | None) -> Iterator[str]:
    """Yield the text of inline tokens: alternative texts count, tags and comments do not."""
    for token in tokens:
        if token.type == "image":
            yield from _inline(token.children or (), code)
        elif token.type == "code_inline":
            yield token.content if code is None else code
        elif token.type == "softbreak":
            yield " "
        elif token.type == "hardbreak" or (token.type == "html_inline" and token.content.lower().startswith("<br")):
            yield "\n"
        elif token.type == "text":
            yield token.content


# ----------------------------------------------------------------------------------------------------- front matter

_HOP_KEY = re.compile(r"hop_targets[ \t]*:(?P<value>.*)$")
_HOP_ITEM = re.compile(r"[ \t]*-(?P<value>[ \t].*)?$")
_IGNORED = re.compile(r"[ \t]*(?:#.*)?$")
# In YAML a comment needs a blank before it; the "#" inside `notes.md#000004` is part of the target.
_COMMENT = re.compile(r"(?:^|[ \t]+)#.*$")


def _front_matter_end(lines: Sequence[str]) -> int:
    """Return how many lines the front matter takes, its two fences included; 0 without any.

    A `---` before a blank line is a thematic break, as in Pandoc: else a document between two of them would be
    one hard node.
    """
    if len(lines) < 2 or lines[0].rstrip("\r\n") != "---" or not lines[1].strip(_BLANK):
        return 0
    for number, line in enumerate(lines[1:], start=2):
        if line.rstrip(_BLANK) in ("---", "..."):
            return number
    return 0


def _hop_targets(name: str, lines: Sequence[str]) -> tuple[str, ...]:
    """Return the targets that `hop_targets:` lists: a scalar, [a, b], or `- x` lines; each once, in order."""
    for number, line in enumerate(lines):
        if found := _HOP_KEY.match(line):
            targets = _listed(name, found["value"].strip(), lines[number + 1 :])
            return tuple(dict.fromkeys(target for target in targets if target))
    return ()


def _listed(name: str, value: str, below: Sequence[str]) -> Iterable[str]:
    if value.startswith("["):
        uncommented = [_COMMENT.sub("", line) for line in (value[1:], *below)]
        flow, closed, _ = " ".join(uncommented).partition("]")
        if not closed:
            raise InputError(f"hop_targets of {shown(name)} is {shown(value)} without an end; close it with ]")
        return [_unquoted(part) for part in flow.split(",")]
    if value and not value.startswith("#"):
        return [_unquoted(value)]
    return _dashed(below)


def _dashed(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if item := _HOP_ITEM.match(line):
            yield _unquoted(item["value"] or "")
        elif not _IGNORED.match(line):
            return


def _unquoted(value: str) -> str:
    """Return a YAML scalar without its quotes, or without the comment behind it."""
    value = value.strip()
    if value[:1] in ("'", '"') and value.find(value[0], 1) > 0:
        return value[1 : value.index(value[0], 1)]
    return _COMMENT.sub("", value).strip()
