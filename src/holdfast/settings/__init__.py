"""Every constant that may be changed: one frozen group per stage, two recipes, and where each value came from.

`Settings()` is the default recipe, `Settings.reference()` carries every constant as the contract writes it.
`Settings.load()` adds the settings file and the environment; it is the only place that reads either. A file that
merely lies in the working folder is never read: whoever can put a file there must not choose where texts and keys go.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from holdfast.errors import SettingsError, shown
from holdfast.settings.context import AssemblySettings, AuthoredSettings, ProjectionSettings, TemporalSettings
from holdfast.settings.fields import HIDDEN, setting
from holdfast.settings.finding import (
    RECIPES,
    AnalysisSettings,
    DenseSettings,
    EmbeddingSettings,
    FusionSettings,
    HyperSettings,
    LexicalSettings,
    ProfileSettings,
    RefusalSettings,
    RetrievalSettings,
    ScoreSettings,
    StageSettings,
    TokenSettings,
)
from holdfast.settings.keeping import IngestSettings, StoreSettings
from holdfast.settings.lifecycle import ChangeSettings, CompactionSettings, GateSettings, SummariserSettings
from holdfast.settings.reasoning import SymbolicSettings

__all__ = [
    "PROFILES",
    "RECIPES",
    "AnalysisSettings",
    "AssemblySettings",
    "AuthoredSettings",
    "ChangeSettings",
    "CompactionSettings",
    "DenseSettings",
    "EmbeddingSettings",
    "FusionSettings",
    "GateSettings",
    "HyperSettings",
    "IngestSettings",
    "LexicalSettings",
    "Origin",
    "ProfileSettings",
    "ProjectionSettings",
    "RefusalSettings",
    "RetrievalSettings",
    "ScoreSettings",
    "Settings",
    "StageSettings",
    "StoreSettings",
    "SummariserSettings",
    "SymbolicSettings",
    "TemporalSettings",
    "TokenSettings",
    "Unread",
    "unread_file",
    "use_file",
]

ENV_PREFIX = "HOLDFAST_"
FILE_NAME = "holdfast.toml"
_FILE_VARIABLE = f"{ENV_PREFIX}SETTINGS"
# Far longer than any strategy needs: a replay is cut short by nothing but a fault.
_TIME_TO_SPARE_MS = 600_000.0


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

    recipe: str = setting("default", "which set of constants to start from: `default` or `reference`")
    analysis: AnalysisSettings = field(default_factory=AnalysisSettings)
    tokens: TokenSettings = field(default_factory=TokenSettings)
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    lexical: LexicalSettings = field(default_factory=LexicalSettings)
    dense: DenseSettings = field(default_factory=DenseSettings)
    hyper: HyperSettings = field(default_factory=HyperSettings)
    symbolic: SymbolicSettings = field(default_factory=SymbolicSettings)
    refusal: RefusalSettings = field(default_factory=RefusalSettings)
    fusion: FusionSettings = field(default_factory=FusionSettings)
    stages: StageSettings = field(default_factory=StageSettings)
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
    thinking: ProfileSettings = field(
        default_factory=lambda: ProfileSettings(
            strategies=("lexical", "thinkingdb-symbolic"), max_results=8, min_score=0.12, gap=0.25, rank_by="fused"
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
    gate: GateSettings = field(default_factory=GateSettings)
    changes: ChangeSettings = field(default_factory=ChangeSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    summariser: SummariserSettings = field(default_factory=SummariserSettings)
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
            analysis=AnalysisSettings(tokenizer="reference"),
            tokens=TokenSettings(ratios="reference"),
            dense=DenseSettings(early_exit=True, exit_64=0.65, exit_256=0.75),
            hyper=HyperSettings(positional=True),
            symbolic=SymbolicSettings(base_facts=True, further_rules=False),
            refusal=RefusalSettings(enabled=False),
            stages=StageSettings(
                names_leave=False,
                perspective=0.0,
                smoothing=0.0,
                time_range=0.0,
                identifiers=0.0,
                mentions=0.0,
                shared_names=0.0,
                diversity=0.0,
            ),
            score=ScoreSettings(
                alpha=0.7, beta=0.2, gamma=0.1, lambda_session=1e-4, lambda_user=1e-5, lambda_global=2e-6
            ),
            projection=ProjectionSettings(floor=0.0, keywords="words", growth=0),
            temporal=TemporalSettings(wide=False, anchors_required=False, keep_rest=False),
            assembly=AssemblySettings(lenient_hard=False, packing="prefix", first_hit=False, item_tokens=0),
            gate=GateSettings(threshold=0.35, similar=0.80, saturated=0.85, wide=False),
            changes=ChangeSettings(detect=False),
            compaction=CompactionSettings(min_terms=0, session_tokens=2000, covered="hide"),
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
        two underscores: `HOLDFAST_LEXICAL__K1`. The file is `file`, else `HOLDFAST_SETTINGS`, else the user's own:
        `holdfast/holdfast.toml` under `XDG_CONFIG_HOME`, which is `~/.config` when it is not set.

        Raises:
            SettingsError: a key is unknown or a value lies outside its domain.
        """
        environ = os.environ if environ is None else environ
        path = _settings_file(file, environ)
        given: dict[str, tuple[object, str]] = {}
        if path is not None:
            given |= {key: (value, f"file {path}") for key, value in _read_toml(path).items()}
        for name, text in environ.items():
            if name.startswith(ENV_PREFIX) and name != _FILE_VARIABLE:
                key = name.removeprefix(ENV_PREFIX).lower().replace("__", ".")
                given[key] = (Unread(text), f"environment {name}")
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
                if f.metadata["secret"] and value:
                    value = HIDDEN
                rows += [
                    Origin(k, v, self.origins.get(k, f"{self.recipe} recipe"), f.metadata["doc"])
                    for k, v in (entries or {key: value}).items()
                ]
        return rows


PROFILES = ("fast", "balanced", "thinking", "hybrid")
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
    return group, name, _typed(key, value, current, secret=_metadata(type(known), name)["secret"])


def _doc(owner: type, name: str) -> str:
    return str(_metadata(owner, name)["doc"])


def _metadata(owner: type, name: str) -> Mapping[str, Any]:
    return next(f.metadata for f in dataclasses.fields(owner) if f.name == name)


def use_file(path: Path) -> None:
    """Let every later `load` of this process and of its children read this file, as `HOLDFAST_SETTINGS` does."""
    os.environ[_FILE_VARIABLE] = str(path)


def unread_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the `holdfast.toml` of the working folder if there is one that `load` passes over."""
    environ = os.environ if environ is None else environ
    beside, users = Path(FILE_NAME), user_file(environ)
    if environ.get(_FILE_VARIABLE) or not beside.is_file():
        return None
    return None if users is not None and users.is_file() and users.samefile(beside) else beside


def user_file(environ: Mapping[str, str]) -> Path | None:
    """Return where the user's own settings file belongs; a relative folder would be the working folder's again."""
    config, home = (Path(environ.get(name, "")) for name in ("XDG_CONFIG_HOME", "HOME"))
    folder = config if config.is_absolute() else home / ".config"
    return folder / "holdfast" / FILE_NAME if folder.is_absolute() else None


def _settings_file(file: str | Path | None, environ: Mapping[str, str]) -> Path | None:
    named = file if file is not None else environ.get(_FILE_VARIABLE) or None
    if named is not None:
        return Path(named)
    users = user_file(environ)
    # `Path.is_file` would raise: a folder that this user may not look into holds no settings of theirs.
    return users if users is not None and os.path.isfile(users) else None  # noqa: PTH113


def _read_toml(path: Path) -> dict[str, object]:
    if path.exists() and not path.is_file():  # a pipe would keep everybody waiting
        raise SettingsError(f"the settings file {path} is no ordinary file; name one")
    try:
        return _flatten(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingsError(f"cannot read the settings file {path}: {error.strerror}; check its name") from error
    except RecursionError:
        raise SettingsError(f"{path} is nested too deeply; a setting is one key in one group") from None
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


class Unread(str):
    """Text from the environment or a command line: what it means depends on the setting it is for."""

    __slots__ = ()


def _typed(key: str, value: object, current: object, *, secret: bool = False) -> object:
    """Return `value` as the type of the setting's present value."""
    if isinstance(value, Unread) and not isinstance(current, str | tuple):
        with contextlib.suppress(ValueError, RecursionError):  # no JSON: then it is text
            value = json.loads(value)
    if isinstance(current, float) and isinstance(value, (int, float)) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # a whole number of hundreds of digits is no number here
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
    raise SettingsError(f"{key} = {HIDDEN if secret else shown(value)} is not {wanted}")
