"""The set of questions people ask of their own history: its format, and the counts that its README gives."""

import json
import re
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data/asked"
HALVES = ("dev", "held")
TURN_KEYS = {"id", "session", "at", "role", "text"}
QUESTION_KEYS = {
    "id",
    "case",
    "kind",
    "topic",
    "about",
    "asked_at",
    "text",
    "gold",
    "current",
    "earlier",
}
OPTIONAL_KEYS = {"also"}
SEVERAL_TURNS = ("temporal2", "aggregate")
SPOKEN_BY_ASSISTANT = ("assistant", "instruction")


def read_person(half):
    (line,) = (DATA / f"{half}.jsonl").read_text("utf-8").splitlines()
    return json.loads(line)


def count_questions(half, field):
    return Counter(q[field] for q in read_person(half)["questions"])


PEOPLE = [pytest.param(read_person(half), id=half) for half in HALVES]


@pytest.mark.parametrize("person", PEOPLE)
def test_turns_ascend_in_time_and_no_text_is_said_twice(person):
    turns = person["turns"]
    assert all(set(turn) == TURN_KEYS for turn in turns)
    assert len({turn["id"] for turn in turns}) == len(turns)
    times = [datetime.fromisoformat(turn["at"]) for turn in turns]
    assert all(before < after for before, after in pairwise(times))
    sessions = [turn["session"] for turn in turns]
    assert len(dict.fromkeys(sessions)) == 1 + sum(a != b for a, b in pairwise(sessions))
    assert {turn["role"] for turn in turns} == {"user", "assistant"}
    texts = [turn["text"].strip() for turn in turns]
    assert all(texts)
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("person", PEOPLE)
def test_questions_name_turns_that_exist_and_are_asked_at_one_later_moment(person):
    at = {turn["id"]: turn["at"] for turn in person["turns"]}
    questions = person["questions"]
    for field in ("id", "case", "text"):
        assert len({q[field] for q in questions}) == len(questions)
    assert len({q["asked_at"] for q in questions}) == 1
    for q in questions:
        assert QUESTION_KEYS <= set(q) <= QUESTION_KEYS | OPTIONAL_KEYS, q["id"]
        named = [*q["gold"], *q["earlier"], *q.get("also", [])]
        assert set(named) <= set(at), q["id"]
        assert len(named) == len(set(named)), q["id"]
        assert q["asked_at"] > max(at.values()), q["id"]


@pytest.mark.parametrize("person", PEOPLE)
def test_a_question_about_now_has_one_current_turn_and_the_others_have_none(person):
    at = {turn["id"]: turn["at"] for turn in person["turns"]}
    for q in person["questions"]:
        if q["about"] == "now":
            assert q["gold"] == [q["current"]], q["id"]
            assert all(at[turn] < at[q["current"]] for turn in q["earlier"]), q["id"]
        else:
            assert (q["current"], q["earlier"]) == (None, []), q["id"]
            assert bool(q["gold"]) == (q["about"] in ("then", "both")), q["id"]


@pytest.mark.parametrize("person", PEOPLE)
def test_each_kind_is_what_its_name_says(person):
    role = {turn["id"]: turn["role"] for turn in person["turns"]}
    for q in person["questions"]:
        assert (q["kind"] == "unanswerable") == (q["about"] == "unknown"), q["id"]
        assert (len(q["gold"]) > 1) == (q["about"] == "both"), q["id"]
        if q["kind"] in SEVERAL_TURNS:
            assert q["about"] == "both", q["id"]
        if q["kind"] in ("changed", "followup"):
            assert q["earlier"] or q["about"] == "then", q["id"]
        if q["kind"] in SPOKEN_BY_ASSISTANT:
            assert role[q["current"]] == "assistant", q["id"]


def test_no_turn_or_question_is_in_both_halves():
    dev, held = (read_person(half) for half in HALVES)
    assert dev["person"] != held["person"]
    for field in ("turns", "questions"):
        for key in ("id", "text"):
            assert not {row[key] for row in dev[field]} & {row[key] for row in held[field]}


def test_the_readme_gives_the_counts_that_the_files_hold():
    rows = re.findall(r"^\| ([\w :]+) \| (\d+) \| (\d+) \|", (DATA / "README.md").read_text("utf-8"), re.MULTILINE)
    given = {name: (int(dev), int(held)) for name, dev, held in rows}
    people = [read_person(half) for half in HALVES]
    answered = [sum(q["about"] != "unknown" for q in p["questions"]) for p in people]
    counted = {
        "Turns:": tuple(len(p["turns"]) for p in people),
        "Sessions:": tuple(len({turn["session"] for turn in p["turns"]}) for p in people),
        "Questions with an answer:": tuple(answered),
        "Questions without an answer:": tuple(
            len(p["questions"]) - count for p, count in zip(people, answered, strict=True)
        ),
    }
    for field in ("kind", "about"):
        dev, held = (count_questions(half, field) for half in HALVES)
        assert set(dev) == set(held)
        counted |= {name: (dev[name], held[name]) for name in dev}
    assert given == counted
