"""The set of told changes: its format, its halves, and the counts that its README gives."""

import json
import re
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data/changes"
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
OPTIONAL_KEYS = {"also", "decoys"}
FEWEST_CHANGES = 160
FEWEST_LOOK_ALIKES = 30


def read_half(half):
    return [json.loads(line) for line in (DATA / f"{half}.jsonl").read_text("utf-8").splitlines()]


def is_look_alike(kind):
    return kind.startswith("alike-")


def count_cases(half, field):
    told = {(q["case"], q[field]) for p in read_half(half) for q in p["questions"] if q["about"] != "unknown"}
    return Counter(value for _, value in told)


def count_questions(half):
    return Counter(q["about"] for p in read_half(half) for q in p["questions"])


PEOPLE = [pytest.param(p, id=p["person"]) for half in HALVES for p in read_half(half)]


@pytest.mark.parametrize("person", PEOPLE)
def test_turns_ascend_in_time_and_sessions_are_whole(person):
    turns = person["turns"]
    assert all(set(turn) == TURN_KEYS for turn in turns)
    assert len({turn["id"] for turn in turns}) == len(turns)
    times = [datetime.fromisoformat(turn["at"]) for turn in turns]
    assert all(before < after for before, after in pairwise(times))
    sessions = [turn["session"] for turn in turns]
    assert len(dict.fromkeys(sessions)) == 1 + sum(a != b for a, b in pairwise(sessions))
    assert {turn["role"] for turn in turns} == {"user", "assistant"}
    assert all(turn["text"].strip() for turn in turns)


@pytest.mark.parametrize("person", PEOPLE)
def test_questions_name_turns_that_exist_and_are_asked_afterwards(person):
    at = {turn["id"]: turn["at"] for turn in person["turns"]}
    questions = person["questions"]
    assert len({q["id"] for q in questions}) == len(questions)
    for q in questions:
        assert QUESTION_KEYS <= set(q) <= QUESTION_KEYS | OPTIONAL_KEYS, q["id"]
        named = [*q["gold"], *q["earlier"], *q.get("also", []), *q.get("decoys", [])]
        assert set(named) <= set(at), q["id"]
        assert len(named) == len(set(named)), q["id"]
        assert q["asked_at"] > max(at.values()), q["id"]


@pytest.mark.parametrize("person", PEOPLE)
def test_a_question_about_now_has_one_current_turn_and_the_others_have_none(person):
    at = {turn["id"]: turn["at"] for turn in person["turns"]}
    for q in person["questions"]:
        if q["about"] == "now":
            assert q["gold"] == [q["current"]], q["id"]
            assert q["earlier"] or is_look_alike(q["kind"]), q["id"]
            assert all(at[turn] < at[q["current"]] for turn in q["earlier"]), q["id"]
        else:
            assert (q["current"], q["earlier"]) == (None, []), q["id"]
            assert bool(q["gold"]) == (q["about"] in ("then", "both")), q["id"]


@pytest.mark.parametrize("person", PEOPLE)
def test_the_current_turn_is_the_newest_gold_of_its_case(person):
    at = {turn["id"]: turn["at"] for turn in person["turns"]}
    newest = {}
    for q in person["questions"]:
        for turn in q["gold"]:
            newest[q["case"]] = max(newest.get(q["case"], turn), turn, key=at.get)
    for q in person["questions"]:
        if q["about"] == "now" and not is_look_alike(q["kind"]):
            assert q["current"] == newest[q["case"]], q["id"]


@pytest.mark.parametrize("person", PEOPLE)
def test_each_kind_is_what_its_name_says(person):
    role = {turn["id"]: turn["role"] for turn in person["turns"]}
    asked = [q for q in person["questions"] if q["about"] == "now"]
    assert {q["case"] for q in asked} == {q["case"] for q in person["questions"] if q["about"] != "unknown"}
    cases_of = Counter(turn for turn, _ in {(q["current"], q["case"]) for q in asked})
    for q in asked:
        assert ("decoys" in q) == is_look_alike(q["kind"]), q["id"]
        if q["kind"] == "assistant":
            assert role[q["current"]] == "assistant", q["id"]
        if q["kind"] == "two":
            assert cases_of[q["current"]] == 2, q["id"]
        if q["kind"] in ("chain", "return", "gradual"):
            assert len(q["earlier"]) >= 2, q["id"]


def test_both_halves_hold_each_kind_and_topic_and_no_person_is_in_both():
    for field in ("kind", "topic"):
        assert set(count_cases("dev", field)) == set(count_cases("held", field))
    assert set(count_questions("dev")) == set(count_questions("held")) == {"now", "then", "both", "unknown"}
    dev, held = ({p["person"] for p in read_half(half)} for half in HALVES)
    assert not dev & held


def test_there_are_enough_changes_and_enough_look_alikes():
    kinds = count_cases("dev", "kind") + count_cases("held", "kind")
    look_alikes = sum(count for kind, count in kinds.items() if is_look_alike(kind))
    assert look_alikes >= FEWEST_LOOK_ALIKES
    assert sum(kinds.values()) - look_alikes >= FEWEST_CHANGES


def test_the_readme_gives_the_counts_that_the_files_hold():
    rows = re.findall(r"^\| ([\w-]+) \| (\d+) \| (\d+) \|", (DATA / "README.md").read_text("utf-8"), re.MULTILINE)
    given = {name: (int(dev), int(held)) for name, dev, held in rows}
    counted = {}
    for dev, held in (
        (count_cases("dev", "kind"), count_cases("held", "kind")),
        (count_cases("dev", "topic"), count_cases("held", "topic")),
        (count_questions("dev"), count_questions("held")),
    ):
        counted |= {name: (dev[name], held[name]) for name in dev | held}
    assert given == counted
