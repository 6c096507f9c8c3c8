"""What every store promises. Subclass `StoreContract`, say how to open yours, and run it with pytest."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from holdfast.errors import ClosedStoreError, InputError, NotFoundError
from holdfast.store.contract import LexicalQuery, Store
from holdfast.store.filters import parse_filter
from holdfast.testing.builders import NOON, analyse_default, draft, expired_deadline, no_deadline, unit, view
from holdfast.testing.store_vectors import StoreVectorContract, ids, raised, revised_text
from holdfast.types import FIELDS, Analysis, Document, Draft, Fact, Lineage, Unit, View


def recorded(revised: tuple[Unit, Analysis], at: datetime) -> tuple[Unit, Analysis]:
    """Return a revision that was recorded at another moment."""
    return revised[0].evolve(recorded_time=at), revised[1]


def asking(*terms: str) -> LexicalQuery:
    """Return a lexical query with the contract's weights."""
    return LexicalQuery(terms, (1.5, 1.0, 1.0, 0.8, 0.6, 0.6, 0.5), 1.2, 0.75, frozenset(), 1.3)


class StoreContract(StoreVectorContract):
    """Each test opens its own store in an empty folder."""

    # -------------------------------------------------------------------------------------------- keeping

    def test_words_come_back_exactly(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        text = '  Grüße, Ana!\r\n\t漢字 \U0001f33f e\u0301 "quoted" \\ {json: [1]} \u202eabc\u202c  '
        store.put([draft("a", text)])
        assert store.units(view(), ["a"])["a"].text == text

    def test_every_field_comes_back(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        full = unit(
            "a", "Boil the water first", kind="knowledge", role="Procedure", topic="tea", condition="if cold",
            utility_acts=("implement",), utility_note="daily", parts=({"type": "text", "n": [1, None]},),
            author="document", speaker="Ana", agent="helper", message_id="m1", bundle_id="b1", valid_from=NOON,
            valid_to=NOON + timedelta(days=1), expires_at=NOON + timedelta(days=2), pinned=True, links=("x", "y"),
            fact=Fact("tea", "depends_on", "water", 0.5), authority=0.25, origin="document",
            metadata={"deep": {"list": [1, 2.5, "three", True, None]}},
            lineage=Lineage(("p", "q"), "extractive", 0.9, 0.1, 0.8, 0.7, NOON, NOON + timedelta(minutes=5)),
        )  # fmt: skip
        store.put([draft_of(full)])
        assert store.units(view(), ["a"])["a"] == full

    def test_a_batch_is_written_whole_or_not_at_all(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        batch = [draft("a", "first words"), draft("b", "second words", supersedes=("nobody",))]
        assert raised(NotFoundError, lambda: store.put(batch))
        assert store.units(view(), ["a", "b"]) == {}
        assert store.lexical_evidence(view(), ["first"], ["a"]).unit_count == 0

    def test_the_same_unit_again_is_a_duplicate(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        first, again = store.put([draft("a", "blue door")])[0], store.put([draft("a", "blue door")])[0]
        assert (first.status, again.status, again.version) == ("added", "duplicate", 1)

    def test_a_given_id_with_new_words_is_a_new_version(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "blue door")])
        [written] = store.put([draft("a", "green door")])
        assert (written.status, written.version) == ("updated", 2)
        assert [old.text for old in store.history(view(), "a")] == ["blue door", "green door"]

    def test_a_revision_keeps_the_history(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "blue door")])
        revised = store.revise(view(), "a", lambda old: revised_text(old, "red door"))
        assert (revised.text, revised.version) == ("red door", 2)
        assert [old.version for old in store.history(view(), "a")] == [1, 2]

    def test_revising_what_is_not_there_is_an_error(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        assert raised(NotFoundError, lambda: store.revise(view(), "a", lambda old: revised_text(old, "red")))

    # -------------------------------------------------------------------------------------------- seeing

    def test_owners_do_not_see_each_other(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "secret garden"), draft("a", "secret cellar", user="ben")])
        store.put([draft("a", "secret attic", tenant="other")])
        for seen, text in ((view("ana"), "garden"), (view("ben"), "cellar"), (view("ana", tenant="other"), "attic")):
            assert store.units(seen, ["a"])["a"].text == f"secret {text}"
            assert [found.text for found in store.scan(seen, order="oldest", limit=None)] == [f"secret {text}"]
            assert store.lexical_evidence(seen, ["secret"], ["a"]).unit_count == 1
            assert store.stats(seen).units == 1
        assert store.units(view("eve"), ["a"]) == {}
        assert store.history(view("eve"), "a") == []
        assert store.visible(view("eve"), "a") is not None

    def test_global_units_are_seen_by_every_user_of_the_tenant(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("g", "house rules", user=None, scope="global")])
        assert store.units(view("ben"), ["g"])["g"].text == "house rules"
        assert store.lexical_candidates(view("ben"), asking("hous"), 5, no_deadline()).ids == ("g",)
        assert store.units(view("ben", tenant="other"), ["g"]) == {}

    def test_a_users_own_unit_hides_a_global_one_of_the_same_id(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "global lamp", user=None, scope="global"), draft("a", "own lamp")])
        assert store.units(view(), ["a"])["a"].text == "own lamp"
        assert store.lexical_candidates(view(), asking("lamp"), 5, no_deadline()).ids == ("a",)

    def test_another_agents_units_are_hidden_when_an_agent_is_named(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "lamp", agent="x"), draft("b", "lamp", agent="y"), draft("c", "lamp")])
        seen = view(agent="x")
        assert ids(store.scan(seen, order="oldest", limit=None)) == ["a", "c"]
        assert set(store.lexical_candidates(seen, asking("lamp"), 5, no_deadline()).ids) == {"a", "c"}
        assert set(store.units(seen, ["a", "b", "c"])) == {"a", "c"}

    def test_expired_units_are_hidden_unless_pinned(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        gone = NOON + timedelta(minutes=30)
        store.put([draft("a", "lamp", expires_at=gone), draft("b", "lamp", expires_at=gone, pinned=True)])
        self.check_visible(store, view(), {"b"})
        assert "expired" in (store.visible(view(), "a") or "")

    def test_superseded_units_are_hidden_unless_all_are_asked_for(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "old lamp")])
        store.put([draft("b", "new lamp", supersedes=("a",))])
        self.check_visible(store, view(), {"b"})
        self.check_visible(store, view(current_only=False), {"a", "b"})
        assert "superseded by b" in (store.visible(view(), "a") or "")

    def test_validity_is_asked_at_the_reference_time(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "lamp", valid_to=NOON), draft("b", "lamp", valid_from=NOON)])
        self.check_visible(store, view(reference_time=NOON - timedelta(seconds=1)), {"a"})
        self.check_visible(store, view(reference_time=NOON), {"b"})
        self.check_visible(store, view(current_only=False), {"a", "b"})

    def test_only_session_hides_the_rest(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "lamp", session="s"), draft("b", "lamp", session="t"), draft("c", "lamp")])
        self.check_visible(store, view(session="s"), {"a", "b", "c"})
        self.check_visible(store, view(session="s", only_session=True), {"a"})
        self.check_visible(store, view(session="unknown", only_session=True), set())

    def test_filters_choose_by_metadata_and_field(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put(
            [draft("a", "lamp", metadata={"room": "hall", "n": 3}), draft("b", "lamp", metadata={"room": "attic"})]
        )
        store.put([draft("c", "lamp", author="assistant")])
        for given, expected in (
            ({"room": "hall"}, {"a"}),
            ({"n": {"gte": 3}}, {"a"}),
            ({"room": {"ne": "hall"}}, {"b", "c"}),
            ({"or": [{"author": "assistant"}, {"room": {"contains": "tti"}}]}, {"b", "c"}),
            ({"not": {"room": {"in": ["hall", "attic"]}}}, {"c"}),
        ):
            self.check_visible(store, view(filters=parse_filter(given)), expected)

    def check_visible(self, store: Store, seen: View, expected: set[str]) -> None:
        """Scanning, searching and asking must agree on what a view shows."""
        assert set(ids(store.scan(seen, order="newest", limit=None))) == expected
        assert set(store.lexical_candidates(seen, asking("lamp"), 99, no_deadline()).ids) == expected
        everyone = ids(store.scan(view(current_only=False), order="newest", limit=None))
        assert {found for found in everyone if store.visible(seen, found) is None} == expected

    # ---------------------------------------------------------------------------------------- the session

    def test_turns_get_their_position_in_their_session(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one", session="s"), draft("b", "two", session="s"), draft("c", "three", session="t")])
        store.put([draft("d", "four", session="s")])
        found = store.units(view(), ["a", "b", "c", "d"])
        assert [found[name].position for name in "abcd"] == [0, 1, 0, 2]

    def test_a_session_is_ordered_by_time_then_position(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        late_first = [draft("a", "one", session="s", minutes=5), draft("b", "two", session="s", minutes=1)]
        store.put([*late_first, draft("c", "three", session="s", minutes=1)])
        assert ids(store.scan(view(), order="oldest", limit=None)) == ["b", "c", "a"]
        assert ids(store.scan(view(), order="newest", limit=2)) == ["a", "c"]

    def test_neighbours_are_the_turns_around_in_the_same_session(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft(name, name, session="s", minutes=i) for i, name in enumerate("abcde")])
        store.put([draft("x", "x", session="t", minutes=2), draft("lone", "lone")])
        around = {"a": ("b",), "c": ("b", "d"), "e": ("d",)}
        assert store.neighbours(view(), ["c", "a", "e", "x", "lone", "unknown"]) == around
        assert store.neighbours(view("ben"), ["c"]) == {}

    def test_neighbours_follow_changes_and_are_visible(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft(name, name, session="s", minutes=i) for i, name in enumerate("abc")])
        assert store.neighbours(view(), ["b"]) == {"b": ("a", "c")}
        store.put([draft("between", "said in between, told later", session="s", minutes=1)])
        assert store.neighbours(view(), ["b", "c"]) == {"b": ("a", "between"), "c": ("between",)}
        store.put([draft("new", "c, put differently", session="t", supersedes=("c",))])
        assert store.neighbours(view(), ["between"]) == {"between": ("b",)}
        assert store.neighbours(view(current_only=False), ["between"]) == {"between": ("b", "c")}
        store.revise(view(), "b", lambda old: revised_text(old, "b again"))
        assert store.neighbours(view(), ["a", "b"]) == {"a": ("b",), "b": ("a", "between")}

    def test_a_name_leads_to_who_is_called_so_and_who_says_it(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("mill", "it burned down", topic="Lower Mill (inn)"), draft("a", "We met at the Lower Mill")])
        store.put([draft("b", "the Lower Mill is full"), draft("c", "a mill on the lower river")])
        store.put([draft("theirs", "the Lower Mill", user="ben")])
        keys = ["lower mill", "kestrel quay", "lower mill inn"]
        called = {"lower mill": ("mill",), "lower mill inn": ("mill",)}
        assert store.called(view(), keys, 1) == called
        assert store.naming(view(), keys, 3) == called | {"lower mill": ("a", "b", "mill")}
        assert store.naming(view(), ["lower mill"], 2) == {}
        assert store.called(view(), ["lower mill"], 0) == {}
        assert store.naming(view("carla"), keys, 3) == store.called(view("ben"), keys, 3) == {}

    def test_names_follow_changes_and_lead_to_what_is_visible(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "We met at Kestrel Quay", metadata={"n": 1}), draft("b", "to Kestrel Quay by boat")])
        store.put([draft("a", "a shared note", user=None, scope="global", topic="Kestrel Quay")])
        assert store.called(view(), ["kestrel quay"], 9) == {}
        assert store.naming(view(), ["kestrel quay"], 9) == {"kestrel quay": ("a", "b")}
        seen = view(filters=parse_filter({"n": 1}))
        assert store.naming(seen, ["kestrel quay"], 9) == {"kestrel quay": ("a",)}
        assert store.naming(seen, ["kestrel quay"], 2) == {}
        store.revise(view(), "b", lambda old: revised_text(old, "to Lower Mill by boat"))
        assert store.naming(view(), ["kestrel quay", "lower mill"], 9) == {
            "kestrel quay": ("a",),
            "lower mill": ("b",),
        }
        store.put([draft("c", "to Upper Mill, after all", supersedes=("b",))])
        assert store.naming(view(), ["lower mill"], 9) == {}

    def test_anchor_densities_are_those_of_the_analysis(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "on 2026-03-04, 2026-03-05 and 2026-03-06"), draft("b", "no time at all")])
        assert store.anchor_densities(view(), ["a", "b", "unknown"]) == {"a": 1.0, "b": 0.0}
        assert store.anchor_densities(view("ben"), ["a"]) == {}

    def test_the_past_is_what_had_been_recorded_and_not_yet_superseded(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "blue boat"), draft("b", "small harbour")])
        later = {"minutes": 60, "recorded_time": NOON + timedelta(minutes=60)}
        store.put([draft("c", "red boat", supersedes=("a",), **later)])
        store.revise(view(), "b", lambda old: recorded(revised_text(old, "large harbour"), NOON + timedelta(hours=2)))
        then, between = view(as_of=NOON), view(as_of=NOON + timedelta(minutes=90))
        assert ids(store.scan(then, order="oldest", limit=None)) == ["a", "b"]
        assert store.units(then, ["b"])["b"].text == "small harbour"
        assert store.lexical_candidates(then, asking("small"), 5, no_deadline()).ids == ("b",)
        assert store.lexical_candidates(then, asking("larg"), 5, no_deadline()).ids == ()
        assert set(store.lexical_candidates(then, asking("boat"), 5, no_deadline()).ids) == {"a"}
        assert set(store.lexical_candidates(between, asking("boat"), 5, no_deadline()).ids) == {"c"}
        assert store.visible(then, "a") is None
        assert "recorded" in (store.visible(then, "c") or "")
        assert "superseded" in (store.visible(between, "a") or "")
        assert store.lexical_candidates(view(), asking("larg"), 5, no_deadline()).ids == ("b",)
        assert store.lexical_evidence(then, ["boat"], ["a"]).unit_count == 3
        assert store.lexical_evidence(then, ["boat"], ["a"]).df == (2,)

    def test_access_is_counted_apart_from_everything_else(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one"), draft("b", "two"), draft("c", "three", user="ben")])
        assert store.access_counts(view(), ["a", "b"]) == ({}, 0)
        before = store.units(view(), ["a"])["a"]
        for _ in range(2):
            store.count_access(view(), ["a", "c", "unknown"])
        store.count_access(view(), ["b"])
        assert store.access_counts(view(), ["a", "b", "c"]) == ({"a": 2, "b": 1}, 2)
        assert store.access_counts(view("ben"), ["c"]) == ({}, 0)
        assert store.units(view(), ["a"])["a"] == before
        assert len(store.history(view(), "a")) == 1

    def test_nobody_learns_what_others_read_of_everyones_units(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("g", "one", user=None, scope="global"), draft("a", "two")])
        store.count_access(view("ben"), ["g"])
        assert store.access_counts(view("ben"), ["g"]) == ({}, 0)
        assert store.access_counts(view(), ["g", "a"]) == ({}, 0)
        assert [unit.access_count for unit in store.scan(view(), order="oldest", limit=None)] == [0, 0]

    def test_core_documents_keep_their_order_and_their_owner(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        first, everyones = (
            Document("local", "ana", "one.md", b"- a"),
            Document("local", None, "two.md", b"- b"),
        )
        for document in (first, everyones, Document("local", "ben", "one.md", b"- c")):
            store.put_document(document)
        again = Document("local", "ana", "one.md", b"- changed", "/somewhere/one.md")
        store.put_document(again)
        assert store.documents(view()) == [again, everyones]
        assert [document.body for document in store.documents(view("ben"))] == [b"- b", b"- c"]

    def test_parts_are_those_of_a_document_whatever_their_ids(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        for document, unit_id in (("C", "C#1"), ("C#guide", "C#guide#1"), (None, "C#2")):
            store.put([replace(draft(unit_id, f"text of {unit_id}"), document=document)])
        ended = draft("C#3", "ended").unit.evolve(expires_at=NOON)
        store.put([replace(draft_of(ended), document="C")])
        assert store.parts(view(), "C") == ["C#1", "C#3"]
        assert store.parts(view(), "C", ended=False) == ["C#1"]
        assert store.documents_of(view(), ["C#1", "C#2", "C#guide#1"]) == {"C#1": "C", "C#guide#1": "C#guide"}
        assert raised(InputError, lambda: store.put([draft("C#1", "somebody else's words")]))

    def test_a_message_is_told_apart_by_its_order(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)

        def said(*texts: str) -> list[str]:
            drafts = [replace(draft("-", text), id_given=False, naming=partial(_numbered, text)) for text in texts]
            return [one.status for one in store.put(drafts, retry_seconds=60)]

        assert said("yes", "no", "yes") == ["added"] * 3
        assert said("no", "yes", "no") == ["duplicate", "duplicate", "added"]
        assert said("no") == ["duplicate"]
        assert said("yes") == ["added"]
        found = store.scan(view(), order="oldest", limit=None)
        assert [unit.text for unit in found] == ["yes", "no", "yes", "no", "yes"]

    def test_speakers_are_the_names_the_owner_may_see(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one", speaker="Mara"), draft("b", "two", speaker="Tomas"), draft("c", "three")])
        store.put([draft("d", "four", user="ben", speaker="Ben")])
        assert store.speakers(view()) == ("Mara", "Tomas")

    # ----------------------------------------------------------------------------------------- searching

    def test_evidence_counts_exactly(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "red lamp red", topic="lamp"), draft("b", "blue lamp")])
        found = store.lexical_evidence(view(), ["red", "lamp", "none"], ["b", "a", "nobody"])
        claim, topic = FIELDS.index("claim"), FIELDS.index("topic")
        row = found.ids.index("a")
        assert sorted(found.ids) == ["a", "b"]
        assert found.tf[row, claim].tolist() == [2, 1, 0]
        assert found.tf[row, topic].tolist() == [0, 1, 0]
        assert found.lengths[row, claim] == 3
        assert (found.unit_count, found.df) == (2, (1, 2, 0))
        assert found.field_totals[claim] == 5

    def test_an_update_forgets_the_old_words(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "red lamp"), draft("b", "lamp")])
        store.revise(view(), "a", lambda old: revised_text(old, "green chair"))
        assert store.lexical_candidates(view(), asking("red"), 9, no_deadline()).ids == ()
        assert store.lexical_candidates(view(), asking("green"), 9, no_deadline()).ids == ("a",)
        assert store.lexical_evidence(view(), ["lamp", "red"], []).df == (1, 0)

    def test_statistics_of_an_agent_cover_what_it_may_see(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "red boat", agent="x"), draft("b", "red lamp"), draft("c", "boat", agent="y")])
        (tmp_path / "alone").mkdir()
        alone = self.open_store(tmp_path / "alone")
        alone.put([draft("a", "red boat", agent="x"), draft("b", "red lamp")])
        seen, expected = (one.lexical_evidence(view(agent="x"), ["boat", "red"], ["a"]) for one in (store, alone))
        assert (seen.unit_count, seen.df, seen.field_totals) == (2, (1, 2), expected.field_totals)
        assert store.lexical_evidence(view(), ["boat", "red"], ["a"]).df == (2, 2)

    def test_statistics_cover_the_owner_and_not_the_filters(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "lamp", metadata={"n": 1}), draft("b", "lamp"), draft("c", "lamp", user="ben")])
        store.put([draft("g", "lamp", user=None, scope="global")])
        seen = view(filters=parse_filter({"n": 1}))
        found = store.lexical_evidence(seen, ["lamp"], ["a"])
        assert (found.unit_count, found.df) == (3, (3,))

    def test_proposals_hold_the_best_and_all_ties(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft(f"tie{i}", "lamp post") for i in range(5)] + [draft("best", "lamp lamp lamp")])
        assert set(store.lexical_candidates(view(), asking("lamp"), 1, no_deadline()).ids) == {"best"}
        assert len(store.lexical_candidates(view(), asking("lamp"), 2, no_deadline()).ids) == 6

    def test_a_spent_deadline_is_reported(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "red lamp")])
        found = store.lexical_candidates(view(), asking("lamp", "red"), 9, expired_deadline())
        assert found.exhausted
        assert set(found.ids) <= {"a"}

    # ----------------------------------------------------------------------------------------- operating

    def test_two_handles_read_each_others_writes(self, tmp_path: Path) -> None:
        one, two = self.open_store(tmp_path), self.open_store(tmp_path)
        for writer, reader, name in ((one, two, "a"), (two, one, "b"), (one, two, "c")):
            writer.put([draft(name, f"lamp {name}")])
            assert name in reader.lexical_candidates(view(), asking("lamp"), 9, no_deadline()).ids
        two.revise(view(), "a", lambda old: revised_text(old, "chair"))
        assert "a" not in one.lexical_candidates(view(), asking("lamp"), 9, no_deadline()).ids
        one.close()
        two.close()

    def test_a_reopened_store_answers_as_before(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft(str(i), f"lamp {'red ' * (i % 3)}{i}") for i in range(20)])
        store.revise(view(), "3", lambda old: revised_text(old, "red chair"))
        before = store.lexical_evidence(view(), ["lamp", "red"], [str(i) for i in range(20)])
        store.close()
        store = self.open_store(tmp_path)
        after = store.lexical_evidence(view(), ["lamp", "red"], [str(i) for i in range(20)])
        assert (after.unit_count, after.df, after.field_totals) == (before.unit_count, before.df, before.field_totals)
        rows = {name: before.tf[i].tolist() for i, name in enumerate(before.ids)}
        assert {name: after.tf[i].tolist() for i, name in enumerate(after.ids)} == rows

    def test_stats_count_what_is_there(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one", session="s", scope="session"), draft("b", "two", minutes=9)])
        store.put([draft("b", "two again", minutes=9)])
        found = store.stats(view())
        assert (found.units, found.versions, found.sessions) == (2, 3, 1)
        assert (found.earliest, found.latest) == (NOON, NOON + timedelta(minutes=9))
        assert found.by_scope == {"session": 1, "user": 1}

    def test_the_size_of_the_whole_store_is_told_to_who_asks(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one"), draft("b", "two", user="ben")])
        mine, whole = store.stats(view()), store.stats(view(), whole=True)
        assert (mine.units, mine.store_units, mine.store_bytes) == (1, None, None)
        assert whole.store_units == 2
        assert (whole.store_bytes or 0) > 0

    def test_a_whole_store_verifies(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([draft("a", "one")])
        assert store.verify() == []

    def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.close()
        store.close()
        assert raised(ClosedStoreError, lambda: store.units(view(), ["a"]))
        assert raised(ClosedStoreError, lambda: store.put([draft("a", "one")]))


def draft_of(full: Unit) -> Draft:
    """Return a draft of a unit as it is."""
    return Draft(full, analyse_default, id_given=True, time_given=True)


def _numbered(text: str, number: int) -> str:
    return f"{text}-{number}"
