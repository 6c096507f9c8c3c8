"""Source code → a definition at a time, below the names of what it stands in.

Python is read by its own grammar. In every other language, and in Python that its grammar refuses, a definition is a
line that looks like one, with what is indented below it and what closes it.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence

from holdfast.documents.pieces import Block, Extract, LineSpan, Paragraph, lines_of
from holdfast.text.words import regex
from holdfast.types import SourceLimits
from holdfast.values import dataclass

CODE_SUFFIXES = (
    "py pyi js mjs cjs jsx ts mts cts tsx go rs java kt kts scala c h cc cpp cxx hh hpp hxx m cs swift dart php rb "
    "pl pm lua r jl sh bash zsh ps1 sql ex exs erl hs ml fs clj zig nim proto graphql tf"
)
# Deeper than a class in a class in a module, a definition stays in the one around it.
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class _Part:
    """A definition: its name, its lines from the first comment above it on, and where its body begins."""

    name: str
    first: int
    body: int
    end: int
    inner: tuple[_Part, ...] = ()


def read_code(name: str, text: str, limits: SourceLimits) -> Extract:
    """Return the definitions of a program, and what stands between them."""
    lines = lines_of(text)
    parts = _python_parts(text, lines) if name.lower().endswith((".py", ".pyi")) else None
    if parts is None:
        parts = tuple(_indented_parts([text[a:b] for a, b in lines], 0, len(lines), _DEEPEST))
    page = _Page(text, lines, limits.piece_chars)
    if text.strip():
        page.put_all(name.rpartition("/")[2], 1, 0, len(lines), parts)
    return Extract(text, page.blocks)


class _Page:
    """Files definitions as sections."""

    def __init__(self, text: str, lines: Sequence[LineSpan], piece_chars: int) -> None:
        self._text = text
        self._lines = lines
        self._most = piece_chars
        self.blocks: list[Block] = []

    def put_all(self, title: str, level: int, first: int, end: int, parts: Sequence[_Part]) -> None:
        """File what lies between two lines: definitions below their names, the rest below `title`."""
        self._head(title, level, first)
        at = first
        for part in parts:
            self._put_loose(title, level, at, part.first, headed=at == first)
            self._put(part, level + 1)
            at = part.end
        self._put_loose(title, level, at, end, headed=at == first)

    def _put(self, part: _Part, level: int) -> None:
        start, stop = self._lines[part.first][0], self._lines[part.end - 1][1]
        if stop - start <= self._most or (not part.inner and part.body >= part.end):
            self._put_loose(part.name, level, part.first, part.end)
        elif part.inner:
            self.put_all(part.name, level, part.first, part.end, part.inner)
        else:
            # Too long for one piece: each part of the body comes with the line that says what it is part of.
            self._head(part.name, level, part.first)
            self.blocks.append(Block("caption", (Paragraph(tuple(self._lines[part.first : part.body])),)))
            self.blocks.append(Block("code", (Paragraph(tuple(self._lines[part.body : part.end]), literal=True),)))

    def _put_loose(self, title: str, level: int, first: int, end: int, *, headed: bool = False) -> None:
        """File lines as they stand, without the blank ones around them."""
        said = [number for number in range(first, end) if self._text[slice(*self._lines[number])].strip()]
        if said:
            if not headed:
                self._head(title, level, said[0])
            lines = tuple(self._lines[said[0] : said[-1] + 1])
            self.blocks.append(Block("code", (Paragraph(lines, literal=True),)))

    def _head(self, title: str, level: int, line: int) -> None:
        at = self._lines[line][0]
        self.blocks.append(Block("heading", (Paragraph(((at, at),)),), level=level, title=title))


# ------------------------------------------------------------------------------------------------------------ Python


def _python_parts(text: str, lines: Sequence[LineSpan]) -> tuple[_Part, ...] | None:
    """Return the functions and classes of a module; None when it is no Python of today."""
    try:
        with warnings.catch_warnings():  # a backslash too many is the author's matter
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    # The grammar counts a form feed as a line end where it stands alone; then its numbers are not ours.
    if text.count("\f"):
        return None
    return tuple(_defined(module.body, [text[a:b] for a, b in lines], 0))


def _defined(body: Sequence[ast.stmt], lines: Sequence[str], floor: int) -> Iterator[_Part]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            decorated = min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1
            first, end = _with_comments(lines, decorated, floor), node.end_lineno or node.lineno
            body_at = max(node.body[0].lineno - 1, node.lineno)
            inner = tuple(_defined(node.body, lines, body_at)) if isinstance(node, ast.ClassDef) else ()
            yield _Part(node.name, first, min(body_at, end), end, inner)
            floor = end


def _with_comments(lines: Sequence[str], first: int, floor: int) -> int:
    """Return where the comments begin that stand right above a line."""
    while first > floor and _NOTE.match(lines[first - 1]):
        first -= 1
    return first


# ---------------------------------------------------------------------------------------------------- other languages

# What stands above a definition and belongs to it: a comment, an attribute, a decorator.
_NOTE = regex(r"\s*(?://|#(?!include|define|if|endif|else|pragma)|/?\*|--|;;|%|@|\[\w)")
_NAMED = regex(
    r"\s*(?!//|#|\*|/\*|--|return\b|import\b|from\b|using\b|package\b)(?:[^\s=;\"'][^=;\"']{0,80}?)??"
    r"\b(?:class|struct|enum|union|interface|trait|impl|protocol|extension|record|object|module|defmodule|namespace|"
    r"type|fn|func|fun|function|defp?|sub|proc|macro_rules!|message|service|resource|"
    r"create\s+(?:or\s+replace\s+)?(?:table|view|function|procedure|trigger|(?:unique\s+)?index))"
    r"\s*(?:<[^<>]{0,80}>\s*|\([^()]{0,80}\)\s*)?(?:if\s+not\s+exists\s+)?(?P<name>[\w.$:\"`]+)",
    re.IGNORECASE,
)
_ASSIGNED = regex(
    r"\s*(?:export\s+)?(?:default\s+)?(?:const|let|var|type)\s+(?P<name>[\w$]+)[^=]{0,80}=\s*"
    r"(?:async\b|function\b|\(|class\b|[\w$]+\s*=>|\{)"
)
# `int main(int argc` and `public void close() {`: words, a name and a parenthesis, and no statement.
_CALLED = regex(r"\s*(?:[\w<>\[\]:&*,~.?]+\s+){0,8}?[*&]*(?P<name>[\w:~$]+)\s*\([^;=]*$")
_NO_NAMES = frozenset(
    "if for while switch return else catch with do try case when until unless elif elseif match foreach using lock "
    "sizeof print echo assert throw new await".split()
)
# Lines at the same depth that belong to what stands above them.
_CLOSER = regex(r"\s*(?:[})\]{]|end\b|else\b|elif\b|catch\b|finally\b|rescue\b|ensure\b|done\b|fi\b|esac\b|\*/)")


def _indented_parts(lines: Sequence[str], first: int, end: int, depth: int) -> Iterator[_Part]:
    """Yield the definitions among the lines that are least indented, with what is nested in them."""
    said = [number for number in range(first, end) if lines[number].strip() and not _CLOSER.match(lines[number])]
    if not said or not depth:
        return
    least = min(_indent(lines[number]) for number in said)
    tops = [number for number in said if _indent(lines[number]) == least]
    floor = first
    for place, number in enumerate(tops):
        named = _name_in(lines[number])
        if named is None or number < floor:
            continue
        below = tops[place + 1] if place + 1 < len(tops) else end
        last = max(one for one in range(number, below) if lines[one].strip())
        begin = _with_comments(lines, number, floor)
        body = min(number + 1, last + 1)
        yield _Part(named, begin, body, last + 1, tuple(_indented_parts(lines, body, last + 1, depth - 1)))
        floor = last + 1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _name_in(line: str) -> str | None:
    """Return what a line defines, if it defines something."""
    for pattern in (_NAMED, _ASSIGNED, _CALLED):
        found = pattern.match(line)
        if found and found["name"].casefold() not in _NO_NAMES:
            return found["name"].strip('"`:.')
    return None
