"""Whole searches with vectors (laws 5, 9, 11, 12, 18): ranges, explanations, determinism, an index that follows."""

import dataclasses
import math
from datetime import timedelta
from importlib import metadata
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ranking import assert_exact, knowledge, messages, standing

from builders import NOW, costly, later, make_claims, make_view, opened, propose, waiting
from holdfast import Settings
from holdfast.errors import EmbedderError
from holdfast.kernels import vectors
from holdfast.retrieval import question as registry
from holdfast.retrieval.strategy import Proposals
from holdfast.settings import GateSettings, ProfileSettings
from holdfast.store.queries import DenseQuery
from holdfast.store.sqlite import index_file, live_index
from holdfast.store.sqlite.shard import Shard
from holdfast.testing.contracts import HashEmbedder
from holdfast.types import FIELDS, Contribution, StrategyExplanation

QUESTIONS = ["boat", "Why is the kiln broken?", "Describe the old violin", "which hedge is cheap?", "zeppelin", "?!"]
PROFILES = ["fast", "balanced", "hybrid"]
# Nothing is refused: these laws are about what is found.
EAGER = Settings.load({"refusal.enabled": False, "hybrid.escalation": ["hdc-vsa"]}, environ={})
RECIPES = {"default": EAGER, "reference": Settings.reference()}


class NoMeaning(HashEmbedder):
    """Every vector is zero."""

    def embed_query(self, text):
        return np.zeros(self.dims, dtype=np.float32)


class Moody(HashEmbedder):
    """Fails for documents that hold a boat: their units wait."""

    def embed_documents(self, texts):
        if any("boat" in text for text in texts):
            raise EmbedderError("not in the mood")
        return super().embed_documents(texts)


EMBEDDERS = {
    "64 dimensions": HashEmbedder(64),
    # The subjects lie in its first 64 dimensions and what is said of them beyond: an early exit is sure, and wrong.
    "288 dimensions": HashEmbedder(288),
    "zero vectors": NoMeaning(64),
    "waiting units": Moody(64),
    "no vectors": None,
}


# `make test` draws the embedder of each example, `make test-all` asks every one for all of them.
EACH = pytest.mark.parametrize(
    "named", ["drawn", *(pytest.param(name, marks=pytest.mark.slow) for name in EMBEDDERS)]
)
embedders = st.sampled_from([*EMBEDDERS])


def filled(memory, said, units):
    for i, message in enumerate(said):
        memory.remember(message, user="ana", session=f"s{i % 2}")
    if units:
        memory.remember(units, user="ana", scope="global")


# ------------------------------------------------------------------------------------- ranges (laws 5 and 9)


def assert_in_range(found, primary_marks):
    assert list(found) == sorted(found, key=lambda hit: (-hit.score, hit.unit.id))
    for hit in found:
        assert math.isfinite(hit.score)
        assert 0.0 <= hit.rel <= 1.0
        assert hit.score >= 0.0
    for result in found.trace.results:
        order = [(-claim.raw_score, claim.unit_id) for claim in result.candidates]
        assert order == sorted(order)
        for claim in result.candidates:
            assert 0.0 < claim.raw_score < math.inf
            assert 0.0 <= claim.normalized_score <= 1.0
            if result.strategy_id in ("dense", "hdc-vsa"):
                assert claim.raw_score <= 1.0
    for candidate in found.trace.candidates:
        assert 0.0 <= candidate.rel <= 1.0
        # What a strategy that was only asked for help may add to full marks.
        assert 0.0 <= candidate.fused <= primary_marks + 0.7 + 0.15 + 1e-12


@EACH
@pytest.mark.parametrize("recipe", RECIPES)
@costly
@given(
    said=messages, units=knowledge, question=st.sampled_from(QUESTIONS), profile=st.sampled_from(PROFILES),
    drawn=embedders,
)  # fmt: skip
def test_scores_lie_in_their_ranges_and_are_numbers(named, recipe, said, units, question, profile, drawn):
    with opened(RECIPES[recipe], embedder=EMBEDDERS[drawn if named == "drawn" else named]) as memory:
        filled(memory, said, units)
        found = memory.search(question, user="ana", session="s1", profile=profile, reference_time=later(days=2))
    assert_in_range(found, 1.0)
    if profile == "hybrid":
        assert all(hit.score <= 1.0 for hit in found)


@pytest.mark.parametrize("embedder", EMBEDDERS)
@pytest.mark.parametrize("profile", PROFILES)
def test_an_empty_store_answers_every_question_with_nothing(embedder, profile):
    with opened(embedder=EMBEDDERS[embedder]) as memory:
        for question in (*QUESTIONS, "🎉", "京都"):
            found = memory.search(question, user="ana", profile=profile, explain=True)
            assert (found.hits, found.trace.refused) == ((), "")


def test_a_unit_that_waits_is_found_by_its_words_beside_those_that_do_not():
    with opened(EAGER, embedder=Moody(64)) as memory:
        memory.remember("the boat is blue", id="waits", user="ana")
        memory.remember("the blue kiln", id="has", user="ana")
        found = memory.search("blue boat", user="ana", explain=True)
        assert {hit.unit.id for hit in found} == {"waits", "has"}
        waits, has = sorted(found, key=lambda hit: hit.unit.id != "waits")
        assert (waits.cosine, waits.contributions.find("cosine")) == (None, None)
        assert has.contributions.find("cosine").value == has.cosine > 0.0
        assert waiting(memory, Moody(64).space) == 1


# -------------------------------------------------------------------------------------- explanations (law 12)


@EACH
@pytest.mark.parametrize("recipe", RECIPES)
@costly
@given(
    said=messages, units=knowledge, question=st.sampled_from(QUESTIONS), profile=st.sampled_from(PROFILES),
    drawn=embedders,
)  # fmt: skip
def test_every_score_recomposes_bit_for_bit_from_its_explanation(
    named, recipe, said, units, question, profile, drawn
):
    with opened(RECIPES[recipe], embedder=EMBEDDERS[drawn if named == "drawn" else named]) as memory:
        filled(memory, said, units)
        plain = memory.search(question, user="ana", session="s1", profile=profile)
        found = memory.search(question, user="ana", session="s1", profile=profile, explain=True)
        assert standing(found) == standing(plain)
        for hit in found:
            assert_exact(hit.contributions)
            assert hit.contributions.value.hex() == hit.score.hex()


def test_an_escalated_strategy_and_a_completed_claim_stand_in_the_explanation():
    with opened(EAGER, embedder=HashEmbedder(64)) as memory:
        for i, text in enumerate(("the blue boat leaks", "a boat for sale", "the kiln is cold")):
            memory.remember(text, id=f"u{i}", user="ana")
        found = memory.search("blue boat", user="ana", explain=True)
        assert [result.strategy_id for result in found.trace.results] == ["lexical", "dense", "hdc-vsa"]
        best = found[0].contributions
        assert best.find("hdc-vsa").find("above chance").value > 0.0
        assert best.find("dense").find("cosine").value > 0.0
        assert best.find("lexical").find("term boat").value > 0.0
        for hit in found:
            assert {"lexical", "dense"} <= {part.name for part in hit.contributions.find("fused").parts}
            assert_exact(hit.contributions)
        completed = [
            candidate.claims["lexical"]
            for candidate in found.trace.candidates
            if candidate.unit_id not in {claim.unit_id for claim in found.trace.results[0].candidates}
        ]
        assert all(raw == 0.0 for raw in completed)


def test_a_claim_beyond_a_strategys_own_candidates_is_completed_with_its_true_score():
    settings = Settings.load({"refusal.enabled": False, "retrieval.max_candidates": 2}, environ={})
    with opened(settings, embedder=HashEmbedder(64)) as memory:
        # By words the longest is last; by meaning a repeated word is nearer to a question of that word alone.
        memory.remember("boat", id="a", user="ana")
        memory.remember("boat boat", id="b", user="ana")
        memory.remember("boat oar oar oar", id="c", user="ana")
        memory.remember("boat with a sail and a mast of oak and a keel", id="d", user="ana")
        found = memory.search("boat oar", user="ana", explain=True)
        for candidate in found.trace.candidates:
            vector = vectors.halve(HashEmbedder(64).embed_documents([memory.get(candidate.unit_id, user="ana").text]))
            cosine = float(vectors.cosines(vector, HashEmbedder(64).embed_query("boat oar"), 64)[0])
            assert candidate.claims["dense"] == max(0.0, cosine)
        for hit in found:
            assert_exact(hit.contributions)
            assert hit.contributions.value.hex() == hit.score.hex()


# --------------------------------------------------------------------------------------- determinism (law 11)


@pytest.fixture
def _every_owner_is_saved(monkeypatch):
    """Let the smallest index be saved beside its store."""
    monkeypatch.setattr(live_index, "_WORTH_SAVING", 1)


# Two questions an example: among fifty examples each is asked of many stores.
asked = st.lists(st.sampled_from(QUESTIONS), min_size=2, max_size=2, unique=True)


def answers(memory, questions, explain=False):
    found = [
        memory.search(question, user="ana", session="s1", profile=profile, explain=explain)
        for question in questions
        for profile in PROFILES
    ]
    return [standing(one) for one in found]


@costly
@given(said=messages, data=st.data(), recipe=st.sampled_from([*RECIPES]), questions=asked)
def test_order_of_arrival_and_size_of_batches_change_no_id_score_or_rank(said, data, recipe, questions):
    # Of turns that share a moment, the one that came first is the earlier turn (C1): no two share one here. And what
    # came first was new to the gate (C17), so that it does not judge here.
    settings = dataclasses.replace(RECIPES[recipe], gate=GateSettings(policy="off"))
    said = [{**one, "at": (NOW - timedelta(minutes=place)).isoformat()} for place, one in enumerate(said)]
    shuffled = data.draw(st.permutations(said))
    edges = sorted(data.draw(st.sets(st.integers(1, max(1, len(said) - 1)), max_size=3)))
    batches = [shuffled[i:j] for i, j in zip([0, *edges], [*edges, None], strict=True)]
    found = []
    for calls in ([said] if said else [], [[one] for one in said], [batch for batch in batches if batch]):
        with opened(settings, embedder=HashEmbedder(288)) as memory:
            for call in calls:
                memory.remember(call, user="ana", session="s1")
                memory.search("boat", user="ana")  # a warm index answers like a cold one
            found.append(answers(memory, questions))
    assert found[0] == found[1] == found[2]


steps = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from(["the boat is blue", "a broken kiln", "the kiln is old and cheap", "rent", "blue blue boat"]),
        st.sampled_from(["remember", "update", "supersede", "global", "fail"]),
    ),
    min_size=1,
    max_size=10,
)


def walked(memory, moves, start=0):
    """Do what the steps say; a step that fails leaves its unit waiting for a vector."""
    for number, (i, text, verb) in enumerate(moves, start):
        known = {unit.id for unit in memory.list(user="ana", limit=None, current_only=False)}
        name = f"u{i}"
        if verb == "update" and name in known:
            memory.update(name, user="ana", text=f"{text} {number}")
        elif verb == "supersede" and name in known:
            memory.remember(text, id=f"n{number}", user="ana", supersedes=name)
        elif verb == "global":
            memory.remember(text, id=f"g{i}", user="ana", scope="global")
        elif verb == "fail":
            memory.remember(f"{text} grumpily", id=name, user="ana", session="s1")
        else:
            memory.remember(text, id=name, user="ana", session="s1")


class Grumpy(HashEmbedder):
    """Fails for documents that say so."""

    def embed_documents(self, texts):
        if any("grumpily" in text for text in texts):
            raise EmbedderError("not this one")
        return super().embed_documents(texts)


@pytest.mark.usefixtures("_every_owner_is_saved")
@costly
@given(before=steps, after=steps, questions=asked)
def test_a_reopened_store_answers_alike_with_its_snapshot_without_it_and_with_an_old_one(
    tmp_path_factory, before, after, questions
):
    path = tmp_path_factory.mktemp("law11") / "store.db"
    beside = path.with_name("store.db.index")
    with opened(EAGER, path=path, embedder=Grumpy(64)) as memory:
        memory.search("boat", user="ana")  # loads the index, which then has to follow and is saved at the end
        walked(memory, before)
        answers(memory, questions)
    old = beside.read_bytes()
    with opened(EAGER, path=path, embedder=Grumpy(64)) as memory:
        walked(memory, after, start=100)
        expected = answers(memory, questions)
    for kept in (beside.read_bytes(), None, old):
        beside.unlink(missing_ok=True)
        if kept is not None:
            beside.write_bytes(kept)
        with opened(EAGER, path=path, embedder=Grumpy(64)) as memory:
            assert answers(memory, questions) == expected


@costly
@given(before=steps, after=steps, questions=asked)
def test_a_second_handle_answers_like_the_one_that_wrote(tmp_path_factory, before, after, questions):
    path = tmp_path_factory.mktemp("law11") / "store.db"
    with (
        opened(EAGER, path=path, embedder=Grumpy(64)) as one,
        opened(EAGER, path=path, embedder=Grumpy(64)) as two,
    ):
        walked(one, before)
        assert answers(one, questions) == answers(two, questions)
        walked(two, after, start=100)
        assert answers(one, questions) == answers(two, questions)


# ------------------------------------------------------------------- the index that followed (law 18)


def contents(shard):
    """Return everything a shard is searched by, in an order of its own: by key, name and term."""
    arrays = shard.to_arrays()
    keys = arrays["keys"].tolist()
    names = ["", *index_file.unpack_words(arrays["names"])]
    coded = ("session", "agent", "speaker")
    found = {
        f"{name} of {key}": names[value] if name in coded else value
        for name in shard._columns
        for key, value in zip(keys, arrays[f"column {name}"].tolist(), strict=True)
    }
    starts = arrays["starts"].tolist()
    for f in range(len(FIELDS)):
        words = zip(index_file.unpack_words(arrays[f"words {f}"]), arrays[f"numbers {f}"].tolist(), strict=True)
        for word, number in words:
            span = slice(starts[number], starts[number + 1])
            held = zip(arrays["units"][span].tolist(), arrays["counts"][span].tolist(), strict=True)
            found |= {f"{word} in field {f} of {keys[place]}": count for place, count in held}
    held = [place for place, known in enumerate(arrays.get("dense checksums", np.zeros(0)).tolist()) if known >= 0]
    for name, array in arrays.items():
        if name.startswith("dense "):
            found |= {f"{name} of {keys[place]}": array[place].tolist() for place in held}
    return found | {"ids": dict(zip(keys, index_file.unpack_words(arrays["ids"]), strict=True))}


def proposals(shard):
    query = HashEmbedder(64).embed_query("the blue boat")
    found = []
    for depth in (1, 3, 99):
        places, scores = np.zeros(0), np.zeros(0)  # no vectors at all, and none that are left, are the same
        if shard.dense is not None:
            places, scores = shard.dense.propose(query, shard.eligible(make_view(), None), depth, None)
        found.append({shard.ids[p]: s for p, s in zip(places.tolist(), scores.tolist(), strict=True)})
    return found


@costly
@given(moves=steps)
def test_an_index_that_followed_every_change_equals_one_rebuilt_and_one_saved(moves):
    with opened(EAGER, embedder=Grumpy(64)) as memory:
        memory.search("boat", user="ana")
        walked(memory, moves)
        followed = memory.store._index
        for owner in ("ana", ""):
            shard, fresh = followed._shard("local", owner), followed._built("local", owner)
            followed.follow()
            assert proposals(shard) == proposals(fresh)
            assert contents(shard) == contents(fresh)
            again = Shard.from_arrays(index_file.unpack(index_file.pack(shard.to_arrays())))
            assert contents(again) == contents(fresh)
            assert proposals(again) == proposals(fresh)
            assert (again.unit_count, again.field_totals, again.speakers) == (
                fresh.unit_count,
                fresh.field_totals,
                fresh.speakers,
            )


@costly
@given(moves=steps, depth=st.integers(1, 6))
def test_what_is_proposed_by_meaning_is_what_has_a_vector_and_is_visible(moves, depth):
    with opened(EAGER, embedder=Grumpy(64)) as memory:
        walked(memory, moves)
        query = DenseQuery(Grumpy(64).space, HashEmbedder(64).embed_query("the blue boat"))
        everything = set(propose(memory, query))
        listed = memory.list(user="ana", limit=None)
        assert everything == {unit.id for unit in listed if "grumpily" not in unit.text}
        some = propose(memory, query, depth)
        assert min(depth, len(everything)) <= len(some)
        assert set(some) <= everything


# ------------------------------------------------------------------------------------------ profiles (C6, C7)


class BrevityStrategy:
    """A third party's: the shorter, the better."""

    id = "brevity"

    def __init__(self, settings):
        pass

    def propose(self, query, reading, depth, deadline):
        return Proposals(tuple(unit.id for unit in reading.scan(order="oldest", limit=None)))

    def score(self, query, reading, ids):
        units = reading.units(ids)
        return make_claims(ids, {key: 4.0 / len(unit.text) for key, unit in units.items()})[0]

    def explain(self, query, reading, ids):
        raws = self.score(query, reading, ids).raw.tolist()
        return {
            key: StrategyExplanation(Contribution("brevity", raw), (self.id,))
            for key, raw in zip(ids, raws, strict=True)
        }


@pytest.fixture
def install(monkeypatch):
    """Return a function that installs a profile, and the strategy above, as a third party's package would."""

    def installed(profile):
        ours = metadata.entry_points

        def found(group):
            extra = {
                registry.PROFILE_GROUP: [SimpleNamespace(name="theirs", load=lambda: profile)],
                registry.STRATEGY_GROUP: [SimpleNamespace(name="brevity", load=lambda: BrevityStrategy)],
            }
            return [*ours(group=group), *extra[group]]

        monkeypatch.setattr(metadata, "entry_points", found)
        registry._strategy_class.cache_clear()

    yield installed
    registry._strategy_class.cache_clear()


SAID = ("a blue boat", "the boat that leaks is blue", "the kiln", "boat")


@pytest.mark.parametrize(
    ("profile", "weights", "bonus", "full"),
    [
        (ProfileSettings(("lexical", "brevity"), rank_by="fused"), {"lexical": 1.0, "brevity": 1.0}, 0.15, 2.15),
        (
            ProfileSettings(("lexical", "dense", "brevity"), rank_by="fused"),
            {"lexical": 1.0, "dense": 1.0, "brevity": 1.0},
            0.15,
            3.3,
        ),
        (
            ProfileSettings(("dense", "brevity"), rank_by="fused", mix={"dense": 0.75, "brevity": 0.25}),
            {"dense": 0.75, "brevity": 0.25},
            0.0,
            1.0,
        ),
        (
            ProfileSettings(
                ("lexical", "brevity"), rank_by="score", mix={"lexical": 0.5, "brevity": 0.2, "hdc-vsa": 0.1},
                normalise="best", escalation=("hdc-vsa",),
            ),
            {"lexical": 0.5, "brevity": 0.2, "hdc-vsa": 0.1},
            0.0,
            0.7,
        ),
    ],
    ids=["two", "three", "mix", "mix of the best"],
)  # fmt: skip
def test_a_third_partys_profile_and_strategy_are_fused_by_the_formula(install, profile, weights, bonus, full):
    install(profile)
    with opened(EAGER, embedder=HashEmbedder(64)) as memory:
        for i, text in enumerate(SAID):
            memory.remember(text, id=f"u{i}", user="ana", at=NOW)
        found = memory.search("blue boat", user="ana", profile="theirs", explain=True)
    assert len(found) >= 3
    scales = {
        result.strategy_id: result.candidates[0].raw_score if profile.normalise == "best" else result.scale
        for result in found.trace.results
        if result.candidates
    }
    for candidate in found.trace.candidates:
        parts = [weights[name] * min(raw / scales[name], 1.0) for name, raw in candidate.claims.items() if raw > 0.0]
        expected = sum(parts) + bonus * max(0, len(parts) - 1)
        assert candidate.fused == pytest.approx(expected, rel=1e-12)
        assert candidate.rel == pytest.approx(min(1.0, expected / full), rel=1e-12)
        if profile.mix:
            assert set(profile.strategies) <= set(candidate.claims)
    for hit in found:
        assert_exact(hit.contributions)
        assert hit.contributions.value.hex() == hit.score.hex()


@pytest.mark.parametrize("dims", [64, 288])
@costly
@given(said=messages, question=st.sampled_from(QUESTIONS))
def test_in_the_reference_recipe_hybrids_relevance_is_the_cosine_of_the_full_vectors(dims, said, question):
    with opened(Settings.reference(), embedder=HashEmbedder(dims)) as memory:
        filled(memory, said, [])
        found = memory.search(question, user="ana", session="s1")
        query = HashEmbedder(dims).embed_query(question)
        for hit in found:
            rows = vectors.halve(HashEmbedder(dims).embed_documents([hit.unit.text]))
            assert hit.rel == max(0.0, float(vectors.cosines(rows, query, dims)[0]))


def test_profiles_without_dense_ask_no_embedder():
    class Silent(HashEmbedder):
        def embed_query(self, text):
            raise AssertionError(f"asked for {text}")

    with opened(embedder=Silent(64)) as memory:
        memory.store.put([])
        for profile in ("fast", "balanced"):
            assert len(memory.search("boat", user="ana", profile=profile)) == 0
