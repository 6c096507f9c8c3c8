"""Laws 7, 10, 12, 14 and 15 over time: generated sessions are promoted, compacted, superseded, and asked again."""

import json
from collections import Counter
from datetime import timedelta

from hypothesis import assume, example, given
from hypothesis import strategies as st
from test_ranking import assert_exact

from builders import NOW, costly, later, make_pool, make_unit, waiting
from histories import EMBEDDER, check_whole, everything, say, small_memory, tail_of, talk
from holdfast import Contribution, Settings
from holdfast.errors import EmbedderError
from holdfast.ranking.score import Scoring
from holdfast.testing.contracts import HashEmbedder
from holdfast.types import Lineage

TEXTS = (
    "the boat leaks at the stern again",
    "yes",
    "We sold the old boat in March 2024, two days before the storm came over the harbour.",
    "Ana told Tomas that the kiln costs 300 euros, and he did not believe a word of it.",
    "I prefer dark mode in every editor that I use.",
    "漢字とかな交じり文 boat",
    "the hedge grows and grows and nobody cuts it, neither in spring nor in autumn",
    "fn main() { println!(\"boat\"); } failed with error E0425 in src/main.rs",
    "Remember that the violin is broken and that the repair takes three weeks.",
    "boat " * 40,
)  # fmt: skip

messages = st.lists(
    st.tuples(
        st.sampled_from(["s", "s", "s", "t"]),
        st.sampled_from(["user", "user", "assistant", "tool"]),
        st.sampled_from(TEXTS),
        st.sampled_from([None, None, None, "x", "y"]),
        st.sampled_from(["", "", "", "", "pinned", "ttl", "over"]),
    ),
    min_size=6,
    max_size=30,
)
budgets = st.sampled_from([60, 150, 300, 800, 8000])
covered = st.sampled_from(["compete", "hide"])
recipes = st.sampled_from(["default", "reference"])


def told(memory, history):
    """Keep a history, a minute apart; return the ids in order."""
    ids = []
    for number, (session, role, text, agent, how) in enumerate(history):
        fields = {"pinned": {"pinned": True}, "ttl": {"ttl": 864000.0}, "over": {"valid_to": later(days=9)}}.get(
            how, {}
        )
        message = {"role": role, "content": f"{text} {number}", "at": later(minutes=number)}
        ids += [done.id for done in memory.remember(message, user="ana", session=session, agent=agent, **fields)]
    return ids


def state(memory):
    """Return what a second run must leave as it is."""
    return {key: (unit.version, unit.covered_by, unit.superseded_by) for key, unit in everything(memory).items()}


# ---------------------------------------------------------------------------------------------- laws 7 and 14


@costly
@given(messages, budgets, st.integers(0, 6), st.sampled_from([0, 2, 3, 7]))
def test_compaction_leaves_the_tail_pins_and_ends_alone(history, budget, least, size):
    with small_memory(assembly__budget=budget, assembly__min_turns=least, compaction__cluster=size) as memory:
        told(memory, history)
        tails = {key for session in ("s", "t") for key in tail_of(memory, session)}
        sessions = {session: memory.list(user="ana", session=session, limit=None, order="oldest") for session in "st"}
        base = {unit.id for units in sessions.values() for unit in units[max(0, len(units) - least) :] if least}
        before = everything(memory)
        memory.compact(user="ana")
        after = everything(memory)
        assert all(after[key] == unit for key, unit in before.items())  # no turn is altered
        touched = {unit.id for unit in after.values() if unit.covered_by is not None}
        assert not touched & (tails | base)
        assert {after[key].pinned for key in touched} <= {False}
        assert {(after[key].expires_at, after[key].valid_to) for key in touched} <= {(None, None)}
        check_whole(memory)
        for unit in after.values():
            if unit.kind == "summary":
                sources = [after[key] for key in unit.lineage.sources]
                assert len(sources) > 1
                assert {(one.session, one.agent) for one in sources} == {(unit.session, unit.agent)}
                count = memory._counter
                assert count(unit.text) < sum(count(one.text) for one in sources)
                assert (unit.lineage.starts, unit.lineage.ends) == (sources[0].event_time, sources[-1].event_time)
                assert unit.lineage.decay_rate == 1.0 - unit.lineage.confidence
                assert 0.0 <= unit.lineage.confidence <= 1.0
                assert memory.expand(unit.id, user="ana") == sources


# The first run covers all turns of one agent; the tail that it shares with the others is protected all the same.
TWO_AGENTS = [
    ("s", "user", TEXTS[text], agent, "")
    for text, agent in [(1, "y"), (3, "y"), (8, None), (1, None), (1, None), (1, None), (1, "x"), (5, None)]
]


@costly
@given(messages, covered, recipes)
@example(TWO_AGENTS, "compete", "default")
def test_compacting_and_telling_again_changes_nothing(history, how, recipe):
    with small_memory(compaction__covered=how, recipe=recipe) as memory:
        told(memory, history)
        memory.compact(user="ana")
        before = state(memory)
        again = memory.compact(user="ana")
        assert [one.summaries for one in again] == [()] * len(again)
        assert {done.status for done in again_told(memory, history)} <= {"duplicate"}
        assert state(memory) == before
        assert waiting(memory, EMBEDDER.space) == 0


def again_told(memory, history):
    for number, (session, role, text, agent, how) in enumerate(history):
        if how == "":
            message = {"role": role, "content": f"{text} {number}", "at": later(minutes=number)}
            yield from memory.remember(message, user="ana", session=session, agent=agent)


def test_turns_that_one_cut_leaves_are_cut_anew_in_the_same_run():
    long, other = "the boat leaks at the stern and nobody mends it", "the hedge grows and grows and nobody cuts it"
    texts = [long, other, long, *[other, "y", long, "y", "n"], other, long, *"abcd"]
    with small_memory(compaction__cluster=3, assembly__budget=40) as memory:
        ids = [say(memory, number, text) for number, text in enumerate(texts)]
        [done] = memory.compact(user="ana")
        # By themselves (3, 4) and (5, 6, 7) would not become cheaper.
        cut = [[ids.index(key) for key in cluster.turns] for cluster in done.clusters]
        assert cut == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]
        assert [cluster.summary is None for cluster in done.clusters] == [False, False, True, False]
        assert [again.summaries for again in memory.compact(user="ana")] == [()]


@costly
@given(st.integers(1, 40), st.integers(1, 40), covered)
def test_a_longer_session_is_compacted_further_and_never_again(first, more, how):
    with small_memory(compaction__covered=how) as memory:
        ids = talk(memory, first)
        memory.compact(user="ana")
        before = {key: unit.covered_by for key, unit in everything(memory).items() if unit.covered_by}
        ids += talk(memory, more, start=first)
        [done] = memory.compact(user="ana", session="s")
        after = {key: unit.covered_by for key, unit in everything(memory).items()}
        assert all(after[key] == summary for key, summary in before.items())
        clustered = Counter(key for cluster in done.clusters for key in cluster.turns)
        assert not clustered.keys() & before.keys()
        assert set(clustered.values()) <= {1}
        assert not clustered.keys() & set(tail_of(memory))
        assert set(ids) <= after.keys()
        check_whole(memory)


def test_compacting_in_one_process_or_another_gives_the_same_ids(tmp_path):
    made = []
    for name in ("one.db", "two.db"):
        with small_memory(tmp_path / name) as memory:
            talk(memory, 25)
            made.append(memory.compact(user="ana")[0].summaries)
    assert made[0]
    assert made[0] == made[1]


def test_the_tail_of_each_agent_is_left_alone():
    with small_memory() as memory:
        talk(memory, 10, agent="x")
        talk(memory, 20, start=10, agent="y")
        memory.compact(user="ana")
        shown = tail_of(memory, agent="x")
        assert [memory.get(key, user="ana").covered_by for key in shown] == [None] * len(shown)


# ------------------------------------------------------------------------------------------------- law 15


@costly
@given(st.integers(12, 40), covered, recipes)
def test_every_turn_can_still_be_reached(count, how, recipe):
    with small_memory(compaction__covered=how, recipe=recipe) as memory:
        ids = talk(memory, count)
        memory.compact(user="ana")
        units = everything(memory)
        tail = set(tail_of(memory))
        reached = set()
        for summary in [unit for unit in units.values() if unit.kind == "summary"]:
            hits = memory.search(summary.text, user="ana", session="s", limit=20)
            found = {hit.unit.id for hit in hits}
            opened = {unit.id for unit in memory.expand(summary.id, user="ana")}
            # In a competition the turns may take the place of their summary.
            if summary.id in found or (how == "compete" and found & opened):
                reached |= opened
        for number, key in enumerate(ids):
            if key not in tail | reached:
                found = memory.search(f"number{number}", user="ana", session="s", profile="fast")
                assert key in {hit.unit.id for hit in found}, number


@costly
@given(st.integers(12, 30), st.integers(100, 4000))
def test_a_covered_turn_in_a_longer_tail_is_shown_raw(count, budget):
    with small_memory() as memory:
        ids = talk(memory, count)
        [done] = memory.compact(user="ana", session="s")
        context = memory.assemble("boat harbour topic1", user="ana", session="s", budget=budget)
        tail = [item.id for item in context.section("tail").items]
        assert tail == ids[len(ids) - len(tail) :]
        texts = {item.id: item.text for item in context.section("tail").items}
        assert all(text == memory.get(key, user="ana").text for key, text in texts.items())
        recalled = {item.id for item in context.section("projection").items}
        for cluster in done.clusters:
            if cluster.summary is not None and set(cluster.turns) <= set(tail):
                assert cluster.summary not in recalled
        assert not recalled & set(tail)


@costly
@given(st.integers(12, 30), covered, recipes, st.sampled_from(["hybrid", "fast", "balanced"]), st.integers(0, 29))
def test_nothing_is_found_twice_when_scopes_are_searched_together(count, how, recipe, profile, asked):
    with small_memory(compaction__covered=how, recipe=recipe, gate__policy="all") as memory:
        talk(memory, count)
        talk(memory, 3, session="other")
        memory.remember("turn 1 tells of the boat for everyone", user="ana", scope="global")
        memory.compact(user="ana")
        for session in (None, "s"):
            hits = memory.search(f"boat number{asked} topic1", user="ana", session=session, profile=profile)
            shown = [key for hit in hits for key in (hit.unit.id, *hit.merged_ids)]
            assert len(shown) == len(set(shown))
            answering = [hit.unit for hit in hits]
            standing = {unit.id for unit in answering if unit.kind == "summary"}
            assert not [unit.id for unit in answering if unit.covered_by in standing]


# ------------------------------------------------------------------------------------------ laws 10 and 12


@given(
    st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.booleans(),
    st.sampled_from([None, "s"]), st.integers(0, 10**6),
)  # fmt: skip
def test_at_equal_base_higher_confidence_never_ranks_lower(one, other, fused, reference, session, age):
    settings = Settings.reference() if reference else Settings()
    scoring = Scoring(settings.score, session, NOW)

    def score(confidence):
        lineage = Lineage(("a", "b"), "extractive", confidence, 1.0 - confidence, 0.5, 0.5, NOW, NOW)
        unit = make_unit("u", "words", kind="summary", lineage=lineage, event_time=NOW - timedelta(seconds=age))
        return float(scoring.score(make_pool([(unit, fused)]))[0])

    low, high = sorted((one, other))
    assert score(low) <= score(high)


@costly
@given(st.integers(12, 30), recipes, st.sampled_from(["hybrid", "fast", "balanced"]), st.integers(0, 29))
def test_the_explanation_of_a_summary_recomposes(count, recipe, profile, asked):
    with small_memory(compaction__covered="hide", recipe=recipe) as memory:
        talk(memory, count)
        memory.compact(user="ana")
        hits = memory.search(f"boat number{asked}", user="ana", session="s", profile=profile, explain=True)
        for hit in hits:
            tree = hit.contributions
            assert_exact(tree)
            assert tree.compose().hex() == hit.score.hex() == tree.value.hex()
            read = Contribution.from_json(json.loads(json.dumps(tree.to_json())))
            assert read.compose().hex() == hit.score.hex()
            if hit.unit.kind == "summary" and profile == "hybrid":
                [q] = [node for node in walk(tree) if node.name == "Q"]
                assert q.value == 1.0 - memory.settings.score.delta * hit.unit.lineage.decay_rate
        assume(any(hit.unit.kind == "summary" for hit in hits))


def walk(node):
    yield node
    for part in node.parts:
        yield from walk(part)


# ------------------------------------------------------------------------------------------------ the gate


@costly
@given(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=16), st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_decisions_do_not_depend_on_how_turns_arrive_together(texts, sizes):
    said = [{"role": "user", "content": text, "at": later(minutes=n)} for n, text in enumerate(texts)]
    decided = []
    for batches in ([len(said)], [1] * len(said), [*sizes, len(said)]):
        with small_memory() as memory:
            at = 0
            for size in batches:
                if said[at : at + size]:
                    memory.remember(said[at : at + size], user="ana", session="s")
                at += size
            decided.append({key: (unit.scope, unit.gate) for key, unit in everything(memory).items()})
    assert decided[0] == decided[1] == decided[2]
    assert all(gate is not None for _, gate in decided[0].values())


class AwayAtFirst(HashEmbedder):
    """Fails once, and works from then on."""

    failures = 1

    def embed_documents(self, texts):
        if self.failures:
            self.failures -= 1
            raise EmbedderError("the embedder is away; try again later")
        return super().embed_documents(texts)


def test_promotion_is_tried_again_after_an_embedder_that_failed(tmp_path, caplog):
    with small_memory(tmp_path / "memory.db", embedder=AwayAtFirst(64)) as memory:
        [kept] = memory.remember("I prefer dark mode in every editor", user="ana", session="s")
        unit = memory.get(kept.id, user="ana")
        assert (kept.promoted, unit.gate, unit.scope, unit.text) == (False, None, "session", unit.text)
    assert "vectors are pending" in caplog.text
    with small_memory(tmp_path / "memory.db") as memory:
        memory.search("dark mode", user="ana")
        unit = memory.get(kept.id, user="ana")
        assert (unit.gate.promoted, unit.scope, unit.version) == (True, "user", 1)
    with small_memory(tmp_path / "straight.db") as memory:
        [straight] = memory.remember("I prefer dark mode in every editor", user="ana", session="s")
        assert memory.get(straight.id, user="ana").gate == unit.gate
        assert straight.promoted


def test_promotion_is_tried_again_while_the_memory_stays_open(tmp_path):
    with small_memory(tmp_path / "memory.db", embedder=AwayAtFirst(64)) as memory:
        [kept] = memory.remember("I prefer dark mode in every editor", user="ana", session="s")
        memory.remember("I prefer tea", user="ana", session="s")
        memory.search("dark mode", user="ana")
        assert memory.get(kept.id, user="ana").gate is not None


def test_a_decision_is_about_what_came_before():
    text = "I prefer dark mode in every editor, and so does Ana"
    gates = []
    with small_memory() as memory:
        for number in range(3):
            message = {"role": "user", "content": text, "at": later(minutes=number)}
            [done] = memory.remember(message, user="ana", session="s")
            gates.append(memory.get(done.id, user="ana").gate)
    # No turn matches itself, and each later one is less new.
    assert gates[0].novelty == 1.0
    assert gates[1].novelty < 1.0
    assert gates[2].frequency > gates[0].frequency == 0.0
