"""Any number of processes embed what waits in one store: each unit once, and nothing is lost when one is killed."""

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commands import holdfast
from holdfast import EmbedderError, Settings
from holdfast.lifecycle.embedding import EmbeddingPlan, StoreEmbedder, embed_pending
from holdfast.testing.builders import Asker, draft
from holdfast.testing.contracts import HashEmbedder
from postgres_server import open_store

WORKER = Path(__file__).with_name("embedding_worker.py")
UNITS = 240
GATE = Settings().gate


@pytest.fixture
def ana(database):
    store = open_store(database)
    found = Asker(store)
    for tenant, user in (("local", "ana"), ("local", "ben"), ("other", "ana")):
        found.put(
            *(
                draft(f"{tenant}{user}{i}", f"{tenant} {user} {i}", tenant=tenant, user=user)
                for i in range(UNITS // 4)
            )
        )
    turns = [
        draft(f"t{i}", f"we sail with {i} boats on Tuesday", session="s", scope="session") for i in range(UNITS // 4)
    ]
    found.put(*turns)
    yield found
    store.close()


def start(database, *more):
    return subprocess.Popen(
        [sys.executable, str(WORKER), database, *more], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )


def texts(child):
    """Return the texts of the next batch that a worker is about to embed."""
    return [*iter(lambda: child.stdout.readline().rstrip("\n"), "")]


def vectors_of(ana):
    """Return every vector by owner and text."""
    found = {}
    for tenant in ("local", "other"):
        for one in ana.by(tenant=tenant).look(lambda reading: [*reading.stored(whole=True)]):
            assert len(one.vectors) == 1
            found[tenant, one.unit.user, one.unit.text] = one.vectors[0] and one.vectors[0].data
    return found


def test_three_workers_one_of_them_killed_give_every_unit_its_vector_once(ana, database):
    doomed = start(database, "wait")
    lost = texts(doomed)  # claimed, and never embedded
    assert lost
    doomed.kill()
    doomed.communicate()
    held = start(database, "wait")
    mine = texts(held)
    others = [start(database), start(database)]
    embedded = Counter(line for child in others for line in child.communicate()[0].splitlines() if line)
    assert embedded.keys().isdisjoint(mine)  # nobody takes what another one is at
    assert {*lost}.issubset(embedded.keys() | {*mine})  # what was given up is done by others
    held.communicate("go on\n" * UNITS)
    assert [child.returncode for child in (held, *others)] == [0, 0, 0]
    assert max(embedded.values()) == 1
    found = vectors_of(ana)
    assert len(found) == UNITS
    assert None not in found.values()
    given = HashEmbedder().embed_documents([text for *_, text in found])
    assert np.allclose(given, [np.frombuffer(data, "<f2") for data in found.values()], atol=1e-3)
    assert ana.store.pending(HashEmbedder().space, UNITS) == []
    assert ana.store.verify() == []
    gates = [unit.gate for unit in ana.units(*(f"t{i}" for i in range(UNITS // 4))).values()]
    assert None not in gates


def test_a_unit_that_is_rewritten_while_it_is_embedded_waits_on(ana, database):
    child = start(database, "wait")
    first = texts(child)[0]
    tenant, user, number = first.split()
    ana.by(user, tenant=tenant).revise(f"{tenant}{user}{number}", text="other words")
    child.communicate("go on\n" * UNITS)
    found = vectors_of_all(ana, tenant, user)
    assert found["other words"] is not None  # by the same worker, when it came by again


def vectors_of_all(ana, tenant, user):
    kept = ana.by(user, tenant=tenant).look(lambda reading: [*reading.stored()])
    return {one.unit.text: one.vectors[-1] for one in kept}


def test_what_was_claimed_is_written_and_erased_without_waiting(ana, database):
    store, space = ana.store, HashEmbedder().space
    hasty = open_store(database, replace(Settings(), store=replace(Settings().store, busy_timeout_ms=100)))
    with store.claim(space, 10) as claimed:
        units = [one for one in claimed.units if one.user == "ana" and one.tenant == "local"]
        assert store.put_vectors(space, units, HashEmbedder().embed_documents([one.text for one in units])) == len(
            units
        )
        ana.revise(units[0].id, text="new words")
        assert hasty.forget(ana.view, [units[1].id]).pending  # its bytes go when the claim is over
    hasty.close()
    assert store.finish_erasing()
    with store.claim(space, 10) as again:  # rows of what has its vector, or is gone, lead to nothing
        assert [one.text for one in again.units if one.id in {unit.id for unit in units}] == ["new words"]
    with store.claim(space, 10) as third:
        assert len(third.units) == 10


def test_a_text_that_is_refused_holds_nobody_up_and_is_asked_for_again(ana):
    class Picky(HashEmbedder):
        def embed_documents(self, texts):
            if "local ana 7" in texts:
                raise EmbedderError("no")
            return super().embed_documents(texts)

    embed_pending(ana.store, EmbeddingPlan(Picky(), GATE), HashEmbedder().space)
    assert [one.text for one in ana.store.pending(HashEmbedder().space, UNITS)] == ["local ana 7"]
    embed_pending(ana.store, EmbeddingPlan(HashEmbedder(), GATE), HashEmbedder().space)
    assert ana.store.pending(HashEmbedder().space, UNITS) == []


def test_a_worker_of_another_space_is_refused(ana):
    def worker(embedder):
        return StoreEmbedder(ana.store, Settings().embedding, GATE, embedder, lambda: None, lambda: 0.0)

    other = HashEmbedder()
    other.space = "other/64/none/1"
    worker(HashEmbedder()).embed_shared(lambda _: None)
    worker(other).embed_shared(lambda _: None)  # a space that the store never had takes over, once
    assert ana.store.space() == other.space
    with pytest.raises(EmbedderError, match="holdfast reembed"):
        worker(HashEmbedder()).embed_shared(lambda _: None)


def test_the_command_embeds_all_and_says_so(ana, database):
    ended = holdfast("worker", "--db", database, "--json", HOLDFAST_EMBEDDING__EMBEDDER="potion")
    assert ended.code == 0
    assert f'"embedded": {UNITS}' in ended.out
    assert None not in vectors_of(ana).values()
