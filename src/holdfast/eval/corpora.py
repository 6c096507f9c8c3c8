"""Corpora with relevance judgements, and pages with questions about their paragraphs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.eval.data import UNDATED, Haystack, Message, Question
from holdfast.eval.reading import Notes, Row, id_of, text_of

Judgements = dict[str, dict[str, int]]


_WHOLE = re.compile(r"\s*-?[0-9]+\s*")


def read_qrels(text: str, where: Path, notes: Notes | None = None) -> Judgements:
    """Read query, document and grade from lines parted by tabs, with a header line (BEIR) or without."""
    judged: Judgements = defaultdict(dict)
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
        if judged[query].setdefault(document, int(grade)) != int(grade) and notes is not None:
            notes.add("judged twice", f"{query}: {document}", "the first grade is kept")
    return judged


def read_corpus(
    name: str, corpus: Sequence[Row], queries: Sequence[Row], judged: Mapping[str, Mapping[str, int]], notes: Notes
) -> Haystack:
    """Return a corpus as one haystack: every document a message, every query a question."""
    messages = {}
    for row in corpus:
        document, title, text = id_of(row), text_of(row.get("title")), text_of(row.get("text"))
        if document in messages:
            notes.add("duplicate document id", document, "the first is kept")
            continue
        if not text.strip() and not title.strip():
            notes.add("empty document", document, "not remembered; it cannot be found")
            continue
        messages[document] = Message(document, document, text, UNDATED, "document", title=title)
    questions: dict[str, Question | None] = {}
    for row in queries:
        if id_of(row) in questions:
            # Judgements name the id, so they cannot tell which of the two they mean.
            notes.add("duplicate question id", id_of(row), "the first is kept")
            continue
        questions[id_of(row)] = _corpus_question(row, judged, messages, notes)
    return Haystack(name, tuple(messages.values()), tuple(q for q in questions.values() if q is not None))


def _corpus_question(
    row: Row, judged: Mapping[str, Mapping[str, int]], messages: Mapping[str, Message], notes: Notes
) -> Question | None:
    query, text = id_of(row), text_of(row.get("question", row.get("text"))).strip()
    if not text:
        notes.add("empty question", query, "not asked")
        return None
    grades = judged.get(query) or dict.fromkeys(map(str, row.get("gold_ids") or ()), 1)
    relevant = {document: grade for document, grade in grades.items() if grade > 0}
    gold = existing(relevant, messages, query, notes)
    if not gold:
        notes.add("no gold", query, "asked, but not counted in recall")
    return Question(
        query,
        text,
        text_of(row.get("type")) or "all",
        UNDATED,
        len(messages),
        gold,
        answers=tuple(answers_of(row)) if row.get("answer_in_gold") else (),
    )


def existing(gold: Mapping[str, int], known: Iterable[str], question: str, notes: Notes) -> dict[str, int]:
    """Return the gold that exists; note the rest."""
    known = known if isinstance(known, Mapping) else set(known)
    for item in gold:
        if item not in known:
            notes.add("gold that does not exist", f"{question}: {item}", "left out of its gold")
    return {item: grade for item, grade in gold.items() if item in known}


def answers_of(row: Row) -> list[str]:
    """Return the literal answers a row gives."""
    given: list[Any] = [row.get("answer"), *(row.get("answer_aliases") or ())]
    return [str(answer) for answer in given if answer not in (None, "")]


def read_pages(pages: Sequence[Row], notes: Notes) -> list[Haystack]:
    """Return each page as a haystack of its paragraphs; the gold of a question is where its answers stand."""
    return [_page(page, notes) for page in pages]


def _page(page: Row, notes: Notes) -> Haystack:
    name = str(page["page"])
    texts = [text_of(text) for text in page["paras"]]
    messages = tuple(
        Message(f"{index}", name, text, UNDATED, "document") for index, text in enumerate(texts) if text.strip()
    )
    if blank := len(texts) - len(messages):
        notes.add("empty document", f"{name}: {blank} paragraphs", "not remembered; they cannot be found")
    questions = [_page_question(row, page, messages, notes) for row in page["questions"]]
    return Haystack(name, messages, tuple(question for question in questions if question is not None))


def _page_question(row: Row, page: Row, messages: Sequence[Message], notes: Notes) -> Question | None:
    text = text_of(row.get("question")).strip()
    if not text:
        notes.add("empty question", row.get("qid", page["page"]), "not asked")
        return None
    answers = [answer for answer in row.get("answers") or () if answer.get("text")]
    places = {str(answer["para"]): 1 for answer in answers}
    gold = existing(places, {message.id for message in messages}, row["qid"], notes)
    if places and not gold:
        notes.add("no gold", row["qid"], "asked, but not counted in recall")
    return Question(
        str(row["qid"]), text, text_of(page.get("relation")) or "all", UNDATED, len(messages), gold,
        answers=tuple(str(answer["text"]) for answer in answers), answerable=bool(places),
    )  # fmt: skip
