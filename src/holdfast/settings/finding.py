"""Settings of analysis, strategies, fusion and scores: how units are found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.errors import SettingsError, shown
from holdfast.settings.fields import Triple, setting, shares_of, within
from holdfast.types import FIELDS

RECIPES = ("default", "reference")


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """Words of a text (C2)."""

    tokenizer: str = setting(
        "default", "how a text is cut into words: `default` looks into code, paths and dashes, `reference` is C2's"
    )
    aliases: tuple[str, ...] = setting((), "other names of things that facts speak of, as `k8s = Kubernetes`")

    def __post_init__(self) -> None:
        if self.tokenizer not in RECIPES:
            raise SettingsError(f"analysis.tokenizer = {shown(self.tokenizer)}; choose one of {', '.join(RECIPES)}")


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """Token costs (C3)."""

    ratios: str = setting("default", "characters per token by script, for budgets: `default` or `reference`")

    def __post_init__(self) -> None:
        if self.ratios not in RECIPES:
            raise SettingsError(f"tokens.ratios = {shown(self.ratios)}; choose one of {', '.join(RECIPES)}")


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """The embedder (C10): which model turns text into vectors."""

    embedder: str = setting(
        "minilm", "`minilm` or `potion` (shipped), `onnx` (a folder), `openai`, `ollama`, or `none`"
    )
    folder: str = setting("", "`onnx`: folder that holds model.onnx and tokenizer.json")
    pooling: str = setting("mean", "`onnx`: how token vectors become one: `mean`, `cls` or `none` (the model pools)")
    query_prefix: str = setting("", "text put before a question, for models trained with one")
    document_prefix: str = setting("", "text put before a unit, for models trained with one")
    max_tokens: int = setting(256, "texts are cut here before they are embedded; the words themselves are kept whole")
    url: str = setting("", "`openai` and `ollama`: base address of the endpoint")
    model: str = setting("", "`openai` and `ollama`: name of the model")
    api_key: str = setting("", "`openai`: key sent to the endpoint; never printed", secret=True)
    timeout_s: float = setting(30.0, "`openai` and `ollama`: seconds to wait for one answer")
    threads: int = setting(0, "texts embedded at the same time; 0 means one for each core")

    def __post_init__(self) -> None:
        kinds = ("minilm", "potion", "onnx", "openai", "ollama", "none")
        if self.embedder not in kinds:
            raise SettingsError(f"embedding.embedder = {shown(self.embedder)}; choose one of {', '.join(kinds)}")
        if self.pooling not in ("mean", "cls", "none"):
            raise SettingsError(f"embedding.pooling = {shown(self.pooling)}; choose one of mean, cls, none")
        within("embedding.max_tokens", self.max_tokens, 1)
        within("embedding.timeout_s", self.timeout_s, 0.0, open_low=True)
        within("embedding.threads", self.threads, 0)


@dataclass(frozen=True, slots=True)
class LexicalSettings:
    """Fielded BM25 (C4)."""

    k1: float = setting(1.2, "how slowly repeated words saturate (C4)")
    b: float = setting(0.75, "how much a long field is held back: 0 not at all, 1 fully (C4)")
    role_boost: float = setting(1.3, "factor for a unit whose role the question's act prefers (C4)")
    weights: Mapping[str, float] = setting(
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
        within("lexical.k1", self.k1, 0.0)
        within("lexical.b", self.b, 0.0, 1.0)
        within("lexical.role_boost", self.role_boost, 1.0)
        for name in FIELDS:
            within(f"lexical.weights.{name}", self.weights.get(name, math.nan), 0.0)
        if unknown := set(self.weights) - set(FIELDS):
            raise SettingsError(
                f"lexical.weights has no field {shown(min(unknown))}; the fields are {', '.join(FIELDS)}"
            )


@dataclass(frozen=True, slots=True)
class DenseSettings:
    """The Matryoshka cascade (C10)."""

    early_exit: bool = setting(
        default=False, doc="stop at the first tier that is sure enough (lossy); else the funnel"
    )
    # The contract's .65 and .75 are another embedder's. Derived by benchmarks/cascade.py for ours: no threshold keeps
    # 90 % of the exact top ten (64 dimensions hold 44 % of it, 256 hold 79 %), so neither tier is sure enough.
    exit_64: float = setting(1.0, "early exit: the best cosine at 64 dimensions that is sure enough")
    exit_256: float = setting(1.0, "early exit: the best cosine at 256 dimensions that is sure enough")

    def __post_init__(self) -> None:
        within("dense.exit_64", self.exit_64, -1.0, 1.0)
        within("dense.exit_256", self.exit_256, -1.0, 1.0)


@dataclass(frozen=True, slots=True)
class HyperSettings:
    """Hypervectors (C5)."""

    positional: bool = setting(
        default=False, doc="bind single words to their place; a word elsewhere then does not match"
    )
    weights: Mapping[str, float] = setting(
        {"topic": 0.35, "claim": 0.35, "role": 0.2, "acts": 0.1}, "weight of each field's similarity (C5)"
    )

    def __post_init__(self) -> None:
        for name in ("topic", "claim", "role", "acts"):
            within(f"hyper.weights.{name}", self.weights.get(name, math.nan), 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class RefusalSettings:
    """When a question is answered with nothing at all (C4): its best hit is too far in words and meaning together."""

    enabled: bool = setting(default=True, doc="refuse plainly unrelated questions")
    # Chosen with the harness on the development chats, names out of the question: 99.8 % or more of the answerable
    # questions are kept, and up to 22 % of another memory's are refused. A cosine of .375 refuses up to 64 %, and 2 %
    # of the answers with them (docs/concepts.md).
    coverage: float = setting(1.0, "what the matched share of the question's idf mass is divided by")
    cosine: float = setting(0.25, "what the best cosine is divided by; the two must add up to 1")

    def __post_init__(self) -> None:
        within("refusal.coverage", self.coverage, 0.0, open_low=True)
        within("refusal.cosine", self.cosine, 0.0, open_low=True)


@dataclass(frozen=True, slots=True)
class FusionSettings:
    """Fusion of the strategies' scores (C6)."""

    weights: Mapping[str, float] = setting(
        {"lexical": 1.0, "hdc-vsa": 0.7, "thinkingdb-symbolic": 0.85, "dense": 1.0},
        "weight of each strategy; one that is not listed counts 1.0",
    )
    agreement_bonus: float = setting(0.15, "added for every further strategy that found the same unit")

    def __post_init__(self) -> None:
        within("fusion.agreement_bonus", self.agreement_bonus, 0.0)
        for name, weight in self.weights.items():
            within(f"fusion.weights.{name}", weight, 0.0, open_low=True)


@dataclass(frozen=True, slots=True)
class StageSettings:
    """Stages of ours between fusion and the cuts; each mixes its signal into rel. All off in the reference recipe."""

    names_leave: bool = setting(default=True, doc="participants' names leave the question before it is embedded")
    perspective: float = setting(0.15, "share of: the unit is by the one whose words the question asks for")
    smoothing: float = setting(0.5, "most that a short turn takes over from the better of its two neighbours")
    smoothing_length: float = setting(160.0, "characters at which a turn takes over half of that")
    time_range: float = setting(0.2, "share of: the unit's event lies in the time that the question names")
    identifiers: float = setting(0.3, "share of: the unit holds the question's codes, paths and quoted words (C2)")
    mentions: float = setting(0.65, "what a unit takes over from a better one that names what it is called (C12)")
    shared_names: float = setting(0.5, "most that a unit takes over from a better one that names the same rare thing")
    shared_length: float = setting(2000.0, "characters at which a unit takes over half of that")
    rare_names: int = setting(5, "a name that stands for more units than this links none of them")
    link_parents: int = setting(5, "how many of the best units others are linked to")
    diversity: float = setting(0.5, "share that a unit loses when a better one says nearly the same")
    same_words: float = setting(0.9, "share of common words from which on two units say the same")

    def __post_init__(self) -> None:
        for name in (
            "perspective",
            "smoothing",
            "time_range",
            "identifiers",
            "mentions",
            "shared_names",
            "diversity",
        ):
            within(f"stages.{name}", getattr(self, name), 0.0, 1.0)
        for name in ("smoothing_length", "shared_length"):
            within(f"stages.{name}", getattr(self, name), 0.0, open_low=True)
        within("stages.same_words", self.same_words, 0.0, 1.0, open_low=True)
        for name in ("rare_names", "link_parents"):
            within(f"stages.{name}", getattr(self, name), 0)


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """The hybrid score (C9)."""

    # The contract's .7/.2/.1 and half-lives of hours let whatever was said last outrank the answer: on development
    # chats recency at .2 costs 2 to 5 points of recall@10, at .02 with these half-lives none (docs/evaluation.md).
    alpha: float = setting(0.88, "share of relevance; alpha, beta and gamma are divided by their sum")
    beta: float = setting(0.02, "share of recency")
    gamma: float = setting(0.1, "share of scope")
    lambda_session: float = setting(1.1e-6, "decay per second inside the active session (half-life 7 days)")
    lambda_user: float = setting(2.7e-7, "decay per second of a user's other units (half-life 30 days)")
    lambda_global: float = setting(2.2e-8, "decay per second of global units (half-life a year)")
    scope_active: float = setting(1.0, "S of a unit of the active session")
    scope_durable: float = setting(0.6, "S of a user's promoted unit")
    scope_rest: float = setting(0.3, "S of everything else")
    delta: float = setting(0.5, "how much a summary's decay rate lowers its score")

    def __post_init__(self) -> None:
        _ = self.shares  # refuses NaN
        for name in ("lambda_session", "lambda_user", "lambda_global"):
            within(f"score.{name}", getattr(self, name), 0.0, open_low=True)
        for name in ("scope_active", "scope_durable", "scope_rest", "delta"):
            within(f"score.{name}", getattr(self, name), 0.0, 1.0)

    @property
    def shares(self) -> Triple:
        """Return (α, β, γ) clamped to [0, 1] and divided by their sum; all zero gives the contract's."""
        weights = {"alpha": self.alpha, "beta": self.beta, "gamma": self.gamma}
        return shares_of("score", weights, (0.7, 0.2, 0.1))


# Authored rules do not age, so they have no rate.
@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """What a strategy may spend (C7)."""

    timeout_ms: float = setting(500.0, "time a strategy has for one question before it returns what it has")
    # Filling the cache of hypervectors takes seconds once; a question waits for a slice of it, and the next goes on.
    escalation_timeout_ms: float = setting(
        50.0, "the same for a strategy that runs only when others found too little"
    )
    max_candidates: int = setting(64, "how many candidates a strategy hands to fusion")

    def __post_init__(self) -> None:
        within("retrieval.timeout_ms", self.timeout_ms, 0.0, open_low=True)
        within("retrieval.escalation_timeout_ms", self.escalation_timeout_ms, 0.0, open_low=True)
        within("retrieval.max_candidates", self.max_candidates, 1)


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """A retrieval recipe (C7). A third party's profile is one of these, behind an entry point."""

    strategies: tuple[str, ...] = setting(("lexical",), "strategies that always run, by id")
    max_results: int = setting(20, "most hits returned unless the caller names a limit")
    min_score: float = setting(0.0, "candidates with a lower fused score are dropped")
    gap: float = setting(0.0, "candidates below this share of the best fused score are dropped")
    rank_by: str = setting("score", "`fused` ranks by relevance alone (C6), `score` by the hybrid score (C9)")
    escalation: tuple[str, ...] = setting((), "strategies that run when the first one finds too little")
    escalate_below: int = setting(4, "how few candidates of the first strategy are too little")
    mix: Mapping[str, float] = setting({}, "convex mix of the strategies' scores; empty means C6's weights and bonus")
    provisional: bool = setting(default=False, doc="its constants are a first choice, not yet tuned and validated")
    normalise: str = setting(
        "own", "`own` takes normalised scores as a strategy gives them, `best` divides by the best"
    )

    def __post_init__(self) -> None:
        for name, share in self.mix.items():
            within(f"mix.{name}", share, 0.0, 1.0)
        within("escalate_below", self.escalate_below, 0)
        if self.normalise not in ("own", "best"):
            raise SettingsError(f"normalise = {shown(self.normalise)}; choose own or best")
        within("max_results", self.max_results, 1)
        within("min_score", self.min_score, 0.0)
        within("gap", self.gap, 0.0, 1.0)
        if self.rank_by not in ("fused", "score"):
            raise SettingsError(f"rank_by = {shown(self.rank_by)}; choose fused or score")
        if not self.strategies or not all(self.strategies):
            raise SettingsError(f"strategies = {shown(self.strategies)} names no strategy; list at least one id")
