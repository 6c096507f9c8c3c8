"""What a group of settings is made of, and how a value reaches it: declared keys, checked domains, files, conversion.

A setting is what the contract, a recipe or a user may change. What nobody changes is a constant beside the code that
uses it, with its reason.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import tomllib
from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, dataclass_transform

from holdfast.errors import SettingsError, quote_value
from holdfast.values import dataclass

FILE_NAME = "holdfast.toml"
_PREFIX = "HOLDFAST_"
_FILE_VARIABLE = f"{_PREFIX}SETTINGS"
_TOKEN_VARIABLE = f"{_PREFIX}TOKEN"
_ARGUMENT = "argument"
# What stands where a secret would be shown.
HIDDEN = "(hidden)"
# What users of the sources' systems call a profile or an embedder; every answer gives the name here.
REAL_NAMES: Mapping[str, str] = {
    "kb-fast": "fast", "kb-balanced": "balanced", "kb-thinkingdb": "thinking",
    "all-minilm-l6-v2": "minilm", "nomic-embed-text-v1.5": "nomic-768",
}  # fmt: skip
_WANTED = {float: "a number", int: "a whole number", str: "text", bool: "true or false", tuple: "a list of names"}
Triple = tuple[float, float, float]
T = TypeVar("T")
GroupRule = Callable[[Any], None]


# ------------------------------------------------------------------------------------------------- declaring


def setting(  # noqa: PLR0913 - one argument for each thing that a declaration can say
    default: object,
    doc: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float = math.inf,
    lt: float | None = None,
    choices: tuple[str, ...] = (),
    entries: tuple[str, ...] = (),
    words: bool = False,
    filled: bool = False,
    secret: bool = False,
) -> Any:  # noqa: ANN401 - stands in for any type
    """Return a dataclass field with its domain and documentation.

    The bounds of a table are those of its values, and `entries` are the names that it must have, and no others;
    every group gets a table of its own. `choices` and `words` are about each name of a list. A number without bounds
    is a share: it is clamped where it is used.
    """
    domain: dict[str, Any] = {"ge": ge, "gt": gt, "le": le, "lt": lt, "choices": choices, "entries": entries}
    domain |= {"words": words, "filled": filled}
    metadata = {"doc": doc, "secret": secret, **domain}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata, repr=not secret)


def share(default: object, doc: str) -> Any:  # noqa: ANN401 - as `setting`
    """Return a key whose value lies in [0, 1]."""
    return setting(default, doc, ge=0.0, le=1.0)


def cosine(default: float, doc: str) -> Any:  # noqa: ANN401 - as `setting`
    """Return a key whose value lies in [-1, 1]."""
    return setting(default, doc, ge=-1.0, le=1.0)


@dataclass_transform(frozen_default=True)
def group(name: str, *rules: GroupRule) -> Callable[[type[T]], type[T]]:
    """Make a frozen dataclass of a class of keys; it checks each against its domain, and the rules over several."""

    def check(self: Any) -> None:  # noqa: ANN401 - any group
        for key in dataclasses.fields(self):
            value = getattr(self, key.name)
            if isinstance(value, str) and (real := REAL_NAMES.get(value)) in key.metadata["choices"]:
                object.__setattr__(self, key.name, value := real)  # nobody has seen it yet
            _check(f"{name}.{key.name}" if name else key.name, value, key.metadata)
        for rule in rules:
            rule(self)

    def make(kind: type[T]) -> type[T]:
        kind.__post_init__ = check  # type: ignore[attr-defined]  # what a dataclass calls when it is built
        return dataclass(frozen=True, slots=True)(kind)

    return make


def normalise(weights: Collection[float], defaults: Triple) -> Triple:
    """Return three weights clamped to [0, 1] and divided by their sum; all zero gives the defaults."""
    first, second, third = (min(1.0, max(0.0, weight)) for weight in weights)
    total = first + second + third
    if total == 0.0:
        return defaults
    if math.isclose(total, 1.0, rel_tol=1e-12):  # .7 + .2 + .1 is not 1 in floats; dividing would only add noise
        return (first, second, third)
    return (first / total, second / total, third / total)


# -------------------------------------------------------------------------------------------------- checking


def _check(key: str, value: Any, domain: Mapping[str, Any]) -> None:  # noqa: ANN401 - any value
    if isinstance(value, tuple):
        _check_names(key, value, domain)
    elif domain["choices"] and value not in domain["choices"]:
        raise SettingsError(f"{key} = {quote_value(value)}; choose one of {', '.join(domain['choices'])}")
    if domain["filled"] and not value:
        raise SettingsError(f"{key} is empty; give it a name or leave the key out")
    if isinstance(value, Mapping):
        _check_table(key, value, domain)
    elif isinstance(value, int | float):
        _check_bounds(key, value, domain)


def _check_names(key: str, names: tuple[str, ...], domain: Mapping[str, Any]) -> None:
    for name in names:
        if domain["choices"] and name not in domain["choices"]:
            raise SettingsError(f"{key} names {quote_value(name)}; choose from {', '.join(domain['choices'])}")
        if domain["words"] and name.split() != [name]:
            raise SettingsError(f"{key} names {quote_value(name)}; a relation is one word, as in born_in")


def _check_table(key: str, table: Mapping[str, float], domain: Mapping[str, Any]) -> None:
    names = domain["entries"]
    for name in names or table:
        _check_bounds(f"{key}.{name}", table.get(name, math.nan), domain)
    if names and (unknown := set(table) - set(names)):
        raise SettingsError(f"{key} has no field {quote_value(min(unknown))}; the fields are {', '.join(names)}")


def _check_bounds(key: str, value: float, domain: Mapping[str, Any]) -> None:
    """Refuse NaN and whatever lies outside the bounds."""
    open_low, open_high = domain["ge"] is None, domain["lt"] is not None
    low, high = domain["gt"] if open_low else domain["ge"], domain["lt"] if open_high else domain["le"]
    if low is None:
        if math.isnan(value):
            raise SettingsError(f"{key} is not a number; choose a value inside [0, 1]")
        return
    above = low < value if open_low else low <= value
    below = value < high if open_high else value <= high
    if not (above and below) or value == math.inf:
        interval = f"{'(' if open_low else '['}{low}, {high}{')' if open_high else ']'}"
        raise SettingsError(f"{key} = {quote_value(value)} is outside {interval}; choose a value inside")


def check_order(settings: Any, lower: str, upper: str, *, equal: bool = False) -> None:  # noqa: ANN401 - it knows the groups
    """Refuse a setting that is not below another one; `equal` to it, it may be.

    Raises:
        SettingsError: it is above.
    """
    low, high = attrgetter(lower)(settings), attrgetter(upper)(settings)
    if low > high or (low == high and not equal):
        how = "above" if equal else "not below"
        raise SettingsError(f"{lower} = {low} is {how} {upper} = {high}; lower it, or raise the other")


# --------------------------------------------------------------------------------------------------- reading


class RawValue(str):
    """Text from the environment or a command line: what it means depends on the setting it is for."""

    __slots__ = ()


class SettingValue(NamedTuple):
    """A value that somebody gave, and where: `argument`, `file …` or `environment …`."""

    value: object
    origin: str


def read_origins(
    overrides: Mapping[str, object], file: str | Path | None, environ: Mapping[str, str]
) -> dict[str, SettingValue]:
    """Return what was given, by dotted key: the file's values, then the environment's, then the arguments."""
    path = _settings_file(file, environ)
    given = (
        {} if path is None else {key: SettingValue(value, f"file {path}") for key, value in _read_toml(path).items()}
    )
    for name, text in environ.items():
        if name.startswith(_PREFIX) and name not in (_FILE_VARIABLE, _TOKEN_VARIABLE):
            key = name.removeprefix(_PREFIX).lower().replace("__", ".")
            given[key] = SettingValue(RawValue(text), f"environment {name}")
    return given | {key: SettingValue(value, _ARGUMENT) for key, value in _flatten(overrides).items()}


def changed_groups(settings: Any, given: Mapping[str, SettingValue]) -> dict[str, Any]:  # noqa: ANN401 - it knows the groups
    """Return the groups of `settings` that differ when the given values are in place.

    Raises:
        SettingsError: a key is unknown, or a value is outside its domain.
    """
    changes: dict[str, dict[str, Any]] = {}
    for key, one in given.items():
        name, field, value = _convert(settings, key, one)
        keys = changes.setdefault(name, {})
        # A table keeps the entries that were not named.
        table = keys.get(field, getattr(getattr(settings, name), field))
        keys[field] = {**table, **value} if isinstance(value, dict) else value
    return {name: _replace_keys(name, getattr(settings, name), keys) for name, keys in changes.items()}


def _replace_keys(name: str, group: Any, keys: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any group
    try:
        return dataclasses.replace(group, **keys)
    except SettingsError as error:
        # A profile does not know under which name it is kept.
        raise SettingsError(str(error) if str(error).startswith(name) else f"{name}.{error}") from error


def _convert(settings: Any, key: str, given: SettingValue) -> tuple[str, str, object]:  # noqa: ANN401 - it knows the groups
    """Find the setting that a dotted key names, and give the value its type."""
    name, _, rest = key.partition(".")
    field, _, entry = rest.partition(".")
    known = groups_of(settings).get(name)
    keys = {} if known is None else {one.name: one.metadata for one in dataclasses.fields(known)}
    if field not in keys:
        told = quote_value(key) if given.origin == _ARGUMENT else f"{quote_value(key)} (from {given.origin})"
        raise SettingsError(f"there is no setting {told}; `holdfast settings` lists all of them")
    current = getattr(known, field)
    if isinstance(current, Mapping):
        if not entry:
            example = next(iter(current), "lexical")
            raise SettingsError(f"{key} is a table; set one entry of it, as in {key}.{example}")
        return name, field, {entry: _to_type(key, given.value, 1.0)}
    if entry:
        raise SettingsError(f"{name}.{field} is not a table, so there is no {quote_value(key)}")
    return name, field, _to_type(key, given.value, current, secret=keys[field]["secret"])


def _to_type(key: str, value: object, current: object, *, secret: bool = False) -> object:
    """Return `value` as the type of the setting's present value."""
    if isinstance(value, RawValue) and not isinstance(current, str | tuple):
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
    raise SettingsError(f"{key} = {HIDDEN if secret else quote_value(value)} is not {_WANTED[type(current)]}")


def _settings_file(file: str | Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the file to read: the one that is named, here or in the environment, else the user's own."""
    named = file if file is not None else environ.get(_FILE_VARIABLE) or None
    if named is not None:
        return Path(named)
    users = user_file(environ)
    # `Path.is_file` would raise: a folder that this user may not look into holds no settings of theirs.
    return users if users is not None and os.path.isfile(users) else None  # noqa: PTH113


def user_file(environ: Mapping[str, str]) -> Path | None:
    """Return where the user's own settings file belongs; a relative folder would be the working folder's again."""
    config, home = (Path(environ.get(name, "")) for name in ("XDG_CONFIG_HOME", "HOME"))
    folder = config if config.is_absolute() else home / ".config"
    return folder / "holdfast" / FILE_NAME if folder.is_absolute() else None


def user_folder() -> Path:
    """Return the folder of the user's own settings: what belongs to no file beside it lies there too."""
    found = user_file(os.environ)
    return Path.cwd() if found is None else found.parent


def server_token() -> str | None:
    """Return the token for a server that a command names: a command line is seen by others, an environment is not."""
    return os.environ.get(_TOKEN_VARIABLE) or None


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


def _read_toml(path: Path) -> dict[str, object]:
    """Return the keys of a settings file, dotted."""
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
    """Return a table of tables with dotted keys."""
    flat: dict[str, object] = {}
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{key}.")
        else:
            flat[key] = value
    return flat


# ------------------------------------------------------------------------------------------------ describing


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting as `holdfast settings` prints it."""

    key: str
    value: object
    origin: str
    doc: str


def groups_of(settings: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass of groups
    """Return the groups of settings by name."""
    found = {one.name: getattr(settings, one.name) for one in dataclasses.fields(settings)}
    return {name: group for name, group in found.items() if dataclasses.is_dataclass(group)}


def describe(settings: Any) -> list[SettingRow]:  # noqa: ANN401 - a dataclass of groups
    """Return a row for every key, and for every entry of a table."""
    [recipe_doc] = [one.metadata["doc"] for one in dataclasses.fields(settings) if one.name == "recipe"]
    rows: list[tuple[str, object, str]] = [("recipe", settings.recipe, recipe_doc)]
    for name, group in groups_of(settings).items():
        for one in dataclasses.fields(group):
            value = getattr(group, one.name)
            value = HIDDEN if one.metadata["secret"] and value else value
            rows += [(key, found, one.metadata["doc"]) for key, found in _entries(f"{name}.{one.name}", value)]
    origins, recipe = settings.origins, f"{settings.recipe} recipe"
    return [SettingRow(key, value, origins.get(key, recipe), doc) for key, value, doc in rows]


def _entries(key: str, value: object) -> list[tuple[str, object]]:
    table = value if isinstance(value, Mapping) else {}
    return [(f"{key}.{entry}", found) for entry, found in table.items()] or [(key, value)]
