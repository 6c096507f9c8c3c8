"""What a summary must keep, and may not add (C18)."""

import pytest

from holdfast.text.preservation import Essentials, essentials, invented, missing


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("I moved to Lisbon with Ana Souza.", ("Lisbon", "Ana Souza")),
        ("We flew to New York and saw Ana's harbour.", ("New York", "Ana")),
        ("Bo likes tea. Porto is cheap. Iris and Tom left.", ("Bo", "Porto", "Iris", "Tom")),
        ("Thanks! That sounds good. Yesterday we talked. Going home. Maybe later.", ()),
        ("Discussed the trip. Hotels are full. Recently it rained.", ()),
        ("Where do you live? Lisbon.", ("Lisbon",)),
        ("Dr. Okafor called; so did Mrs. Lind.", ("Okafor", "Lind")),
        ("I think I'm fine, and I've paid.", ()),
        ("The iPhone runs on iOS, the server on PostgreSQL.", ("iPhone", "iOS", "PostgreSQL")),
        ("Tea is what I want; no more tea today.", ()),
        ("STOP SHOUTING AT ME", ()),
        ("We use HTTP at O'Brien's and Jean-Luc knows.", ("HTTP", "O'Brien", "Jean-Luc")),
        ("Москва большая, и Анна живёт в Казани.", ("Анна", "Казани")),
        ("我住在Lisbon。", ("Lisbon",)),
        ("On Monday in May I met Jan.", ("Jan",)),
        ("", ()),
    ],
)
def test_names_are_capitals_that_no_sentence_asks_for(text, names):
    assert essentials(text).names == names


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It cost €1,000.50, that is 12% more than 3.5.", ("1,000.50", "12", "3.5")),
        ("Version v2.1.0 needs 16GB and two disks.", ("2.1.0", "16", "two")),
        ("It was -5 degrees, 2-3 below the norm.", ("-5", "2", "3")),
        ("One of them said that no one came.", ()),
        ("On 12 March 2026 we had 12 guests.", ("12",)),
        ("On 2026-03-12 at 9:30 pm.", ()),
        ("سعره ١٢٥ دينارا", ("١٢٥",)),
    ],
)
def test_numbers_are_digits_outside_dates_and_small_number_words(text, numbers):
    assert essentials(text).numbers == numbers


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("Paid on 2026-03-12.", ("2026-03-12",)),
        ("Paid on 12 March at 9:30 pm.", ("12 march", "9:30 pm")),
        ("In March it rained, in June not. May I go? March on!", ("march", "june")),
        ("Next Friday or last week.", ("last week", "next friday")),
    ],
)
def test_dates_are_the_anchors_and_bare_months(text, dates):
    assert essentials(text).dates == dates


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("I do not eat meat, but fish is fine.", ("not eat meat",)),
        ("She isn’t allergic to nuts.", ("isn't allergic to nuts",)),
        ("We left without Tom and never called.", ("without Tom and never called", "never called")),
        ("No.", ("No",)),
        ("Fleisch esse ich nicht.", ("Fleisch esse ich nicht",)),
        ("Не люблю кофе. Je ne mange pas de viande.", ("Не люблю кофе", "ne mange pas de viande", "pas de viande")),
        ("我不喜欢咖啡。他喜欢。", ("我不喜欢咖啡",)),
        ("肉は食べません。", ("肉は食べません",)),
        ("Everything is fine.", ()),
    ],
)
def test_negations_carry_what_they_deny(text, negated):
    assert essentials(text).negated == negated


def test_phrases_are_all_of_it():
    found = essentials("On 12 March Ana did not pay Tom 40 euros.")
    assert found == Essentials(("Ana", "Tom"), ("40",), ("12 march",), ("not pay Tom 40",))
    assert found.phrases() == ("Ana", "Tom", "40", "12 march", "not pay Tom 40")


SOURCE = "I moved to Lisbon on 12 March 2026 with two cats. I do not like coffee. The rent is 1,250.00 euros."


@pytest.mark.parametrize(
    "summary",
    [
        "Moved to LISBON (2026-03-12) with 2 cats; doesn't like coffee; pays 1250 in rent.",
        "On March 12th, 2026 the user moved to Lisbon's centre with two cats; no coffee; rent 1250.",
        SOURCE.upper(),
    ],
)
def test_what_is_said_in_other_words_is_kept(summary):
    assert missing(essentials(SOURCE), summary) == ()


@pytest.mark.parametrize(
    ("summary", "dropped"),
    [
        ("Moved on 2026-03-12 with 2 cats, no coffee, rent 1250.", ("Lisbon",)),
        ("Moved to Lisbon on 2026-03-12, no coffee, rent 1250.", ("two",)),
        ("Moved to Lisbon in March 2026 with 2 cats, no coffee, rent 1250.", ("12 march 2026",)),
        ("Moved to Lisbon on 2026-03-12 with 2 cats, likes coffee, rent 1250.", ("not like coffee",)),
        ("Moved to Lisbon on 2026-03-12 with 2 cats, likes coffee but not dogs, rent 1250.", ("not like coffee",)),
        ("", ("Lisbon", "1,250.00", "two", "12 march 2026", "not like coffee")),
    ],
)
def test_what_is_dropped_is_named(summary, dropped):
    assert missing(essentials(SOURCE), summary) == dropped


def test_days_and_months_of_two_dates_do_not_mix():
    source = essentials("Ana came on 12 March and left on 14 April.")
    assert missing(source, "Ana came on 14 March and left on 12 April.") == ("12 march", "14 april")


@pytest.mark.parametrize(
    ("date", "other"),
    [
        ("3/29/2026", "29 March 2026"),
        ("29/3/26", "2026-03-29"),
        ("9:30 pm", "21:30"),
        ("2026-03-29T09:30Z", "2026-03-29 09:30"),
        ("Sept 1st", "1 September"),
        ("Mondays", "Monday"),
    ],
)
def test_one_date_may_be_written_in_two_ways(date, other):
    assert missing(essentials(f"It was {date}."), f"On {other}.") == ()
    assert invented([f"It was {date}."], f"We met on {other}.") == ()


def test_a_date_that_can_be_read_in_two_ways_stays_as_it_is():
    assert missing(essentials("It was 3/4."), "It was 4 March.") == ("3/4",)


def test_a_bare_no_asks_for_any_negation():
    assert missing(essentials("No."), "Tom will not come.") == ()
    assert missing(essentials("No."), "Tom will come.") == ("No",)


@pytest.mark.parametrize(
    ("summary", "added"),
    [
        ("The user moved to Lisbon. Discussed the rent.", ()),
        ("The user moved to Paris.", ("Paris",)),
        ("Bob said that rent is 1250.", ("Bob",)),
        ("Rent is 1,300 and there are three cats.", ("1,300", "three")),
        ("Moved on 13 March 2026, a Friday.", ("13 march 2026", "friday")),
        ("One cat came along.", ()),
        ("", ()),
    ],
)
def test_what_no_source_says_is_invented(summary, added):
    assert invented(["ana: hello", f"user: {SOURCE}"], summary) == added


def test_a_source_may_say_a_name_in_any_case_and_script():
    assert invented(["i live in lisbon, 我住在Porto"], "She lives in Lisbon, earlier in Porto.") == ()


def test_a_number_of_thousands_of_digits_is_read():
    number = "7" * 5000
    assert missing(essentials(f"code {number}"), f"code {number}") == ()
