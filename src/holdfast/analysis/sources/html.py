"""HTML → text and blocks, with the standard library's parser.

Offsets count in the extracted text: a line for each heading, paragraph, item part, table row and code line.
"""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from holdfast.analysis.sources.blocks import Block, BlockKind, Leaf
from holdfast.errors import InputError, shown

_HIDDEN = frozenset({"script", "style", "template"})
# Tags that end the line before them.
_BREAKING = frozenset(
    """address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 head header hr html legend li main nav ol option p pre section summary table tbody td
    tfoot th thead title tr ul""".split()
)
# The parser looks for the end of a comment from every one on: its time grows with the square of those left open.
_MOST_OPEN_COMMENTS = 1_000
_PARAGRAPH: tuple[BlockKind, int] = ("paragraph", 0)
# What a line inside a tag is, and its rank; a title has none of its own.
_LINES: dict[str, tuple[BlockKind, int]] = {
    **{f"h{level}": ("heading", level) for level in range(1, 7)},
    "title": ("heading", 0),
    "figcaption": ("caption", 0),
}


def read_html(name: str, markup: str) -> tuple[str, list[Block]]:
    """Return the words that a page shows, as text, and the blocks of it.

    Raises:
        InputError: it opens comments without end.
    """
    if markup.count("<!--", markup.rfind("-->") + 1) > _MOST_OPEN_COMMENTS:
        raise InputError(f"{shown(name)} opens more than {_MOST_OPEN_COMMENTS:,} comments and does not end them")
    page = _Page()
    page.feed(markup)
    page.close()
    return page.finished()


class _Page(HTMLParser):
    """Collects words until a tag breaks the line, then files the line under what is open: item, quote or page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
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
        self._leaves: list[Leaf] = []
        self._table = 0
        self._cells: list[str] = []
        self._rows: list[tuple[int, int]] = []
        self._header = 0
        self._heads_only = True

    # ------------------------------------------------------------------------------------------ what the parser calls

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open what a tag opens."""
        if tag in _BREAKING:
            self._break()
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag == "br":
            self._words.append(" ")
        elif tag == "img":
            self._words.append(dict(attrs).get("alt") or "")
        elif tag in _LINES:
            self._line_kind = _LINES[tag]
        elif tag in ("ul", "ol", "li", "blockquote"):
            self._open_nest(tag)
        elif tag in ("table", "tr", "td", "th"):
            self._open_table(tag)
        self._pre += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        """Shut what a tag shuts; a tag that was never opened shuts nothing."""
        if tag in ("td", "th") and self._table == 1:
            self._cell()
        elif tag == "caption" and self._table:
            self._caption()
        if tag in _BREAKING:
            self._break()
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in _LINES:
            self._line_kind = _PARAGRAPH
        elif tag in ("ul", "ol", "li", "blockquote"):
            self._shut_nest(tag)
        elif tag == "pre":
            self._pre = max(0, self._pre - 1)
        elif tag == "table" and self._table:
            self._end_table()

    def handle_data(self, data: str) -> None:
        """Collect words."""
        if not self._hidden:
            self._words.append(data)

    def parse_marked_section(self, i: int, report: bool = True) -> int:  # noqa: FBT001, FBT002 - the parser's own
        """Pass over `<![…]>` as browsers do; the parser would stop at one that it does not know."""
        return self.parse_bogus_comment(i, report)

    def finished(self) -> tuple[str, list[Block]]:
        """Return what was collected. A title is a heading only where the page has no first heading of its own."""
        self._break()
        while self._table:
            self._end_table()
        self._shut()
        titled = any(block.kind == "heading" and block.level == 1 and not block.group for block in self._blocks)
        blocks = [block for block in self._blocks if not (block.kind == "heading" and block.group and titled)]
        return "".join(self._text), [replace(b, group=0) if b.kind == "heading" else b for b in blocks]

    # --------------------------------------------------------------------------------------------------------- lines

    def _write(self, line: str) -> tuple[int, int]:
        start = self._length
        self._text.append(f"{line}\n")
        self._length += len(line) + 1
        return start, start + len(line)

    def _break(self) -> None:
        """End the line: in a cell it goes on, else it becomes a leaf."""
        if self._table:
            self._words.append(" ")
            return
        words = "".join(self._words)
        self._words = []
        if self._pre:
            lines = words.strip("\r\n").splitlines() if words.strip() else []
            if lines:
                self._file("code", Leaf(tuple(self._write(line) for line in lines), literal=True))
        elif words := " ".join(words.split()):
            self._file(self._line_kind[0], Leaf((self._write(words),)), words)

    def _file(self, kind: BlockKind, leaf: Leaf, words: str = "") -> None:
        if self._open is not None:
            self._leaves.append(leaf)
        elif kind == "heading":
            # A title's group is 1, so that `finished` can tell it from a heading.
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
        if tag in ("ul", "ol") and self._lists:
            if len(self._lists) == 1 and self._open == "item":
                self._shut()
            self._lists.pop()
        elif self._open == ("quote" if tag == "blockquote" else "item") and len(self._lists) <= 1:
            self._shut()

    # -------------------------------------------------------------------------------------------------------- tables

    def _open_table(self, tag: str) -> None:
        if tag == "table":
            if not self._table:
                self._words = []
            self._table += 1
        elif self._table == 1 and tag == "tr":
            self._row()
        elif self._table == 1:
            if "".join(self._words).strip():
                self._cell()
            self._heads_only = self._heads_only and tag == "th"

    def _caption(self) -> None:
        words = " ".join("".join(self._words).split())
        self._words = []
        if words:
            self._file("caption", Leaf((self._write(words),)))

    def _cell(self) -> None:
        self._cells.append(" ".join("".join(self._words).split()))
        self._words = []

    def _row(self) -> None:
        if "".join(self._words).strip():
            self._cell()
        if any(self._cells):
            if self._heads_only and len(self._rows) == self._header:
                self._header += 1
            self._rows.append(self._write(" | ".join(self._cells)))
        self._cells, self._words, self._heads_only = [], [], True

    def _end_table(self) -> None:
        self._table -= 1
        if self._table:
            return
        self._row()
        if self._rows:
            self._file("table", Leaf(tuple(self._rows), literal=True))
        self._rows, self._header = [], 0
