"""Chats between people, or with an assistant, and questions about what was said in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from holdfast.errors import InputError
from holdfast.eval.corpora import answers_of, existing
from holdfast.eval.data import UNDATED, Haystack, Message, Question
from holdfast.eval.reading import Notes, Row, text_of

_A_DAY = timedelta(days=1)
# Turns of one session share its date in most data; a second apart keeps their order.
_A_TURN = timedelta(seconds=1)
_DATE_FORMS = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M", "%Y-%m-%d (%A)", "%B-%d-%Y", "%Y-%m-%d", "%Y/%m/%d")


def read_date(text: object, where: str, notes: Notes) -> datetime | None:
    """Read a date in any of the forms that chat data uses."""
    if text in (None, ""):
        return None
    for form in _DATE_FORMS:
        try:
            return datetime.strptime(str(text).strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    notes.add("date that cannot be read", f"{where}: {text}", "treated as undated")
    return None


@dataclass(slots=True)
class _Sessions:
    """Gathers sessions as they stand in a file, and puts them into the order in which they happened."""

    where: str
    notes: Notes
    found: list[tuple[datetime | None, str, list[Row]]] = field(default_factory=list)

    def add(self, name: str, at: datetime | None, turns: list[Row]) -> None:
        if any(known == name for _, known, _ in self.found):
            self.notes.add("duplicate session id", f"{self.where}: {name}", "both kept, as parts of one session")
        self.found.append((at, name, turns))

    def messages(self) -> Iterator[Message]:
        """Yield messages; a turn is {id, text, author, speaker}, and an empty one is noted and left out."""
        dates = [at for at, _, _ in self.found if at is not None]
        if dates != sorted(dates):
            self.notes.add("unsorted dates", self.where, "sessions put into the order of their dates")
        latest = UNDATED if not dates else min(dates)
        ordered = []
        for at, name, turns in self.found:
            latest = at or latest  # an undated session happened when the one before it did
            ordered.append((latest, name, turns))
        for at, name, turns in sorted(ordered, key=lambda session: session[0]):
            for place, turn in enumerate(turns):
                if not turn["text"].strip():
                    self.notes.add("empty message", f"{self.where}: {turn['id']}", "not remembered")
                    continue
                yield Message(session=name, at=at + place * _A_TURN, **turn)


def _unique(messages: Iterable[Message], where: str) -> tuple[Message, ...]:
    kept = tuple(messages)
    twice = [name for name, count in Counter(message.id for message in kept).items() if count > 1]
    if twice:
        raise InputError(
            f"{where} has two messages with the id {twice[0]}; gold cannot tell them apart, mend the file"
        )
    return kept


# ------------------------------------------------------------------------------------- two people: LoCoMo

_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_TURN_ID = re.compile(r"D\d+:\d+")
_SESSION_KEY = re.compile(r"session_(\d+)")


def read_two_person_chats(
    chats: Sequence[Row], index: Mapping[tuple[str, int], Row], errata: Mapping[str, Row], notes: Notes
) -> list[Haystack]:
    """Read LoCoMo's schema. `index` and `errata` are its companions; either may be empty."""
    if not index:
        notes.add("no index beside it", f"{len(chats)} chats", "evidence ids are repaired by rule")
    return [_two_person_chat(number, chat, index, errata, notes) for number, chat in enumerate(chats)]


def _two_person_chat(
    number: int, chat: Row, index: Mapping[tuple[str, int], Row], errata: Mapping[str, Row], notes: Notes
) -> Haystack:
    name, talk = str(chat["sample_id"]), chat["conversation"]
    sessions = _Sessions(name, notes)
    for key in sorted(
        (key for key in talk if _SESSION_KEY.fullmatch(key)), key=lambda key: int(key.removeprefix("session_"))
    ):
        at = read_date(talk.get(f"{key}_date_time"), f"{name} {key}", notes)
        turns = [
            {"id": str(turn["dia_id"]), "text": _with_caption(turn), "speaker": text_of(turn["speaker"])}
            for turn in talk[key]
        ]
        sessions.add(key, at, turns)
    messages = _unique(sessions.messages(), name)
    asked_at = _day_after(messages)
    questions = []
    for place, row in enumerate(chat["qa"]):
        known, fault = index.get((name, place), {}), errata.get(f"locomo_{number}_qa{place}", {})
        if not known.get("errata"):
            known = {**known, **_as_index(fault)}
        question = _two_person_question(f"{name}_qa{place}", row, known, messages, notes)
        if question is not None:
            questions.append(_asked(question, asked_at, len(messages)))
    people = (text_of(talk.get("speaker_a")), text_of(talk.get("speaker_b")))
    return Haystack(name, messages, tuple(questions), tuple(filter(None, people)))


def _with_caption(turn: Row) -> str:
    caption = turn.get("blip_caption")
    text = text_of(turn["text"])
    return f"{text} [image: {caption}]" if caption else text


def _as_index(fault: Row) -> Row:
    """Return what an erratum says in the words of the index."""
    return {"corrected_evidence": fault.get("correct_evidence"), "errata": fault.get("error_type")} if fault else {}


def _two_person_question(
    name: str, row: Row, known: Row, messages: Sequence[Message], notes: Notes
) -> Question | None:
    text = text_of(row.get("question")).strip()
    if not text:
        notes.add("empty question", name, "not asked")
        return None
    if known.get("errata"):
        notes.add("faulty gold", f"{name}: {known['errata']}", "corrected evidence is used where there is any")
    evidence = _evidence(name, row, known, notes)
    gold = existing(dict.fromkeys(evidence, 1), {message.id for message in messages}, name, notes)
    if not gold:
        notes.add("no gold", name, "asked, but not counted in recall")
    sessions = {message.id: message.session for message in messages}
    category = _CATEGORIES.get(row.get("category", 0), str(row.get("category")))
    literal = known.get("answer_in_evidence_text") and known.get("errata") is None
    return Question(
        name, text, category, UNDATED, 0, gold, frozenset(sessions[turn] for turn in gold),
        tuple(answers_of(row)) if literal else (),
    )  # fmt: skip


def _evidence(name: str, row: Row, known: Row, notes: Notes) -> Sequence[str]:
    """Return the turns that a question rests on: corrected, as the index has them, or as far as ids can be read."""
    if known.get("corrected_evidence"):
        return list(known["corrected_evidence"])
    cited = [str(item) for item in row.get("evidence") or ()]
    evidence, invalid = known.get("evidence"), known.get("invalid_evidence") or ()
    if not evidence:
        evidence = _TURN_ID.findall(" ".join(cited))
        invalid = [item for item in cited if item.strip() and not _TURN_ID.search(item)]
    for item in invalid:
        notes.add("gold that does not exist", f"{name}: {item}", "left out of its gold")
    return list(evidence)


def _asked(question: Question, at: datetime, visible: int) -> Question:
    return replace(question, at=at, visible=visible)


def _day_after(messages: Sequence[Message]) -> datetime:
    return max((message.at for message in messages), default=UNDATED) + _A_DAY


# ------------------------------------------------------------------- one question each: LongMemEval

_UNANSWERABLE = "_abs"


def read_haystacks(chats: Sequence[Row], index: Mapping[str, Row], notes: Notes) -> list[Haystack]:
    """Read LongMemEval's schema: every question has a haystack of its own."""
    return [_haystack(row, index.get(str(row["question_id"]), {}), notes) for row in chats]


def _haystack(row: Row, known: Row, notes: Notes) -> Haystack:
    name = str(row["question_id"])
    sessions, times = _Sessions(name, notes), Counter[str]()
    gold: dict[str, int] = {}
    marked: set[tuple[str, str]] = set()
    if not len(row["haystack_session_ids"]) == len(row["haystack_sessions"]) == len(row["haystack_dates"]):
        raise InputError(f"{name}: session ids, dates and sessions differ in number; fetch the file again")
    for session, date, turns in zip(
        map(str, row["haystack_session_ids"]), row["haystack_dates"], row["haystack_sessions"], strict=True
    ):
        part = _part(session, times)
        said = [
            {"id": f"{part}:{place}", "text": text_of(turn["content"]), "author": _author(turn["role"])}
            for place, turn in enumerate(turns)
        ]
        sessions.add(session, read_date(date, name, notes), said)
        for turn, spoken in zip(turns, said, strict=True):
            # A session that is given twice is marked twice, but its evidence was said once: the first time counts.
            if turn.get("has_answer") and (session, spoken["text"]) not in marked:
                marked.add((session, spoken["text"]))
                gold[spoken["id"]] = 1
    messages = _unique(sessions.messages(), name)
    asked_at = read_date(row.get("question_date"), name, notes) or _day_after(messages)
    if late := sum(message.at > asked_at for message in messages):
        notes.add("said after the question", f"{name}: {late} messages", "kept, as the data has them")
    text = text_of(row.get("question")).strip()
    if not text:
        notes.add("empty question", name, "not asked")
        return Haystack(name, messages, ())
    answerable = not name.endswith(_UNANSWERABLE)
    named = existing(dict.fromkeys(map(str, row.get("answer_session_ids") or ()), 1), times, name, notes)
    question = Question(
        name, text, text_of(row.get("question_type")) or "all", asked_at, len(messages),
        existing(gold, {message.id for message in messages}, name, notes), frozenset(named),
        tuple(answers_of(row)) if known.get("answer_in_gold_turns") else (), answerable,
    )  # fmt: skip
    if answerable and not question.has_gold:
        notes.add("no gold", name, "asked, but not counted in recall")
    return Haystack(name, messages, (question,))


def _part(session: str, times: Counter[str]) -> str:
    """Count one more part of a session, and name it so that its messages have ids of their own."""
    times[session] += 1
    return session if times[session] == 1 else f"{session}({times[session]})"


def _author(role: object) -> Literal["user", "assistant"]:
    return "assistant" if str(role).lower() == "assistant" else "user"


# ------------------------------------------------------------------------- long chats with probes: BEAM

# The generator of this data left its own marker at the end of a message.
_MARKER = re.compile(r"\s*->->.*$", re.DOTALL)
# The ability that its probes without sources are meant to test.
_ABSTENTION = "abstention"


def read_probed_chats(chats: Sequence[Row], notes: Notes) -> list[Haystack]:
    """Read BEAM's schema: long chats in batches, probing questions by ability."""
    return [_probed_chat(chat, notes) for chat in chats]


def _probed_chat(chat: Row, notes: Notes) -> Haystack:
    name = str(chat["conversation_id"])
    sessions = _Sessions(name, notes)
    for batch in chat["chat"]:
        said = [turn for turns in batch["turns"] for turn in turns]
        anchors = [turn["time_anchor"] for turn in said if turn.get("time_anchor")] + [batch.get("time_anchor")]
        turns = [
            {
                "id": str(turn["id"]),
                "text": _MARKER.sub("", text_of(turn["content"])),
                "author": _author(turn["role"]),
            }
            for turn in said
        ]
        sessions.add(f"batch {batch['batch_number']}", read_date(anchors[0], name, notes), turns)
    messages = _unique(sessions.messages(), name)
    asked_at = _day_after(messages)
    by_id = {message.id: message.session for message in messages}
    questions = [
        _probe(f"{name} {ability} {place}", probe, ability, by_id, notes)
        for ability, probes in chat["probing_questions"].items()
        for place, probe in enumerate(probes)
    ]
    kept = (_asked(question, asked_at, len(messages)) for question in questions if question is not None)
    return Haystack(name, messages, tuple(kept))


def _probe(label: str, probe: Row, ability: str, session_of: Mapping[str, str], notes: Notes) -> Question | None:
    text = text_of(probe.get("question")).strip()
    if not text:
        notes.add("empty question", label, "not asked")
        return None
    sources = dict.fromkeys((str(item) for item in _flattened(probe.get("source_chat_ids"))), 1)
    gold = existing(sources, session_of, label, notes)
    answerable = bool(sources) or ability != _ABSTENTION
    if answerable and not gold:
        notes.add("no gold", label, "asked, but not counted in recall")
    return Question(
        label, text, ability, UNDATED, 0, gold, frozenset(session_of[item] for item in gold), answerable=answerable
    )


def _flattened(value: Any) -> Iterator[object]:  # noqa: ANN401 - a list, or lists inside a table
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _flattened(item)
    elif value is not None:
        yield value


# ------------------------------------------------------------------- projects over many sessions: RealMem


def read_replayed_chats(chats: Mapping[str, Row], notes: Notes) -> list[Haystack]:
    """Read RealMem's schema: a question is a turn of its chat, and may be answered from earlier sessions only."""
    return [_replayed_chat(name, chat, notes) for name, chat in chats.items()]


@dataclass(frozen=True, slots=True)
class _Asking:
    """A turn that asks: in which part of which session, at which place, and what its answer rests on."""

    session: str
    label: str
    turn: Row
    cited: Sequence[str]
    at: datetime | None


def _replayed_chat(name: str, chat: Row, notes: Notes) -> Haystack:
    sessions, times = _Sessions(name, notes), Counter[str]()
    asked: list[_Asking] = []
    for dialogue in chat["dialogues"]:
        session, at = str(dialogue["session_uuid"]), read_date(dialogue.get("current_time"), name, notes)
        turns, part = dialogue["dialogue_turns"], _part(session, times)
        said = [
            {"id": f"{part}:{place}", "text": text_of(turn["content"]), "author": _author(turn["speaker"])}
            for place, turn in enumerate(turns)
        ]
        sessions.add(session, at, said)
        for place, turn in enumerate(turns):
            if turn.get("is_query"):
                # The gold of a question stands on the turn that answers it.
                answer = turns[place + 1] if place + 1 < len(turns) else {}
                cited = [str(uuid) for uuid in answer.get("memory_session_uuids") or ()]
                asked.append(_Asking(session, f"{name} {part}:{place}", turn, cited, at))
    messages = _unique(sessions.messages(), name)
    begins: dict[str, int] = {}
    for place, message in enumerate(messages):
        begins.setdefault(message.session, place)
    questions = [_replayed_question(asking, messages, begins, notes) for asking in asked]
    kept = tuple(question for question in questions if question is not None)
    return Haystack(name, messages, kept, level="session")


def _replayed_question(
    asking: _Asking, messages: Sequence[Message], begins: Mapping[str, int], notes: Notes
) -> Question | None:
    label, text = asking.label, text_of(asking.turn.get("content")).strip()
    if not text:
        notes.add("empty question", label, "not asked")
        return None
    gold, begin = existing(dict.fromkeys(asking.cited, 1), begins, label, notes), begins[asking.session]
    if asking.session in gold:
        notes.add("gold is the question's own session", label, "left out of its gold")
    earlier = frozenset(item for item in gold if begins[item] < begin)
    for item in gold:
        if begins[item] > begin:
            notes.add("gold that had not been said yet", f"{label}: {item}", "left out of its gold")
    if not earlier:
        notes.add("no gold", label, "asked, but not counted in recall")
    category = text_of(asking.turn.get("category_name")) or "all"
    return Question(label, text, category, asking.at or messages[begin].at, begin, gold_sessions=earlier)
