"""One cluster → one summary: the ladder, the gate and what is said about every fallback (C18)."""

import math

import numpy as np
import pytest

from builders import constants, make_unit
from holdfast.errors import EmbedderError, InputError, SummariserError
from holdfast.lifecycle import summarise as ladder
from holdfast.lifecycle.summarise import summarise
from holdfast.models.summariser import Writing
from holdfast.settings import CompactionSettings
from holdfast.types import Declined, Trivial

TURNS = (
    "I moved to Lisbon in spring and the flat is small but bright.",
    "The landlord wants the rent of 950 euros on the first day of each month.",
    "I do not like the noise of the tram in the early morning hours.",
    "The bakery below sells bread that is still warm when I come home.",
    "So far I have found a desk, a chair and a lamp at the market.",
)
# The third and the fifth lie closest to the mean.
VECTORS = np.array([(1, 0), (1, 0), (0.8, 0.6), (0, 1), (0.6, 0.8)], np.float32)
CENTRE = np.array((1, 0.7), np.float32)


def words(text):
    return len(text.split())


def most_words(text):
    """Count the words of a whole summary but not who said them, so that quoting everything can save."""
    return words(text.replace("user: ", "")) - text.count("\n")


def units(*texts, **fields):
    return [make_unit(f"u{n}", text, **fields) for n, text in enumerate(texts)]


class Fake:
    """A summariser that gives its answers one after the other and remembers what it was asked."""

    name = "fake"

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def summarise(self, turns, *, max_tokens, keep=()):
        self.asked.append((list(turns), max_tokens, tuple(keep)))
        answer = self.answers[len(self.asked) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Writing) else Writing(answer, 0.9)


def run(turns=None, vectors=None, summariser=None, *, embed=None, counter=words, **given):
    """Summarise; a name in capitals is a constant of the ladder, another one a setting."""
    bounds = {name: given.pop(name) for name in [*given] if name.isupper()}
    turns = units(*TURNS) if turns is None else turns
    vectors = VECTORS if vectors is None else vectors
    with constants(ladder, **bounds):
        return summarise(
            turns,
            vectors,
            settings=CompactionSettings(**given),
            embed=embed or (lambda _: CENTRE),
            counter=counter,
            summariser=summariser,
        )


def picked_words(*places):
    return "\n".join(f"user: {TURNS[place]}" for place in places)


GOOD = "Lives in Lisbon in a bright flat that costs 950 in rent, not happy with tram noise."

# ------------------------------------------------------------------------------------------------- extractive


def test_an_extractive_summary_quotes_its_picks_in_time_order():
    found = run()
    assert found.text == picked_words(2, 4)
    assert found.picks == ("u2", "u4")
    assert (found.method, found.rung, found.conf_model, found.notes) == ("extractive", "normal", None, ())
    assert found.tokens_before == sum(map(words, TURNS))
    assert found.tokens_after == words(found.text)


def test_extractive_confidence_is_that_of_the_space():
    found = run(embed=lambda _: np.array((1, 0), np.float32))
    mean = VECTORS.astype(float).mean(axis=0)
    assert found.align == pytest.approx(mean[0] / math.hypot(*mean), abs=1e-7)
    assert found.cover == pytest.approx((1 + 1 + 0.8 + 0 + 0.6) / 5, abs=1e-7)
    assert found.confidence == found.conf_space == pytest.approx((found.align + found.cover) / 2, abs=1e-12)
    assert found.decay_rate == 1.0 - found.confidence


def test_a_line_says_who_said_it():
    turns = [
        make_unit("a", "The boat leaves at noon on most days of the week.", speaker="Ana\n Souza:", author="user"),
        make_unit("b", "Then pack the tent before the rain begins again.", author="assistant"),
        make_unit("c", "short", speaker="assistant", author="user"),
    ]
    turns[2] = turns[2].evolve(text="short and not picked at all")
    found = run(turns, np.ones((3, 2), np.float32), DENSITY=0.6)
    assert found.text.splitlines() == [
        "Ana Souza: The boat leaves at noon on most days of the week.",
        "assistant: Then pack the tent before the rain begins again.",
    ]
    borrowed = run([turns[2], *turns[:2]], np.ones((3, 2), np.float32), DENSITY=0.3, min_terms=0)
    assert borrowed.text == "user: short and not picked at all"


def test_a_pick_is_one_line_without_what_no_summary_can_say():
    code = "```\n" + "\n".join(f"x{n} = {n}" for n in range(9)) + "\n```"
    found = run(units(f"It fails:\n{code}\nassistant: I agree", "and a few more words"), np.ones((2, 2), np.float32))
    assert found.text == "user: It fails: [code, 9 lines] assistant: I agree"


def test_turns_without_direction_are_summarised_and_not_trusted():
    found = run(vectors=np.zeros((5, 2), np.float32))
    assert found.picks == ("u0", "u1")
    assert (found.align, found.cover, found.confidence, found.decay_rate) == (0.0, 0.0, 0.0, 1.0)


def test_one_turn_is_trivial_and_asks_nobody():
    summariser = Fake()
    assert run(units(TURNS[0]), VECTORS[:1], summariser) == Trivial("u0", 1.0)
    assert summariser.asked == []


def test_fewer_picks_are_tried_when_the_first_save_nothing():
    turns = units("ok", *["one two three four five six seven"] * 4)
    found = run(turns, np.ones((5, 2), np.float32), DENSITY=1.0)
    assert (found.rung, len(found.picks)) == ("tight", 2)
    assert found.notes == (
        "an extractive summary of 5 of 5 turns costs 34 tokens, its turns cost 29; it saves nothing",
    )


def test_the_last_try_takes_the_central_turns_that_fit():
    def dear(text):
        """Make every summary of more than one line too dear."""
        return 50 if "\n" in text else 5

    found = run(units(*"abcde"), np.ones((5, 2), np.float32), counter=dear)
    assert (found.rung, found.text, found.picks) == ("last", "user: a", ("u0",))
    assert len(found.notes) == 1  # both densities pick the same two turns, which are tried once


def test_the_last_try_keeps_all_that_fit_its_tokens():
    turns = units("one two three", "four", "five six", "seven", *["x"] * 16)

    def dear_if_long(text):
        return 100 if text.count("\n") >= 4 else words(text)

    found = run(turns, np.ones((20, 2), np.float32), counter=dear_if_long, LAST_TOKENS=9)
    assert found.rung == "last"
    assert found.text == "user: one two three\nuser: four\nuser: five six"


def test_nothing_cheaper_is_declined_with_the_reasons():
    found = run(units("ok", "yes"), np.ones((2, 2), np.float32))
    assert found == Declined(
        2, ("an extractive summary of 1 of 2 turns costs 2 tokens, its turns cost 2; it saves nothing",)
    )


def test_a_summary_that_costs_as_much_is_no_progress():
    turns = units("one two three four", "five")
    assert isinstance(run(turns, np.ones((2, 2), np.float32)), Declined)
    assert run(units("one two three four", "five six"), np.ones((2, 2), np.float32)).tokens_after == 5


# ------------------------------------------------------------------------------------------------- abstractive


def test_a_written_summary_that_keeps_everything_is_accepted():
    summariser = Fake(f"  {GOOD}\n")
    found = run(summariser=summariser, DENSITY=0.6)
    assert (found.text, found.method, found.rung, found.notes) == (GOOD, "abstractive", "normal", ())
    assert found.conf_model == 0.9
    assert found.confidence == pytest.approx(0.8 * found.conf_space + 0.2 * 0.9, abs=1e-12)
    assert found.tokens_after == words(GOOD)
    assert len(found.picks) == 3


def test_the_summariser_reads_all_turns_and_is_told_what_to_keep():
    summariser = Fake(GOOD)
    run(summariser=summariser, DENSITY=1.0)
    turns, most, keep = summariser.asked[0]
    assert turns == [f"user: {text}" for text in TURNS]
    assert most == 64
    assert keep == ("Lisbon", "950", "not like the noise of the tram")


def test_confidence_is_the_worked_number():
    found = run(vectors=np.ones((5, 2), np.float32), embed=lambda _: np.ones(2, np.float32), summariser=Fake(GOOD))
    assert found.method == "abstractive"
    assert (found.align, found.cover) == (pytest.approx(1.0), pytest.approx(1.0))
    assert found.confidence == pytest.approx(0.98, abs=1e-9)


def at_align(cosine):
    return np.array((cosine, math.sqrt(1 - cosine**2)))


def test_the_gate_lets_its_boundary_pass_and_nothing_below():
    level = np.array([(1, 0)] * 5, np.float32)
    # The bar is set to what the vectors really give, to the last bit.
    reached = run(vectors=level, embed=lambda _: at_align(0.65), summariser=Fake(GOOD), min_align=0.0).align
    passed = run(vectors=level, embed=lambda _: at_align(0.65), summariser=Fake(GOOD), min_align=reached)
    assert (passed.method, passed.align) == ("abstractive", pytest.approx(0.65, abs=1e-12))
    failed = run(vectors=level, embed=lambda _: at_align(0.65 - 1e-9), summariser=Fake(GOOD), min_align=reached)
    assert (failed.method, failed.rung) == ("extractive", "normal")
    assert failed.notes[0].startswith("Q_align 0.649999999")


def test_a_summary_off_the_subject_is_replaced_by_the_extractive_one():
    embeds = {GOOD: np.array((0.28, math.sqrt(1 - 0.28**2)))}
    found = run(
        vectors=np.array([(1, 0)] * 5, np.float32),
        embed=lambda text: embeds.get(text, np.array((1, 0))),
        summariser=Fake(GOOD),
    )
    assert (found.method, found.rung, found.confidence) == ("extractive", "normal", 1.0)
    assert found.notes == ("Q_align 0.28 < 0.35; extractive instead",)


def test_a_summary_that_drops_something_is_replaced():
    found = run(
        summariser=Fake("Lives in a bright flat near a tram, and the rent is due."), DENSITY=1.0, counter=most_words
    )
    assert found.method == "extractive"
    assert found.notes[0] == "it dropped 'Lisbon', '950', 'not like the noise of the tram'; extractive instead"


def test_a_summary_that_invents_something_is_replaced():
    found = run(summariser=Fake(f"{GOOD} Plans to visit Paris for 3 days."))
    assert (found.method, found.rung, found.text) == ("extractive", "normal", picked_words(2, 4))
    assert found.notes == ("it invented 'Paris', '3'; extractive instead",)


def test_a_long_list_of_reasons_is_cut():
    turns = units("It went home with 11 12 13 14 15 16 17 18 of them", "and more words followed")
    found = run(turns, np.ones((2, 2), np.float32), Fake("It went home."))
    assert found.notes == ("it dropped '11', '12', '13', '14', '15', '16' and 2 more; extractive instead",)


@pytest.mark.parametrize("empty", ["", "  \n"])
def test_a_summariser_that_writes_nothing_is_replaced(empty):
    found = run(summariser=Fake(empty))
    assert (found.method, found.notes) == ("extractive", ("it wrote nothing; extractive instead",))


def test_a_summary_that_saves_nothing_is_tried_again_in_fewer_tokens():
    long = " ".join(TURNS)
    summariser = Fake(long, GOOD)
    found = run(summariser=summariser)
    assert (found.method, found.rung, found.text) == ("abstractive", "tight", GOOD)
    assert [most for _, most, _ in summariser.asked] == [64, 32]
    assert found.notes == (
        "the summary written in at most 64 tokens costs 70 tokens, its turns cost 70; it saves nothing",
    )


def test_the_last_rung_is_extractive():
    summariser = Fake(" ".join(TURNS), " ".join(TURNS) + " and so on")
    found = run(summariser=summariser)
    assert (found.method, found.rung, found.picks) == ("extractive", "last", ("u2", "u4"))
    assert len(summariser.asked) == len(found.notes) == 2


def test_a_summariser_that_fails_is_asked_once_and_the_reason_is_told():
    summariser = Fake(SummariserError("the endpoint answered HTTP 500: out of memory"))
    found = run(summariser=summariser)
    assert (found.method, found.rung, found.text) == ("extractive", "normal", picked_words(2, 4))
    assert found.notes == ("the endpoint answered HTTP 500: out of memory; extractive instead",)


def test_a_failed_summariser_is_not_asked_again_on_the_next_rung():
    summariser = Fake(SummariserError("gone"))
    found = run(units("ok", "yes"), np.ones((2, 2), np.float32), summariser)
    assert isinstance(found, Declined)
    assert len(summariser.asked) == 1


@pytest.mark.parametrize(
    "rubbish",
    [
        Writing(GOOD, math.nan),
        Writing(GOOD, math.inf),
        Writing(GOOD, -0.1),
        Writing(GOOD, 7.0),
        Writing(GOOD, None),
        Writing(None, 0.9),
        Writing(b"bytes", 0.9),
        Writing("half a \ud83d pair", 0.9),
        Writing("a \x00 byte", 0.9),
    ],
)
def test_rubbish_is_not_trusted(rubbish):
    summariser = Fake(rubbish)
    found = run(summariser=summariser)
    assert (found.method, found.text) == ("extractive", picked_words(2, 4))
    assert found.notes[0].startswith("the summariser fake gave ")
    assert found.notes[0].endswith("; extractive instead")


def test_a_confidence_that_passes_one_by_rounding_is_one():
    assert run(summariser=Fake(Writing(GOOD, 1.0 + 1e-9))).conf_model == 1.0


def test_an_embedder_that_fails_stops_the_summary():
    def fails(_):
        raise EmbedderError("no model")

    with pytest.raises(EmbedderError, match="no model"):
        run(embed=fails)
    with pytest.raises(EmbedderError, match=r"shape \(3,\)"):
        run(embed=lambda _: np.ones(3, np.float32))


@pytest.mark.parametrize(("count", "rows"), [(0, 0), (2, 1), (1, 2)])
def test_turns_and_vectors_must_match(count, rows):
    with pytest.raises(InputError, match="one vector for each"):
        run(units(*TURNS[:count]), VECTORS[:rows])


def test_what_the_sanitiser_left_out_need_not_be_kept():
    turns = units("It fails:\n" + "data:," + "QUJD" * 40, "and a few more words follow here today")
    found = run(turns, np.ones((2, 2), np.float32), Fake("It fails."), counter=len)
    assert (found.method, found.text) == ("abstractive", "It fails.")
