"""What can be measured: the product as a whole or with parts switched off, and plain baselines beside it.

A part is switched off by name, so that a table shows what it adds. The baselines are what anyone could build in an
afternoon: BM25, cosine, and the two together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime
from importlib import import_module
from itertools import groupby, product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from Stemmer import Stemmer

from holdfast.context.pack import fill
from holdfast.context.plan import ContextRequest, plan_tail
from holdfast.errors import InputError, MissingExtraError, SettingsError, quote_value, say_install
from holdfast.eval.data import DatasetMessage, GoldQuestion, Haystack, Prompt, Ranking, System, SystemReader
from holdfast.kernels import Floats
from holdfast.memory import Memory
from holdfast.models.embedder import Embedder
from holdfast.openers import temporary_store
from holdfast.settings import PROFILES, AssemblySettings, RawValue, Settings
from holdfast.settings.loading import REAL_NAMES
from holdfast.text.questions import without_names
from holdfast.text.tokens import estimate
from holdfast.types import Compaction, Unit
from holdfast.types.contexts import RecalledUnit
from holdfast.values import dataclass

# ---------------------------------------------------------------------------------------------- the product

_OWNER = "user"


@dataclass(frozen=True, slots=True)
class Product:
    """Holdfast itself: `remember` every message, `search` for every question, as a program would.

    `compacted` lets summaries stand for all turns but the last four of every session before anything is asked.
    """

    name: str
    settings: Settings
    profile: str = "hybrid"
    compacted: bool = False

    @contextmanager
    def read(self, haystack: Haystack, embedder: Embedder) -> Iterator[SystemReader]:
        """Open an empty memory; messages are remembered when a question may see them."""
        moment = [haystack.messages[0].at]
        wanted = None if self.settings.embedding.embedder == "none" else embedder
        settings = self.settings.without_timeouts()
        if self.compacted:  # asked from a new session: no tail is shown, so none beyond T_base is kept back
            settings = replace(settings, assembly=replace(settings.assembly, tail_share=0.0))
        with (
            temporary_store(settings.store.path) as path,
            Memory.open(path, settings=settings, now=lambda: moment[0], embedder=wanted) as memory,
        ):
            yield ProductReader(memory, haystack, self.profile, moment, self.compacted)


@dataclass(slots=True)
class ProductReader:
    """A memory that has read one haystack."""

    memory: Memory
    haystack: Haystack
    profile: str
    moment: list[datetime]
    compacted: bool = False
    remembered: int = 0
    compactions: list[Compaction] = field(default_factory=list)
    message_of: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def rank(self, question: GoldQuestion) -> Ranking:
        """Search for one question, at its own moment."""
        self._catch_up(question)
        result = self.memory.search(
            question.as_given, user=_OWNER, profile=self.profile, reference_time=question.at, strict=True
        )
        # A summary is no message: it takes its place and is nobody's gold; its session is found all the same.
        ids = [unit_id for hit in result for unit_id in (hit.unit.id, *hit.merged_ids)]
        found = [self.message_of.get(unit_id, unit_id) for unit_id in ids]
        summarised = self.compacted or any(unit_id not in self.message_of for unit_id in ids)
        sessions = dict.fromkeys(hit.unit.session or "" for hit in result) if summarised else ()
        return Ranking(tuple(found), bool(result.trace.refused), tuple(sessions))

    def prompts(self, question: GoldQuestion, budgets: Sequence[int]) -> Mapping[int, Prompt]:
        """Assemble a context for each budget, from a new session, leaving no trace of having asked."""
        self._catch_up(question)
        found = {}
        for budget in budgets:
            context = self.memory.assemble(
                question.as_given, user=_OWNER, profile=self.profile, budget=budget, reference_time=question.at,
                track_access=False, strict=True,
            )  # fmt: skip
            shown = [(self.message_of[item.id], item) for item in context.items if item.id in self.message_of]
            whole = frozenset(name for name, item in shown if item.kind == "whole")
            earlier = frozenset(name for name, item in shown if item.earlier)
            order = tuple(name for name, _ in shown)
            found[budget] = Prompt(context.text, whole, context.tokens, order, earlier)
        return found

    def _catch_up(self, question: GoldQuestion) -> None:
        """Remember what had been said by then, session by session; time only moves forward."""
        fresh = self.haystack.messages[self.remembered : question.visible]
        for session, turns in groupby(fresh, key=lambda message: message.session):
            said = list(turns)
            try:
                self._remember(said, session)
            except InputError:  # all or nothing: whatever can be kept is kept by itself
                for message in said:
                    self._remember_alone(message, session)
        self.remembered = max(self.remembered, question.visible)
        self.moment[0] = max(self.moment[0], question.at)
        if self.compacted and fresh:
            self.compactions += self.memory.compact(user=_OWNER)

    def _remember(self, said: Sequence[DatasetMessage], session: str) -> None:
        written = self.memory.remember([_as_given(each) for each in said], user=_OWNER, session=session)
        self.message_of.update((kept.id, message.id) for kept, message in zip(written, said, strict=True))

    def _remember_alone(self, message: DatasetMessage, session: str) -> None:
        try:
            self._remember([message], session)
        except InputError as error:
            self.refused[message.id] = str(error)


def as_unit(message: DatasetMessage) -> Unit:
    """Return a message as the unit that the product would make of it, for baselines that render like the product."""
    return Unit(
        id=message.id, text=message.text, tenant=_OWNER, user=_OWNER, scope="session", session=message.session,
        event_time=message.at, recorded_time=message.at, author=message.author, speaker=message.speaker,
        kind="knowledge" if message.author == "document" else "turn",
        origin="document" if message.author == "document" else "conversation",
    )  # fmt: skip


def _as_given(message: DatasetMessage) -> dict[str, object]:
    given: dict[str, object] = {"message_id": message.id, "at": message.at}
    if message.author == "document":
        text = f"{message.title}\n{message.text}" if message.title else message.text
        return {**given, "text": text, "kind": "knowledge", "author": "document", "topic": message.title}
    given |= {"role": message.author, "content": message.text}
    return given | ({"speaker": message.speaker} if message.speaker else {})


# ----------------------------------------------------------------------------------------------- baselines


_WORD = re.compile(r"[a-z0-9]+")
# Function words that plain BM25 set-ups leave out; published figures of this kind name no list, this one fits them.
_FUNCTION_WORDS = frozenset(
    """
    a about am an and are as at be been being but by can could did do does for from had has have he her him his how i
    if in into is it its me my not of on or our she should so than that the their them then there these they this
    those to us was we were what when where which who whom why will with would you your
    """.split()
)
# More than the largest budget holds of the shortest messages.
_MOST_RENDERED = 400
# The constant of the paper that proposed reciprocal rank fusion (Cormack and others, 2009).
_RRF = 60


def plain_words(text: str) -> list[str]:
    """Return lower-case words without function words, not stemmed."""
    return [word for word in _WORD.findall(text.lower()) if word not in _FUNCTION_WORDS]


def plain_text(message: DatasetMessage) -> str:
    """Return what a plain index is given: the date and the speaker, or the title, before the text."""
    if message.speaker:
        return f"{message.at:%I:%M %p} {message.at.day} {message.at:%B %Y} {message.spoken}"
    return message.spoken


@dataclass(frozen=True, slots=True)
class Baseline:
    """A recipe: words by BM25, meaning by cosine, one of them or both.

    `plain` words are lower-cased and nothing more; `stemmed` ones are the library's own defaults with Porter's stems.
    `fusion` joins the two; `share` is the dense part of a min-max mix. Without `names`, the participants' names leave
    the question first.
    """

    name: str
    words: Literal["plain", "stemmed"] | None = None
    dense: bool = False
    fusion: Literal["rrf", "mix"] | None = None
    share: float = 0.6
    names: bool = True
    k1: float = 1.2
    b: float = 0.75

    @contextmanager
    def read(self, haystack: Haystack, embedder: Embedder) -> Iterator[SystemReader]:
        """Index the haystack: its messages, or its sessions whole where the gold names sessions."""
        yield _BaselineReader(self, haystack, embedder)


@dataclass(slots=True)
class _BaselineReader:
    recipe: Baseline
    haystack: Haystack
    embedder: Embedder
    messages: _Documents = field(init=False)
    sessions: _Documents = field(init=False)
    refused: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        by_session: dict[str, list[DatasetMessage]] = {}
        for message in self.haystack.messages:
            by_session.setdefault(message.session, []).append(message)
        whole = self.recipe.words == "plain" or self.haystack.level == "session"
        self.sessions = _Documents(self.recipe, list(by_session.values()) if whole else [], self.embedder)
        single = [[message] for message in self.haystack.messages] if self.haystack.level == "message" else []
        self.messages = _Documents(self.recipe, single, self.embedder)

    def rank(self, question: GoldQuestion) -> Ranking:
        """Order all that the question may see by score; equal ones keep their order."""
        text = question.text if self.recipe.names else without_names(question.text, self.haystack.participants)
        seen = self.haystack.messages[: question.visible]
        sessions = self.sessions.ranked(text, len({message.session for message in seen}))
        messages = self.messages.ranked(text, len(seen))
        return Ranking(
            tuple(group[0].id for group in messages), sessions=tuple(group[0].session for group in sessions)
        )

    def prompts(self, question: GoldQuestion, budgets: Sequence[int]) -> Mapping[int, Prompt]:
        """Render the ranking as the product renders what it recalls, skipping what does not fit."""
        by_id = {message.id: message for message in self.haystack.messages}
        ranked = [RecalledUnit(as_unit(by_id[item]), 0.0) for item in self.rank(question).ids[:_MOST_RENDERED]]
        found = {}
        for budget in budgets:
            plan = plan_tail(ContextRequest(budget, estimate, AssemblySettings(packing="skip")))
            context = fill(plan, ranked)
            order = tuple(item.id for item in context.items)
            found[budget] = Prompt(context.text, frozenset(order), context.tokens, order)
        return found


@dataclass(slots=True)
class _Documents:
    """Messages, or whole sessions, as one index sees them."""

    recipe: Baseline
    groups: list[list[DatasetMessage]]
    embedder: Embedder
    index: Any = field(init=False, default=None)
    vectors: NDArray[np.float32] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if not self.groups:
            return
        if self.recipe.words is not None:
            text = plain_text if self.recipe.words == "plain" else _spoken
            words = self._words([" ".join(map(text, group)) for group in self.groups])
            if any(words):  # the library cannot index nothing; without a word every document scores 0
                self.index = _bm25s().BM25(method="lucene", k1=self.recipe.k1, b=self.recipe.b)
                self.index.index(words, show_progress=False)
        if self.recipe.dense:
            self.vectors = self.embedder.embed_documents(["\n".join(map(_spoken, group)) for group in self.groups])

    def ranked(self, text: str, visible: int) -> list[list[DatasetMessage]]:
        """Return the first `visible` documents, best first."""
        if not self.groups:
            return []
        best = np.argsort(-self._scores(text, visible), kind="stable")
        return [self.groups[place] for place in best]

    def _scores(self, text: str, visible: int | None = None) -> Floats:
        """Score what may be seen. What is said later takes no part in a spread or a rank."""
        lexical, dense = self._lexical(text, visible), self._dense(text, visible)
        if lexical is None or dense is None:
            only = dense if lexical is None else lexical
            if only is None:
                raise InputError(f"baseline {quote_value(self.recipe.name)} has no words and no vectors; give it one")
            return only
        if self.recipe.fusion == "rrf":
            return 1.0 / (_RRF + _ranks(lexical)) + 1.0 / (_RRF + _ranks(dense))
        return self.recipe.share * _spread(dense) + (1.0 - self.recipe.share) * _spread(lexical)

    def _lexical(self, text: str, visible: int | None) -> Floats | None:
        if self.recipe.words is None:
            return None
        [words] = self._words([text])
        distinct = list(dict.fromkeys(words))
        if self.index is None or not distinct:
            return np.zeros(len(self.groups))[:visible]
        return np.asarray(self.index.get_scores(distinct), np.float64)[:visible]

    def _dense(self, text: str, visible: int | None) -> Floats | None:
        if self.vectors is None:
            return None
        return self.vectors[:visible].astype(np.float64) @ self.embedder.embed_query(text).astype(np.float64)

    def _words(self, texts: list[str]) -> list[list[str]]:
        if self.recipe.words == "plain":
            return [plain_words(text) for text in texts]
        found: list[list[str]] = _bm25s().tokenize(
            texts, stemmer=Stemmer("porter"), return_ids=False, show_progress=False
        )
        return found


def _spoken(message: DatasetMessage) -> str:
    return message.spoken


def _spread(scores: Floats) -> Floats:
    low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def _ranks(scores: Floats) -> Floats:
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


def _bm25s() -> Any:  # noqa: ANN401 - the library has no types
    try:
        return import_module("bm25s")
    except ImportError as error:
        raise MissingExtraError(f"the baselines need bm25s; {say_install('eval')}") from error


BASELINES: Mapping[str, Baseline] = {
    baseline.name: baseline
    for baseline in (
        Baseline("bm25", words="plain"),
        Baseline("bm25-stemmed", words="stemmed"),
        Baseline("bm25-short", words="stemmed", b=0.35),
        Baseline("dense", dense=True),
        Baseline("dense-nameless", dense=True, names=False),
        Baseline("rrf", words="stemmed", dense=True, fusion="rrf"),
        Baseline("mix", words="stemmed", dense=True, fusion="mix"),
        Baseline("mix-nameless", words="stemmed", dense=True, fusion="mix", names=False),
    )
}


# ------------------------------------------------------------------------------------------------ switches

REFERENCE = "reference"
_SYMBOLIC = "thinkingdb-symbolic"
# What can be switched off, in the order of the pipeline: strategies leave every profile, of the other parts these
# settings change (`profile` is each of them). A new stage adds its line here.
SWITCHES: Mapping[str, Mapping[str, object]] = {
    **{name: {} for name in ("lexical", "dense", "hdc-vsa", _SYMBOLIC)},
    "proof_bonus": {"symbolic.seed_bonus": 1.0, "symbolic.goal_bonus": 1.0},
    "role_boost": {"lexical.role_boost": 1.0},
    "agreement_bonus": {"fusion.agreement_bonus": 0.0},
    "refusal": {"refusal.enabled": False},
    "names_leave": {"stages.names_leave": False},
    "smoothing": {"stages.smoothing": 0.0},
    "session": {"stages.session": 0.0},
    "perspective": {"stages.perspective": 0.0},
    "own_words": {"stages.own_words": 0.0},
    "time_range": {"stages.time_range": 0.0},
    "identifiers": {"stages.identifiers": 0.0},
    "told_years": {"stages.told_years": 0.0},
    "mentions": {"stages.mentions": 0.0},
    "shared_names": {"stages.shared_names": 0.0},
    "current": {"stages.current": 0.0},
    "newest": {"stages.newest": 0.0},
    "thread": {"stages.thread": 0.0},
    "questions": {"stages.questions": 0.0},
    "diversity": {"stages.diversity": 0.0},
    "read": {"stages.read": "off"},
    "min_score": {"profile.min_score": 0.0},
    "gap": {"profile.gap": 0.0},
    "recency": {"score.beta": 0.0},
    "scope": {"score.gamma": 0.0},
    "keywords": {"projection.keyword_weight": 0.0},
    "growth": {"projection.growth": 0},
    "hops": {"projection.hop_floor": 1.0},
    "temporal": {"temporal.enabled": False},
    "first_hit": {"assembly.first_hit": False},
    "item_tokens": {"assembly.item_tokens": 0},
    "standing": {"assembly.standing_share": 0.0},
    "quality": {"score.delta": 0.0},
    "gate": {"gate.policy": "off"},
    "changes": {"changes.detect": False},
}


def switch_off(settings: Settings, names: Sequence[str]) -> Settings:
    """Return the settings with some parts off.

    Raises:
        SettingsError: there is no switch of that name.
    """
    for name in names:
        if name not in SWITCHES:
            raise SettingsError(f"there is no switch {quote_value(name)}; choose from {', '.join(SWITCHES)}")
        if not SWITCHES[name]:
            settings = _drop_strategy(settings, name)
        for key, value in SWITCHES[name].items():
            group, _, setting = key.partition(".")
            for each in PROFILES if group == "profile" else (group,):
                settings = replace(settings, **{each: replace(getattr(settings, each), **{setting: value})})
    return settings


def _drop_strategy(settings: Settings, strategy: str) -> Settings:
    """Take one strategy out of every profile that has others; one that has no other keeps it."""
    changed = {}
    for name in PROFILES:
        profile = getattr(settings, name)
        others = tuple(each for each in profile.strategies if each != strategy)
        escalation = tuple(each for each in profile.escalation if each != strategy)
        changed[name] = replace(profile, strategies=others or profile.strategies, escalation=escalation)
    return replace(settings, **changed)


def find_ablations(settings: Settings, profile: str, parts: Sequence[str] = ()) -> dict[str, Settings]:
    """Return the settings with each part, or each of `parts`, off in turn: those that change something in a profile.

    Raises:
        SettingsError: there is no switch of that name.
    """
    return {
        f"without {name}": changed
        for name in parts or SWITCHES
        if differ(settings, changed := switch_off(settings, [name]), profile)
    }


def differ(before: Settings, after: Settings, profile: str) -> bool:
    """Return whether two settings differ in anything that a search with this profile looks at."""
    others = [name for name in PROFILES if name != profile]
    if _SYMBOLIC not in getattr(before, profile).strategies:
        others.append("symbolic")
    return after != replace(before, **{name: getattr(after, name) for name in others})


# -------------------------------------------------------------------------------------------------- systems


@dataclass(frozen=True, slots=True)
class SystemSelection:
    """The systems to measure, which are variants to choose among, and which lack a part of which other one."""

    systems: tuple[System, ...]
    variants: tuple[str, ...] = ()
    ablated: Mapping[str, str] = field(default_factory=dict)


def select_systems(
    settings: Settings,
    *,
    baselines: Sequence[str] = (),
    profiles: Sequence[str] = (),
    off: Sequence[str] = (),
    ablate: bool | Sequence[str] = False,
    compacted: bool = False,
    tune: Mapping[str, Sequence[str]] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> SystemSelection:
    """Return what to measure: the baselines named, and the product unless only baselines were asked for.

    `ablate` switches every part off in turn, or the parts named.

    Raises:
        InputError: there is no baseline of that name.
        SettingsError: there is no such switch or setting, or it would change nothing that is measured.
    """
    wanted = [*BASELINES, REFERENCE] if "all" in baselines else list(dict.fromkeys(baselines))
    chosen: list[System] = [_find_baseline(name) for name in wanted]
    if not (profiles or off or ablate or compacted or tune) and baselines:
        return SystemSelection(tuple(chosen))
    ablated: dict[str, str] = {}
    names = list(dict.fromkeys(REAL_NAMES.get(name, name) for name in profiles)) or ["hybrid"]
    for profile in names:
        base = _switch_off_each(settings, off, profile)
        whole = " without ".join([profile, *dict.fromkeys(off)])
        chosen.append(Product(whole, base, profile))
        if compacted:
            chosen.append(Product(f"{whole} compacted", base, profile, compacted=True))
        if ablate:
            parts = () if ablate is True else ablate
            lacking = {f"{whole} {name}": changed for name, changed in find_ablations(base, profile, parts).items()}
            chosen += [Product(name, changed, profile) for name, changed in lacking.items()]
            ablated |= dict.fromkeys(lacking, whole)
    variants = _build_variants(tune or {}, overrides or {}, off, names[0])
    return SystemSelection((*chosen, *variants), tuple(variant.name for variant in variants), ablated)


def _switch_off_each(settings: Settings, off: Sequence[str], profile: str) -> Settings:
    for name in dict.fromkeys(off):
        changed = switch_off(settings, [name])
        if not differ(settings, changed, profile):
            raise SettingsError(
                f"switching off {quote_value(name)} changes nothing in profile {profile}; choose another"
            )
        settings = changed
    return settings


def _build_variants(
    tune: Mapping[str, Sequence[str]], overrides: Mapping[str, str], off: Sequence[str], profile: str
) -> list[Product]:
    """Return a product for each combination of the values to choose from."""
    if fixed := [key for key in tune if key.startswith("embedding.")]:
        raise SettingsError(
            f"{fixed[0]} cannot be tuned: all systems of a run share one embedder; measure it in runs of its own"
        )
    variants = []
    for values in product(*tune.values()) if tune else ():
        keys = dict(zip(tune, values, strict=True))
        name = " ".join(f"{key}={value}" for key, value in keys.items())
        changed = Settings.load({**overrides, **{key: RawValue(value) for key, value in keys.items()}})
        variants.append(Product(name, switch_off(changed, off), profile))
    return list({variant.name: variant for variant in variants}.values())


def _find_baseline(name: str) -> System:
    if name == REFERENCE:
        return Product(REFERENCE, Settings.reference())
    if name not in BASELINES:
        raise InputError(f"no baseline {quote_value(name)}; choose from {', '.join([*BASELINES, REFERENCE])}, all")
    return BASELINES[name]


def read_assignments(given: Sequence[str]) -> dict[str, RawValue]:
    """Read KEY=VALUE pairs.

    Raises:
        SettingsError: one of them is not a pair.
    """
    pairs: dict[str, RawValue] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise SettingsError(f"{quote_value(text)} is not KEY=VALUE; write it as lexical.b=0.35")
        pairs[key.strip()] = RawValue(value.strip())
    return pairs
