"""Hard rules are checked when a store is opened (C16): they are in every context."""

import dataclasses
import logging

import pytest

from builders import WORDS_ONLY, opened
from holdfast import BudgetError, Memory, Settings

RULES = "\n".join(f"- Always say which of the {n} boats it is, and where it lies now." for n in range(20))


def settings_of(recipe, budget):
    """Return settings of a recipe with a budget, for a memory of words alone."""
    assembly = dataclasses.replace(recipe.assembly, budget=budget)
    store = dataclasses.replace(recipe.store, user="ana")
    return dataclasses.replace(recipe, assembly=assembly, store=store, embedding=WORDS_ONLY)


def test_rules_of_several_agents_are_not_counted_together(tmp_path):
    path, strict = tmp_path / "m.db", Settings.reference()
    with opened(strict, path=path) as memory:
        for agent in ("main", "other"):
            memory.ingest(RULES, user="ana", name=f"agent:{agent}/AGENTS.md", core=True)
    Memory.open(path, settings=settings_of(strict, 1_700)).close()
    with pytest.raises(BudgetError, match=r"agent:main/AGENTS\.md"):
        Memory.open(path, settings=settings_of(strict, 800))


@pytest.mark.parametrize("owner", ["user", "global"])
def test_rules_above_their_share_are_refused_at_open_or_told_where_they_are_tolerated(tmp_path, caplog, owner):
    path, strict = tmp_path / "m.db", Settings.reference()
    with opened(strict, path=path) as memory:
        memory.ingest(RULES, user="ana", name="AGENTS.md", core=True, scope=owner)
    with pytest.raises(BudgetError, match=r"AGENTS\.md"):
        Memory.open(path, settings=settings_of(strict, 800))
    Memory.open(path, settings=settings_of(strict, 8_000)).close()  # what refused to open has let go of the file
    assert not caplog.records
    with caplog.at_level(logging.WARNING, logger="holdfast"):
        Memory.open(path, settings=settings_of(Settings(), 800)).close()
    assert "assembly.hard_share" in caplog.text
