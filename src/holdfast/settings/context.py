"""Settings of projection, temporal selection and assembly: how what was found becomes a context."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.errors import SettingsError, shown
from holdfast.settings.fields import Triple, setting, shares_of, within

_AGEING_KINDS = ("turn", "knowledge", "summary")


@dataclass(frozen=True, slots=True)
class ProjectionSettings:
    """Two-pass discovery (C11) and hop expansion (C12): what may enter a context."""

    first: int = setting(16, "k1: how many of the most similar units pass 1 looks at")
    second: int = setting(8, "k2: how many of them pass 2 keeps, by their final score")
    growth: int = setting(
        32, "tokens of the variant budget for which k1 and k2 grow by one unit each; 0: they do not"
    )
    min_similarity: float = setting(0.2, "θ1: pass 1 drops what is less similar to the question")
    # Provisional: with no floor a relevant unit one week old scores almost nothing; to be tuned and validated.
    floor: float = setting(
        0.85, "ω0: least weight of a unit, however old, unread and plain (provisional, not yet tuned)"
    )
    share_recency: float = setting(
        0.5, "α_r: share of recency in the weight above the floor; the three are normalised"
    )
    share_frequency: float = setting(0.2, "α_f: share of how often earlier contexts held the unit")
    share_authority: float = setting(0.3, "α_a: share of authority, which is 1 for core documents")
    rates: Mapping[str, float] = setting(
        dict.fromkeys(_AGEING_KINDS, 1e-5), "λ_r: decay per second of each kind (1e-5: half-life 19 hours)"
    )
    keyword_weight: float = setting(0.3, "κ: how much a unit gains by holding the question's keywords")
    keywords: str = setting(
        "terms", "what a keyword is: `terms` (C2), or `words` of three or more characters, as they are"
    )
    hop_share: float = setting(0.5, "η: share of its best parent's final score that a linked unit gets")
    hop_floor: float = setting(0.15, "θ_hop: linked units with a lower score are dropped")

    def __post_init__(self) -> None:
        within("projection.second", self.second, 1)
        within("projection.first", self.first, 1)
        if self.second > self.first:
            raise SettingsError(
                f"projection.second = {self.second} is above projection.first = {self.first}; "
                "pass 2 keeps some of what pass 1 looks at"
            )
        within("projection.growth", self.growth, 0)
        within("projection.min_similarity", self.min_similarity, -1.0, 1.0)
        for name in ("floor", "hop_floor"):
            within(f"projection.{name}", getattr(self, name), 0.0, 1.0)
        within("projection.keyword_weight", self.keyword_weight, 0.0)
        within("projection.hop_share", self.hop_share, 0.0, 1.0, open_low=True, open_high=True)
        _ = self.shares  # refuses NaN
        for kind in _AGEING_KINDS:
            within(f"projection.rates.{kind}", self.rates.get(kind, math.nan), 0.0, open_low=True)
        if unknown := set(self.rates) - set(_AGEING_KINDS):
            raise SettingsError(
                f"projection.rates has no kind {shown(min(unknown))}; the kinds are {', '.join(_AGEING_KINDS)}"
            )
        if self.keywords not in ("terms", "words"):
            raise SettingsError(f"projection.keywords = {shown(self.keywords)}; choose terms or words")

    @property
    def shares(self) -> Triple:
        """Return (α_r, α_f, α_a) clamped to [0, 1] and divided by their sum; all zero gives the contract's."""
        weights = {name: getattr(self, name) for name in ("share_recency", "share_frequency", "share_authority")}
        return shares_of("projection", weights, (0.5, 0.2, 0.3))


@dataclass(frozen=True, slots=True)
class TemporalSettings:
    """Temporal-compositional selection (C13): questions that need several dated units together."""

    enabled: bool = setting(default=True, doc="choose units that cover a temporal question's events together")
    activation: float = setting(0.3, "θ_ξ: least indicator at which a question counts as temporal")
    wide: bool = setting(
        default=True, doc="the indicator also knows weeks, ago, last, until, order, dates and numerals"
    )
    slot_similarity: float = setting(0.5, "θ_e: cosine at which a unit covers an event slot")
    share_relevance: float = setting(
        0.6, "μ: share of the final score in the coverage score; the three are normalised"
    )
    share_anchors: float = setting(0.2, "ν: share of anchor density")
    share_coverage: float = setting(0.2, "ρ: share of newly covered event slots")
    recovered: int = setting(10, "k_rec: how many anchor-rich units that pass 2 left out are looked at again")
    recovery_similarity: float = setting(0.15, "θ_rec: least similarity of those; below projection.min_similarity")
    anchors_required: bool = setting(default=True, doc="those must also hold an anchor")
    picks: int = setting(3, "k_cov: how many units the selector picks at most")
    stop: float = setting(0.1, "θ_stop: the selector stops when its best candidate scores less")
    keep_rest: bool = setting(default=True, doc="what pass 2 kept follows the picks; else the picks take its place")

    def __post_init__(self) -> None:
        within("temporal.activation", self.activation, 0.0, 1.0, open_low=True, open_high=True)
        for name in ("slot_similarity", "recovery_similarity"):
            within(f"temporal.{name}", getattr(self, name), -1.0, 1.0)
        for name in ("recovered", "picks"):
            within(f"temporal.{name}", getattr(self, name), 1)
        within("temporal.stop", self.stop, 0.0, 1.0)
        _ = self.shares  # refuses NaN

    @property
    def shares(self) -> Triple:
        """Return (μ, ν, ρ) clamped to [0, 1] and divided by their sum; all zero gives the contract's."""
        weights = {name: getattr(self, name) for name in ("share_relevance", "share_anchors", "share_coverage")}
        return shares_of("temporal", weights, (0.6, 0.2, 0.2))


@dataclass(frozen=True, slots=True)
class AssemblySettings:
    """The recent tail (C15) and assembly under a budget (C16)."""

    budget: int = setting(8_000, "tokens of a context when the caller names neither a budget nor a window")
    window_fraction: float = setting(0.25, "share of a host's window that becomes the budget")
    ceiling: int = setting(32_000, "most tokens that a window can become; a budget given as such is used as it is")
    hard_share: float = setting(0.30, "alpha1: share of the budget that hard rules may take")
    soft_share: float = setting(0.20, "alpha2: share that soft rules may take")
    tail_share: float = setting(0.25, "beta: share up to which the recent tail is extended")
    min_turns: int = setting(4, "m: the last turns that always come along; 0 means no tail")
    lenient_hard: bool = setting(default=True, doc="hard rules above their share: a warning; else a degraded context")
    packing: str = setting(
        "skip", "an item that does not fit: `prefix` stops there, `skip` goes on, `excerpt` cuts it"
    )
    first_hit: bool = setting(
        default=True, doc="`search`'s first hit stands first and whole; guidance and older turns make room for it"
    )
    # Chosen on chats with long answers: from 150 to 400 little changes, without it an answer costs ten short turns.
    item_tokens: int = setting(
        250, "`skip`, `excerpt`: an item that costs more, and is not the first, waits for the others; 0: none does"
    )
    excerpt_sentences: int = setting(3, "`excerpt`: how many of the best sentences are shown")

    def __post_init__(self) -> None:
        for name in ("hard_share", "soft_share", "tail_share", "window_fraction"):
            within(f"assembly.{name}", getattr(self, name), 0.0, 1.0)
        for name in ("budget", "ceiling", "excerpt_sentences"):
            within(f"assembly.{name}", getattr(self, name), 1)
        for name in ("min_turns", "item_tokens"):
            within(f"assembly.{name}", getattr(self, name), 0)
        if (total := self.hard_share + self.soft_share + self.tail_share) > 1.0 + 1e-9:
            raise SettingsError(f"assembly: the three shares add up to {total}, more than 1; lower one of them")
        if self.packing not in ("prefix", "skip", "excerpt"):
            raise SettingsError(f"assembly.packing = {shown(self.packing)}; choose prefix, skip or excerpt")


@dataclass(frozen=True, slots=True)
class AuthoredSettings:
    """Authored documents (C14)."""

    # No rules of that size fit a prompt, and any node then fits ingest.max_text_bytes; parsing takes seconds by then.
    max_bytes: int = setting(1_048_576, "largest authored document, in bytes; larger is refused whole")

    def __post_init__(self) -> None:
        within("authored.max_bytes", self.max_bytes, 1)
