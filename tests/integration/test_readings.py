"""What happens around a reading: callbacks, interruptions, erasures by others, strategies that are careless."""

import pytest

from builders import opened
from holdfast import Memory, Settings, StoreError
from holdfast.retrieval import question as registry
from holdfast.retrieval.question import Engine
from holdfast.retrieval.strategy import Proposals
from holdfast.testing.builders import view
from holdfast.testing.contracts import HashEmbedder
from holdfast.types import Contribution, StrategyExplanation, StrategyScores


class CallingBack(HashEmbedder):
    """An embedder that writes to the memory it serves before it answers."""

    memory = None

    def embed_query(self, text):
        if self.memory is not None:
            memory, self.memory = self.memory, None
            memory.remember("noted by the embedder", user="ana", session="log")
        return super().embed_query(text)


def test_an_embedder_may_use_the_memory_that_it_serves():
    embedder = CallingBack()
    with Memory.open(":memory:", settings=Settings(), embedder=embedder) as memory:
        memory.remember("the ferry leaves at nine", user="ana", session="s")
        embedder.memory = memory
        assert memory.search("when does the ferry leave?", user="ana")[0].unit.text == "the ferry leaves at nine"
        embedder.memory = memory
        assert "nine" in memory.assemble("when does the ferry leave?", user="ana", budget=300).text
        assert sum("noted" in unit.text for unit in memory.list(user="ana")) == 1  # the same words again at once


def test_what_is_written_inside_a_reading_is_refused_and_hurts_nobody():
    with opened() as memory:
        memory.remember("the ferry leaves at nine", user="ana", session="s")
        with memory.store.reading(view("ana")) as reading:
            with pytest.raises(StoreError, match="while this thread reads"):
                memory.remember("too late", user="ana", session="s")
            assert len([*reading.scan(order="oldest", limit=None)]) == 1
        memory.remember("in time", user="ana", session="s")
        assert len(memory.list(user="ana")) == 2


def test_an_interrupted_reading_leaves_no_transaction_open(monkeypatch):
    with opened() as memory:
        memory.remember("the ferry leaves at nine", user="ana", session="s")
        database = memory.store._database
        run = database.run

        def interrupted(name, values, **options):
            if name == "last_change":
                raise KeyboardInterrupt
            return run(name, values, **options)

        monkeypatch.setattr(database, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            memory.get("nobody", user="ana")
        monkeypatch.undo()
        assert not database.connection.in_transaction
        memory.remember("and it goes on", user="ana", session="s")


def test_two_erasures_of_owners_by_two_handles_leave_nothing_of_either(tmp_path):
    place = tmp_path / "m.db"
    with Memory.open(place, embedder=HashEmbedder()) as one, Memory.open(place, embedder=HashEmbedder()) as two:
        for user, word in (("u", "cherry"), ("v", "walnut")):
            one.remember([f"{word} number {i}" for i in range(30)], user=user, session="s")
            one.search(word, user=user)
        assert two.forget(user="v", all=True).complete
        assert one.forget(user="u", all=True).complete
        assert [*one.search("walnut", user="v")] == []
        one.remember("something else", user="w", session="s")
    assert all(b"walnut" not in file.read_bytes() for file in tmp_path.iterdir())


class Careless:
    """A strategy that names what nobody has."""

    id = "careless"

    def __init__(self, settings):
        """Keep nothing."""

    def propose(self, query, reading, depth, deadline):
        return Proposals(("nobody", *(unit.id for unit in reading.scan(order="oldest", limit=depth))))

    def score(self, query, reading, ids):
        claims = StrategyScores.of(ids)
        claims.raw[:] = 1.0
        return claims

    def explain(self, query, reading, ids):
        return {unit_id: StrategyExplanation(Contribution("careless", 1.0), (self.id,)) for unit_id in ids}


def test_a_unit_that_nobody_has_is_left_out(monkeypatch):
    settings = Settings.load({"hybrid.strategies": ("lexical", "careless"), "hybrid.mix": {}}, environ={})
    monkeypatch.setattr(registry, "_strategy_class", lambda name: Careless if name == "careless" else LEXICAL)
    with Memory.open(":memory:", settings=settings, embedder=HashEmbedder()) as memory:
        memory.remember("the ferry leaves at nine", user="ana", session="s")
        found = memory.search("ferry", user="ana", explain=True)
        assert [hit.unit.text for hit in found] == ["the ferry leaves at nine"]
        assert found[0].contributions.compose() == found[0].score


LEXICAL = registry._strategy_class("lexical")


def test_a_list_of_ids_may_change_between_two_looks():
    with opened() as memory:
        for name, text in (("x", "short"), ("y", "somewhat longer")):
            memory.remember(text, user="ana", id=name)
        ids = ["x"]
        with memory.store.reading(view("ana")) as reading:
            assert reading.columns(ids, ("length",))["length"].tolist() == [5]
            ids.append("y")
            assert reading.columns(ids, ("length",))["length"].tolist() == [5, 15]
            ids.reverse()
            assert reading.columns(ids, ("length",))["length"].tolist() == [15, 5]


def test_a_vector_that_the_file_has_lost_is_compared_with_nothing():
    with opened(embedder=HashEmbedder()) as memory:
        memory.remember("the ferry leaves at nine", user="ana", session="s", id="x")
        memory.search("ferry", user="ana")
        unit, database = memory.get("x", user="ana"), memory.store._database
        with database.transaction():
            database.run("erase_vectors", {"keys": "[1]"})
            database.record_change(1, unit.tenant, "ana")
        [written] = memory.remember("the ferry leaves at ten", user="ana", session="s")
        assert written.status == "added"
        assert {hit.cosine for hit in memory.search("ferry", user="ana") if hit.unit.id == "x"} == {None}


def test_a_context_has_its_last_turns_and_its_answer_from_one_state(tmp_path, monkeypatch):
    place = tmp_path / "m.db"
    with Memory.open(place, embedder=HashEmbedder()) as one, Memory.open(place, embedder=HashEmbedder()) as two:
        one.remember("the walnut cake is for Rui", user="ana", session="s", id="x")
        one.search("cake", user="ana")
        prepare = Engine.prepare

        def prepared(engine, *arguments):
            found = prepare(engine, *arguments)
            assert two.forget(ids="x", user="ana").complete  # between the arguments and the answer
            return found

        monkeypatch.setattr(Engine, "prepare", prepared)
        assert "walnut" not in one.assemble("who is the cake for?", user="ana", session="s", budget=300).text
