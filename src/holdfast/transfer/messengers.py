"""What messengers export: WhatsApp (text), Telegram (result.json) and Slack (a folder of days)."""

from __future__ import annotations

import html
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import PurePosixPath

from holdfast.errors import InputError
from holdfast.transfer.assistants import parse_time
from holdfast.types import JSON, digest
from holdfast.types.outcomes import ImportedMessage, ImportNotes, get_member
from holdfast.values import dataclass

Files = Mapping[str, Callable[[], bytes]]

# ----------------------------------------------------------------------------------------------------- WhatsApp

# Marks of direction that WhatsApp puts around names and attachments, and its narrow spaces.
_MARKS = re.compile(r"[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_DATE = r"(?P<a>\d{1,4})(?P<sep>[./\-])(?P<b>\d{1,2})(?P=sep)(?P<c>\d{2,4})"
_CLOCK = (
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?\s*"
    r"(?P<half>[ap]\.?\s?m\.?)?"
)
# [31.12.21, 23:59:59] Name: words (iOS), or 31/12/2021, 23:59 - Name: words (Android); Finns write "klo" between.
_LINE = re.compile(
    rf"^(?P<open>\[)?{_DATE},?\s+(?:klo\s+|at\s+)?{_CLOCK}(?(open)\]\s*|\s+[-–]\s+)(?P<rest>.*)$", re.IGNORECASE
)
_SPEAKER = re.compile(r"^(?P<who>[^:\n]{1,80}?):(?:\s(?P<words>.*))?$", re.DOTALL)
# What stands behind a name and the app's own mark was written by the app, on an iPhone.
_APPS_OWN = re.compile(r":\s\u200e")
# A picture or recording by the name that the app gave it: "IMG-20240102-WA0003.jpg (file attached)" in any language,
# or "<attached: 00000012-PHOTO-2024-01-02-10-11-12.jpg>". A document that a person named tells something.
_ATTACHED = re.compile(
    r"<?[^<>\n]{0,40}?(?:(?:IMG|VID|PTT|AUD|STK|GIF)-\d{8}-WA\d+|\d{8}-(?:PHOTO|VIDEO|AUDIO|STICKER|GIF)-[\d-]+)"
    r"\.\w{2,5}(?:>|\s\([^()\n]{1,40}\))"
)
# Longer than any line of the app: no text of a person is compared at length.
_LONGEST_OF_APP = 600
_LEAST_LINES = 2
_LAST_SHORT_YEAR = 999
_NO_ZONE = "times are read as UTC: the file names no zone; give zone (--zone) to say where it was written"


@dataclass(frozen=True, slots=True)
class _ChatLine:
    line: int
    numbers: tuple[int, int, int]
    clock: tuple[int, int, int]
    half: str
    dotted: bool
    rest: str
    marked: bool


def is_whatsapp(text: str) -> bool:
    """Return whether lines begin as those of a chat do."""
    lines = [line for line in text.split("\n", 40)[:40] if line.strip()]
    return bool(lines) and sum(_read_line(1, line) is not None for line in lines) >= min(_LEAST_LINES, len(lines))


def _read_line(number: int, line: str) -> _ChatLine | None:
    clean = _MARKS.sub("", line).replace("\u202f", " ").replace("\xa0", " ").rstrip("\r")
    found = _LINE.match(clean)
    if found is None:
        return None
    a, b, c = int(found["a"]), int(found["b"]), int(found["c"])
    clock = (int(found["hour"]), int(found["minute"]), int(found["second"] or 0))
    marked = _APPS_OWN.search(line) is not None
    half = (found["half"] or "").lower()[:1]
    return _ChatLine(number, (a, b, c), clock, half, found["sep"] == ".", found["rest"], marked)


@cache
def _app_lines(kind: str) -> re.Pattern[str]:
    """Return a pattern of what the app writes by itself, in every language that `whatsapp.toml` knows."""
    text = (resources.files("holdfast.transfer") / "whatsapp.toml").read_text(encoding="utf-8")
    known = [one for language in tomllib.loads(text).values() for one in language[kind]]
    escaped = (re.escape(one).replace("'", "['\u2019]") for one in known)
    # A name at the beginning holds no colon: behind one, somebody speaks.
    patterns = (re.sub(r"^\\\*", "[^:]*", one).replace(r"\*", ".*") for one in escaped)
    return re.compile("|".join(patterns), re.IGNORECASE)


def _is_of_app(kind: str, text: str) -> bool:
    return len(text) <= _LONGEST_OF_APP and _app_lines(kind).fullmatch(text.strip(" .<>")) is not None


def _why_left_out(entry: _ChatLine, words: str, *, spoken: bool) -> str:
    """Return why a line is no message of a person; empty when it is one."""
    event = _is_of_app("event", entry.rest) or (entry.marked and _is_of_app("event", words))
    if not spoken or event or _is_of_app("notice", words):
        return "system message of the app"
    if _is_of_app("left_out", words) or _ATTACHED.fullmatch(words):
        return "it is a picture, recording or file that was left out"
    if _is_of_app("deleted", words):
        return "it was deleted"
    return "" if words else "it has no words"


def read_whatsapp(text: str, session: str, zone: tzinfo | None, notes: ImportNotes) -> Iterator[ImportedMessage]:
    """Yield the messages of a chat; a message may have many lines. Lines of the app itself are noted."""
    entries: list[_ChatLine] = []
    for number, line in enumerate(text.split("\n"), start=1):
        entry = _read_line(number, line)
        if entry is not None:
            entries.append(entry)
        elif entries:
            more = _MARKS.sub("", line.rstrip("\r"))
            entries[-1] = replace(entries[-1], rest=f"{entries[-1].rest}\n{more}")
        elif line.strip():
            notes.skip("it comes before the first message", f"line {number}")
    order = _date_order(entries, notes)
    if zone is None and entries:
        notes.warn(_NO_ZONE)
    seen: Counter[str] = Counter()
    called = re.sub(r"^WhatsApp Chat (?:with|-) ", "", session)
    for one in entries:
        yield from _whatsapp_message(one, order, called, zone or UTC, seen, notes)


def _whatsapp_message(
    entry: _ChatLine, order: str, session: str, zone: tzinfo, seen: Counter[str], notes: ImportNotes
) -> Iterator[ImportedMessage]:
    where, rest = f"line {entry.line}", entry.rest.rstrip()
    at = _moment(entry, order, zone)
    said = _SPEAKER.match(rest)
    words = (said["words"] or "").strip() if said else ""
    reason = _why_left_out(entry, words, spoken=said is not None)
    if at is None:
        reason = "its date or time does not exist"
    if reason or said is None or at is None:
        notes.skip(reason, where)
        return
    who = said["who"].strip().lstrip("~").strip()
    # Known by its words and its minute, and how often both came before: a longer export begins the same.
    key = digest("whatsapp", who, at.replace(tzinfo=None).isoformat(), words)
    fields = {"role": "user", "speaker": who, "content": words, "at": at, "message_id": f"wa-{key}-{seen[key]}"}
    seen[key] += 1
    yield ImportedMessage(fields, where, session)


def _moment(entry: _ChatLine, order: str, zone: tzinfo) -> datetime | None:
    named = dict(zip(order, entry.numbers, strict=True))
    hour = entry.clock[0]
    if entry.half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if entry.half == "p" else 0)
    year = named["y"] + (2000 if named["y"] < 100 else 0)
    try:
        return datetime(year, named["m"], named["d"], hour, *entry.clock[1:], tzinfo=zone)
    except ValueError:
        return None


def _date_order(entries: Sequence[_ChatLine], notes: ImportNotes) -> str:
    """Return in which order year, month and day stand: the one in which dates exist and time does not run back."""
    if not entries:
        return "dmy"
    if 2 * sum(one.numbers[0] > _LAST_SHORT_YEAR for one in entries) > len(entries):
        return "ymd"
    fitting = {order: sum(_moment(one, order, UTC) is not None for one in entries) for order in ("dmy", "mdy")}
    best = [order for order in fitting if fitting[order] == max(fitting.values())]
    if len(best) > 1:
        back = {order: _steps_back(entries, order) for order in best}
        best = [order for order in best if back[order] == min(back.values())]
    if len(best) == 1:
        return best[0]
    if all(one.dotted for one in entries):  # whoever writes dots puts the day first
        return "dmy"
    order = "mdy" if any(one.half for one in entries) else "dmy"
    read = "month, day, year" if order == "mdy" else "day, month, year"
    notes.warn(f"dates do not tell whether the day or the month comes first; they are read as {read}")
    return order


def _steps_back(entries: Sequence[_ChatLine], order: str) -> int:
    moments = [moment for one in entries if (moment := _moment(one, order, UTC)) is not None]
    return sum(later < earlier for earlier, later in pairwise(moments))


# ----------------------------------------------------------------------------------------------------- Telegram


def is_telegram(value: JSON) -> bool:
    """Return whether it is a chat of numbered messages, or a list of chats."""
    if isinstance(get_member(get_member(value, "chats"), "list"), list):
        return True
    messages = get_member(value, "messages")
    first = next((one for one in messages if isinstance(one, Mapping)), {}) if isinstance(messages, list) else {}
    return get_member(first, "type") in ("message", "service") and isinstance(get_member(first, "id"), int)


def read_telegram(value: JSON, zone: tzinfo | None, notes: ImportNotes) -> Iterator[ImportedMessage]:
    """Yield the messages of one chat, or of all; each chat is a session."""
    chats = get_member(get_member(value, "chats"), "list") or [value]
    left = get_member(get_member(value, "left_chats"), "list") or []
    for number, chat in enumerate((*chats, *left)):
        messages = get_member(chat, "messages")
        session = str(get_member(chat, "name") or get_member(chat, "id") or f"telegram-{number}")
        if not isinstance(messages, list):
            notes.skip("it is no chat: it has no messages", f"chat {number}")
            continue
        for place, message in enumerate(messages):
            where = f"{session}, message {get_member(message, 'id') or place}"
            fields = _telegram_message(chat, message, zone, notes, where)
            if fields is not None:
                yield ImportedMessage(fields, where, session)


def _telegram_message(
    chat: JSON, message: JSON, zone: tzinfo | None, notes: ImportNotes, where: str
) -> dict[str, JSON] | None:
    if get_member(message, "type") == "service":
        notes.skip("system message of the app", where)
        return None
    words = _telegram_words(message)
    at = parse_time(get_member(message, "date_unixtime"))
    if at is None and (at := _local(get_member(message, "date"), zone)) is not None and zone is None:
        notes.warn(_NO_ZONE)
    if not words or not isinstance(get_member(message, "id"), int):
        notes.skip("it has no words" if isinstance(message, Mapping) else "it is no message", where)
        return None
    who = get_member(message, "from") or get_member(message, "author") or get_member(message, "from_id")
    quoted = get_member(message, "forwarded_from")
    fields: dict[str, JSON] = {
        "role": "user",
        "content": f"(forwarded from {quoted}) {words}" if isinstance(quoted, str) else words,
        "message_id": f"tg-{get_member(chat, 'id') or get_member(chat, 'name')}-{get_member(message, 'id')}",
    }
    if isinstance(who, str) and who.strip():
        fields["speaker"] = who
    if at is not None:
        fields["at"] = at
    return fields


def _telegram_words(message: JSON) -> str:
    text = get_member(message, "text")
    parts = text if isinstance(text, list) else [text]
    words = "".join(one if isinstance(one, str) else str(get_member(one, "text") or "") for one in parts if one)
    if not words.strip() and isinstance(emoji := get_member(message, "sticker_emoji"), str):
        words = f"[sticker {emoji}]"
    if not words.strip() and isinstance(poll := get_member(get_member(message, "poll"), "question"), str):
        words = f"[poll] {poll}"
    return words.strip()


def _local(text: object, zone: tzinfo | None) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)).replace(tzinfo=zone or UTC)
    except ValueError:
        return None


# -------------------------------------------------------------------------------------------------------- Slack

_DAY = re.compile(r"^\d{4}-\d{2}-\d{2}\.json$")
_PEOPLE = ("users.json", "org_users.json")
_CHANNELS = ("channels.json", "groups.json", "mpims.json", "dms.json")
# What is said by somebody although it has a subtype; the others tell who came, went or changed a topic.
_SAID = ("bot_message", "thread_broadcast", "me_message", "file_share", "file_comment", "reply_broadcast")
_REFERENCE = re.compile(r"<(?P<kind>[@#!]?)(?P<name>[^>|]+)(?:\|(?P<label>[^>]*))?>")


def is_slack(files: Files) -> bool:
    """Return whether there are folders of days, and a list of channels or people."""
    names = [PurePosixPath(name) for name in files]
    days = any(_DAY.match(one.name) and len(one.parts) > 1 for one in names)
    return days and any(one.name in (*_PEOPLE, *_CHANNELS) for one in names)


def read_slack(files: Files, notes: ImportNotes) -> Iterator[ImportedMessage]:
    """Yield the messages of every channel, in the order of time; each channel is a session."""
    people = _people(files, notes)
    channels = _channels(files, people, notes)
    days: dict[str, list[str]] = {}
    for name in files:
        path = PurePosixPath(name)
        if _DAY.match(path.name) and len(path.parts) > 1:
            days.setdefault(path.parts[-2], []).append(name)
    for folder, names in sorted(days.items()):
        session = channels.get(folder, folder)
        rows = [(_stamp(row), name, row) for name in sorted(names) for row in _slack_rows(files, name, notes)]
        for _, name, row in sorted(rows, key=lambda one: one[0]):
            fields = _slack_message(row, folder, people, channels, notes, name)
            if fields is not None:
                yield ImportedMessage(fields, f"{name}, ts {get_member(row, 'ts')}", session)


def _slack_rows(files: Files, name: str, notes: ImportNotes) -> Sequence[JSON]:
    try:
        rows = json.loads(files[name]().decode("utf-8-sig"))
    except (ValueError, RecursionError, InputError) as error:
        notes.skip("the file cannot be read as JSON", f"{name}: {error}"[:200])
        notes.cut(f"{name} is broken; its messages are missing")
        return ()
    if not isinstance(rows, list):
        notes.skip("the file is no list of messages", name)
        return ()
    return rows


def _people(files: Files, notes: ImportNotes) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in files:
        if PurePosixPath(name).name in _PEOPLE:
            for one in _slack_rows(files, name, notes):
                profile = get_member(one, "profile")
                called = (
                    get_member(profile, "display_name"),
                    get_member(one, "real_name"),
                    get_member(profile, "real_name"),
                )
                known = next((str(who) for who in (*called, get_member(one, "name")) if who), None)
                if known and isinstance(get_member(one, "id"), str):
                    found[one["id"]] = known
    return found


def _channels(files: Files, people: Mapping[str, str], notes: ImportNotes) -> dict[str, str]:
    """Return what channels are called, by the names and ids of their folders; a direct message by who is in it."""
    found: dict[str, str] = {}
    for name in files:
        if PurePosixPath(name).name in _CHANNELS:
            for one in _slack_rows(files, name, notes):
                members = [people.get(str(who), str(who)) for who in get_member(one, "members") or ()]
                direct = PurePosixPath(name).name in ("dms.json", "mpims.json")
                called = ", ".join(members) if direct and members else get_member(one, "name")
                if isinstance(called, str) and called:
                    found |= {str(key): called for key in (get_member(one, "id"), get_member(one, "name")) if key}
    return found


def _stamp(row: JSON) -> float:
    try:
        return float(str(get_member(row, "ts")))
    except ValueError:
        return 0.0


def _slack_message(
    row: JSON, channel: str, people: Mapping[str, str], channels: Mapping[str, str], notes: ImportNotes, file: str
) -> dict[str, JSON] | None:
    where, subtype = f"{file}, ts {get_member(row, 'ts')}", get_member(row, "subtype")
    at = parse_time(get_member(row, "ts"))
    if not isinstance(row, Mapping) or row.get("type", "message") != "message" or not isinstance(at, datetime):
        notes.skip("it is no message: it has no time", where)
        return None
    if subtype is not None and subtype not in _SAID:
        notes.skip("system message of the app", where)
        return None
    words = _slack_words(row, people, channels)
    if not words:
        notes.skip("it has no words", where)
        return None
    is_bot = subtype == "bot_message" or (row.get("bot_id") is not None and row.get("user") is None)
    profile = row.get("user_profile")
    known = (people.get(str(row.get("user"))), get_member(profile, "display_name"), get_member(profile, "real_name"))
    who = next((str(one) for one in (*known, row.get("username"), row.get("user")) if one), "")
    fields: dict[str, JSON] = {
        "role": "tool" if is_bot else "user",
        "content": words,
        "at": at,
        "message_id": f"slack-{channel}-{row['ts']}",
    }
    thread = row.get("thread_ts")
    if who:
        fields["speaker"] = who
    if isinstance(thread, str) and thread != row["ts"]:
        fields["metadata"] = {"thread": thread}
    return fields


def _slack_words(row: Mapping[str, JSON], people: Mapping[str, str], channels: Mapping[str, str]) -> str:
    def name(found: re.Match[str]) -> str:
        kind, target, label = found["kind"], found["name"], found["label"]
        if kind == "@":
            return f"@{people.get(target, label or target)}"
        if kind == "#":
            return f"#{label or channels.get(target, target)}"
        if kind == "!":
            return label or f"@{target.split('^')[0]}"
        return f"{label} ({target})" if label and label != target else target

    text = row.get("text")
    words = html.unescape(_REFERENCE.sub(name, text)) if isinstance(text, str) else ""
    if not words.strip():
        attached = [get_member(one, "text") or get_member(one, "fallback") for one in row.get("attachments") or ()]
        words = "\n".join(html.unescape(_REFERENCE.sub(name, one)) for one in attached if isinstance(one, str))
    files = [
        str(title) for one in row.get("files") or () if (title := get_member(one, "title") or get_member(one, "name"))
    ]
    return "\n".join(filter(str.strip, (words.strip(), *(f"[file {title}]" for title in files))))
