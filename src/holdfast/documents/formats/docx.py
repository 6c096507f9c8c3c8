"""Word documents (.docx) → text and blocks, through mammoth, which knows what a heading and a list is in them."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import datetime

from holdfast.documents.formats.html import read_html
from holdfast.documents.formats.zipped import BROKEN, Zip
from holdfast.documents.pieces import Extract
from holdfast.errors import InputError, shown
from holdfast.messages.checks import lacking_extra, stated_time
from holdfast.types import SourceLimits

_SUFFIX = ".docx"
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
        raise lacking_extra(name, "a Word document", "mammoth") from error
    files = Zip(name, body, _SUFFIX)
    if _WORDS not in files.names and "_rels/.rels" not in files.names:
        raise InputError(f"{shown(name)} holds no Word document; check the file, or rename it")
    for part in sorted(files.names):
        if part.endswith((".xml", ".rels")):
            files.check_xml(part, files.read(part))
    no_picture = mammoth.images.img_element(lambda _image: {"src": ""})
    try:
        made = mammoth.convert_to_html(io.BytesIO(body), style_map=_STYLES, convert_image=no_picture)
    except BROKEN as error:
        raise InputError(f"{shown(name)} cannot be read as a Word document ({error}); save it anew") from error
    text, blocks = read_html(made.value)
    # Few people mark the first row of a table as its header; a table without any is seldom long enough to be cut.
    headed = [replace(one, header=one.header or 1) if one.kind == "table" else one for one in blocks]
    return Extract(text, headed, _modified(files))


def _modified(files: Zip) -> datetime | None:
    """Return when the document was saved last, if it says so."""
    found = files.read_xml(_PROPERTIES).findtext(_MODIFIED) if _PROPERTIES in files.names else None
    return None if found == _TEMPLATE_DATE else stated_time(found)
