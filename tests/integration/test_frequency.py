"""How often earlier contexts held a unit (C11): measured against what this question may recall."""

import dataclasses

import pytest

from builders import later, opened
from holdfast import Settings
from holdfast.testing.contracts import HashEmbedder

RECIPES = [
    dataclasses.replace(
        one,
        gate=dataclasses.replace(one.gate, policy="off"),
        assembly=dataclasses.replace(one.assembly, fill=0.0),
    ).without_timeouts()
    for one in (Settings(), Settings.reference())
]


@pytest.mark.parametrize("settings", RECIPES, ids=["default", "reference"])
def test_a_turn_of_the_tail_is_no_measure_of_what_is_recalled(settings):
    with opened(settings, embedder=HashEmbedder(64)) as memory:
        memory.remember("quokka lantern orrery one", user="ana", session="s", at=later(minutes=-9))
        memory.remember("vellum sextant two", user="ana", session="o", at=later(minutes=-9))
        for question, times in (("quokka lantern orrery", 9), ("vellum sextant", 2)):
            for _ in range(times):
                memory.assemble(question, user="ana", session="x", budget=500)
        asked = [
            memory.assemble("vellum sextant", user="ana", session=session, budget=500, track_access=False).trace
            for session in ("s", "x")
        ]
        held = max(
            one.access_count
            for one in (memory.get(u.id, user="ana") for u in memory.list(user="ana"))
            if "vellum" in one.text
        )
        assert [one.projection.asked.max_access for one in asked] == [held, 9]
