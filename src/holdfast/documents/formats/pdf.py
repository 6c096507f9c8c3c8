"""PDF → the plain text of its pages, each a section."""

from __future__ import annotations

import io
import logging
import struct
import zlib
from collections.abc import Iterator

from holdfast.documents.formats.plain import read_plain
from holdfast.documents.pieces import Block, Extract, Paragraph
from holdfast.errors import InputError, quote_value
from holdfast.messages.checks import missing_extra
from holdfast.types import SourceLimits

# pypdf documents that a damaged file may raise more than its own errors. These are the ones that damaged data raises;
# found by changing bytes of good files.
_BROKEN = (
    ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, EOFError, RecursionError,
    NotImplementedError, struct.error, zlib.error,
)  # fmt: skip
_PAGE_BREAK = "\n\n"
# A damaged file is our error to report, once; the library would also write to standard error.
logging.getLogger("pypdf").addHandler(logging.NullHandler())


def read_pdf(name: str, body: bytes, limits: SourceLimits) -> Extract:
    """Return the words of a PDF, page after page, and the blocks of them.

    Raises:
        MissingExtraError: pypdf is not installed.
        InputError: it is encrypted, damaged, too long, or holds pictures of words only.
    """
    try:
        from pypdf.errors import DependencyError, DeprecationError, PyPdfError  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise missing_extra(name, "a PDF", "pypdf") from error
    try:
        pages = list(_pages(name, body, limits))
    except InputError:
        raise
    except (PyPdfError, DependencyError, DeprecationError, *_BROKEN) as error:
        raise InputError(
            f"{quote_value(name)} cannot be read as a PDF ({quote_value(str(error))}); save it anew"
        ) from error
    if not any(page.strip() for page in pages):
        raise InputError(
            f"{quote_value(name)} has {len(pages)} pages and no text; if they are scans, run OCR over them first"
        )
    text = _PAGE_BREAK.join(pages)
    return Extract(text, list(_page_blocks(text, pages)))


def _pages(name: str, body: bytes, limits: SourceLimits) -> Iterator[str]:
    from pypdf import PdfReader  # noqa: PLC0415 - an extra

    reader = PdfReader(io.BytesIO(body))
    if reader.is_encrypted:
        raise InputError(f"{quote_value(name)} is encrypted; save it without a password")
    if len(reader.pages) > limits.max_pages:
        raise InputError(
            f"{quote_value(name)} has {len(reader.pages):,} pages, more than {limits.max_pages:,}; split it"
        )
    for page in reader.pages:
        # A damaged font table yields characters that no text may hold.
        yield page.extract_text().replace("\x00", "�").encode("utf-8", "replace").decode("utf-8")


def _page_blocks(text: str, pages: list[str]) -> Iterator[Block]:
    start = 0
    for number, page in enumerate(pages, start=1):
        yield Block("heading", (Paragraph(((start, start),)),), level=1, title=f"Page {number}", page=number)
        # Running heads are often in capitals, so capitals make no heading here.
        yield from read_plain(text, start=start, end=start + len(page), headings=False)
        start += len(page) + len(_PAGE_BREAK)
