"""Markdown → blocks. The partition of authored documents (C14) finds the blocks; their lines are found here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from holdfast.errors import InputError, shown
from holdfast.inputs.authored import Node, partition
from holdfast.inputs.blocks import Block, Leaf, Render, lines_of, stripped
from holdfast.types import SourceLimits

# As deep as the partition reads; see there.
_PARSER = MarkdownIt("commonmark", {"maxNesting": 40}).enable("table")
_MARKER = re.compile(r"\s*(?:(?P<number>\d{1,9})(?P<stop>[.)])|(?P<bullet>[-*+]))")
_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n|\r[ \t]*\r")
# The parser looks for the end of a link from every bracket on: its time grows with the square of those left open.
_MOST_OPEN_BRACKETS = 5_000
# What a browser never shows.
_HIDDEN = re.compile(r"\s*<(?:!--|script|style|template|\?|![A-Z])", re.IGNORECASE)
# A noncharacter, which no text holds on purpose; between two of them stands the number of a cut.
_MARK = "\ufdd0"
_CUT = re.compile(f" ?{_MARK}(\\d+){_MARK} ?")
_BREAK = re.compile(r"<br\b", re.IGNORECASE)


def read_markdown(name: str, text: str, limits: SourceLimits) -> tuple[list[Block], tuple[str, ...], Render]:
    """Return the blocks of a Markdown text, the hop targets of its front matter, and how its lines are rendered.

    Raises:
        InputError: it holds no content, or its hop targets do not end.
    """
    for run in _BLANK_LINE.split(text):
        if run.count("[") - run.count("]") > _MOST_OPEN_BRACKETS:
            raise InputError(
                f"{shown(name)} opens more than {_MOST_OPEN_BRACKETS:,} brackets in one paragraph and does not close "
                "them; if it is no Markdown, name it .txt"
            )
    # Decoding may lengthen a text (from UTF-16); its size was judged as it came.
    document = partition(name, text.encode("utf-8"), max_bytes=max(limits.max_bytes, 4 * len(text)))
    environment: dict[str, Any] = {}
    front = next((len(node.markdown) for node in document.nodes[:1] if node.kind == "front_matter"), 0)
    _PARSER.parse(text[front:], environment)
    references = environment.get("references", {})
    blocks = list(_blocks(text, document.nodes, references))
    # A block is looked at more than once: as a fragment, as a lead-in, as a piece.
    rendered = lru_cache(maxsize=256)(lambda content, cuts: _rendered(content, cuts, references))
    return blocks, document.hop_targets, lambda content, cuts: rendered(content, tuple(cuts))


def _blocks(text: str, nodes: Sequence[Node], references: Mapping[str, Any]) -> Iterator[Block]:
    raw = text.encode("utf-8")
    at = place = group = 0
    marker = ""
    for node in nodes:
        at, place = node.position, place + len(raw[at : node.position].decode("utf-8"))
        before, marker = marker, _marker(node)
        group += marker != before
        block = _block(text, place, node, references)
        if block is not None:
            yield Block(block.kind, block.leaves, block.level, block.title, group, block.ordered, block.header)


def _marker(node: Node) -> str:
    """Return what marks an item of a list: items in a row with the same mark are one list."""
    found = _MARKER.match(node.markdown) if node.kind == "item" else None
    return (found["bullet"] or found["stop"]) if found else ""


def _block(text: str, place: int, node: Node, references: Mapping[str, Any]) -> Block | None:
    lines = [(place + start, place + end) for start, end in lines_of(node.markdown)]
    if node.kind == "front_matter":
        return Block("record", (Leaf(tuple(lines[1:-1]), literal=True),)) if node.text.strip() else None
    if node.kind == "table":
        return Block("table", (Leaf(tuple(stripped(text, *line) for line in lines), literal=True),), header=2)
    if node.kind == "html":
        hidden = _HIDDEN.match(node.markdown) is not None
        return None if hidden else Block("paragraph", (Leaf(tuple(stripped(text, *line) for line in lines)),))
    tokens = _PARSER.parse(node.markdown, {"references": dict(references)})
    leaves = tuple(_leaves(text, lines, tokens))
    if node.kind == "heading":
        level = next((int(token.tag[1:]) for token in tokens if token.type == "heading_open"), 1)
        return Block("heading", leaves, level=level, title=node.text)
    return Block(node.kind, leaves, ordered=_marker(node) in (".", ")") if node.kind == "item" else False)


def _leaves(text: str, lines: Sequence[tuple[int, int]], tokens: Sequence[Token]) -> Iterator[Leaf]:
    """Yield the leaves of a block, whatever is nested in it; a nested table is literal."""
    tables = 0
    for token in tokens:
        tables += {"table_open": 1, "table_close": -1}.get(token.type, 0)
        if token.map is None:
            continue
        first, end = token.map
        if token.type == "table_open":
            yield Leaf(tuple(stripped(text, *line) for line in lines[first:end]), literal=True)
        elif token.type == "inline" and not tables:
            yield Leaf(tuple(_found(text, lines[first:], token.content)))
        elif token.type in ("fence", "code_block"):
            below = lines[first + (token.type == "fence") :]
            yield Leaf(tuple(_found(text, below, token.content.removesuffix("\n"), blanks=False)), literal=True)
        elif token.type == "html_block":
            yield Leaf(tuple(stripped(text, *line) for line in lines[first:end]))


def _found(
    text: str, lines: Sequence[tuple[int, int]], content: str, *, blanks: bool = True
) -> Iterator[tuple[int, int]]:
    """Yield where the lines of `content` stand in the source: behind the marks of lists and quotes around them."""
    for (start, end), line in zip(lines, content.split("\n"), strict=False):
        words = line.strip() if blanks else line
        at = text.rfind(words, start, end)
        # Tabs may have been spread: then the whole line stands.
        yield (at, at + len(words)) if at >= 0 and words else stripped(text, start, end if words.strip() else start)


# ------------------------------------------------------------------------------------------------------------- words


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
    parts = _CUT.split("".join(_inline(inline.children or (), top=True)))
    places = [0, *(cuts[int(number)] for number in parts[1::2])]
    return [(place, " ".join(words.split())) for place, words in zip(places, parts[::2], strict=True)]


def _inline(tokens: Iterable[Token], *, top: bool) -> Iterator[str]:
    """Yield the words of inline tokens: alternative texts count, tags and comments do not."""
    for token in tokens:
        if token.type == "image":
            yield from _inline(token.children or (), top=False)
        elif token.type in ("softbreak", "hardbreak") or (
            token.type == "html_inline" and _BREAK.match(token.content)
        ):
            yield " "
        elif token.type in ("text", "code_inline"):
            kept = top and token.level == 0 and token.type == "text"
            yield token.content if kept else _CUT.sub(" ", token.content)
