"""Markdown → blocks, for core documents and for knowledge alike. The parser is CommonMark plus tables.

`partition` gives the nodes of a core document (C14), each hard, soft or variant. A node is a run of whole source
lines, so what reaches a prompt is what the author wrote: fences, markers and nested items included. Every non-blank
line belongs to exactly one node, but for thematic breaks and link reference definitions at the top level: they belong
to none. `read_markdown` gives the same blocks as every other format has, with a place for each of their lines.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from holdfast.documents.pieces import LINE, Block, LineSpan, Paragraph, Render, strip_span
from holdfast.errors import InputError, quote_value
from holdfast.messages.checks import check_name, decode_bytes
from holdfast.settings import AuthoredSettings
from holdfast.text.deontic import deontic
from holdfast.text.words import regex
from holdfast.values import dataclass

NodeKind = Literal["front_matter", "item", "quote", "paragraph", "heading", "code", "html", "table"]
Tier = Literal["hard", "soft", "variant"]

_DEFAULTS = AuthoredSettings()
# A nested list takes two levels; the preset's 20 would lose the words (never the lines) of the eleventh.
_PARSER = MarkdownIt("commonmark", {"maxNesting": 40}).enable("table")
_KINDS: dict[str, NodeKind] = {
    "list_item_open": "item",
    "blockquote_open": "quote",
    "paragraph_open": "paragraph",
    "heading_open": "heading",
    "fence": "code",
    "code_block": "code",
    "html_block": "html",
    "table_open": "table",
}
_TIERS: dict[NodeKind, Tier] = {"front_matter": "hard", "item": "hard", "quote": "soft"}
_LISTS = ("bullet_list_open", "ordered_list_open")
_LITERAL = ("fence", "code_block", "html_block")

_BLANK = " \t\r\n"
# Stands for a code span when sentences are judged: `run` names a command, it does not give one.
_CODE_WORD = "x"
# A line break, or a tag like `<branch>`: that is a blank in the units of core documents, and nothing in knowledge.
_BREAK = regex(r"<br(?P<more>\w*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Node:
    """One block of a document.

    `text` holds its words, for search and tokens, and may be empty; `markdown` its source lines, for the prompt.
    `position` is the byte at which `markdown` begins. `headings` are the ordinals of the headings above the node,
    outermost first.
    """

    kind: NodeKind
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
    nodes: tuple[Node, ...]
    hop_targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Run:
    """The whole lines of one block, first and past the last, and the parser's tokens for it."""

    kind: NodeKind
    first: int
    end: int
    tokens: Sequence[Token] = ()

    @property
    def level(self) -> int:
        """Return a heading's rank."""
        return int(self.tokens[0].tag[1:]) if self.kind == "heading" else 0

    @property
    def tier(self) -> Tier:
        """Return how binding a block is: a paragraph that gives a rule is soft (C14)."""
        binding = self.kind == "paragraph" and deontic(_prose(self.tokens))
        return "soft" if binding else _TIERS.get(self.kind, "variant")


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A text as lines, the runs of them that are blocks, and what its front matter and its references say."""

    lines: Sequence[str]
    runs: Sequence[_Run]
    targets: tuple[str, ...]
    references: Mapping[str, Any]

    def source(self, run: _Run) -> str:
        """Return the lines of a block as they were written."""
        return "".join(self.lines[run.first : run.end]).rstrip("\r\n")

    def words(self, run: _Run) -> str:
        """Return the words of a block."""
        if run.kind == "front_matter":
            return "\n".join(line.rstrip("\r\n") for line in self.lines[1 : run.end - 1])
        return _text(run.tokens)


def _parse(name: str, text: str) -> _Parsed:
    lines = LINE.findall(text)
    front = _front_matter_end(lines)
    targets = _hop_targets(name, [line.rstrip("\r\n") for line in lines[1 : front - 1]]) if front else ()
    environment: dict[str, Any] = {}
    tokens = _PARSER.parse("".join(lines[front:]), environment)
    runs = [_Run("front_matter", 0, front)] if front else []
    return _Parsed(lines, [*runs, *_runs(tokens, lines, front)], targets, environment.get("references", {}))


def _runs(tokens: Sequence[Token], lines: Sequence[str], front: int) -> Iterator[_Run]:
    """Yield the blocks behind the front matter; thematic breaks are none."""
    for group in _groups(tokens):
        head = group[0]
        if head.type in _KINDS and head.map is not None:
            start, end = (front + line for line in head.map)
            while not lines[end - 1].strip(_BLANK):
                end -= 1
            yield _Run(_KINDS[head.type], start, end, group)


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


# ----------------------------------------------------------------------------------------------------- core documents


def partition(name: str, raw: bytes, *, max_bytes: int = _DEFAULTS.max_bytes) -> Partition:
    """Return the document's nodes in source order, each with its tier; one without content has none.

    Raises:
        InputError: it is too large, not UTF-8, holds a NUL, or its hop targets do not end.
    """
    check_name("document name", name)
    if len(raw) > max_bytes:
        raise InputError(
            f"{quote_value(name)} has {len(raw):,} bytes, more than authored.max_bytes = {max_bytes:,}; "
            "split it, or raise the limit"
        )
    if b"\x00" in raw:
        raise InputError(
            f"{quote_value(name)} holds a NUL byte at {raw.index(0)}; remove it, or save the file as UTF-8"
        )
    offset = len(BOM_UTF8) if raw.startswith(BOM_UTF8) else 0
    parsed = _parse(name, decode_bytes(name, raw, offset))
    return Partition(name, tuple(_nodes(parsed, offset)), parsed.targets)


def _nodes(parsed: _Parsed, offset: int) -> Iterator[Node]:
    """Yield the nodes of a text, with their source, place and headings."""
    starts = _starts(parsed.lines, offset, lambda line: len(line.encode("utf-8")))
    above: list[tuple[int, int]] = []  # (level, ordinal) of the headings in force
    for ordinal, run in enumerate(parsed.runs):
        if run.kind == "heading":
            above = [heading for heading in above if heading[0] < run.level]
        headings = tuple(number for _, number in above)
        place = (starts[run.first], ordinal, headings)
        yield Node(run.kind, run.tier, parsed.words(run), parsed.source(run), *place)
        if run.kind == "heading":
            above.append((run.level, ordinal))


def _starts(lines: Iterable[str], offset: int, size: Callable[[str], int]) -> list[int]:
    """Return where each line begins, and where the last one ends."""
    starts = [offset]
    for line in lines:
        starts.append(starts[-1] + size(line))
    return starts


# ---------------------------------------------------------------------------------------------------------- knowledge

_MARKER = regex(r"\s*(?:(?P<number>\d{1,9})(?P<stop>[.)])|(?P<bullet>[-*+]))")
_BLANK_LINE = regex(r"\n[ \t]*\r?\n|\r[ \t]*\r")
# The parser looks for the end of a link from every bracket on: its time grows with the square of those left open.
_MOST_OPEN_BRACKETS = 5_000
# What a browser never shows.
_HIDDEN = regex(r"\s*<(?:!--|script|style|template|\?|![A-Z])", re.IGNORECASE)


def read_markdown(name: str, text: str) -> tuple[list[Block], tuple[str, ...], Render]:
    """Return the blocks of a Markdown text, the hop targets of its front matter, and how its lines are rendered.

    Raises:
        InputError: it cannot be parsed in reasonable time, or its hop targets do not end.
    """
    for run in _BLANK_LINE.split(text):
        if run.count("[") - run.count("]") > _MOST_OPEN_BRACKETS:
            raise InputError(
                f"{quote_value(name)} opens more than {_MOST_OPEN_BRACKETS:,} brackets in one paragraph and does "
                "not close "
                "them; if it is no Markdown, name it .txt"
            )
    parsed = _parse(name, text)
    # A block is looked at more than once: as a fragment, as a lead-in, as a piece.
    rendered = lru_cache(maxsize=256)(lambda content, cuts: _rendered(content, cuts, parsed.references))
    return list(_blocks(text, parsed)), parsed.targets, lambda content, cuts: rendered(content, tuple(cuts))


def _blocks(text: str, parsed: _Parsed) -> Iterator[Block]:
    starts = _starts(parsed.lines, 0, len)
    group, marker = 0, ""
    for run in parsed.runs:
        before, marker = marker, _marker(parsed, run)
        group += marker != before
        ends = (len(line.rstrip("\r\n")) for line in parsed.lines[run.first : run.end])
        places = [(start, start + end) for start, end in zip(starts[run.first : run.end], ends, strict=True)]
        kind: Any = {"front_matter": "record", "html": "paragraph"}.get(run.kind, run.kind)
        title = parsed.words(run) if run.kind == "heading" else ""
        if not _is_hidden(parsed, run):
            leaves = tuple(_leaves(text, places, run))
            yield Block(kind, leaves, run.level, title, group, marker in (".", ")"), 2 * (run.kind == "table"))


def _is_hidden(parsed: _Parsed, run: _Run) -> bool:
    """Return whether a block says nothing to a reader: a comment, a script, or front matter without a word."""
    if run.kind == "html":
        return _HIDDEN.match(parsed.source(run)) is not None
    return run.kind == "front_matter" and not parsed.words(run).strip()


def _marker(parsed: _Parsed, run: _Run) -> str:
    """Return what marks an item of a list: items in a row with the same mark are one list."""
    found = _MARKER.match(parsed.lines[run.first]) if run.kind == "item" else None
    return (found["bullet"] or found["stop"]) if found else ""


def _leaves(text: str, places: Sequence[LineSpan], run: _Run) -> Iterator[Paragraph]:
    """Yield the leaves of a block, whatever is nested in it; a nested table is literal."""
    if run.kind == "front_matter":
        yield Paragraph(tuple(places[1:-1]), literal=True)
    top = (run.tokens[0].map or (0, 0))[0] if run.tokens else 0
    tables = 0
    for token in run.tokens:
        tables += {"table_open": 1, "table_close": -1}.get(token.type, 0)
        if token.map is None:
            continue
        first, end = token.map[0] - top, token.map[1] - top
        if token.type in ("table_open", "html_block"):
            lines = tuple(strip_span(text, *line) for line in places[first:end])
            yield Paragraph(lines, literal=token.type == "table_open")
        elif token.type == "inline" and not tables:
            yield Paragraph(tuple(_found(text, places[first:], token.content)))
        elif token.type in ("fence", "code_block"):
            below = places[first + (token.type == "fence") :]
            yield Paragraph(tuple(_found(text, below, token.content.removesuffix("\n"), blanks=False)), literal=True)


def _found(text: str, places: Sequence[LineSpan], content: str, *, blanks: bool = True) -> Iterator[LineSpan]:
    """Yield where the lines of `content` stand in the source: behind the marks of lists and quotes around them."""
    for (start, end), line in zip(places, content.split("\n"), strict=False):
        words = line.strip() if blanks else line
        at = text.rfind(words, start, end)
        # Tabs may have been spread: then the whole line stands.
        yield (
            (at, at + len(words)) if at >= 0 and words else strip_span(text, start, end if words.strip() else start)
        )


# ------------------------------------------------------------------------------------------------------------ words

# A noncharacter, which no text holds on purpose; between two of them stands the number of a cut.
_MARK = "\ufdd0"
_CUT = regex(f" ?{_MARK}(\\d+){_MARK} ?")


def _text(tokens: Iterable[Token]) -> str:
    """Return the words of a block: the leaves in order, a space between them, code as it is written."""
    leaves = []
    for token in tokens:
        if token.type in _LITERAL:
            leaves.append(token.content.strip("\n"))
        elif token.type == "inline":
            leaves.append(" ".join("".join(words for _, words in _inline(token.children or ())).split()))
    return " ".join(leaf for leaf in leaves if leaf)


def _prose(tokens: Iterable[Token]) -> str:
    """Return the sentences of a paragraph, without what its code spans say."""
    inline = (one for token in tokens if token.type == "inline" for one in _inline(token.children or ()))
    return "".join(_CODE_WORD if kind == "code" else words for kind, words in inline)


def _rendered(content: str, cuts: Sequence[int], references: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Render inline Markdown once, with a mark at each cut: a mark that comes out at the top level cuts no markup."""
    if _MARK in content:
        cuts = ()
    marked, last = [], 0
    for number, cut in enumerate(cuts):
        marked += [content[last:cut].rstrip(), f" {_MARK}{number}{_MARK} "]
        last = cut
    marked.append(content[last:])
    inline = _PARSER.parseInline("".join(marked), {"references": dict(references)})[0]
    said = ((kind, words) for kind, words in _inline(inline.children or ()) if kind != "tag")
    parts = _CUT.split("".join(words if kind == "top" else _CUT.sub(" ", words) for kind, words in said))
    places = [0, *(cuts[int(number)] for number in parts[1::2])]
    return [(place, " ".join(part.split())) for place, part in zip(places, parts[::2], strict=True)]


def _inline(tokens: Iterable[Token], *, inside: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the words of inline tokens, each as top, nested, code or tag: alternative texts count, tags do not."""
    for token in tokens:
        if token.type == "image":
            yield from _inline(token.children or (), inside=True)
        elif token.type == "code_inline":
            yield "code", token.content
        elif token.type == "text":
            yield "nested" if inside or token.level else "top", token.content
        elif token.type == "softbreak":
            yield "nested", " "
        elif token.type == "hardbreak":
            yield "nested", "\n"
        elif token.type == "html_inline" and (tag := _BREAK.match(token.content)):
            yield "tag" if tag["more"] else "nested", "\n"


# ----------------------------------------------------------------------------------------------------- front matter

_HOP_KEY = regex(r"hop_targets[ \t]*:(?P<value>.*)$")
_HOP_ITEM = regex(r"[ \t]*-(?P<value>[ \t].*)?$")
_IGNORED = regex(r"[ \t]*(?:#.*)?$")
# In YAML a comment needs a blank before it; the "#" inside `notes.md#000004` is part of the target.
_COMMENT = regex(r"(?:^|[ \t]+)#.*$")


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
            raise InputError(
                f"hop_targets of {quote_value(name)} is {quote_value(value)} without an end; close it with ]"
            )
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
