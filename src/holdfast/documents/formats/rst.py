"""reStructuredText → text and blocks, through docutils.

Nothing is included from other files. What docutils does not know, because Sphinx or another program adds it, is read
as what it holds: the words of a role, and the content of a directive.
"""

from __future__ import annotations

import re
from copy import copy
from functools import cache
from html import escape
from textwrap import dedent
from typing import TYPE_CHECKING, cast

from holdfast.documents.formats.html import read_html
from holdfast.documents.pieces import Extract
from holdfast.errors import InputError, quote_value
from holdfast.messages.checks import missing_extra, parse_stated_time
from holdfast.text.words import regex
from holdfast.types import SourceLimits

if TYPE_CHECKING:
    from docutils.frontend import Values
    from docutils.nodes import Element
    from docutils.readers.standalone import Reader

# docutils reads no settings of a folder, no other file, no raw HTML, and writes to no stream.
_SETTINGS = {
    "_disable_config": True, "file_insertion_enabled": False, "raw_enabled": False, "report_level": 5,
    "halt_level": 6, "warning_stream": False, "input_encoding": "unicode", "smart_quotes": False,
    "syntax_highlight": "none", "doctitle_xform": True, "embed_stylesheet": False, "traceback": True,
}  # fmt: skip
# docutils takes up to 110 microseconds for a character of markup: so much is read within a minute.
_LONGEST = 524_288
# References, targets, footnotes and directives that wait: the time to resolve them grows with their square, which is
# four seconds for so many. A manual of a thousand sections has as many.
_MOST_LINKS = 5_000
# What docutils takes in by default: a longer line is no prose, and its patterns would search it again and again.
_LONGEST_LINE = 10_000
# An unknown directive inside an unknown directive …
_DEEPEST = 8
_BROKEN = (
    ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, RecursionError,
    NotImplementedError, OSError,
)  # fmt: skip
_ROLE = regex(r":(?:[\w.+-]+:)+`~?(?P<words>[^`<]*?)\s*(?:<(?P<target>[^`>]*)>)?`")
_DIRECTIVE = regex(r"\.\.\s+(?P<name>[^\n:]+(?::[^\n:]+)*)::(?P<argument>[^\n]*)\n?(?P<rest>.*)\Z", re.DOTALL)
# Directives that only name other pages, or words for an index.
_LISTING = frozenset({"toctree", "index"})
_OPTION = regex(r"\s*:[\w-]+:")

_TAGS = {
    "paragraph": "p", "bullet_list": "ul", "enumerated_list": "ol", "list_item": "li", "block_quote": "blockquote",
    "literal_block": "pre", "doctest_block": "pre", "math_block": "pre", "table": "table", "row": "tr",
    "term": "dt", "definition": "dd", "line": "p", "caption": "figcaption", "rubric": "p", "attribution": "p",
    "option_group": "dt", "description": "dd", "subtitle": "p",
}  # fmt: skip
# What a reader is not shown, or what only says that something went wrong.
_SILENT = frozenset(
    "comment substitution_definition target raw pending meta decoration generated footnote_reference".split()
)
_TITLES = {"table": "caption"}
_ADMONITIONS = frozenset("attention caution danger error hint important note tip warning".split())


def read_rst(name: str, text: str, _limits: SourceLimits) -> Extract:
    """Return the words of a reStructuredText document.

    Raises:
        MissingExtraError: docutils is not installed.
        InputError: it cannot be read as reStructuredText.
    """
    try:
        import docutils.core  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise missing_extra(name, "reStructuredText", "docutils") from error
    if len(text) > _LONGEST:
        raise InputError(f"{quote_value(name)} has {len(text):,} characters, more than {_LONGEST:,}; split it")
    if any(len(line) > _LONGEST_LINE for line in text.splitlines()):
        raise InputError(
            f"{quote_value(name)} has a line of more than {_LONGEST_LINE:,} characters; wrap it, or name it .txt"
        )
    try:
        page = _read(text, _DEEPEST)
    except _TooManyLinks as error:
        raise InputError(
            f"{quote_value(name)} has {error} references, targets and footnotes, more than {_MOST_LINKS:,}; split it"
        ) from error
    except _BROKEN as error:
        raise InputError(
            f"{quote_value(name)} cannot be read as reStructuredText ({quote_value(str(error))}); correct it, or "
            "name it .txt"
        ) from error
    return Extract(*read_html("".join(page.parts)), parse_stated_time(page.date))


def _read(text: str, depth: int) -> _RstReader:
    """Return what a text says as HTML; `depth` is how many unknown directives may be nested in it."""
    from docutils.core import publish_doctree  # noqa: PLC0415 - an extra

    page = _RstReader(depth)
    page.write(publish_doctree(text, reader=_reader(), settings=copy(_settings())), 1)
    return page


class _TooManyLinks(Exception):  # noqa: N818 - never leaves this module
    """A text has so many links that to resolve them would take too long; says how many."""


def _reader() -> Reader[str]:
    """Return a reader that counts what is left to resolve, once it has read and before it resolves."""
    from docutils import nodes  # noqa: PLC0415 - an extra
    from docutils.parsers.rst import Parser  # noqa: PLC0415
    from docutils.readers.standalone import Reader  # noqa: PLC0415

    kinds = (
        nodes.target, nodes.Referential, nodes.substitution_reference, nodes.footnote, nodes.citation, nodes.pending,
    )  # fmt: skip

    class Counting(Reader):  # type: ignore[type-arg]  # takes none when it runs
        def parse(self) -> None:
            super().parse()
            found = self.document.findall() if self.document else ()
            links = sum(isinstance(node, kinds) for node in found)
            if links > _MOST_LINKS:
                raise _TooManyLinks(f"{links:,}")

    return Counting(parser=Parser())


@cache
def _settings() -> Values:
    """Return the settings of every reading: to make them takes longer than to read most directives."""
    from docutils.frontend import get_default_settings  # noqa: PLC0415 - an extra
    from docutils.parsers.rst import Parser  # noqa: PLC0415
    from docutils.readers.standalone import Reader  # noqa: PLC0415

    found = get_default_settings(Parser, Reader)
    vars(found).update(_SETTINGS)
    return found


class _RstReader:
    """Writes the nodes of a document as the HTML that they mean."""

    def __init__(self, depth: int) -> None:
        self.parts: list[str] = []
        self.date = ""
        self._depth = depth
        self._header = False
        self._label = ""  # of an admonition, for its first paragraph

    def write(self, node: Element, level: int) -> None:
        """Write what a node holds; titles are of rank `level`."""
        for child in cast("list[Element]", node.children):
            kind = child.__class__.__name__
            if not hasattr(child, "attributes"):  # words
                self.parts.append(escape(child.astext()))
            elif kind in _SILENT:
                continue
            elif kind == "section":
                self.write(child, level + 1)
            elif kind == "problematic":  # a role that docutils does not know
                self.parts.append(escape(_plain_role(child.astext())))
            elif kind == "system_message":
                self._write_unknown(child)
            elif kind == "image":
                self._write_tag("p", child.get("alt", ""))
            elif kind == "docinfo":
                self._write_facts(child)
            elif "contents" not in child.get("classes", ()):
                self._write_inside(kind, child, level)

    def _write_tag(self, tag: str, words: str) -> None:
        self.parts.append(f"<{tag}>{escape(words)}</{tag}>")

    def _write_inside(self, kind: str, node: Element, level: int) -> None:
        if kind in _ADMONITIONS:
            self._label = f"{kind.capitalize()}: "
        if kind == "thead":
            self._header = True
        tag = _TAGS.get(kind, "")
        if kind == "title":
            above = node.parent.__class__.__name__
            tag = f"h{min(level, 6)}" if above in ("section", "document") else _TITLES.get(above, "p")
        elif kind == "entry":
            tag = "th" if self._header else "td"
        elif kind == "field":
            self._write_tag("p", ": ".join(filter(None, (one.astext().strip() for one in node.children))))
            return
        self.parts.append(f"<{tag}>" if tag else "")
        if tag == "p":
            self.parts.append(self._label)
            self._label = ""
        self.write(node, level)
        self.parts.append(f"</{tag}>" if tag else "")
        self._header = self._header and kind != "thead"

    def _write_facts(self, facts: Element) -> None:
        """Write what a document says of itself."""
        for fact in cast("list[Element]", facts.children):
            kind = fact.__class__.__name__
            if kind == "date":
                self.date = fact.astext()
            if kind == "field":
                self._write_inside(kind, fact, 1)
            else:
                self._write_tag("p", f"{kind.capitalize()}: {fact.astext()}")

    def _write_unknown(self, message: Element) -> None:
        """Write what stands in a directive that docutils does not know; other messages are no part of the text."""
        source = message.children[-1].astext() if message.children else ""
        found = _DIRECTIVE.match(source) if "Unknown directive type" in message.astext() else None
        if found is None or not self._depth or found["name"] in _LISTING:
            return
        lines = dedent(found["rest"]).splitlines()
        while lines and _OPTION.match(lines[0]):
            lines.pop(0)
        self._write_tag("p", f"{found['name']}: {found['argument'].strip()}")
        if any(line.strip() for line in lines):
            self.parts += _read("\n".join(lines), self._depth - 1).parts


def _plain_role(text: str) -> str:
    """Return the words that a role shows: its title, or else its target."""
    return _ROLE.sub(lambda found: found["words"].strip() or found["target"] or "", text)
