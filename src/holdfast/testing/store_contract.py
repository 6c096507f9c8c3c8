"""What every store promises. Subclass `StoreContract`, say how to open yours, and run it with pytest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import ClosedStoreError, EmbeddingSpaceError, InputError, NotFoundError
from holdfast.kernels import hypervectors as hv
from holdfast.store import contract, queries
from holdfast.store.contract import Reading
from holdfast.store.queries import HYPER_FIELDS, MISSING_FIELD, DenseQuery, HyperQuery, SimilarityEvidence
from holdfast.testing import builders
from holdfast.testing.builders import EAST, LATER, NEARER, NOON, OTHER_SPACE, SPACE, Asker, draft, raises, words
from holdfast.types import FACTS, FIELDS, KINDS, Document, Fact, Lineage, NameCount

NOBODY = (None, None)
# Whoever `check_visible` looks for.
EVERYONE = [f"{name}{number}" for name in ("own", "ben", "other", "all", "agent") for number in range(9)]


class StoreContract(builders.StoreSuite):
    """Each test opens its own store in an empty folder."""

    # -------------------------------------------------------------------------------------------- keeping

    def test_words_and_every_field_come_back_exactly(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        text = '  Grüße, Ana!\r\n\t漢字 \U0001f33f e\u0301 "quoted" \\ {json: [1]} \u202eabc\u202c  '
        full = draft(
            "a", text, kind="knowledge", role="Procedure", topic="tea", condition="if cold",
            utility_acts=("implement",), utility_note="daily", parts=({"type": "text", "n": [1, None]},),
            author="document", speaker="Ana", agent="helper", message_id="m1", bundle_id="b1", valid_from=NOON,
            valid_to=NOON + timedelta(days=1), expires_at=NOON + timedelta(days=2), pinned=True,
            links=("x", "y"), overruled=("standing",),
            fact=Fact("tea", "depends_on", "water", 0.5), authority=0.25, origin="document",
            metadata={"deep": {"list": [1, 2.5, "three", True, None]}},
            lineage=Lineage(("p", "q"), "extractive", 0.9, 0.1, 0.8, 0.7, NOON, NOON + timedelta(minutes=5)),
        )  # fmt: skip
        ana.put(full)
        assert ana.units("a")["a"] == full.unit

    def test_the_same_again_is_a_duplicate_and_new_words_are_a_new_version(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        given = [("blue door", "added", 1), ("blue door", "duplicate", 1), ("green door", "updated", 2)]
        for text, status, version in given:
            [written] = ana.put(draft("a", text))
            assert (written.status, written.version) == (status, version)
        assert ana.revise("a", text="red door") == ana.units("a")["a"]
        told = [(1, "blue door"), (2, "green door"), (3, "red door")]
        assert [(old.version, old.text) for old in ana.history("a")] == told
        assert raises(NotFoundError, ana.revise, "unknown", text="red")
        batch = (draft("b", "first"), draft("c", "second", supersedes=("nobody",)))  # written whole or not at all
        assert raises(NotFoundError, ana.put, *batch)
        assert (ana.scan(), ana.count(["first"]).unit_count) == (["a"], 1)

    def test_a_message_is_told_apart_by_its_order(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)

        def say(*texts: str) -> list[str]:
            drafts = [replace(draft("-", text), id_given=False, naming=f"{text}-{{}}".format) for text in texts]
            return [one.status for one in ana.store.put(drafts, retry_seconds=60)]

        assert [say("yes", "no", "yes"), say("no", "yes", "no")] == [["added"] * 3, ["duplicate"] * 2 + ["added"]]
        assert [say("no"), say("yes")] == [["duplicate"], ["added"]]
        assert [one.text for one in ana.units(*ana.scan()).values()] == ["yes", "no", "yes", "no", "yes"]

    # -------------------------------------------------------------------------------------------- seeing

    def check_visible(self, asker: Asker, expected: set[str]) -> None:
        """Scanning, asking, and searching by words, meaning and association must agree on what a view shows."""
        assert asker.shown(*EVERYONE) == {*asker.scan("newest")} == expected
        for depth in (1, 99):  # all are equally near
            assert asker.find("lamp", depth=depth) == asker.near(depth) == expected
            assert asker.hear("lamp", depth=depth) == expected
        assert {*asker.units(*EVERYONE)} >= expected
        kinds, turns = queries.KindQuery(KINDS), {key for key in expected if asker.units(key)[key].kind == "turn"}
        assert {*asker.propose(kinds, len(expected)).ids} == expected
        assert {*asker.propose(queries.KindQuery(("turn",)), len(turns)).ids} == turns
        assert asker.propose(kinds, len(expected) - 1).ids == ()  # all of them, or none

    def test_owners_and_agents_do_not_see_each_other(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("own1", "lamp"), draft("agent1", "lamp", agent="cook"), draft("ben1", "lamp", user="ben"))
        ana.put(draft("other1", "lamp", tenant="other"), draft("all1", "lamp", user=None, scope="global"))
        ana.embed_all()
        for asker, expected in (
            (ana, {"own1", "agent1", "all1"}),
            (ana.by(agent="cook"), {"own1", "agent1", "all1"}),
            (ana.by(agent="clerk"), {"own1", "all1"}),
            (ana.by("ben"), {"ben1", "all1"}),
            (ana.by(tenant="other"), {"other1"}),
            (ana.by("eve"), {"all1"}),
        ):
            self.check_visible(asker, expected)
            numbers = asker.count(["lamp"], *EVERYONE)
            heard = asker.look(lambda reading: reading.evidence(builders.sounds("lamp"), EVERYONE))
            assert {*numbers.ids} == {*heard.ids} == {*asker.vectors(*EVERYONE)} == expected
            assert numbers.unit_count == heard.unit_count == numbers.df[0] == len(expected)
            assert numbers.field_totals[FIELDS.index("claim")] == len(expected)
            assert {name for name in EVERYONE if asker.history(name)} == {*asker.units(*EVERYONE)} == expected

    def test_equal_ids_are_told_apart_and_a_users_own_hides_a_nearer_global_one(self, tmp_path: Path) -> None:
        ana, near = self.open(tmp_path), {"hall": EAST, "attic": NEARER["b"], "porch": NEARER["b"]}
        ana.put(draft("x", "garden"), draft("x", "cellar", user="ben"), draft("x", "attic", tenant="other"))
        ana.put(draft("x", "hall", user=None, scope="global"), draft("y", "porch", user=None, scope="global"))
        ana.embed_all(lambda one: near.get(one.text, NEARER["a"]))
        others = (ana.by("ben"), "cellar", "y"), (ana.by(tenant="other"), "attic", "x"), (ana.by("eve"), "hall", "x")
        for asker, text, nearest in ((ana, "garden", "y"), *others):
            assert (asker.units("x")["x"].text, asker.near(1), asker.find(text)) == (text, {nearest}, {"x"})
            assert builders.is_along(asker.vectors("x")["x"], near.get(text, NEARER["a"]))
            assert asker.find(*{"garden", "cellar", "attic", "hall"} - {text}) == set()

    def test_a_view_shows_what_counts_for_it(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("own1", "lamp", metadata={"room": "hall", "n": 3}), draft("own2", "lamp", author="assistant"))
        ana.put(draft("own3", "lamp", session="s"), draft("own4", "lamp", session="t"))
        ana.put(draft("own5", "lamp", expires_at=LATER), draft("own6", "lamp", expires_at=LATER, pinned=True))
        ana.put(draft("own7", "lamp", valid_to=LATER), draft("own8", "lamp", valid_from=LATER))
        ana.put(draft("all1", "lamp", metadata={"room": "attic"}))
        ana.put(draft("all2", "lamp", supersedes=("all1",)))
        ana.embed_all()
        now = {"own1", "own2", "own3", "own4", "own6", "own8", "all2"}
        views: tuple[tuple[dict[str, Any], set[str]], ...] = (
            ({}, now),
            ({"session": "s"}, now),
            ({"session": "s", "only_session": True}, {"own3"}),
            ({"session": "unknown", "only_session": True}, set()),
            ({"reference_time": NOON}, now - {"own8"} | {"own7"}),
            ({"current_only": False}, now | {"all1", "own7"}),
            ({"filters": {"room": "hall"}}, {"own1"}),
            ({"filters": {"n": {"gte": 3}}}, {"own1"}),
            ({"filters": {"room": {"ne": "hall"}}}, now - {"own1"}),
            ({"filters": {"or": [{"author": "assistant"}, {"room": {"contains": "al"}}]}}, {"own1", "own2"}),
            ({"filters": {"not": {"room": {"in": ["hall", "attic"]}}, "session": "s"}}, {"own3"}),
            ({"filters": {"n": 2}}, set()),
        )
        for fields, expected in views:
            asker = ana.by(**fields)
            self.check_visible(asker, expected)
            assert asker.count(["lamp"]).df == (10,)  # what is hidden counts in the statistics
        expired, superseded = ana.column("hidden", "own5", "all1")
        assert ("expired" in expired, "superseded by all2" in superseded) == (True, True)

    def test_a_session_is_ordered_by_time_then_position(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "one", session="s", minutes=5), draft("b", "two", session="s", minutes=1))
        ana.put(draft("x", "three", session="t", minutes=3), draft("c", "four", session="s", minutes=1))
        assert [one.position for one in ana.units(*"abxc").values()] == [0, 1, 0, 2]
        assert (ana.scan(), ana.scan("newest", 2)) == (["b", "c", "x", "a"], ["a", "x"])
        assert ana.propose(queries.TimeQuery(NOON, NOON + timedelta(minutes=5)), 2).ids == ("x", "c")
        assert ana.propose(queries.TimeQuery(NOON, NOON + timedelta(minutes=5), "oldest"), 2).ids == ("b", "c")

    def test_neighbours_are_the_visible_turns_around_in_the_same_session(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)

        def beside(asker: Asker, *names: str) -> list[tuple[str | None, str | None]]:
            return [*zip(asker.column("before", *names), asker.column("after", *names), strict=True)]

        ana.put(*(draft(name, name, session="s", minutes=i) for i, name in enumerate("abc")))
        ana.put(draft("x", "x", session="t", minutes=1), draft("lone", "lone"))
        assert beside(ana, "b", "a", "c") == [("a", "c"), (None, "b"), ("b", None)]
        assert [*beside(ana, "x", "lone", "unknown"), *beside(ana.by("ben"), "b")] == [NOBODY] * 4
        ana.put(draft("between", "said in between, told later", session="s", minutes=1))
        assert beside(ana, "b", "c") == [("a", "between"), ("between", None)]
        ana.put(draft("new", "c, put differently", session="t", supersedes=("c",)))
        assert [*beside(ana, "between"), *beside(ana.by(current_only=False), "between")] == [("b", None), ("b", "c")]
        ana.revise("b", text="b again")
        assert beside(ana, "a", "b") == [(None, "b"), ("a", "between")]

    def test_speakers_sessions_and_facts_are_those_the_owner_may_see(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        given = (("zeta", "Tomas"), ("alpha", "Mara"), ("mid", None))
        ana.put(*(draft(session, "boat", session=session, speaker=who or "") for session, who in given))
        ana.put(draft("loose", "boat"), draft("x", "boat", user="ben", session="secret", speaker="Ben"))
        ana.put(draft("g", "boat", user=None, scope="global", session="everyone"))
        assert ana.look(lambda reading: reading.names("speaker")) == ("Mara", "Tomas")
        assert [one.name for one in ana.look(lambda reading: reading.names("session"))] == ["alpha", "mid", "zeta"]
        assert ana.by("eve").look(lambda reading: reading.names("session")) == ()
        fact = Fact("tea", "depends_on", "water", 0.5)
        ana.put(draft("a", "one", fact=fact, metadata={"n": 1}), draft("b", "two", fact=fact, user="ben"))
        for asker, sources in ((ana, [("a",)]), (ana.by(filters={"n": 2}), []), (ana.by("eve"), [])):
            found = asker.look(lambda reading: reading.facts().about(["tea"], 9))
            assert [one.sources for one in found] == sources
            assert [*asker.propose(queries.StatementQuery(FACTS)).ids] == [name for one in sources for name in one]

    def test_lists_say_what_there_is_newest_first_and_nothing_of_others(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "  tea\n or coffee?", session="s", minutes=1, metadata={"conversation": 3}))
        called = {"conversation": " Tea\nplans "}
        ana.put(draft("c", "later", session="t", minutes=20, agent="cook", metadata=called))
        ana.put(draft("b", "tea", session="s", minutes=9), draft("x", "y", user="ben", agent="clerk"))
        ana.put(draft("o", "elsewhere", user="eve", tenant="other"), draft("g", "shared", user=None, scope="global"))
        for document in (Document("local", "ana", "D", b"- a"), Document("local", None, "C", b"- b", core=False)):
            ana.apply(contract.DocumentChange(document))
        ended = draft("C#2", "ended", user=None, scope="global", expires_at=NOON)
        for one in (draft("C#1", "now", user=None, scope="global", minutes=3), ended):
            ana.put(replace(one, document="C"))

        def names(asker: Asker, kind: contract.ListedKind, limit: int | None = None) -> tuple[NameCount, ...]:
            return asker.look(lambda reading: reading.names(kind, limit))

        def at(minutes: int) -> datetime:
            return NOON + timedelta(minutes=minutes)

        session = NameCount("s", 2, at(1), at(9), "tea or coffee?")
        assert names(ana, "session") == (NameCount("t", 1, at(20), at(20), "Tea plans"), session)
        assert names(ana, "session", 1) == names(ana, "session")[:1]
        assert names(ana, "agent") == (NameCount("cook", 1, at(20), at(20)),)
        documents = (NameCount("C", 1, at(3), at(3), everyones=True), NameCount("D", 0, None, None, core=True))
        assert names(ana, "document") == documents
        assert names(ana.by("ben"), "document") == documents[:1]
        users = (NameCount("ana", 3, at(1), at(20)), NameCount("ben", 1, at(0), at(0)))
        assert (names(ana, "user"), names(ana.by("ben"), "user")) == (users, users[::-1])
        assert (names(ana.by("nobody"), "user", 1), names(ana.by("nobody"), "session")) == (users[:1], ())

    def test_a_name_leads_to_visible_units_that_are_called_so_or_say_it(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("mill", "it burned down", topic="Lower Mill (inn)"), draft("a", "We met at the Lower Mill"))
        ana.put(draft("b", "the Lower Mill is full"), draft("c", "a mill on the lower river"))
        ana.put(draft("theirs", "the Lower Mill", user="ben"))
        keys = ("lower mill", "kestrel quay", "lower mill inn")
        called = {"lower mill": ("mill",), "lower mill inn": ("mill",)}
        assert _lead(ana, *keys, most=1, mentioned=False) == called
        assert _lead(ana, *keys, most=3) == called | {"lower mill": ("a", "b", "mill")}
        assert _lead(ana, "lower mill", most=2) == _lead(ana, *keys, most=0, mentioned=False) == {}
        assert _lead(ana.by("eve"), *keys) == _lead(ana.by("ben"), *keys, mentioned=False) == {}
        ana.put(draft("d", "We met at Kestrel Quay", metadata={"n": 1}), draft("e", "to Kestrel Quay by boat"))
        ana.put(draft("d", "a shared note", user=None, scope="global", topic="Kestrel Quay"))
        assert _lead(ana, "kestrel quay", mentioned=False) == {}
        assert _lead(ana, "kestrel quay") == {"kestrel quay": ("d", "e")}
        seen = ana.by(filters={"n": 1})
        assert (_lead(seen, "kestrel quay"), _lead(seen, "kestrel quay", most=2)) == ({"kestrel quay": ("d",)}, {})
        ana.revise("e", text="to Upper Mill by boat")
        assert _lead(ana, "kestrel quay", "upper mill") == {"kestrel quay": ("d",), "upper mill": ("e",)}
        ana.put(draft("f", "to Nether Mill, after all", supersedes=("e",)))
        assert _lead(ana, "upper mill") == {}

    def test_access_is_counted_apart_from_everything_else(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "one"), draft("b", "two"), draft("c", "three", user="ben"))
        ana.put(draft("g", "four", user=None, scope="global"))
        before, ben = ana.units("a", "g"), ana.by("ben")
        given = ((ana, ("a", "c", "unknown")), (ana, ("a", "b")), (ben, ("g",)))
        ana.apply(*(contract.Access(asker.view, names) for asker, names in given))
        assert ana.column("access_count", "a", "b", "c", "g") == [2, 1, 0, 0]
        assert (ana.column("most_accessed", "b"), ana.column("most_accessed", "a", "c")) == ([2], [1, 1])  # of others
        assert ben.column("access_count", "c", "g") == [0, 0]  # nobody learns what is read of everyone's units
        assert (ana.units("a", "g"), len(ana.history("a"))) == (before, 1)

    def test_columns_have_a_row_for_each_id_and_nothing_of_others(self, tmp_path: Path) -> None:
        ana, dated = self.open(tmp_path), "on 2026-03-04, 2026-03-05 and 2026-03-06"
        ana.put(draft("a", dated, speaker="Ana", session="s"), draft("b", "no time", author="assistant"))
        ana.put(draft("b2", "no time", author="assistant"), draft("b", "no time", user="ben", speaker="Ben"))
        names = ("b", "nobody", "a", "b", "b2")
        assert ana.column("anchor_density", *names) == [0.0, 0.0, 1.0, 0.0, 0.0]
        assert ana.column("author", *names) == ["assistant", None, "user", "assistant", "assistant"]
        assert [ana.column(name, "a", "b") for name in ("speaker", "session")] == [["Ana", ""], ["s", None]]
        assert ana.column("length", "a", "b") == [len(dated), len("no time")]
        said = ana.column("said", *names)
        assert (said[0] == said[3] == said[4], said[0] == said[2]) == (True, False)
        assert ana.by("eve").column("speaker", *names) == [None] * 5

    def test_documents_keep_their_order_their_owner_and_their_parts(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        everyones, theirs = Document("local", None, "C", b"- b"), Document("local", "ben", "D", b"- c")
        again = Document("local", "ana", "D", b"- changed", "/somewhere/one.md")
        for document in (Document("local", "ana", "D", b"- a"), everyones, theirs, again):
            ana.apply(contract.DocumentChange(document))
        assert ana.look(lambda reading: reading.documents()) == [again, everyones]
        assert ana.by("ben").look(lambda reading: reading.documents()) == [everyones, theirs]
        named = ana.look(lambda reading: reading.documents(name="C", bodies=False))
        assert [document.name for document in named] == ["C"]
        ana.apply(contract.DocumentRemoval(again))
        assert ana.look(lambda reading: reading.documents()) == [everyones]
        ended = draft("C#3", "ended", expires_at=NOON)
        given = ((draft("C#1", "x"), "C"), (draft("C#a#1", "y"), "C#a"), (draft("C#2", "z"), None), (ended, "C"))
        ana.put(*(replace(one, document=name) for one, name in given))
        assert ana.propose(queries.DocumentQuery("C")).ids == ("C#1", "C#3")
        assert ana.propose(queries.DocumentQuery("C", ended=False)).ids == ("C#1",)
        assert ana.column("document", "C#1", "C#2", "C#a#1") == ["C", None, "C#a"]
        assert raises(InputError, ana.put, draft("C#1", "somebody else's words"))

    def test_words_are_counted_exactly_and_the_best_proposed_with_all_ties(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "red lamp red", topic="lamp"), draft("b", "blue lamp"), draft("tie", "blue lamp"))
        found = ana.count(["red", "lamp", "none"], "b", "a", "nobody")
        claim, topic, row = FIELDS.index("claim"), FIELDS.index("topic"), found.ids.index("a")
        assert sorted(found.ids) == ["a", "b"]
        assert (found.tf[row, claim].tolist(), found.tf[row, topic].tolist()) == ([2, 1, 0], [0, 1, 0])
        assert (found.lengths[row, claim], found.field_totals[claim]) == (3, 7)
        assert (found.unit_count, found.df) == (3, (1, 3, 0))
        assert [ana.find("lamp", depth=depth) for depth in (1, 2)] == [{"a"}, {"a", "b", "tie"}]
        ana.revise("a", text="green chair", topic="")
        assert (ana.find("red"), ana.find("green"), ana.count(["lamp", "red"]).df) == (set(), {"a"}, (2, 0))

    # ----------------------------------------------------------------------------------------- searching

    def test_units_of_every_owner_wait_for_a_vector_and_keep_its_direction(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "one"), draft("b", "two", user="ben"), draft("c", "three", tenant="other"))
        ana.put(draft("g", "four", user=None, scope="global"))
        found, numbers = ana.store.pending(SPACE, 99), np.random.default_rng(7).normal(size=(3, 9)).astype(np.float32)
        assert (sorted(builders.ids(found)), len(ana.store.pending(SPACE, 3))) == (["a", "b", "c", "g"], 3)
        numbers[1, :4] = [np.float32(1e-45), np.float32(-0.0), np.finfo(np.float32).max, np.float32(0.1)]
        assert ana.store.put_vectors(SPACE, found[:3], numbers) == 3
        assert ana.store.pending(SPACE, 99) == found[3:] == ana.store.pending(SPACE, 99, found[1])
        assert ana.store.pending(SPACE, 99, found[3]) == []
        assert ana.store.pending(OTHER_SPACE, 2, found[0]) == found[1:3]
        assert (ana.store.stats(ana.view, whole=True).waiting, _waiting(ana, OTHER_SPACE)) == (1, 4)
        second = self.open(tmp_path)
        for one, row in zip(found, numbers, strict=False):
            askers = (asker.by(one.user or "eve", tenant=one.tenant) for asker in (ana, second))
            kept, again = (asker.vectors("nobody", one.id)[one.id] for asker in askers)
            assert (kept.dtype, kept.tobytes()) == (row.dtype, again.tobytes())
            assert builders.is_along(kept, row)

    def test_a_vector_is_of_present_words_or_left_out(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "blue door"))
        read = ana.store.pending(SPACE, 9)
        ana.revise("a", text="red door")
        assert ana.store.put_vectors(SPACE, read, np.array([EAST])) == 0
        assert (_waiting(ana), ana.near(), ana.vectors("a")) == (1, set(), {})
        ana.embed({"a": EAST})
        ana.embed({"a": NEARER["a"]})  # a vector can be replaced
        ana.put(draft("a", "red door"))  # a duplicate keeps its vector
        assert (_waiting(ana), ana.near(), builders.is_along(ana.vectors("a")["a"], NEARER["a"])) == (0, {"a"}, True)
        ana.put(draft("a", "green door"))
        assert (_waiting(ana), ana.near(), ana.vectors("a")) == (1, set(), {})

    def test_the_first_vector_decides_on_the_space_and_only_its_vectors_are_searched(self, tmp_path: Path) -> None:
        # Both spaces have four dimensions: nothing but their names tells them apart.
        ana, second = self.open(tmp_path), self.open(tmp_path)
        ana.put(*(draft(name, f"word {name}") for name in "abcd"))
        assert ana.store.space() is None
        assert (ana.embed(NEARER), ana.store.space()) == (3, SPACE)
        assert raises(EmbeddingSpaceError, ana.embed, {"d": EAST}, OTHER_SPACE)
        assert (ana.store.space(), _waiting(ana), ana.vectors(*"abcd", space=OTHER_SPACE)) == (SPACE, 1, {})
        assert ana.near() == second.near() == set("abc")
        ana.apply(contract.SpaceChange(OTHER_SPACE))
        assert (_waiting(ana, OTHER_SPACE), self.open(tmp_path).store.space()) == (4, OTHER_SPACE)
        for asker in (ana, second, self.open(tmp_path)):
            assert asker.near() == asker.near(space=OTHER_SPACE) == set()
        ana.apply(contract.SpaceChange(SPACE, if_new=True))  # it was agreed on before: somebody has changed it
        assert second.store.space() == OTHER_SPACE
        ana.embed({"a": EAST}, OTHER_SPACE)
        for asker in (ana, second, self.open(tmp_path)):
            assert {*asker.vectors(*"abc", space=OTHER_SPACE)} == asker.near(space=OTHER_SPACE) == {"a"}
            assert asker.near() == set()
        second.apply(contract.SpaceChange("a third", if_new=True))
        assert ana.store.space() == "a third"
        ana.apply(contract.SpaceChange(SPACE))  # what was not replaced is searched again
        assert ana.near() == second.near() == set("bc")

    def test_the_nearest_are_proposed_with_ties_of_all_or_of_one_tier_or_anchor_density(self, tmp_path: Path) -> None:
        ana, ties, question = self.open(tmp_path), {"tie0", "tie1", "tie2"}, np.zeros(100, dtype=np.float32)
        ana.put(*(draft(name, f"word {name}", user="ben") for name in (*"abc", *ties)))
        ben = ana.by("ben")
        ben.embed(NEARER | dict.fromkeys(ties, NEARER["b"]))
        assert [ben.near(depth) for depth in (1, 2, 99)] == [{"c"}, {"b", "c", *ties}, {"a", "b", "c", *ties}]
        ana.put(draft("early", "we met on 2026-03-14"), draft("late", "we met"))
        early, late, question[0] = question.copy(), question.copy(), 1.0
        early[0], early[80], late[0], late[1] = 1.0, 2.0, 1.0, 1.0
        ana.embed({"early": early, "late": late})
        for tier, expected in ((64, "early"), (100, "late"), (None, "late")):
            assert ana.propose(DenseQuery(SPACE, question, tier), 1).ids == (expected,)
        for name, density in zip(("early", "late"), ana.column("anchor_density", "early", "late"), strict=True):
            assert ana.propose(DenseQuery(SPACE, question, density=density)).ids == (name,)
        assert ana.propose(DenseQuery(SPACE, question, density=1.0)).ids == ()

    def test_a_question_of_similarity_gives_cosines_best_first(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        # A durable turn is both a turn and durable.
        ana.put(draft("a", "one", session="s", scope="session"), draft("c", "two", session="s"))
        ana.put(draft("b", "three", kind="knowledge"), draft("ben", "four", user="ben"))
        ana.put(draft("g", "five", user=None, scope="global"), draft("x", "six", agent="x", session="s"))
        ana.embed_all(lambda one: NEARER.get(one.id, EAST))
        a, b, c = (float(row[0] / np.linalg.norm(row)) for row in NEARER.values())
        clerk = ana.by(agent="clerk")
        for itself, turns, durable in (("", [c, a], [c, b]), ("c", [a], [b]), ("a", [c], [c, b])):
            found = _compare(clerk, itself)
            assert np.allclose(found.turns, [turns], atol=1e-3)
            assert np.allclose(found.durable, [durable], atol=1e-3)
        both = _compare(ana, "x", "c", most=(1, 2))
        assert np.allclose(both.turns, [[c], [1.0]], atol=1e-3)
        assert np.allclose(both.durable, [[c, b], [1.0, b]], atol=1e-3)
        nothing = SimilarityEvidence(((),), ((),))
        assert _compare(ana, "", space=OTHER_SPACE) == _compare(ana.by("eve"), "") == nothing

    def test_association_hears_the_units_own_words_and_measures_how_far_they_are(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        full = {"topic": "lamp", "role": "Definition", "utility_acts": ("define", "describe")}
        ana.put(draft("a", "red lamp", **full), draft("b", "blue door"), draft("p", "red lamp", role="Procedure"))
        text, acts = builders.sounds("red", "lamp").text, hv.bag(["define", "describe"])
        question = HyperQuery(hv.bag(["Definition"]), text, hv.random("define"))
        found = ana.look(lambda reading: reading.evidence(question, ["b", "a", "nobody", "p"]))
        told = zip(found.ids, found.distances.tolist(), strict=True)
        rows = {name: dict(zip(HYPER_FIELDS, row, strict=True)) for name, row in told}
        assert (set(rows), found.unit_count) == ({"a", "b", "p"}, 3)
        assert rows["a"]["claim"] == rows["a"]["role"] == rows["p"]["claim"] == 0
        assert rows["a"]["acts"] == int(hv.hamming(np.array([acts]), hv.random("define"))[0])
        assert rows["a"]["topic"] == int(hv.hamming(np.array([text]), hv.random("lamp"))[0])
        assert rows["b"]["topic"] == rows["b"]["acts"] == MISSING_FIELD
        nothing = ana.look(lambda reading: reading.evidence(HyperQuery(None, None, None), ["a"]))
        assert nothing.distances.tolist() == [[MISSING_FIELD] * len(HYPER_FIELDS)]
        ana.put(draft("c", "blue door", topic="red lamp"))
        assert (ana.hear("red", "lamp"), ana.hear("zeppelin")) == ({"a", "p", "c"}, set())  # noise is not heard
        assert {"a"} <= ana.hear("red", "lamp", depth=1) <= {"a", "p", "c"}
        assert ana.propose(HyperQuery(hv.bag(["Definition"]), None, None)).ids == ()
        ana.revise("a", text="green chair", topic="")
        assert (ana.hear("red", "lamp"), ana.hear("green", "chair")) == ({"p", "c"}, {"a"})

    # ------------------------------------------------------------------------------------------- the past

    def test_the_past_is_what_had_been_recorded_and_not_yet_superseded(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "blue boat"), draft("b", "small harbour"))
        ana.put(draft("c", "red boat", supersedes=("a",), minutes=60))
        ana.revise("b", text="large harbour", recorded_time=NOON + timedelta(hours=2))
        then, between = ana.by(as_of=NOON), ana.by(as_of=NOON + timedelta(minutes=90))
        assert (then.scan(), then.units("b")["b"].text) == (["a", "b"], "small harbour")
        assert [then.find(term) for term in ("small", "larg", "boat")] == [{"b"}, set(), {"a"}]
        assert (between.find("boat"), ana.find("larg")) == ({"c"}, {"b"})
        why = (*then.column("hidden", "a", "c"), *between.column("hidden", "a"))
        assert (why[0], "recorded" in why[1], "superseded" in why[2]) == (None, True, True)
        found = then.count(["boat"], "a")  # statistics are of the present
        assert (found.unit_count, found.df) == (3, (2,))

    def test_what_has_expired_since_is_found_as_of_a_moment_when_it_lived(self, tmp_path: Path) -> None:
        ana, whole = self.open(tmp_path), {"a", "b", "c"}
        ana.put(draft("a", "lamp", expires_at=LATER), draft("b", "lamp"), draft("c", "lamp"))
        for name, minutes, fields in (("b", 10, {"expires_at": LATER}), ("c", 50, {"text": "lamp post"})):
            ana.embed_all()
            ana.revise(name, recorded_time=NOON + timedelta(minutes=minutes), **fields)
        assert ana.find("lamp") == {"c"}
        for minutes, expected in ((0, whole), (20, whole), (40, {"c"}), (55, {"c"})):
            then = ana.by(as_of=NOON + timedelta(minutes=minutes))
            assert then.shown(*whole) == {*then.scan()} == then.find("lamp") == expected, minutes

    def test_the_past_is_found_by_the_vectors_of_its_words(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "blue door"), draft("b", "small window"))
        ana.embed({"a": EAST, "b": NEARER["a"]})
        for minutes, text in ((10, "red door"), (20, "green door")):
            ana.revise("a", text=text, recorded_time=NOON + timedelta(minutes=minutes))
        ana.embed({"a": NEARER["b"]})
        for asker in (ana, self.open(tmp_path)):
            then, between = (asker.by(as_of=NOON + timedelta(minutes=minutes)) for minutes in (5, 15))
            for one, vector, text in ((asker, NEARER["b"], "green door"), (then, EAST, "blue door")):
                assert (one.near(1), builders.is_along(one.vectors("a")["a"], vector)) == ({"a"}, True)
                assert one.units("a")["a"].text == text
            assert between.near() == {*between.vectors("a", "b")} == {"b"}  # those words never had a vector
        ana.store.forget(ana.view, ["a"])
        assert ana.by(as_of=NOON + timedelta(minutes=5)).near() == {"b"}

    # ----------------------------------------------------------------------------------------- operating

    def test_a_reading_is_one_state_while_others_write_and_the_next_one_sees_it(self, tmp_path: Path) -> None:
        ana, other = self.open(tmp_path), self.open(tmp_path)
        ana.put(draft("a", "red lamp", session="s"), draft("b", "red chair", session="s", minutes=1))
        ana.embed({"a": NEARER["a"], "b": NEARER["b"]})
        see = partial(_see_all, names=["a", "b", "c"], terms=["lamp", "red"])
        writes: tuple[Callable[[Asker], object], ...] = (
            lambda one: one.revise("a", text="green lamp"),
            lambda one: one.embed({"a": EAST}),
            lambda one: one.put(draft("c", "red lamp", session="s", minutes=2, supersedes=("b",))),
            lambda one: one.apply(contract.DocumentChange(Document("local", "ana", "one.md", b"- a"))),
            lambda one: one.store.forget(one.view, ["b"]),
        )
        for number, write in enumerate(writes):
            reader, writer = (ana, other) if number % 2 else (other, ana)
            with reader.store.reading(reader.view) as reading:
                before = see(reading)
                write(writer)
                assert see(reading) == before, number
            after = reader.look(see)
            assert (after == writer.look(see), after == before) == (True, False), number

    def test_a_reopened_store_answers_as_before(self, tmp_path: Path) -> None:
        ana, names = self.open(tmp_path), [str(i) for i in range(40)]
        rows = np.random.default_rng(3).normal(size=(40, 4)).astype(np.float32)
        ana.put(*(draft(str(i), f"brick {i % 7} of {'wall ' * (i % 3)}") for i in range(40)))
        ana.embed(dict(zip(names, rows, strict=True)))
        for name in ("3", "5"):
            ana.revise(name, text="a chair of brick")
        ana.embed({"5": rows[6]})
        see = partial(_see_all, names=names, terms=["brick", "wall"])
        before = ana.look(see)
        ana.store.close()
        assert self.open(tmp_path).look(see) == before

    def test_a_spent_deadline_is_reported(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "red lamp"))
        ana.embed({"a": EAST})
        for query in (words("red", "lamp"), DenseQuery(SPACE, EAST), builders.sounds("red", "lamp")):
            late = ana.propose(query, late=True)
            assert late.exhausted or (isinstance(query, HyperQuery) and late.ids == ("a",))
            assert {*late.ids} <= {"a"}

    def test_stats_count_what_is_there_and_a_closed_store_says_so(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "one", session="s", scope="session"), draft("b", "two", minutes=9))
        ana.put(draft("b", "two again", minutes=9), draft("b", "two", user="ben"))
        found, whole = ana.store.stats(ana.view), ana.store.stats(ana.view, whole=True)
        assert (found.units, found.versions, found.sessions) == (2, 3, 1)
        assert (found.earliest, found.latest) == (NOON, NOON + timedelta(minutes=9))
        assert found.by_scope == {"session": 1, "user": 1}
        # The size of the whole store is told to who asks.
        assert (found.store_units, found.store_bytes, found.waiting) == (None, None, None)
        assert (whole.store_units, whole.waiting, (whole.store_bytes or 0) > 0) == (3, 3, True)
        assert ana.store.verify() == []
        ana.store.close()
        ana.store.close()
        assert raises(ClosedStoreError, ana.units, "a")
        assert raises(ClosedStoreError, ana.put, draft("a", "one"))


def _lead(asker: Asker, *keys: str, most: int = 9, mentioned: bool = True) -> dict[str, tuple[str, ...]]:
    return asker.look(lambda reading: reading.find_names(keys, most, mentioned=mentioned))


def _waiting(asker: Asker, space: str = SPACE) -> int:
    return len(asker.store.pending(space, 99))


def _compare(asker: Asker, *itself: str, most: tuple[int, int] = (9, 9), space: str = SPACE) -> SimilarityEvidence:
    asked = queries.SimilarityQuery(space, np.array([EAST] * len(itself)), *most)
    return asker.look(lambda reading: reading.evidence(asked, itself))


def _see_all(reading: Reading, names: Sequence[str], terms: Sequence[str]) -> list[object]:
    """Return whatever a reading has to say."""
    asked = (words(*terms), DenseQuery(SPACE, EAST), builders.sounds(*terms))
    proposed = [{*reading.propose(one, depth, builders.no_deadline()).ids} for one in asked for depth in (1, 3, 10)]
    counted, near = reading.evidence(words(*terms), names), reading.evidence(DenseQuery(SPACE, EAST), names)
    known = reading.columns(names, ("hidden", "after", "length"))
    return [
        *proposed, counted.ids, counted.tf.tolist(), counted.df, counted.unit_count, counted.field_totals, near.ids,
        near.vectors.tolist(), {name: known[name].tolist() for name in known}, reading.units(names),
        [*reading.scan(order="oldest", limit=None)], [reading.history(name) for name in names],
        reading.names("session"), reading.documents(),
    ]  # fmt: skip
