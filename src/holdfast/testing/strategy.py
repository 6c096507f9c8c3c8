"""What every strategy promises (C7). Subclass `StrategyContract`, name your class, and run it with pytest."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from pathlib import Path

from holdfast import sample
from holdfast.derivation import derivation
from holdfast.language.query import profile_query
from holdfast.memory import Memory
from holdfast.retrieval.strategy import Strategy
from holdfast.settings import Settings
from holdfast.store.contract import Store
from holdfast.store.sqlite import SqliteStore
from holdfast.testing.builders import draft, expired_deadline, no_deadline, view
from holdfast.types import Budget, RetrievalResult, View

_WIDE = Budget(timeout_ms=10_000.0, max_candidates=1_000)


class StrategyContract(ABC):
    """Each test asks the strategy about the sample history, or about a small store of its own."""

    @abstractmethod
    def make_strategy(self, settings: Settings) -> Strategy:
        """Return the strategy under test."""

    def sample_store(self, place: Path) -> tuple[Store, View]:
        """Return a store that holds the sample history, and a view of it."""
        memory = Memory.open(place / "sample.db", settings=Settings())
        for session, messages in sample.sessions():
            memory.remember(messages, user=sample.USER, session=session)
        return memory.store, view(sample.USER)

    def ask(self, question: str, store: Store, seen: View, budget: Budget = _WIDE) -> RetrievalResult:
        """Return what the strategy finds without a time limit."""
        strategy = self.make_strategy(Settings())
        return strategy.retrieve(profile_query(question), seen, store, budget, no_deadline())

    def test_it_says_who_it_is(self, tmp_path: Path) -> None:
        store, seen = self.sample_store(tmp_path)
        strategy = self.make_strategy(Settings())
        result = self.ask("What is Tomas allergic to?", store, seen)
        assert strategy.id
        assert result.strategy_id == strategy.id
        assert result.candidates
        assert all(claim.notes and claim.notes[0] == strategy.id for claim in result.candidates)

    def test_scores_are_finite_ordered_and_normalised(self, tmp_path: Path) -> None:
        store, seen = self.sample_store(tmp_path)
        for question in sample.questions():
            result = self.ask(question["question"], store, seen)
            claims = result.candidates
            assert all(claim.normalized_score == min(claim.raw_score / result.scale, 1.0) for claim in claims)
            keys = [(-claim.raw_score, claim.unit_id) for claim in claims]
            assert keys == sorted(keys)
            assert len({claim.unit_id for claim in claims}) == len(claims)
            assert all(math.isfinite(claim.raw_score) and claim.raw_score > 0.0 for claim in claims)
            assert all(0.0 <= claim.normalized_score <= 1.0 for claim in claims)
            assert all(claim.unit.id == claim.unit_id for claim in claims)

    def test_a_smaller_budget_returns_the_head_of_a_larger_one(self, tmp_path: Path) -> None:
        store, seen = self.sample_store(tmp_path)
        wide = self.ask("the bakery and the oven", store, seen).candidates
        for most in (1, 3, 10):
            narrow = self.ask("the bakery and the oven", store, seen, Budget(10_000.0, most)).candidates
            assert [claim.unit_id for claim in narrow] == [claim.unit_id for claim in wide[:most]]
            assert [claim.raw_score for claim in narrow] == [claim.raw_score for claim in wide[:most]]

    def test_asking_twice_gives_the_same(self, tmp_path: Path) -> None:
        store, seen = self.sample_store(tmp_path)
        assert self.ask("the new database", store, seen) == self.ask("the new database", store, seen)

    def test_score_agrees_with_retrieve_and_explains_itself(self, tmp_path: Path) -> None:
        store, seen = self.sample_store(tmp_path)
        question = profile_query("Which flight are they rebooked on in November?")
        strategy = self.make_strategy(Settings())
        found = strategy.retrieve(question, seen, store, _WIDE, no_deadline()).candidates
        scored = strategy.score(question, seen, store, [*(claim.unit_id for claim in found), "nobody"])
        assert set(scored) == {claim.unit_id for claim in found}
        for claim in found:
            assert scored[claim.unit_id].raw_score == claim.raw_score
            explanation = scored[claim.unit_id].explanation
            assert explanation is not None
            assert explanation.compose() == explanation.value == claim.raw_score

    def test_a_unit_it_does_not_find_scores_zero(self, tmp_path: Path) -> None:
        store, seen = self.sample_store(tmp_path)
        question = profile_query("zyzzyva")
        some = next(iter(store.scan(seen, order="oldest", limit=1)))
        scored = self.make_strategy(Settings()).score(question, seen, store, [some.id])
        assert scored[some.id].raw_score == 0.0

    def test_nobody_elses_units_are_found(self, tmp_path: Path) -> None:
        store = SqliteStore.open(tmp_path / "two.db", Settings().store, derivation(Settings()))
        store.put([draft("a", "a lamp in the hall"), draft("b", "a lamp in the attic", user="ben")])
        assert [claim.unit_id for claim in self.ask("lamp in the hall", store, view()).candidates] == ["a"]

    def test_an_empty_store_holds_nothing(self, tmp_path: Path) -> None:
        store = SqliteStore.open(tmp_path / "none.db", Settings().store, derivation(Settings()))
        assert self.ask("anything at all", store, view()).candidates == ()

    def test_time_that_has_run_out_is_reported_and_not_an_error(self, tmp_path: Path) -> None:
        store, seen = self.sample_store(tmp_path)
        question = profile_query("the new oven of the bakery in Lisbon")
        strategy = self.make_strategy(Settings())
        late = strategy.retrieve(question, seen, store, _WIDE, expired_deadline())
        whole = strategy.retrieve(question, seen, store, _WIDE, no_deadline())
        assert late.exhausted_budget
        assert not whole.exhausted_budget
        assert {claim.unit_id for claim in late.candidates} <= {claim.unit_id for claim in whole.candidates}
