"""An export that is read into an empty store is the same memory: the same units, answers and scores, bit for bit."""

import contextlib
import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, later
from histories import small_memory
from holdfast import HoldfastError, sample
from holdfast.testing.contracts import HashEmbedder
from holdfast.types import DECISIONS

USERS = ("ana", "ben")
QUESTIONS = (
    "Where does Ana live?",
    "boat in harbour number3",
    "When did the ferry leave?",
    "topic1",
    "rules of the house",
)


class Clock:
    """A clock that the test moves."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


def exported(memory, **options):
    out = io.BytesIO()
    done = memory.export(out, **options)
    assert done.bytes == len(out.getvalue())
    return out.getvalue()


def copied(memory, clock=None, embedder=None, **options):
    """Return an empty memory into which an export was read."""
    copy = small_memory(now=clock or NOW, embedder=embedder or HashEmbedder(64))
    report = copy.import_(exported(memory, **options))
    assert report.complete
    assert not report.skipped
    return copy


def everything(memory, user):
    """Return all that a memory answers about one user, as values that compare."""
    owner = {"user": user}
    found = []
    views = ({}, {"as_of": later(minutes=7)}, {"current_only": False}, {"session": "s0"}, {})
    for question, more in zip(QUESTIONS, views, strict=True):
        result = memory.search(question, explain=True, **owner, **more)
        found += [result, [hit.contributions for hit in result]]
        context = memory.assemble(question, **owner, session="s1", track_access=False)
        found += [context, context.text]
    units = memory.list(**owner, limit=None, current_only=False)
    found += [units, [*map(marks, units)], [memory.history(unit.id, **owner) for unit in units]]
    found += [memory.facts(**owner, current_only=False), memory.sessions(**owner), memory.documents(**owner)]
    found += [memory.agents(**owner), memory.users()]
    stats = memory.stats(**owner)
    found.append(
        (stats.units, stats.versions, stats.by_kind, stats.by_scope, stats.earliest, stats.latest, stats.space)
    )
    return found


def marks(unit):
    return unit.access_count, unit.superseded_by, unit.superseded_why, unit.covered_by, unit.gate


def kept(memory):
    """Return all that the store holds of the tenant, as its own lines.

    The header says when it was made, and in which space: a store whose units are all forgotten still names one. The
    last line's checksum is of the header, too.
    """
    rows = [json.loads(row) for row in exported(memory, all=True, vectors=True).decode().splitlines()]
    counts = {name: count for name, count in rows[-1]["end"].items() if name != "sha256"}
    return [*rows[1:-1], counts]


TEXTS = st.sampled_from(
    [
        "I live in Porto",
        "I moved from Porto to Lisbon in March",
        "the ferry leaves at ten",
        "my kettle is copper",
        "always answer in English, please",
        "boat in harbour number3",
        'two\nlines \u202e 漢字 👩‍👧 "q" \\ é',
        "ok",
    ]
)
PLACES = st.integers(0, 40)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), TEXTS, st.sampled_from(USERS), st.integers(0, 2), st.sampled_from([None, "cook"])),
        st.tuples(st.just("talk"), st.sampled_from(USERS), st.integers(0, 2)),
        st.tuples(st.just("note"), TEXTS, st.sampled_from([None, 60.0]), st.booleans(), st.booleans()),
        st.tuples(st.just("update"), PLACES, TEXTS),
        st.tuples(st.just("mark"), PLACES, st.booleans()),
        st.tuples(st.just("supersede"), PLACES, PLACES),
        st.tuples(st.just("reinstate"), PLACES),
        st.tuples(st.just("overrule"), PLACES, st.sampled_from(DECISIONS), st.booleans()),
        st.tuples(st.just("ingest"), st.sampled_from(["a.md", "b.md"]), st.booleans(), st.booleans(), PLACES),
        st.tuples(st.just("compact"), st.sampled_from(USERS)),
        st.tuples(st.just("forget"), PLACES),
        st.tuples(st.just("ask"), st.sampled_from(QUESTIONS), st.sampled_from(USERS)),
    ),
    min_size=3,
    max_size=14,
)


class Doer:
    """Does steps to a memory; places name units by their order."""

    def __init__(self, memory, clock):
        self.memory, self.clock = memory, clock

    def unit(self, place):
        units = [unit for user in USERS for unit in self.memory.list(user=user, limit=None, current_only=False)]
        units = [unit for unit in units if unit.user is not None]
        return units[place % len(units)] if units else None

    def do(self, name, *given):
        self.clock.now += timedelta(minutes=1)
        with contextlib.suppress(HoldfastError):  # what a memory refuses changes nothing
            getattr(self, name)(*given)

    def say(self, text, user, session, agent):
        self.memory.remember(
            {"role": "user", "content": text, "speaker": "Ana" if session else ""},
            user=user,
            session=f"s{session}",
            agent=agent,
        )

    def talk(self, user, session):
        turns = [f"turn {i} tells of the boat in harbour number{i} and of topic{i % 5} at length" for i in range(14)]
        self.memory.remember([{"role": "user", "content": text} for text in turns], user=user, session=f"s{session}")

    def note(self, text, ttl, pinned, shared):
        self.memory.remember(
            text,
            user="ana",
            ttl=ttl,
            pinned=pinned,
            scope="global" if shared else "user",
            metadata={"n": [1, 2.5, {"deep": None}]},
            valid_to=later(days=2),
        )

    def update(self, place, text):
        if unit := self.unit(place):
            self.memory.update(unit.id, user=unit.user, text=text)

    def mark(self, place, pinned):
        if unit := self.unit(place):
            self.memory.update(unit.id, user=unit.user, pinned=pinned, metadata={"seen": True})

    def supersede(self, place, other):
        if (unit := self.unit(place)) and (newer := self.unit(other)):
            self.memory.supersede(unit.id, by=newer.id, user=unit.user)

    def reinstate(self, place):
        if unit := self.unit(place):
            self.memory.reinstate(unit.id, user=unit.user)

    def overrule(self, place, decision, undo):
        if unit := self.unit(place):
            self.memory.overrule(unit.id, decision=decision, undo=undo, user=unit.user)

    def ingest(self, name, core, shared, place):
        which = place % 3
        text = f"# House {which}\n\n- Never call before {which + 7}.\n\nThe ferry of {which} lives in Lisbon.\n"
        self.memory.ingest(text, user="ana", name=name, core=core, scope="global" if shared else "user")

    def compact(self, user):
        self.memory.compact(user=user)

    def forget(self, place):
        if unit := self.unit(place):
            self.memory.forget(ids=unit.id, user=unit.user)

    def ask(self, question, user):
        self.memory.assemble(question, user=user)


@settings(max_examples=12, deadline=None)
@given(STEPS, st.booleans())
def test_whatever_was_done_to_a_memory_its_export_makes_the_same_memory(steps, vectors):
    clock = Clock()
    with small_memory(now=clock, embedder=HashEmbedder(64)) as memory:
        doer = Doer(memory, clock)
        for name, *given in steps:
            doer.do(name, *given)
        with copied(memory, clock, all=True, vectors=vectors) as copy:
            assert kept(copy) == kept(memory)
            for user in USERS:
                assert everything(copy, user) == everything(memory, user)
            assert copy.store.verify() == []
            again = copy.import_(exported(memory, all=True))
            assert (again.added, again.updated, again.skipped) == (0, 0, ())
            assert kept(copy) == kept(memory)
            for name, *given in steps[:4]:  # and it goes on in the same way
                now = clock.now
                doer.do(name, *given)
                clock.now = now
                Doer(copy, clock).do(name, *given)
            assert everything(copy, "ana") == everything(memory, "ana")


@pytest.fixture(scope="module")
def household():
    with small_memory(embedder=HashEmbedder(64), assembly__budget=1_000) as memory:
        for session, messages in sample.sessions():
            memory.remember(messages, user=sample.USER, session=session)
        for name, text in sample.handbook().items():
            memory.ingest(text, user=sample.USER, name=name)
        memory.compact(user=sample.USER)
        yield memory


@pytest.mark.parametrize("vectors", [True, False])
def test_the_sample_history_answers_the_same(household, vectors):
    owner = {"user": sample.USER}
    with small_memory(embedder=HashEmbedder(64), assembly__budget=1_000) as copy:
        report = copy.import_(exported(household, **owner, vectors=vectors))
        assert (report.format, report.skipped, report.known) == ("holdfast", (), 0)
        assert report.added == household.stats(**owner).units
        for one in sample.questions():
            asked = (one["question"],), {**owner, "explain": True}
            here, there = copy.search(*asked[0], **asked[1]), household.search(*asked[0], **asked[1])
            assert here == there
            assert [hit.contributions for hit in here] == [hit.contributions for hit in there]
            contexts = [memory.assemble(one["question"], **owner, track_access=False) for memory in (copy, household)]
            assert contexts[0] == contexts[1]
        assert copy.facts(**owner) == household.facts(**owner)


# Two people who know each other, over some months: names, days, plans that change.
FRIENDS = [
    (
        "2025-05-03T10:00:00Z",
        [
            ("Marta", "I finally adopted a greyhound, her name is Pilar!"),
            ("Oskar", "Congratulations! Where from?"),
            ("Marta", "From the shelter in Setúbal, last Saturday."),
        ],
    ),
    (
        "2025-06-21T18:30:00Z",
        [
            ("Oskar", "I start at the observatory on the first of July."),
            ("Marta", "So no more night shifts at the bakery?"),
            ("Oskar", "None. I quit the bakery yesterday."),
            ("Marta", "Pilar sends her regards, she limps since the hike."),
        ],
    ),
    (
        "2025-09-14T09:15:00Z",
        [
            ("Marta", "We moved to Évora, the flat in Lisbon was too small for Pilar."),
            ("Oskar", "Do you still row on Sundays?"),
            ("Marta", "No, I joined a pottery class instead."),
            ("Oskar", "My telescope talk is on October 9th."),
        ],
    ),
]


def test_a_history_of_two_speakers_over_months_answers_the_same():
    with small_memory(embedder=HashEmbedder(64)) as memory:
        for number, (start, said) in enumerate(FRIENDS):
            at = datetime.fromisoformat(start)
            turns = [
                {
                    "role": "user",
                    "speaker": who,
                    "content": text,
                    "at": at + timedelta(minutes=place),
                    "id": f"D{number}:{place}",
                }
                for place, (who, text) in enumerate(said)
            ]
            memory.remember(turns, user="pair", session=f"session_{number}")
        questions = (
            "Where did Marta adopt Pilar?",
            "When is Oskar's talk?",
            "Where does Marta live?",
            "What does Marta do on Sundays?",
        )
        with copied(memory, user="pair") as copy:
            for question in questions:
                for more in ({}, {"as_of": datetime(2025, 7, 1, tzinfo=UTC)}, {"reference_time": "2025-10-01"}):
                    asked = {"user": "pair", "explain": True, **more}
                    assert copy.search(question, **asked) == memory.search(question, **asked)
            assert copy.facts(user="pair", current_only=False) == memory.facts(user="pair", current_only=False)
            assert copy.sessions(user="pair") == memory.sessions(user="pair")


def test_a_session_alone_is_carried_without_what_it_points_at_elsewhere(household):
    with small_memory(embedder=HashEmbedder(64)) as memory:
        memory.remember("I live in Porto", user="ana", session="one", id="old")
        memory.remember("I live in Lisbon now", user="ana", session="two", id="new", supersedes="old")
        with copied(memory, user="ana", session="one") as copy:
            [old] = copy.list(user="ana", current_only=False)
            assert (old.id, old.superseded_by) == ("old", "(erased)")
            assert copy.list(user="ana") == []
            assert copy.store.verify() == []
            # The rest comes later, and joins.
            done = copy.import_(exported(memory, user="ana"))
            assert done.added == 1
            assert [unit.id for unit in copy.list(user="ana")] == ["new"]


def test_nobody_and_an_unknown_name_are_refused(household, tmp_path):
    for options, kind in (
        ({}, "InputError"),
        ({"user": "x", "all": True}, "InputError"),
        ({"user": "nobody"}, "NotFoundError"),
        ({"user": sample.USER, "session": "none"}, "NotFoundError"),
        ({"user": sample.USER, "format": "pdf"}, "InputError"),
    ):
        with pytest.raises(HoldfastError) as refused:
            household.export(tmp_path / "a.jsonl", **options)
        assert type(refused.value).__name__ == kind
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_private_never_overwritten_and_never_half_there(household, tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    done = household.export(path, user=sample.USER)
    assert (path.stat().st_size, path.stat().st_mode & 0o777) == (done.bytes, 0o600)
    with pytest.raises(HoldfastError, match="exists"):
        household.export(path, user=sample.USER)
    monkeypatch.setattr("holdfast.transfer.jsonl._unit_row", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        household.export(tmp_path / "b.jsonl", user=sample.USER)
    assert list(tmp_path.iterdir()) == [path]
