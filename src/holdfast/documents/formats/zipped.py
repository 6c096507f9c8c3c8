"""Documents that are a zip of XML files: opened with limits, so that a small file cannot fill the memory."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from xml.etree.ElementTree import Element, ParseError, fromstring
from xml.parsers.expat import ExpatError, ParserCreate

from holdfast.errors import InputError, shown

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
                f"{shown(name)} is encrypted, or of an older Office; save it without a password as {suffix}"
            )
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(body))
        except BROKEN as error:
            raise InputError(f"{shown(name)} is no whole {suffix} file ({error}); save it anew") from error
        self.names = frozenset(self._zip.namelist())
        files = self._zip.infolist()
        if len(files) > _MOST_FILES:
            raise InputError(f"{shown(name)} has {len(files):,} files in it, more than {_MOST_FILES:,}; split it")
        if any(one.flag_bits & _ENCRYPTED for one in files):
            raise InputError(f"{shown(name)} is encrypted; save it without a password")
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
                    f"{shown(self._name)} inflates to more than {MOST_INFLATED:,} bytes of text; split it"
                )
            return self._zip.read(part)
        except InputError:
            raise
        except BROKEN as error:
            raise InputError(f"{shown(self._name)} is damaged at {shown(part)} ({error}); save it anew") from error

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
                f"{shown(self._name)} defines an entity in {shown(part)}, which is refused; save it anew"
            )

        def count(*_: object) -> None:
            self._elements_left -= 1
            if self._elements_left < 0:
                raise InputError(f"{shown(self._name)} has more than {_MOST_ELEMENTS:,} XML elements; split it")

        parser = ParserCreate()
        parser.EntityDeclHandler = refuse
        parser.StartElementHandler = count
        try:
            parser.Parse(data, True)  # noqa: FBT003 - the only form it has
        except ExpatError as error:
            raise InputError(f"{shown(self._name)} is damaged at {shown(part)} ({error}); save it anew") from error
