"""E-mail (.eml, .mbox) → messages: who wrote what to whom, when; attachments are named and not read.

A message is a section of its subject and of its sender and day. What it quotes is a quote; in a mailbox, what it
quotes of another message of the same mailbox is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from email import message_from_bytes, policy
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime

from holdfast.documents.formats.html import read_html
from holdfast.documents.formats.plain import read_plain
from holdfast.documents.pieces import Block, Extract, Paragraph, TextBuilder, lines_of, strip_span
from holdfast.errors import InputError, quote_value
from holdfast.messages.checks import MAX_NAME, parse_stated_time
from holdfast.text.words import regex
from holdfast.types import SourceLimits

# The line before each message of a mailbox, behind a blank one: "From ana@example.org Mon Mar  2 09:00:00 2026".
_FROM_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\d\d:\d\d[^\n]*\d{4}[^\n]*\n")
# What a mailbox writes for a line that begins like that one.
_ESCAPED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_QUOTED = regex(r"[ \t]*>[> \t]*")
_SHOWN_HEADERS = ("From", "To", "Cc", "Date")
# A paragraph below this, before a quote, only says who has written.
_GREETING = 40
_NO_SUBJECT = "(no subject)"
# A message inside a message inside …; what is nested deeper is named as an attachment.
_MOST_PARTS = 1_000
_ENCRYPTED = ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime")


def read_mail(name: str, body: bytes, _limits: SourceLimits) -> Extract:
    """Return what one message says.

    Raises:
        InputError: it is no message, or encrypted.
    """
    if b"\x00" in body:
        raise InputError(
            f"{quote_value(name)} holds a NUL byte at {body.index(0)}, so it is no e-mail; check the file"
        )
    message = _message(name, body)
    if not message.keys():
        raise InputError(f"{quote_value(name)} has no header, so it is no e-mail; check the file, or name it .txt")
    if message.get_content_type() in _ENCRYPTED:
        raise InputError(f"{quote_value(name)} is encrypted; save it from your mail program after opening it")
    return _extract(name, [message])


def read_mailbox(name: str, body: bytes, _limits: SourceLimits) -> Extract:
    """Return what the messages of a mailbox say, in their order; a damaged one says what is left of it.

    Raises:
        InputError: it is no mailbox.
    """
    starts = [found.span() for found in _FROM_LINE.finditer(body)]
    if not starts or starts[0][0]:
        raise InputError(
            f"{quote_value(name)} is no mailbox: no 'From ' line begins it; check the file, or name it .eml"
        )
    ends = [start for start, _ in starts[1:]] + [len(body)]
    raw = (body[begin:end] for (_, begin), end in zip(starts, ends, strict=True))
    return _extract(name, [_message(name, _ESCAPED_FROM.sub(rb"\1", one)) for one in raw])


def _message(name: str, body: bytes) -> Message:
    try:
        return message_from_bytes(body, policy=policy.compat32)
    except RecursionError as error:
        raise _too_deep(name) from error


def _extract(name: str, messages: list[Message]) -> Extract:
    sheet = TextBuilder()
    said: set[str] = set()
    try:
        for message in messages:
            _put_message(sheet, message, said)
    except RecursionError as error:
        raise _too_deep(name) from error
    return sheet.extract()


def _too_deep(name: str) -> InputError:
    return InputError(f"{quote_value(name)} holds messages inside of messages too deep to read; save the inner ones")


def _put_message(sheet: TextBuilder, message: Message, said: set[str]) -> None:
    at = _date(message)
    by = _senders(message)[:MAX_NAME]
    sheet.head(_header(message, "Subject") or _NO_SUBJECT, 1)
    sheet.head(", ".join(filter(None, (by, f"{at:%Y-%m-%d}" if at else ""))) or "(no sender)", 2, at, by)
    lines = [f"{name}: {value}" for name in _SHOWN_HEADERS if (value := _header(message, name))]
    words, attached = _contents(message)
    if attached:
        lines.append(f"Attachments: {', '.join(attached)}")
    if lines:
        sheet.blocks.append(Block("record", (Paragraph(tuple(map(sheet.write, lines)), literal=True),)))
    for is_html, text in words:
        sheet.take(*(read_html(text) if is_html else (text, _plain_blocks(text, said))))


# ----------------------------------------------------------------------------------------------------------- headers


def _header(message: Message, name: str) -> str:
    """Return a header as a line; nothing when it is not there."""
    return _readable(str(message.get(name) or ""))


def _readable(value: str) -> str:
    """Return what a header or a file's name says; one that is badly encoded, as it is written."""
    try:
        text = str(make_header(decode_header(value)))
    except (MessageError, LookupError, ValueError):
        text = value
    return " ".join(_clean(text).split())


def _senders(message: Message) -> str:
    """Return the names of those who wrote a message; an address where there is no name."""
    given = _header(message, "From")
    try:
        found = getaddresses([given])
    except (RecursionError, ValueError, IndexError):  # no address, but something that looks like many of them
        return given
    return ", ".join(name or address for name, address in found if name or address)


def _date(message: Message) -> datetime | None:
    try:
        return parse_stated_time(parsedate_to_datetime(_header(message, "Date")))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


# -------------------------------------------------------------------------------------------------------------- body


def _contents(message: Message) -> tuple[list[tuple[bool, str]], list[str]]:
    """Return the texts that a reader is shown, each with whether it is HTML, and the names of what is attached."""
    texts: list[tuple[bool, str]] = []
    attached: list[str] = []
    for part in _leaves(message, [0]):
        kind, file = part.get_content_type(), part.get_filename()
        if file or part.get_content_disposition() == "attachment" or kind not in ("text/plain", "text/html"):
            attached.append(_readable(file or "") or kind)
        else:
            texts.append((kind == "text/html", _decoded(part)))
    return texts, attached


def _leaves(part: Message, seen: list[int]) -> Iterator[Message]:
    """Yield the parts that are shown: of alternatives, the plain text before the page, and either before the rest."""
    seen[0] += 1
    inner = part.get_payload() if part.get_content_maintype() == "multipart" else None
    if not isinstance(inner, list) or seen[0] > _MOST_PARTS:
        yield part
        return
    parts = [one for one in inner if isinstance(one, Message)]
    if part.get_content_type() == "multipart/alternative" and parts:
        parts = [min(parts, key=_preference)]
    for one in parts:
        yield from _leaves(one, seen)


def _preference(part: Message) -> int:
    kinds = ("text/plain", "text/html", "multipart/related", "multipart/mixed")
    kind = part.get_content_type()
    return kinds.index(kind) if kind in kinds else len(kinds)


def _decoded(part: Message) -> str:
    """Return the text of a part. What its charset cannot be is shown as mail programs do: with marks in its place."""
    raw = part.get_payload(decode=True)
    data = raw if isinstance(raw, bytes) else b""
    try:
        text = data.decode(part.get_content_charset() or "utf-8", "replace")
    except (LookupError, ValueError):  # no such charset, or one that is none
        text = data.decode("utf-8", "replace")
    return _clean(text.replace("\r\n", "\n"))


def _clean(text: str) -> str:
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _plain_blocks(text: str, said: set[str]) -> list[Block]:
    """Return the blocks of a plain body; lines behind ">" are quotes, of which each is taken once."""
    blocks: list[Block] = []
    for quoted, first, end in _runs(text):
        if not quoted:
            found = list(read_plain(text, start=first, end=end, headings=False))
            said |= {_words(text, one) for one in found}
            blocks += found
            continue
        # "On Sunday, Ana wrote:" says whose words these are.
        lead = blocks.pop() if blocks and _words(text, blocks[-1]).endswith(":") else None
        quotes = list(_quotes(text, first, end, said))
        if quotes and lead is not None:
            quotes[0] = replace(quotes[0], leaves=(*lead.leaves, *quotes[0].leaves))
        blocks = _with_greetings(text, blocks) + quotes
    return blocks


def _with_greetings(text: str, blocks: list[Block]) -> list[Block]:
    """Return blocks with a short last one, "Best wishes, Berta", joined to the paragraph before it."""
    if [one.kind for one in blocks[-2:]] != ["paragraph"] * 2 or len(_words(text, blocks[-1])) >= _GREETING:
        return blocks
    return [*blocks[:-2], replace(blocks[-2], leaves=(*blocks[-2].leaves, *blocks[-1].leaves))]


def _runs(text: str) -> Iterator[tuple[bool, int, int]]:
    """Yield the runs of lines that are quoted, and of those that are not, with their places."""
    run: tuple[bool, int, int] | None = None
    for start, end in lines_of(text):
        quoted = _QUOTED.match(text, start, end) is not None
        if run is not None and (run[0] == quoted):
            run = (quoted, run[1], end)
            continue
        if run is not None:
            yield run
        run = (quoted, start, end)
    if run is not None:
        yield run


def _quotes(text: str, first: int, end: int, said: set[str]) -> Iterator[Block]:
    """Yield the paragraphs of a quote, without its marks, that nobody has said before."""
    paragraph: list[tuple[int, int]] = []
    for start, stop in [*((first + a, first + b) for a, b in lines_of(text[first:end])), (end, end)]:
        mark = _QUOTED.match(text, start, stop)
        place = strip_span(text, mark.end() if mark else start, stop)
        if place[0] < place[1]:
            paragraph.append(place)
        elif paragraph:
            block = Block("quote", (Paragraph(tuple(paragraph)),))
            if (words := _words(text, block)) not in said:
                said.add(words)
                yield block
            paragraph = []


def _words(text: str, block: Block) -> str:
    return " ".join(" ".join(text[a:b] for leaf in block.leaves for a, b in leaf.lines).split())
