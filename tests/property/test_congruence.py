"""The same history gives the same answers on either store (law 11): the same order, and scores to 1e-9.

The store on PostgreSQL searches exactly here; what it may leave out otherwise is measured, not promised.
"""

import collections
import contextlib
import sys

import pytest

from conftest import EXAMPLES
from histories import small_memory
from holdfast.testing.embedders import HashEmbedder
from operations import Clock, History, difference, do

# A few hundred calls, and in the long run thousands, in longer histories.
MANY = 1_000
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
