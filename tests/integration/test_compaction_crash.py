"""C18: whoever dies while compacting leaves the old state or the new one, and the next run completes it."""

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from builders import waiting
from histories import small_memory, talk
from holdfast.lifecycle import compact as compaction

HERE = Path(__file__).parent
COMPACTER = HERE / "compacter.py"
TURNS = 17  # three clusters and a tail
THREE = (0, 2, 5)  # boundaries: a BEGIN of a summary, one of its vector, and a COMMIT


@pytest.fixture(scope="module")
def compact_in_child():
    """Return a function that compacts in a process of its own; it gives the exit code and what was said."""
    paths = os.pathsep.join([str(HERE.parent), *sys.path])
    with subprocess.Popen(
        [sys.executable, str(COMPACTER)], env={**os.environ, "PYTHONPATH": paths}, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip

        def compact(path, fatal=-1, moment="before"):
            child.stdin.write(json.dumps([str(path), fatal, moment]) + "\n")
            child.stdin.flush()
            return json.loads(child.stdout.readline())

        yield compact
        child.stdin.close()


def told(path):
    with small_memory(path) as memory:
        return talk(memory, TURNS)


def everything(memory):
    return {unit.id: unit for unit in memory.list(user="ana", limit=None, current_only=False)}


def check_whole(memory, ids):
    """Nothing is lost, and no summary is half made; return how many turns are covered."""
    units = everything(memory)
    assert {key for key, unit in units.items() if unit.kind == "turn"} == set(ids)
    summaries = {key: unit for key, unit in units.items() if unit.kind == "summary"}
    for key, summary in summaries.items():
        assert {units[source].covered_by for source in summary.lineage.sources} == {key}
    covered = [unit for unit in units.values() if unit.covered_by is not None]
    assert {unit.covered_by for unit in covered} == set(summaries)
    assert memory.store.verify() == []
    return len(covered)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, compact_in_child):
    """Return the summaries of a run that nobody disturbs, and how many boundaries it passes."""
    path = tmp_path_factory.mktemp("undisturbed") / "memory.db"
    told(path)
    code, (boundaries, *summaries) = compact_in_child(path)
    assert code == 0
    assert len(summaries) == 4
    return boundaries, summaries


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_at_any_boundary_is_completed_by_the_next(
    tmp_path, undisturbed, compact_in_child, every
):
    boundaries, summaries = undisturbed
    assert boundaries >= 4 * len(summaries)  # a BEGIN and a COMMIT for the summary, and for its vector
    first = tmp_path / "first.db"
    ids = told(first)
    states = set()
    for fatal, moment in product(range(boundaries) if every else THREE, ("before", "after")):
        path = tmp_path / f"{fatal}{moment}.db"
        path.write_bytes(first.read_bytes())
        assert compact_in_child(path, fatal, moment) == [-9, []]
        with small_memory(path) as memory:
            states.add(check_whole(memory, ids))
            memory.compact(user="ana")
            check_whole(memory, ids)
            assert {key for key in everything(memory) if key.startswith("s-")} == set(summaries)
            assert waiting(memory, memory.store.space()) == 0
    if every:
        assert len(states) == 1 + len(summaries)  # from nothing to everything, cluster by cluster


# --------------------------------------------------------------------------------- others write meanwhile


def while_covering(monkeypatch, memory, action):
    """Let somebody act between the reading of the first cluster and its summary."""
    mark, done = memory.store.apply, []

    def covering(marks):
        if not done:
            done.append(True)
            action()
        return mark(marks)

    monkeypatch.setattr(memory.store, "apply", covering)


ACTIONS = {
    "update": lambda other, ids: other.update(ids[1], user="ana", text="quite other words"),
    "supersede": lambda other, ids: other.supersede(ids[1], by=ids[-1], user="ana"),
    "forget": lambda other, ids: other.forget(user="ana", ids=ids[1]),
    "compact": lambda other, _: other.compact(user="ana"),
}


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_a_turn_that_changes_meanwhile_is_left_for_the_next_run(tmp_path, monkeypatch, action):
    path = tmp_path / "memory.db"
    ids = told(path)
    with small_memory(path) as memory, small_memory(path) as other:
        while_covering(monkeypatch, memory, lambda: ACTIONS[action](other, ids))
        [done] = memory.compact(user="ana", session="s")
        assert done.changed >= 1
        assert done.clusters[0].summary is None
        kept = [key for key in ids if action != "forget" or key != ids[1]]
        check_whole(memory, kept)
        memory.compact(user="ana")
        check_whole(memory, kept)
        assert other.compact(user="ana")[0].summaries == ()


def test_another_process_writes_and_updates_while_a_session_is_compacted(tmp_path, monkeypatch):
    path = tmp_path / "memory.db"
    ids = told(path)
    number = iter(range(100, 200))
    with small_memory(path) as memory, small_memory(path) as other:
        summarise = compaction.summarise

        def disturbed(turns, *given, **more):
            ids.extend(talk(other, 1, start=next(number)))
            other.update(turns[0].id, user="ana", text=f"{turns[0].text}, rewritten")
            return summarise(turns, *given, **more)

        monkeypatch.setattr(compaction, "summarise", disturbed)
        [done] = memory.compact(user="ana", session="s")
        assert (done.summaries, done.changed) == ((), len(done.clusters))
        assert check_whole(memory, ids) == 0
        monkeypatch.undo()
        [again] = memory.compact(user="ana", session="s")
        assert again.changed == 0
        assert check_whole(other, ids) == again.turns > 0
        assert {unit.text.endswith("rewritten") for unit in other.expand(again.summaries[0], user="ana")} == {
            True,
            False,
        }
