"""Ranking on columns equals ranking one candidate at a time, bit for bit: fusion, copies, stages, cuts and scores."""

import dataclasses
from datetime import timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import ranking_oracle as oracle
from builders import NOW, constants, known_of, later, make_unit, make_view
from holdfast import Settings
from holdfast.ranking import stages
from holdfast.ranking.score import Scoring, explain_fused, explain_rel
from holdfast.recall import cut_candidates, rank, retrieve_candidates
from holdfast.retrieval.question import Engine, Question
from holdfast.retrieval.strategy import Proposals
from holdfast.settings import AnalysisSettings, ProfileSettings, RefusalSettings, StageSettings
from holdfast.store.queries import Proposal, TimeQuery
from holdfast.text import analyse
from holdfast.types import Contribution, Lineage, QueryProfile, StrategyExplanation, StrategyScores

TERMS = ("boat", "1999", "e0308")
TEXTS = [
    "the red boat leaks", "the red boat leaks!", "the red boat leaks 5", "We met at the Lower Mill", "ok",
    "the Lower Mill and Kestrel Quay", "Kestrel Quay is far", "a long tale " * 30,
    "where is the red boat?", "Who met us at the Lower Mill?", "We rowed yesterday", "the boat left two hours ago",
]  # fmt: skip
TOPICS = ["", "", "Lower Mill", "Kestrel Quay (inn)"]
PRIMARY = ("lexical", "dense", "colour")
ids = st.integers(0, 9).map("u{}".format)
shares = st.floats(0.0, 1.0)
# Few values, so that scores tie; and any, so that sums round.
raws = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 3.0]) | st.floats(0.0, 4.0)


# --------------------------------------------------------------------------------------------------- worlds


@st.composite
def worlds(draw):
    units = {unit.id: unit for unit in (draw(made_units(f"u{i}")) for i in range(draw(st.integers(1, 9))))}
    primary = draw(st.sampled_from([PRIMARY, PRIMARY[:2], PRIMARY[:1], ("lexical", "colour")]))
    staged = draw(st.booleans()) or draw(st.booleans())
    profile = ProfileSettings(
        strategies=primary, escalation=("echo",), escalate_below=draw(st.sampled_from([0, 99])),
        rank_by="score" if staged else "fused", max_results=draw(st.integers(1, 6)),
        mix=draw(st.sampled_from([{}, {"lexical": 0.5, "dense": 0.3, "colour": 0.2, "echo": 0.1}])),
        normalise=draw(st.sampled_from(["own", "best"])), min_score=draw(st.sampled_from([0.0, 0.2])),
        gap=draw(st.sampled_from([0.0, 0.3])),
    )  # fmt: skip
    settings = dataclasses.replace(
        Settings(), stages=draw(st.sampled_from([StageSettings(), QUIET]) | st.builds(wild, *[shares] * 7)),
        refusal=RefusalSettings(enabled=draw(st.booleans())),
    )  # fmt: skip
    scores = {name: {one: draw(claims(name)) for one in units} for name in (*PRIMARY, "echo")}
    return oracle.World(
        units, scores, profile, settings, draw(queries), frozenset({"lexical"}), beside_of(units), leads_of(units)
    )


def wild(smoothing, perspective, time_range, mentions, shared_names, diversity, questions):
    return StageSettings(
        smoothing=smoothing, perspective=perspective, time_range=time_range, mentions=mentions,
        shared_names=shared_names, diversity=diversity, questions=questions,
    )  # fmt: skip


# So few units hardly meet bounds that are made for thousands.
BOUNDS = ({}, {"LINK_PARENTS": 2}, {"RARE_NAME_UNITS": 1, "LINK_PARENTS": 1, "SAME_WORDS": 0.5})
QUIET = StageSettings(
    smoothing=0.0, perspective=0.0, mentions=0.0, shared_names=0.0, questions=0.0, diversity=0.0, identifiers=0.0
)


@st.composite
def made_units(draw, unit_id):
    moment = later(hours=-draw(st.integers(0, 3)))
    kind = draw(st.sampled_from(["turn", "turn", "turn", "knowledge", "authored", "summary"]))
    scope = draw(st.sampled_from(["session", "user", "global"]))
    span = (moment - timedelta(hours=2), moment + timedelta(seconds=draw(st.integers(0, 9))))
    rate = draw(shares)
    lineage = Lineage(("x",), "extractive", 1.0 - rate, rate, 0.9, 0.9, *span) if kind == "summary" else None
    return make_unit(
        unit_id, draw(st.sampled_from(TEXTS)), topic=draw(st.sampled_from(TOPICS)), kind=kind, scope=scope,
        user=None if scope == "global" else "ana", session=draw(st.sampled_from([None, "s1", "s1", "s2"])),
        author=draw(st.sampled_from(["user", "assistant"])), speaker=draw(st.sampled_from(["", "", "Ana"])),
        event_time=moment, lineage=lineage, position=int(unit_id[1:]),
        covered_by=draw(st.none() | ids) if kind == "turn" else None,
    )  # fmt: skip


def claims(name):
    if name == "dense":
        return st.builds(oracle.Claim, shares)
    if name == "lexical":
        matched = st.frozensets(st.sampled_from(TERMS))
        return st.builds(oracle.Claim, raws, shares, matched, st.none() | shares)
    return st.builds(oracle.Claim, raws, proven=st.booleans())


queries = st.builds(
    QueryProfile,
    text=st.sampled_from(["what about the boat?", "who was at the Lower Mill?", "what did I ask about the boat?"]),
    terms=st.just(TERMS),
    participants=st.sampled_from([(), ("ana",)]),
    perspective=st.sampled_from([None, "user", "assistant", "ana"]),
    identifiers=st.sampled_from([(), ("e0308",)]),
    time_range=st.sampled_from([None, (later(hours=-2), later(minutes=-30)), (later(days=-2), later(days=-1))]),
    only_time=st.booleans(),
    time_terms=st.sampled_from([(), ("1999",), ("1999", "boat")]),
    vector=st.none() | st.just(np.ones(2, dtype=np.float32)),
)


def beside_of(units):
    """Return who stands before and after each turn of a session."""
    found = {}
    for session in ("s1", "s2"):
        turns = [unit.id for unit in units.values() if unit.session == session and unit.kind == "turn"]
        found |= {one: pair for one, *pair in zip(turns, [None, *turns], [*turns[1:], None], strict=False)}
    return found


def leads_of(units):
    """Return whom names lead to: {(name, whether mentions count): ids}."""
    found = {}
    for unit in units.values():
        analysis = analyse(unit, AnalysisSettings())
        called = [(key, mentioned) for key in analysis.titles for mentioned in (False, True)]
        for key in dict.fromkeys([*called, *((key, True) for key in analysis.mentions)]):
            found.setdefault(key, []).append(unit.id)
    return {key: tuple(sorted(names)) for key, names in found.items()}


# ----------------------------------------------------------------------------------------------- on columns


class TableStrategy:
    """Says what a table says."""

    def __init__(self, name, world):
        self.id, self._said, self._relative = name, world.scores[name], name in world.relative

    def propose(self, query, reading, depth, deadline):
        return Proposals(tuple(one for one, claim in self._said.items() if claim.raw > 0.0))

    def score(self, query, reading, ids):
        found = StrategyScores.of(ids, relative=self._relative, terms=len(TERMS) if self._relative else 0)
        for row, one in enumerate(ids):
            claim = self._said[one]
            found.raw[row], found.coverage[row], found.proven[row] = claim.raw, claim.coverage, claim.proven
            found.identified[row] = np.nan if claim.identified is None else claim.identified
            found.matched[row] = [term in claim.matched for term in TERMS] if self._relative else []
        return found


class TableReading:
    """A state that is made of plain values."""

    def __init__(self, world, view):
        self.view, self._world = view, world

    def columns(self, ids, names):
        known = known_of([self._world.units[one] for one in ids], self._world.beside)
        codes = {unit.said(): code for code, unit in enumerate(self._world.units.values())}
        known["said"] = np.array([codes[self._world.units[one].said()] for one in ids], dtype=np.int64)
        return {name: known[name] for name in names}

    def units(self, ids):
        return {one: self._world.units[one] for one in ids}

    def find_names(self, keys, most, *, mentioned):
        found = {key: self._world.leads.get((key, mentioned), ()) for key in keys}
        return {key: names for key, names in found.items() if names and len(names) <= most}

    def propose(self, query, depth, deadline):
        if not isinstance(query, TimeQuery):
            return Proposal(())
        found = oracle.said_between(self._world, query.start, query.end)
        return Proposal(tuple(found if query.order == "newest" else found[::-1])[:depth])


def on_columns(world, depth, view):
    """Return what `recall` makes of the same world: how it fuses, its pool, who is kept, the cuts and the ranking."""
    profile = world.profile
    tables = ([TableStrategy(name, world) for name in names] for names in (profile.strategies, profile.escalation))
    question = Question(world.query.text, (), "any", profile, *tables)
    engine = Engine(None, world.settings, lambda: 0.0, lambda: None)
    found = retrieve_candidates(engine, question, world.query, TableReading(world, view), depth)
    kept, cuts = cut_candidates(engine, question, found)
    return found, kept, cuts, rank(engine, question, kept, view)


def told(row):
    """Return all that a row of the oracle says, its numbers bit for bit."""
    made = [(one.stage, one.weight.hex(), one.signal.hex(), one.because) for one in row.adjustments]
    raw = {name: claim.raw for name, claim in row.claims.items()}
    return row.unit.id, row.fused.hex(), row.rel.hex(), raw, row.merged_ids, made


def said(one):
    """Return the same of a candidate."""
    made = [(change.stage, change.weight.hex(), change.signal.hex(), change.because) for change in one.adjustments]
    return one.unit_id, one.fused.hex(), one.rel.hex(), dict(one.claims), one.merged_ids, made


@given(worlds(), st.integers(1, 10), st.sampled_from([None, "s1"]), st.sampled_from(BOUNDS))
def test_ranking_on_columns_is_ranking_one_candidate_at_a_time(world, depth, session, bounds):
    view = make_view(session=session, reference_time=NOW)
    with constants(stages, **bounds):
        found, kept, cuts, (ranked, scores) = on_columns(world, depth, view)
        fusion, rows, refused = oracle.find(world, depth)
    assert found.fusion.full_marks.hex() == fusion.full.hex()
    assert [said(one) for one in found.pool.candidates()] == [told(row) for row in rows]
    assert found.refused == refused
    settled, gave_way = oracle.settle([] if refused else rows, world.settings.score)
    left, dropped = oracle.cut(settled, world.profile)
    assert list(kept.ids) == [row.unit.id for row in left]
    bars = {one.unit_id: (one.cut, one.needed, one.had) for rows in cuts for one in rows.dropped()}
    assert bars == gave_way | dropped
    best = oracle.rank(left, world, session, NOW)
    assert list(zip(scores.tolist(), ranked.ids, strict=True)) == [(score, row.unit.id) for score, row in best]
    assert_explained(world, found.fusion, ranked, scores, Scoring(world.settings.score, session, NOW))


def assert_explained(world, fusion, ranked, scores, scoring):
    """Every tree composes to the number that ranked."""
    for row, one in enumerate(ranked.candidates()):
        accounts = {name: StrategyExplanation(Contribution(name, raw), (name,)) for name, raw in one.claims.items()}
        rel = explain_rel(ranked, row, accounts, fusion)
        by_score = world.profile.rank_by == "score"
        tree = scoring.explain(ranked, row, rel) if by_score else explain_fused(ranked, row, accounts, fusion)
        assert rel.compose().hex() == one.rel.hex()
        assert tree.compose().hex() == float(scores[row]).hex()


def test_a_copy_that_a_link_brings_in_stands_among_the_others_by_its_score():
    said_by = {"a": (3.0, 0.0), "c": (2.0, 0.0), "n": (1.0, 0.5), "p": (0.0, 0.9), "q": (0.0, 0.8)}
    texts = {"p": "We met at the Lower Mill", "q": "Kestrel Quay is far"}
    units = {one: make_unit(one, texts.get(one, "ok"), topic="Lower Mill" if one == "n" else "") for one in said_by}
    scores = {
        "lexical": {one: oracle.Claim(words, 1.0) for one, (words, _) in said_by.items()},
        "dense": {one: oracle.Claim(near) for one, (_, near) in said_by.items()},
        "echo": {one: oracle.Claim(0.0) for one in said_by},
    }
    profile = ProfileSettings(strategies=("lexical", "dense"), escalation=("echo",), escalate_below=0)
    query = QueryProfile(text="what about the boat?", terms=TERMS)
    world = oracle.World(
        units, scores, profile, Settings(), query, frozenset({"lexical"}), beside_of(units), leads_of(units)
    )
    found, *_ = on_columns(world, 2, make_view(reference_time=NOW))
    _, rows, _ = oracle.find(world, 2)
    assert {row.unit.id: row.merged_ids for row in rows}["a"] == ("n", "c")
    assert [said(one) for one in found.pool.candidates()] == [told(row) for row in rows]
