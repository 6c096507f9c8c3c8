"""What an answer tells of itself, computed again by formulas of its own: nothing of ranking or context is imported.

The words are few, so that many turns match; numbers are those of the contract, written out.
"""

import dataclasses
import math
import random

import numpy as np
import pytest

from builders import later, opened
from holdfast import BudgetError, Settings
from holdfast.testing.contracts import HashEmbedder

WORDS = "harbour lamp tide chart boat anchor rope sail wind storm island ferry captain crew cargo dock".split()
RECIPES = {"default": Settings(), "reference": Settings.reference()}
EITHER = pytest.mark.parametrize("recipe", RECIPES)


def plain(recipe, *, additions=True, **temporal):
    """Return a recipe in which a context holds only what its question brings up."""
    one = RECIPES[recipe]
    share = {} if additions else {"first_hit": False, "standing_share": 0.0}
    return dataclasses.replace(
        one,
        gate=dataclasses.replace(one.gate, policy="off"),
        assembly=dataclasses.replace(one.assembly, fill=0.0, **share),
        temporal=dataclasses.replace(one.temporal, **temporal),
    ).without_timeouts()


def fill(memory, chance, sessions="abc", turns=7, words=5):
    for session in sessions:
        for number in range(turns):
            text = " ".join(chance.sample(WORDS, words)) + f" {session}{number}"
            memory.remember(text, user="ana", session=session, at=later(minutes=-chance.randint(5, 900)))
    return {unit.id: unit for unit in memory.list(user="ana", limit=None)}


# ------------------------------------------------------------------------------------------- how often it was used


@EITHER
@pytest.mark.parametrize("seed", range(3))
def test_the_most_used_is_looked_for_among_what_neither_tail_nor_host_shows(recipe, seed):
    chance = random.Random(seed)
    with opened(plain(recipe), embedder=HashEmbedder(64)) as memory:
        units = fill(memory, chance)
        memory.remember("harbour lamp tide", user="bob", session="a")  # others' counts are not ana's
        for _ in range(20):
            memory.assemble("harbour lamp tide", user="bob", session="z", budget=300)
        used = dict.fromkeys(units, 0)
        for _ in range(6):
            question, budget = " ".join(chance.sample(WORDS, 3)), chance.choice([120, 300, 900])
            context = memory.assemble(question, user="ana", session="x", budget=budget)
            for unit_id in {item.id for item in context.items}:
                used[unit_id] += 1
        assert {unit_id: memory.get(unit_id, user="ana").access_count for unit_id in units} == used
        shown = units[max(used, key=used.get)].text
        for session in ("a", "x", None):
            for host in ((), (shown,)):
                messages = [{"role": "user", "content": text} for text in (*host, "boat anchor rope")]
                context = memory.assemble(messages, user="ana", session=session, budget=400, track_access=False)
                tail = {item.id for item in context.section("tail").items}
                here = {u for u, unit in units.items() if unit.text in host and session in (None, unit.session)}
                most = max(count for unit_id, count in used.items() if unit_id not in tail | here)
                assert context.trace.projection.asked.max_access == most


# ------------------------------------------------------------------------------------------------- the exit's tier


class Given:
    """Vectors by text."""

    def __init__(self, table):
        self.table, self.dims = table, len(next(iter(table.values())))
        self.space = f"given/{self.dims}/mean/1"

    def embed_documents(self, texts):
        return np.array([self.table[text] for text in texts], dtype=np.float32).reshape(len(texts), self.dims)

    def embed_query(self, text):
        return self.table[text].astype(np.float32)


def nearness(one, other, tier):
    one, other = (vector[:tier].astype(np.float64) for vector in (one, other))
    return float(one @ other) / math.sqrt((one @ one + 1e-16) * (other @ other + 1e-16))


def vectors_near(asked, chance):
    """Return vectors whose nearness differs by tier."""
    for _ in range(int(chance.integers(1, 12))):
        noise = [chance.uniform(0.6, 5), chance.uniform(0, 2), chance.uniform(0, 2)]
        bands = (asked[:64], asked[64:256], asked[256:])
        yield np.concatenate([
            band + loud * chance.standard_normal(len(band)) for band, loud in zip(bands, noise, strict=True)
        ])  # fmt: skip


def test_the_tier_that_is_told_is_the_first_whose_best_cosine_suffices():
    chance, told = np.random.default_rng(3), []
    settings = plain("reference")
    for dims in (40, 64, 100, 256, 300) * 8:
        asked = chance.standard_normal(dims)
        table = {"the question": asked / np.linalg.norm(asked)}
        for number, vector in enumerate(vectors_near(asked, chance)):
            table[f"question document {number}"] = vector / np.linalg.norm(vector)
        rest = [vector for text, vector in table.items() if text != "the question"]
        best = {tier: max(nearness(table["the question"], row, tier) for row in rest) for tier in (64, 256)}
        limits = [(64, 0.65), (256, 0.75)]
        if any(abs(best[tier] - limit) < 2e-3 for tier, limit in limits):  # stored vectors are of 16 bits
            continue
        mine = next((tier for tier, limit in limits if tier < dims and best[tier] >= limit), dims)
        with opened(settings, embedder=Given(table)) as memory:
            memory.remember([text for text in table if text != "the question"], user="ana")
            hits = memory.search("the question", user="ana", explain=True)
            notes = {note for hit in hits for note in hit.notes if note.startswith("tier")}
            assert notes == ({f"tier: {mine}"} if hits else set())  # at all dimensions all may be too far
            told += [mine] * bool(hits)
    assert {64, 256, 300} <= set(told)


# -------------------------------------------------------------------------------------------------- rules at open


@pytest.mark.parametrize("seed", range(4))
def test_a_store_opens_exactly_where_its_rules_fit_their_share_of_the_budget(tmp_path, seed):
    chance = random.Random(seed)
    lines = [f"- Always say which {'boat ' * chance.randint(1, 9)}it is, {n}." for n in range(chance.randint(1, 15))]
    path = tmp_path / "store.db"

    def with_budget(budget):
        one = RECIPES["reference"]
        assembly = dataclasses.replace(one.assembly, budget=budget)
        return dataclasses.replace(one, assembly=assembly, store=dataclasses.replace(one.store, user="ana"))

    with opened(with_budget(8_000), path=path) as memory:
        memory.ingest("\n".join(lines), user="ana", name="AGENTS.md", core=True)
        cost = memory.assemble("boat", user="ana", track_access=False).section("hard").tokens
    least = -(-cost * 10 // 3)  # three tenths of it hold the rules
    for budget in (least - 1, least, least + 1):
        fits = cost * 10 <= budget * 3
        if fits:
            opened(with_budget(budget), path=path).close()
        else:
            with pytest.raises(BudgetError):
                opened(with_budget(budget), path=path)
        with opened(with_budget(8_000), path=path) as memory:
            assert bool(memory.assemble("boat", user="ana", budget=budget).degraded) != fits


# ------------------------------------------------------------------------------------------ what a context is of


@EITHER
@pytest.mark.parametrize("additions", [True, False], ids=["with additions", "the sources' set"])
def test_a_context_holds_the_projection_and_in_the_default_recipe_requests_and_the_first_hit(recipe, additions):
    chance, requests = random.Random(1), 0
    with opened(plain(recipe, additions=additions), embedder=HashEmbedder(64)) as memory:
        fill(memory, chance)
        memory.remember("From now on answer in German.", user="ana", session="a", at=later(minutes=-1000))
        for _ in range(8):
            question = " ".join(chance.sample(WORDS, 3))
            context = memory.assemble(question, user="ana", session="x", budget=300, track_access=False)
            made, first = context.trace.projection, memory.search(question, user="ana", session="x")[:1]
            sources = made.chosen if made.active else made.second
            if made.active and plain(recipe).temporal.keep_rest:
                sources = (*made.chosen, *made.second)
            mine = {one.unit.id for one in (*sources, *made.hops)}
            extra = {item.id: item.text for item in context.items if item.id not in mine}
            extra = {i: text for i, text in extra.items() if i not in [hit.unit.id for hit in first] or not additions}
            requests += len(extra)
            assert set(extra.values()) <= ({"From now on answer in German."} if additions else set())
    assert bool(requests) == (additions and recipe == "default")


# ---------------------------------------------------------------------------------------- temporal selection (C13)

DATES = ("", "on 2026-03-14", "on 3 May 2026 and on 2026-04-01", "on 2026-01-02, 2026-01-03 and 2026-01-04")
RELATIVE = ("two days ago", "at 3pm", "at noon")  # an anchor each in the default recipe alone
SHARES = {"default": (0.4, 0.4, 0.2), "reference": (0.6, 0.2, 0.2)}


def picks_of(pool, slots, xi, shares):
    """Return S*, greedily: at most three, none below .1, ties by id."""
    count, chosen = max(slots, 1), []

    def value(one, others):
        covered = set().union(*(other["slots"] for other in others))
        mix = shares[0] * one["final"] + shares[1] * one["density"] + shares[2] * len(one["slots"] - covered) / count
        return min((1 - xi) * one["final"] + xi * min(mix, 1.0), 1.0)

    while len(chosen) < 3 and (rest := [one for one in pool if one not in chosen]):
        best = min(rest, key=lambda one: (-value(one, chosen), one["id"]))
        if value(best, chosen) < 0.1:
            break
        chosen.append(best)
    return {one["id"]: value(one, [other for other in chosen if other is not one]) for one in chosen}


@EITHER
@pytest.mark.parametrize("seed", range(3))
def test_the_units_chosen_for_two_events_are_those_of_the_greedy_formula(recipe, seed):
    chance, embedder = random.Random(seed), HashEmbedder(64)
    question = "How many days passed between the harbour storm and the ferry island?"
    with opened(plain(recipe), embedder=embedder) as memory:
        density = {}
        for number in range(40):
            date = chance.choice([*DATES, *RELATIVE])
            text = " ".join(chance.sample(WORDS, 4)) + f" n{number} {date}"
            anchors = 1 if recipe == "default" and date in RELATIVE else 0
            density[text] = DATES.index(date) / 3 if date in DATES else anchors / 3
            memory.remember(text, user="ana", session="a", at=later(minutes=-chance.randint(5, 9000)))
        context = memory.assemble(question, user="ana", session="x", budget=600, track_access=False)
    made = context.trace.projection
    assert made.active

    def nearness_of(slot, text):
        one, other = embedder.embed_query(slot), embedder.embed_documents([text])[0]
        return nearness(one, other, 64)

    pool = []
    for one in (*made.second, *made.recovered):
        text = one.unit.text
        near = [nearness_of(slot, text) for slot in made.asked.slots]
        final = one.contributions.value
        covered = {place for place, cosine in enumerate(near) if cosine >= 0.5}
        pool.append({"id": one.unit.id, "final": final, "density": density[text], "slots": covered})
    mine = picks_of(pool, len(made.asked.slots), made.asked.indicator.value, SHARES[recipe])
    found = {one.unit.id: one.score for one in made.chosen}
    assert found.keys() == mine.keys()
    assert found == pytest.approx(mine, abs=1e-6)
    assert all(density[one.unit.text] > 0 for one in made.recovered if recipe == "default")
