"""Filters: the SQL they compile to equals the slow Python version, and a malformed one is refused by name."""

from datetime import datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders import NOW, column, costly, later, make_view, opened, propose
from holdfast.errors import FilterError
from holdfast.store.filters import FIELD_DEFAULTS, OPERATORS, matches, parse_filter
from holdfast.store.queries import LexicalQuery
from holdfast.types import AUTHORS, FIELDS, KINDS, ORIGINS, ROLES, SCOPES, iso

# Quotes, percent signs, escapes, wildcards and several scripts, in keys and in values; few, so that they meet.
KEYS = ["city", "a b", "it's", "50%", "京都", "author", "$[0]"]
TEXTS = [
    "",
    "Lisbon",
    "lisbon",
    "Lis",
    "it's",
    'say "hi"',
    "50%",
    "a_b",
    "\\n",
    "京都",
    "née",
    "null",
    "true",
    "1",
    "0.125",
]

# Eighths are exact in binary, so that no parser can differ from another in the last bit.
numbers = (
    st.integers(-20, 20) | st.integers(-20, 20).map(lambda n: n / 8) | st.sampled_from([2**53, -(2**63), 2**63 - 1])
)
words = st.sampled_from(TEXTS) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4
)
scalars = st.none() | st.booleans() | numbers | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)
metadata = st.dictionaries(st.sampled_from(KEYS), values, max_size=4)


def right_hand_sides(operands):
    """Draw the right-hand side of a filter: a bare value, one operator, or two that must both hold."""
    ordered = operands.filter(lambda value: value is not None and not isinstance(value, bool))
    tests = {
        **dict.fromkeys(("eq", "ne", "contains"), operands),
        **dict.fromkeys(("gt", "gte", "lt", "lte"), ordered),
        "in": st.lists(operands, max_size=4),
    }
    one = st.sampled_from(sorted(tests)).flatmap(lambda op: st.fixed_dictionaries({op: tests[op]}))
    return operands | one | st.builds(lambda a, b: {**a, **b}, one, one)


paths = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3).map(lambda path: f"metadata.{'.'.join(path)}")
on_metadata = st.dictionaries(paths, right_hand_sides(scalars), min_size=1, max_size=2)
times = st.sampled_from([NOW, later(hours=-2), later(days=400)]).flatmap(
    lambda t: st.sampled_from([t, t.isoformat()])
)
plain_fields = st.sampled_from(
    [name for name in FIELD_DEFAULTS if not name.endswith(("_time", "_at", "_from", "_to"))]
)
time_fields = st.sampled_from([name for name in FIELD_DEFAULTS if name.endswith(("_time", "_at", "_from", "_to"))])
named = st.sampled_from([*KINDS, *SCOPES, *ROLES, *AUTHORS, *ORIGINS, "s1", "cook", "u1", "m1", "oak"])
on_fields = st.dictionaries(
    plain_fields, right_hand_sides(named | scalars), min_size=1, max_size=2
) | st.dictionaries(time_fields, right_hand_sides(times | st.none() | numbers), min_size=1, max_size=2)
filters = st.recursive(
    on_metadata | on_fields,
    lambda inner: (
        st.builds(lambda parts: {"and": parts}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda parts: {"or": parts}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda part: {"not": part}, inner)
    ),
    max_leaves=5,
)


@st.composite
def remembered(draw):
    """Draw a unit as a caller gives it, and the owner keys it is remembered under."""
    role = draw(st.sampled_from(ROLES))
    unit = {
        "text": f"oak {draw(st.sampled_from(['', 'elm', 'Lisbon 50%']))}".strip(),
        "role": role,
        "kind": draw(st.sampled_from(["turn", "knowledge"])),
        "author": draw(st.sampled_from(AUTHORS)),
        "origin": draw(st.sampled_from(ORIGINS)),
        "topic": draw(st.sampled_from(["", "oak"])),
        "speaker": draw(st.sampled_from(["", "Lisbon"])),
        "message_id": draw(st.sampled_from([None, "m1"])),
        "bundle_id": draw(st.sampled_from([None, "m1"])),
        "at": draw(st.sampled_from([None, NOW, later(hours=-2)])),
        "valid_from": draw(st.sampled_from([None, NOW])),
        "valid_to": draw(st.sampled_from([None, later(days=400)])),
        "expires_at": draw(st.sampled_from([None, later(days=400)])),
        "pinned": draw(st.booleans()),
        "authority": draw(st.sampled_from([0.0, 0.125, 1.0])),
        "metadata": draw(metadata),
    }
    owner = {"session": draw(st.sampled_from([None, "s1"])), "agent": draw(st.sampled_from([None, "cook"]))}
    owner["scope"] = draw(st.sampled_from(["user", "global"] + ["session"] * (owner["session"] is not None)))
    return unit, owner


def filled(memory, given_units):
    """Remember units under their own ids, then return all of them as they are stored."""
    for i, (unit, owner) in enumerate(given_units):
        memory.remember({**unit, "id": f"u{i}"}, user="ana", **owner)
    return memory.list(user="ana", limit=None, current_only=False)


@costly
@given(st.lists(remembered(), min_size=1, max_size=6), st.lists(filters, min_size=1, max_size=8))
def test_compiled_filters_equal_the_slow_obvious_version(given_units, wanted):
    with opened() as memory:
        units = filled(memory, given_units)
        assert len(units) == len(given_units)
        for one in wanted:
            parsed = parse_filter(one)
            expected = {unit.id for unit in units if matches(parsed, unit)}
            found = memory.list(user="ana", filters=one, limit=None, current_only=False)
            assert {unit.id for unit in found} == expected, one
            inverse = memory.list(user="ana", filters={"not": one}, limit=None, current_only=False)
            assert {unit.id for unit in inverse} == {unit.id for unit in units} - expected, one


def leaves(found, path=()):
    """Yield (path, value) of every value inside metadata, lists included as they are."""
    for key, value in found.items():
        yield (*path, key), value
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))


@costly
@given(st.lists(remembered(), min_size=1, max_size=4), scalars)
def test_a_unit_is_found_by_every_value_it_holds(given_units, other):
    with opened() as memory:
        units = filled(memory, given_units)

        def found(name, test):
            expected = {unit.id for unit in units if matches(parse_filter({name: test}), unit)}
            listed = {u.id for u in memory.list(user="ana", filters={name: test}, limit=None, current_only=False)}
            assert listed == expected, {name: test}
            return listed

        for unit in units:
            for path, value in leaves(unit.metadata):
                name = f"metadata.{'.'.join(path)}"
                if isinstance(value, list):
                    for item in (item for item in value if not isinstance(item, list | dict)):
                        assert unit.id in found(name, {"contains": item})
                elif not isinstance(value, dict):
                    assert unit.id in found(name, {"eq": value})
                    assert unit.id in found(name, {"in": [other, value]})
                    assert unit.id not in found(name, {"ne": value})
                found(name, {"ne": other})


@costly
@given(st.lists(remembered(), min_size=1, max_size=6), filters)
def test_search_proposes_exactly_the_units_that_pass_the_filter(given_units, wanted):
    query = LexicalQuery(("oak",), (1.0,) * len(FIELDS), 1.2, 0.75, frozenset(), 1.3)
    with opened() as memory:
        units = filled(memory, given_units)
        parsed = parse_filter(wanted)
        view = make_view(filters=parsed, current_only=False)
        proposed = propose(memory, query, 100, view)
        assert set(proposed) == {unit.id for unit in units if matches(parsed, unit)}
        why = column(memory, "hidden", [unit.id for unit in units], view)
        hidden = {unit.id for unit, reason in zip(units, why, strict=True) if reason is not None}
        assert hidden == {unit.id for unit in units} - set(proposed)


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5), scalars, max_size=2)
)
@example({"back\\slash": 1})
@example({"tab\tbed": 1})
@example({"line\nfeed": 1})
@example({"bell\a": 1})
@example({"\u2028": 1})
@example({"a/b": 1})
def test_any_metadata_key_is_filtered_on_or_refused_and_never_silently_missed(given_metadata):
    usable = {key: value for key, value in given_metadata.items() if not set(key) & set(".\0")}
    with opened() as memory:
        memory.remember("an oak", id="u0", user="ana", metadata=usable)
        for key, value in usable.items():
            try:
                found = memory.list(user="ana", filters={f"metadata.{key}": value})
            except FilterError as refusal:
                assert "is not a path" in str(refusal)  # noqa: PT017 - a refusal is one of two right answers
            else:
                assert len(found) == 1, key


# ------------------------------------------------------------------------------------------ what they mean


def found_by(wanted, **given_metadata):
    with opened() as memory:
        memory.remember("an oak", user="ana", metadata=given_metadata)
        return len(memory.list(user="ana", filters=wanted)) == 1


@pytest.mark.parametrize(
    ("wanted", "given_metadata"),
    [
        ({"city": "Lisbon"}, {"city": "Lisbon"}),
        ({"city": {"eq": "Lisbon"}}, {"city": "Lisbon"}),
        ({"city": {"ne": "Lisbon"}}, {"city": "Porto"}),
        ({"city": {"ne": "Lisbon"}}, {}),
        ({"city": None}, {}),
        ({"city": None}, {"city": None}),
        ({"stars": 4}, {"stars": 4.0}),
        ({"stars": {"gte": 4, "lt": 6}}, {"stars": 4}),
        ({"stars": {"in": [1, 4]}}, {"stars": 4}),
        ({"name": {"gt": "a"}}, {"name": "b"}),
        ({"home.city": "Porto"}, {"home": {"city": "Porto"}}),
        ({"tags": {"contains": "red"}}, {"tags": ["blue", "red"]}),
        ({"note": {"contains": "50%"}}, {"note": "about 50% off"}),
        ({"paid": True}, {"paid": True}),
        ({"paid": {"in": [False, None]}}, {"paid": False}),
        ({"paid": {"in": [None, "x"]}}, {}),
        ({"metadata.author": "Ana"}, {"author": "Ana"}),
        ({"or": [{"city": "Porto"}, {"stars": 4}]}, {"stars": 4}),
        ({"and": [{"not": {"city": "Porto"}}, {"stars": 4}]}, {"stars": 4}),
    ],
)
def test_a_filter_finds_what_it_describes(wanted, given_metadata):
    assert found_by(wanted, **given_metadata)
    assert not found_by({"not": wanted}, **given_metadata)


@pytest.mark.parametrize(
    ("wanted", "given_metadata"),
    [
        ({"paid": True}, {"paid": 1}),
        ({"paid": 1}, {"paid": True}),
        ({"stars": "4"}, {"stars": 4}),
        ({"stars": {"gt": 3}}, {"stars": "4"}),
        ({"stars": {"gt": 3}}, {}),
        ({"city": "lisbon"}, {"city": "Lisbon"}),
        ({"note": {"contains": "a_b"}}, {"note": "axb"}),
        ({"tags": {"contains": "red"}}, {"tags": ["reddish"]}),
        ({"tags": {"contains": 1}}, {"tags": [True]}),
        ({"city": {"in": []}}, {"city": "Lisbon"}),
        ({"home.city": "Porto"}, {"home": "Porto"}),
    ],
)
def test_a_filter_does_not_stretch_what_it_describes(wanted, given_metadata):
    assert not found_by(wanted, **given_metadata)


def test_a_list_of_alternatives_may_be_long():
    assert found_by({"stars": {"in": [*range(1_500)]}}, stars=1_499)
    assert not found_by({"stars": {"in": [*range(1_500)]}}, stars=1_500)


@pytest.mark.parametrize(
    "wanted",
    [{"stars": {"in": [*range(40_000)]}}, {"or": [{"stars": n} for n in range(1_500)]}],
    ids=["a very long list", "a junction of many parts"],
)
def test_a_huge_filter_is_answered_or_refused_as_a_filter_and_is_never_the_stores_fault(wanted):
    try:
        assert found_by(wanted, stars=1_499)
    except FilterError as refusal:
        assert "filter" in str(refusal) or "stars" in str(refusal)  # noqa: PT017 - one of two right answers


# ------------------------------------------------------------------------------------------------- refusing


def nested(depth):
    return {"city": "Lisbon"} if depth == 0 else {"not": nested(depth - 1)}


@pytest.mark.parametrize(
    ("wanted", "part"),
    [
        ({}, "{}"),
        ([], "[]"),
        ("city", "'city'"),
        (7, "7"),
        ({"": 1}, "''"),
        ({3: 1}, "3"),
        ({"city": {}}, "'city'"),
        ({"city": {"like": "x"}}, "'like'"),
        ({"city": {"eq": 1, "near": 2}}, "'near'"),
        ({"city": {"in": "Lisbon"}}, "'Lisbon'"),
        ({"city": {"in": [1, {}]}}, "{}"),
        ({"city": {"gt": None}}, "None"),
        ({"city": {"lte": True}}, "True"),
        ({"city": [1]}, "[1]"),
        ({"city": float("nan")}, "nan"),
        ({"city": {"lt": float("inf")}}, "inf"),
        ({"city": 2**63}, str(2**63)),
        ({"city": b"x"}, "b'x'"),
        ({"city": datetime(2026, 1, 1)}, "2026"),  # noqa: DTZ001 - a time without a zone is the point
        ({"a..b": 1}, "'a..b'"),
        ({".a": 1}, "'.a'"),
        ({"metadata.": 1}, "'metadata.'"),
        ({'a"b': 1}, "'a\"b'"),
        ({"a\0b": 1}, "a\\x00b"),
        ({"and": []}, '"and"'),
        ({"or": {"city": 1}}, '"or"'),
        ({"or": [{"city": 1}, 5]}, "5"),
        ({"not": []}, "[]"),
        ({"not": {"and": [{"city": {"is": 1}}]}}, "'is'"),
        ({"event_time": "last week"}, "'last week'"),
        ({"event_time": {"gt": "2026-05-01T00"}}, "'2026-05-01T00'"),
        ({"valid_to": {"in": ["2026-05-01T00:00"]}}, "'2026-05-01T00:00'"),
        (nested(40), "deep"),
        ({"city": "\ud800"}, "\\ud800"),
        ({"city": {"contains": "x\udfffy"}}, "\\udfff"),
        ({"ci\ud800ty": 1}, "\\ud800"),
    ],
)
def test_a_malformed_filter_is_refused_and_the_part_is_named(wanted, part):
    with opened() as memory:
        memory.remember("an oak", user="ana")
        for call in (memory.list, lambda **given: memory.search("oak", **given)):
            with pytest.raises(FilterError) as refusal:
                call(user="ana", filters=wanted)
            assert part in str(refusal.value)


json_like = st.recursive(
    scalars | st.floats() | st.text(max_size=3) | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from([*OPERATORS, "and", "or", "not", "city", "event_time", ""]), inner, max_size=2
        )
    ),
    max_leaves=6,
)


@costly
@given(json_like.filter(lambda given: given is not None))
def test_any_value_is_a_filter_or_a_typed_refusal(wanted):
    with opened() as memory:
        memory.remember("an oak", user="ana", metadata={"city": "Lisbon"})
        try:
            parsed = parse_filter(wanted)
        except FilterError:
            with pytest.raises(FilterError):
                memory.list(user="ana", filters=wanted)
            return
        found = memory.list(user="ana", filters=wanted)
        assert bool(found) == matches(parsed, memory.list(user="ana")[0])


def test_a_time_is_compared_by_its_moment_whatever_its_zone():
    with opened() as memory:
        memory.remember("an oak", user="ana", at=NOW)
        assert memory.list(user="ana", filters={"event_time": "2026-05-04T14:00:00+02:00"})
        assert memory.list(user="ana", filters={"event_time": {"gte": NOW, "lte": iso(NOW)}})
        assert not memory.list(user="ana", filters={"event_time": {"gt": NOW}})
