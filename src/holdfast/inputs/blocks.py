"""What every format becomes first: blocks of lines, each line a place in the text.

A line is kept as offsets and never as words of its own, so whatever is joined, cut or rendered later still knows
where it stands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.types import PieceKind, Span

BlockKind = PieceKind | Literal["heading", "caption"]
# Content and the places where it may be cut → (place, words) of each part; a place inside markup is no part's.
Render = Callable[[str, Sequence[int]], list[tuple[int, str]]]

# CommonMark's line ends. A form feed or U+2028 is no line end, so str.splitlines would count differently.
LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]*_]*\s+(?=[\"'“‘«(\[*_]*[^\W_a-z])|[。！？]\s*(?=\S)")
# A full stop behind these ends no sentence.
_ABBREVIATIONS = frozenset("dr mr mrs ms prof sr jr st vs e.g i.e cf etc no fig vol p pp approx".split())
_LAST_WORD = re.compile(r"([\w.]+)$")
_BLANKS = re.compile(r"\s+(?=\S)")
_ENDED = re.compile(r"[.!?…:。！？][\"'”’»)\]]*$")


@dataclass(frozen=True, slots=True)
class Leaf:
    """Lines that flow as one paragraph or, when `literal`, stand as they are written."""

    lines: tuple[tuple[int, int], ...]
    literal: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a source.

    `level` is a heading's rank and `title` its words; `group` tells lists apart; `header` counts the lines of a table
    that name its columns. A heading with a `page` is the page of a PDF.
    """

    kind: BlockKind
    leaves: tuple[Leaf, ...]
    level: int = 0
    title: str = ""
    group: int = 0
    ordered: bool = False
    header: int = 0
    page: int | None = None


@dataclass(frozen=True, slots=True)
class _Atom:
    """What is never cut: a sentence, or a literal line. `glue` stands between it and the atom before."""

    span: Span
    glue: str


def lines_of(text: str) -> list[tuple[int, int]]:
    """Return where each line of `text` begins and ends, its line end left out."""
    return [(found.start(), found.start() + len(found[0].rstrip("\r\n"))) for found in LINE.finditer(text)]


def stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the place of a line without the blanks around it."""
    line = text[start:end]
    return (start + len(line) - len(line.lstrip()), start + len(line.rstrip())) if line.strip() else (start, start)


def plainly(content: str, cuts: Sequence[int]) -> list[tuple[int, str]]:
    """Render text that has no markup: the words with single blanks between them."""
    places = [0, *cuts]
    parts = [content[a:b] for a, b in zip(places, [*cuts, len(content)], strict=True)]
    return [(place, " ".join(part.split())) for place, part in zip(places, parts, strict=True)]


def sentence_starts(text: str) -> list[int]:
    """Return where the sentences of `text` begin, the first left out."""
    return [found.end() for found in _SENTENCE_END.finditer(text) if not _shortened(text, found.start())]


def _shortened(text: str, stop: int) -> bool:
    last = _LAST_WORD.search(text, max(0, stop - 12), stop)
    return text[stop] == "." and last is not None and last[1].lower() in _ABBREVIATIONS


@dataclass(frozen=True, slots=True)
class Writing:
    """A text with the way its lines are rendered."""

    text: str
    render: Render = plainly

    def place(self, block: Block) -> tuple[int, int]:
        """Return where a block stands."""
        lines = [line for leaf in block.leaves for line in leaf.lines]
        return (lines[0][0], max(end for _, end in lines)) if lines else (0, 0)

    def line_start(self, place: int) -> int:
        """Return where the line of a place begins, its marks included."""
        return max(self.text.rfind(end, 0, place) for end in "\r\n") + 1

    def whole(self, block: Block) -> Span:
        """Return a block uncut."""
        rendered = (self._words(leaf) for leaf in block.leaves)
        return Span("\n".join(words for words in rendered if words), *self.place(block))

    def is_fragment(self, block: Block, most: int) -> bool:
        """Return whether a block says too little to stand alone: short, and no sentence."""
        words = self.whole(block).text
        return len(words) < most and not _ENDED.search(words)

    def sentences(self, block: Block) -> list[Span]:
        """Return the sentences and literal lines of a block."""
        return [atom.span for leaf in block.leaves for atom in self._atoms(leaf, None)]

    def cut(self, block: Block, limit: int) -> list[Span]:
        """Return a block in parts of at most `limit` characters: whole sentences, else whole words."""
        whole = self.whole(block)
        if len(whole.text) <= limit:
            return [whole] if whole.text.strip() else []
        atoms = (atom for leaf in block.leaves for atom in self._atoms(leaf, limit))
        return [span for span in _packed(atoms, limit) if span.text.strip()]

    def _words(self, leaf: Leaf) -> str:
        content = self._content(leaf)
        if leaf.literal:
            return "\n".join(line.rstrip() for line in content.split("\n")).strip("\n")
        return self.render(content, ())[0][1]

    def _content(self, leaf: Leaf) -> str:
        return "\n".join(self.text[start:end] for start, end in leaf.lines)

    def _atoms(self, leaf: Leaf, limit: int | None) -> Iterator[_Atom]:
        if leaf.literal:
            for start, end in leaf.lines:
                yield _Atom(Span(self.text[start:end].rstrip(), start, end), "\n")
            return
        content = self._content(leaf)
        starts = _Starts(leaf.lines)
        parts = self.render(content, sentence_starts(content))
        if limit is not None and any(len(words) > limit for _, words in parts):
            parts = self.render(
                content, sorted({place for place, _ in parts[1:]} | set(_blanks(content, parts, limit)))
            )
        ends = [place for place, _ in parts[1:]] + [len(content)]
        for number, ((place, words), end) in enumerate(zip(parts, ends, strict=True)):
            first, last = stripped(content, place, end)
            if words:
                span = Span(words, starts.at(first), starts.at(max(first, last - 1)) + 1)
                yield _Atom(span, " " if number else "\n")


class _Starts:
    """Places in a leaf's content → places in the text."""

    def __init__(self, lines: Sequence[tuple[int, int]]) -> None:
        self._lines = lines
        self._begins = [0]
        for start, end in lines:
            self._begins.append(self._begins[-1] + end - start + 1)

    def at(self, place: int) -> int:
        line = bisect_right(self._begins, place, hi=len(self._lines)) - 1
        return self._lines[line][0] + place - self._begins[line]


def _blanks(content: str, parts: Sequence[tuple[int, str]], limit: int) -> Iterator[int]:
    """Yield where the sentences that pass `limit` may be cut: before words, a limit apart."""
    ends = [place for place, _ in parts[1:]] + [len(content)]
    for (begin, words), end in zip(parts, ends, strict=True):
        if len(words) <= limit:
            continue
        last, before = begin, begin
        for found in _BLANKS.finditer(content, begin, end):
            if found.end() - last > limit and before > last:
                yield before
                last = before
            before = found.end()
        if end - last > limit and before > last:
            yield before


def _packed(atoms: Iterable[_Atom], limit: int) -> Iterator[Span]:
    """Yield runs of atoms that stay within `limit`; one that is longer alone stays whole."""
    run: Span | None = None
    for atom in atoms:
        joined = f"{run.text}{atom.glue}{atom.span.text}" if run else atom.span.text
        if run and len(joined) > limit and atom.span.text:
            yield run
            run = atom.span
        else:
            run = Span(joined, run.start if run else atom.span.start, atom.span.end)
    if run:
        yield run


def merged(kind: BlockKind, blocks: Sequence[Block]) -> Block:
    """Return blocks as one, in order."""
    return replace(blocks[0], kind=kind, leaves=tuple(leaf for block in blocks for leaf in block.leaves))
