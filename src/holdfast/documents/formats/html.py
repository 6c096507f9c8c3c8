"""HTML → text and blocks, in one pass over the characters.

The standard library's parser looks for the end of a tag from every one on, so that its time grows with the square of
those left open, and it reads differently from release to release. Here each character is passed once: what is never
closed is text, a quote that is never closed is a letter, and no pattern looks for either twice.
Offsets count in the extracted text: a line for each heading, paragraph, item part, table row and code line.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace

from holdfast.documents.pieces import Block, BlockKind, LineSpan, Paragraph
from holdfast.text.words import regex

_HIDDEN = frozenset({"script", "style", "template"})
# Tags that end the line before them.
_BREAKING = frozenset(
    """address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 head header hr html legend li main nav ol option p pre section summary table tbody td
    tfoot th thead title tr ul""".split()
)
_NESTS = frozenset({"ul", "ol", "li", "blockquote"})
_PARAGRAPH: tuple[BlockKind, int] = ("paragraph", 0)
# What a line inside a tag is, and its rank; a title has none of its own.
_LINES: dict[str, tuple[BlockKind, int]] = {
    **{f"h{level}": ("heading", level) for level in range(1, 7)},
    "title": ("heading", 0),
    "figcaption": ("caption", 0),
}


def read_html(markup: str) -> tuple[str, list[Block]]:
    """Return the words that a page shows, as text, and the blocks of it."""
    page = _HtmlReader()
    for tag, content in _tags(markup):
        if not tag:
            page.add(content)
        elif tag.startswith("/"):
            page.close(tag[1:])
        else:
            page.open(tag, content)
    return page.finish()


# ------------------------------------------------------------------------------------------------------------ markup

_ATTRIBUTE = r"""[\s/]*+(?=[^\s/>])(=?[^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]*+)))?+"""
_TAG = regex(
    rf"<(?:(?P<open>[a-zA-Z][^\s/>]*+)(?P<attributes>(?:{_ATTRIBUTE})*+)(?P<gap>[\s/]*+)"
    r"|/(?P<close>[a-zA-Z][^\s/>]*+)?[^>]*+|[!?][^>]*+)>"
)
_UNENDED = regex(r"<[a-zA-Z/!?]")
_ATTRIBUTES = regex(_ATTRIBUTE)
_COMMENT_END = regex(r"--!?>")
# What stands in these is no markup, up to this.
_RAW_ENDS = {name: regex(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style")}
# No character has a number of more digits; Python refuses to read one of thousands.
_NO_CHARACTER = regex(r"&#(?:[0-9]{8,}+|[xX][0-9a-fA-F]{8,}+);?")


def _tags(markup: str) -> Iterator[tuple[str, str]]:
    """Yield each tag with its attributes, a closing one behind "/", and the texts between as tags without a name."""
    at, last_comment_end = 0, max(markup.rfind("-->"), markup.rfind("--!>"))
    while (begin := markup.find("<", at)) >= 0:
        yield "", _unescape(markup[at:begin])
        if markup.startswith("<!--", begin):
            closed = _COMMENT_END.search(markup, begin + 2) if begin < last_comment_end else None
            at = closed.end() if closed else begin + 4
            yield "", "" if closed else "<!--"
        elif found := _TAG.match(markup, begin):
            at = found.end()
            yield from _found_tags(found)
            if (name := (found["open"] or "").lower()) in _RAW_ENDS and not found["gap"].endswith("/"):
                raw_end = _RAW_ENDS[name].search(markup, at)
                at = raw_end.start() if raw_end else len(markup)
        elif _UNENDED.match(markup, begin):
            at = begin
            break
        else:
            at = begin + 1
            yield "", "<"
    yield "", _unescape(markup[at:])


def _found_tags(found: re.Match[str]) -> Iterator[tuple[str, str]]:
    """Yield what one tag opens and shuts; comments and declarations do neither."""
    if found["open"]:
        yield found["open"].lower(), found["attributes"]
        if found["gap"].endswith("/"):
            yield f"/{found['open'].lower()}", ""
    elif found["close"]:
        yield f"/{found['close'].lower()}", ""


def _alternative(attributes: str) -> str:
    """Return the words that stand for a picture."""
    for name, *values in _ATTRIBUTES.findall(attributes):
        if name.lower() == "alt":
            return _unescape("".join(values))
    return ""


def _unescape(text: str) -> str:
    """Return text as a page shows it: references to characters are these characters."""
    return html.unescape(_NO_CHARACTER.sub("\ufffd", text)) if "&" in text else text


# -------------------------------------------------------------------------------------------------------------- page


class _HtmlReader:
    """Collects words until a tag breaks the line, then files the line under what is open: item, quote or page."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._words: list[str] = []
        self._hidden = 0
        self._pre = 0
        self._line_kind = _PARAGRAPH
        self._lists: list[bool] = []  # for each open list, whether it is ordered
        self._group = 0
        self._open: BlockKind | None = None  # an item or a quote, with all that is nested in it
        self._leaves: list[Paragraph] = []
        self._tables = 0
        self._cells: list[str] = []
        self._rows: list[LineSpan] = []
        self._header = 0
        self._heads_only = True

    def open(self, tag: str, attributes: str) -> None:
        """Open what a tag opens."""
        if tag in _BREAKING:
            self._break()
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag == "br":
            self._words.append(" ")
        elif tag == "img":
            self._words.append(_alternative(attributes))
        elif tag == "pre":
            self._pre += 1
        elif tag == "table":
            self._tables += 1
        elif tag in _LINES:
            self._line_kind = _LINES[tag]
        elif tag in _NESTS:
            self._open_nest(tag)
        elif tag in ("tr", "td", "th") and self._tables == 1:
            self._open_cell(tag)

    def close(self, tag: str) -> None:
        """Shut what a tag shuts; a tag that was never opened shuts nothing."""
        if tag in ("td", "th") and self._tables == 1:
            self._cells.append(self._take_words())
        elif tag == "caption" and self._tables and (words := self._take_words()):
            self._file("caption", Paragraph((self._write(words),)))
        if tag in _BREAKING:
            self._break()
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in _LINES:
            self._line_kind = _PARAGRAPH
        elif tag in _NESTS:
            self._shut_nest(tag)
        elif tag == "pre":
            self._pre = max(0, self._pre - 1)
        elif tag == "table" and self._tables:
            self._end_table()

    def add(self, words: str) -> None:
        """Collect words."""
        if not self._hidden:
            self._words.append(words)

    def finish(self) -> tuple[str, list[Block]]:
        """Return what was collected. A title is a heading only where the page has no first heading of its own."""
        self._break()
        while self._tables:
            self._end_table()
        self._shut()
        titled = any(block.kind == "heading" and block.level == 1 and not block.group for block in self._blocks)
        blocks = [block for block in self._blocks if not (block.kind == "heading" and block.group and titled)]
        return "".join(self._text), [replace(b, group=0) if b.kind == "heading" else b for b in blocks]

    # --------------------------------------------------------------------------------------------------------- lines

    def _take_words(self) -> str:
        """Return the words collected, and begin anew."""
        words = " ".join("".join(self._words).split())
        self._words = []
        return words

    def _write(self, line: str) -> LineSpan:
        start = self._length
        self._text.append(f"{line}\n")
        self._length += len(line) + 1
        return start, start + len(line)

    def _break(self) -> None:
        """End the line: in a cell it goes on, else it becomes a leaf."""
        if self._tables:
            self._words.append(" ")
        elif self._pre:
            words, self._words = "".join(self._words), []
            if words.strip():
                lines = words.strip("\r\n").splitlines()
                self._file("code", Paragraph(tuple(self._write(line) for line in lines), literal=True))
        elif words := self._take_words():
            self._file(self._line_kind[0], Paragraph((self._write(words),)), words)

    def _file(self, kind: BlockKind, leaf: Paragraph, words: str = "") -> None:
        if self._open is not None:
            self._leaves.append(leaf)
        elif kind == "heading":
            # A title's group is 1, so that `finish` can tell it from a heading.
            level = self._line_kind[1]
            self._put(Block("heading", (leaf,), level=level or 1, title=words, group=int(level == 0)))
        else:
            self._put(Block(kind, (leaf,), header=self._header if kind == "table" else 0))

    def _put(self, block: Block) -> None:
        self._blocks.append(block)
        self._text.append("\n")
        self._length += 1

    def _shut(self) -> None:
        """End the item or quote that is open."""
        if self._open is not None and self._leaves:
            ordered = bool(self._lists and self._lists[0])
            self._put(Block(self._open, tuple(self._leaves), group=self._group, ordered=ordered))
        self._leaves = []
        self._open = None

    # ------------------------------------------------------------------------------------------------- lists, quotes

    def _open_nest(self, tag: str) -> None:
        if tag in ("ul", "ol"):
            self._group += not self._lists
            self._lists.append(tag == "ol")
        elif tag == "li" and len(self._lists) <= 1 and self._open != "quote":
            self._shut()
            self._open = "item"
        elif tag == "blockquote" and self._open is None:
            self._open = "quote"

    def _shut_nest(self, tag: str) -> None:
        outermost = len(self._lists) <= 1
        if tag in ("ul", "ol") and self._lists:
            if outermost and self._open == "item":
                self._shut()
            self._lists.pop()
        elif outermost and self._open == ("quote" if tag == "blockquote" else "item"):
            self._shut()

    # -------------------------------------------------------------------------------------------------------- tables

    def _open_cell(self, tag: str) -> None:
        if tag == "tr":
            self._end_row()
            return
        if words := self._take_words():
            self._cells.append(words)
        self._heads_only = self._heads_only and tag == "th"

    def _end_row(self) -> None:
        if words := self._take_words():
            self._cells.append(words)
        if any(self._cells):
            if self._heads_only and len(self._rows) == self._header:
                self._header += 1
            self._rows.append(self._write(" | ".join(self._cells)))
        self._cells, self._heads_only = [], True

    def _end_table(self) -> None:
        self._tables -= 1
        if self._tables:
            return
        self._end_row()
        if self._rows:
            self._file("table", Paragraph(tuple(self._rows), literal=True))
        self._rows, self._header = [], 0
