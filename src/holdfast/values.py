"""The decorator of frozen values: `dataclasses.dataclass(frozen=True, slots=True)` at a tenth of its cost at import.

The library compiles eight functions for each class, of most of which no run ever calls one. Here the classes share
them, and `__init__` is compiled when the first value is made. All else is the library's: fields, `replace`, `asdict`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for a type checker it is the library's
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - exported
else:

    def dataclass(kind: type | None = None, /, **options: Any) -> Any:  # noqa: ANN401
        """Make a dataclass; what is not both frozen and slotted is made by the library."""
        if not (options.get("frozen") and options.get("slots")):
            return dataclasses.dataclass(kind, **options)
        return lambda one: _make(one, **options)


def _make(kind: Any, *, eq: bool = True, **options: bool) -> Any:  # noqa: ANN401 - any class
    own = vars(kind)
    made = dataclasses.dataclass(**{**options, "frozen": False}, init=False, repr=False, eq=False)(kind)
    params = made.__dataclass_params__
    params.init = params.repr = params.frozen = True
    params.eq = eq
    for name, method in (_SHARED | (_comparing(made) if eq else {})).items():
        if own.get(name) is None:
            setattr(made, name, method)
    made.__init__ = _compiling(made)
    return made


# --------------------------------------------------------------------------------------------------- making one


def _compiling(kind: Any) -> Callable[..., None]:  # noqa: ANN401 - any class
    """Return an `__init__` that compiles the one of its class, which takes its place."""

    def first(self: object, *given: object, **named: object) -> None:
        kind.__init__ = _initialiser(kind)
        kind.__init__(self, *given, **named)

    return first


def _initialiser(kind: Any) -> Callable[..., None]:  # noqa: ANN401 - any class
    names: dict[str, Any] = {"_missing": MISSING}
    head, body = ["self"], []
    for field in sorted(dataclasses.fields(kind), key=lambda field: field.kw_only is True):
        name, value, default = field.name, field.name, ""
        names[f"_set_{name}"] = getattr(kind, name).__set__  # of its slot: the class itself refuses
        if field.default is not MISSING:
            names[f"_default_{name}"], default = field.default, f"=_default_{name}"
        elif field.default_factory is not MISSING:
            names[f"_make_{name}"], default = field.default_factory, "=_missing"
            value = f"_make_{name}() if {name} is _missing else {name}"
        if field.kw_only and "*" not in head:
            head.append("*")
        head.append(name + default)
        body.append(f"_set_{name}(self, {value})")
    if hasattr(kind, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(head)}):\n  {'; '.join(body) or 'pass'}", names)  # noqa: S102 - of names of fields
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    return made


# ----------------------------------------------------------------------------------------------- comparing two


def _comparing(kind: Any) -> dict[str, Callable[..., Any]]:  # noqa: ANN401 - any class
    fields = dataclasses.fields(kind)
    compared = _reader([field.name for field in fields if field.compare])
    hashed = _reader([field.name for field in fields if (field.compare if field.hash is None else field.hash)])

    def equals(self: object, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return {"__eq__": equals, "__hash__": lambda self: hash(hashed(self))}


def _reader(names: Sequence[str]) -> Callable[[object], Any]:
    """Return a function that returns these fields of a value as a tuple."""
    return attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)


# ------------------------------------------------------------------------------------------- what all classes share


class _Value:
    @recursive_repr()
    def __repr__(self) -> str:
        shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in _fields(self) if field.repr)
        return f"{type(self).__qualname__}({shown})"

    def __setattr__(self, name: str, _: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> list[object]:
        return [getattr(self, field.name) for field in _fields(self)]

    def __setstate__(self, state: Sequence[object]) -> None:
        for field, value in zip(_fields(self), state, strict=True):
            object.__setattr__(self, field.name, value)


def _fields(value: Any) -> tuple[Field[Any], ...]:  # noqa: ANN401 - of any class
    return dataclasses.fields(value)


_METHODS = ("__repr__", "__setattr__", "__delattr__", "__getstate__", "__setstate__")
_SHARED = {name: vars(_Value)[name] for name in _METHODS}
