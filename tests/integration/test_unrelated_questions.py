"""A question that has nothing to do with what is kept gets nothing (C4), whatever the profile and the embedder."""

from pathlib import Path

import pytest

from builders import NOW, opened
from holdfast import Memory, Settings
from holdfast.testing.contracts import HashEmbedder

COOKBOOK = Path(__file__).parents[1] / "data" / "cookbook"
PROFILES = ("fast", "balanced", "thinking", "hybrid")
UNRELATED = ("Explain quicksort complexity", "Explain quicksort complexity.", "explain Quicksort's complexity?")
SETTINGS = Settings.load({}, environ={}).without_timeouts()


@pytest.fixture(scope="module", params=["words only", "shipped embedder", "hashed words"])
def memory(request):
    if request.param == "shipped embedder":
        kept = Memory.open(":memory:", settings=SETTINGS, now=lambda: NOW)
    else:
        kept = opened(SETTINGS, embedder=HashEmbedder(64) if request.param == "hashed words" else None)
    with kept:
        report = kept.ingest_folder(COOKBOOK, user="ana")
        assert report.units >= 5
        yield kept


def test_the_cookbook_has_the_roles_that_such_a_question_prefers(memory):
    roles = {unit.role for unit in memory.list(user="ana", limit=None)}
    assert "Explanation" in roles


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("question", UNRELATED)
def test_an_unrelated_question_finds_nothing(memory, profile, question):
    found = memory.search(question, user="ana", profile=profile)
    assert [hit.unit.text for hit in found] == []


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("question", UNRELATED)
def test_a_context_for_an_unrelated_question_recalls_nothing(memory, profile, question):
    context = memory.assemble(question, user="ana", profile=profile)
    assert context.section("projection").items == ()
    assert context.text == ""


@pytest.mark.parametrize("profile", PROFILES)
def test_a_related_question_of_the_same_form_finds_something(memory, profile):
    found = memory.search("Explain rye bread", user="ana", profile=profile)
    assert "rye" in found[0].unit.text.lower()
