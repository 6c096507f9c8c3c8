"""Every constant that may be changed: one frozen group per stage, two recipes, and where each value came from.

`Settings()` is the default recipe, `Settings.reference()` carries every constant as the contract writes it.
`Settings.load()` adds the settings file and the environment; it is the only place that reads either.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from holdfast.errors import SettingsError, shown
from holdfast.types import FIELDS

ENV_PREFIX = "HOLDFAST_"
FILE_NAME = "holdfast.toml"
RECIPES = ("default", "reference")
# Far longer than any strategy needs: a replay is cut short by nothing but a fault.
_TIME_TO_SPARE_MS = 600_000.0


def _key(default: object, doc: str) -> Any:  # noqa: ANN401 - a dataclass field stands in for any type
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata={"doc": doc})
    return field(default=default, metadata={"doc": doc})


def _within(
    name: str, value: float, low: float, high: float = math.inf, *, open_low: bool = False, open_high: bool = False
) -> None:
    """Refuse NaN and whatever lies outside the domain."""
    above = low < value if open_low else low <= value
    below = value < high if open_high else value <= high
    if not (above and below) or (math.isinf(value) and math.isinf(high)):
        domain = f"{'(' if open_low else '['}{low}, {high}{')' if open_high else ']'}"
        raise SettingsError(f"{name} = {value} is outside {domain}; choose a value inside")


Triple = tuple[float, float, float]


def _shares(group: str, weights: Mapping[str, float], defaults: Triple) -> Triple:
    """Return three weights clamped to [0, 1] and divided by their sum; all zero gives the defaults."""
    for name, weight in weights.items():
        if math.isnan(weight):
            raise SettingsError(f"{group}.{name} is not a number; choose a value inside [0, 1]")
    first, second, third = (min(1.0, max(0.0, weight)) for weight in weights.values())
    total = first + second + third
    if total == 0.0:
        return defaults
    if math.isclose(total, 1.0, rel_tol=1e-12):  # .7 + .2 + .1 is not 1 in floats; dividing would only add noise
        return (first, second, third)
    return (first / total, second / total, third / total)


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """Words of a text (C2)."""

    compound_separators: str = _key(
        "-", "characters at which a compound word is also indexed by its parts (C2: the hyphen)"
    )


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """Token costs (C3)."""

    ratios: str = _key("default", "characters per token by script, for budgets: `default` or `reference`")

    def __post_init__(self) -> None:
        if self.ratios not in RECIPES:
            raise SettingsError(f"tokens.ratios = {shown(self.ratios)}; choose one of {', '.join(RECIPES)}")


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """The embedder (C10): which model turns text into vectors."""

    embedder: str = _key("minilm", "`minilm` or `potion` (shipped), `onnx` (a folder), `openai`, `ollama`, or `none`")
    folder: str = _key("", "`onnx`: folder that holds model.onnx and tokenizer.json")
    pooling: str = _key("mean", "`onnx`: how token vectors become one: `mean`, `cls` or `none` (the model pools)")
    query_prefix: str = _key("", "text put before a question, for models trained with one")
    document_prefix: str = _key("", "text put before a unit, for models trained with one")
    max_tokens: int = _key(256, "texts are cut here before they are embedded; the words themselves are kept whole")
    url: str = _key("", "`openai` and `ollama`: base address of the endpoint")
    model: str = _key("", "`openai` and `ollama`: name of the model")
    api_key: str = _key("", "`openai`: key sent to the endpoint; never printed")
    timeout_s: float = _key(30.0, "`openai` and `ollama`: seconds to wait for one answer")
    threads: int = _key(0, "texts embedded at the same time; 0 means one for each core")

    def __post_init__(self) -> None:
        kinds = ("minilm", "potion", "onnx", "openai", "ollama", "none")
        if self.embedder not in kinds:
            raise SettingsError(f"embedding.embedder = {shown(self.embedder)}; choose one of {', '.join(kinds)}")
        if self.pooling not in ("mean", "cls", "none"):
            raise SettingsError(f"embedding.pooling = {shown(self.pooling)}; choose one of mean, cls, none")
        _within("embedding.max_tokens", self.max_tokens, 1)
        _within("embedding.timeout_s", self.timeout_s, 0.0, open_low=True)
        _within("embedding.threads", self.threads, 0)


@dataclass(frozen=True, slots=True)
class LexicalSettings:
    """Fielded BM25 (C4)."""

    k1: float = _key(1.2, "how slowly repeated words saturate (C4)")
    b: float = _key(0.75, "how much a long field is held back: 0 not at all, 1 fully (C4)")
    role_boost: float = _key(1.3, "factor for a unit whose role the question's act prefers (C4)")
    weights: Mapping[str, float] = _key(
        {
            "topic": 1.5,
            "claim": 1.0,
            "procedure": 1.0,
            "utility_acts": 0.8,
            "utility_note": 0.6,
            "condition": 0.6,
            "role": 0.5,
        },
        "weight of each field (C4)",
    )

    def __post_init__(self) -> None:
        _within("lexical.k1", self.k1, 0.0)
        _within("lexical.b", self.b, 0.0, 1.0)
        _within("lexical.role_boost", self.role_boost, 1.0)
        for name in FIELDS:
            _within(f"lexical.weights.{name}", self.weights.get(name, math.nan), 0.0)
        if unknown := set(self.weights) - set(FIELDS):
            raise SettingsError(
                f"lexical.weights has no field {shown(min(unknown))}; the fields are {', '.join(FIELDS)}"
            )


@dataclass(frozen=True, slots=True)
class DenseSettings:
    """The Matryoshka cascade (C10)."""

    early_exit: bool = _key(default=False, doc="stop at the first tier that is sure enough (lossy); else the funnel")
    # The contract's .65 and .75 are another embedder's. Derived by benchmarks/cascade.py for ours: no threshold keeps
    # 90 % of the exact top ten (64 dimensions hold 44 % of it, 256 hold 79 %), so neither tier is sure enough.
    exit_64: float = _key(1.0, "early exit: the best cosine at 64 dimensions that is sure enough")
    exit_256: float = _key(1.0, "early exit: the best cosine at 256 dimensions that is sure enough")

    def __post_init__(self) -> None:
        _within("dense.exit_64", self.exit_64, -1.0, 1.0)
        _within("dense.exit_256", self.exit_256, -1.0, 1.0)


@dataclass(frozen=True, slots=True)
class HyperSettings:
    """Hypervectors (C5)."""

    positional: bool = _key(
        default=False, doc="bind single words to their place; a word elsewhere then does not match"
    )
    weights: Mapping[str, float] = _key(
        {"topic": 0.35, "claim": 0.35, "role": 0.2, "acts": 0.1}, "weight of each field's similarity (C5)"
    )

    def __post_init__(self) -> None:
        for name in ("topic", "claim", "role", "acts"):
            _within(f"hyper.weights.{name}", self.weights.get(name, math.nan), 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class RefusalSettings:
    """When a question is answered with nothing at all (C4): its best hit is too far in words and meaning together."""

    enabled: bool = _key(default=True, doc="refuse plainly unrelated questions")
    # Derived by benchmarks/refusal.py: every answerable question kept, 57 % of unanswerable ones refused, and 48 % on
    # conversations not derived from. A stricter rule would refuse more, and answers with them.
    coverage: float = _key(1.0, "what the matched share of the question's idf mass is divided by")
    cosine: float = _key(0.375, "what the best cosine is divided by; the two must add up to 1")

    def __post_init__(self) -> None:
        _within("refusal.coverage", self.coverage, 0.0, open_low=True)
        _within("refusal.cosine", self.cosine, 0.0, open_low=True)


@dataclass(frozen=True, slots=True)
class FusionSettings:
    """Fusion of the strategies' scores (C6)."""

    weights: Mapping[str, float] = _key(
        {"lexical": 1.0, "hdc-vsa": 0.7, "thinkingdb-symbolic": 0.85, "dense": 1.0},
        "weight of each strategy; one that is not listed counts 1.0",
    )
    agreement_bonus: float = _key(0.15, "added for every further strategy that found the same unit")

    def __post_init__(self) -> None:
        _within("fusion.agreement_bonus", self.agreement_bonus, 0.0)
        for name, weight in self.weights.items():
            _within(f"fusion.weights.{name}", weight, 0.0, open_low=True)


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """The hybrid score (C9)."""

    alpha: float = _key(0.7, "share of relevance; alpha, beta and gamma are divided by their sum")
    beta: float = _key(0.2, "share of recency")
    gamma: float = _key(0.1, "share of scope")
    lambda_session: float = _key(1e-4, "decay per second inside the active session (half-life 1.9 hours)")
    lambda_user: float = _key(1e-5, "decay per second of a user's other units (half-life 19 hours)")
    lambda_global: float = _key(2e-6, "decay per second of global units (half-life 4 days)")
    scope_active: float = _key(1.0, "S of a unit of the active session")
    scope_durable: float = _key(0.6, "S of a user's promoted unit")
    scope_rest: float = _key(0.3, "S of everything else")
    delta: float = _key(0.5, "how much a summary's decay rate lowers its score")

    def __post_init__(self) -> None:
        _ = self.shares  # refuses NaN
        for name in ("lambda_session", "lambda_user", "lambda_global"):
            _within(f"score.{name}", getattr(self, name), 0.0, open_low=True)
        for name in ("scope_active", "scope_durable", "scope_rest", "delta"):
            _within(f"score.{name}", getattr(self, name), 0.0, 1.0)

    @property
    def shares(self) -> Triple:
        """Return (α, β, γ) clamped to [0, 1] and divided by their sum; all zero gives the contract's."""
        weights = {"alpha": self.alpha, "beta": self.beta, "gamma": self.gamma}
        return _shares("score", weights, (0.7, 0.2, 0.1))


# Authored rules do not age, so they have no rate.
_AGEING_KINDS = ("turn", "knowledge", "summary")


@dataclass(frozen=True, slots=True)
class ProjectionSettings:
    """Two-pass discovery (C11) and hop expansion (C12): what may enter a context."""

    first: int = _key(16, "k1: how many of the most similar units pass 1 looks at")
    second: int = _key(8, "k2: how many of them pass 2 keeps, by their final score")
    growth: int = _key(0, "tokens of the variant budget for which k1 and k2 grow by one unit each; 0: they do not")
    min_similarity: float = _key(0.2, "θ1: pass 1 drops what is less similar to the question")
    # Provisional: with no floor a relevant unit one week old scores almost nothing; to be tuned and validated.
    floor: float = _key(
        0.85, "ω0: least weight of a unit, however old, unread and plain (provisional, not yet tuned)"
    )
    share_recency: float = _key(0.5, "α_r: share of recency in the weight above the floor; the three are normalised")
    share_frequency: float = _key(0.2, "α_f: share of how often earlier contexts held the unit")
    share_authority: float = _key(0.3, "α_a: share of authority, which is 1 for core documents")
    rates: Mapping[str, float] = _key(
        dict.fromkeys(_AGEING_KINDS, 1e-5), "λ_r: decay per second of each kind (1e-5: half-life 19 hours)"
    )
    keyword_weight: float = _key(0.3, "κ: how much a unit gains by holding the question's keywords")
    keywords: str = _key(
        "terms", "what a keyword is: `terms` (C2), or `words` of three or more characters, as they are"
    )
    hop_share: float = _key(0.5, "η: share of its best parent's final score that a linked unit gets")
    hop_floor: float = _key(0.15, "θ_hop: linked units with a lower score are dropped")

    def __post_init__(self) -> None:
        _within("projection.second", self.second, 1)
        _within("projection.first", self.first, 1)
        if self.second > self.first:
            raise SettingsError(
                f"projection.second = {self.second} is above projection.first = {self.first}; "
                "pass 2 keeps some of what pass 1 looks at"
            )
        _within("projection.growth", self.growth, 0)
        _within("projection.min_similarity", self.min_similarity, -1.0, 1.0)
        for name in ("floor", "hop_floor"):
            _within(f"projection.{name}", getattr(self, name), 0.0, 1.0)
        _within("projection.keyword_weight", self.keyword_weight, 0.0)
        _within("projection.hop_share", self.hop_share, 0.0, 1.0, open_low=True, open_high=True)
        _ = self.shares  # refuses NaN
        for kind in _AGEING_KINDS:
            _within(f"projection.rates.{kind}", self.rates.get(kind, math.nan), 0.0, open_low=True)
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
        return _shares("projection", weights, (0.5, 0.2, 0.3))


@dataclass(frozen=True, slots=True)
class TemporalSettings:
    """Temporal-compositional selection (C13): questions that need several dated units together."""

    activation: float = _key(0.3, "θ_ξ: least indicator at which a question counts as temporal")
    wide: bool = _key(default=True, doc="the indicator also knows weeks, ago, last, until, order, dates and numerals")
    slot_similarity: float = _key(0.5, "θ_e: cosine at which a unit covers an event slot")
    share_relevance: float = _key(0.6, "μ: share of the final score in the coverage score; the three are normalised")
    share_anchors: float = _key(0.2, "ν: share of anchor density")
    share_coverage: float = _key(0.2, "ρ: share of newly covered event slots")
    recovered: int = _key(10, "k_rec: how many anchor-rich units that pass 2 left out are looked at again")
    recovery_similarity: float = _key(0.15, "θ_rec: least similarity of those; below projection.min_similarity")
    anchors_required: bool = _key(default=True, doc="those must also hold an anchor")
    picks: int = _key(3, "k_cov: how many units the selector picks at most")
    stop: float = _key(0.1, "θ_stop: the selector stops when its best candidate scores less")
    keep_rest: bool = _key(default=True, doc="what pass 2 kept follows the picks; else the picks take its place")

    def __post_init__(self) -> None:
        _within("temporal.activation", self.activation, 0.0, 1.0, open_low=True, open_high=True)
        for name in ("slot_similarity", "recovery_similarity"):
            _within(f"temporal.{name}", getattr(self, name), -1.0, 1.0)
        for name in ("recovered", "picks"):
            _within(f"temporal.{name}", getattr(self, name), 1)
        _within("temporal.stop", self.stop, 0.0, 1.0)
        _ = self.shares  # refuses NaN

    @property
    def shares(self) -> Triple:
        """Return (μ, ν, ρ) clamped to [0, 1] and divided by their sum; all zero gives the contract's."""
        weights = {name: getattr(self, name) for name in ("share_relevance", "share_anchors", "share_coverage")}
        return _shares("temporal", weights, (0.6, 0.2, 0.2))


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """What a strategy may spend (C7)."""

    timeout_ms: float = _key(500.0, "time a strategy has for one question before it returns what it has")
    # Filling the cache of hypervectors takes seconds once; a question waits for a slice of it, and the next goes on.
    escalation_timeout_ms: float = _key(50.0, "the same for a strategy that runs only when others found too little")
    max_candidates: int = _key(64, "how many candidates a strategy hands to fusion")

    def __post_init__(self) -> None:
        _within("retrieval.timeout_ms", self.timeout_ms, 0.0, open_low=True)
        _within("retrieval.escalation_timeout_ms", self.escalation_timeout_ms, 0.0, open_low=True)
        _within("retrieval.max_candidates", self.max_candidates, 1)


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """A retrieval recipe (C7). A third party's profile is one of these, behind an entry point."""

    strategies: tuple[str, ...] = _key(("lexical",), "strategies that always run, by id")
    max_results: int = _key(20, "most hits returned; a caller may ask for fewer")
    min_score: float = _key(0.0, "candidates with a lower fused score are dropped")
    gap: float = _key(0.0, "candidates below this share of the best fused score are dropped")
    rank_by: str = _key("score", "`fused` ranks by relevance alone (C6), `score` by the hybrid score (C9)")
    escalation: tuple[str, ...] = _key((), "strategies that run when the first one finds too little")
    escalate_below: int = _key(4, "how few candidates of the first strategy are too little")
    mix: Mapping[str, float] = _key({}, "convex mix of the strategies' scores; empty means C6's weights and bonus")
    provisional: bool = _key(default=False, doc="its constants are a first choice, not yet tuned and validated")
    normalise: str = _key("own", "`own` takes normalised scores as a strategy gives them, `best` divides by the best")

    def __post_init__(self) -> None:
        for name, share in self.mix.items():
            _within(f"mix.{name}", share, 0.0, 1.0)
        _within("escalate_below", self.escalate_below, 0)
        if self.normalise not in ("own", "best"):
            raise SettingsError(f"normalise = {shown(self.normalise)}; choose own or best")
        _within("max_results", self.max_results, 1)
        _within("min_score", self.min_score, 0.0)
        _within("gap", self.gap, 0.0, 1.0)
        if self.rank_by not in ("fused", "score"):
            raise SettingsError(f"rank_by = {shown(self.rank_by)}; choose fused or score")
        if not self.strategies or not all(self.strategies):
            raise SettingsError(f"strategies = {shown(self.strategies)} names no strategy; list at least one id")


@dataclass(frozen=True, slots=True)
class AssemblySettings:
    """The recent tail (C15) and assembly under a budget (C16)."""

    budget: int = _key(8_000, "tokens of a context when the caller names neither a budget nor a window")
    window_fraction: float = _key(0.25, "share of a host's window that becomes the budget")
    ceiling: int = _key(32_000, "most tokens that a window can become; a budget given as such is used as it is")
    hard_share: float = _key(0.30, "alpha1: share of the budget that hard rules may take")
    soft_share: float = _key(0.20, "alpha2: share that soft rules may take")
    tail_share: float = _key(0.25, "beta: share up to which the recent tail is extended")
    min_turns: int = _key(4, "m: the last turns that always come along; 0 means no tail")
    lenient_hard: bool = _key(default=True, doc="hard rules above their share: a warning; else a degraded context")
    packing: str = _key("skip", "an item that does not fit: `prefix` stops there, `skip` goes on, `excerpt` cuts it")
    excerpt_sentences: int = _key(3, "`excerpt`: how many of the best sentences are shown")

    def __post_init__(self) -> None:
        for name in ("hard_share", "soft_share", "tail_share", "window_fraction"):
            _within(f"assembly.{name}", getattr(self, name), 0.0, 1.0)
        for name in ("budget", "ceiling", "excerpt_sentences"):
            _within(f"assembly.{name}", getattr(self, name), 1)
        _within("assembly.min_turns", self.min_turns, 0)
        if (total := self.hard_share + self.soft_share + self.tail_share) > 1.0 + 1e-9:
            raise SettingsError(f"assembly: the three shares add up to {total}, more than 1; lower one of them")
        if self.packing not in ("prefix", "skip", "excerpt"):
            raise SettingsError(f"assembly.packing = {shown(self.packing)}; choose prefix, skip or excerpt")


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """Limits of what is taken in."""

    max_text_bytes: int = _key(1_048_576, "longest text of one unit, in UTF-8 bytes; longer is refused whole")
    max_metadata_bytes: int = _key(65_536, "largest metadata of one unit, as JSON bytes")

    def __post_init__(self) -> None:
        _within("ingest.max_text_bytes", self.max_text_bytes, 1)
        _within("ingest.max_metadata_bytes", self.max_metadata_bytes, 2)


@dataclass(frozen=True, slots=True)
class AuthoredSettings:
    """Authored documents (C14)."""

    # No rules of that size fit a prompt, and any node then fits ingest.max_text_bytes; parsing takes seconds by then.
    max_bytes: int = _key(1_048_576, "largest authored document, in bytes; larger is refused whole")

    def __post_init__(self) -> None:
        _within("authored.max_bytes", self.max_bytes, 1)


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The store (architecture)."""

    path: str = _key("holdfast.db", "database file used when none is named; `:memory:` keeps nothing")
    tenant: str = _key("local", "tenant used when none is named")
    user: str = _key("me", "whose memory the command line opens when none is named; a program always names one")
    busy_timeout_ms: int = _key(10_000, "how long to wait for another process's write before giving up")

    def __post_init__(self) -> None:
        _within("store.busy_timeout_ms", self.busy_timeout_ms, 0)
        for name in ("path", "tenant", "user"):
            if not getattr(self, name):
                raise SettingsError(f"store.{name} is empty; give it a name or leave the key out")


@dataclass(frozen=True, slots=True)
class Origin:
    """One setting as `holdfast settings` prints it."""

    key: str
    value: object
    origin: str
    doc: str


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, grouped by stage. Immutable; validated when built."""

    recipe: str = _key("default", "which set of constants to start from: `default` or `reference`")
    analysis: AnalysisSettings = field(default_factory=AnalysisSettings)
    tokens: TokenSettings = field(default_factory=TokenSettings)
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    lexical: LexicalSettings = field(default_factory=LexicalSettings)
    dense: DenseSettings = field(default_factory=DenseSettings)
    hyper: HyperSettings = field(default_factory=HyperSettings)
    refusal: RefusalSettings = field(default_factory=RefusalSettings)
    fusion: FusionSettings = field(default_factory=FusionSettings)
    score: ScoreSettings = field(default_factory=ScoreSettings)
    projection: ProjectionSettings = field(default_factory=ProjectionSettings)
    temporal: TemporalSettings = field(default_factory=TemporalSettings)
    retrieval: RetrievalSettings = field(default_factory=RetrievalSettings)
    fast: ProfileSettings = field(
        default_factory=lambda: ProfileSettings(max_results=3, min_score=0.30, gap=0.50, rank_by="fused")
    )
    balanced: ProfileSettings = field(
        default_factory=lambda: ProfileSettings(
            max_results=7, min_score=0.15, gap=0.35, rank_by="fused", escalation=("hdc-vsa",)
        )
    )
    # Provisional: the mix of a first exploration, to be tuned and validated by the evaluation harness.
    hybrid: ProfileSettings = field(
        default_factory=lambda: ProfileSettings(
            strategies=("lexical", "dense"), max_results=20, min_score=0.12, gap=0.25, rank_by="score",
            escalation=("hdc-vsa",), mix={"dense": 0.6, "lexical": 0.4, "hdc-vsa": 0.1}, normalise="best",
            provisional=True,
        )
    )  # fmt: skip
    assembly: AssemblySettings = field(default_factory=AssemblySettings)
    ingest: IngestSettings = field(default_factory=IngestSettings)
    authored: AuthoredSettings = field(default_factory=AuthoredSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    origins: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        projection, temporal = self.projection, self.temporal
        if temporal.recovery_similarity >= projection.min_similarity:
            raise SettingsError(
                f"temporal.recovery_similarity = {temporal.recovery_similarity} is not below "
                f"projection.min_similarity = {projection.min_similarity}; lower it, or raise the other"
            )
        if temporal.picks > projection.second:
            raise SettingsError(
                f"temporal.picks = {temporal.picks} is above projection.second = {projection.second}; "
                "lower it, or raise the other"
            )

    @classmethod
    def reference(cls) -> Self:
        """Return the reference recipe: every constant exactly as the contract gives it."""
        return cls(
            recipe="reference",
            tokens=TokenSettings(ratios="reference"),
            dense=DenseSettings(early_exit=True, exit_64=0.65, exit_256=0.75),
            hyper=HyperSettings(positional=True),
            refusal=RefusalSettings(enabled=False),
            projection=ProjectionSettings(floor=0.0, keywords="words"),
            temporal=TemporalSettings(wide=False, anchors_required=False, keep_rest=False),
            assembly=AssemblySettings(lenient_hard=False, packing="prefix"),
            # C7: there, sim is the dense cosine and rel = max(0, sim).
            hybrid=dataclasses.replace(
                cls().hybrid,
                mix={"dense": 1.0, "lexical": 0.0, "hdc-vsa": 0.0},
                normalise="own",
                provisional=False,
            ),
        )

    @classmethod
    def load(
        cls,
        overrides: Mapping[str, object] | None = None,
        *,
        file: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Self:
        """Build settings from (strongest first) `overrides`, `HOLDFAST_*`, a TOML file and the recipe.

        Keys of `overrides` are dotted: `{"lexical.k1": 1.5}`. An environment name joins group and key with
        two underscores: `HOLDFAST_LEXICAL__K1`. The file is `file`, else `HOLDFAST_SETTINGS`, else
        `holdfast.toml` in the working folder when there is one.

        Raises:
            SettingsError: a key is unknown or a value lies outside its domain.
        """
        environ = os.environ if environ is None else environ
        path = _settings_file(file, environ)
        given: dict[str, tuple[object, str]] = {}
        if path is not None:
            given |= {key: (value, f"file {path.name}") for key, value in _flatten(_read_toml(path)).items()}
        for name, text in environ.items():
            if name.startswith(ENV_PREFIX) and name != f"{ENV_PREFIX}SETTINGS":
                key = name.removeprefix(ENV_PREFIX).lower().replace("__", ".")
                given[key] = (_Unread(text), f"environment {name}")
        given |= {key: (value, "argument") for key, value in _flatten(overrides or {}).items()}
        return cls._build(given)

    @classmethod
    def _build(cls, given: Mapping[str, tuple[object, str]]) -> Self:
        recipe = given.get("recipe", ("default", ""))[0]
        if recipe not in RECIPES:
            raise SettingsError(f"recipe = {shown(recipe)}; choose one of {', '.join(RECIPES)}")
        start = cls.reference() if recipe == "reference" else cls()
        groups: dict[str, dict[str, object]] = {}
        for key, (value, _) in given.items():
            if key != "recipe":
                group, name, converted = _convert(start, key, value)
                groups.setdefault(group, {})
                if isinstance(converted, dict):
                    converted = {**groups[group].get(name, {}), **converted}  # type: ignore[dict-item]
                groups[group][name] = converted
        merged = {group: _changed(start, group, changes) for group, changes in groups.items()}
        origins = {key: origin for key, (_, origin) in given.items()}
        return dataclasses.replace(start, origins=origins, **merged)

    def unhurried(self) -> Self:
        """Return the same settings with time to spare: such runs come out alike on a busy machine too (law 11)."""
        patient = dataclasses.replace(
            self.retrieval, timeout_ms=_TIME_TO_SPARE_MS, escalation_timeout_ms=_TIME_TO_SPARE_MS
        )
        return dataclasses.replace(self, retrieval=patient)

    def describe(self) -> list[Origin]:
        """Return every key with its value, where the value came from, and what it does."""
        rows = [
            Origin(
                "recipe", self.recipe, self.origins.get("recipe", f"{self.recipe} recipe"), _doc(Settings, "recipe")
            )
        ]
        for group in _GROUPS:
            settings = getattr(self, group)
            for f in dataclasses.fields(settings):
                value, key = getattr(settings, f.name), f"{group}.{f.name}"
                entries = {f"{key}.{entry}": v for entry, v in value.items()} if isinstance(value, Mapping) else {}
                if f.name in _SECRETS and value:
                    value = "(hidden)"
                rows += [
                    Origin(k, v, self.origins.get(k, f"{self.recipe} recipe"), f.metadata["doc"])
                    for k, v in (entries or {key: value}).items()
                ]
        return rows


PROFILES = ("fast", "balanced", "hybrid")
_SECRETS = frozenset({"api_key"})
_GROUPS = tuple(f.name for f in dataclasses.fields(Settings) if f.name not in ("recipe", "origins"))


def _changed(settings: Settings, group: str, changes: Mapping[str, object]) -> Any:  # noqa: ANN401 - that group
    current = getattr(settings, group)
    try:
        return dataclasses.replace(current, **_merge_tables(current, changes))
    except SettingsError as error:
        # A profile does not know under which name it is kept.
        raise SettingsError(f"{group}.{error}" if group in PROFILES else str(error)) from error


def _merge_tables(group: object, changes: Mapping[str, object]) -> dict[str, object]:
    """Let a table keep the entries that were not named."""
    return {
        name: {**getattr(group, name), **value} if isinstance(value, dict) else value
        for name, value in changes.items()
    }


def _convert(settings: Settings, key: str, value: object) -> tuple[str, str, object]:
    """Find the setting a dotted key names and give the value its type."""
    group, _, rest = key.partition(".")
    name, _, entry = rest.partition(".")
    known = getattr(settings, group) if group in _GROUPS else None
    if known is None or name not in {f.name for f in dataclasses.fields(known)}:
        raise SettingsError(f"there is no setting {shown(key)}; `holdfast settings` lists all of them")
    current = getattr(known, name)
    if isinstance(current, Mapping):
        if not entry:
            example = next(iter(current), "lexical")
            raise SettingsError(f"{key} is a table; set one entry of it, as in {key}.{example}")
        return group, name, {entry: _typed(key, value, 1.0)}
    if entry:
        raise SettingsError(f"{group}.{name} is not a table, so there is no {shown(key)}")
    return group, name, _typed(key, value, current)


def _doc(owner: type, name: str) -> str:
    return str(next(f.metadata["doc"] for f in dataclasses.fields(owner) if f.name == name))


def _settings_file(file: str | Path | None, environ: Mapping[str, str]) -> Path | None:
    named = file if file is not None else environ.get(f"{ENV_PREFIX}SETTINGS")
    if named is not None:
        return Path(named)
    beside = Path(FILE_NAME)
    return beside if beside.is_file() else None


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read the settings file {path}: {error.strerror}; check its name") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}; mend that line") from error


def _flatten(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{key}.")
        else:
            flat[key] = value
    return flat


class _Unread(str):
    """Text from the environment: what it means depends on the setting it is for."""

    __slots__ = ()


def _typed(key: str, value: object, current: object) -> object:
    """Return `value` as the type of the setting's present value."""
    if isinstance(value, _Unread) and not isinstance(current, str | tuple):
        with contextlib.suppress(json.JSONDecodeError):
            value = json.loads(value)
    if isinstance(current, float) and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(current, str) and isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value)
    if isinstance(current, tuple) and isinstance(value, (str, list, tuple)):
        return tuple(value.split(",")) if isinstance(value, str) else tuple(str(item) for item in value)
    if type(value) is type(current):
        return value
    wanted = {
        float: "a number",
        int: "a whole number",
        str: "text",
        bool: "true or false",
        tuple: "a list of names",
    }[type(current)]
    raise SettingsError(f"{key} = {shown(value)} is not {wanted}")
