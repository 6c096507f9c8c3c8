"""Questions about the past: what was known then answers, by words and by meaning, as it was then."""

import pytest

from builders import NOW, later, opened
from holdfast import Settings
from holdfast.testing.contracts import HashEmbedder

EAGER = Settings.load(
    {"refusal.enabled": False, "hybrid.min_score": 0.0, "hybrid.gap": 0.0}, environ={}
).without_timeouts()
EMBEDDER = HashEmbedder(64)


@pytest.fixture
def clock():
    return [NOW]


@pytest.fixture
def memory(clock, tmp_path):
    with opened(EAGER, now=lambda: clock[0], embedder=EMBEDDER, path=tmp_path / "m.db") as opened_memory:
        yield opened_memory


def told(found):
    return {hit.unit.id: hit.unit.text for hit in found}


def test_an_earlier_version_is_found_by_meaning_and_its_score_is_that_of_its_words(memory, clock):
    memory.remember("the copper kettle whistles", id="x", user="ana")
    clock[0] = later(days=2)
    memory.update("x", user="ana", text="a lamp hangs in the hall")
    then = memory.search("the copper kettle whistles", user="ana", as_of=later(days=1), explain=True)
    assert told(then) == {"x": "the copper kettle whistles"}
    assert then[0].cosine == pytest.approx(1.0, abs=1e-6)
    assert [hit.contributions.compose() for hit in then] == [hit.score for hit in then]
    now = memory.search("the copper kettle whistles", user="ana")
    assert "the copper kettle whistles" not in told(now).values()


def test_a_version_whose_words_never_had_a_vector_is_found_by_its_words(memory, clock):
    with opened(EAGER, now=lambda: clock[0], path=memory.store._database.location) as without:
        without.remember("the copper kettle whistles", id="x", user="ana")
        clock[0] = later(days=2)
        without.update("x", user="ana", text="a lamp hangs in the hall")
    [hit] = memory.search("copper kettle", user="ana", as_of=later(days=1))
    assert (hit.unit.text, hit.cosine) == ("the copper kettle whistles", None)


@pytest.mark.parametrize("profile", ["fast", "balanced", "hybrid"])
def test_what_has_expired_since_is_found_as_of_a_moment_when_it_lived(memory, clock, profile):
    memory.remember("the copper kettle whistles", id="x", user="ana", ttl=3600)
    clock[0] = later(days=2)
    assert told(memory.search("kettle", user="ana", profile=profile)) == {}
    for minutes, expected in ((30, {"x": "the copper kettle whistles"}), (90, {})):
        moment = later(minutes=minutes)
        assert told(memory.search("kettle", user="ana", profile=profile, as_of=moment)) == expected


def test_an_erased_unit_is_found_at_no_moment(memory, clock):
    memory.remember("the copper kettle whistles", id="x", user="ana")
    clock[0] = later(days=2)
    memory.update("x", user="ana", text="a lamp hangs in the hall")
    assert memory.forget(user="ana", ids="x").complete
    assert told(memory.search("kettle", user="ana", as_of=later(days=1))) == {}
    assert memory.store.verify() == []


@pytest.mark.parametrize("own_first", [True, False])
def test_a_users_own_earlier_version_hides_everyones_unit_of_that_id(memory, clock, own_first):
    told_by = [("my copper kettle whistles", "user"), ("everyone drinks copper tea", "global")]
    for text, scope in told_by if own_first else told_by[::-1]:
        memory.remember(text, id="x", user="ana", scope=scope)
    clock[0] = later(days=2)
    memory.update("x", user="ana", text="a lamp hangs in the hall")
    memory.update("x", user="bo", text="everyone drinks water")
    then = later(days=1)
    assert told(memory.search("copper", user="ana", as_of=then)) == {"x": "my copper kettle whistles"}
    assert told(memory.search("copper", user="bo", as_of=then)) == {"x": "everyone drinks copper tea"}
