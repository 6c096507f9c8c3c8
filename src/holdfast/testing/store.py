"""What every store promises. Subclass `StoreContract`, say how to open yours, and run it with pytest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from holdfast.errors import ClosedStoreError, InputError, NotFoundError
from holdfast.store.contract import Access, DocumentQuery, DocumentRemoval, Reading, TimeQuery
from holdfast.store.filters import parse_filter
from holdfast.testing.builders import (
    LATER,
    NOON,
    Asker,
    draft,
    draft_of,
    expired_deadline,
    raises,
    sounds,
    unit,
    words,
)
from holdfast.testing.store_vectors import StoreVectorContract
from holdfast.types import FIELDS, CoreDocument, Fact, Lineage

NOBODY = (None, None)


class StoreContract(StoreVectorContract):
    """Each test opens its own store in an empty folder."""

    # -------------------------------------------------------------------------------------------- keeping

    def test_words_and_every_field_come_back_exactly(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        text = '  Grüße, Ana!\r\n\t漢字 \U0001f33f e\u0301 "quoted" \\ {json: [1]} \u202eabc\u202c  '
        full = unit(
            "a", "Boil the water first", kind="knowledge", role="Procedure", topic="tea", condition="if cold",
            utility_acts=("implement",), utility_note="daily", parts=({"type": "text", "n": [1, None]},),
            author="document", speaker="Ana", agent="helper", message_id="m1", bundle_id="b1", valid_from=NOON,
            valid_to=NOON + timedelta(days=1), expires_at=NOON + timedelta(days=2), pinned=True, links=("x", "y"),
            fact=Fact("tea", "depends_on", "water", 0.5), authority=0.25, origin="document",
            metadata={"deep": {"list": [1, 2.5, "three", True, None]}},
            lineage=Lineage(("p", "q"), "extractive", 0.9, 0.1, 0.8, 0.7, NOON, NOON + timedelta(minutes=5)),
        )  # fmt: skip
        ana.put(draft_of(full), draft("b", text))
        kept = ana.units("a", "b")
        assert (kept["a"], kept["b"].text) == (full, text)

    def test_a_batch_is_written_whole_or_not_at_all(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        assert raises(NotFoundError, ana.put, draft("a", "first"), draft("b", "second", supersedes=("nobody",)))
        assert (ana.units("a", "b"), ana.count(["first"]).unit_count) == ({}, 0)

    def test_the_same_again_is_a_duplicate_and_new_words_are_a_new_version(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        given = [("blue door", "added", 1), ("blue door", "duplicate", 1), ("green door", "updated", 2)]
        for text, status, version in given:
            [written] = ana.put(draft("a", text))
            assert (written.status, written.version) == (status, version)
        revised = ana.revise("a", text="red door")
        assert (revised.text, revised.version) == ("red door", 3)
        told = [(1, "blue door"), (2, "green door"), (3, "red door")]
        assert [(old.version, old.text) for old in ana.history("a")] == told
        assert raises(NotFoundError, ana.revise, "unknown", text="red")

    def test_a_message_is_told_apart_by_its_order(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)

        def say(*texts: str) -> list[str]:
            drafts = [replace(draft("-", text), id_given=False, naming=partial(_number, text)) for text in texts]
            return [one.status for one in ana.store.put(drafts, retry_seconds=60)]

        assert say("yes", "no", "yes") == ["added"] * 3
        assert say("no", "yes", "no") == ["duplicate", "duplicate", "added"]
        assert say("no") == ["duplicate"]
        assert say("yes") == ["added"]
        assert [one.text for one in ana.units(*ana.scan()).values()] == ["yes", "no", "yes", "no", "yes"]

    # -------------------------------------------------------------------------------------------- seeing

    def check_visible(self, asker: Asker, expected: set[str]) -> None:
        """Scanning, asking, and searching by words, meaning and association must agree on what a view shows."""
        everyone = [f"{name}{number}" for name in ("own", "ben", "other", "all", "agent") for number in range(9)]
        shown = [why is None for why in asker.column("hidden", *everyone)]
        assert {name for name, yes in zip(everyone, shown, strict=True) if yes} == expected
        assert {*asker.scan("newest")} == expected
        for depth in (1, 99):  # all are equally near
            assert asker.find("lamp", depth=depth) == asker.near(depth) == expected
            assert asker.hear("lamp", depth=depth) == expected
        assert {*asker.units(*everyone)} >= expected

    def test_owners_and_agents_do_not_see_each_other(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        everyone = ("own1", "agent1", "ben1", "other1", "all1")
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
            numbers = asker.count(["lamp"], *everyone)
            heard = asker.look(lambda reading: reading.evidence(sounds("lamp"), everyone))
            assert {*numbers.ids} == {*heard.ids} == {*asker.vectors(*everyone)} == expected
            assert numbers.unit_count == heard.unit_count == numbers.df[0] == len(expected)
            assert numbers.field_totals[FIELDS.index("claim")] == len(expected)
            assert {name for name in everyone if asker.history(name)} == {*asker.units(*everyone)} == expected

    def test_equal_ids_of_several_owners_are_told_apart(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        given = (("ana", "local"), ("ben", "local"), ("ana", "other"), (None, "local"))
        for user, tenant in given:
            ana.put(
                draft(
                    "own1", f"lamp of {user} {tenant}", user=user, tenant=tenant, scope="user" if user else "global"
                )
            )
        ana.embed_all()
        for (user, tenant), theirs in zip((*given[:3], ("eve", "local")), given, strict=True):
            asker = ana.by(user or "", tenant=tenant)
            self.check_visible(asker, {"own1"})
            assert asker.units("own1")["own1"].text == f"lamp of {theirs[0]} {theirs[1]}"

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
        for fields, expected in (
            ({}, now),
            ({"session": "s"}, now),
            ({"session": "s", "only_session": True}, {"own3"}),
            ({"session": "unknown", "only_session": True}, set()),
            ({"reference_time": NOON}, now - {"own8"} | {"own7"}),
            ({"current_only": False}, now | {"all1", "own7"}),
        ):
            self.check_visible(ana.by(**fields), expected)
        for given, expected in (
            ({"room": "hall"}, {"own1"}),
            ({"n": {"gte": 3}}, {"own1"}),
            ({"room": {"ne": "hall"}}, now - {"own1"}),
            ({"or": [{"author": "assistant"}, {"room": {"contains": "al"}}]}, {"own1", "own2"}),
            ({"not": {"room": {"in": ["hall", "attic"]}}, "session": "s"}, {"own3"}),
            ({"n": 2}, set()),
        ):
            asker = ana.by(filters=parse_filter(given))
            self.check_visible(asker, expected)
            assert asker.count(["lamp"]).df == (10,)  # filters leave the statistics as they are
        expired, superseded = ana.column("hidden", "own5", "all1")
        assert ("expired" in expired, "superseded by all2" in superseded) == (True, True)

    # ---------------------------------------------------------------------------------------- the session

    def test_a_session_is_ordered_by_time_then_position(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "one", session="s", minutes=5), draft("b", "two", session="s", minutes=1))
        ana.put(draft("x", "three", session="t", minutes=3), draft("c", "four", session="s", minutes=1))
        assert [one.position for one in ana.units(*"abxc").values()] == [0, 1, 0, 2]
        assert (ana.scan(), ana.scan("newest", 2)) == (["b", "c", "x", "a"], ["a", "x"])
        asked = ana.propose(TimeQuery(NOON, NOON + timedelta(minutes=5)), 2, expired_deadline())
        assert (asked.ids, asked.exhausted) == (("x", "c"), True)

    def test_neighbours_are_the_visible_turns_around_in_the_same_session(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)

        def beside(asker: Asker, *names: str) -> list[tuple[str | None, str | None]]:
            return [*zip(asker.column("before", *names), asker.column("after", *names), strict=True)]

        ana.put(*(draft(name, name, session="s", minutes=i) for i, name in enumerate("abc")))
        ana.put(draft("x", "x", session="t", minutes=1), draft("lone", "lone"))
        assert beside(ana, "b", "a", "c") == [("a", "c"), (None, "b"), ("b", None)]
        assert beside(ana, "x", "lone", "unknown") == [NOBODY] * 3
        assert beside(ana.by("ben"), "b") == [NOBODY]
        ana.put(draft("between", "said in between, told later", session="s", minutes=1))
        assert beside(ana, "b", "c") == [("a", "between"), ("between", None)]
        ana.put(draft("new", "c, put differently", session="t", supersedes=("c",)))
        assert beside(ana, "between") == [("b", None)]
        assert beside(ana.by(current_only=False), "between") == [("b", "c")]
        ana.revise("b", text="b again")
        assert beside(ana, "a", "b") == [(None, "b"), ("a", "between")]

    def test_speakers_and_sessions_are_those_the_owner_may_see(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        given = (("zeta", "Tomas"), ("alpha", "Mara"), ("mid", None))
        ana.put(*(draft(session, "boat", session=session, speaker=who) for session, who in given))
        ana.put(draft("loose", "boat"), draft("x", "boat", user="ben", session="secret", speaker="Ben"))
        ana.put(draft("g", "boat", user=None, scope="global", session="everyone"))
        assert ana.look(lambda reading: reading.names("speaker")) == ("Mara", "Tomas")
        assert ana.look(lambda reading: reading.names("session")) == ("alpha", "mid", "zeta")
        assert ana.by("eve").look(lambda reading: reading.names("session")) == ()

    def test_a_name_leads_to_who_is_called_so_and_who_says_it(self, tmp_path: Path) -> None:
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

    def test_names_follow_changes_and_lead_to_what_is_visible(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "We met at Kestrel Quay", metadata={"n": 1}), draft("b", "to Kestrel Quay by boat"))
        ana.put(draft("a", "a shared note", user=None, scope="global", topic="Kestrel Quay"))
        assert _lead(ana, "kestrel quay", mentioned=False) == {}
        assert _lead(ana, "kestrel quay") == {"kestrel quay": ("a", "b")}
        seen = ana.by(filters=parse_filter({"n": 1}))
        assert (_lead(seen, "kestrel quay"), _lead(seen, "kestrel quay", most=2)) == ({"kestrel quay": ("a",)}, {})
        ana.revise("b", text="to Lower Mill by boat")
        assert _lead(ana, "kestrel quay", "lower mill") == {"kestrel quay": ("a",), "lower mill": ("b",)}
        ana.put(draft("c", "to Upper Mill, after all", supersedes=("b",)))
        assert _lead(ana, "lower mill") == {}

    def test_facts_are_those_of_visible_units(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        fact = Fact("tea", "depends_on", "water", 0.5)
        ana.put(draft("a", "one", fact=fact, metadata={"n": 1}), draft("b", "two", fact=fact, user="ben"))
        for asker, sources in ((ana, [("a",)]), (ana.by(filters=parse_filter({"n": 2})), []), (ana.by("eve"), [])):
            found = asker.look(lambda reading: reading.facts().about(["tea"], 9))
            assert [one.sources for one in found] == sources

    def test_access_is_counted_apart_from_everything_else(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "one"), draft("b", "two"), draft("c", "three", user="ben"))
        ana.put(draft("g", "four", user=None, scope="global"))
        before, ben = ana.units("a", "g"), ana.by("ben")
        ana.mark(Access(ana.view, ("a", "c", "unknown")), Access(ana.view, ("a", "b")), Access(ben.view, ("g",)))
        assert ana.column("access_count", "a", "b", "c", "g") == [2, 1, 0, 0]
        assert ana.column("most_accessed", "b", "unknown") == [2, 2]
        assert ben.column("access_count", "c", "g") == [0, 0]  # nobody learns what is read of everyone's units
        assert (ana.units("a", "g"), len(ana.history("a"))) == (before, 1)

    # ----------------------------------------------------------------------------------------- documents

    def test_documents_keep_their_order_and_their_owner(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        everyones = CoreDocument("local", None, "two.md", b"- b")
        theirs = CoreDocument("local", "ben", "one.md", b"- c")
        again = CoreDocument("local", "ana", "one.md", b"- changed", "/somewhere/one.md")
        for document in (CoreDocument("local", "ana", "one.md", b"- a"), everyones, theirs, again):
            ana.store.put_document(document)
        assert ana.look(lambda reading: reading.documents()) == [again, everyones]
        assert ana.by("ben").look(lambda reading: reading.documents()) == [everyones, theirs]
        named = ana.look(lambda reading: reading.documents(name="two.md", bodies=False))
        assert [document.name for document in named] == ["two.md"]
        ana.mark(DocumentRemoval(again))
        assert ana.look(lambda reading: reading.documents()) == [everyones]

    def test_parts_are_those_of_a_document_whatever_their_ids(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ended = draft("C#3", "ended", expires_at=NOON)
        for document, one in (("C", draft("C#1", "x")), ("C#a", draft("C#a#1", "y")), (None, draft("C#2", "z"))):
            ana.put(replace(one, document=document))
        ana.put(replace(ended, document="C"))
        assert ana.propose(DocumentQuery("C")).ids == ("C#1", "C#3")
        assert ana.propose(DocumentQuery("C", ended=False)).ids == ("C#1",)
        assert ana.column("document", "C#1", "C#2", "C#a#1") == ["C", None, "C#a"]
        assert raises(InputError, ana.put, draft("C#1", "somebody else's words"))

    # ----------------------------------------------------------------------------------------- searching

    def test_evidence_counts_exactly_and_follows_updates(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(draft("a", "red lamp red", topic="lamp"), draft("b", "blue lamp"))
        found = ana.count(["red", "lamp", "none"], "b", "a", "nobody")
        claim, topic, row = FIELDS.index("claim"), FIELDS.index("topic"), found.ids.index("a")
        assert sorted(found.ids) == ["a", "b"]
        assert (found.tf[row, claim].tolist(), found.tf[row, topic].tolist()) == ([2, 1, 0], [0, 1, 0])
        assert (found.lengths[row, claim], found.field_totals[claim]) == (3, 5)
        assert (found.unit_count, found.df) == (2, (1, 2, 0))
        ana.revise("a", text="green chair", topic="")
        assert (ana.find("red"), ana.find("green"), ana.count(["lamp", "red"]).df) == (set(), {"a"}, (1, 0))

    def test_proposals_hold_the_best_and_all_ties(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.put(*(draft(f"tie{i}", "lamp post") for i in range(5)), draft("best", "lamp lamp lamp"))
        assert ana.find("lamp", depth=1) == {"best"}
        assert len(ana.find("lamp", depth=2)) == 6

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
        ana = self.open(tmp_path)
        ana.put(draft("own1", "lamp", expires_at=LATER), draft("own2", "lamp"), draft("own3", "lamp"))
        ana.embed_all()
        ana.revise("own2", expires_at=LATER, recorded_time=NOON + timedelta(minutes=10))
        ana.embed_all()
        ana.revise("own3", text="lamp post", recorded_time=NOON + timedelta(minutes=50))
        all_three = {"own1", "own2", "own3"}
        assert ana.find("lamp") == {"own3"}
        for minutes, expected in ((0, all_three), (20, all_three), (40, {"own3"}), (55, {"own3"})):
            then = ana.by(as_of=NOON + timedelta(minutes=minutes))
            why = then.column("hidden", *sorted(all_three))
            shown = {name for name, hidden in zip(sorted(all_three), why, strict=True) if hidden is None}
            assert shown == {*then.scan()} == then.find("lamp") == expected, minutes

    # ----------------------------------------------------------------------------------------- operating

    def test_a_reading_is_one_state_while_others_write(self, tmp_path: Path) -> None:
        ana, other = self.open(tmp_path), self.open(tmp_path)
        ana.put(draft("a", "red lamp", session="s"), draft("b", "red chair", session="s", minutes=1))

        def see(reading: Reading) -> list[object]:
            counted = reading.evidence(words("lamp", "red"), ["a", "b", "c"])
            known = reading.columns(["a", "b", "c"], ("hidden", "after", "length"))
            return [
                counted.ids, counted.tf.tolist(), counted.df, counted.unit_count, reading.units(["a", "b", "c"]),
                {name: known[name].tolist() for name in known}, [*reading.scan(order="oldest", limit=None)],
                reading.history("a"), reading.names("session"), reading.documents(),
            ]  # fmt: skip

        writes: tuple[Callable[[], object], ...] = (
            lambda: other.revise("a", text="green lamp"),
            lambda: other.put(draft("c", "red lamp", session="s", minutes=2, supersedes=("b",))),
            lambda: other.store.put_document(CoreDocument("local", "ana", "one.md", b"- a")),
            lambda: other.store.forget(other.view, ["b"]),
        )
        for number, write in enumerate(writes):
            with ana.store.reading(ana.view) as reading:
                before = see(reading)
                write()
                assert see(reading) == before, number
            after = ana.look(see)
            assert after == other.look(see), number
            assert after != before, number

    def test_stats_count_what_is_there(self, tmp_path: Path) -> None:
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

    def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        ana = self.open(tmp_path)
        ana.store.close()
        ana.store.close()
        assert raises(ClosedStoreError, ana.units, "a")
        assert raises(ClosedStoreError, ana.put, draft("a", "one"))


def _number(text: str, number: int) -> str:
    return f"{text}-{number}"


def _lead(asker: Asker, *keys: str, most: int = 9, mentioned: bool = True) -> dict[str, tuple[str, ...]]:
    return asker.look(lambda reading: reading.named(keys, most, mentioned=mentioned))
