"""Projects over several sessions, and follow-ups inside one: a question is understood from where it is asked."""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Memory, Settings
from holdfast.eval.systems import switch_off

START = datetime(2025, 3, 3, 9, 0, tzinfo=UTC)
# Every project takes its turn each week, so that the session before the question is always another one's.
PROJECTS = {
    "pond": [
        "For the garden pond we marked the outline with rope and called about the pipes.",
        "The garden pond is dug out, sixty centimetres deep, and the pond liner is ordered.",
        "The liner lies in the garden pond. Gravel comes on Tuesday.",
    ],
    "canoe": [
        "For the cedar canoe we traced the outline of the frames on plywood.",
        "The frames of the cedar canoe stand on the strongback, the strips are ordered.",
        "Half of the strips are on the canoe. Glue comes on Tuesday.",
    ],
    "choir": [
        "For the choir concert we wrote an outline of the programme.",
        "The choir concert has a hall now, the scores for the choir are ordered.",
        "The altos of the choir know the concert programme. Posters come on Tuesday.",
    ],
    "thesis": [
        "For the thesis on lichens we drafted an outline of the chapters.",
        "The lichen samples for the thesis are sorted, microscope slides are ordered.",
        "Two chapters of the lichen thesis are written. The slides come on Tuesday.",
    ],
    "bakery": [
        "For the bakery stall we drew an outline of the counter.",
        "The bakery stall has its permit, flour for the stall is ordered.",
        "The oven of the bakery stall is lit. Paper bags come on Tuesday.",
    ],
    "quilt": [
        "For the wedding quilt we cut an outline of the star pattern.",
        "The stars of the wedding quilt are pinned, the batting is ordered.",
        "The wedding quilt is half stitched. The binding comes on Tuesday.",
    ],
}
OPENERS = {
    "pond": "The garden pond again. What's next?",
    "canoe": "Let's go on with the cedar canoe.",
    "choir": "Where were we with the choir concert?",
    "thesis": "I have time for the lichen thesis. What is the next step?",
    "bakery": "Shall we continue with the bakery stall?",
    "quilt": "We left off at the wedding quilt, what should we do next?",
}
# What was said long ago, the running session, and the follow-up that is understood from it alone.
FOLLOW_UPS = [
    ("The boiler was serviced by Hanne Lund.", ["I want the boiler looked at again."], "who did it?"),
    ("The blue kayak cost 640 euros.", ["Do you remember the blue kayak?"], "and the price?"),
    ("Our ferry to Bergen leaves at 06:15.", ["I am packing for the Bergen ferry."], "what time?"),
    ("Marta is allergic to walnuts.", ["Marta comes to dinner with her walnuts story."], "what about the cake?"),
    ("The attic key hangs behind the clock.", ["I need something from the attic.", "it is locked"], "where was it?"),
    ("Pavel repaired the accordion in Brno.", ["The accordion squeaks.", "badly"], "who could help?"),
]


def remember(memory):
    for project, told in enumerate(PROJECTS):
        for week, text in enumerate(PROJECTS[told]):
            at = START + timedelta(weeks=week, days=project)
            session = f"{told}-{week}"
            memory.remember([{"role": "user", "content": text, "at": at}], user="ana", session=session)
    for number, (text, _, _) in enumerate(FOLLOW_UPS):
        at = START + timedelta(hours=number)
        memory.remember([{"role": "user", "content": text, "at": at}], user="ana", session=f"told-{number}")


def opened(settings):
    return Memory.open(":memory:", settings=settings.without_timeouts(), now=lambda: START + timedelta(weeks=4))


@pytest.fixture(scope="module")
def memory():
    with opened(Settings()) as memory:
        remember(memory)
        yield memory


def places_of_the_latest(memory):
    found = [[hit.unit.session for hit in memory.search(question, user="ana")] for question in OPENERS.values()]
    return [sessions.index(f"{project}-2") for project, sessions in zip(OPENERS, found, strict=True)]


def test_what_is_gone_on_with_is_found_in_the_latest_session_of_its_own_thread(memory):
    with opened(switch_off(Settings(), ["thread"])) as without:
        remember(without)
        before = places_of_the_latest(without)
    after = places_of_the_latest(memory)
    assert all(now <= then for now, then in zip(after, before, strict=True))
    assert after.count(0) > before.count(0)
    assert sum(after) < sum(before) / 1.5
    firsts = [memory.search(question, user="ana")[0].unit.session for question in OPENERS.values()]
    assert [session.split("-")[0] for session in firsts] == list(OPENERS)  # never another project's


def test_the_thread_is_explained(memory):
    first, *_ = memory.search(OPENERS["pond"], user="ana", explain=True)
    assert "thread" in str(first.contributions)
    other, *_ = memory.search("How deep is the garden pond?", user="ana", explain=True)
    assert "thread" not in str(other.contributions)


@pytest.mark.parametrize(
    "question",
    ["What did we outline for the garden pond?", "What is next to the garden pond?", "Which pond next week?"],
)
def test_other_questions_have_no_thread(memory, question):
    assert not memory.search(question, user="ana").trace.query.continues


def test_in_the_middle_of_a_session_the_next_step_is_its_own(memory):
    said = [{"role": "user", "content": "I sanded the garden bench today, both sides."}]
    asked = {"role": "user", "content": "What is the next step for the garden pond liner?"}
    assert memory.search([asked], user="ana").trace.query.continues
    assert not memory.search([*said, asked], user="ana").trace.query.continues
    short = {"role": "user", "content": "What's next?"}
    assert memory.search([*said, short], user="ana").trace.query.continues


@pytest.mark.parametrize("case", FOLLOW_UPS)
def test_a_short_follow_up_is_understood_from_the_users_turns_before_it(memory, case):
    told, said, asked = case
    shown = [
        {"role": role, "content": text} for turn in said for role, text in (("user", turn), ("assistant", "Noted."))
    ]
    hits = memory.search([*shown, {"role": "user", "content": asked}], user="ana")
    assert hits.trace.query.borrowed == "\n".join(said)
    assert hits[0].unit.text == told


@pytest.mark.parametrize("asked_first", [False, True])
def test_the_turns_of_the_session_named_serve_as_the_messages_shown(asked_first):
    told, said, asked = FOLLOW_UPS[4]
    with opened(Settings()) as memory:
        remember(memory)
        turns = [
            {"role": role, "content": text}
            for turn in said
            for role, text in (("user", turn), ("assistant", "Noted."))
        ]
        memory.remember(turns + [{"role": "user", "content": asked}] * asked_first, user="ana", session="now")
        hits = memory.search(asked, user="ana", session="now")
        assert hits.trace.query.borrowed == "\n".join(said)
        assert told in [hit.unit.text for hit in hits if hit.unit.session != "now"][:1]
        assert memory.search(asked, user="ana").trace.query.borrowed is None
        assert memory.search(asked, user="ben", session="now").trace.query.borrowed is None
        assert memory.search("attic key", user="ana", session="now").trace.query.borrowed is None
