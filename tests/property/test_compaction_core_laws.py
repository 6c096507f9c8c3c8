"""C18 and C20 for the pure core of compaction, on generated turns, vectors, counters and summarisers."""

import zlib

import numpy as np
from hypothesis import assume, event, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from builders import constants, make_unit
from holdfast.errors import SummariserError
from holdfast.kernels.clustering import clusters, pick_count, preservation, rank_central
from holdfast.lifecycle import summarise as lifecycle
from holdfast.lifecycle.summarise import PLACEHOLDER, sanitise, summarise
from holdfast.models.summariser import Writing
from holdfast.settings import CompactionSettings
from holdfast.text.preservation import essentials, invented, missing
from holdfast.text.tokens import estimate
from holdfast.types import Declined, Summarised, Trivial

# Words that names, numbers, dates, negations, clauses and placeholders are made of.
WORDS = (
    "I we Ana Ana's Lisbon New York Dr. O'Brien GPT-4 iPhone NOT do not don't never without no nicht kein pas 不喜欢"
    " ない 咖啡 coffee tea, meat. house; but because May March 12 March 2026-03-12 3/29 9:30 pm Monday last week two"
    " one 7 1,000.50 3,5 v2.1.0 -5 50% ١٢ é ß İ ﬁ ½ ’s “quoted” (aside) [code, 9 lines] : … \n \u2028 \t ``` ~~~"
    " data:"
).split(" ")
PLAIN = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
TEXTS = st.one_of(
    st.text(PLAIN, max_size=80),
    st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join),
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(PLAIN, max_size=6)), max_size=12).map(" ".join),
)
BLOCKS = st.lists(
    st.one_of(
        st.sampled_from(
            ["```", "````", "~~~", "    ```", "```js", "``` ", "", "  ", "data:," + "QUJD" * 20, "0f" * 60]
        ),
        st.text("ab `~=/", max_size=120),
    ),
    max_size=30,
).map("\n".join)
DIMS = 3
NUMBERS = st.one_of(st.floats(-2, 2, width=32), st.sampled_from([0.0, 1.0, -1.0, 3e38, 1e-45]))


def matrix(rows):
    return arrays.arrays(np.float32, (rows, DIMS), elements=NUMBERS)


# ------------------------------------------------------------------------------------------------- clusters


@given(st.integers(0, 400), st.integers(-2, 60))
def test_clusters_hold_every_turn_once_in_order_and_differ_by_at_most_one(n, k):
    sizes = [len(places) for places in clusters(n, k)]
    assert sum(sizes) == n
    assert [place for places in clusters(n, k) for place in places] == list(range(n))
    if n:
        size = k if k > 0 else 20
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= size
        count = -(-n // size)
        assert [i * count // n for i in range(n)] == [j for j, places in enumerate(clusters(n, k)) for _ in places]


@given(st.integers(0, 12).flatmap(matrix), st.floats(0, 1, exclude_min=True))
def test_a_ranking_holds_every_turn_and_some_are_picked_of_any(vectors, density):
    assert sorted(rank_central(vectors)) == list(range(len(vectors)))
    assert (pick_count(len(vectors), density) >= 1) is (len(vectors) >= 1)


@given(st.integers(0, 8).flatmap(matrix), matrix(1))
def test_preservation_stays_in_its_bounds_for_any_vectors(vectors, summary):
    kept = preservation(summary[0], vectors)
    assert -1.0 <= kept.align <= 1.0
    assert 0.0 <= kept.cover <= 1.0
    assert 0.0 <= kept.confidence <= 1.0


# ------------------------------------------------------------------------------------------------- texts


@given(st.one_of(TEXTS, BLOCKS))
def test_sanitising_twice_changes_nothing_and_something_is_always_left(text):
    once = sanitise(text)
    assert bool(once.strip()) == bool(text.strip())
    assert sanitise(once) == once


@given(TEXTS)
def test_a_text_keeps_its_own_essentials_and_invents_none_of_them(text):
    found = essentials(text)
    assert missing(found, text) == ()
    assert invented([text], text) == ()
    assert essentials(text) == found


@given(TEXTS, TEXTS, TEXTS)
def test_more_lines_take_nothing_away(text, before, after):
    assert missing(essentials(text), f"{before}\n{text}\n{after}") == ()
    assert invented([before, text, after], text) == ()


# ------------------------------------------------------------------------------------------------- the ladder


def scattered(text):
    """Answer without any regard to length."""
    return zlib.crc32(text.encode()) % 40


COUNTERS = st.sampled_from([len, estimate, lambda text: len(text.split()), scattered, lambda _: 0])


def embed(text):
    """Embed a text by its letters: blank ones have no direction."""
    return np.array([text.count(letter) for letter in "aen"], np.float32)


class Scripted:
    """A summariser that answers what it was given, or fails; the same way each time it is asked."""

    name = "scripted"

    def __init__(self, answer):
        self.answer, self.asked = answer, 0

    def summarise(self, turns, *, max_tokens, keep=()):
        self.asked += 1
        if self.answer == "fail":
            raise SummariserError("it fails")
        if self.answer == "echo":
            return Writing(" ".join(turns), 1.0)
        if self.answer == "keep":
            return Writing("; ".join(keep), 0.5)
        return self.answer


ANSWERS = st.one_of(
    st.sampled_from(["fail", "echo", "keep"]),
    st.builds(Writing, TEXTS, st.one_of(st.floats(), st.floats(0, 1))),
)


@st.composite
def clustered(draw):
    texts = draw(st.lists(TEXTS, min_size=1, max_size=7))
    turns = [
        make_unit(f"u{n}", text, speaker=draw(st.one_of(st.just(""), TEXTS)), author=draw(AUTHORED))
        for n, text in enumerate(texts)
    ]
    return turns, draw(matrix(len(turns)))


AUTHORED = st.sampled_from(["user", "assistant", "tool"])
SHARES = st.floats(0.01, 1)
# Laws hold for every ladder: clusters here are so small that the contract's ends early.
LADDERS = st.fixed_dictionaries({
    "min_align": st.floats(-1, 1), "DENSITY": SHARES, "TIGHT_DENSITY": SHARES, "LAST_TOKENS": st.integers(1, 30),
    "MODEL_SHARE": st.floats(0, 1),
})  # fmt: skip


def run(cluster, ladder, counter, answer):
    turns, vectors = cluster
    summariser = None if answer is None else Scripted(answer)
    bounds = {name: value for name, value in ladder.items() if name.isupper()}
    settings = CompactionSettings(min_align=ladder["min_align"])
    with constants(lifecycle, **bounds):
        found = summarise(turns, vectors, settings=settings, embed=embed, counter=counter, summariser=summariser)
    return found, summariser


@given(clustered(), LADDERS, COUNTERS, st.none() | ANSWERS)
def test_whatever_is_written_a_summary_saves_tokens_and_its_numbers_are_numbers(cluster, ladder, counter, answer):
    found, summariser = run(cluster, ladder, counter, answer)
    turns = cluster[0]
    assert isinstance(found, Trivial) is (len(turns) == 1)
    if summariser and answer == "fail":
        assert summariser.asked == (len(turns) > 1)
    if isinstance(found, Declined):
        assert found.notes
    if isinstance(found, Summarised):
        assert found.tokens_after == counter(found.text) < found.tokens_before
        assert found.tokens_before == sum(counter(turn.text) for turn in turns)
        for value in (found.confidence, found.decay_rate, found.cover, found.conf_space):
            assert 0.0 <= value <= 1.0
        assert found.decay_rate == 1.0 - found.confidence
        assert -1.0 <= found.align <= 1.0
        assert found.text.strip()
        places = [int(unit_id[1:]) for unit_id in found.picks]
        assert places == sorted(set(places))


@given(clustered(), LADDERS, COUNTERS, st.none() | ANSWERS)
def test_the_same_cluster_gives_the_same_summary(cluster, ladder, counter, answer):
    assume(not (isinstance(answer, Writing) and answer.confidence != answer.confidence))
    assert run(cluster, ladder, counter, answer)[0] == run(cluster, ladder, counter, answer)[0]


@given(clustered(), LADDERS, COUNTERS)
def test_an_extractive_summary_keeps_the_essentials_of_its_picks(cluster, ladder, counter):
    found, _ = run(cluster, ladder, counter, None)
    assume(isinstance(found, Summarised))
    texts = {turn.id: turn.text for turn in cluster[0]}
    assert len(found.text.splitlines()) == len(found.picks)
    for line, unit_id in zip(found.text.splitlines(), found.picks, strict=True):
        body = " ".join(sanitise(texts[unit_id]).split())
        assert line.endswith(f": {body}")
        assert missing(essentials(PLACEHOLDER.sub(" … ", body)), found.text) == ()
        assert missing(essentials(body), found.text) == ()


FILLER = ", and then there was some more talk of this and that until it was time to go home again"


@given(st.lists(TEXTS, min_size=2, max_size=6), LADDERS, st.booleans(), TEXTS)
def test_an_accepted_written_summary_keeps_all_and_invents_nothing(texts, ladder, obeys, tail):
    turns = [make_unit(f"u{n}", text + FILLER) for n, text in enumerate(texts)]
    vectors = np.ones((len(turns), DIMS), np.float32)
    # One writes just what it is asked to keep; the other adds something, which the turns say or do not.
    answer = "keep" if obeys else Writing(f"It was time to go; {tail}", 0.5)
    found, _ = run((turns, vectors), ladder | {"min_align": -1.0}, len, answer)
    if isinstance(found, Summarised) and found.method == "abstractive":
        bodies = {turn.id: " ".join(sanitise(turn.text).split()) for turn in turns}
        for unit_id in found.picks:
            assert missing(essentials(PLACEHOLDER.sub(" … ", bodies[unit_id])), found.text) == ()
        assert invented([f"user: {body}" for body in bodies.values()], found.text) == ()
    elif obeys:
        event("a summary of just what was to be kept was not accepted")
