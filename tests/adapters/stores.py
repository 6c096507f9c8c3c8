"""What every LangGraph store promises; run for LangGraph's own and for ours."""

import asyncio

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp

USERS = ("memories", "users")
VALUE = {
    "text": "Ana likes spicy ramen", "stars": 4, "ratio": 0.1, "open": True, "none": None, "tags": ["food", "japan"],
    "place": {"city": "Tokyo", "floors": [1, {"bar": "Ō"}]}, "empty": {}, "quote": 'a "b" \\ \n\t é 漢字 🍜',
}  # fmt: skip


def fill(store):
    """Put some notes into two namespaces."""
    store.put((*USERS, "ana"), "food", {"text": "Ana likes spicy ramen", "stars": 5, "kind": "food"})
    store.put((*USERS, "ana"), "dog", {"text": "Her dog is called Rex", "stars": 3, "kind": "pet"})
    store.put((*USERS, "bob"), "boat", {"text": "Bob sails a boat called Petrel", "stars": 5, "kind": "boat"})
    store.put(("logs",), "start", {"text": "The server was started", "stars": 1})


def keys(items):
    return sorted(item.key for item in items)


class StoreSuite:
    """The tests; a subclass has a fixture `store`, empty for each test."""

    def test_a_value_comes_back_as_it_was_put(self, store):
        store.put(USERS, "k", VALUE)
        item = store.get(USERS, "k")
        assert item.value == VALUE
        assert (item.namespace, item.key) == (USERS, "k")
        assert item.created_at <= item.updated_at
        assert [item.value for item in store.search(USERS)] == [VALUE]

    def test_a_value_belongs_to_the_store_alone(self, store):
        given = {"text": "one"}
        store.put(USERS, "k", given)
        given["text"] = "two"
        assert store.get(USERS, "k").value == {"text": "one"}

    def test_a_second_put_replaces_the_value(self, store):
        store.put(USERS, "k", {"text": "one", "old": True})
        first = store.get(USERS, "k")
        store.put(USERS, "k", {"text": "two"})
        second = store.get(USERS, "k")
        assert second.value == {"text": "two"}
        assert second.updated_at >= first.updated_at
        assert len(store.search(USERS)) == 1

    def test_namespaces_and_keys_are_apart(self, store):
        store.put(("a", "b"), "c", {"n": 1})
        store.put(("a",), "b", {"n": 2})
        store.put(("a", "bc"), "c", {"n": 3})
        store.put(("a b",), "c", {"n": 4})
        places = [(("a", "b"), "c"), (("a",), "b"), (("a", "bc"), "c")]
        assert [store.get(*place).value["n"] for place in places] == [1, 2, 3]
        assert store.get(("a",), "c") is None
        assert [item.value["n"] for item in store.search(("a", "b"))] == [1]
        assert len(store.search(("a",))) == 3
        assert len(store.search(())) == 4

    def test_what_is_deleted_is_gone_and_may_be_deleted_again(self, store):
        fill(store)
        store.delete((*USERS, "ana"), "food")
        store.delete((*USERS, "ana"), "food")
        assert store.get((*USERS, "ana"), "food") is None
        assert keys(store.search((*USERS, "ana"))) == ["dog"]
        assert keys(store.search((*USERS, "ana"), query="spicy ramen")) in ([], ["dog"])
        store.put((*USERS, "ana"), "food", {"text": "sushi"})
        assert store.get((*USERS, "ana"), "food").value == {"text": "sushi"}

    @pytest.mark.parametrize(
        ("wanted", "found"),
        [
            ({"stars": 5}, ["boat", "food"]),
            ({"stars": 5, "kind": "food"}, ["food"]),
            ({"stars": {"$eq": 3}}, ["dog"]),
            ({"stars": {"$ne": 5}}, ["dog"]),
            ({"stars": {"$gt": 3}}, ["boat", "food"]),
            ({"stars": {"$gte": 3, "$lt": 5}}, ["dog"]),
            ({"stars": {"$lte": 2}}, []),
            ({"kind": "nothing"}, []),
            ({"missing": None}, ["boat", "dog", "food"]),
            ({}, ["boat", "dog", "food"]),
        ],
    )
    def test_filters_choose_by_value(self, store, wanted, found):
        fill(store)
        assert keys(store.search(USERS, filter=wanted)) == found

    def test_filters_reach_inside_values(self, store):
        store.put(USERS, "a", {"place": {"city": "Tokyo", "floor": 2}, "open": True})
        store.put(USERS, "b", {"place": {"city": "Lisbon", "floor": 3}, "open": False})
        assert keys(store.search(USERS, filter={"place": {"city": "Tokyo"}})) == ["a"]
        assert keys(store.search(USERS, filter={"place": {"floor": {"$gt": 2}}})) == ["b"]
        assert keys(store.search(USERS, filter={"open": True})) == ["a"]

    def test_an_operator_that_is_unknown_is_refused(self, store):
        fill(store)
        with pytest.raises(ValueError, match="regex"):
            store.search(USERS, filter={"kind": {"$regex": "f.*"}})

    def test_a_search_goes_on_where_the_last_one_ended(self, store):
        for number in range(7):
            store.put(USERS, f"k{number}", {"n": number})
        pages = [store.search(USERS, limit=3, offset=offset) for offset in (0, 3, 6, 9)]
        assert [len(page) for page in pages] == [3, 3, 1, 0]
        assert {item.value["n"] for page in pages for item in page} == set(range(7))

    def test_a_question_finds_what_it_is_about_first(self, store):
        fill(store)
        found = store.search(USERS, query="which boat does Bob sail?")
        assert found[0].key == "boat"
        assert found[0].score > 0
        assert store.search((*USERS, "ana"), query="spicy ramen", limit=1)[0].key == "food"
        assert keys(store.search(USERS, query="spicy ramen", filter={"kind": "pet"})) in ([], ["dog"])
        assert all(item.namespace == ("logs",) for item in store.search(("logs",), query="the server"))

    def test_index_says_what_a_question_finds(self, store):
        store.put(USERS, "title", {"title": "Sailing", "body": "ramen"}, index=["title"])
        store.put(USERS, "parts", {"parts": [{"text": "knots"}, {"text": "ramen"}]}, index=["parts[*].text"])
        store.put(USERS, "silent", {"text": "ramen ramen ramen"}, index=False)
        scored = [item.key for item in store.search(USERS, query="ramen") if item.score]
        assert scored[0] == "parts"
        assert "silent" not in scored
        assert store.get(USERS, "silent").value == {"text": "ramen ramen ramen"}
        assert keys(store.search(USERS)) == ["parts", "silent", "title"]

    def test_namespaces_are_listed(self, store):
        for path in (("a", "b", "c"), ("a", "b", "d"), ("a", "x"), ("z", "b", "c")):
            store.put(path, "k", {"n": 1})
            store.put(path, "l", {"n": 2})
        assert store.list_namespaces() == [("a", "b", "c"), ("a", "b", "d"), ("a", "x"), ("z", "b", "c")]
        assert store.list_namespaces(prefix=("a",)) == [("a", "b", "c"), ("a", "b", "d"), ("a", "x")]
        assert store.list_namespaces(prefix=("a", "*", "c")) == [("a", "b", "c")]
        assert store.list_namespaces(suffix=("b", "c")) == [("a", "b", "c"), ("z", "b", "c")]
        assert store.list_namespaces(suffix=("*", "c")) == [("a", "b", "c"), ("z", "b", "c")]
        assert store.list_namespaces(prefix=("a", "b", "c", "d")) == []
        assert store.list_namespaces(max_depth=2) == [("a", "b"), ("a", "x"), ("z", "b")]
        assert store.list_namespaces(limit=2, offset=1) == [("a", "b", "d"), ("a", "x")]

    def test_a_batch_reads_before_it_writes(self, store):
        store.put(USERS, "k", {"n": 1})
        results = store.batch(
            [
                PutOp(USERS, "k", {"n": 2}),
                GetOp(USERS, "k"),
                PutOp(USERS, "new", {"n": 3}),
                SearchOp(USERS),
                ListNamespacesOp(),
                PutOp(USERS, "k", {"n": 4}),
                PutOp(USERS, "gone", None),
            ]
        )
        assert results[1].value == {"n": 1}
        assert [item.value for item in results[3]] == [{"n": 1}]
        assert results[4] == [USERS]
        assert [results[place] for place in (0, 2, 5, 6)] == [None] * 4
        assert store.get(USERS, "k").value == {"n": 4}
        assert store.get(USERS, "new").value == {"n": 3}

    def test_the_event_loop_has_the_same_verbs(self, store):
        async def work():
            await store.aput(USERS, "k", {"text": "ramen"})
            item, found, named = await asyncio.gather(
                store.aget(USERS, "k"), store.asearch(USERS, query="ramen"), store.alist_namespaces()
            )
            await store.adelete(USERS, "k")
            return item, found, named, await store.aget(USERS, "k"), await store.abatch([GetOp(USERS, "k")])

        item, found, named, gone, batch = asyncio.run(work())
        assert item.value == found[0].value == {"text": "ramen"}
        assert named == [USERS]
        assert (gone, batch) == (None, [None])

    @pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("langgraph",)])
    def test_a_namespace_that_cannot_be_is_refused(self, store, namespace):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {"n": 1})
        assert store.search(()) == []
