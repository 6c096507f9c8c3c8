"""What every store promises about units over time (C17-C19): promotion, coverage, supersession, erasure, backups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import EmbeddingSpaceError, InputError, NotFoundError
from holdfast.store import contract
from holdfast.store.contract import Coverage, Promotion, Reinstatement, SpaceChange, Supersession
from holdfast.store.queries import SimilarityQuery
from holdfast.testing import builders
from holdfast.testing.builders import EAST, LATER, NEARER, NOON, OTHER_SPACE, SPACE, Asker, draft, ids, raises
from holdfast.types import Document, Draft, Gate, Lineage, StoredUnit, Unit, WriteResult


def decide(*, promoted: bool = True) -> Gate:
    """Return a decision of the gate; its numbers are told apart by their last digit."""
    return Gate(promoted, "for a test", *(0.1 + place / 1000 for place in range(12)))


def say(asker: Asker, names: str = "abc", **fields: Any) -> list[Unit]:  # noqa: ANN401 - any field of a unit
    """Keep one turn of session s for each letter, and return them as the store has them."""
    given = {"session": "s", "scope": "session", "user": asker.view.user, **fields}
    asker.put(*(draft(name, f"{name * 4} boat", minutes=i, **given) for i, name in enumerate(names)))
    return [*asker.units(*names).values()]


def sum_up(sources: Sequence[Unit], name: str = "sum") -> Draft:
    """Return a summary of `sources`, made half an hour after noon."""
    ends = (sources[0].event_time, sources[-1].event_time)
    lineage = Lineage(tuple(ids(sources)), "extractive", 0.9, 0.1, 0.8, 0.7, *ends)
    return draft(
        name, "boats together", kind="summary", session="s", scope="session", author="system", lineage=lineage,
        user=sources[0].user, recorded_time=LATER,
    )  # fmt: skip


def cover(asker: Asker, sources: Sequence[Unit], name: str = "sum") -> WriteResult | None:
    """Let a summary stand for its sources."""
    return asker.apply(Coverage(sum_up(sources, name), tuple(sources)))[0]


def covering(asker: Asker, names: str) -> set[str | None]:
    """Return which summaries stand for the turns `names`."""
    assert asker.column("covered_by", *names) == [one.covered_by for one in asker.units(*names).values()]
    return {one.covered_by for one in asker.units(*names).values()}


def _write_again(one: Document | StoredUnit) -> contract.Update:
    return contract.DocumentChange(one) if isinstance(one, Document) else contract.Restoration(one)


def _fate(one: Document | StoredUnit) -> tuple[object, ...]:
    """Return what became of a unit, which no comparison of units looks at."""
    if isinstance(one, Document):
        return ()
    unit = one.unit
    return unit.superseded_by, unit.superseded_why, unit.covered_by, unit.gate, unit.access_count


class StoreLifecycleContract(builders.StoreSuite):
    """Each test opens its own store in an empty folder."""

    # ---------------------------------------------------------------------------------- marks, promotion

    def test_marks_are_written_together_or_not_at_all(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        one, two, three = say(ana)
        good: tuple[contract.Update, ...] = (
            Promotion(one, decide()), Coverage(sum_up([two, three]), (two, three)), contract.Access(ana.view, ("a",)),
            Supersession(ana.view, "a", "b", LATER), SpaceChange(SPACE),
        )  # fmt: skip
        assert raises(NotFoundError, ana.apply, *good, Reinstatement(ana.view, "unknown", LATER))
        for asker in (ana, self.open(tmp_path)):
            assert [*asker.units(*"abc").values()] == [one, two, three]
            assert (asker.scan(), asker.column("access_count", "a"), asker.store.space()) == ([*"abc"], [0], None)
        given = (OTHER_SPACE, [two], EAST[None, :], [Promotion(two, decide())])
        ana.apply(SpaceChange(SPACE))
        assert raises(EmbeddingSpaceError, ana.store.put_vectors, *given)
        assert ana.store.put_vectors(SPACE, [three], EAST[None, :], [Promotion(three, decide())]) == 1
        assert [one.gate for one in ana.units("b", "c").values()] == [None, decide()]
        # A promoted unit keeps its vector: nothing that it says has changed.
        asked = SimilarityQuery(SPACE, EAST[None, :], turns=9, durable=9)
        near = ana.look(lambda reading: reading.evidence(asked, [""]))
        assert (ids(ana.store.pending(SPACE, 9)), np.round(near.durable, 6).tolist()) == (["a", "b"], [[1.0]])
        assert ana.apply(*good) == [None, WriteResult("sum", "added", 1), None, None, None]
        assert (ana.units("a")["a"].superseded_by, ana.store.space()) == ("b", SPACE)

    def test_a_decision_is_kept_and_promotes_in_its_version(self, tmp_path: Path) -> None:
        ana, reader = self.open(tmp_path), self.open(tmp_path)
        one, two, three = say(ana)
        assert reader.find("aaaa") == {"a"}
        ana.apply(Promotion(one, decide()), Promotion(two, decide(promoted=False)))
        for asker in (ana, reader, self.open(tmp_path)):
            kept = [*asker.units(*"abc").values()]
            assert [one.gate for one in kept] == [decide(), decide(promoted=False), None]
            assert [one.scope for one in kept] == ["user", "session", "session"]
            assert ([one.version for one in kept], len(asker.history("a"))) == ([1, 1, 1], 1)
            assert (asker.find("aaaa"), asker.store.verify()) == ({"a"}, [])
        ana.revise("c", text="other words")
        ana.apply(Promotion(three, decide()))  # words that changed wait for another decision
        assert [(one.gate, one.version) for one in ana.units("c").values()] == [(None, 2)]

    def test_a_state_has_a_mark_that_every_change_changes(self, tmp_path: Path) -> None:
        ana, reader = self.open(tmp_path), self.open(tmp_path)
        everyone = ana.by(user="ben")
        changes: list[Callable[[], object]] = [
            lambda: say(ana, "abcd"), lambda: ana.revise("a", text="other words"),
            lambda: ana.apply(Supersession(ana.view, "a", "b", LATER)),
            lambda: ana.apply(Reinstatement(ana.view, "a", LATER)), lambda: ana.apply(SpaceChange(SPACE)),
            lambda: ana.embed({"a": EAST}), lambda: ana.embed({"b": EAST}),
            lambda: cover(ana, [*ana.units("c", "d").values()]),
            lambda: everyone.put(draft("all", "boats for all", user=None, scope="global")),
            lambda: ana.store.forget(ana.view, ["b"]), lambda: say(ana, "b"),
            lambda: ana.store.forget(ana.view, [*"abcd"], owner=True),
        ]  # fmt: skip
        marks = [reader.look(lambda reading: reading.mark())]
        for change in changes:
            assert reader.look(lambda reading: reading.mark()) == marks[-1]
            change()
            marks.append(reader.look(lambda reading: reading.mark()))
        assert all(before != after for before, after in pairwise(marks))
        assert ana.look(lambda reading: reading.mark()) == marks[-1]

    # -------------------------------------------------------------------------- coverage, supersession

    def test_a_summary_stands_for_its_sources(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        assert cover(ana, say(ana)) == WriteResult("sum", "added", 1)
        for asker in (ana, self.open(tmp_path)):
            assert (covering(asker, "abc"), asker.scan()) == ({"sum"}, ["a", "sum", "b", "c"])
            assert [one.version for one in asker.units(*"abc").values()] == [1, 1, 1]
            hiding = asker.by(hide_covered=True)
            assert (asker.find("boat"), hiding.find("boat")) == ({"sum", *"abc"}, {"sum"})
            assert (asker.column("hidden", "a")[0] is None, hiding.column("hidden", "a")[0] is None) == (True, False)
            assert np.isnan(asker.column("decay_rate", "a", "sum")).tolist() == [True, False]
            assert len({*asker.column("starts", "a", "sum")}) == len({*asker.column("ends", "c", "sum")}) == 1
        # The past knows no later summary.
        before, after = (ana.by(as_of=LATER + timedelta(minutes=by), hide_covered=True) for by in (-1, 1))
        assert (before.find("boat"), after.find("boat")) == ({"a", "b", "c"}, {"sum"})

    def test_nothing_is_written_when_a_source_is_not_as_it_was_read(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        sources, [theirs] = say(ana, "abcdefgh"), say(ana.by("ben"), "z")
        ana.revise("b", text="other words")
        ana.apply(Supersession(ana.view, "c", "d", LATER))
        cover(ana, sources[4:6], "earlier")
        ana.store.forget(ana.view, ["g"])
        stranger = builders.unit("nobody", "nobody has this", session="s", scope="session")
        wrong = (sources[1], sources[2], sources[4], sources[6], stranger, theirs.evolve(user="ana"))
        for number, one in enumerate(wrong):
            assert cover(ana, [sources[0], one, sources[7]], f"sum{number}") is None, number
        assert ana.units(*(f"sum{number}" for number in range(len(wrong)))) == {}
        assert covering(ana, "ah") == covering(ana.by("ben"), "z") == {None}

    def test_the_same_turns_again_bring_the_same_summary_back(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        cover(ana, say(ana))
        ana.apply(Supersession(ana.view, "a", "b", LATER))
        assert (covering(ana, "abc"), ana.find("togeth")) == ({None}, set())
        assert raises(InputError, ana.apply, Reinstatement(ana.view, "sum", LATER))
        ana.apply(Reinstatement(ana.view, "a", LATER))
        assert cover(ana, [*ana.units(*"abc").values()]) == WriteResult("sum", "updated", 2)
        assert (covering(ana, "abc"), ana.find("togeth")) == ({"sum"}, {"sum"})

    def test_new_words_or_an_end_withdraw_a_summary_and_nothing_else_does(self, tmp_path: Path) -> None:
        withdrawing: list[dict[str, Any]] = [{"text": "x"}, {"expires_at": LATER}, {"valid_to": LATER}]
        for number, change in enumerate([*withdrawing, {"metadata": {"n": 1}}]):
            (tmp_path / str(number)).mkdir()
            ana, stays = self.open(tmp_path / str(number)), "metadata" in change
            cover(ana, say(ana))
            ana.revise("b", recorded_time=LATER, **change)
            assert covering(ana, "abc") == {"sum" if stays else None}, change
            assert ana.find("togeth") == ({"sum"} if stays else set()), change
            assert (ana.units("sum")["sum"].superseded_by is None) == stays, change

    def test_superseding_is_undone_by_reinstating_and_circles_and_strangers_are_refused(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        say(ana)
        before, all_three = ana.units(*"abc"), {"a", "b", "c"}
        ana.apply(Supersession(ana.view, "a", "b", LATER))
        assert (ana.units("a")["a"].superseded_by, ana.find("boat")) == ("b", {"b", "c"})
        assert ana.by(current_only=False).find("boat") == all_three
        assert ana.by(as_of=LATER - timedelta(minutes=1)).find("boat") == all_three
        ana.apply(Reinstatement(ana.view, "a", LATER))
        assert (ana.units(*"abc"), ana.find("boat")) == (before, all_three)
        say(ana.by("ben"), "z")
        say(ana, "x", agent="x")
        ana.apply(*(Supersession(ana.view, old, new, LATER) for old, new in ("ab", "bc")))
        for old, new in ("ba", "cb", "ca"):
            assert raises(InputError, ana.apply, Supersession(ana.view, old, new, LATER))
        for old, new in ("aa", "az", "za", "a?", "?a"):
            assert raises(NotFoundError, ana.apply, Supersession(ana.view, old, new, LATER))
        agent = ana.by(agent="y").view
        for mark in (Supersession(agent, "x", "c", LATER), Supersession(agent, "c", "x", LATER)):
            assert raises(NotFoundError, ana.apply, mark)
        for mine, name in ((ana.view, "z"), (agent, "x")):
            assert raises(NotFoundError, ana.apply, Reinstatement(mine, name, LATER))
        assert [one.superseded_by for one in ana.units(*"abcx").values()] == ["b", "c", None, None]

    # ------------------------------------------------------------------------------- erasure and backups

    def test_versions_vectors_and_words_go_and_the_id_is_free(self, tmp_path: Path) -> None:
        ana, reader = self.open(tmp_path), self.open(tmp_path)
        say(ana)
        ana.embed(NEARER)
        ana.revise("a", text="second words")
        assert (reader.find("boat", "second"), ana.store.finish_erasing()) == ({"a", "b", "c"}, True)
        done = ana.store.forget(ana.view, ["a", "a"])
        assert (ids(done.units), done.complete, done.pending) == (["a"], True, False)
        for asker in (ana, reader, self.open(tmp_path)):
            assert (asker.scan(), asker.history("a"), asker.units("a")) == (["b", "c"], [], {})
            assert asker.find("boat", "second") == asker.near() == {*asker.vectors(*"abc")} == {"b", "c"}
            assert asker.count(["boat", "second"]).df == (2, 0)
            assert (asker.store.stats(asker.view).units, asker.store.stats(asker.view).versions) == (2, 2)
            assert (asker.store.verify(), asker.store.finish_erasing()) == ([], True)
        assert ana.put(draft("a", "new words")) == [WriteResult("a", "added", 1)]
        assert ([one.text for one in ana.history("a")], ana.vectors("a")) == (["new words"], {})

    def test_summaries_go_with_what_they_rest_on_and_a_dry_run_says_so(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        a, b, c, d = say(ana, "abcd")
        cover(ana, [a, b], "low")
        ana.put(sum_up([ana.units("low")["low"], c], "high"), sum_up([c, d], "other"))
        before = ana.units(*ana.scan())
        told = ana.store.forget(ana.view, ["a"], dry_run=True)  # tells, and changes nothing
        assert (ids(told.units), sorted(ids(told.summaries))) == (["a"], ["high", "low"])
        assert (told.complete, told.pending, ana.units(*ana.scan())) == (False, False, before)
        done = ana.store.forget(ana.view, ["a"])
        assert (sorted(ids(done.summaries)), done.uncovered) == (["high", "low"], ("b",))
        assert (sorted(ana.scan()), covering(ana, "b")) == (["b", "c", "d", "other"], {None})
        cover(ana, [b, c])
        done = ana.store.forget(ana.view, ["sum"])
        assert (ids(done.units), ids(done.summaries), sorted(done.uncovered)) == (["sum"], [], ["b", "c"])
        cover(ana, [b, c, d])
        # What is erased together is not reported as uncovered.
        assert ana.store.forget(ana.view, ["sum", "b", "c"]).uncovered == ("d",)
        assert ana.by(hide_covered=True).find("boat") == {"d"}

    def test_other_units_no_longer_name_it(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        say(ana)
        ana.put(draft("d", "linked", links=("a", "b"), supersedes=("a", "c")))
        ana.revise("d", text="linked again")
        ana.apply(Supersession(ana.view, "b", "a", LATER))
        ana.store.forget(ana.view, ["a"])
        assert [(one.links, one.supersedes) for one in ana.history("d")] == [(("b",), ("c",))] * 2
        kept = ana.units("b", "c")
        # What it superseded stays so, and does not say by what.
        assert (kept["c"].superseded_by, kept["b"].superseded_by in (None, "a")) == ("d", False)
        assert (ana.find("boat"), ana.store.verify()) == (set(), [])

    def test_what_others_own_is_left_alone(self, tmp_path: Path) -> None:
        ben = (ana := self.open(tmp_path)).by("ben")
        say(ana, "ab")
        say(ana, "x", agent="helper")
        say(ben, "ac", links=("b",))
        ana.put(draft("a", "boat of the other tenant", tenant="other"))
        mine, theirs = (Document("local", user, "one.md", b"- a boat") for user in ("ana", "ben"))
        ana.apply(contract.DocumentChange(mine))
        ana.apply(contract.DocumentChange(theirs))
        for asker, names in ((ana, "ac"), (ana, "a?"), (ana, "c"), (ana.by(agent="y"), "x")):
            for dry in (True, False):
                assert raises(NotFoundError, ana.store.forget, asker.view, [*names], dry_run=dry)
        assert ana.scan() == ["a", "x", "b"]
        ana.store.forget(ana.view, ["a", "b"], [mine])
        assert (ben.scan(), ben.units("a")["a"].links) == (["a", "c"], ("b",))
        assert ana.by(tenant="other").scan() == ["a"]
        assert ana.look(lambda reading: reading.documents()) == []
        assert ben.look(lambda reading: reading.documents()) == [theirs]

    def test_all_that_is_kept_can_be_written_to_another_store_and_is_the_same_there(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        ana, two = self.open(tmp_path / "one"), self.open(tmp_path / "two")
        say(ana, "abcde")
        ana.embed_all()
        ana.revise("e", text="eels", recorded_time=LATER)
        ana.embed({"e": NEARER["b"]})
        ana.apply(Promotion(ana.units("a")["a"], decide()), contract.Access(ana.view, ("b", "b2")))
        cover(ana, [*ana.units("a", "b").values()])
        ana.apply(Supersession(ana.view, "c", "d", LATER, "seen"), Supersession(ana.view, "e", "d", LATER))
        ana.apply(Reinstatement(ana.view, "e", LATER + timedelta(minutes=9)))
        ana.put(draft("gone", "expired", expires_at=NOON), draft("b1", "theirs", user="ben", pinned=True))
        ana.put(draft("all", "shared", user=None, scope="global"), draft("x", "y", tenant="other"))
        for user in ("ana", None):
            ana.apply(contract.DocumentChange(Document("local", user, "one.md", b"- a boat", "/path")))
        kept = ana.look(lambda reading: [*reading.stored(whole=True)])
        told = [one.name if isinstance(one, Document) else one.unit.id for one in kept]
        assert told == ["one.md", "one.md", *"abcde", "sum", "gone", "b1", "all"]
        units = [one for one in kept if isinstance(one, StoredUnit)]
        own = ana.look(lambda reading: [*reading.stored()])
        assert own[1:] == [one for one in units if one.unit.user == "ana"]
        session = ana.by(session="s").look(lambda reading: [*reading.stored()])
        assert session == [one for one in units if one.unit.session == "s"]
        for again in (False, True):
            marks = (_write_again(one) for one in kept)
            statuses = [one.status for one in two.apply(*marks) if one is not None]
            assert statuses == ["duplicate" if again else "added"] * 9
            there = two.look(lambda reading: [*reading.stored(whole=True)])
            assert there == kept
            assert [*map(_fate, there)] == [*map(_fate, kept)]
        for asker in (two, two.by("ben"), two.by(as_of=NOON + timedelta(minutes=5)), two.by(current_only=False)):
            same = Asker(ana.store, asker.view)
            assert [asker.scan(), asker.find("boat"), asker.near()] == [same.scan(), same.find("boat"), same.near()]
        assert two.store.verify() == []

    def test_a_unit_that_has_come_further_is_taken_over_and_one_that_went_another_way_is_not(
        self, tmp_path: Path
    ) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        ana, two = self.open(tmp_path / "one"), self.open(tmp_path / "two")
        say(ana, "abc")

        def carry() -> list[str | None]:
            kept = ana.look(lambda reading: [*reading.stored()])
            return [None if one is None else one.status for one in two.apply(*map(_write_again, kept))]

        assert carry() == ["added"] * 3
        ana.revise("a", text="apples")
        ana.apply(Supersession(ana.view, "b", "c", LATER), Promotion(ana.units("c")["c"], decide()))
        two.apply(contract.Access(two.view, ("a",)))
        assert carry() == ["updated"] * 3
        assert (two.units("a")["a"].text, two.column("access_count", "a")) == ("apples", [1])
        assert (two.scan(), [one.scope for one in two.units("c").values()]) == (["a", "c"], ["user"])
        two.revise("a", text="ahead of it")
        two.apply(Reinstatement(two.view, "b", LATER))
        assert carry() == ["duplicate", "updated", "duplicate"]
        ana.revise("a", text="another way")
        assert carry() == [None, "duplicate", "duplicate"]
        assert two.units("a")["a"].text == "ahead of it"

    def test_a_backup_is_a_whole_store_and_is_reached_by_an_erasure(self, tmp_path: Path) -> None:
        ana, folder = self.open(tmp_path), tmp_path / "copies"
        folder.mkdir()
        say(ana)
        assert ana.store.backup(folder / "one.db", NOON) == 3
        say(ana, "d")
        assert ana.store.backup(folder / "two.db", LATER) == 4
        for place in (folder / "one.db", folder / "nowhere" / "one.db"):
            assert raises(InputError, ana.store.backup, place, LATER)
        assert b"aaaa boat" in (folder / "one.db").read_bytes()
        done = ana.store.forget(ana.view, ["a"])
        assert (done.complete, [one for one in done.outside if str(folder) in one]) == (True, [])
        for name in ("one.db", "two.db"):
            kept = (folder / name).read_bytes()
            assert (b"aaaa boat" in kept, b"bbbb boat" in kept) == (False, True)
