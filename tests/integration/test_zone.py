"""The user's clock: dates and days are those of the zone that is named, and contexts are told by it."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from builders import opened
from commands import BY_WORDS, command_line
from holdfast import InputError, Settings
from holdfast.text.calendar import read_time
from holdfast.text.dates import time_mention

TOKYO, BERLIN = ZoneInfo("Asia/Tokyo"), ZoneInfo("Europe/Berlin")
# Nine in the morning of 2 July in Tokyo, still 1 July in New York.
MORNING = datetime(2026, 7, 2, 0, 0, tzinfo=UTC)


@pytest.fixture
def memory():
    with opened(now=MORNING) as one:
        yield one


def utc(text):
    return datetime.fromisoformat(f"{text}+00:00")


def asked(question, at, zone):
    found = time_mention(question, at.astimezone(ZoneInfo(zone))).range
    return found.start, found.end


# ------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("given", "zone", "expected"),
    [
        ("2026-01-01", None, "2026-01-01 00:00"),
        ("2026-01-01", "Asia/Tokyo", "2025-12-31 15:00"),
        (date(2026, 1, 1), "Asia/Tokyo", "2025-12-31 15:00"),
        ("2026-01-01T09:30", "Asia/Tokyo", "2026-01-01 00:30"),
        (datetime(2026, 1, 1, 9, 30), "Asia/Tokyo", "2026-01-01 00:30"),  # noqa: DTZ001 - that is the point
        ("2026-01-01T09:30Z", "Asia/Tokyo", "2026-01-01 09:30"),
        (datetime(2026, 1, 1, 9, 30, tzinfo=UTC), "Asia/Tokyo", "2026-01-01 09:30"),
        # Clocks go from two to three: half past two is half an hour after two.
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29 01:30"),
        # Clocks go from three back to two: of the two half past twos the first.
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25 00:30"),
        # There is no midnight: clocks go from twelve to one, and the day begins at one.
        ("2018-11-04", "America/Sao_Paulo", "2018-11-04 03:00"),
        # There are two midnights: the day begins with the first.
        ("2026-11-01", "America/Havana", "2026-11-01 04:00"),
    ],
)
def test_dates_and_local_times_are_read_in_the_zone(given, zone, expected):
    assert read_time("at", given, zone and ZoneInfo(zone)) == utc(expected)


def test_a_time_of_day_without_any_zone_is_refused():
    with pytest.raises(InputError, match=r"at = '2026-01-01T09:30' has no time zone; .* or name a zone"):
        read_time("at", "2026-01-01T09:30")


def test_every_time_a_verb_takes_may_be_a_date_of_the_zone(memory):
    memory.remember(
        "the kettle whistles", user="ana", id="u", at="2026-06-30", valid_to="2026-12-01", zone="Asia/Tokyo"
    )
    memory.remember({"content": "the lamp", "at": "2026-06-30T08:00"}, user="ana", zone="Asia/Tokyo")
    memory.remember(
        {"text": "lamps hang", "at": "2026-06-30", "valid_from": "2026-06-01"}, user="ana", zone="Asia/Tokyo"
    )
    by_text = {unit.text: unit for unit in memory.list(user="ana")}
    assert by_text["the kettle whistles"].event_time == utc("2026-06-29 15:00")
    assert by_text["the kettle whistles"].valid_to == utc("2026-11-30 15:00")
    assert by_text["the lamp"].event_time == utc("2026-06-29 23:00")
    assert by_text["lamps hang"].valid_from == utc("2026-05-31 15:00")
    changed = memory.update("u", user="ana", valid_to="2026-12-24", zone="Asia/Tokyo")
    assert changed.valid_to == utc("2026-12-23 15:00")
    found = memory.search("kettle", user="ana", reference_time="2026-06-30", zone="Asia/Tokyo")
    assert found.trace.reference_time == utc("2026-06-29 15:00")
    for after, expected in (("2026-06-30", 1), ("2026-07-01", 0)):
        wanted = {"or": [{"event_time": {"gte": after}}, {"not": {"event_time": {"lt": after}}}]}
        assert len(memory.search("kettle", user="ana", filters=wanted, zone="Asia/Tokyo")) == expected
    assert not memory.search("kettle", user="ana", filters={"event_time": {"gte": "2026-06-30"}})
    assert not memory.search("kettle", user="ana", as_of="2026-07-02", zone="Asia/Tokyo")
    assert memory.search("kettle", user="ana", as_of="2026-07-03", zone="Asia/Tokyo")


# ------------------------------------------------------------------------------------------------ questions


@pytest.mark.parametrize(
    ("question", "zone", "start", "end"),
    [
        ("What did I eat yesterday evening?", "Asia/Tokyo", "2026-07-01 09:00", "2026-07-01 15:00"),
        ("What did I eat yesterday evening?", "America/New_York", "2026-06-30 22:00", "2026-07-01 04:00"),
        ("What did I eat this morning?", "Asia/Tokyo", "2026-07-01 20:00", "2026-07-02 03:00"),
        ("Who called last night?", "Asia/Tokyo", "2026-07-01 09:00", "2026-07-01 21:00"),
        ("Who called today?", "America/New_York", "2026-07-01 04:00", "2026-07-02 04:00"),
        ("Who called last month?", "America/New_York", "2026-06-01 04:00", "2026-07-01 04:00"),
        ("Who called on 2026-06-05?", "Asia/Tokyo", "2026-06-04 15:00", "2026-06-05 15:00"),
    ],
)
def test_a_question_means_the_days_of_the_zone(memory, question, zone, start, end):
    found = memory.search(question, user="ana", zone=zone).trace.query.time_range
    assert found == (utc(start), utc(end))


def test_what_was_said_on_the_evening_of_the_zone_comes_first(memory):
    said = {"tea": "2026-07-01T11:00Z", "soup": "2026-06-30T23:30Z"}
    for name, at in said.items():
        memory.remember(f"I had {name}", user="ana", id=name, at=at)
    question = "What did I have yesterday evening?"
    assert memory.search(question, user="ana", zone="Asia/Tokyo")[0].unit.id == "tea"
    assert memory.search(question, user="ana", zone="America/New_York")[0].unit.id == "soup"


@pytest.mark.parametrize(
    ("question", "at", "start", "end"),
    [
        # Ten past three of the night in which clocks went from two to three.
        ("Who called an hour ago?", "2026-03-29 01:10", "2026-03-28 23:40", "2026-03-29 00:40"),
        ("Who called yesterday?", "2026-03-30 10:00", "2026-03-28 23:00", "2026-03-29 22:00"),
        ("Who called this morning?", "2026-03-29 10:00", "2026-03-29 03:00", "2026-03-29 10:00"),
        # Ten past three of the night in which clocks went from three to two, and the second ten past two.
        ("Who called an hour ago?", "2026-10-25 02:10", "2026-10-25 00:40", "2026-10-25 01:40"),
        ("Who called an hour ago?", "2026-10-25 01:10", "2026-10-24 23:40", "2026-10-25 00:40"),
        ("Who called in the last two hours?", "2026-10-25 02:10", "2026-10-25 00:10", "2026-10-25 23:00"),
        ("Who called today?", "2026-10-25 10:00", "2026-10-24 22:00", "2026-10-25 23:00"),
        ("Who called last night?", "2026-10-25 10:00", "2026-10-24 16:00", "2026-10-25 05:00"),
    ],
)
def test_clocks_that_are_set_forward_or_back_move_no_question(question, at, start, end):
    assert asked(question, utc(at), "Europe/Berlin") == (utc(start), utc(end))


# ------------------------------------------------------------------------------------------------- showing


def test_a_context_is_told_by_the_clock_of_the_zone_and_names_it(memory):
    memory.remember("the kettle whistles", user="ana", session="a", at="2026-06-30T20:15Z")
    memory.remember("hello", user="ana", session="b", at="2026-07-01T23:05Z")
    text = memory.assemble("kettle", user="ana", session="b", zone="Asia/Tokyo").text
    assert "[latest turns of this session, Asia/Tokyo;" in text
    assert "[recalled, best first, Asia/Tokyo," in text
    assert "2026-07-01 05:15" in text
    assert "2026-07-02 08:05" in text
    assert "[recalled, best first, UTC," in memory.assemble("kettle", user="ana", session="b").text


def test_the_budget_holds_whatever_the_zone_is_called(memory):
    for number in range(40):
        memory.remember(f"the kettle whistles {number}", user="ana", session="a", at="2026-06-30T20:15Z")
    for budget in (20, 30, 60, 120):
        context = memory.assemble("kettle", user="ana", budget=budget, zone="America/Argentina/Buenos_Aires")
        assert context.tokens <= budget


def test_the_setting_holds_for_every_call_that_names_no_zone():
    settings = Settings.load(
        {"embedding.embedder": "none"}, environ={"HOLDFAST_STORE__ZONE": "Asia/Tokyo"}
    ).without_timeouts()
    with opened(settings, now=MORNING) as memory:
        memory.remember("the kettle whistles", user="ana", at="2026-06-30", session="a")
        assert memory.list(user="ana")[0].event_time == utc("2026-06-29 15:00")
        assert memory.list(user="ana", filters={"event_time": "2026-06-30"})
        assert "Asia/Tokyo" in memory.assemble("kettle", user="ana").text
        assert "Europe/Berlin" in memory.assemble("kettle", user="ana", zone="Europe/Berlin").text


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("Asia/Tokio", "name one as Asia/Tokyo"),
        ("europe/berlin", "name one as Europe/Berlin"),
        ("America", "name one as"),
        ("../../etc/passwd", "name one as"),
        ("", "name one as"),
        ("x" * 5000, "name one as"),
        ("a\x00b", "name one as"),
        (9, "give one as Asia/Tokyo"),
    ],
)
def test_a_zone_that_does_not_exist_is_refused_with_a_remedy(memory, name, remedy):
    with pytest.raises(InputError, match=remedy) as refused:
        memory.search("kettle", user="ana", zone=name)
    assert str(refused.value).startswith("zone = ")


def test_a_wrong_zone_of_the_settings_is_refused_before_a_file_is_made(tmp_path):
    with pytest.raises(InputError, match=r"store.zone = 'Mars/Base' is not a time zone"):
        opened(Settings.load({"store.zone": "Mars/Base"}, environ={}), path=tmp_path / "m.db").__enter__()
    assert not (tmp_path / "m.db").exists()


def test_the_command_line_reads_and_shows_times_in_a_zone(tmp_path, monkeypatch):
    run = command_line(tmp_path, monkeypatch, **BY_WORDS)
    run("remember", "the kettle whistles", "--at", "2026-06-30T05:00", "--zone", "Asia/Tokyo")
    [unit] = run("list", "--json")
    assert unit["event_time"] == "2026-06-29T20:00:00.000000Z"
    assert "2026-06-30 05:00" in run("list", "--zone", "Asia/Tokyo")
    assert "2026-06-30" in run("search", "kettle", "--zone", "Asia/Tokyo")
    assert "2026-06-29" in run("search", "kettle")
    assert "2026-06-30 05:00" in run("why", "kettle", unit["id"], "--zone", "Asia/Tokyo")
    assert "Asia/Tokyo" in run("assemble", "kettle", "--zone", "Asia/Tokyo")
    run("update", unit["id"], "--valid-to", "2026-07-01", "--zone", "Asia/Tokyo")
    assert run("show", unit["id"], "--json")["valid_to"] == "2026-06-30T15:00:00.000000Z"
    run("remember", "the lamp", "--at", "2026-06-29T20:00", "--zone", "Asia/Tokyo")
    wanted = '{"event_time": {"gte": "2026-06-30"}}'
    assert "1 unit" in run("forget", "--filter", wanted, "--yes", "--zone", "Asia/Tokyo")
