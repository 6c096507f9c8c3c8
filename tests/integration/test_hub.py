"""A busy symbol (C8): ten thousand facts touch one thing, and the bridge through it is still found in time."""

import json

import pytest

from builders import known_facts, opened, watched
from holdfast import Settings

FACTS = 10_000
BRIDGE = (
    ("The heron desk keeps its plans in Atlas.", "heron desk", "uses", "Atlas"),
    ("Tide tables come out of Atlas.", "Atlas", "provides", "tide tables"),
    ("Whoever leaves in the dark looks at tide tables.", "tide tables", "relevant_for", "night sailing"),
)
# The default time for one strategy is 500 ms: with this clock, five thousand looks at it.
LOOK_SECONDS = 0.0001


def unit(claim, subject, relation, other, confidence=0.9):
    fields = {"claim": claim, "subject": subject, "relation": relation, "object": other, "confidence": confidence}
    return json.dumps(fields)


def crowd():
    """Yield surer facts on both sides of the hub than those of the bridge, and before them in every order."""
    for i in range(FACTS // 2):
        yield unit(f"Aide {i} works with it.", f"aide {i:05}", "uses", "Atlas", 1.0)
        yield unit(f"It has ware {i}.", "Atlas", "provides", f"ware {i:05}", 1.0)


@pytest.fixture(scope="module")
def memory():
    looks = iter(range(10**9))
    with watched(lambda: next(looks) * LOOK_SECONDS):
        kept = opened(Settings())
    with kept:
        lines = [*crowd(), *(unit(*one) for one in BRIDGE)]
        kept.ingest("\n".join(lines), name="hub.jsonl", user="ana")
        yield kept


@pytest.mark.parametrize(
    ("question", "bridge"),
    [
        ("Why does the heron desk matter for night sailing?", BRIDGE[1][0]),
        ("Is the heron desk of any help with tide tables?", BRIDGE[0][0]),
    ],
)
def test_the_bridge_through_a_hub_is_found_in_time(memory, question, bridge):
    found = memory.search(question, user="ana", profile="thinking", explain=True)
    assert [one.strategy_id for one in found.trace.results if one.exhausted_budget] == []
    assert bridge in [hit.unit.text for hit in found]
    for hit in found:
        assert hit.contributions.compose() == hit.score


def test_the_crowd_is_really_there(memory):
    assert memory.stats(user="ana").units == FACTS + len(BRIDGE)
    busy = known_facts(memory, memory._view(user="ana")).about(["atlas"], FACTS)
    assert len(busy) == FACTS + 2


def test_the_proof_shows_the_bridge_and_not_the_crowd(memory):
    found = memory.search("Why does the heron desk matter for night sailing?", user="ana", profile="thinking")
    [symbolic] = [one for one in found.trace.results if one.strategy_id == "thinkingdb-symbolic"]
    assert {memory.get(claim.unit_id, user="ana").text for claim in symbolic.candidates} == {one[0] for one in BRIDGE}
