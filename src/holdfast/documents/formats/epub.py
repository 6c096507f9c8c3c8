"""EPUB books → text and blocks: the chapters in reading order, each a page of HTML."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from urllib.parse import unquote, urldefrag, urljoin
from xml.etree.ElementTree import Element

from holdfast.documents.formats.html import read_html
from holdfast.documents.formats.zipped import Zip
from holdfast.documents.pieces import Extract, Sheet
from holdfast.errors import InputError, shown
from holdfast.messages.checks import stated_time
from holdfast.types import SourceLimits

_SUFFIX = ".epub"
_CONTAINER, _LOCKED = "META-INF/container.xml", "META-INF/encryption.xml"
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.-]{1,40})")


def read_epub(name: str, body: bytes, _limits: SourceLimits) -> Extract:
    """Return the words of a book, chapter after chapter, below its title.

    Raises:
        InputError: it is encrypted, damaged, or no book.
    """
    files = Zip(name, body, _SUFFIX)
    if _CONTAINER not in files.names:
        raise InputError(f"{shown(name)} holds no book: it has no {_CONTAINER}; check the file, or rename it")
    at = next((_path("", one.get("full-path", "")) for one in _all(files.read_xml(_CONTAINER), "rootfile")), "")
    if at not in files.names:
        raise InputError(f"{shown(name)} does not say where its chapters are; save it anew")
    package = files.read_xml(at)
    title = " ".join((package.findtext(f".//{_DUBLIN_CORE}title") or "").split())
    sheet = Sheet()
    if title:
        sheet.head(title, 1)
    locked = _locked(files)
    for part in _chapters(package, at):
        if part in locked:
            raise InputError(f"{shown(name)} is protected against copying; use a copy without DRM")
        if part in files.names:
            _put_chapter(sheet, _decode(name, part, files.read(part)), title)
    said = sheet.blocks if any(one.kind != "heading" for one in sheet.blocks) else []
    return Extract(sheet.extract().text, said, stated_time(package.findtext(f".//{_DUBLIN_CORE}date")))


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
        raise InputError(f"{shown(name)} is not {encoding} in {shown(part)}; save it anew") from error


def _put_chapter(sheet: Sheet, markup: str, title: str) -> None:
    """Add a chapter below the title of the book, which many chapters have again."""
    text, blocks = read_html(markup.replace("\x00", "\ufffd"))
    kept = [one for one in blocks if one.kind != "heading" or one.title.casefold() != title.casefold()]
    sheet.take(text, [one.below(1) if title else one for one in kept])
