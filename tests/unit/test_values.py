"""Frozen values: what the library's `dataclass` would make, without compiling it at import."""

import copy
import dataclasses
import pickle
import subprocess
import sys
import weakref
from dataclasses import FrozenInstanceError, field

import pytest

from holdfast import values

OPTIONS = {"frozen": True, "slots": True}


def named(name, **options):
    """Return a decorator that makes one class twice, ours and the library's, both under one name."""

    def make(kind):
        kind.__qualname__ = kind.__name__ = name
        body = {key: value for key, value in vars(kind).items() if key not in ("__dict__", "__weakref__")}
        twin = type(name, kind.__bases__, body)
        return values.dataclass(**OPTIONS, **options)(kind), dataclasses.dataclass(**OPTIONS, **options)(twin)

    return make


@named("Empty")
class EMPTY:
    """No field."""


@named("One")
class ONE:
    """One field, which is a list in one value."""

    only: object = 1


@named("Several")
class SEVERAL:
    """All that a field can say."""

    first: int
    second: str = "two"
    table: dict = field(default_factory=dict)
    hidden: int = field(default=0, repr=False)
    noted: int = field(default=0, compare=False)
    unhashed: int = field(default=0, hash=False)
    last: int = field(default=9, kw_only=True)


@named("Keywords", kw_only=True)
class KEYWORDS:
    """Named only, the one without a default last."""

    second: int = 2
    first: int


@named("Checked")
class CHECKED:
    """Refuses what it is built with."""

    number: int
    other: int = 0

    def __post_init__(self):
        if self.number < 0:
            raise ValueError(self.number)


@named("Own")
class OWN:  # noqa: PLW1641 - the library gives it a hash
    """Has methods of its own."""

    number: int
    other: int = 0

    def __eq__(self, other):
        return self.number == other.number

    def __repr__(self):
        return "own"


@named("Same", eq=False)
class SAME:
    """Equal to itself alone."""

    number: int
    other: int = 0


CASES = [
    (EMPTY, [{}]),
    (ONE, [{}, {"only": 2}, {"only": float("nan")}]),
    (
        SEVERAL,
        [{"first": 1, "table": ()}, {"first": 1, "table": (), "noted": 3}, {"first": 1, "hidden": 2, "last": 3}],
    ),
    (KEYWORDS, [{"first": 1}, {"first": 1, "second": 2}, {"first": 1, "second": 3}]),
    (CHECKED, [{"number": 1}, {"number": 2, "other": 3}]),
    (OWN, [{"number": 1}, {"number": 1, "other": 3}, {"number": 2}]),
    (SAME, [{"number": 1}, {"number": 1}]),
]
each = pytest.mark.parametrize(("kinds", "given"), CASES, ids=[kinds[0].__name__ for kinds, _ in CASES])


def outcome(ask, *given, **named):
    """Return what a function returns, or the kind of error that it raises."""
    try:
        return ask(*given, **named)
    except (TypeError, ValueError) as error:
        return type(error)


def refused(made):
    return made if isinstance(made, type) else repr(made)


@each
def test_a_value_is_what_the_library_would_make(kinds, given):
    ours, theirs = ([kind(**one) for one in given] for kind in kinds)
    assert [repr(one) for one in ours] == [repr(one) for one in theirs]
    assert [[a == b for a in ours] for b in ours] == [[a == b for a in theirs] for b in theirs]
    assert repr([*map(dataclasses.asdict, ours)]) == repr([*map(dataclasses.asdict, theirs)])
    if kinds is not SAME:  # whose hash is that of its place in memory
        assert [outcome(hash, one) for one in ours] == [outcome(hash, one) for one in theirs]
    assert (kinds[0].__match_args__, kinds[0].__slots__) == (kinds[1].__match_args__, kinds[1].__slots__)
    assert ours[0] != theirs[0] or kinds is OWN


@each
def test_what_the_library_refuses_is_refused(kinds, given):
    for wrong in ({"unknown": 1}, {**given[0], "first": "a", "number": -1}, {}):
        assert refused(outcome(kinds[0], **wrong)) == refused(outcome(kinds[1], **wrong))
    assert refused(outcome(kinds[0], *range(9))) == refused(outcome(kinds[1], *range(9)))
    value = kinds[0](**given[0])
    for name in (*value.__slots__, "new"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(value, name, 1)
        with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(value, name)


@each
def test_a_changed_copy_changes_what_is_named_alone(kinds, given):
    value = kinds[0](**given[0])
    assert dataclasses.replace(value) is not value
    for name in given[-1]:
        changed = dataclasses.replace(value, **{name: given[-1][name]})
        assert getattr(changed, name) is given[-1][name]
        others = {one.name for one in dataclasses.fields(value)} - {name}
        assert {one: getattr(changed, one) for one in others} == {one: getattr(value, one) for one in others}


def test_every_value_has_a_table_of_its_own():
    one, other = SEVERAL[0](1), SEVERAL[0](1)
    one.table["key"] = 1
    assert other.table == {}


def test_a_value_that_holds_itself_is_printed():
    value = ONE[0](only=[])
    value.only.append(value)
    assert repr(value) == "One(only=[...])"


@values.dataclass(frozen=True, slots=True, weakref_slot=True)
class Carried:
    """Can be imported by its name, as pickles need."""

    number: int
    others: tuple[int, ...] = ()


def test_a_value_is_copied_pickled_and_weakly_referred_to():
    value = Carried(1, (2,))
    for made in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert made == value
    assert weakref.ref(value)() is value


def test_what_is_not_frozen_or_has_no_slots_is_the_librarys():
    @values.dataclass
    class Open:
        number: int

    one = Open(1)
    one.number = one.other = 2
    assert one == Open(2)


# The library compiles a frame of its own around them: one for each function, from Python 3.13 on one for each class.
COUNT = """
import sys, types, numpy
compiled = []

def look(event, given):
    if event == "exec" and given[0].co_names == ("__create_fn__",):
        frame = next(part for part in given[0].co_consts if isinstance(part, types.CodeType))
        compiled.extend(part for part in frame.co_consts if isinstance(part, types.CodeType))

sys.addaudithook(look)
import dataclasses, holdfast
made = {kind for name, module in [*sys.modules.items()] if name.startswith("holdfast")
        for kind in vars(module).values() if isinstance(kind, type) and dataclasses.is_dataclass(kind)}
print(len(made), len(compiled))
"""


def test_importing_compiles_fewer_functions_than_there_are_values():
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    made, compiled = map(int, done.stdout.split())
    assert compiled < made
