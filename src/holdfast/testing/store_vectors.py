"""What every store promises about vectors and hypervectors: the part of `StoreContract` that searches by them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np

from holdfast.errors import EmbeddingSpaceError
from holdfast.kernels import hypervectors as hv
from holdfast.store.contract import (
    HYPER_FIELDS,
    MISSING_FIELD,
    DenseQuery,
    HyperQuery,
    SimilarityEvidence,
    SimilarityQuery,
    SpaceChange,
)  # fmt: skip
from holdfast.testing.builders import (
    EAST,
    NEARER,
    NOON,
    OTHER_SPACE,
    SPACE,
    Asker,
    StoreSuite,
    draft,
    expired_deadline,
    ids,
    raises,
    sounds,
    words,
)  # fmt: skip


def compare(asker: Asker, *itself: str, turns: int = 9, durable: int = 9, space: str = SPACE) -> SimilarityEvidence:
    """Return what lies near to the east, once for each unit that the question belongs to."""
    asked = SimilarityQuery(space, np.array([EAST] * len(itself)), turns, durable)
    return asker.look(lambda reading: reading.evidence(asked, itself))


def waiting(asker: Asker, space: str = SPACE) -> int:
    """Return how many units, of any owner, wait for a vector."""
    return len(asker.store.waiting(space, 99))


class StoreVectorContract(StoreSuite):
    """Each test opens its own store in an empty folder."""

    # ------------------------------------------------------------------------------------------- vectors

    def test_the_first_vector_or_a_word_decides_on_the_space(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "one"))
        assert ana.store.space() is None
        assert (ana.embed({"a": EAST}), ana.store.space()) == (1, SPACE)
        ana.mark(SpaceChange(OTHER_SPACE))
        ana.store.close()
        assert self.open(tmp_path).store.space() == OTHER_SPACE

    def test_units_of_every_owner_wait_until_they_have_a_vector(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "one"), draft("b", "two", user="ben"), draft("c", "three", tenant="other"))
        ana.put(draft("g", "four", user=None, scope="global"))
        found = ana.store.waiting(SPACE, 99)
        assert (sorted(ids(found)), len(ana.store.waiting(SPACE, 3))) == (["a", "b", "c", "g"], 3)
        assert ana.store.put_vectors(SPACE, found[:3], np.array([EAST] * 3)) == 3
        assert ids(ana.store.waiting(SPACE, 99)) == ids(found[3:])
        assert (ana.store.stats(ana.view, whole=True).waiting, waiting(ana, OTHER_SPACE)) == (1, 4)

    def test_vectors_come_back_bit_for_bit(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        numbers = np.random.default_rng(7).normal(size=(3, 9)).astype(np.float32)
        numbers[1, :4] = [np.float32(1e-45), np.float32(-0.0), np.finfo(np.float32).max, np.float32(0.1)]
        ana.put(*(draft(name, f"word {name}") for name in "abc"))
        ana.embed(dict(zip("abc", numbers, strict=True)))
        for asker in (ana, self.open(tmp_path)):
            found = asker.vectors("c", "a", "nobody", "b")
            assert {row.dtype for row in found.values()} == {np.dtype(np.float32)}
            assert {name: row.tobytes() for name, row in found.items()} == {
                name: numbers[i].tobytes() for i, name in enumerate("abc")
            }

    def test_a_vector_is_of_present_words_or_left_out(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "blue door"))
        read = ana.store.waiting(SPACE, 9)
        ana.revise("a", text="red door")
        assert ana.store.put_vectors(SPACE, read, np.array([EAST])) == 0
        assert (waiting(ana), ana.near(), ana.vectors("a")) == (1, set(), {})
        ana.embed({"a": EAST})
        ana.put(draft("a", "red door"))  # a duplicate keeps its vector
        assert (waiting(ana), ana.near()) == (0, {"a"})
        ana.put(draft("a", "green door"))
        assert (waiting(ana), ana.near(), ana.vectors("a")) == (1, set(), {})

    def test_a_vector_can_be_replaced(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "one"), draft("b", "two"))
        ana.embed({"a": EAST, "b": NEARER["b"]})
        ana.embed({"a": NEARER["a"]})
        assert (ana.vectors("a")["a"].tolist(), ana.near(1)) == (NEARER["a"].tolist(), {"b"})

    def test_vectors_of_another_space_are_refused_and_nothing_is_written(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "one"), draft("b", "two"))
        ana.embed({"a": EAST})
        assert raises(EmbeddingSpaceError, ana.embed, {"b": EAST}, OTHER_SPACE)
        assert (ana.store.space(), waiting(ana), ana.vectors("a", "b", space=OTHER_SPACE)) == (SPACE, 1, {})
        assert (ana.near(space=OTHER_SPACE), ana.near()) == (set(), {"a"})

    def test_after_a_change_of_space_only_new_vectors_are_searched(self, tmp_path: Path) -> None:
        # Both spaces have four dimensions: nothing but their names tells them apart.
        ana, second = self.open(tmp_path), self.open(tmp_path)
        ana.put(*(draft(name, f"word {name}") for name in "abc"))
        ana.embed(NEARER)
        assert ana.near() == second.near() == set("abc")
        ana.mark(SpaceChange(OTHER_SPACE))
        assert waiting(ana, OTHER_SPACE) == 3
        for asker in (ana, second, self.open(tmp_path)):
            assert asker.near() == asker.near(space=OTHER_SPACE) == set()
        ana.embed({"a": EAST}, OTHER_SPACE)
        for asker in (ana, second, self.open(tmp_path)):
            assert {*asker.vectors(*"abc", space=OTHER_SPACE)} == asker.near(space=OTHER_SPACE) == {"a"}
            assert asker.near() == set()

    def test_the_nearest_are_proposed_and_ties_with_the_last(self, tmp_path: Path) -> None:
        ana, ties = self.open(tmp_path), {"tie0", "tie1", "tie2"}
        ana.put(*(draft(name, f"word {name}") for name in (*"abc", *ties)))
        ana.embed(NEARER | dict.fromkeys(ties, NEARER["b"]))
        assert [ana.near(depth) for depth in (1, 2, 99)] == [{"c"}, {"b", "c", *ties}, {"a", "b", "c", *ties}]

    def test_one_tier_and_one_anchor_density_can_be_asked_for(self, tmp_path: Path) -> None:
        ana, question = self.open(tmp_path), np.zeros(100, dtype=np.float32)
        ana.put(draft("early", "we met on 2026-03-14"), draft("late", "we met"))
        early, late, question[0] = question.copy(), question.copy(), 1.0
        early[0], early[80], late[0], late[1] = 1.0, 2.0, 1.0, 1.0
        ana.embed({"early": early, "late": late})
        for tier, expected in ((64, "early"), (100, "late"), (None, "late")):
            assert ana.propose(DenseQuery(SPACE, question, tier), 1).ids == (expected,)
        for name, density in zip(("early", "late"), ana.column("anchor_density", "early", "late"), strict=True):
            assert ana.propose(DenseQuery(SPACE, question, density=density), 9).ids == (name,)
        assert ana.propose(DenseQuery(SPACE, question, density=1.0), 9).ids == ()

    def test_a_users_own_unit_hides_a_nearer_global_one(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("x", "mine"), draft("y", "also global", user=None, scope="global"))
        ana.put(draft("x", "everyone's", user=None, scope="global"))
        rows = {"mine": NEARER["a"], "everyone's": EAST, "also global": NEARER["b"]}
        found = ana.store.waiting(SPACE, 9)
        ana.store.put_vectors(SPACE, found, np.array([rows[one.text] for one in found]))
        assert (ana.near(1), ana.by("ben").near(1)) == ({"y"}, {"x"})
        assert ana.vectors("x")["x"].tolist() == NEARER["a"].tolist()

    def test_the_past_is_found_by_the_vectors_of_its_words(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "blue door"), draft("b", "small window"))
        ana.embed({"a": EAST, "b": NEARER["a"]})
        ana.revise("a", text="red door", recorded_time=NOON + timedelta(minutes=10))
        ana.revise("a", text="green door", recorded_time=NOON + timedelta(minutes=20))
        ana.embed({"a": NEARER["b"]})
        for asker in (ana, self.open(tmp_path)):
            now, then = asker, asker.by(as_of=NOON + timedelta(minutes=5))
            assert (now.near(1), now.vectors("a")["a"].tolist()) == ({"a"}, NEARER["b"].tolist())
            assert (then.near(1), then.vectors("a")["a"].tolist()) == ({"a"}, EAST.tolist())
            assert then.units("a")["a"].text == "blue door"
            between = asker.by(as_of=NOON + timedelta(minutes=15))  # those words never had a vector
            assert (between.near(), {*between.vectors("a", "b")}) == ({"b"}, {"b"})
        ana.store.forget(ana.view, ["a"])
        assert ana.by(as_of=NOON + timedelta(minutes=5)).near() == {"b"}

    def test_a_question_of_similarity_gives_cosines_best_first(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        # A durable turn is both a turn and durable.
        ana.put(draft("a", "one", session="s", scope="session"), draft("c", "two", session="s"))
        ana.put(draft("b", "three", kind="knowledge"), draft("ben", "four", user="ben"))
        ana.put(draft("g", "five", user=None, scope="global"), draft("x", "six", agent="x", session="s"))
        ana.embed(NEARER | {"g": EAST, "x": EAST})
        ana.by("ben").embed({"ben": EAST})
        a, b, c = (float(row[0] / np.linalg.norm(row)) for row in NEARER.values())
        clerk = ana.by(agent="clerk")
        for itself, turns, durable in (("", [c, a], [c, b]), ("c", [a], [b]), ("a", [c], [c, b])):
            found = compare(clerk, itself)
            assert np.allclose(found.turns, [turns], atol=1e-6)
            assert np.allclose(found.durable, [durable], atol=1e-6)
        both = compare(ana, "x", "c", turns=1, durable=2)
        assert np.allclose(both.turns, [[c], [1.0]], atol=1e-6)
        assert np.allclose(both.durable, [[c, b], [1.0, b]], atol=1e-6)
        nothing = SimilarityEvidence(((),), ((),))
        assert compare(ana, "", space=OTHER_SPACE) == compare(ana.by("eve"), "") == nothing

    # --------------------------------------------------------------------------------------- hypervectors

    def test_distances_are_those_of_the_units_own_words(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        full = {"topic": "lamp", "role": "Definition", "utility_acts": ("define", "describe")}
        ana.put(draft("a", "red lamp", **full), draft("b", "blue door"), draft("p", "red lamp", role="Procedure"))
        text, acts = hv.ngrams(["red", "lamp"], positional=False), hv.bag(["define", "describe"])
        assert text is not None
        assert acts is not None
        question = HyperQuery(hv.bag(["Definition"]), text, hv.random("define"))
        found = ana.look(lambda reading: reading.evidence(question, ["b", "a", "nobody", "p"]))
        told = zip(found.ids, found.distances.tolist(), strict=True)
        rows = {name: dict(zip(HYPER_FIELDS, row, strict=True)) for name, row in told}
        assert (set(rows), found.unit_count) == ({"a", "b", "p"}, 3)
        assert rows["a"]["claim"] == rows["a"]["role"] == rows["p"]["claim"] == 0
        assert rows["a"]["acts"] == int(hv.hamming(acts[None, :], hv.random("define"))[0])
        assert rows["a"]["topic"] == int(hv.hamming(hv.random("lamp")[None, :], text)[0])
        assert rows["b"]["topic"] == rows["b"]["acts"] == MISSING_FIELD
        nothing = ana.look(lambda reading: reading.evidence(HyperQuery(None, None, None), ["a"]))
        assert nothing.distances.tolist() == [[MISSING_FIELD] * len(HYPER_FIELDS)]

    def test_what_is_near_in_words_is_proposed_and_noise_is_not(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "red lamp"), draft("b", "red lamp post"), draft("c", "blue door", topic="red lamp"))
        ana.put(draft("d", "green chair", role="Definition"))
        assert ana.hear("red", "lamp") == {"a", "b", "c"}
        assert ana.hear("red", "lamp", depth=1) in ({"a"}, {"c"}, {"a", "c"})
        assert ana.hear("zeppelin") == set()
        assert ana.propose(HyperQuery(hv.bag(["Definition"]), None, None), 9).ids == ()
        ana.revise("a", text="green chair")
        assert (ana.hear("red", "lamp"), ana.hear("green", "chair")) == ({"b", "c"}, {"a", "d"})

    # ----------------------------------------------------------------------------------- all ways to search

    def test_two_handles_find_each_others_writes(self, tmp_path: Path) -> None:
        one, two = self.open(tmp_path), self.open(tmp_path)
        for writer, reader, name in ((one, two, "a"), (two, one, "b"), (one, two, "c")):
            writer.put(draft(name, f"lamp {name}"))
            assert name in reader.find("lamp") & reader.hear("lamp", name)
            assert name not in reader.near()
            writer.embed({name: NEARER[name]})
            assert (name in reader.near(), waiting(reader)) == (True, 0)
        two.revise("a", text="chair")
        assert one.near() == one.find("lamp") == {"b", "c"}

    def test_a_reopened_store_finds_the_same(self, tmp_path: Path) -> None:
        ana, names = self.open(tmp_path), [str(i) for i in range(40)]
        rows = np.random.default_rng(3).normal(size=(40, 4)).astype(np.float32)
        ana.put(*(draft(str(i), f"brick {i % 7} of {'wall ' * (i % 3)}") for i in range(40)))
        ana.embed(dict(zip(names, rows, strict=True)))
        for name in ("3", "5"):
            ana.revise(name, text="a chair of brick")
        ana.embed({"5": rows[6]})

        def see(asker: Asker) -> list[object]:
            depths, counted = (1, 3, 10, 40), asker.count(["brick", "wall"], *names)
            found = [asker.near(depth) for depth in depths]
            found += [search("brick", "wall", depth=depth) for depth in depths for search in (asker.find, asker.hear)]
            return [*found, counted.unit_count, counted.df, counted.field_totals, counted.tf.tolist()]

        before = see(ana)
        ana.store.close()
        assert see(self.open(tmp_path)) == before

    def test_a_spent_deadline_is_reported(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "red lamp"))
        ana.embed({"a": EAST})
        for query in (words("red", "lamp"), DenseQuery(SPACE, EAST), sounds("red", "lamp")):
            late = ana.propose(query, 9, expired_deadline())
            assert late.exhausted or (isinstance(query, HyperQuery) and late.ids == ("a",))
            assert {*late.ids} <= {"a"}
