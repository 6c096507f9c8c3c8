"""Bytes → what kind of source they are, and their text. What cannot be read is refused, with a remedy."""

from __future__ import annotations

import codecs
import re

from holdfast.errors import InputError, shown
from holdfast.types import MediaType

_BY_SUFFIX: dict[str, MediaType] = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "mdown": "text/markdown",
    "txt": "text/plain",
    "text": "text/plain",
    "html": "text/html",
    "htm": "text/html",
    "xhtml": "text/html",
    "pdf": "application/pdf",
    "jsonl": "application/jsonl",
    "ndjson": "application/jsonl",
    "json": "application/json",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}
# What other programs write: bytes of these are no text, however they begin.
_NO_TEXT = frozenset(
    "7z avi bin bmp bz2 class db dll doc docm docx dylib epub exe flac gif gz heic ico jar jpeg jpg key mov mp3 mp4 "
    "numbers odp ods odt ogg otf pages parquet png ppt pptm pptx psd pyc rar rtf so sqlite tar tif tiff ttf wav webm "
    "webp woff woff2 xls xlsm xlsx xz zip zst".split()
)
# A PDF's mark may follow a few bytes of something else.
_PDF_MARK, _PDF_MARK_WITHIN = b"%PDF-", 1024
_HTML = re.compile(rb"\s*(?:<!--.{0,400}?-->\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
# The longer mark first: UTF-32's little-endian one begins with UTF-16's.
_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_REMEDY = "save the file as UTF-8"


def kind_of(name: str, first_bytes: bytes) -> MediaType:
    """Return the media type of a source by its name's suffix and by how it begins.

    A name whose suffix is none of ours is told by its content: PDF, HTML, or plain text.

    Raises:
        InputError: the content is not what the suffix says, or is no text at all.
    """
    _, dot, suffix = name.rpartition("/")[2].rpartition(".")
    named = _BY_SUFFIX.get(suffix.lower()) if dot else None
    is_pdf = _PDF_MARK in first_bytes[:_PDF_MARK_WITHIN]
    if named == "application/pdf" or (named is None and is_pdf):
        if not is_pdf:
            raise InputError(f"{shown(name)} is not a PDF: it has no %PDF- mark; check the file, or rename it")
        return "application/pdf"
    encoding, mark = _encoding(name, first_bytes)
    if first_bytes.startswith(_PDF_MARK):
        raise InputError(f"{shown(name)} is a PDF by its content and {named} by its name; rename it to .pdf")
    if encoding == "utf-8" and b"\x00" in first_bytes:
        at = first_bytes.index(0)
        raise InputError(f"{shown(name)} holds a NUL byte at {at}, so it is no text; {_REMEDY}, or leave it out")
    if named is not None:
        return named
    return "text/html" if _HTML.match(first_bytes[mark:]) else "text/plain"


def refuse_foreign(name: str) -> None:
    """Refuse a file that is another program's by its name. A text may be called so: whoever gives it has read it.

    Raises:
        InputError: its suffix is that of a format that is no text.
    """
    _, dot, suffix = name.rpartition(".")
    if dot and suffix.lower() in _NO_TEXT:
        raise InputError(f"{shown(name)} is no text by its name; export it as text, Markdown, HTML or PDF")


def decode(name: str, body: bytes) -> str:
    """Return the text of UTF-8, or of UTF-16 with a byte order mark; the mark is no part of it.

    Raises:
        InputError: it is another encoding, damaged, or holds a NUL.
    """
    encoding, mark = _encoding(name, body)
    try:
        text = body[mark:].decode(encoding)
    except UnicodeDecodeError as error:
        at = error.start + mark
        raise InputError(
            f"{shown(name)} is not {encoding.upper()}: byte 0x{body[at]:02x} at {at}; {_REMEDY}"
        ) from error
    if "\x00" in text:
        raise InputError(f"{shown(name)} holds a NUL character at {text.index(chr(0))}; remove it, or {_REMEDY}")
    return text


def _encoding(name: str, body: bytes) -> tuple[str, int]:
    """Return the encoding that the first bytes tell, and the length of the mark."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            if encoding == "utf-32":
                raise InputError(f"{shown(name)} is UTF-32 by its byte order mark; {_REMEDY}")
            return encoding, len(mark)
    return "utf-8", 0
