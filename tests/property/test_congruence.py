"""The same history gives the same answers on either store (law 11): the same order, and scores to 1e-9.

The store on PostgreSQL searches exactly here; what it may leave out otherwise is measured, not promised.
"""

import collections
import contextlib
import itertools
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_filters import filters, remembered

from builders import costly, opened
from histories import small_memory
from holdfast.store.filters import matches, parse_filter
from holdfast.testing.contracts import HashEmbedder
from operations import Clock, History, difference, do

# A few hundred calls, and in the long run thousands, in longer histories.
MANY, EXAMPLES = 1_000, settings.default.max_examples
LENGTH, HISTORIES = (60, 5) if EXAMPLES < MANY else (600, 10)


def tell(history, one, two, calls):
    """Tell and ask two memories the same; count the verbs, with and without an error."""
    done = collections.Counter()
    for number in range(calls):
        verb, given, named = history.draw(one)
        first, second = do(one, verb, given, named), do(two, verb, given, named)
        found = difference(first, second)
        assert found is None, f"call {number}: {verb}{given!r:.200} {named!r}: {found}"
        refused = isinstance(first, tuple) and len(first) == 2 and str(first[0]).endswith("Error")
        done[verb, refused] += 1
    return done


def compare_whole(one, two):
    """Compare all that two memories keep, vectors included."""
    for tenant in ("local", "north"):
        what = {"all": True, "tenant": tenant, "vectors": True}
        assert difference(*(do(memory, "export", (), what) for memory in (one, two))) is None
    assert one.store.verify() == two.store.verify() == []


def tell_all(seed, places, calls):
    """Tell two stores a history, open them again halfway, and in the end with another embedder."""
    clock, done = Clock(), collections.Counter()
    history = History(seed, clock)
    for share, dims in ((calls // 2, 64), (calls // 4, 64), (calls // 4, 32)):
        with contextlib.ExitStack() as stack:
            memories = [
                stack.enter_context(small_memory(place, now=clock, embedder=HashEmbedder(dims))) for place in places
            ]
            # Else a thread does so beside the calls, and what is found depends on how far it has come.
            assert [memory.reembed() for memory in memories] == [0, 0]
            done += tell(history, *memories, share)
            compare_whole(*memories)
    return done


@pytest.mark.parametrize("number", range(HISTORIES))
def test_whatever_is_done_both_stores_answer_the_same(number, database, tmp_path, request, capsys):
    seed = f"{request.config.getoption('hypothesis_seed') or 0}/{number}"
    done = tell_all(seed, (tmp_path / "m.db", f"{database}?search=exact"), LENGTH)
    if EXAMPLES >= MANY:
        refused = sum(count for (_, wrong), count in done.items() if wrong)
        with capsys.disabled():
            sys.stdout.write(f"\nhistory {seed}: {done.total()} calls, {refused} of them refused by both\n")


@pytest.fixture(scope="module")
def memory(postgres):
    with postgres.database() as address, opened(path=address) as memory:
        yield memory


tenants = itertools.count()


@costly
@given(st.lists(remembered(), min_size=1, max_size=6), st.lists(filters, min_size=1, max_size=8))
def test_compiled_filters_equal_the_slow_obvious_version(memory, given_units, wanted):
    owner = {"user": "ana", "tenant": f"t{next(tenants)}"}  # each example has a memory of its own
    for number, (unit, fields) in enumerate(given_units):
        memory.remember({**unit, "id": f"u{number}"}, **owner, **fields)
    units = memory.list(**owner, limit=None, current_only=False)
    assert len(units) == len(given_units)
    for one in wanted:
        expected = {unit.id for unit in units if matches(parse_filter(one), unit)}
        found = memory.list(**owner, filters=one, limit=None, current_only=False)
        assert {unit.id for unit in found} == expected, one
        inverse = memory.list(**owner, filters={"not": one}, limit=None, current_only=False)
        assert {unit.id for unit in inverse} == {unit.id for unit in units} - expected, one
