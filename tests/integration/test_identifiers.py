"""An exact identifier beats what merely looks like it: the page of an error code is first for the code."""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Memory
from holdfast.settings import Settings

SUBJECTS = ("a borrowed value", "the return type", "a loop label", "an imported name", "a trait bound", "a match arm")
FAULTS = ("is used after it was moved", "does not fit its declaration", "is defined twice", "is never reached")
CODES = [f"K{1000 + 37 * number}" for number in range(40)]
START = datetime(2026, 3, 1, tzinfo=UTC)


def page(number):
    """Return a page like those of a compiler's manual; each points to the next code, as such pages do."""
    subject, fault = SUBJECTS[number % len(SUBJECTS)], FAULTS[number % len(FAULTS)]
    other = CODES[(number + 1) % len(CODES)]
    return (
        f"# {CODES[number]}\n\nThe error {CODES[number]} is reported when {subject} {fault}.\n\n"
        f"```\nlet item = make({number});\nerror[{CODES[number]}]: {subject} {fault}\n```\n\n"
        f"## How to fix it\n\nRename or copy {subject} before line {number + 3}, then compile again.\n\n"
        f"See also the error {other}.\n"
    )


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("errors")
    for number, code in enumerate(CODES):
        (folder / f"{code}.md").write_text(page(number), encoding="utf-8")
    with Memory.open(":memory:", settings=Settings().without_timeouts()) as memory:
        memory.ingest_folder(folder, user="dev")
        yield memory


def told(number):
    """Return how a chat tells what a code is."""
    return f"{CODES[number]}: {SUBJECTS[number % len(SUBJECTS)]} {FAULTS[number % len(FAULTS)]}."


@pytest.fixture(scope="module")
def chat():
    with Memory.open(":memory:", settings=Settings().without_timeouts()) as memory:
        for number in range(len(CODES)):
            at, other = START + timedelta(days=number), CODES[(number + 1) % len(CODES)]
            memory.remember(told(number), user="dev", session=f"told {number}", at=at)
            memory.remember(f"See also the error {other}.", user="dev", session=f"other {number}", at=at)
        memory.remember("Marta repaired K1000 in commit 3ab19f2.", user="dev", session="m", at=START)
        memory.remember("K1037 again?", user="dev", session="m", at=START)
        yield memory


@pytest.mark.parametrize("question", ["{}", "What does error {} mean?", "How do I fix {}?"])
def test_the_turn_that_opens_with_a_code_is_first_for_the_code(chat, question):
    first = [chat.search(question.format(code), user="dev")[0].unit.text for code in CODES[:30]]
    assert sum(told(number) == text for number, text in enumerate(first)) >= 27


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("P0420", "P0420 means the catalytic converter is weak, the garage changed the rear sensor."),
        ("LNK2019", "LNK2019 was the missing libsodium in the linker inputs."),
        ("ENOSPC", "ENOSPC in the watcher: raise fs.inotify.max_user_watches to 524288."),
        ("HTTP 429", "HTTP 429 from the maps service: we exceed the quota, the fix is caching tiles a day."),
        ("SQLSTATE 40001", "SQLSTATE 40001 is a serialisation failure, the job retries three times since Tuesday."),
    ],
)
@pytest.mark.parametrize("question", ["{}", "What does error {} mean?", "How do I fix {}?"])
def test_what_mentions_a_code_later_does_not_take_the_place_of_what_opens_with_it(code, told, question):
    with Memory.open(":memory:", settings=Settings().without_timeouts()) as memory:
        later = ("Got {} again this morning, no idea why.", "Also saw {} once in staging.", "A ticket for {}.")
        for day, text in enumerate((told, *(text.format(code) for text in later))):
            memory.remember(text, user="dev", session=f"s{day}", at=START + timedelta(days=day))
        assert memory.search(question.format(code), user="dev")[0].unit.text == told


def test_what_holds_more_of_the_question_than_the_code_stays_above(chat):
    hits = [hit.unit.text for hit in chat.search("Who repaired K1000?", user="dev")]
    assert hits.index("Marta repaired K1000 in commit 3ab19f2.") < hits.index(told(0))


def test_a_question_that_opens_with_a_code_is_lifted_by_nothing(chat):
    hits = {hit.unit.text: hit for hit in chat.search("K1037", user="dev", explain=True, limit=100)}
    assert hits["K1037 again?"].contributions.find("rel with opening") is None
    assert hits[told(1)].contributions.find("rel with opening") is not None


@pytest.mark.parametrize("question", ["{}", "What does error {} mean?", "How do I fix {} in my build?"])
def test_the_page_of_a_code_is_first_for_the_code(manual, question):
    asked = CODES[:30]
    first = [manual.search(question.format(code), user="dev")[0].unit.id for code in asked]
    assert sum(f"/{code}.md#" in unit_id for code, unit_id in zip(asked, first, strict=True)) >= 27


def test_a_hit_says_how_near_it_is_by_words_and_by_meaning(manual):
    near = manual.search("What does error K1000 mean?", user="dev")[0]
    far = manual.search("When do the tulips flower in spring?", user="dev", limit=1)
    assert near.coverage > 0.3
    assert near.cosine > 0.3
    assert all(hit.coverage < near.coverage and hit.cosine < near.cosine for hit in far)


def test_the_stage_is_named_in_the_explanation(manual):
    hit = manual.search("How do I fix K1000?", user="dev", limit=1, explain=True)[0]
    assert hit.contributions.compose() == hit.score
    assert "rel with identifiers" in str(hit.contributions.to_json())
