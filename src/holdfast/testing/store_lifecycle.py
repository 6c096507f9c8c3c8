"""What every store promises about units over time (C17-C19): promotion, coverage, supersession, erasure, backups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from holdfast.errors import EmbeddingSpaceError, InputError, NotFoundError
from holdfast.store.contract import LexicalQuery, Store
from holdfast.testing.builders import NOON, analyse_default, draft, no_deadline, unit, view
from holdfast.testing.store_vectors import EAST, NEARER, OTHER_SPACE, SPACE, embed, ids, raised, revised_text
from holdfast.types import Analysis, Document, Draft, Gate, Lineage, Unit, View, Written

LATER = NOON + timedelta(minutes=30)


def decision(*, promoted: bool = True) -> Gate:
    """Return a decision of the gate; its numbers are told apart by their last digit."""
    return Gate(promoted, "for a test", *(0.1 + place / 1000 for place in range(12)))


def asking(*terms: str) -> LexicalQuery:
    """Return a lexical query with the contract's weights."""
    return LexicalQuery(terms, (1.5, 1.0, 1.0, 0.8, 0.6, 0.6, 0.5), 1.2, 0.75, frozenset(), 1.3)


def found(store: Store, seen: View, *terms: str) -> set[str]:
    """Return what the store proposes by words, without a time limit."""
    return set(store.lexical_candidates(seen, asking(*terms), 99, no_deadline()).ids)


def turns(store: Store, names: str = "abc", **fields: object) -> list[Unit]:
    """Keep one turn of session s for each letter, and return them as the store has them."""
    texts = {name: f"{name * 4} boat" for name in names}
    store.put([
        draft(name, text, minutes=i, session="s", **{"scope": "session", **fields})
        for i, (name, text) in enumerate(texts.items())
    ])  # fmt: skip
    return [store.units(seen_by(fields), [name])[name] for name in names]


def seen_by(fields: dict[str, object]) -> View:
    """Return the view of whoever owns the units with these fields."""
    return view(str(fields.get("user", "ana")))


def summary(sources: Sequence[Unit], name: str = "sum", text: str = "boats together", **fields: object) -> Draft:
    """Return a summary of `sources`, made half an hour after noon."""
    lineage = Lineage(
        tuple(one.id for one in sources), "extractive", 0.9, 0.1, 0.8, 0.7, sources[0].event_time,
        sources[-1].event_time,
    )  # fmt: skip
    given: dict[str, Any] = {
        "kind": "summary", "session": "s", "scope": "session", "author": "system", "lineage": lineage,
        "user": sources[0].user, "recorded_time": LATER, **fields,
    }  # fmt: skip
    made = unit(name, text, **given)
    return Draft(made, analyse_default, id_given=True, time_given=True)


def covering(store: Store, seen: View, names: Sequence[str]) -> dict[str, str | None]:
    """Return which summary stands for each of `names`."""
    return {name: one.covered_by for name, one in store.units(seen, names).items()}


def all_ids(store: Store, seen: View) -> list[str]:
    """Return everything a view may see, whether or not it is current."""
    return ids(store.scan(view(seen.user, current_only=False), order="oldest", limit=None))


def near(
    store: Store, seen: View, depth: int, kind: Literal["turn", "durable"], itself: str = "", space: str = SPACE
) -> list[float]:
    """Return the cosines of what lies near to the east."""
    return store.similar(seen, space, np.array([EAST]), depth, kind, [itself])[0]


class StoreLifecycleContract(ABC):
    """Each test opens its own store in an empty folder."""

    @abstractmethod
    def open_store(self, place: Path) -> Store:
        """Open or create the store that lives at `place`; twice on one place gives two handles on one store."""

    # ------------------------------------------------------------------------------------------ promotion

    def test_similar_gives_cosines_best_first(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        turns(store)
        embed(store, view(), NEARER)
        exact = sorted((float(row[0] / np.linalg.norm(row)) for row in NEARER.values()), reverse=True)
        assert np.allclose(near(store, view(), 9, "turn"), exact, atol=1e-6)
        assert np.allclose(near(store, view(), 2, "turn"), exact[:2], atol=1e-6)
        assert np.allclose(near(store, view(), 9, "turn", itself="c"), exact[1:], atol=1e-6)
        both = store.similar(view(), SPACE, np.array([EAST, EAST]), 1, "turn", ["c", ""])
        assert np.allclose(both, [[exact[1]], [exact[0]]], atol=1e-6)

    def test_similar_tells_turns_from_durable_units(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one", session="s", scope="session"), draft("b", "two", kind="knowledge")])
        store.put([draft("c", "three", session="s")])  # a durable turn is both
        embed(store, view(), NEARER)
        assert len(near(store, view(), 9, "turn")) == 2
        assert len(near(store, view(), 9, "durable")) == 2

    def test_similar_looks_at_the_owners_own_in_one_space(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one", user="ben"), draft("a", "two", tenant="other")])
        store.put([draft("b", "three", user=None, scope="global"), draft("c", "four", agent="x")])
        embed(store, view("ben"), {"a": EAST})
        embed(store, view("ana", tenant="other"), {"a": EAST})
        embed(store, view(), {"b": EAST, "c": EAST})
        assert len(near(store, view(), 9, "turn")) == 1
        assert near(store, view(agent="y"), 9, "turn") == []
        assert near(store, view(), 9, "turn", space=OTHER_SPACE) == []
        assert near(store, view("eve"), 9, "durable") == []

    def test_a_decision_is_kept_and_promotes_in_its_version(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        one, two, _ = turns(store)
        store.put_gates([(one, decision()), (two, decision(promoted=False))])
        for _ in range(2):
            kept = store.units(view(), ["a", "b", "c"])
            assert kept["a"].gate == decision()
            assert kept["b"].gate == decision(promoted=False)
            assert kept["c"].gate is None
            assert [kept[name].scope for name in "abc"] == ["user", "session", "session"]
            assert [kept[name].version for name in "abc"] == [1, 1, 1]
            assert len(store.history(view(), "a")) == 1
            assert found(store, view(), "aaaa") == {"a"}
            assert store.verify() == []
            store.close()
            store = self.open_store(tmp_path)

    def test_a_decision_about_words_that_changed_waits(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        one, *_ = turns(store)
        store.revise(view(), "a", lambda old: revised_text(old, "other words"))
        store.put_gates([(one, decision())])
        kept = store.units(view(), ["a"])["a"]
        assert (kept.gate, kept.scope, kept.version) == (None, "session", 2)

    def test_decisions_come_with_vectors_or_not_at_all(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        one, two, _ = turns(store)
        assert store.put_vectors(SPACE, [one], EAST[None, :], [(one, decision())]) == 1
        assert store.units(view(), ["a"])["a"].gate == decision()
        refused = lambda: store.put_vectors(OTHER_SPACE, [two], EAST[None, :], [(two, decision())])  # noqa: E731
        assert raised(EmbeddingSpaceError, refused)
        assert store.units(view(), ["b"])["b"].gate is None
        # A promoted unit keeps its vector: nothing that it says has changed.
        assert store.waiting_count(SPACE) == 2
        assert np.allclose(near(store, view(), 9, "durable"), [1.0])

    def test_another_handle_sees_a_decision(self, tmp_path: Path) -> None:
        writer, reader = self.open_store(tmp_path), self.open_store(tmp_path)
        one, *_ = turns(writer)
        assert found(reader, view(), "aaaa") == {"a"}
        writer.put_gates([(one, decision())])
        assert found(reader, view(), "aaaa") == {"a"}
        assert reader.units(view(), ["a"])["a"].scope == "user"
        assert reader.units(view(), ["a"])["a"].gate == decision()

    # ------------------------------------------------------------------------------------------ coverage

    def test_a_summary_stands_for_its_sources(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        sources = turns(store)
        assert store.cover(summary(sources), sources) == Written("sum", "added", 1)
        for _ in range(2):
            assert covering(store, view(), "abc") == dict.fromkeys("abc", "sum")
            assert sorted(all_ids(store, view())) == ["a", "b", "c", "sum"]
            assert found(store, view(), "boat") == {"sum", *"abc"}
            assert found(store, view(hide_covered=True), "boat") == {"sum"}
            assert [one.version for one in store.units(view(), [*"abc"]).values()] == [1, 1, 1]
            assert store.visible(view(hide_covered=True), "a") is not None
            assert store.visible(view(), "a") is None
            store.close()
            store = self.open_store(tmp_path)

    def test_nothing_is_written_when_a_source_is_not_as_it_was_read(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        sources = turns(store, "abcdefgh")
        store.revise(view(), "b", lambda old: revised_text(old, "other words"))
        store.supersede(view(), "c", "d", LATER)
        store.cover(summary(sources[4:6], "earlier"), sources[4:6])
        store.forget(view(), ["g"])
        stranger = unit("z", "nobody has this", session="s", scope="session")
        for at, wrong in enumerate([sources[1], sources[2], sources[4], sources[6], stranger]):
            chosen = [sources[0], wrong, sources[7]]
            assert store.cover(summary(chosen, f"sum{at}"), chosen) is None
        assert store.units(view(), [f"sum{at}" for at in range(5)]) == {}
        assert covering(store, view(), "ah") == {"a": None, "h": None}

    def test_a_summary_of_another_owners_turn_is_not_written(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        own = turns(store, "ab")
        others = turns(store, "c", user="ben")
        made = summary(own, "sum")
        assert store.cover(made, [*own, others[0].evolve(user="ana")]) is None
        assert covering(store, view("ben"), "c") == {"c": None}
        assert covering(store, view(), "ab") == {"a": None, "b": None}

    def test_the_same_turns_again_bring_the_same_summary_back(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        sources = turns(store)
        store.cover(summary(sources), sources)
        store.supersede(view(), "a", "b", LATER)
        assert covering(store, view(), "abc") == dict.fromkeys("abc")
        assert found(store, view(), "togeth") == set()
        store.reinstate(view(), "a", LATER)
        sources = [store.units(view(), [name])[name] for name in "abc"]
        written = store.cover(summary(sources), sources)
        assert written is not None
        assert (written.id, written.status, written.version) == ("sum", "updated", 2)
        assert found(store, view(), "togeth") == {"sum"}
        assert covering(store, view(), "abc") == dict.fromkeys("abc", "sum")

    def test_new_words_or_an_end_withdraw_a_summary(self, tmp_path: Path) -> None:
        changes: tuple[dict[str, Any], ...] = (
            {"text": "x", "claim": "x"},
            {"expires_at": LATER},
            {"valid_to": LATER},
        )
        for number, change in enumerate(changes):
            place = tmp_path / str(number)
            place.mkdir()
            store = self.open_store(place)
            sources = turns(store)
            store.cover(summary(sources), sources)
            store.revise(view(), "b", partial(changed, **change))
            assert covering(store, view(), "abc") == dict.fromkeys("abc"), change
            assert found(store, view(), "togeth") == set(), change
            assert store.units(view(), ["sum"])["sum"].superseded_by is not None, change

    def test_a_change_that_the_summary_does_not_tell_leaves_it(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        sources = turns(store)
        store.cover(summary(sources), sources)
        store.revise(view(), "b", lambda old: changed(old, metadata={"seen": True}))
        assert covering(store, view(), "abc") == dict.fromkeys("abc", "sum")

    def test_the_past_knows_no_later_summary(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        sources = turns(store)
        store.cover(summary(sources), sources)
        before, after = (view(as_of=LATER + timedelta(minutes=step), hide_covered=True) for step in (-1, 1))
        assert found(store, before, "boat") == {"a", "b", "c"}
        assert found(store, after, "boat") == {"sum"}

    # -------------------------------------------------------------------------------------- supersession

    def test_superseding_and_reinstating_is_a_round_trip(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        turns(store)
        before = store.units(view(), [*"abc"])
        store.supersede(view(), "a", "b", LATER)
        assert store.units(view(), ["a"])["a"].superseded_by == "b"
        assert found(store, view(), "boat") == {"b", "c"}
        assert found(store, view(current_only=False), "boat") == {"a", "b", "c"}
        assert found(store, view(as_of=LATER - timedelta(minutes=1)), "boat") == {"a", "b", "c"}
        assert store.reinstate(view(), "a", LATER).superseded_by is None
        assert store.units(view(), [*"abc"]) == before
        assert found(store, view(), "boat") == {"a", "b", "c"}

    def test_circles_and_strangers_are_refused(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        turns(store)
        turns(store, "z", user="ben")
        store.supersede(view(), "a", "b", LATER)
        store.supersede(view(), "b", "c", LATER)
        for old, new in (("b", "a"), ("c", "b"), ("c", "a")):
            assert raised(InputError, lambda old=old, new=new: store.supersede(view(), old, new, LATER))
        for old, new in (("a", "a"), ("a", "z"), ("z", "a"), ("a", "unknown"), ("unknown", "a")):
            assert raised(NotFoundError, lambda old=old, new=new: store.supersede(view(), old, new, LATER))
        assert raised(NotFoundError, lambda: store.reinstate(view(), "z", LATER))
        told = {name: one.superseded_by for name, one in store.units(view(), [*"abc"]).items()}
        assert told == {"a": "b", "b": "c", "c": None}

    def test_an_agent_supersedes_what_it_sees(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        turns(store, "ab", agent="x")
        turns(store, "c", agent="y")
        assert raised(NotFoundError, lambda: store.supersede(view(agent="y"), "a", "c", LATER))
        assert raised(NotFoundError, lambda: store.supersede(view(agent="x"), "c", "a", LATER))
        assert raised(NotFoundError, lambda: store.reinstate(view(agent="y"), "a", LATER))
        store.supersede(view(agent="x"), "a", "b", LATER)
        assert store.units(view(), ["a"])["a"].superseded_by == "b"

    # ------------------------------------------------------------------------------------------- erasure

    def test_a_dry_run_tells_and_changes_nothing(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        sources = turns(store)
        store.cover(summary(sources), sources)
        told = store.forget(view(), ["a"], dry_run=True)
        assert (ids(told.units), ids(told.summaries), told.complete, told.pending) == (["a"], ["sum"], False, False)
        assert sorted(all_ids(store, view())) == ["a", "b", "c", "sum"]
        assert covering(store, view(), "abc") == dict.fromkeys("abc", "sum")
        done = store.forget(view(), ["a"])
        assert (ids(done.units), ids(done.summaries)) == (["a"], ["sum"])

    def test_versions_vectors_and_words_go(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        turns(store)
        embed(store, view(), NEARER)
        store.revise(view(), "a", lambda old: revised_text(old, "second words"))
        done = store.forget(view(), ["a", "a"])
        assert (ids(done.units), done.complete, done.pending) == (["a"], True, False)
        for _ in range(2):
            assert all_ids(store, view()) == ["b", "c"]
            assert store.history(view(), "a") == []
            assert found(store, view(), "boat", "second") == {"b", "c"}
            assert len(store.dense_evidence(view(), SPACE, [*"abc"]).ids) == 2
            assert store.lexical_evidence(view(), ["boat", "second"], []).df == (2, 0)
            assert (store.stats(view()).units, store.stats(view()).versions) == (2, 2)
            assert store.verify() == []
            store.close()
            store = self.open_store(tmp_path)

    def test_an_erased_id_can_be_used_again(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        turns(store)
        embed(store, view(), NEARER)
        store.forget(view(), ["c"])
        [written] = store.put([draft("c", "new words", session="s", scope="session")])
        assert (written.status, written.version) == ("added", 1)
        assert [one.text for one in store.history(view(), "c")] == ["new words"]
        assert store.dense_evidence(view(), SPACE, ["c"]).ids == ()

    def test_summaries_of_summaries_go_too(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        sources = turns(store, "abcd")
        store.cover(summary(sources[:2], "low"), sources[:2])
        low = store.units(view(), ["low"])["low"]
        store.put([summary([low, sources[2]], "high"), summary(sources[2:], "other")])
        done = store.forget(view(), ["a"])
        assert sorted(ids(done.summaries)) == ["high", "low"]
        assert done.uncovered == ("b",)
        assert sorted(all_ids(store, view())) == ["b", "c", "d", "other"]
        assert covering(store, view(), "b") == {"b": None}

    def test_what_is_erased_together_is_not_reported_as_uncovered(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        sources = turns(store)
        store.cover(summary(sources), sources)
        assert store.forget(view(), ["sum", "a", "b"]).uncovered == ("c",)

    def test_erasing_a_summary_alone_gives_its_turns_back(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        sources = turns(store)
        store.cover(summary(sources), sources)
        done = store.forget(view(), ["sum"])
        assert (ids(done.units), ids(done.summaries), sorted(done.uncovered)) == (["sum"], [], ["a", "b", "c"])
        assert found(store, view(hide_covered=True), "boat") == {"a", "b", "c"}

    def test_other_units_no_longer_name_it(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        turns(store)
        store.put([draft("d", "linked", links=("a", "b"), supersedes=("a", "c"))])
        store.revise(view(), "d", lambda old: revised_text(old, "linked again"))
        store.supersede(view(), "b", "a", LATER)
        store.forget(view(), ["a"])
        for one in store.history(view(), "d"):
            assert (one.links, one.supersedes) == (("b",), ("c",))
        kept = store.units(view(), ["b", "c"])
        assert kept["c"].superseded_by == "d"
        # What it superseded stays so, and does not say by what.
        assert kept["b"].superseded_by not in (None, "a")
        assert found(store, view(), "boat") == set()
        assert store.verify() == []

    def test_what_others_own_is_left_alone(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        turns(store, "ab")
        turns(store, "ac", user="ben", links=("b",))
        store.put([draft("a", "boat of the other tenant", tenant="other")])
        turns(store, "x", agent="helper")
        assert raised(NotFoundError, lambda: store.forget(view(), ["a", "c"]))
        assert raised(NotFoundError, lambda: store.forget(view(), ["a", "unknown"]))
        assert raised(NotFoundError, lambda: store.forget(view(agent="else"), ["x"]))
        assert raised(NotFoundError, lambda: store.forget(view(), ["c"], dry_run=True))
        assert sorted(all_ids(store, view())) == ["a", "b", "x"]
        store.forget(view(), ["a", "b"])
        assert sorted(all_ids(store, view("ben"))) == ["a", "c"]
        assert store.units(view("ben"), ["a"])["a"].links == ("b",)
        assert "a" in store.units(view("ana", tenant="other"), ["a"])

    def test_a_document_goes_with_its_units(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        mine, theirs = (Document("local", user, "one.md", b"- a boat") for user in ("ana", "ben"))
        store.put_document(mine)
        store.put_document(theirs)
        turns(store, "a")
        store.forget(view(), ["a"], [mine])
        assert store.documents(view()) == []
        assert store.documents(view("ben")) == [theirs]

    def test_nothing_is_left_to_finish_after_a_complete_erasure(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        assert store.finish_erasing()
        turns(store)
        assert store.forget(view(), ["a"]).complete
        assert store.finish_erasing()
        assert sorted(all_ids(store, view())) == ["b", "c"]

    def test_another_handle_forgets_too(self, tmp_path: Path) -> None:
        writer, reader = self.open_store(tmp_path), self.open_store(tmp_path)
        turns(writer)
        embed(writer, view(), NEARER)
        assert found(reader, view(), "boat") == {"a", "b", "c"}
        writer.forget(view(), ["a"])
        assert found(reader, view(), "boat") == {"b", "c"}
        assert reader.units(view(), ["a"]) == {}
        assert len(near(reader, view(), 9, "turn")) == 2

    # ------------------------------------------------------------------------------- backups, sessions

    def test_a_backup_is_a_whole_store_and_is_reached_by_an_erasure(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        turns(store)
        folder = tmp_path / "copies"
        folder.mkdir()
        assert store.backup(folder / "one.db", NOON) == 3
        turns(store, "d")
        assert store.backup(folder / "two.db", LATER) == 4
        assert raised(InputError, lambda: store.backup(folder / "one.db", LATER))
        assert raised(InputError, lambda: store.backup(folder / "nowhere" / "one.db", LATER))
        assert b"aaaa boat" in (folder / "one.db").read_bytes()
        done = store.forget(view(), ["a"])
        assert (done.complete, done.outside) == (True, ())
        for name in ("one.db", "two.db"):
            assert b"aaaa boat" not in (folder / name).read_bytes()
            assert b"bbbb boat" in (folder / name).read_bytes()

    def test_sessions_are_the_owners_own_in_order(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft(name, "boat", session=name) for name in ("zeta", "alpha", "mid")])
        store.put([draft("loose", "boat"), draft("x", "boat", user="ben", session="secret")])
        store.put([draft("g", "boat", user=None, scope="global", session="everyone")])
        assert store.sessions(view()) == ["alpha", "mid", "zeta"]
        assert store.sessions(view("eve")) == []
        store.forget(view(), ["mid"])
        assert store.sessions(view()) == ["alpha", "zeta"]


def changed(old: Unit, **fields: object) -> tuple[Unit, Analysis]:
    """Return a revision of a unit, recorded half an hour after noon."""
    new = old.evolve(recorded_time=LATER, **fields)
    return new, analyse_default(new)
