"""Twenty things that changed, told in one memory: asked about now, the new statement stands above the old one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Memory, Settings
from holdfast.testing.contracts import HashEmbedder

START = datetime(2025, 1, 6, 9, 0, tzinfo=UTC)
# What was said first, what was said months later, and what is asked.
CHANGES = [
    tuple(told.split("\n"))
    for told in """
I live in Lowestoft, near the pier.
I moved, I live in Ludlow now, no pier.
Where do I live?

My dentist is Dr Abara in Mill Lane.
My new dentist is Dr Novak, not in Mill Lane.
Who is my dentist?

My gym is Ironworks on Dock Road.
I quit Ironworks, my gym is Pulse now.
Which gym do I go to?

I drive a green Volvo estate.
I sold the Volvo estate, I drive a Honda.
What car do I drive?

My bike is a steel Raleigh.
I swapped the steel Raleigh, my bike is a Trek.
Which bike do I have?

I drink three coffees a day.
I stopped coffees, I drink no more than tea.
What do I drink?

The choir rehearses on Tuesday in the crypt.
The choir in the crypt moved, it rehearses on Friday.
When does the choir rehearse?

Our rent for the cottage is 900 pounds.
The rent for the cottage went up to 980 pounds.
How much is our rent?

My phone is a Nokia with a cracked screen.
I replaced the cracked Nokia, my phone is a Pixel.
What phone do I have?

Our cat sleeps in the laundry basket.
Our cat left the laundry basket, she sleeps on the stove now.
Where does our cat sleep?

My tutor for Latin is Mr Bell.
Mr Bell retired, my tutor for Latin is Ms Crane now.
Who is my tutor for Latin?

I work at the harbour office as a clerk.
I left the harbour office, I work at the museum now.
Where do I work?

The team uses Jenkins for every build.
The team dropped Jenkins and uses Buildkite for every build now.
What does the team use for builds?

My swimming lesson is at seven in the lido.
My swimming lesson in the lido changed to eight.
What time is my swimming lesson?

Our broadband provider is Skylark, it is slow.
We switched from Skylark, our broadband provider is Fernet.
Who is our broadband provider?

My daughter plays the cello in the orchestra.
My daughter gave up the cello, she plays the oboe in the orchestra.
What does my daughter play?

The printer password is heron seven.
The printer password changed from heron seven to otter nine.
What is the printer password?

My diet is vegetarian since the spring.
My diet is not vegetarian any more, I eat fish.
What is my diet?

The picnic is planned for Sunday at Bell Meadow.
The picnic at Bell Meadow is postponed, it is planned for the 14th.
When is the picnic planned?

My landlord is Mrs Ames from Wells.
My landlord is Mr Oduya now, Mrs Ames sold to him.
Who is my landlord?
""".strip().split("\n\n")
]
SETTINGS = Settings.load(
    {"refusal.enabled": False, "hybrid.min_score": 0.0, "hybrid.gap": 0.0, "stages.read": "off"}, environ={}
)


def told(settings):
    """Return a memory in which everything was said, four months apart."""
    now = [START]
    memory = Memory.open(
        ":memory:", settings=settings.without_timeouts(), now=lambda: now[0], embedder=HashEmbedder()
    )
    for side in (0, 1):
        for place, change in enumerate(CHANGES):
            at = START + timedelta(days=120 * side + place)
            said = [
                {"role": "user", "content": change[side], "at": at},
                {"role": "assistant", "content": "Noted.", "at": at + timedelta(minutes=1)},
            ]
            memory.remember(said, user="ana", session=f"{side}-{place}")
    now[0] = START + timedelta(days=400)
    return memory


@pytest.fixture(scope="module")
def memory():
    with told(SETTINGS) as memory:
        yield memory


def order_of(memory, question, *texts, **options):
    """Return where each text stands among the hits."""
    found = [hit.unit.text for hit in memory.search(question, user="ana", limit=60, **options)]
    return [found.index(text) if text in found else len(found) for text in texts]


def count_current(memory):
    """Return for how many changes the new statement stands above the old one."""
    ranks = [order_of(memory, question, old, new) for old, new, question in CHANGES]
    return sum(after < before for before, after in ranks)


def test_the_new_statement_stands_above_the_old_one(memory):
    off = replace(SETTINGS, stages=replace(SETTINGS.stages, current=0.0))
    with told(off) as plain:
        assert count_current(memory) >= 16 > count_current(plain) + 4


def test_a_question_about_then_finds_the_old_statement_where_it_was(memory):
    old, new, _ = CHANGES[0]
    before, after = order_of(memory, "Where did I live before, near the pier?", old, new)
    assert before < after


def test_what_moved_says_so_in_its_explanation_and_the_numbers_compose(memory):
    _, new, question = CHANGES[6]
    hits = memory.search(question, user="ana", limit=60, explain=True)
    [moved] = [hit for hit in hits if hit.unit.text == new]
    assert moved.contributions.compose().hex() == moved.score.hex()
    assert "which it seems to replace" in str(moved.contributions.to_json())


def test_a_context_calls_the_older_statement_earlier_and_names_the_day_of_the_newer(memory):
    old, new, question = CHANGES[6]
    context = memory.assemble(question, user="ana", budget=2_000)
    shown = {item.text: item for item in context.items}
    assert shown[old].earlier
    assert not shown[new].earlier
    assert f"(earlier, see 2025-05-12): {old}" in context.text


def test_what_its_user_says_holds_is_called_earlier_in_no_context():
    old, _, question = CHANGES[6]
    with told(SETTINGS) as memory:
        [unit] = [one for one in memory.list(user="ana", limit=None) if one.text == old]
        memory.overrule(unit.id, decision="earlier", user="ana")
        shown = {item.text: item for item in memory.assemble(question, user="ana", budget=2_000).items}
    assert not shown[old].earlier


def test_a_context_shows_the_older_statement_before_the_newer_and_little_between(memory):
    for old, new, question in CHANGES:
        context = memory.assemble(question, user="ana", budget=1_000)
        shown = [item.text for item in context.section("projection").items if item.text != "Noted."]
        if any(item.text == old and item.earlier for item in context.items):
            assert shown.index(new) == shown.index(old) + 1


def test_what_only_looks_like_a_change_stays_below():
    """Somebody else's change, a plan, a second thing: said later, in words of change, about something near."""
    said = [
        ("I live in Bath, in a flat above the weir.", "My cousin moved to York last week.", "Where do I live?"),
        ("My car is a blue Skoda with a dent.", "A new bakery opened, the rye is superb.", "What is my car?"),
        ("I work at the library, in the map room.", "The new lamps in the hall are too bright.", "Where do I work?"),
    ]
    now = [START]
    with Memory.open(
        ":memory:", settings=SETTINGS.without_timeouts(), now=lambda: now[0], embedder=HashEmbedder()
    ) as memory:
        for place, (real, alike, _) in enumerate(said):
            for side, text in enumerate((real, alike)):
                at = START + timedelta(days=60 * side + place)
                memory.remember([{"role": "user", "content": text, "at": at}], user="ana", session=f"{side}-{place}")
        now[0] = START + timedelta(days=200)
        for real, alike, question in said:
            first, second = order_of(memory, question, real, alike)
            assert first < second, question
