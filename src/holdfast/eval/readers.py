"""Parsed evaluation data → haystacks: a reader for each schema, which is told by the keys of its rows."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.eval.data import UNDATED, DatasetMessage, GoldQuestion, Haystack, Notes, find_current
from holdfast.values import dataclass

JsonRow = dict[str, Any]
Companions = Mapping[str, Mapping[Any, JsonRow]]
Grades = Mapping[str, int]
Messages = tuple[DatasetMessage, ...]

_A_DAY = timedelta(days=1)
# Turns of one session share its date in most data; a second apart keeps their order.
_A_TURN = timedelta(seconds=1)
_DATE_FORMS = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M", "%Y-%m-%d (%A)", "%B-%d-%Y", "%Y-%m-%d", "%Y/%m/%d")


# ------------------------------------------------------------------------------------ what readers share


def text_of(value: object) -> str:
    """Return a value as text; JSON's null is nothing."""
    return "" if value is None else str(value)


def id_of(row: JsonRow) -> str:
    """Return the id of a row, in either of its usual spellings."""
    return text_of(row.get("id", row.get("_id")))


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


def _read_question(value: object, where: object, notes: Notes) -> str:
    """Return the text of a question; one without words is noted, and not asked."""
    text = text_of(value).strip()
    if not text:
        notes.add("empty question", where, "not asked")
    return text


def _keep_existing(gold: Grades, known: Iterable[str], where: str, notes: Notes, *, counted: bool = True) -> Grades:
    """Return the gold that exists; note the rest, and that there is none where recall is to be `counted`."""
    known = known if isinstance(known, Mapping) else set(known)
    for item in gold:
        if item not in known:
            notes.add("gold that does not exist", f"{where}: {item}", "left out of its gold")
    kept = {item: grade for item, grade in gold.items() if item in known}
    if counted and not kept:
        _note_no_gold(where, notes)
    return kept


def _note_no_gold(where: str, notes: Notes) -> None:
    notes.add("no gold", where, "asked, but not counted in recall")


def _answers_of(row: JsonRow) -> tuple[str, ...]:
    """Return the literal answers a row gives."""
    given: list[Any] = [row.get("answer"), *(row.get("answer_aliases") or ())]
    return tuple(str(answer) for answer in given if answer not in (None, ""))


@dataclass(slots=True)
class _Sessions:
    """Gathers sessions as they stand in a file, and puts them into the order in which they happened."""

    where: str
    notes: Notes
    gathered: list[tuple[datetime | None, str, list[JsonRow]]] = field(default_factory=list)

    def add(self, name: str, at: datetime | None, turns: list[JsonRow]) -> None:
        """Add a session; a turn is {id, text, author, speaker}."""
        if self.count(name):
            self.notes.add("duplicate session id", f"{self.where}: {name}", "both kept, as parts of one session")
        self.gathered.append((at, name, turns))

    def count(self, name: str) -> int:
        """Return how many parts of a session there are so far."""
        return sum(known == name for _, known, _ in self.gathered)

    def name_part(self, session: str) -> str:
        """Name the next part of a session, so that its messages have ids of their own."""
        return f"{session}({self.count(session) + 1})" if self.count(session) else session

    def messages(self) -> Messages:
        """Return all messages; gold names them by id, so no two may share one."""
        messages = tuple(self._order())
        twice = [name for name, count in Counter(message.id for message in messages).items() if count > 1]
        if twice:
            raise InputError(
                f"{self.where} has two messages with the id {twice[0]}; gold cannot tell them apart, mend the file"
            )
        return messages

    def _order(self) -> Iterator[DatasetMessage]:
        dates = [at for at, _, _ in self.gathered if at is not None]
        if dates != sorted(dates):
            self.notes.add("unsorted dates", self.where, "sessions put into the order of their dates")
        latest = UNDATED if not dates else min(dates)
        ordered = []
        for at, name, turns in self.gathered:
            latest = at or latest  # an undated session happened when the one before it did
            ordered.append((latest, name, turns))
        for at, name, turns in sorted(ordered, key=lambda session: session[0]):
            for place, turn in enumerate(turns):
                if turn["text"].strip():
                    yield DatasetMessage(session=name, at=at + place * _A_TURN, **turn)
                else:
                    self.notes.add("empty message", f"{self.where}: {turn['id']}", "not remembered")


def _day_after(messages: Messages) -> datetime:
    return max((message.at for message in messages), default=UNDATED) + _A_DAY


def _as_turn(name: str, text: object, role: object) -> JsonRow:
    author = "assistant" if str(role).lower() == "assistant" else "user"
    return {"id": name, "text": text_of(text), "author": author}


# ------------------------------------------------------------------------------------- two people: LoCoMo

_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_TURN_ID = re.compile(r"D\d+:\d+")
_SESSION_KEY = re.compile(r"session_(\d+)")


def read_two_person_chats(chats: Sequence[JsonRow], given: Companions, notes: Notes) -> Iterator[Haystack]:
    """Read LoCoMo's schema, with its index and its errata where they are given."""
    index, errata = given.get("index", {}), given.get("errata", {})
    if not index:
        notes.add("no index beside it", f"{len(chats)} chats", "evidence ids are repaired by rule")
    for number, chat in enumerate(chats):
        name, talk = str(chat["sample_id"]), chat["conversation"]
        people = (text_of(talk.get("speaker_a")), text_of(talk.get("speaker_b")))
        messages, rows = _read_talk(name, talk, notes), []
        for place, row in enumerate(chat["qa"]):
            known, fault = index.get((name, place), {}), errata.get(f"locomo_{number}_qa{place}", {})
            if fault and not known.get("errata"):
                corrected = {"corrected_evidence": fault.get("correct_evidence"), "errata": fault.get("error_type")}
                known = {**known, **corrected}
            rows.append((f"{name}_qa{place}", row, known))
        questions = tuple(_read_two_person_questions(rows, messages, notes))
        yield Haystack(name, messages, questions, tuple(filter(None, people)))


def _read_talk(name: str, talk: JsonRow, notes: Notes) -> Messages:
    sessions = _Sessions(name, notes)
    keys = (key for key in talk if _SESSION_KEY.fullmatch(key))
    for key in sorted(keys, key=lambda key: int(key.removeprefix("session_"))):
        turns = []
        for turn in talk[key]:
            caption = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            speaker = text_of(turn["speaker"])
            turns.append({"id": str(turn["dia_id"]), "text": text_of(turn["text"]) + caption, "speaker": speaker})
        sessions.add(key, read_date(talk.get(f"{key}_date_time"), f"{name} {key}", notes), turns)
    return sessions.messages()


def _read_two_person_questions(
    rows: Iterable[tuple[str, JsonRow, JsonRow]], messages: Messages, notes: Notes
) -> Iterator[GoldQuestion]:
    session_of, asked_at = {message.id: message.session for message in messages}, _day_after(messages)
    for name, row, known in rows:
        if not (text := _read_question(row.get("question"), name, notes)):
            continue
        if known.get("errata"):
            notes.add("faulty gold", f"{name}: {known['errata']}", "corrected evidence is used where there is any")
        gold = _keep_existing(dict.fromkeys(_read_evidence(name, row, known, notes), 1), session_of, name, notes)
        literal = known.get("answer_in_evidence_text") and known.get("errata") is None
        yield GoldQuestion(
            name, text, _CATEGORIES.get(row.get("category", 0), str(row.get("category"))), asked_at, len(messages),
            gold, frozenset(session_of[turn] for turn in gold), _answers_of(row) if literal else (),
        )  # fmt: skip


def _read_evidence(name: str, row: JsonRow, known: JsonRow, notes: Notes) -> list[str]:
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


# ------------------------------------------------------------------- one question each: LongMemEval

_UNANSWERABLE = "_abs"


def read_haystacks(chats: Sequence[JsonRow], given: Companions, notes: Notes) -> Iterator[Haystack]:
    """Read LongMemEval's schema: every question has a haystack of its own."""
    for row in chats:
        name = str(row["question_id"])
        messages, gold, sessions = _read_marked_sessions(name, row, notes)
        asked_at = read_date(row.get("question_date"), name, notes) or _day_after(messages)
        if late := sum(message.at > asked_at for message in messages):
            notes.add("said after the question", f"{name}: {late} messages", "kept, as the data has them")
        text = _read_question(row.get("question"), name, notes)
        if not text:
            yield Haystack(name, messages, ())
            continue
        cited = dict.fromkeys(map(str, row.get("answer_session_ids") or ()), 1)
        gold_sessions = frozenset(_keep_existing(cited, sessions, name, notes, counted=False))
        gold = _keep_existing(gold, {message.id for message in messages}, name, notes, counted=False)
        known = given.get("haystack index", {}).get(name, {})
        answers = _answers_of(row) if known.get("answer_in_gold_turns") else ()
        question = GoldQuestion(
            name, text, text_of(row.get("question_type")) or "all", asked_at, len(messages), gold, gold_sessions,
            answers, not name.endswith(_UNANSWERABLE),
        )  # fmt: skip
        if question.answerable and not question.has_gold:
            _note_no_gold(name, notes)
        yield Haystack(name, messages, (find_current(question, messages),))


def _read_marked_sessions(name: str, row: JsonRow, notes: Notes) -> tuple[Messages, Grades, set[str]]:
    """Return the messages, those that are marked as evidence, and the sessions that there are."""
    sessions, marked = _Sessions(name, notes), dict[tuple[str, str], str]()
    ids, dates, talks = map(str, row["haystack_session_ids"]), row["haystack_dates"], row["haystack_sessions"]
    if not len(row["haystack_session_ids"]) == len(talks) == len(dates):
        raise InputError(f"{name}: session ids, dates and sessions differ in number; fetch the file again")
    for session, date, turns in zip(ids, dates, talks, strict=True):
        part = sessions.name_part(session)
        said = [_as_turn(f"{part}:{place}", turn["content"], turn["role"]) for place, turn in enumerate(turns)]
        sessions.add(session, read_date(date, name, notes), said)
        for turn, spoken in zip(turns, said, strict=True):
            if turn.get("has_answer"):
                # A session that is given twice is marked twice, but its evidence was said once: the first counts.
                marked.setdefault((session, spoken["text"]), spoken["id"])
    return sessions.messages(), dict.fromkeys(marked.values(), 1), {known for _, known, _ in sessions.gathered}


# ------------------------------------------------------------------------- long chats with probes: BEAM

# The generator of this data left its own marker at the end of a message.
_MARKER = re.compile(r"\s*->->.*$", re.DOTALL)
# The ability that its probes without sources are meant to test.
_ABSTENTION = "abstention"


def read_probed_chats(chats: Sequence[JsonRow], _: Companions, notes: Notes) -> Iterator[Haystack]:
    """Read BEAM's schema: long chats in batches, probing questions by ability."""
    for chat in chats:
        name = str(chat["conversation_id"])
        sessions = _Sessions(name, notes)
        for batch in chat["chat"]:
            said = [turn for turns in batch["turns"] for turn in turns]
            anchors = [turn["time_anchor"] for turn in said if turn.get("time_anchor")] + [batch.get("time_anchor")]
            turns = [
                _as_turn(str(turn["id"]), _MARKER.sub("", text_of(turn["content"])), turn["role"]) for turn in said
            ]
            sessions.add(f"batch {batch['batch_number']}", read_date(anchors[0], name, notes), turns)
        messages = sessions.messages()
        probes = [
            (f"{name} {ability} {place}", ability, probe)
            for ability, own in chat["probing_questions"].items()
            for place, probe in enumerate(own)
        ]
        yield Haystack(name, messages, tuple(_read_probes(probes, messages, notes)))


def _read_probes(
    probes: Iterable[tuple[str, str, JsonRow]], messages: Messages, notes: Notes
) -> Iterator[GoldQuestion]:
    session_of, asked_at = {message.id: message.session for message in messages}, _day_after(messages)
    for label, ability, probe in probes:
        if not (text := _read_question(probe.get("question"), label, notes)):
            continue
        sources = dict.fromkeys((str(item) for item in _flatten(probe.get("source_chat_ids"))), 1)
        answerable = bool(sources) or ability != _ABSTENTION
        gold = _keep_existing(sources, session_of, label, notes, counted=answerable)
        question = GoldQuestion(
            label, text, ability, asked_at, len(messages), gold, frozenset(session_of[item] for item in gold),
            answerable=answerable,
        )  # fmt: skip
        yield find_current(question, messages)


def _flatten(value: Any) -> Iterator[object]:  # noqa: ANN401 - a list, or lists inside a table
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _flatten(item)
    elif value is not None:
        yield value


# ------------------------------------------------------------------- projects over many sessions: RealMem


def read_replayed_chats(chats: Mapping[str, JsonRow], _: Companions, notes: Notes) -> Iterator[Haystack]:
    """Read RealMem's schema: a question is a turn of its chat, and may be answered from earlier sessions only."""
    for name, chat in chats.items():
        sessions, dialogues = _Sessions(name, notes), []
        for dialogue in chat["dialogues"]:
            session, turns = str(dialogue["session_uuid"]), dialogue["dialogue_turns"]
            at, part = read_date(dialogue.get("current_time"), name, notes), sessions.name_part(session)
            said = [_as_turn(f"{part}:{place}", turn["content"], turn["speaker"]) for place, turn in enumerate(turns)]
            sessions.add(session, at, said)
            dialogues.append((session, f"{name} {part}", at, turns))
        messages = sessions.messages()
        begins: dict[str, int] = {}
        for place, message in enumerate(messages):
            begins.setdefault(message.session, place)
        questions = [
            question
            for session, label, at, turns in dialogues
            for question in _read_asking_turns(session, label, turns, at, messages, begins, notes)
        ]
        yield Haystack(name, messages, tuple(questions), level="session")


def _read_asking_turns(
    session: str, label: str, turns: Sequence[JsonRow], at: datetime | None, messages: Messages,
    begins: Mapping[str, int], notes: Notes,
) -> Iterator[GoldQuestion]:  # fmt: skip
    part, known = (
        label.rpartition(" ")[2],
        {message.id: message for message in messages if message.session == session},
    )
    for place, turn in enumerate(turns):
        where = f"{label}:{place}"
        if not turn.get("is_query") or not (text := _read_question(turn.get("content"), where, notes)):
            continue
        # The gold of a question stands on the turn that answers it.
        answer = turns[place + 1] if place + 1 < len(turns) else {}
        cited = dict.fromkeys((str(uuid) for uuid in answer.get("memory_session_uuids") or ()), 1)
        gold, begin = _keep_existing(cited, begins, where, notes, counted=False), begins[session]
        if session in gold:
            notes.add("gold is the question's own session", where, "left out of its gold")
        earlier = frozenset(item for item in gold if begins[item] < begin)
        for item in gold:
            if begins[item] > begin:
                notes.add("gold that had not been said yet", f"{where}: {item}", "left out of its gold")
        if not earlier:
            _note_no_gold(where, notes)
        category = text_of(turn.get("category_name")) or "all"
        said = tuple(known[name] for name in (f"{part}:{number}" for number in range(place)) if name in known)
        yield GoldQuestion(where, text, category, at or messages[begin].at, begin, gold_sessions=earlier, said=said)


# ------------------------------------------------------------------------- pages and their paragraphs: TSQA


def read_pages(pages: Sequence[JsonRow], _: Companions, notes: Notes) -> Iterator[Haystack]:
    """Return each page as a haystack of its paragraphs; the gold of a question is where its answers stand."""
    for page in pages:
        name, texts = str(page["page"]), [text_of(text) for text in page["paras"]]
        messages = tuple(
            DatasetMessage(str(at), name, text, UNDATED, "document") for at, text in enumerate(texts) if text.strip()
        )
        if blank := len(texts) - len(messages):
            notes.add("empty document", f"{name}: {blank} paragraphs", "not remembered; they cannot be found")
        yield Haystack(name, messages, tuple(_read_page_questions(page, messages, notes)))


def _read_page_questions(page: JsonRow, messages: Messages, notes: Notes) -> Iterator[GoldQuestion]:
    known, category = {message.id for message in messages}, text_of(page.get("relation")) or "all"
    for row in page["questions"]:
        if not (text := _read_question(row.get("question"), row.get("qid", page["page"]), notes)):
            continue
        found = [answer for answer in row.get("answers") or () if answer.get("text")]
        places = {str(answer["para"]): 1 for answer in found}
        gold = _keep_existing(places, known, row["qid"], notes, counted=bool(places))
        answers = tuple(str(answer["text"]) for answer in found)
        yield GoldQuestion(
            str(row["qid"]), text, category, UNDATED, len(messages), gold, answers=answers, answerable=bool(places)
        )


# -------------------------------------------------------------------------- a corpus with judgements: BEIR

_WHOLE = re.compile(r"\s*-?[0-9]+\s*")


def read_qrels(text: str, where: Path, notes: Notes) -> Mapping[str, Grades]:
    """Read query, document and grade from lines parted by tabs, with a header line (BEIR) or without."""
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        cells = line.removesuffix("\r").split("\t")
        # TREC writes a fourth column between query and document; it says nothing.
        query, document, grade = (cells[0], cells[-2], cells[-1]) if len(cells) >= 3 else ("", "", "")
        if number == 1 and grade and not _WHOLE.fullmatch(grade):
            continue
        if not query or not _WHOLE.fullmatch(grade):
            raise InputError(f"{where}, line {number}: {cells} is not query, document and grade; mend the line")
        if judged[query].setdefault(document, int(grade)) != int(grade):
            notes.add("judged twice", f"{query}: {document}", "the first grade is kept")
    return judged


def read_corpus(
    name: str, corpus: Sequence[JsonRow], queries: Sequence[JsonRow], judged: Mapping[str, Grades], notes: Notes
) -> Haystack:
    """Return a corpus as one haystack: every document a message, every query a question."""
    messages: dict[str, DatasetMessage] = {}
    for row in corpus:
        document, title, text = id_of(row), text_of(row.get("title")), text_of(row.get("text"))
        if document in messages:
            notes.add("duplicate document id", document, "the first is kept")
        elif not text.strip() and not title.strip():
            notes.add("empty document", document, "not remembered; it cannot be found")
        else:
            messages[document] = DatasetMessage(document, document, text, UNDATED, "document", title=title)
    questions = tuple(_read_queries(queries, judged, messages, notes))
    return Haystack(name, tuple(messages.values()), questions)


def _read_queries(
    queries: Sequence[JsonRow], judged: Mapping[str, Grades], messages: Mapping[str, DatasetMessage], notes: Notes
) -> Iterator[GoldQuestion]:
    asked: set[str] = set()
    for row in queries:
        query = id_of(row)
        if query in asked:
            # Judgements name the id, so they cannot tell which of the two they mean.
            notes.add("duplicate question id", query, "the first is kept")
            continue
        asked.add(query)
        if not (text := _read_question(row.get("question", row.get("text")), query, notes)):
            continue
        grades = judged.get(query) or dict.fromkeys(map(str, row.get("gold_ids") or ()), 1)
        relevant = {document: grade for document, grade in grades.items() if grade > 0}
        gold = _keep_existing(relevant, messages, query, notes)
        answers, category = _answers_of(row) if row.get("answer_in_gold") else (), text_of(row.get("type")) or "all"
        yield GoldQuestion(query, text, category, UNDATED, len(messages), gold, answers=answers)


def read_lives(people: Sequence[JsonRow], _: Companions, notes: Notes) -> Iterator[Haystack]:
    """Read `tests/data/changes`: questions about now by the way a change was told; about then, both and nothing."""
    for life in people:
        messages = tuple(
            DatasetMessage(one["id"], one["session"], one["text"], datetime.fromisoformat(one["at"]), one["role"])
            for one in life["turns"]
        )
        session_of = {message.id: message.session for message in messages}
        questions = tuple(_read_asked(row, session_of, notes) for row in life["questions"])
        yield Haystack(str(life["person"]), messages, questions)


def _read_asked(row: JsonRow, session_of: Mapping[str, str], notes: Notes) -> GoldQuestion:
    gold = {turn: 1 for turn in row["gold"] if turn in session_of}
    for turn in row["gold"]:
        if turn not in gold:
            notes.add("gold that does not exist", f"{row['id']}: {turn}", "left out of its gold")
    return GoldQuestion(
        row["id"],
        row["text"],
        row["kind"] if row["about"] == "now" else row["about"],
        datetime.fromisoformat(row["asked_at"]),
        len(session_of),
        gold,
        frozenset(session_of[turn] for turn in gold),
        answerable=row["about"] != "unknown",
        current=frozenset(turn for turn in (row["current"], *row.get("also", ())) if turn),
        earlier=frozenset(row["earlier"]),
        decoys=frozenset(row.get("decoys", ())),
    )


# ------------------------------------------------------------------------------------------- all of them


@dataclass(frozen=True, slots=True)
class Schema:
    """The keys that tell a schema, its reader, whether it is chat, and which companions belong to it."""

    keys: frozenset[str]
    read: Callable[[Any, Companions, Notes], Iterator[Haystack]]
    chat: bool = True
    companions: tuple[str, ...] = ()


SCHEMAS: Mapping[str, Schema] = {
    "locomo": Schema(
        frozenset({"conversation", "qa", "sample_id"}), read_two_person_chats, companions=("index", "errata")
    ),
    "longmemeval": Schema(
        frozenset({"haystack_sessions", "question_id"}), read_haystacks, companions=("haystack index",)
    ),
    "beam": Schema(frozenset({"chat", "probing_questions"}), read_probed_chats),
    "realmem": Schema(frozenset({"dialogues"}), read_replayed_chats),
    "changes": Schema(frozenset({"person", "turns", "questions"}), read_lives),
    "tsqa": Schema(frozenset({"paras", "questions", "page"}), read_pages, chat=False),
}

# Files beside a set that say more about it: the keys that tell them, and what their rows are found by.
_COMPANIONS: Mapping[str, tuple[frozenset[str], Callable[[JsonRow], Any]]] = {
    "index": (
        frozenset({"qid", "sample_id", "qa_index", "evidence"}),
        lambda row: (str(row["sample_id"]), int(row["qa_index"])),
    ),
    "errata": (frozenset({"question_id", "correct_evidence"}), lambda row: str(row["question_id"])),
    "haystack index": (frozenset({"question_id", "gold_turns"}), lambda row: str(row["question_id"])),
}
_FAULTS = frozenset({"errata", "corrected_evidence", "corrected_answer"})


def find_schema(value: object) -> str | None:
    """Return which schema a parsed file has."""
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        return None
    return next((name for name, schema in SCHEMAS.items() if schema.keys <= first.keys()), None)


def read_companion(value: object, *, corrected: bool) -> tuple[str, dict[Any, JsonRow]] | None:
    """Return which companion `value` is and its rows by key; unless `corrected`, without known faults of the gold."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return None
    for kind, (keys, key_of) in _COMPANIONS.items():
        if keys <= value[0].keys():
            rows = {key_of(row): row for row in value}
            if corrected:
                return kind, rows
            kept = {} if kind == "errata" else rows
            return kind, {
                key: {name: cell for name, cell in row.items() if name not in _FAULTS} for key, row in kept.items()
            }
    return None
