"""Corpora with relevance judgements, and pages with questions about their paragraphs."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.eval.data import UNDATED, Haystack, Message, Question
from holdfast.eval.reading import Notes, Row

Judgements = dict[str, dict[str, int]]


def read_qrels(text: str, where: Path) -> Judgements:
    """Read query, document and grade from lines parted by tabs, with a header line (BEIR) or without."""
    judged: Judgements = defaultdict(dict)
    for number, cells in enumerate(csv.reader(text.splitlines(), delimiter="\t"), start=1):
        if not cells:
            continue
        # TREC writes a fourth column between query and document; it says nothing.
        query, document, grade = (cells[0], cells[-2], cells[-1]) if len(cells) >= 3 else ("", "", "")
        if number == 1 and not _whole(grade):
            continue
        if not query or not _whole(grade):
            raise InputError(f"{where}, line {number}: {cells} is not query, document and grade; mend the line")
        judged[query][document] = int(grade)
    return judged


def _whole(text: str) -> bool:
    return text.strip().lstrip("-").isdigit()


def read_corpus(
    name: str, corpus: Sequence[Row], queries: Sequence[Row], judged: Mapping[str, Mapping[str, int]], notes: Notes
) -> Haystack:
    """Return a corpus as one haystack: every document a message, every query a question."""
    messages = {}
    for row in corpus:
        document = str(row.get("id", row.get("_id", "")))
        if document in messages:
            notes.add("duplicate document id", document, "the first is kept")
            continue
        if not str(row.get("text", "")).strip() and not str(row.get("title", "")).strip():
            notes.add("empty document", document, "not remembered; it cannot be found")
            continue
        messages[document] = Message(
            document, document, str(row.get("text", "")), UNDATED, "document", title=str(row.get("title", ""))
        )
    questions = [_corpus_question(row, judged, messages, notes) for row in queries]
    return Haystack(name, tuple(messages.values()), tuple(q for q in questions if q is not None))


def _corpus_question(
    row: Row, judged: Mapping[str, Mapping[str, int]], messages: Mapping[str, Message], notes: Notes
) -> Question | None:
    query = str(row.get("id", row.get("_id", "")))
    text = str(row.get("question", row.get("text", ""))).strip()
    if not text:
        notes.add("empty question", query, "not asked")
        return None
    grades = judged.get(query) or dict.fromkeys(row.get("gold_ids", ()), 1)
    gold = {document: grade for document, grade in grades.items() if grade > 0}
    if not gold:
        notes.add("no gold", query, "asked, but not counted in recall")
    return Question(
        query,
        text,
        str(row.get("type", "all")),
        UNDATED,
        len(messages),
        existing(gold, messages, query, notes),
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
    given: list[Any] = [row.get("answer"), *row.get("answer_aliases", ())]
    return [str(answer) for answer in given if answer not in (None, "")]


def read_pages(pages: Sequence[Row], notes: Notes) -> list[Haystack]:
    """Return each page as a haystack of its paragraphs; the gold of a question is where its answers stand."""
    haystacks = []
    for page in pages:
        name = str(page["page"])
        messages = {
            index: Message(f"{index}", name, text, UNDATED, "document")
            for index, text in enumerate(page["paras"])
            if str(text).strip()
        }
        if blank := len(page["paras"]) - len(messages):
            notes.add("empty document", f"{name}: {blank} paragraphs", "not remembered; they cannot be found")
        questions = []
        for row in page["questions"]:
            if not str(row.get("question", "")).strip():
                notes.add("empty question", row.get("qid", name), "not asked")
                continue
            places = {str(answer["para"]): 1 for answer in row.get("answers", ()) if answer.get("text")}
            questions.append(
                Question(
                    str(row["qid"]),
                    str(row["question"]),
                    str(page.get("relation", "all")),
                    UNDATED,
                    len(messages),
                    existing(places, {m.id for m in messages.values()}, row["qid"], notes),
                    answers=tuple(str(answer["text"]) for answer in row.get("answers", ()) if answer.get("text")),
                    answerable=bool(places),
                )
            )
        haystacks.append(Haystack(name, tuple(messages.values()), tuple(questions)))
    return haystacks
