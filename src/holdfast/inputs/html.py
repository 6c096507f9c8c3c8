"""HTML → text and blocks, in one pass over the characters.

The standard library's parser looks for the end of a tag from every one on, so that its time grows with the square of
those left open, and it reads differently from release to release. Here each character is passed once: whether a quote
or a comment is ever closed is known beforehand, and a tag that never ends is text.
Offsets count in the extracted text: a line for each heading, paragraph, item part, table row and code line.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from holdfast.inputs.pieces import Block, BlockKind, Leaf, Place

_HIDDEN = frozenset({"script", "style", "template"})
# What stands in these is no markup, up to this.
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style")}
# Tags that end the line before them.
_BREAKING = frozenset(
    """address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 head header hr html legend li main nav ol option p pre section summary table tbody td
    tfoot th thead title tr ul""".split()
)
_PARAGRAPH: tuple[BlockKind, int] = ("paragraph", 0)
# What a line inside a tag is, and its rank; a title has none of its own.
_LINES: dict[str, tuple[BlockKind, int]] = {
    **{f"h{level}": ("heading", level) for level in range(1, 7)},
    "title": ("heading", 0),
    "figcaption": ("caption", 0),
}


def read_html(markup: str) -> tuple[str, list[Block]]:
    """Return the words that a page shows, as text, and the blocks of it."""
    page = _Page()
    for tag in _Markup(markup).tags():
        if isinstance(tag, str):
            page.add(tag)
        elif tag.closes:
            page.close(tag.name)
        else:
            page.open(tag.name, tag.attributes)
    return page.finished()


# ------------------------------------------------------------------------------------------------------------ markup

_NAME = re.compile(r"[a-zA-Z][^\s/>]*+")
_GAP = re.compile(r"[\s/]*+")
_ATTRIBUTE = re.compile(r"=?[^\s/>=]*+")
_EQUALS = re.compile(r"\s*+=\s*+")
_BARE = re.compile(r"[^\s>]*+")
_COMMENT_END = re.compile(r"--!?>")
# No character has a number of more digits; Python refuses to read one of thousands.
_NO_CHARACTER = re.compile(r"&#(?:[0-9]{8,}+|[xX][0-9a-fA-F]{8,}+);?")


@dataclass(frozen=True, slots=True)
class _Tag:
    """A tag that opens something, with its attributes, or shuts it."""

    name: str
    closes: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)


class _Markup:
    """Cuts markup into tags and the text between them."""

    def __init__(self, markup: str) -> None:
        self._text = markup
        self._last_quote = {quote: markup.rfind(quote) for quote in "'\""}
        self._last_comment_end = max(markup.rfind("-->"), markup.rfind("--!>"))

    def tags(self) -> Iterator[_Tag | str]:
        """Yield tags and texts in order; comments and declarations are left out."""
        text, at = self._text, 0
        while at < len(text):
            begin = text.find("<", at)
            if begin < 0:
                begin = len(text)
            if at < begin:
                yield _shown(text[at:begin])
            if begin == len(text):
                return
            found, at = self._tag(begin)
            yield from found

    def _tag(self, at: int) -> tuple[tuple[_Tag | str, ...], int]:
        """Return what begins with the "<" at a place, and where it ends."""
        text = self._text
        if _NAME.match(text, at + 1):
            return self._opened(at)
        if text.startswith("<!--", at):
            closed = _COMMENT_END.search(text, at + 2) if at < self._last_comment_end else None
            return ((), closed.end()) if closed else (("<!--",), at + 4)
        if text[at + 1 : at + 2] not in ("/", "!", "?"):
            return ("<",), at + 1
        end = text.find(">", at)
        if end < 0:
            return (_shown(text[at:]),), len(text)
        name = _NAME.match(text, at + 2, end) if text[at + 1] == "/" else None
        return ((_Tag(name.group().lower(), closes=True),) if name else ()), end + 1

    def _opened(self, at: int) -> tuple[tuple[_Tag | str, ...], int]:
        match = _NAME.match(self._text, at + 1)
        name = match.group().lower() if match else ""
        attributes, empty, end = self._attributes(match.end() if match else at)
        if end < 0:
            return (_shown(self._text[at:]),), len(self._text)
        tag, shut = _Tag(name, attributes=attributes), _Tag(name, closes=True)
        if empty:
            return (tag, shut), end
        if name in _RAW_ENDS:
            raw_end = _RAW_ENDS[name].search(self._text, end)
            end = raw_end.start() if raw_end else len(self._text)
        return (tag,), end

    def _attributes(self, at: int) -> tuple[dict[str, str], bool, int]:
        """Return the attributes that begin at a place, whether the tag shuts itself, and its end, or -1."""
        found: dict[str, str] = {}
        while True:
            gap = _GAP.match(self._text, at)
            at = gap.end() if gap else at
            if at == len(self._text):
                return found, False, -1
            if self._text[at] == ">":
                return found, gap is not None and gap.group().endswith("/"), at + 1
            at = self._attribute(at, found)

    def _attribute(self, at: int, found: dict[str, str]) -> int:
        """Read one attribute into `found`; return where it ends. A quote that is never closed is a letter."""
        name, end = _taken(_ATTRIBUTE, self._text, at)
        equals = _EQUALS.match(self._text, end)
        if equals is None:
            found.setdefault(name.lower(), "")
            return end
        at = equals.end()
        quote = self._text[at : at + 1]
        if at < self._last_quote.get(quote, -1):
            end = self._text.index(quote, at + 1)
            value, end = self._text[at + 1 : end], end + 1
        else:
            value, end = _taken(_BARE, self._text, at)
        found.setdefault(name.lower(), _shown(value))
        return end


def _taken(pattern: re.Pattern[str], text: str, at: int) -> tuple[str, int]:
    """Return what a pattern that always fits takes at a place, and where it ends."""
    found = pattern.match(text, at)
    return (found.group(), found.end()) if found else ("", at)


def _shown(text: str) -> str:
    """Return text as a page shows it: references to characters are these characters."""
    return html.unescape(_NO_CHARACTER.sub("\ufffd", text)) if "&" in text else text


# -------------------------------------------------------------------------------------------------------------- page


class _Page:
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
        self._leaves: list[Leaf] = []
        self._table = 0
        self._cells: list[str] = []
        self._rows: list[Place] = []
        self._header = 0
        self._heads_only = True

    def open(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Open what a tag opens."""
        if tag in _BREAKING:
            self._break()
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag == "br":
            self._words.append(" ")
        elif tag == "img":
            self._words.append(attributes.get("alt", ""))
        elif tag in _LINES:
            self._line_kind = _LINES[tag]
        elif tag in ("ul", "ol", "li", "blockquote"):
            self._open_nest(tag)
        elif tag in ("table", "tr", "td", "th"):
            self._open_table(tag)
        self._pre += tag == "pre"

    def close(self, tag: str) -> None:
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

    def add(self, words: str) -> None:
        """Collect words."""
        if not self._hidden:
            self._words.append(words)

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

    def _write(self, line: str) -> Place:
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
