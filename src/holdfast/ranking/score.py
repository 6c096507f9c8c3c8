"""Relevance, recency, scope and summary quality → the score that `search` ranks by (C9).

base(d)  = α·rel + β·R + γ·S          score(d) = base·Q, at most 1
R = exp(-λ_scope·age)                 Q = 1 - δ·decay_rate for a summary, else 1
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.kernels.decay import decay
from holdfast.settings import ScoreSettings
from holdfast.types import Candidate, Contribution, Unit

# S of a unit of the active session, of a user's promoted unit, and of everything else (C9).
_SCOPE_ACTIVE, _SCOPE_DURABLE, _SCOPE_REST = 1.0, 0.6, 0.3


@dataclass(frozen=True, slots=True)
class Scoring:
    """What the hybrid score of one query needs to know: the active session and t_ref."""

    settings: ScoreSettings
    session: str | None
    at: datetime

    def score(self, candidate: Candidate) -> float:
        """Return the hybrid score, in [0, 1]."""
        alpha, beta, gamma = self.settings.shares
        scope, rate = self._scope(candidate.unit)
        base = alpha * candidate.rel + beta * recency(candidate.unit, rate, self.at) + gamma * scope
        return min(base * quality(candidate.unit, self.settings), 1.0)

    def explain(self, candidate: Candidate, rel: Contribution) -> Contribution:
        """Return the score as a tree over the tree of its relevance: the same arithmetic, node by node."""
        alpha, beta, gamma = self.settings.shares
        unit = candidate.unit
        scope, rate = self._scope(unit)
        recent = Contribution("R", recency(unit, rate, self.at))
        base = Contribution.of(
            "base",
            "sum",
            Contribution.of("relevance", "product", Contribution("alpha", alpha), rel),
            Contribution.of("recency", "product", Contribution("beta", beta), recent),
            Contribution.of("scope", "product", Contribution("gamma", gamma), Contribution("S", scope)),
        )
        product = Contribution.of("base × quality", "product", base, Contribution("Q", quality(unit, self.settings)))
        return Contribution.of("score", "minimum", product, Contribution("ceiling", 1.0))

    def _scope(self, unit: Unit) -> tuple[float, float]:
        """Return (S, λ) of C1's visibility rule."""
        settings = self.settings
        if unit.scope == "global":
            return _SCOPE_REST, settings.lambda_global
        if self.session is not None and unit.session == self.session:
            return _SCOPE_ACTIVE, settings.lambda_session
        return (_SCOPE_DURABLE if unit.scope == "user" else _SCOPE_REST), settings.lambda_user


def quality(unit: Unit, settings: ScoreSettings) -> float:
    """Return Q(d) ∈ [1 - δ, 1]."""
    return 1.0 if unit.lineage is None else 1.0 - settings.delta * unit.lineage.decay_rate


def recency(unit: Unit, rate: float, at: datetime) -> float:
    """Return R(d) ∈ [0, 1]; an authored rule does not age, a summary is as old as its last source."""
    if unit.kind == "authored":
        return 1.0
    moment = unit.lineage.ends if unit.lineage is not None else unit.event_time
    return decay(rate, (at - moment).total_seconds())
