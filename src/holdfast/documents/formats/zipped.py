"""Documents that are a zip of files (.docx, .epub) → text and blocks; opened with limits against zip bombs."""

from __future__ import annotations

import codecs
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from urllib.parse import unquote, urldefrag, urljoin
from xml.etree.ElementTree import Element, ParseError, fromstring
from xml.parsers.expat import ExpatError, ParserCreate

from holdfast.documents.formats.html import read_html
from holdfast.documents.pieces import Extract, TextBuilder
from holdfast.errors import InputError, quote_value
from holdfast.messages.checks import missing_extra, parse_stated_time
from holdfast.types import SourceLimits

# XML says in many bytes what a text says in few; a book of a thousand pages has a tenth of this.
MOST_INFLATED = 64 * 1_048_576
# A thousand pages of text have a third of this; reading as many takes most of a minute.
_MOST_ELEMENTS = 1_000_000
# A book has a file for each chapter and picture.
_MOST_FILES = 20_000
# What Office writes around a document with a password, and what older versions wrote.
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = 1
# What damaged zips and XML raise, in the standard library and in what is built on it.
BROKEN = (
    zipfile.BadZipFile, zlib.error, struct.error, ParseError, ExpatError, ValueError, LookupError, TypeError,
    AttributeError, AssertionError, EOFError, OSError, RecursionError, NotImplementedError, OverflowError,
)  # fmt: skip


class Zip:
    """The files of one document."""

    def __init__(self, name: str, body: bytes, suffix: str) -> None:
        self._name = name
        if body.startswith(_COMPOUND):
            raise InputError(
                f"{quote_value(name)} is encrypted, or of an older Office; save it without a password as {suffix}"
            )
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(body))
        except BROKEN as error:
            raise InputError(f"{quote_value(name)} is no whole {suffix} file ({error}); save it anew") from error
        self.names = frozenset(self._zip.namelist())
        files = self._zip.infolist()
        if len(files) > _MOST_FILES:
            raise InputError(
                f"{quote_value(name)} has {len(files):,} files in it, more than {_MOST_FILES:,}; split it"
            )
        if any(one.flag_bits & _ENCRYPTED for one in files):
            raise InputError(f"{quote_value(name)} is encrypted; save it without a password")
        self._left, self._elements_left = MOST_INFLATED, _MOST_ELEMENTS

    def read(self, part: str) -> bytes:
        """Return one file; a zip says how long each is, and no more than that is inflated.

        Raises:
            InputError: it is not there, damaged, or all that was read is too much.
        """
        try:
            self._left -= self._zip.getinfo(part).file_size
            if self._left < 0:
                raise InputError(
                    f"{quote_value(self._name)} inflates to more than {MOST_INFLATED:,} bytes of text; split it"
                )
            return self._zip.read(part)
        except InputError:
            raise
        except BROKEN as error:
            raise InputError(
                f"{quote_value(self._name)} is damaged at {quote_value(part)} ({error}); save it anew"
            ) from error

    def read_xml(self, part: str) -> Element:
        """Return the tree of one file that is XML.

        Raises:
            InputError: as `read` and `check_xml`.
        """
        data = self.read(part)
        self.check_xml(part, data)
        return fromstring(data)  # noqa: S314 - what would make it unsafe is refused

    def check_xml(self, part: str, data: bytes) -> None:
        """Refuse XML that is damaged, or defines entities: a few lines of these can grow without end."""

        def refuse(*_: object) -> None:
            raise InputError(
                f"{quote_value(self._name)} defines an entity in {quote_value(part)}, which is refused; save it anew"
            )

        def count(*_: object) -> None:
            self._elements_left -= 1
            if self._elements_left < 0:
                raise InputError(f"{quote_value(self._name)} has more than {_MOST_ELEMENTS:,} XML elements; split it")

        parser = ParserCreate()
        parser.EntityDeclHandler = refuse
        parser.StartElementHandler = count
        try:
            parser.Parse(data, True)  # noqa: FBT003 - the only form it has
        except ExpatError as error:
            raise InputError(
                f"{quote_value(self._name)} is damaged at {quote_value(part)} ({error}); save it anew"
            ) from error


_DOCX_SUFFIX = ".docx"
_WORDS, _PROPERTIES = "word/document.xml", "docProps/core.xml"
_MODIFIED = "{http://purl.org/dc/terms/}modified"
# The date of the template that python-docx begins every document with: it says when that was made, not the document.
_TEMPLATE_DATE = "2013-12-23T23:15:00Z"
# The title stands above the headings.
_STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1:fresh",
        *(f"p[style-name='heading {rank}'] => h{min(rank + 1, 6)}:fresh" for rank in range(1, 10)),
        *(f"p[style-name='Heading {rank}'] => h{min(rank + 1, 6)}:fresh" for rank in range(1, 10)),
    ]
)


def read_docx(name: str, body: bytes, _limits: SourceLimits) -> Extract:
    """Return the words of a Word document: headings, paragraphs, lists, tables and notes, without pictures.

    Raises:
        MissingExtraError: mammoth is not installed.
        InputError: it is encrypted, damaged, or no Word document.
    """
    try:
        import mammoth  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise missing_extra(name, "a Word document", "mammoth") from error
    files = Zip(name, body, _DOCX_SUFFIX)
    if _WORDS not in files.names and "_rels/.rels" not in files.names:
        raise InputError(f"{quote_value(name)} holds no Word document; check the file, or rename it")
    for part in sorted(files.names):
        if part.endswith((".xml", ".rels")):
            files.check_xml(part, files.read(part))
    no_picture = mammoth.images.img_element(lambda _image: {"src": ""})
    try:
        made = mammoth.convert_to_html(io.BytesIO(body), style_map=_STYLES, convert_image=no_picture)
    except BROKEN as error:
        raise InputError(f"{quote_value(name)} cannot be read as a Word document ({error}); save it anew") from error
    text, blocks = read_html(made.value)
    # Few people mark the first row of a table as its header; a table without any is seldom long enough to be cut.
    headed = [replace(one, header=one.header or 1) if one.kind == "table" else one for one in blocks]
    return Extract(text, headed, _modified(files))


def _modified(files: Zip) -> datetime | None:
    """Return when the document was saved last, if it says so."""
    found = files.read_xml(_PROPERTIES).findtext(_MODIFIED) if _PROPERTIES in files.names else None
    return None if found == _TEMPLATE_DATE else parse_stated_time(found)


_EPUB_SUFFIX = ".epub"
_CONTAINER, _LOCKED = "META-INF/container.xml", "META-INF/encryption.xml"
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.-]{1,40})")


def read_epub(name: str, body: bytes, _limits: SourceLimits) -> Extract:
    """Return the words of a book, chapter after chapter, below its title.

    Raises:
        InputError: it is encrypted, damaged, or no book.
    """
    files = Zip(name, body, _EPUB_SUFFIX)
    if _CONTAINER not in files.names:
        raise InputError(f"{quote_value(name)} holds no book: it has no {_CONTAINER}; check the file, or rename it")
    at = next((_path("", one.get("full-path", "")) for one in _all(files.read_xml(_CONTAINER), "rootfile")), "")
    if at not in files.names:
        raise InputError(f"{quote_value(name)} does not say where its chapters are; save it anew")
    package = files.read_xml(at)
    title = " ".join((package.findtext(f".//{_DUBLIN_CORE}title") or "").split())
    sheet = TextBuilder()
    if title:
        sheet.head(title, 1)
    locked = _locked(files)
    for part in _chapters(package, at):
        if part in locked:
            raise InputError(f"{quote_value(name)} is protected against copying; use a copy without DRM")
        if part in files.names:
            _put_chapter(sheet, _decode(name, part, files.read(part)), title)
    said = sheet.blocks if any(one.kind != "heading" for one in sheet.blocks) else []
    return Extract(sheet.extract().text, said, parse_stated_time(package.findtext(f".//{_DUBLIN_CORE}date")))


def _all(tree: Element, tag: str) -> Iterator[Element]:
    """Yield the elements of a tag, whatever namespace they are in."""
    return tree.iterfind(f".//{{*}}{tag}")


def _path(base: str, link: str) -> str:
    """Return the name in the zip that a link leads to."""
    return unquote(urldefrag(urljoin(base, link)).url).lstrip("/")


def _chapters(package: Element, at: str) -> Iterator[str]:
    """Yield the files of the chapters as they are read; the table of contents only repeats their titles."""
    listed = {one.get("id"): one for one in _all(package, "item")}
    for reference in _all(package, "itemref"):
        item = listed.get(reference.get("idref"))
        if item is not None and "nav" not in item.get("properties", "").split():
            yield _path(at, item.get("href", ""))


def _locked(files: Zip) -> frozenset[str]:
    """Return the files that cannot be read as they stand; fonts often are such."""
    if _LOCKED not in files.names:
        return frozenset()
    return frozenset(_path("", one.get("URI", "")) for one in _all(files.read_xml(_LOCKED), "CipherReference"))


def _decode(name: str, part: str, page: bytes) -> str:
    marked = page.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    declared = _DECLARED.match(page)
    encoding = "utf-16" if marked else declared[1].decode("ascii") if declared else "utf-8-sig"
    try:
        return page.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise InputError(f"{quote_value(name)} is not {encoding} in {quote_value(part)}; save it anew") from error


def _put_chapter(sheet: TextBuilder, markup: str, title: str) -> None:
    """Add a chapter below the title of the book, which many chapters have again."""
    text, blocks = read_html(markup.replace("\x00", "\ufffd"))
    kept = [one for one in blocks if one.kind != "heading" or one.title.casefold() != title.casefold()]
    sheet.take(text, [one.below(1) if title else one for one in kept])
