"""What is known of a user: fifty questions are asked of a memory, and what surely answers them makes a list (C9).

Nothing is stored. What is kept in this process are ids and numbers, under the change mark of the store, and none of
the words: an erasure leaves nothing of them here (law 16).
"""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import Literal, NamedTuple

from holdfast.messages.checks import check_given_text, choose
from holdfast.models import open_reader
from holdfast.models.reader import Turn
from holdfast.recall import search
from holdfast.retrieval.question import Engine, Question
from holdfast.settings import Settings
from holdfast.store.contract import NO_DEADLINE, Reading
from holdfast.store.queries import LexicalQuery
from holdfast.text.questions import asks_only
from holdfast.text.terms import TOKENIZERS, terms
from holdfast.types import FIELDS, Hit, SearchResult, TurnReading, Unit, View
from holdfast.types.known import About, AboutLine, Replaced
from holdfast.types.outcomes import Progress
from holdfast.values import dataclass

# What the reader says, with the others, of a turn that may be a line: that it answers, and that no later one put it
# out of date. Of a plain statement it often says otherwise, so that one without a later rival needs less: a rival is
# of the subject too, and alone its logit is so high.
_LEAST_ANSWERS, _MOST_EARLIER = 0.7, 0.5
_LONE_ANSWERS, _LONE_EARLIER, _LONE_ALONE, _RIVAL = 0.4, 0.9, 2.5, 2.0
# An older turn is shown as replaced when the reader is this sure of it, read with others and alone: .76 and .88 of
# such marks were right on two development sets.
_LEAST_EARLIER, _LEAST_ALONE = 0.9, 4.0
# A line is right and current with the chance 1 / (1 + e^-(bias + weights · evidence)): the reader's logit of the turn
# alone, the hit's confidence up to a bound, and whether the turn is short, as a long one answers many questions by
# accident. Fitted to 167 lines about 26 invented people, judged by hand; .71 of those from .5 on were right, each
# person left out of the fit.
_BIAS, _ALONE, _CONFIDENCE, _SHORT = -3.6, 0.43, 2.99, 1.1
_MOST_CONFIDENCE, _SHORT_TEXT = 0.5, 110
# More likely right than wrong.
_LEAST_SURE = 0.5
# The twelve that are read, and some that are not: documents, and turns that say little.
_HITS = 20
# Owners whose answers are kept: a few kilobytes each.
_KEPT = 64

# Called with a question's words, and by their names with the profile, how many hits, and how they are read.
MakeQuestion = Callable[..., Question]
Ask = Callable[[str], SearchResult]


@dataclass(frozen=True, slots=True)
class AboutQuestion:
    """A question that is asked of every memory; an answer holds one of the `terms`."""

    topic: str
    text: str
    terms: frozenset[str]


class AboutAnswer(NamedTuple):
    """The turn that answers a question, how surely, and the turns that it replaced: ids and numbers."""

    question: int
    id: str
    confidence: float
    replaced: tuple[str, ...]


Answers = tuple[tuple[AboutAnswer, ...], tuple[str, ...]]  # and what makes them less than they could be


@cache
def questions() -> tuple[AboutQuestion, ...]:
    """Return the fifty questions, by topic."""
    text = (resources.files("holdfast") / "about.txt").read_text(encoding="utf-8")
    topic, found = "", []
    for line in filter(None, text.splitlines()):
        if line.startswith("["):
            topic = line[1:-1]
        elif not line.startswith("#"):
            asked, _, subject = line.partition(" | ")
            found.append(AboutQuestion(topic, asked, frozenset(terms(subject))))
    return tuple(found)


class AboutCache:
    """Answers by owner, each as long as nothing changed. It may be shared by threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[object, tuple[str, Answers]] = OrderedDict()

    def find(self, key: object, mark: str) -> Answers | None:
        """Return the answers of an owner, unless something has changed since; those are dropped."""
        known, answers = self._kept.get(key, ("", None))
        if answers is not None and known != mark:
            self._kept.pop(key, None)
        return answers if known == mark else None

    def keep(self, key: object, mark: str, answers: Answers) -> None:
        """Keep the answers of an owner in the place of the oldest."""
        self._kept[key] = (mark, answers)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()


def about(
    engine: Engine, make_question: MakeQuestion, known: AboutCache, view: View, topic: str | None, limit: int | None,
    progress: Progress,
) -> About:  # fmt: skip
    """Return what is known of the user of a view; `limit` is the most lines.

    Raises:
        InputError: there is no such topic.
    """
    topics = tuple(dict.fromkeys(one.topic for one in questions()))
    wanted = topics if topic is None else (choose("topic", check_given_text("topic", topic), topics),)
    asked = [place for place, one in enumerate(questions()) if one.topic in wanted]
    # Hits fade with time: a day changes little, and what expires meanwhile is looked for below.
    key = (view.tenant, view.user, view.agent, topic, view.now.date())
    with engine.store.reading(view) as reading:
        mark = reading.mark()
        answers = known.find(key, mark)
        lines = [] if answers is None else _read_lines(reading, answers[0])
        spoken_of = [place for place in asked if _is_spoken_of(engine.settings, reading, questions()[place])]
    if answers is None or len(lines) < len(answers[0]):
        past = dataclasses.replace(view, current_only=False)
        ask, ask_past = (partial(_search, engine, make_question, seen) for seen in (view, past))
        answers = _ask_all(spoken_of, ask, partial(ask_past, read=False), progress)
        with engine.store.reading(view) as reading:
            lines = _read_lines(reading, answers[0])
            # What was written meanwhile is not in all of the answers; what lacks something is not kept.
            if reading.mark() == mark and not answers[1]:
                known.keep(key, mark, answers)
    surest = sorted(lines, key=lambda one: -one.confidence)[:limit]
    return About(tuple(one for one in lines if one in surest), len(asked), answers[1])


def _is_spoken_of(settings: Settings, reading: Reading, asked: AboutQuestion) -> bool:
    """Return whether anything has a word of the subject, where words are kept as they are compared here."""
    words, weights = tuple(sorted(asked.terms)), (1.0,) * len(FIELDS)
    query = LexicalQuery(words, weights, settings.lexical.k1, settings.lexical.b, frozenset(), role_boost=1.0)
    return TOKENIZERS[settings.analysis.tokenizer] is not terms or bool(reading.propose(query, 1, NO_DEADLINE).ids)


def _read_lines(reading: Reading, answers: Sequence[AboutAnswer]) -> list[AboutLine]:
    """Return the answers with their words; one that is hidden by now is left out."""
    ids = [answer.id for answer in answers]
    units = reading.units([*ids, *(one for answer in answers for one in answer.replaced)])
    hidden = reading.columns(ids, ("hidden",))["hidden"].tolist() if ids else []
    shown = zip(answers, hidden, strict=True)
    return [_line(answer, units) for answer, reason in shown if reason is None and answer.id in units]


def _line(answer: AboutAnswer, units: Mapping[str, Unit]) -> AboutLine:
    asked, unit = questions()[answer.question], units[answer.id]
    before = sorted((units[one] for one in answer.replaced if one in units), key=lambda one: one.moment)
    replaced = tuple(Replaced(one.id, one.event_time, one.text) for one in before)
    return AboutLine(
        asked.topic, asked.text, unit.id, unit.text, unit.event_time, unit.author, answer.confidence, unit.speaker,
        replaced,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------- asking


def _search(
    engine: Engine, make_question: MakeQuestion, view: View, text: str, read: Literal["once", False] = "once"
) -> SearchResult:
    """Ask a question as any other."""
    return search(engine, make_question(text, profile_name="hybrid", limit=_HITS, read=read), view)


def _ask_all(asked: Sequence[int], ask: Ask, ask_past: Ask, progress: Progress) -> Answers:
    """Ask the questions; a turn that answers several stands once, where that is surest."""
    best: dict[str, AboutAnswer] = {}
    warnings: dict[str, None] = {}
    for done, place in enumerate(asked):
        progress(done, len(asked))
        found = ask(questions()[place].text)
        warnings |= dict.fromkeys(found.warnings)
        answer = _answer(place, found)
        if answer is not None and (answer.id not in best or answer.confidence > best[answer.id].confidence):
            best[answer.id] = answer
    progress(len(asked), len(asked))
    outdated = {old for answer in best.values() for old in answer.replaced}
    kept = [_with_superseded(answer, ask_past) for answer in best.values() if answer.id not in outdated]
    return tuple(sorted(kept, key=lambda one: one.question)), tuple(warnings)


def _with_superseded(answer: AboutAnswer, ask_past: Ask) -> AboutAnswer:
    """Return the answer with what it superseded, as far as the question finds that."""
    found = ask_past(questions()[answer.question].text)
    past = (hit.unit.id for hit in found if hit.unit.superseded_by == answer.id)
    return answer._replace(replaced=tuple(dict.fromkeys((*answer.replaced, *past))))


def _answer(place: int, found: SearchResult) -> AboutAnswer | None:
    """Return the turn that answers a question best, or None when none surely does."""
    asked = questions()[place]
    read = _read(asked, found)
    said = {hit.unit.id: hit for hit in found if hit.unit.id in read and _is_of(asked, hit.unit)}
    alone = {one: _read_alone(asked, hit.unit) for one, hit in said.items()}
    last = [*read][-1:]  # they are in the order of time
    may = [
        (_confidence(hit, alone[one]), hit)
        for one, hit in said.items()
        if [one] == last or _holds(one, read[one], said, alone)
    ]
    sure, best = max(may, key=lambda pair: pair[0], default=(0.0, None))
    if best is None or sure < _LEAST_SURE:
        return None
    return AboutAnswer(place, best.unit.id, sure, tuple(_replaced(best.unit, said, read, alone)))


def _read(asked: AboutQuestion, found: SearchResult) -> Mapping[str, TurnReading]:
    """Return what the reader says of the hits; a single one, which no search reads, is read here."""
    readings, told = found.trace.readings, [hit.unit for hit in found if hit.unit.kind == "turn"]
    if readings is not None or len(found) != 1 or not told or found.degraded or asks_only(told[0]):
        return {} if readings is None else readings.turns
    judged = open_reader().judge(asked.text, [_turn(told[0])])
    columns = (judged.rank, judged.answers, judged.earlier, judged.other_time)
    return {told[0].id: TurnReading(*(float(column[0]) for column in columns))}


def _is_of(asked: AboutQuestion, unit: Unit) -> bool:
    """Return whether they are the user's words, and of the question's subject."""
    return unit.author == "user" and not asked.terms.isdisjoint(terms(unit.text))


def _holds(one: str, read: TurnReading, said: Mapping[str, Hit], alone: Mapping[str, float]) -> bool:
    """Return whether a turn answers, and no later one put it out of date, by what the reader says."""
    if read.answers >= _LEAST_ANSWERS and read.earlier < _MOST_EARLIER:
        return True
    moment = said[one].unit.moment
    rivals = [other for other, hit in said.items() if hit.unit.moment > moment and alone[other] >= _RIVAL]
    lone = read.answers >= _LONE_ANSWERS and read.earlier < _LONE_EARLIER and alone[one] >= _LONE_ALONE
    return lone and not rivals


def _confidence(hit: Hit, alone: float) -> float:
    evidence = _ALONE * alone + _SHORT * (len(hit.unit.text) <= _SHORT_TEXT)
    evidence += _CONFIDENCE * min(hit.confidence or 0.0, _MOST_CONFIDENCE)
    return 1.0 / (1.0 + math.exp(-(_BIAS + evidence)))


def _replaced(
    unit: Unit, said: Mapping[str, Hit], read: Mapping[str, TurnReading], alone: Mapping[str, float]
) -> Iterator[str]:
    """Yield the older turns that one took the place of, where the reader is sure of it."""
    for old, hit in said.items():
        outdated = alone[old] >= _LEAST_ALONE and read[old].earlier >= _LEAST_EARLIER
        if outdated and hit.unit.moment < unit.moment:
            yield old


def _read_alone(asked: AboutQuestion, unit: Unit) -> float:
    return open_reader().pair(asked.text, _turn(unit))


def _turn(unit: Unit) -> Turn:
    return Turn(unit.speaker or unit.author, unit.text)
