"""Relevance, recency, scope and summary quality → the score that `search` ranks by (C9).

base(d)  = α·rel + β·R + γ·S          score(d) = base·Q, at most 1
R = exp(-λ_scope·age)                 Q = 1 - δ·decay_rate for a summary, else 1
"""

from __future__ import annotations

from datetime import datetime

from holdfast.kernels.decay import decay
from holdfast.settings import ScoreSettings
from holdfast.types import Candidate, Contribution, Unit


def score(candidate: Candidate, settings: ScoreSettings, *, session: str | None, at: datetime) -> Contribution:
    """Return the hybrid score as a tree. `session` is the active one, `at` is t_ref."""
    unit = candidate.unit
    alpha, beta, gamma = settings.shares
    scope, rate = _scope(unit, settings, session)
    parts = (
        Contribution.of("relevance", "product", Contribution("alpha", alpha), candidate.explanation),
        Contribution.of("recency", "product", Contribution("beta", beta), _recency(unit, rate, at)),
        Contribution.of("scope", "product", Contribution("gamma", gamma), Contribution("S", scope)),
    )
    base = Contribution.of("base", "sum", *parts)
    product = Contribution.of("base × quality", "product", base, Contribution("Q", quality(unit, settings)))
    return Contribution.of("score", "minimum", product, Contribution("ceiling", 1.0))


def quality(unit: Unit, settings: ScoreSettings) -> float:
    """Return Q(d) ∈ [1 - δ, 1]."""
    return 1.0 if unit.lineage is None else 1.0 - settings.delta * unit.lineage.decay_rate


def _scope(unit: Unit, settings: ScoreSettings, session: str | None) -> tuple[float, float]:
    """Return (S, λ) of C1's visibility rule."""
    if unit.scope == "global":
        return settings.scope_rest, settings.lambda_global
    if session is not None and unit.session == session:
        return settings.scope_active, settings.lambda_session
    return (settings.scope_durable if unit.scope == "user" else settings.scope_rest), settings.lambda_user


def _recency(unit: Unit, rate: float, at: datetime) -> Contribution:
    if unit.kind == "authored":  # an authored rule does not age
        return Contribution("R", 1.0)
    moment = unit.lineage.ends if unit.lineage is not None else unit.event_time
    return Contribution("R", decay(rate, (at - moment).total_seconds()))
