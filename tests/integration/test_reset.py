"""A full reset of what is derived: answers are the same, and nothing derived is left."""

from builders import opened
from holdfast import Settings
from holdfast.testing.contracts import HashEmbedder

SETTINGS = Settings().without_timeouts()
PROFILES = ("fast", "balanced", "thinking", "hybrid")


def test_a_reset_forgets_all_that_is_derived_and_changes_no_answer(tmp_path):
    path = tmp_path / "store.db"
    with opened(SETTINGS, path=path, embedder=HashEmbedder(64)) as memory:
        memory.remember([f"the copper kettle {place}" for place in range(1_200)], user="ana")
        memory.search("copper kettle", user="ana")  # what is derived is saved at the end
    saved = path.with_name("store.db.index")
    with opened(SETTINGS, path=path, embedder=HashEmbedder(64)) as memory:

        def answers():
            found = [memory.search("copper kettle 7", user="ana", profile=one) for one in PROFILES]
            return [[(hit.unit, hit.score) for hit in one] for one in found]

        before = answers()
        assert saved.exists()
        memory.store.reset_caches()
        assert not saved.exists()
        assert not memory.store._index.has_loaded(memory._view(user="ana"))
        assert answers() == before
