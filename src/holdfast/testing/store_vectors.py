"""What every store promises about vectors and hypervectors: the part of `StoreContract` that searches by them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import EmbeddingSpaceError, HoldfastError
from holdfast.kernels import hypervectors as hv
from holdfast.store.contract import HYPER_FIELDS, MISSING_FIELD, DenseQuery, HyperQuery, Store
from holdfast.store.filters import parse_filter
from holdfast.testing.builders import NOON, analyse_default, draft, expired_deadline, no_deadline, view
from holdfast.types import Analysis, Unit, View

SPACE, OTHER_SPACE = "contract/4/none/1", "contract/4/none/2"
# The contract's weights of topic, claim, role and acts.
SHARES = (0.35, 0.35, 0.2, 0.1)
# A question, and vectors that are nearer to it from the last to the first.
EAST = np.array([1.0, 0.0, 0.0, 0.0], dtype=np.float32)
NEARER = {
    "a": np.array([0.1, 0.0, 0.0, 0.7], dtype=np.float32),
    "b": np.array([0.5, 0.3, 0.0, 0.4], dtype=np.float32),
    "c": np.array([0.9, 0.1, 0.0, 0.1], dtype=np.float32),
}


def raised(kind: type[HoldfastError], action: object) -> bool:
    """Return whether calling `action` raises `kind`."""
    assert callable(action)
    try:
        action()
    except kind:
        return True
    return False


def ids(units: object) -> list[str]:
    """Return the ids of units, in order."""
    assert hasattr(units, "__iter__")
    return [unit.id for unit in units]


def revised_text(old: Unit, text: str) -> tuple[Unit, Analysis]:
    """Return the old unit with new words, as `Store.revise` asks for it."""
    new = old.evolve(text=text, claim=text)
    return new, analyse_default(new)


def embed(store: Store, seen: View, vectors: dict[str, NDArray[np.float32]], space: str = SPACE) -> int:
    """Write vectors for the present versions of units; return how many were wanted."""
    found = store.units(seen, [*vectors])
    return store.put_vectors(space, [found[name] for name in vectors], np.array([*vectors.values()]))


def near(store: Store, seen: View, depth: int = 99, space: str = SPACE) -> set[str]:
    """Return what the store proposes by meaning, without a time limit."""
    return set(store.dense_candidates(seen, DenseQuery(space, EAST), depth, no_deadline()).ids)


def sounding(*terms: str) -> HyperQuery:
    """Return a question of words alone for the hypervectors."""
    return HyperQuery(None, hv.ngrams(terms, positional=False), None, SHARES)


def heard(store: Store, seen: View, *terms: str, depth: int = 99) -> set[str]:
    """Return what the store proposes by association, without a time limit."""
    return set(store.hyper_candidates(seen, sounding(*terms), depth, no_deadline()).ids)


class StoreVectorContract(ABC):
    """Each test opens its own store in an empty folder."""

    @abstractmethod
    def open_store(self, place: Path) -> Store:
        """Open or create the store that lives at `place`; twice on one place gives two handles on one store."""

    # ------------------------------------------------------------------------------------------- vectors

    def test_a_new_store_has_agreed_on_no_space_and_the_first_vector_decides(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        assert store.space() is None
        store.put([draft("a", "one")])
        assert store.space() is None
        assert embed(store, view(), {"a": EAST}) == 1
        assert store.space() == SPACE

    def test_agreeing_on_a_space_is_kept(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.agree_on_space(SPACE)
        assert store.space() == SPACE
        store.agree_on_space(OTHER_SPACE)
        store.close()
        assert self.open_store(tmp_path).space() == OTHER_SPACE

    def test_units_of_every_owner_wait_until_they_have_a_vector(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one"), draft("b", "two", user="ben"), draft("c", "three", tenant="other")])
        store.put([draft("g", "four", user=None, scope="global")])
        assert store.waiting_count(SPACE) == 4
        assert sorted(ids(store.waiting(SPACE, 99))) == ["a", "b", "c", "g"]
        assert len(store.waiting(SPACE, 3)) == 3
        waiting = store.waiting(SPACE, 99)
        assert store.put_vectors(SPACE, waiting[:3], np.array([EAST] * 3)) == 3
        assert ids(store.waiting(SPACE, 99)) == ids(waiting[3:])
        assert store.waiting_count(SPACE) == 1
        assert store.waiting_count(OTHER_SPACE) == 4

    def test_vectors_come_back_bit_for_bit(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        numbers = np.random.default_rng(7).normal(size=(3, 9)).astype(np.float32)
        numbers[1, :4] = [np.float32(1e-45), np.float32(-0.0), np.finfo(np.float32).max, np.float32(0.1)]
        store.put([draft(name, f"word {name}") for name in "abc"])
        embed(store, view(), dict(zip("abc", numbers, strict=True)))
        for opened in (store, self.open_store(tmp_path)):
            found = opened.dense_evidence(view(), SPACE, ["c", "a", "nobody", "b"])
            assert found.vectors.dtype == np.float32
            rows = {name: found.vectors[i].tobytes() for i, name in enumerate(found.ids)}
            assert rows == {name: numbers[i].tobytes() for i, name in enumerate("abc")}

    def test_a_unit_that_waits_has_no_evidence_and_is_not_proposed(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one"), draft("b", "two")])
        assert store.dense_evidence(view(), SPACE, ["a", "b"]).ids == ()
        assert near(store, view()) == set()
        embed(store, view(), {"a": EAST})
        assert store.dense_evidence(view(), SPACE, ["a", "b"]).ids == ("a",)
        assert near(store, view()) == {"a"}

    def test_a_vector_of_earlier_words_is_left_out_and_its_unit_waits(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "blue door")])
        read = store.waiting(SPACE, 9)
        store.revise(view(), "a", lambda old: revised_text(old, "red door"))
        assert store.put_vectors(SPACE, read, np.array([EAST])) == 0
        assert (store.waiting_count(SPACE), near(store, view())) == (1, set())
        embed(store, view(), {"a": EAST})
        assert (store.waiting_count(SPACE), near(store, view())) == (0, {"a"})
        store.put([draft("a", "green door")])
        assert (store.waiting_count(SPACE), near(store, view())) == (1, set())
        assert store.dense_evidence(view(), SPACE, ["a"]).ids == ()

    def test_a_duplicate_keeps_its_vector(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "blue door")])
        embed(store, view(), {"a": EAST})
        store.put([draft("a", "blue door")])
        assert (store.waiting_count(SPACE), near(store, view())) == (0, {"a"})

    def test_a_vector_can_be_replaced(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one"), draft("b", "two")])
        embed(store, view(), {"a": EAST, "b": NEARER["b"]})
        embed(store, view(), {"a": NEARER["a"]})
        assert store.dense_evidence(view(), SPACE, ["a"]).vectors.tolist() == [NEARER["a"].tolist()]
        assert near(store, view(), 1) == {"b"}

    def test_vectors_of_another_space_are_refused_and_nothing_is_written(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one"), draft("b", "two")])
        embed(store, view(), {"a": EAST})
        assert raised(EmbeddingSpaceError, lambda: embed(store, view(), {"b": EAST}, OTHER_SPACE))
        assert (store.space(), store.waiting_count(SPACE)) == (SPACE, 1)
        assert store.dense_evidence(view(), OTHER_SPACE, ["a", "b"]).ids == ()
        assert near(store, view(), space=OTHER_SPACE) == set()
        assert near(store, view()) == {"a"}

    def test_after_a_change_of_space_only_new_vectors_are_searched(self, tmp_path: Path) -> None:
        # Both spaces have four dimensions: nothing but their names tells them apart.
        store, second = self.open_store(tmp_path), self.open_store(tmp_path)
        store.put([draft(name, f"word {name}") for name in "abc"])
        embed(store, view(), NEARER)
        assert near(store, view()) == near(second, view()) == set("abc")
        store.agree_on_space(OTHER_SPACE)
        assert store.waiting_count(OTHER_SPACE) == 3
        for opened in (store, second, self.open_store(tmp_path)):
            assert near(opened, view()) == near(opened, view(), space=OTHER_SPACE) == set()
        embed(store, view(), {"a": EAST}, OTHER_SPACE)
        for opened in (store, second, self.open_store(tmp_path)):
            assert near(opened, view(), space=OTHER_SPACE) == {"a"}
            assert opened.dense_evidence(view(), OTHER_SPACE, ["a", "b", "c"]).ids == ("a",)
            assert near(opened, view()) == set()

    def test_the_nearest_are_proposed_and_ties_with_the_last(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft(name, f"word {name}") for name in "abc"])
        store.put([draft(f"tie{i}", f"tied {i}") for i in range(3)])
        embed(store, view(), NEARER | {f"tie{i}": NEARER["b"] for i in range(3)})
        assert near(store, view(), 1) == {"c"}
        assert near(store, view(), 2) == {"b", "c", "tie0", "tie1", "tie2"}
        assert near(store, view(), 99) == {"a", "b", "c", "tie0", "tie1", "tie2"}

    def test_one_tier_can_be_asked_for(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("early", "one"), draft("late", "two")])
        rows = np.zeros((2, 100), dtype=np.float32)
        rows[0, 0], rows[0, 80], rows[1, 0], rows[1, 1] = 1.0, 2.0, 1.0, 1.0
        embed(store, view(), {"early": rows[0], "late": rows[1]})
        question = np.zeros(100, dtype=np.float32)
        question[0] = 1.0
        for tier, expected in ((64, "early"), (100, "late"), (None, "late")):
            found = store.dense_candidates(view(), DenseQuery(SPACE, question, tier), 1, no_deadline())
            assert found.ids == (expected,)

    def test_one_anchor_density_can_be_asked_for(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        texts = {"none": "we met", "one": "we met on 2026-03-14", "other": "we left on 2026-03-15"}
        store.put([draft(name, text) for name, text in texts.items()])
        embed(store, view(), dict.fromkeys(texts, EAST))
        densities = store.anchor_densities(view(), [*texts])
        for density in {*densities.values()}:
            wanted = DenseQuery(SPACE, EAST, density=density)
            found = store.dense_candidates(view(), wanted, 9, no_deadline())
            assert set(found.ids) == {name for name, held in densities.items() if held == density}
        assert store.dense_candidates(view(), DenseQuery(SPACE, EAST, density=1.0), 9, no_deadline()).ids == ()

    def test_another_owners_vectors_are_never_proposed(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one"), draft("b", "two", user="ben"), draft("c", "three", tenant="other")])
        store.put([draft("g", "four", user=None, scope="global"), draft("h", "five", agent="cook")])
        waiting = store.waiting(SPACE, 99)
        store.put_vectors(SPACE, waiting, np.array([EAST] * len(waiting)))
        everything = ["a", "b", "c", "g", "h"]
        for seen, expected in (
            (view("ana"), {"a", "g", "h"}),
            (view("ana", agent="clerk"), {"a", "g"}),
            (view("ben"), {"b", "g"}),
            (view("ana", tenant="other"), {"c"}),
            (view("eve"), {"g"}),
        ):
            assert near(store, seen) == expected
            assert set(store.dense_evidence(seen, SPACE, everything).ids) == expected
        assert near(store, view("ana"), 1) == {"a", "g", "h"}

    def test_a_users_own_unit_hides_a_global_one_by_meaning_too(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("x", "mine"), draft("y", "also global", user=None, scope="global")])
        store.put([draft("x", "everyone's", user=None, scope="global")])
        rows = {"mine": NEARER["a"], "everyone's": EAST, "also global": NEARER["b"]}
        waiting = store.waiting(SPACE, 9)
        store.put_vectors(SPACE, waiting, np.array([rows[one.text] for one in waiting]))
        assert near(store, view(), 1) == {"y"}
        found = store.dense_evidence(view(), SPACE, ["x"])
        assert found.vectors.tolist() == [NEARER["a"].tolist()]
        assert near(store, view("ben"), 1) == {"x"}

    def test_views_and_filters_hold_for_meaning_and_association_too(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        past, future = NOON - timedelta(hours=1), NOON + timedelta(days=9)
        store.put(
            [
                draft("plain", "lamp", metadata={"n": 1}),
                draft("expired", "lamp", expires_at=past),
                draft("early", "lamp", valid_from=future),
                draft("late", "lamp", valid_to=past),
                draft("old", "lamp"),
                draft("there", "lamp", session="s"),
            ]
        )
        store.put([draft("new", "lamp", supersedes=("old",))])
        waiting = store.waiting(SPACE, 99)
        store.put_vectors(SPACE, waiting, np.array([EAST] * len(waiting)))
        for seen, expected in (
            (view(), {"plain", "there", "new"}),
            (view(current_only=False), {"plain", "there", "new", "old", "early", "late"}),
            (view(session="s", only_session=True), {"there"}),
            (view(filters=parse_filter({"n": 1})), {"plain"}),
            (view(filters=parse_filter({"n": 2})), set()),
        ):
            assert near(store, seen) == near(store, seen, 1) == expected
            assert heard(store, seen, "lamp") == heard(store, seen, "lamp", depth=1) == expected

    def test_two_handles_see_each_others_vectors(self, tmp_path: Path) -> None:
        one, two = self.open_store(tmp_path), self.open_store(tmp_path)
        for writer, reader, name in ((one, two, "a"), (two, one, "b"), (one, two, "c")):
            writer.put([draft(name, f"word {name}")])
            assert name not in near(reader, view())
            embed(writer, view(), {name: NEARER[name]})
            assert name in near(reader, view())
            assert reader.waiting_count(SPACE) == 0
        two.revise(view(), "a", lambda old: revised_text(old, "other words"))
        assert near(one, view()) == {"b", "c"}
        one.close()
        two.close()

    def test_a_reopened_store_proposes_the_same(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        rows = np.random.default_rng(3).normal(size=(40, 4)).astype(np.float32)
        store.put([draft(str(i), f"brick {i % 7} of wall {i % 3}") for i in range(40)])
        embed(store, view(), {str(i): row for i, row in enumerate(rows)})
        for i in (3, 5):
            store.revise(view(), str(i), lambda old: revised_text(old, "a chair"))
        embed(store, view(), {"5": rows[6]})
        before = self.proposals(store)
        store.close()
        assert self.proposals(self.open_store(tmp_path)) == before

    def proposals(self, store: Store) -> list[set[str]]:
        """Return what a store proposes at several depths, by meaning and by association."""
        found = [near(store, view(), depth) for depth in (1, 3, 10, 40)]
        return found + [heard(store, view(), "brick", "wall", depth=depth) for depth in (1, 3, 10, 40)]

    # --------------------------------------------------------------------------------------- hypervectors

    def test_distances_are_those_of_the_units_own_words(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        full = {"topic": "lamp", "role": "Definition", "utility_acts": ("define", "describe")}
        store.put([draft("a", "red lamp", **full), draft("b", "blue door"), draft("p", "red lamp", role="Procedure")])
        question = HyperQuery(
            hv.bag(["Definition"]), hv.ngrams(["red", "lamp"], positional=False), hv.random("define"), SHARES
        )
        found = store.hyper_evidence(view(), question, ["b", "a", "nobody", "p"])
        rows = {
            name: dict(zip(HYPER_FIELDS, found.distances[i].tolist(), strict=True))
            for i, name in enumerate(found.ids)
        }
        assert (set(rows), found.unit_count) == ({"a", "b", "p"}, 3)
        assert rows["a"]["claim"] == rows["a"]["role"] == 0
        assert rows["p"]["claim"] == 0
        acts = hv.bag(["define", "describe"])
        assert acts is not None
        assert question.text is not None
        assert rows["a"]["acts"] == int(hv.hamming(acts[None, :], hv.random("define"))[0])
        assert rows["a"]["topic"] == int(hv.hamming(hv.random("lamp")[None, :], question.text)[0])
        assert rows["b"]["topic"] == rows["b"]["acts"] == MISSING_FIELD
        nothing = store.hyper_evidence(view(), HyperQuery(None, None, None, SHARES), ["a"])
        assert nothing.distances.tolist() == [[MISSING_FIELD] * len(HYPER_FIELDS)]

    def test_what_is_near_in_words_is_proposed_and_noise_is_not(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "red lamp"), draft("b", "red lamp post"), draft("c", "blue door", topic="red lamp")])
        store.put([draft("d", "green chair", role="Definition")])
        assert heard(store, view(), "red", "lamp") == {"a", "b", "c"}
        assert heard(store, view(), "red", "lamp", depth=1) <= {"a", "c"}
        assert heard(store, view(), "red", "lamp", depth=1)
        assert heard(store, view(), "zeppelin") == set()
        assert (
            store.hyper_candidates(
                view(), HyperQuery(hv.bag(["Definition"]), None, None, SHARES), 9, no_deadline()
            ).ids
            == ()
        )

    def test_association_follows_an_update(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "red lamp"), draft("b", "red lamp")])
        assert heard(store, view(), "red", "lamp") == {"a", "b"}
        store.revise(view(), "a", lambda old: revised_text(old, "green chair"))
        assert heard(store, view(), "red", "lamp") == {"b"}
        assert heard(store, view(), "green", "chair") == {"a"}

    def test_cached_hypervectors_can_be_dropped_and_are_made_again(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "red lamp"), draft("b", "green chair", user="ben")])
        found = heard(store, view(), "red", "lamp"), heard(store, view("ben"), "green", "chair")
        store.reset_hypervectors()
        assert (heard(store, view(), "red", "lamp"), heard(store, view("ben"), "green", "chair")) == found

    def test_association_keeps_owners_apart(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "red lamp"), draft("a", "blue door", user="ben")])
        store.put([draft("a", "green chair", tenant="other"), draft("g", "red lamp", user=None, scope="global")])
        assert heard(store, view(), "red", "lamp") == {"a", "g"}
        assert heard(store, view("ben"), "red", "lamp") == {"g"}
        assert heard(store, view("ana", tenant="other"), "red", "lamp") == set()
        assert store.hyper_evidence(view("eve"), sounding("red"), ["a"]).ids == ()
        assert self.claim_distance(store, view("ben"), "blue", "door") == 0
        assert self.claim_distance(store, view("ana"), "red", "lamp") == 0

    def claim_distance(self, store: Store, seen: View, *terms: str) -> int:
        """Return how far the words of the unit "a" are from these."""
        return int(store.hyper_evidence(seen, sounding(*terms), ["a"]).distances[0, HYPER_FIELDS.index("claim")])

    def test_a_spent_deadline_is_reported_by_meaning_and_by_association(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "red lamp")])
        embed(store, view(), {"a": EAST})
        late = store.hyper_candidates(view(), sounding("red", "lamp"), 9, expired_deadline())
        assert late.exhausted or late.ids == ("a",)
        by_meaning = store.dense_candidates(view(), DenseQuery(SPACE, EAST), 9, expired_deadline())
        assert by_meaning.exhausted
        assert set(late.ids) | set(by_meaning.ids) <= {"a"}
