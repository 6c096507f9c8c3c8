"""LangGraph's `BaseStore`: the same suite for LangGraph's own store, for a memory, and for one behind a server."""

import functools
from datetime import timedelta

import pytest
from langgraph.store.base import GetOp, PutOp
from langgraph.store.memory import InMemoryStore

from adapters.stores import USERS, StoreSuite, keys
from builders import NOW, opened
from holdfast import FilterError, InputError, Memory
from holdfast.integrations.langgraph import HoldfastStore
from holdfast.testing.contracts import HashEmbedder
from interfaces.served import served


class TestInMemoryStore(StoreSuite):
    @pytest.fixture
    def store(self):
        embedder = HashEmbedder()
        return InMemoryStore(
            index={"dims": embedder.dims, "embed": lambda texts: embedder.embed_documents(texts).tolist()}
        )


class HoldfastSuite(StoreSuite):
    # LangGraph's own store refuses such a batch.
    def test_items_with_the_same_words_are_each_found(self, store):
        store.batch([PutOp((*USERS, name), "k", {"text": "likes ramen"}) for name in ("ana", "bob", "cleo")])
        assert {item.namespace[-1] for item in store.search(USERS, query="ramen")} == {"ana", "bob", "cleo"}


class TestHoldfastStore(HoldfastSuite):
    @pytest.fixture
    def store(self):
        with opened() as memory:
            yield HoldfastStore(memory, user="app")

    def test_a_store_can_be_opened_by_its_path(self, tmp_path):
        first = HoldfastStore(tmp_path / "store.db", user="app")
        first.put(USERS, "k", {"text": "ramen"})
        first.memory.close()
        second = HoldfastStore(str(tmp_path / "store.db"), user="app")
        assert second.get(USERS, "k").value == {"text": "ramen"}
        second.memory.close()

    def test_many_are_deleted_together(self, store):
        store.batch([PutOp(USERS, f"k{number}", {"n": number}) for number in range(5)])
        store.batch([PutOp(USERS, f"k{number}", None) for number in (1, 3, 9)])
        assert keys(store.search(USERS)) == ["k0", "k2", "k4"]

    def test_users_are_apart(self, store):
        other = HoldfastStore(store.memory, user="other")
        other.put(USERS, "k", {"n": 1})
        assert store.get(USERS, "k") is None
        assert store.search(()) == []
        assert store.list_namespaces() == []

    def test_the_first_time_is_kept_when_a_value_changes(self):
        clock = iter(NOW + timedelta(minutes=minute) for minute in range(100))
        with opened(now=lambda: next(clock)) as memory:
            store = HoldfastStore(memory, user="app")
            store.put(USERS, "k", {"n": 1})
            before = store.get(USERS, "k")
            store.put(USERS, "k", {"n": 2})
            after = store.get(USERS, "k")
        assert before.created_at == after.created_at == before.updated_at < after.updated_at

    def test_an_item_lives_as_long_as_it_is_said(self):
        now = [NOW]
        with opened(now=lambda: now[0]) as memory:
            store = HoldfastStore(memory, user="app", ttl={"default_ttl": 10, "refresh_on_read": False})
            store.put(USERS, "short", {"n": 1}, ttl=1)
            store.put(USERS, "usual", {"n": 2})
            store.put(USERS, "ever", {"n": 3}, ttl=None)
            now[0] = NOW + timedelta(minutes=2)
            assert store.get(USERS, "short") is None
            assert {item.key for item in store.search(USERS)} == {"usual", "ever"}
            now[0] = NOW + timedelta(minutes=11)
            assert [item.key for item in store.search(USERS)] == ["ever"]
            assert store.list_namespaces() == [USERS]
            store.put(USERS, "short", {"n": 4})
            assert store.get(USERS, "short").value == {"n": 4}

    def test_reading_lets_an_item_live_on(self):
        now = [NOW]
        with opened(now=lambda: now[0]) as memory:
            store = HoldfastStore(memory, user="app")
            store.put(USERS, "read", {"text": "ramen"}, ttl=10)
            store.put(USERS, "left", {"text": "sushi"}, ttl=10)
            now[0] = NOW + timedelta(minutes=9)
            assert store.get(USERS, "read")
            assert store.batch([GetOp(USERS, "left", refresh_ttl=False)])[0]
            now[0] = NOW + timedelta(minutes=18)
            assert store.get(USERS, "left") is None
            assert [item.key for item in store.search(USERS, query="ramen")] == ["read"]
            now[0] = NOW + timedelta(minutes=27)
            assert store.get(USERS, "read")

    def test_the_memory_finds_what_the_store_was_given(self, store):
        store.put((*USERS, "ana"), "food", {"text": "Ana likes spicy ramen"})
        [hit] = store.memory.search("spicy ramen", user="app")
        assert hit.unit.text == "Ana likes spicy ramen"
        assert hit.unit.author == "assistant"

    def test_what_a_filter_cannot_ask_is_refused(self, store):
        with pytest.raises(FilterError, match="periods"):
            store.search(USERS, filter={"a.b": 1})
        with pytest.raises(FilterError, match="cannot be compared"):
            store.search(USERS, filter={"tags": ["a"]})

    def test_a_value_that_is_no_json_is_refused_and_nothing_is_written(self, store):
        with pytest.raises(InputError, match="not JSON"):
            store.put(USERS, "k", {"when": NOW})
        assert store.get(USERS, "k") is None

    def test_what_is_no_memory_is_refused(self):
        with pytest.raises(InputError, match="is no memory"):
            HoldfastStore(17, user="app")


class TestRemoteStore(HoldfastSuite):
    @pytest.fixture
    def store(self):
        with served(opened()) as address, Memory.open(address) as memory:
            yield HoldfastStore(memory, user="app")


@pytest.mark.parametrize("wanted", ["tea", 5, ["a"], {"a": {5: 1}}, {"a": {"$near": 1}}, {5: 1}])
def test_a_filter_that_is_none_is_a_filter_error(wanted):
    with opened() as memory, pytest.raises(FilterError):
        HoldfastStore(memory, user="ana").search(("notes",), filter=wanted)


@pytest.mark.parametrize("minutes", ["soon", float("nan"), float("inf"), 10**400, -1])
def test_a_time_to_live_that_is_none_is_an_input_error_and_nothing_is_kept(minutes):
    with opened() as memory:
        store = HoldfastStore(memory, user="ana")
        with pytest.raises(InputError):
            store.put(("notes",), "a", {"text": "tea"}, ttl=minutes)
        assert store.get(("notes",), "a") is None


@pytest.mark.parametrize("value", [5, "tea", [], [("a", 1)], True])
def test_a_value_that_is_no_dict_is_an_input_error_and_nothing_is_kept(value):
    with opened() as memory:
        store = HoldfastStore(memory, user="ana")
        with pytest.raises(InputError, match="value"):
            store.batch([PutOp(("notes",), "a", {"text": "tea"}), PutOp(("notes",), "b", value)])
        assert memory.stats(user="ana").units == 0


@pytest.mark.parametrize("index", [True, 5, "text", [None], {"text": 1}])
def test_paths_to_index_that_are_none_are_an_input_error(index):
    with opened() as memory, pytest.raises(InputError, match="index"):
        HoldfastStore(memory, user="ana").put(("notes",), "a", {"text": "tea"}, index=index)


@pytest.mark.parametrize("number", [None, "5", 1.5, float("nan"), True])
@pytest.mark.parametrize("name", ["limit", "offset", "max_depth"])
def test_a_number_of_items_or_labels_that_is_none_is_an_input_error(name, number):
    with opened() as memory:
        store = HoldfastStore(memory, user="ana")
        ask = store.list_namespaces if name == "max_depth" else functools.partial(store.search, ("notes",))
        if (name, number) == ("max_depth", None):
            assert ask(max_depth=None) == []
        else:
            with pytest.raises(InputError, match=name):
                ask(**{name: number})
