"""What a person sees who prints a value: the words, not the machinery behind them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from builders import opened
from holdfast import AsyncMemory, Memory

OWNER = {"user": "ana"}
KEY = "The spare key is with Mrs Alves on the second floor."
# What a terminal shows at once: nothing that is printed by accident may be longer.
MOST = 1_000


@pytest.fixture
def memory():
    with opened() as one:
        one.remember(KEY, **OWNER, id="key", at="2026-04-01T23:30Z")
        one.remember("The key of the shed " + "is red and " * 400, **OWNER, id="long", speaker="Rui", at="2026-04-02")
        yield one


def test_a_context_prints_as_its_text(memory):
    context = memory.assemble("Who has the key?", **OWNER)
    assert str(context) == context.text
    assert KEY in f"{context}"
    assert len(repr(context)) < MOST


def test_a_result_prints_as_a_list_of_one_line_for_each_hit(memory):
    result = memory.search("key of the spare shed", **OWNER)
    lines = str(result).splitlines()
    assert lines == [str(hit) for hit in result]
    assert {hit.unit.id for hit in result} == {"key", "long"}
    for number, (line, hit) in enumerate(zip(lines, result, strict=True), start=1):
        assert line.startswith(f"{number}. {hit.score:.4f}  2026-04-0")
        assert f"  2026-04-01  user: {KEY}" in line or "  2026-04-02  Rui: The key of the shed is red" in line
        assert len(line) < 130


def test_a_result_prints_its_days_in_the_zone_of_the_question(memory):
    result = memory.search("Who has the spare key?", **OWNER, zone="Asia/Tokyo")
    assert "  2026-04-02  user: " in str(result).splitlines()[0]
    assert result[0].line(ZoneInfo("Asia/Tokyo")) == str(result).splitlines()[0]


def test_a_result_without_hits_says_so(memory):
    assert str(memory.search("Who has the spare key?", user="ben")) == "nothing found"


def test_no_representation_is_longer_than_a_person_reads(memory):
    result = memory.search("Who has the key?", **OWNER, explain=True)
    erasure = memory.forget(ids="long", dry_run=True, **OWNER)
    for value in (result, *result, erasure, memory):
        assert len(repr(value)) < MOST


def test_a_hit_has_the_text_of_its_unit(memory):
    hit = memory.search("Who has the spare key?", **OWNER)[0]
    assert hit.text == hit.unit.text == KEY


def test_an_erasure_prints_what_was_erased(memory):
    planned = memory.forget(ids="key", dry_run=True, **OWNER)
    assert str(planned) == "would erase 1 units, 0 summaries"
    done = memory.forget(ids="key", **OWNER)
    assert str(done) == "erased 1 units, 0 summaries"
    assert repr(done.units) in ("<1 units>", repr((done.units[0],)))
    assert "object at" not in f"{done!r} {done.units!r}"


def test_a_memory_prints_where_it_is_also_when_it_is_closed(tmp_path):
    place = tmp_path / "notes.db"
    with opened(path=place) as memory:
        assert str(memory) == f"Memory at {place}"
        assert str(AsyncMemory(memory)) == str(memory)
    assert str(memory) == f"Memory at {place}"


def test_a_remote_memory_prints_its_address_and_no_token():
    with Memory.open("http://127.0.0.1:8377", token="secret") as memory:
        assert str(memory) == "Memory at http://127.0.0.1:8377"


# ------------------------------------------------------------------------------------------------ naive times


def test_a_naive_time_is_refused_with_what_to_write_instead(memory):
    naive = datetime(2026, 4, 1, 9, 0)  # noqa: DTZ001 - that is the point
    for verb in (
        lambda: memory.remember("x", **OWNER, at=naive),
        lambda: memory.remember("x", **OWNER, valid_from=naive),
        lambda: memory.remember({"role": "user", "content": "x", "at": naive}, **OWNER),
        lambda: memory.search("x", **OWNER, reference_time=naive),
        lambda: memory.search("x", **OWNER, as_of=naive),
        lambda: memory.list(**OWNER, filters={"event_time": {"gte": naive}}),
    ):
        with pytest.raises(ValueError, match=r"append \.astimezone\(\) .*, or name a zone \(zone=…, store\.zone\)"):
            verb()
    memory.remember("The kettle whistles.", **OWNER, at=naive.astimezone(), id="a")
    memory.remember("The lamp is green.", **OWNER, at=naive, zone="Asia/Tokyo", id="b")
    assert memory.get("b", **OWNER).event_time == datetime(2026, 4, 1, 0, 0, tzinfo=UTC)
