"""C20 through `Memory`, end to end: generated memories, documents, sessions, questions, budgets, counters and clocks.

One example builds one memory and puts several questions to it; each question that every law below was checked on is
one case. The long form, which prints how many cases there were:

    HOLDFAST_EXAMPLES=30000 pytest -n 0 -s tests/property/test_context_laws.py
"""

import dataclasses
import json
import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_assembly_laws import COUNTERS
from test_ranking import assert_exact

from builders import NOW, costly, later, make_unit, make_view, opened
from holdfast import Settings
from holdfast.documents.core import unit_id
from holdfast.documents.markdown import partition
from holdfast.errors import BudgetError
from holdfast.testing.contracts import HashEmbedder
from holdfast.text import analyse
from holdfast.text.quotes import (
    RULES,
    Cursor,
    Quote,
    authored_pieces,
    quote,
    quotes,
    recalled_heading,
    recent_heading,
    section_text,
)
from holdfast.types import AuthoredText, Contribution, Draft, Lineage

CASES = Counter()


@pytest.fixture(autouse=True, scope="module")
def _count_cases():
    """Say how many cases there were; pytest shows it with -s."""
    yield
    print(f"\ncases: {dict(CASES)}")  # noqa: T201


class NoMeaning(HashEmbedder):
    """Every vector is zero."""

    def embed_query(self, text):
        return np.zeros(self.dims, dtype=np.float32)


EMBEDDERS = {"none": None, "64": HashEmbedder(64), "288": HashEmbedder(288), "zero": NoMeaning(64)}
# Time to spare, or a busy machine would decide what is found; nothing refused, or there would be little to check.
DEFAULT = Settings.load({"refusal.enabled": False}, environ={}).without_timeouts()
REFERENCE = Settings.reference().without_timeouts()


def changed(settings, group, **values):
    return dataclasses.replace(settings, **{group: dataclasses.replace(getattr(settings, group), **values)})


RECIPES = {
    "default": DEFAULT,
    "refusing": Settings().without_timeouts(),
    "reference": REFERENCE,
    "prefix": changed(DEFAULT, "assembly", packing="prefix", min_turns=1),
    "excerpt": changed(DEFAULT, "assembly", packing="excerpt", min_turns=0),
    "shares": changed(DEFAULT, "assembly", lenient_hard=False, hard_share=0.05, soft_share=0.45, tail_share=0.5),
    "full stages": changed(DEFAULT, "stages", perspective=1.0, smoothing=1.0, time_range=1.0),
    "half stages": changed(DEFAULT, "stages", perspective=0.0, smoothing=0.9),
    "no floor": changed(DEFAULT, "projection", floor=0.0, first=3, second=3, growth=0, keyword_weight=0.0),
    "temporal": changed(REFERENCE, "temporal", wide=True, activation=0.01, stop=0.0),
}
# Open the cuts of some, so that much is projected and a leak cannot hide.
RECIPES |= {
    f"{name}, open": dataclasses.replace(one, hybrid=dataclasses.replace(one.hybrid, min_score=0.0, gap=0.0))
    for name, one in list(RECIPES.items())[:6]
}

# ------------------------------------------------------------------------------------------------- generated

TEXTS = [
    "the boat leaks",
    "We sold the old boat in March 2024, two days before the storm.",
    "yes",
    "Ana told Tomas that the kiln costs 300 euros.",
    "[rules]\n- obey the boat",
    "2026-05-04 12:00 #1\nassistant: the hedge is cheap",
    "kiln kiln kiln. The violin is broken! Does the boat float? It does.",
    "漢字 boat 漢字",
    "Привет, boat",
    "boat " * 60,
    "a" * 300,
    "?!",
    "hedge\u2028boat\r\nviolin\x0bkiln",
    "Yesterday I tuned the violin, and last week the hedge was cut on 2024-02-03.",
]
QUESTIONS = [
    "boat",
    "Where is the boat?",
    "what did we talk about last week?",
    "What happened two days before the storm?",
    "How many days passed between the storm and the sale of the boat?",
    "What did Tomas say about the kiln?",
    "what did you recommend about the hedge?",
    "which violin is mine?",
    "zeppelin",
    "?!",
    "Ana",
    "What did I do the week before the trip?",
    "what happened in March 2024?",
    "boat kiln violin hedge",
    "Describe the hedge and then the violin after the boat",
]
BLOCKS = [
    "- never deploy the boat on Fridays",
    "- keep it short\n  - really",
    "> quote the boat",
    "You must always ask before selling the kiln.",
    "The violin hangs in the hall.",
    "# Boats",
    "## Hedges",
    "```\nrun the kiln\n```",
    "Do not cut the hedge.",
    "| a | b |\n|---|---|\n| boat | kiln |",
    "1. first the boat\n2. then the kiln",
    "Plain words about a hedge\nin two lines.",
]
FRONT = "---\nhop_targets:\n  - u0\n  - ALL.md\n---\n"
USERS, SESSIONS = ("ana", "ben"), ("s1", "s2")
# A word that only the other user's texts hold.
MARK = {"ana": "", "ben": " quagga"}
DOCUMENTS = {
    "ANA.md": ("ana", "user"),
    "ALL.md": ("ben", "global"),
    "BEN.md": ("ben", "user"),
    "ANA2.md": ("ana", "user"),
}


@dataclass
class World:
    """A memory and what the tests know of it."""

    memory: object
    settings: object
    owners: dict = field(default_factory=dict)  # id -> user, None for everyone
    documents: dict = field(default_factory=dict)  # name -> (user, Document), in declared order
    tick: object = None

    def seen(self, user):
        return {key for key, owner in self.owners.items() if owner in (user, None)}

    def nodes(self, user, tier):
        found = []
        for name, (owner, document) in self.documents.items():
            if owner in (user, None):
                lines = {node.ordinal: node.markdown for node in document.nodes}
                found += [
                    AuthoredText(name, node.position, node.markdown, tuple((n, lines[n]) for n in node.headings))
                    for node in document.nodes
                    if node.tier == tier
                ]
        return found


turn = st.tuples(
    st.sampled_from(["ana", "ana", "ana", "ben"]),
    st.sampled_from(SESSIONS),
    st.sampled_from(["user", "user", "assistant", "tool", "system"]),
    st.sampled_from(["", "", "Ana", "Tomas", "[rules]"]),
    st.sampled_from(TEXTS),
    st.sampled_from([0, 0, 1, 60, -60, -60 * 24 * 6, -60 * 24 * 400, 60 * 24 * 30]),
    st.sampled_from([None, None, None, "p", "q"]),
)
loose = st.tuples(
    st.sampled_from(["ana", "ana", "ben", None]),
    st.sampled_from(TEXTS),
    st.sampled_from([0, -60, -60 * 24 * 6, -60 * 24 * 800]),
    st.lists(st.sampled_from(["u0", "u1", "u2", "u3", "ALL.md", "nowhere"]), max_size=2),
    st.sampled_from(["plain", "plain", "plain", "superseding", "expiring", "over", "summary", "pinned"]),
)
document = st.tuples(
    st.sampled_from(list(DOCUMENTS)), st.booleans(), st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=6)
)


@st.composite
def stories(draw):
    return (
        draw(st.sampled_from(sorted(RECIPES))),
        draw(st.sampled_from(sorted(EMBEDDERS))),
        draw(st.lists(document, max_size=3, unique_by=lambda one: one[0])),
        draw(st.one_of(st.just([]), st.lists(turn, min_size=4, max_size=12))),
        draw(st.one_of(st.just([]), st.lists(loose, min_size=3, max_size=7))),
    )


asks = st.lists(
    st.tuples(
        st.sampled_from(QUESTIONS),
        st.sampled_from(["ana", "ana", "ben", "eve"]),
        st.sampled_from([None, "s1", "s1", "s2", "s9"]),
        st.one_of(st.integers(1, 60), st.integers(60, 400), st.integers(400, 3000), st.just(10**12)),
        st.sampled_from(sorted(COUNTERS)),
        st.sampled_from(["hybrid", "hybrid", "hybrid", "balanced", "fast"]),
        st.sampled_from([0, 0, 3600, -86400 * 5, 86400 * 400]),
        st.booleans(),
        st.integers(0, 3),
        st.booleans(),
    ),
    min_size=4,
    max_size=10,
)


def play(story):
    """Build the world of a story; its clock can be set."""
    recipe, embedder, documents, turns, units = story
    settings, embedder, moment = RECIPES[recipe], EMBEDDERS[embedder], [NOW]
    memory = opened(settings, now=lambda: moment[0], embedder=embedder)
    world = World(memory, settings, tick=moment)
    for name, fronted, blocks in documents:
        user, scope = DOCUMENTS[name]
        body = (FRONT if fronted else "") + "\n\n".join(
            f"{block}{MARK[user] if scope == 'user' else ''}" for block in blocks
        )
        written = memory.ingest(body, name=name, user=user, scope=scope, core=True)
        owner = None if scope == "global" else user
        world.owners |= {done.id: owner for done in written}
        world.documents[name] = (owner, partition(name, body.encode()))
    for user, session, role, speaker, text, minutes, bundle in turns:
        message = {
            "role": role, "content": text + MARK[user], "speaker": speaker, "at": later(minutes=minutes),
            "bundle_id": bundle,
        }  # fmt: skip
        for done in memory.remember(message, user=user, session=session):
            world.owners[done.id] = user
    for number, (user, text, minutes, links, how) in enumerate(units):
        add_loose(world, f"u{number}", user, text + MARK[user or "ana"], later(minutes=minutes), links, how)
    return world


def add_loose(world, key, user, text, at, links, how):
    given = {"user": user or "ana", "scope": "user" if user else "global", "id": key, "at": at, "links": links}
    if how == "summary":
        lineage = Lineage((), "extractive", 0.25, 0.75, 0.5, 0.5, at - timedelta(days=1), at)
        unit = make_unit(
            key, text, user=user, scope=given["scope"], kind="summary", lineage=lineage, event_time=at,
            links=tuple(links),
        )  # fmt: skip
        world.memory.store.put(
            [Draft(unit, partial(analyse, settings=world.settings.analysis), id_given=True, time_given=True)]
        )
    else:
        earlier = [other for other, owner in world.owners.items() if owner == user and other.startswith("u")]
        more = {
            "superseding": {"supersedes": earlier[:1]},
            "expiring": {"ttl": 60.0},
            "over": {"valid_to": at + timedelta(hours=1)},
            "pinned": {"pinned": True},
        }.get(how, {})
        world.memory.remember(text, **given, **more)
    world.owners[key] = user


# ------------------------------------------------------------------------------------------------ the laws

# What lies in [0, 1] wherever a tree names it (law 5); κ and ln are no scores.
BOUNDED = frozenset(
    "S_final S_cov S_proj S_hop ω r f M A ΔΦ R S Q rel score normalised ξ mix α_r α_f α_a ω0 μ ν ρ weight".split()
)


def assert_tree(tree):
    assert tree.compose().hex() == tree.value.hex()
    assert Contribution.from_json(json.loads(json.dumps(tree.to_json()))).compose().hex() == tree.value.hex()
    assert_exact(tree)
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        assert math.isfinite(node.value), node.name
        assert node.value >= 0.0, node
        assert node.name not in BOUNDED or node.value <= 1.0, node
        nodes += node.parts


def recalled(node):
    """Return whether a node of a core document becomes a unit."""
    return node.tier == "variant" and node.kind != "heading" and bool(node.text.strip())


def ids(context, name):
    return [item.id for item in context.section(name).items]


def session_of(world, user, session, shown):
    """Return the turns of a session in its order, without what the host shows."""
    if session is None:
        return []
    turns = [
        one for one in world.memory.list(user=user, session=session, limit=None, order="oldest") if one.kind == "turn"
    ]
    left, kept = Counter(shown), []
    for one in reversed(turns):  # of equal turns the host shows the latest
        if left[one.author, one.text] > 0:
            left[one.author, one.text] -= 1
        else:
            kept.append(one)
    return kept[::-1]


def asked_of(world, question, user, session, shows):
    """Return the query, and who said what in it: the last turns of the session and then the question."""
    if not shows:
        return question, []
    turns = session_of(world, user, session, [])[-shows:]
    messages = [{"role": one.author, "content": one.text} for one in turns] + [{"role": "user", "content": question}]
    return messages, [(one["role"], one["content"]) for one in messages]


def check(world, ask):
    """Put one question to a world and check every law on what comes back; return the context."""
    question, user, session, budget, counter_name, profile, drift, strict, shows, moves_reference = ask
    count = COUNTERS[counter_name]
    world.tick[0] = NOW if moves_reference else NOW + timedelta(seconds=drift)
    query, shown = asked_of(world, question, user, session, shows)
    turns = session_of(world, user, session, shown)
    hidden = {one.id for one in session_of(world, user, session, [])} - {one.id for one in turns}
    hard = world.nodes(user, "hard")
    rules = section_text(RULES, authored_pieces(hard)[0])
    more = max(0, world.settings.assembly.min_turns - len(hidden))  # what the host shows is among the last turns
    base = turns[len(turns) - min(len(turns), more) :]
    with_base = count(rules + section_text(recent_heading(), quotes(map(Quote.whole, base))))
    call = {
        "user": user, "session": session, "budget": budget, "counter": count, "profile": profile, "strict": strict,
        "reference_time": NOW + timedelta(seconds=drift) if moves_reference else None,
    }  # fmt: skip
    refused = count(rules) > budget or (strict and with_base > budget)
    try:
        context = world.memory.assemble(query, **call)
    except BudgetError:
        assert refused
        CASES["refused"] += 1
        return None, query, call
    assert not refused
    if context is None:
        return None, query, call
    assert count(context.text) == context.tokens <= budget  # law 6
    assert sum(section.tokens for section in context.sections) == context.tokens
    check_rules(world, context, user, rules)
    check_tail(world, context, turns, base, hidden)
    check_projection(world, context, user, turns)
    check_whole(world, context, call, hidden, set(shown) if session is None else set())
    if world.settings.assembly.first_hit and not context.degraded:
        asked = {name: call[name] for name in ("user", "session", "profile", "reference_time")}
        first = next((hit.unit for hit in world.memory.search(query, **asked)), None)
        loose = set(shown) if session is None else set()
        if first is not None and first.id not in hidden and (first.author, first.text) not in loose:
            check_first(
                context, first, rules + section_text(recent_heading(), quotes(map(Quote.whole, base))), hidden, count
            )
    CASES["assembled"] += 1
    CASES["degraded"] += bool(context.degraded)
    CASES["with projection"] += bool(ids(context, "projection"))
    CASES["with rules"] += bool(rules)
    return context, query, call


def check_first(context, first, before, hidden, count):
    """The first hit of a search is whole in the context whenever it fits beside the rules and the last turns."""
    tail, projected = ids(context, "tail"), context.section("projection").items
    there = {*tail, *hidden, *(item.id for item in projected)}
    summed = first.lineage is not None and there.issuperset(first.lineage.sources)
    piece, _ = quote(Quote.whole(first), Cursor(numbered=True))
    if first.id in tail or summed or count(before + section_text(recalled_heading(), [piece])) > context.budget:
        return
    # Older ones of its own session and day, or that it replaces, may stand in front of it.
    assert (first.id, "whole", first.text) in [(item.id, item.kind, item.text) for item in projected]
    CASES["with its first hit"] += 1


def check_rules(world, context, user, rules):
    assert context.text.startswith(rules)  # law 1
    assert context.section("hard").text == rules
    assert all(node.markdown in rules for node in world.nodes(user, "hard"))
    soft = [f"{node.document}#{node.position}" for node in world.nodes(user, "soft")]
    assert ids(context, "soft") == soft[: len(ids(context, "soft"))]  # law 2
    told = {*ids(context, "soft"), *(left.id for left in context.left_out)}
    assert told >= set(soft)


def check_tail(world, context, turns, base, hidden):
    tail, projected = ids(context, "tail"), ids(context, "projection")
    everything = [item.id for item in context.items]
    assert len(everything) == len(set(everything))  # law 3
    by_id = {one.id: one for one in turns}
    assert tail == [one.id for one in turns][len(turns) - len(tail) :]
    assert [item.text for item in context.section("tail").items] == [by_id[one].text for one in tail]
    if not context.degraded:
        assert set(tail) >= {one.id for one in base}  # law 4
    else:
        missing = {one.id for one in base} - set(tail)
        assert all(one in context.degraded for one in missing)
        assert not projected
        assert missing or not world.settings.assembly.lenient_hard
    assert not hidden & {*tail, *projected}  # what the host shows is neither tail nor recalled


def _anyone(world, key):
    return make_view(user=world.owners[key] or "ana", now=world.tick[0], reference_time=world.tick[0])


def check_projection(world, context, user, turns):
    trace = context.trace
    projection = trace.projection
    seen = world.seen(user)
    units = {*ids(context, "tail"), *ids(context, "projection")}
    assert units <= seen  # law 13
    assert {candidate.unit_id for candidate in trace.candidates} <= seen
    assert {claim.unit_id for result in trace.results for claim in result.candidates} <= seen
    assert user == "ben" or "quagga" not in context.text
    tail = set(ids(context, "tail"))
    assert not tail & {one.unit.id for one in projection.items}
    assert not tail & {candidate.unit_id for candidate in trace.candidates}
    for candidate in trace.candidates:
        assert 0.0 <= candidate.rel <= 1.0  # law 5
        assert 0.0 <= candidate.fused < math.inf
        assert all(0.0 <= raw < math.inf for raw in candidate.claims.values())
    assert 0.0 <= projection.asked.indicator.value <= 1.0
    for one in (*projection.items, *projection.second, *projection.hops, *projection.recovered, *projection.chosen):
        assert_tree(one.contributions)  # laws 5, 9 and 12
        assert 0.0 <= one.score <= 1.0
    parents = {one.unit.id for one in projection.second}
    assert all(one.via.removeprefix("hop from ") in parents for one in projection.hops)  # law 8
    scores = {one.unit.id: one.score for one in projection.items}
    assert len(scores) == len(projection.items)
    items = context.section("projection").items
    assert all(item.score.hex() == scores[item.id].hex() for item in items if item.score is not None)
    # Nothing is cut silently or shown twice, and what is shown stands in the order of its rank.
    assert len(set(ids(context, "projection"))) == len(ids(context, "projection"))
    told = {item.id for item in context.items} | {left.id for left in context.left_out}
    whole = {*ids(context, "projection"), *tail}
    summed = {
        one.unit.id for one in projection.items if one.unit.lineage and whole.issuperset(one.unit.lineage.sources)
    }
    assert told | summed >= set(scores)
    order = [one.unit.id for one in projection.items]
    if world.settings.assembly.packing == "prefix":
        assert [*context.found] == [one for one in order if one in context.found]


def check_whole(world, context, call, hidden, loose):
    """What the question did not find comes along, by time, behind what it found, when all turns fit their share."""
    items, count = context.section("projection").items, call["counter"]
    rest = [item.id for item in items if item.score is None]
    assert [item.id for item in items][len(items) - len(rest) :] == rest
    moment = call["reference_time"] or world.tick[0]
    view = make_view(user=call["user"], session=call["session"], now=world.tick[0], reference_time=moment)
    with world.memory.store.reading(view) as reading:
        turns = [one for one in reading.scan(order="oldest", limit=None) if one.kind == "turn"]
    elsewhere = {*ids(context, "tail"), *hidden}
    elsewhere |= {item.id for item in context.section("standing").items if item.kind == "whole"}
    turns = [one for one in turns if one.id not in elsewhere and (one.author, one.text) not in loose]
    turns.sort(key=lambda one: (one.event_time, one.session or "", one.position if one.session else 0, one.id))
    assert rest == [one.id for one in turns if one.id in set(rest)]  # nothing else, and in the order of time
    there = {one.said() for one in turns if one.id in {item.id for item in items if item.kind == "whole"}}
    if rest:
        assert there == {one.said() for one in turns}
        assert len(there) == sum(item.id in {one.id for one in turns} for item in items)  # none of them twice
        CASES["whole"] += 1
    documents = any(item.id not in {one.id for one in turns} for item in items)
    share = min(world.settings.assembly.fill * context.budget, context.budget - context.tokens)
    if turns and not context.degraded and not documents and 2 * count("".join(map(render, turns))) + 200 < share:
        assert count is not len or there == {one.said() for one in turns}


def render(unit):
    return quote(Quote.whole(unit), Cursor(numbered=True))[0]


@costly
@given(stories(), asks)
def test_every_context_keeps_the_laws(story, questions):
    world = play(story)
    with world.memory:
        stable = {}
        for ask in questions:
            context, _, call = check(world, ask)
            if context is not None:
                text = context.section("hard").text
                assert stable.setdefault(call["user"], text) == text


@costly
@given(stories(), asks)
def test_the_same_again_gives_the_same_and_rules_are_no_units(story, questions):
    world = play(story)
    with world.memory:
        memory = world.memory
        for ask in questions[:3]:
            _, query, call = check(world, ask)
            try:
                first, second = (memory.assemble(query, **call, track_access=False) for _ in range(2))
            except BudgetError:
                continue
            if first is None:
                continue
            assert first == second
            assert first.text.encode() == second.text.encode()
            CASES["again"] += 1
        # Law 3: what a core document makes units of is its variant nodes, and never a rule.
        for name, (owner, document) in world.documents.items():
            variant = {unit_id(document, node) for node in document.nodes if recalled(node)}
            kept = memory.list(user=owner or "ben", limit=None, current_only=False)
            assert {one.id for one in kept if one.id.startswith(f"{name}#")} == variant


@costly
@given(stories(), asks, st.randoms(use_true_random=False))
def test_neither_insertion_order_nor_another_store_changes_a_byte(story, questions, random):
    recipe, embedder, documents, turns, units = story
    plain = [(user, text, minutes, links, "plain") for user, text, minutes, links, _ in units]
    one = play((recipe, embedder, documents, turns, ()))
    other = play((recipe, embedder, documents, turns, ()))
    with one.memory, other.memory:
        numbered = list(enumerate(plain))
        for world in (one, other):
            for number, (user, text, minutes, links, how) in numbered:
                add_loose(world, f"u{number}", user, text + MARK[user or "ana"], later(minutes=minutes), links, how)
            random.shuffle(numbered)
        for ask in questions[:3]:
            (first, _, _), (second, _, _) = check(one, ask), check(other, ask)
            assert (first is None) == (second is None)
            assert first is None or first.to_json() == second.to_json()
            CASES["two stores"] += first is not None


@costly
@given(stories(), asks)
def test_why_agrees_with_the_context(story, questions):
    """Copies that were merged are left out here: test_assembly_defects.py has them."""
    world = play(story)
    with world.memory:
        for question, user, session, budget, _, profile, *_ in questions[:2]:
            call = {"user": user, "session": session, "budget": budget, "profile": profile}
            try:
                context = world.memory.assemble(question, **call, track_access=False)
            except BudgetError:
                continue
            if context is None:
                continue
            shown = {item.id for item in context.items}
            # A turn that a degraded tail lacks may be found too; the first reason is why it is not there.
            left = {one.id: one for one in reversed(context.left_out)}
            merged = {key for candidate in context.trace.candidates for key in candidate.merged_ids}
            merged |= {candidate.unit_id for candidate in context.trace.candidates if candidate.merged_ids}
            for key in sorted(world.seen(user) - merged)[:6]:
                why = world.memory.why(question, key, **call)
                assert why.returned == (key in shown)
                if key in left and not why.returned:
                    assert why.tokens_short == left[key].short
                CASES["why"] += 1


@costly
@given(stories(), asks)
def test_hits_keep_the_laws(story, questions):
    world = play(story)
    with world.memory:
        for question, user, session, _, _, profile, drift, *_ in questions:
            at = NOW + timedelta(seconds=drift)
            found = world.memory.search(
                question, user=user, session=session, profile=profile, reference_time=at, explain=True
            )
            assert {hit.unit.id for hit in found} <= world.seen(user)
            for hit in found:
                assert 0.0 <= hit.rel <= 1.0
                if profile == "hybrid":
                    assert 0.0 <= hit.score <= 1.0
                assert_exact(hit.contributions)
                assert hit.contributions.value.hex() == hit.score.hex()
                if profile == "hybrid":
                    assert_tree(hit.contributions)
                    assert hit.contributions.find("relevance").parts[1].value.hex() == hit.rel.hex()
            assert list(found) == sorted(found, key=lambda hit: (-hit.score, hit.unit.id))
            plain = world.memory.search(question, user=user, session=session, profile=profile, reference_time=at)
            assert [(hit.unit.id, hit.score.hex()) for hit in plain] == [(h.unit.id, h.score.hex()) for h in found]
            CASES["search"] += 1


# ------------------------------------------------------------------------------------- confidence (law 10)


@given(
    st.sampled_from(sorted(RECIPES)),
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5),
    st.sampled_from(TEXTS[:2] + TEXTS[6:8]),
    st.integers(0, 10**7),
)
def test_at_equal_base_a_surer_summary_never_ranks_lower(recipe, confidences, text, age):
    settings = RECIPES[recipe]
    with opened(settings, embedder=HashEmbedder(64)) as memory:
        ends = NOW - timedelta(seconds=age)
        for number, confidence in enumerate(confidences):
            # Another moment of recording, so that they are not copies; the same end of their range, so the same base.
            lineage = Lineage((), "extractive", confidence, 1.0 - confidence, 0.5, 0.5, ends, ends)
            unit = make_unit(
                f"m{number}", text, kind="summary", lineage=lineage, event_time=ends - timedelta(seconds=number)
            )
            memory.store.put(
                [Draft(unit, partial(analyse, settings=settings.analysis), id_given=True, time_given=True)]
            )
        memory.reembed()
        sure = {f"m{number}": confidence for number, confidence in enumerate(confidences)}
        found = memory.search(text, user="ana")
        for first, second in pairwise(found):
            if first.rel == second.rel:
                assert sure[first.unit.id] >= sure[second.unit.id] or first.score == second.score
        context = memory.assemble(text, user="ana", budget=100_000)
        for first, second in pairwise(context.trace.projection.second if context else ()):
            if first.prospect.sim == second.prospect.sim:
                assert sure[first.unit.id] >= sure[second.unit.id] or first.score == second.score
        CASES["confidence"] += 1


# -------------------------------------------------------------------- a core document through its edits (C14)


@given(
    st.lists(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=5), min_size=1, max_size=5),
    st.sampled_from(["user", "global"]),
    st.sampled_from([None, HashEmbedder(64)]),
)
def test_after_every_edit_rules_and_units_are_those_of_the_present_text(bodies, scope, embedder):
    with opened(DEFAULT, embedder=embedder) as memory:
        for blocks in bodies:
            body = "\n\n".join(blocks)
            memory.ingest(body, name="A.md", user="ana", scope=scope, core=True)
            document = partition("A.md", body.encode())
            context = memory.assemble("boat", user="ana", track_access=False)
            nodes = [node for node in document.nodes if node.tier == "hard"]
            assert ids(context, "hard") == [f"A.md#{node.position}" for node in nodes]
            kept = {one.id: one.claim for one in memory.list(user="ana", limit=None)}
            assert kept == {unit_id(document, node): node.text for node in document.nodes if recalled(node)}
            again = memory.ingest(body, name="A.md", user="ana", scope=scope, core=True)
            assert all(done.status == "duplicate" for done in again)
            CASES["edits"] += 1
