"""What every strategy promises (C7). Subclass `StrategyContract`, name your class, and run it with pytest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np

from holdfast import sample
from holdfast.derivation import derivation
from holdfast.memory import Memory
from holdfast.retrieval.strategy import Strategy, retrieve
from holdfast.settings import Settings
from holdfast.store.sqlite.sqlite_store import SqliteStore
from holdfast.testing.builders import Asker, draft, expired_deadline, no_deadline, view
from holdfast.text.questions import profile_query
from holdfast.types import RetrievalResult

_QUESTION = "Which flight are they rebooked on in November?"
_EVERYTHING = 1_000


class StrategyContract(ABC):
    """Each test asks the strategy about the sample history, or about a small store of its own."""

    @abstractmethod
    def make_strategy(self, settings: Settings) -> Strategy:
        """Return the strategy under test."""

    def open_sample(self, place: Path) -> Asker:
        """Return a store that holds the sample history, and who asks it."""
        memory = Memory.open(place / "sample.db", settings=Settings())
        for session, messages in sample.sessions():
            memory.remember(messages, user=sample.USER, session=session)
        return Asker(memory.store, view(sample.USER))

    def ask(self, question: str, asker: Asker, depth: int = _EVERYTHING, *, late: bool = False) -> RetrievalResult:
        """Return what the strategy finds, with all the time there is or with none."""
        strategy, deadline = self.make_strategy(Settings()), expired_deadline() if late else no_deadline()
        return asker.look(lambda reading: retrieve(strategy, profile_query(question), reading, depth, deadline))

    def test_scores_are_finite_ordered_and_normalised(self, tmp_path: Path) -> None:
        asker = self.open_sample(tmp_path)
        for question in sample.questions():
            result = self.ask(question["question"], asker)
            claims = result.candidates
            assert all(claim.normalized_score == min(claim.raw_score / result.scale, 1.0) for claim in claims)
            assert all(0.0 < claim.normalized_score <= 1.0 for claim in claims)
            keys = [(-claim.raw_score, claim.unit_id) for claim in claims]
            assert keys == sorted({*keys})
            assert np.isfinite(result.claims.raw).all()
            assert (result.claims.raw > 0.0).all()

    def test_a_smaller_depth_returns_the_head_of_a_larger_one_every_time(self, tmp_path: Path) -> None:
        asker = self.open_sample(tmp_path)
        wide = self.ask("the bakery and the oven", asker).candidates
        for depth in (1, 3, 10, _EVERYTHING):
            assert self.ask("the bakery and the oven", asker, depth).candidates == wide[:depth]

    def test_a_score_is_the_same_in_any_company_and_0_without_a_find(self, tmp_path: Path) -> None:
        asker, strategy = self.open_sample(tmp_path), self.make_strategy(Settings())
        found = self.ask(_QUESTION, asker).claims
        strangers = [name for name in asker.scan() if name not in found.ids]
        company = ["nobody", *found.ids[::-1], *strangers]
        with asker.store.reading(asker.view) as reading:
            scored = strategy.score(profile_query(_QUESTION), reading, company)
            alone = [strategy.score(profile_query(_QUESTION), reading, [name]) for name in company]
            unheard = strategy.score(profile_query("zyzzyva"), reading, company)
        assert scored.ids == tuple(company)
        assert scored.raw.tolist() == [float(one.raw[0]) for one in alone]
        assert scored.coverage.tolist() == [float(one.coverage[0]) for one in alone]
        rows = scored.rows_of(found.ids)
        assert (scored.raw[rows] == found.raw).all()
        assert (scored.matched[rows] == found.matched).all()
        assert scored.raw[0] == scored.raw[scored.rows_of(strangers)].sum() == unheard.raw.sum() == 0.0

    def test_it_says_who_it_is_and_accounts_for_its_scores(self, tmp_path: Path) -> None:
        asker, strategy = self.open_sample(tmp_path), self.make_strategy(Settings())
        result = self.ask(_QUESTION, asker)
        found = result.claims
        assert (bool(strategy.id), result.strategy_id, bool(found.ids)) == (True, strategy.id, True)
        with asker.store.reading(asker.view) as reading:
            accounts = strategy.explain(profile_query(_QUESTION), reading, [*found.ids, "nobody"])
        assert {*accounts} >= {*found.ids}
        for name, raw in zip(found.ids, found.raw.tolist(), strict=True):
            assert accounts[name].tree.compose() == accounts[name].tree.value == raw
            assert accounts[name].notes[0] == strategy.id

    def test_nobody_elses_units_are_found(self, tmp_path: Path) -> None:
        asker = Asker(SqliteStore.open(tmp_path / "two.db", Settings().store, derivation(Settings())))
        assert self.ask("anything at all", asker).candidates == ()
        asker.put(draft("a", "a lamp in the hall"), draft("b", "a lamp in the attic", user="ben"))
        assert self.ask("lamp in the hall", asker).claims.ids == ("a",)

    def test_time_that_has_run_out_is_reported_and_not_an_error(self, tmp_path: Path) -> None:
        asker = self.open_sample(tmp_path)
        late, whole = (self.ask("the new oven of the bakery in Lisbon", asker, late=yes) for yes in (True, False))
        assert (late.exhausted_budget, whole.exhausted_budget) == (True, False)
        assert {*late.claims.ids} <= {*whole.claims.ids}
