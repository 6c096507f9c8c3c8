"""Blocks → sections and pieces: what belongs together is joined, what is too long is cut.

Every format becomes blocks of lines first. A line is kept as its place in the text and never as words of its own, so
whatever is joined, cut or rendered later still knows where it stands.

A piece gets a role and a condition (C1) by English rules, the first match wins. A word counts only as a whole word,
and a role is given on what the text says: without any sign of another, a piece of a document is a Description.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from importlib.resources import files
from itertools import accumulate, chain, groupby, zip_longest
from typing import Literal, cast

from holdfast.text.deontic import Deontic, deontic
from holdfast.text.sentences import Splitter
from holdfast.text.words import regex
from holdfast.text.words import words as listed
from holdfast.types import ROLES, Piece, PieceKind, Role, Section, SourceLimits, Span, digest
from holdfast.values import dataclass


def _words(patterns: Iterable[str]) -> re.Pattern[str]:
    return regex(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)


_DATA = tomllib.loads(files("holdfast.documents").joinpath("roles.toml").read_text("utf-8"))
_BINDING, _BINDS = _words(_DATA["binding"]), _words(_DATA["binds"])
_PATTERNS: tuple[tuple[re.Pattern[str], Role], ...] = tuple((_words(p), role) for role, p in _DATA["said"].items())
_HEADINGS: tuple[tuple[re.Pattern[str], Role], ...] = tuple(
    (_words(p), role) for role, p in _DATA["headings"].items()
)
# "A fender is a cushion": an indefinite thing is told what it is.
_IS_A = regex(r"an?\s+[\w-]+(?:\s+[\w-]+){0,3}\s+is\s+(?:an?|any|the)\s", re.IGNORECASE)
# "To start the pump, open the valve"; not "To me, it is ugly".
_INSTRUCTS = regex(
    r"to\s+\w+[^.?!]{0,120}?,\s+(?!(?:an?|the|this|that|there|i|you|he|she|it|we|they)\b)\w"
    r"|first,\s|step\s+\d+\b|how\s+to\s",
    re.IGNORECASE,
)
_PROSE: frozenset[PieceKind] = frozenset({"paragraph", "list", "item"})
# A paragraph below "Installation" may say anything; its lists and its code are what is done.
_UNDER = dict.fromkeys(ROLES, _PROSE) | {"Procedure": frozenset({"list", "item", "code"})}
_CONDITION = regex(
    r"(?:if|when|whenever|unless|once|while|until|in case|provided(?: that)?|as long as|before|after)\s"
    r"[^.!?;:\n]*?(?=,|\sthen\s)",
    re.IGNORECASE,
)
# Code and tables are not read as sentences: their lead-in is, if they have one.
SILENT: frozenset[PieceKind] = frozenset({"code", "table", "record"})
# What may share a piece with its neighbours; a quote is somebody else's words, and a row of a table stands alone.
_JOINABLE: frozenset[PieceKind] = frozenset({"paragraph", "list", "item", "code"})
# A role shows in how a text begins: in its first two or three sentences.
_READ = 400


def role_of(
    text: str, *, kind: PieceKind = "paragraph", lead: str = "", heading: str = "", ordered: bool = False
) -> Role:
    """Return the rhetorical role of a text, by its words, then by the heading it stands under."""
    said = lead[:_READ] if kind in SILENT else f"{lead}\n{text}".lstrip()[:_READ]
    by_shape = _by_shape(said, text[:_READ], ordered=ordered)
    if by_shape is not None:
        return by_shape
    by_words = (role for pattern, role in _PATTERNS if pattern.search(said))
    by_heading = (role for pattern, role in _HEADINGS if kind in _UNDER[role] and pattern.search(heading))
    return next(chain(by_words, by_heading), "Description")


def _by_shape(said: str, text: str, *, ordered: bool) -> Role | None:
    """Return the role that rules and instructions show: numbered commands, what binds, what is done first."""
    if ordered and (_INSTRUCTS.match(said) or _commands(text)):
        return "Procedure"
    if said and _IS_A.match(text):
        return "Definition"
    rule = deontic(said)
    if _BINDS.search(said) or (rule and _BINDING.search(said)):
        return "Constraint"
    return "Procedure" if rule & Deontic.OBLIGATION or _INSTRUCTS.match(said) else None


def _commands(text: str) -> bool:
    """Return whether at least half of the lines tell somebody to do something; a line need not end in a stop."""
    told = [bool(deontic(line) & Deontic.OBLIGATION) for line in text.split("\n") if line.strip()]
    return bool(told) and 2 * sum(told) >= len(told)


def condition_of(text: str) -> str:
    """Return the clause that a text begins with and that limits it: "if …", "when …", "unless …"; else nothing."""
    found = _CONDITION.match(text[:_READ].lstrip())
    return found[0].strip() if found else ""


BlockKind = PieceKind | Literal["heading", "caption"]
LineSpan = tuple[int, int]
# Content and the places where it may be cut → (place, words) of each part; a place inside markup is no part's.
Render = Callable[[str, Sequence[int]], list[tuple[int, str]]]

# CommonMark's line ends. A form feed or U+2028 is no line end, so str.splitlines would count differently.
LINE = regex(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_SENTENCES = Splitter(
    regex(r"[.!?…][\"'”’»)\]*_]*\s+(?=[\"'“‘«(\[*_]*[^\W_a-z])|[。！？]\s*(?=\S)"),
    frozenset(listed("sentences", "written_abbreviations")),
)
_BLANKS = regex(r"\s+(?=\S)")
_ENDED = regex(r"[.!?…:。！？][\"'”’»)\]]*$")
# What a sentence that ends in a colon may introduce.
_INTRODUCED = frozenset({"item", "table", "code"})
_DEFAULTS = SourceLimits()


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines that flow as one paragraph or, when `literal`, stand as they are written."""

    lines: tuple[LineSpan, ...]
    literal: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a source.

    `level` is a heading's rank and `title` its words; `group` tells lists apart; `header` counts the lines of a table
    that name its columns. A heading with a `page` is the page of a PDF; it may say when what stands below it was
    written, and by whom.
    """

    kind: BlockKind
    leaves: tuple[Paragraph, ...]
    level: int = 0
    title: str = ""
    group: int = 0
    ordered: bool = False
    header: int = 0
    page: int | None = None
    at: datetime | None = None
    by: str = ""

    def below(self, ranks: int) -> Block:
        """Return the block below so many headings more."""
        return replace(self, level=self.level + ranks) if self.kind == "heading" else self

    def moved(self, by: int) -> Block:
        """Return the block of a text that `by` characters were put before."""
        leaves = (replace(one, lines=tuple((a + by, b + by) for a, b in one.lines)) for one in self.leaves)
        return replace(self, leaves=tuple(leaves))


@dataclass(frozen=True, slots=True)
class Extract:
    """What a reader makes of a file: its words, the blocks of them, and when it was written, if it says so."""

    text: str
    blocks: list[Block]
    at: datetime | None = None


class TextBuilder:
    """A text that a reader writes line by line, with its blocks."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self.blocks: list[Block] = []

    def write(self, line: str) -> LineSpan:
        """Add a line; return where it stands."""
        start = self._length
        self._parts.append(f"{line}\n")
        self._length += len(line) + 1
        return start, start + len(line)

    def head(self, title: str, level: int, at: datetime | None = None, by: str = "") -> None:
        """Add a heading."""
        leaf = Paragraph((self.write(title),))
        self.blocks.append(Block("heading", (leaf,), level=level, title=title, at=at, by=by))

    def take(self, text: str, blocks: Iterable[Block]) -> None:
        """Add a text that has blocks of its own."""
        self.blocks += [block.moved(self._length) for block in blocks]
        self.write(text)

    def extract(self, at: datetime | None = None) -> Extract:
        """Return what was written."""
        return Extract("".join(self._parts), self.blocks, at)


def lines_of(text: str) -> list[LineSpan]:
    """Return where each line of `text` begins and ends, its line end left out."""
    return [(found.start(), found.start() + len(found[0].rstrip("\r\n"))) for found in LINE.finditer(text)]


def strip_span(text: str, start: int, end: int) -> LineSpan:
    """Return the place of a line without the blanks around it."""
    line = text[start:end]
    return (start + len(line) - len(line.lstrip()), start + len(line.rstrip())) if line.strip() else (start, start)


def render_plain(content: str, cuts: Sequence[int]) -> list[tuple[int, str]]:
    """Render text that has no markup: the words with single blanks between them."""
    places = [0, *cuts]
    return [(a, " ".join(content[a:b].split())) for a, b in zip(places, [*cuts, len(content)], strict=True)]


def _merge(kind: BlockKind, blocks: Sequence[Block]) -> Block:
    """Return blocks as one, in order."""
    return replace(blocks[0], kind=kind, leaves=tuple(leaf for block in blocks for leaf in block.leaves))


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text, the way its lines are rendered, and how long its pieces may be."""

    text: str
    render: Render = render_plain
    limits: SourceLimits = _DEFAULTS

    def whole(self, block: Block) -> Span:
        """Return a block uncut."""
        rendered = (self._words(leaf) for leaf in block.leaves)
        lines = [line for leaf in block.leaves for line in leaf.lines] or [(0, 0)]
        return Span("\n".join(words for words in rendered if words), lines[0][0], max(end for _, end in lines))

    def line_start(self, block: Block) -> int:
        """Return where the first line of a block begins, its marks included."""
        place = self.whole(block).start
        return max(self.text.rfind(end, 0, place) for end in "\r\n") + 1

    def is_fragment(self, block: Block) -> bool:
        """Return whether a block says too little to stand alone: short, and no sentence."""
        words = self.whole(block).text
        return len(words) < self.limits.fragment_chars and not _ENDED.search(words)

    def sentences(self, block: Block) -> list[Span]:
        """Return the sentences and literal lines of a block."""
        return [span for leaf in block.leaves for _, span in self._atoms(leaf, None)]

    def cut(self, block: Block, lead: Span | None = None) -> Iterator[Piece]:
        """Yield a block as pieces within `limits.piece_chars`: whole sentences, else whole words."""
        whole, most = self.whole(block), self.limits.piece_chars
        if len(whole.text) <= most:
            spans: Iterable[Span] = [whole]
        else:
            spans = _pack((atom for leaf in block.leaves for atom in self._atoms(leaf, most)), most)
        for span in spans:
            if span.text.strip():
                kind = cast("PieceKind", block.kind)
                yield Piece(kind, span.text, span.start, span.end, "", 0, lead, block.ordered)

    def _content(self, leaf: Paragraph) -> str:
        return "\n".join(self.text[start:end] for start, end in leaf.lines)

    def _words(self, leaf: Paragraph) -> str:
        content = self._content(leaf)
        if leaf.literal:
            return "\n".join(line.rstrip() for line in content.split("\n")).strip("\n")
        return self.render(content, ())[0][1]

    def _atoms(self, leaf: Paragraph, limit: int | None) -> Iterator[tuple[str, Span]]:
        """Yield what is never cut, a sentence or a literal line, each behind what stands between it and the last."""
        if leaf.literal:
            for start, end in leaf.lines:
                yield "\n", Span(self.text[start:end].rstrip(), start, end)
            return
        content = self._content(leaf)
        parts = self.render(content, _SENTENCES.ends(content))
        if limit is not None and any(len(words) > limit for _, words in parts):
            cuts = {place for place, _ in parts[1:]} | set(_word_cuts(content, parts, limit))
            parts = self.render(content, sorted(cuts))
        places = _places(leaf.lines)
        ends = [place for place, _ in parts[1:]] + [len(content)]
        for number, ((place, words), end) in enumerate(zip(parts, ends, strict=True)):
            if words:
                first, last = strip_span(content, place, end)
                yield " " if number else "\n", Span(words, places(first), places(max(first, last - 1)) + 1)


def _places(lines: Sequence[LineSpan]) -> Callable[[int], int]:
    """Return the way from places in the lines, joined, to places in the text."""
    begins = list(accumulate((end - start + 1 for start, end in lines), initial=0))

    def find(at: int) -> int:
        line = bisect_right(begins, at, hi=len(lines)) - 1
        return lines[line][0] + at - begins[line]

    return find


def _word_cuts(content: str, parts: Sequence[tuple[int, str]], limit: int) -> Iterator[int]:
    """Yield where the sentences that pass `limit` may be cut: before words, a limit apart."""
    ends = [place for place, _ in parts[1:]] + [len(content)]
    for (begin, words), end in zip(parts, ends, strict=True):
        if len(words) <= limit:
            continue
        last, before = begin, begin
        for after in (*(found.end() for found in _BLANKS.finditer(content, begin, end)), end):
            if after - last > limit and before > last:
                yield before
                last = before
            before = after


def _pack(atoms: Iterable[tuple[str, Span]], limit: int) -> Iterator[Span]:
    """Yield runs of atoms that stay within `limit`; one that is longer alone stays whole."""
    run: Span | None = None
    for glue, atom in atoms:
        joined = f"{run.text}{glue}{atom.text}" if run else atom.text
        if run and len(joined) > limit and atom.text:
            yield run
            run = atom
        else:
            run = Span(joined, run.start if run else atom.start, atom.end)
    if run:
        yield run


# ---------------------------------------------------------------------------------------------------------- sections


def divide(
    source: SourceText, blocks: Sequence[Block], at: datetime | None = None
) -> tuple[tuple[Section, ...], tuple[Piece, ...]]:
    """Return the sections of a source, the root first, and its pieces in order; `at` is when it was written."""
    bodies: list[tuple[Block | None, list[Block]]] = [(None, [])]
    for block in _keep_bare_headings(blocks) if source.limits.joined_chars else blocks:
        if block.kind == "heading":
            bodies.append((block, []))
        else:
            bodies[-1][1].append(block)
    sections = _sections(source, [heading for heading, _ in bodies if heading is not None], at)
    parents = {section.parent for section in sections}
    pieces: list[Piece] = []
    for section, (heading, body) in zip(sections, bodies, strict=True):
        # The words of a heading with nothing below it would be lost.
        bare = heading is not None and not body and section.id not in parents
        found = _pieces(source, [replace(heading, kind="paragraph")] if heading and bare else body)
        for piece in _pack_pieces(found, source.limits):
            pieces.append(replace(piece, section=section.id, ordinal=len(pieces)))
    return tuple(sections), tuple(pieces)


def _keep_bare_headings(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield blocks; a heading that nothing stands below is a line of the section before it, in its chapter."""
    above: list[int] = []
    for block, after in zip_longest(blocks, blocks[1:]):
        if block.kind != "heading":
            yield block
            continue
        while above and above[-1] >= block.level:
            above.pop()
        bare = after is None or (after.kind == "heading" and after.level <= block.level)
        says_more = block.page is not None or block.at is not None or block.by
        if bare and above and not says_more:
            yield replace(block, kind="paragraph")
        else:
            above.append(block.level)
            yield block


def _sections(source: SourceText, headings: Sequence[Block], at: datetime | None) -> list[Section]:
    seen: Counter[tuple[str, ...]] = Counter()
    sections = [Section(_section_id((), seen), "", 0, (), 0, len(source.text), None, at=at)]
    above = [0]  # the sections that are open, outermost first
    for heading in headings:
        start = source.line_start(heading)
        while sections[above[-1]].level >= heading.level:
            closed = above.pop()
            sections[closed] = replace(sections[closed], end=start)
        parent = sections[above[-1]]
        path = (*parent.path, heading.title)
        name, end = _section_id(path, seen), len(source.text)
        above.append(len(sections))
        said = (heading.at or parent.at, heading.by or parent.by)
        sections.append(Section(name, heading.title, heading.level, path, start, end, parent.id, heading.page, *said))
    return sections


def _section_id(path: tuple[str, ...], seen: Counter[tuple[str, ...]]) -> str:
    """Return an id that a change elsewhere leaves alone: the titles, and which of the sections of these titles."""
    seen[path] += 1
    return f"s-{digest('section', path, seen[path])}"


# ------------------------------------------------------------------------------------------------------------ pieces


def _pieces(source: SourceText, body: Sequence[Block]) -> Iterator[Piece]:
    lead: Span | None = None
    runs = list(_runs(_join_fragments(source, body)))
    for run, after in zip_longest(runs, runs[1:]):
        if run[0].kind in ("paragraph", "caption"):
            introduces = after is not None and after[0].kind in _INTRODUCED
            lead, is_all = _lead(source, run[0]) if introduces else (None, False)
            if not is_all:
                yield from source.cut(_merge("paragraph", run))
        else:
            yield from _led_pieces(source, run, lead)
            lead = None


def _pack_pieces(pieces: Iterable[Piece], limits: SourceLimits) -> Iterator[Piece]:
    """Yield the pieces of a section, neighbours as one while they fit."""
    held: Piece | None = None
    for piece in pieces:
        joined = _join(held, piece, limits) if held else None
        if held and not joined:
            yield held
        held = joined or piece
    if held:
        yield held


def _join(one: Piece, other: Piece, limits: SourceLimits) -> Piece | None:
    """Return two neighbours as one piece; None where they do not belong together, or do not fit."""
    kinds, lead = {one.kind, other.kind}, other.lead.text if other.lead else ""
    # The parts of a long definition were cut apart; each list keeps to its own lead-in.
    apart = one.lead == other.lead if kinds == {"code"} else kinds <= {"item", "list"} and one.lead != other.lead
    if apart or not kinds <= _JOINABLE:
        return None
    led = other.lead == one.lead or lead in one.text
    glue = "\n" if led and other.kind in ("item", "list") else "\n\n"
    text = glue.join((one.text, other.text if led else f"{lead}\n{other.text}"))
    most = min(limits.joined_chars, limits.piece_chars)
    if len(text) + (len(one.lead.text) if one.lead else 0) > most:
        return None
    kind: PieceKind = "paragraph" if kinds - {"item", "list"} else "list"
    return replace(one, kind=kind, text=text, end=other.end, ordered=one.ordered and other.ordered)


def _runs(body: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield each list as the run of its items, and every other block alone."""
    for group, found in groupby(body, key=lambda block: block.group if block.kind == "item" else None):
        blocks = list(found)
        yield from [blocks] if group is not None else ([block] for block in blocks)


def _join_fragments(source: SourceText, body: Sequence[Block]) -> list[Block]:
    """Return the blocks with each fragment joined to the paragraph after it, or else to the one before."""
    joined: list[Block] = []
    waiting = False
    for block in body:
        if block.kind == "paragraph" and waiting:
            joined[-1] = _merge("paragraph", [joined[-1], block])
        else:
            joined.append(block)
        waiting = block.kind == "paragraph" and source.is_fragment(joined[-1])
    last_two = joined[-2:]
    if waiting and len(last_two) == 2 and last_two[0].kind == "paragraph":
        joined[-2:] = [_merge("paragraph", last_two)]
    return joined


def _lead(source: SourceText, block: Block) -> tuple[Span | None, bool]:
    """Return the sentence that introduces what follows, and whether it is all that the block says."""
    sentences = source.sentences(block)
    if not sentences:
        return None, False
    if block.kind == "caption":
        sentences = [source.whole(block)]
    elif not sentences[-1].text.endswith((":", "：")):
        return None, False
    fits = len(sentences[-1].text) <= source.limits.lead_chars
    return (sentences[-1], len(sentences) == 1) if fits else (None, False)


def _led_pieces(source: SourceText, run: Sequence[Block], lead: Span | None) -> Iterator[Piece]:
    """Yield what a lead-in may introduce; every piece of it carries the lead-in."""
    if run[0].kind == "table":
        yield from _table_pieces(source, run[0], lead)
        return
    for block in _list_blocks(source, run) if run[0].kind == "item" else run:
        yield from source.cut(block, lead)


def _list_blocks(source: SourceText, items: Sequence[Block]) -> Sequence[Block]:
    """Return a list item by item; steps that fit, and items that are mere fragments, stay together."""
    together = _merge("list", items)
    steps = items[0].ordered and len(source.whole(together).text) <= source.limits.piece_chars
    return [together] if len(items) > 1 and (steps or all(map(source.is_fragment, items))) else items


def _table_pieces(source: SourceText, table: Block, lead: Span | None) -> Iterator[Piece]:
    """Yield a table whole, or in groups of rows that all carry the header."""
    rows = table.leaves[0].lines
    if len(source.whole(table).text) <= source.limits.piece_chars or len(rows) <= table.header:
        yield from source.cut(table, lead)
        return
    if table.header:
        names = source.whole(replace(table, leaves=(Paragraph(rows[: table.header], literal=True),)))
        lead = Span(f"{lead.text}\n{names.text}", lead.start, names.end) if lead else names
    yield from source.cut(replace(table, leaves=(Paragraph(rows[table.header :], literal=True),)), lead)
