"""Every format end to end (C1, C8): file → units → hits, proofs and the section that a unit stands in."""

import json
import re

import pytest

import papers
from builders import known_facts, opened
from holdfast import Settings
from holdfast.errors import InputError, NotFoundError
from pdfs import tiny_pdf

MARKDOWN = """# Boats

Intro words stand here.

## Hulls

The hull of the **Petrel** is
made of larch. [Larch](https://example.org) floats well.

- tar it in May
- scrape it in March

## Sails

| sail | colour |
|------|--------|
| jib  | red    |
"""
HTML = """<!doctype html><html><head><title>Moor</title><style>p{}</style></head><body>
<h1>The moor</h1><p>Cotton grass grows &amp; waves on the <em>moor</em>.</p>
<h2>Paths</h2><p>The north path is flooded
in winter.</p><ul><li>Wear boots on the north path.</li></ul></body></html>"""
PLAIN = "BUOYS\n\nThe red buoy rings in fog.\n\nThe green buoy is silent.\n"


@pytest.fixture
def memory():
    with opened() as opened_memory:
        yield opened_memory


@pytest.fixture
def write(tmp_path):
    def written(name, body):
        path = tmp_path / name
        path.write_bytes(body if isinstance(body, bytes) else body.encode())
        return path

    return written


FILES = {
    "boats.md": MARKDOWN,
    "moor.html": HTML,
    "buoys.txt": PLAIN,
    "berths.pdf": tiny_pdf(["Ships moor at dawn.", "They leave at dusk."], ["Berth seven is deep."]),
    "harbour.docx": papers.word(),
    "petrel.epub": papers.book("<h1>One</h1><p>The sea was calm.</p><p>The crew slept below deck.</p>"),
    "larch.rst": "Larch\n=====\n\nLarch floats well.\n\nOak\n---\n\nOak sinks slowly.\n\nIt lasts.\n",
    "crew.csv": "name,home\nAna,Lisbon\nRui,Porto\n",
    "moor.py": "def moor(ship):\n    return tie(ship, lines=2)\n\n\nKNOTS = 2\n",
    "fees.eml": bytes(papers.letter("The fee is forty euros.\n\nIt is due in May.\n")),
}


def words(text):
    return re.findall(r"\w+", text.lower())


def in_order(few, many):
    """Return whether the words of `few` stand in `many`, in their order, perhaps with markup between them."""
    rest = iter(many)
    return all(word in rest for word in few)


# ----------------------------------------------------------------------------------------------- documents


@pytest.mark.parametrize("name", FILES)
def test_a_units_place_in_its_section_holds_its_words(memory, write, name):
    memory.ingest(write(name, FILES[name]), user="ana")
    units = memory.list(user="ana", limit=None)
    assert units
    for unit in units:
        wide = memory.widen(unit.id, user="ana")
        assert (wide.unit, wide.document) == (unit, name)
        assert unit.id in wide.units
        assert 0 <= wide.start <= wide.unit_start < wide.unit_end <= wide.end
        assert len(wide.text) == wide.end - wide.start
        place = wide.text[wide.unit_start - wide.start : wide.unit_end - wide.start]
        # A list item repeats what introduces the list; its own words are the last ones.
        assert in_order(words(place)[-2:], words(unit.text))
        assert in_order(words(unit.text)[-3:], words(place))


@pytest.mark.parametrize(
    ("name", "question", "path", "page"),
    [
        ("boats.md", "larch hull", ("Boats", "Hulls"), None),
        ("moor.html", "north path flooded in winter", ("The moor", "Paths"), None),
        ("buoys.txt", "red buoy", ("BUOYS",), None),
        ("berths.pdf", "berth seven", None, 2),
        ("harbour.docx", "fender cushion", ("Harbour handbook", "Arriving", "Gear"), None),
        ("petrel.epub", "crew below deck", ("The Petrel", "One"), None),
        ("larch.rst", "oak sinks", ("Larch", "Oak"), None),
        ("fees.eml", "fee forty euros", ("Berth fees", "Berta Falk, 2026-03-02"), None),
    ],
)
def test_a_hit_is_widened_to_its_section(memory, write, name, question, path, page):
    memory.ingest(write(name, FILES[name]), user="ana")
    hit = memory.search(question, user="ana", profile="fast")[0]
    wide = memory.widen(hit.unit.id, user="ana")
    assert wide.page == page
    if path is not None:
        assert wide.path == path
        assert hit.unit.topic == " › ".join(path)
    if page is None:
        assert hit.unit.id in wide.units
    everything = memory.list(user="ana", limit=None)
    assert set(wide.units) <= {unit.id for unit in everything}


def test_a_section_of_markdown_is_the_text_of_the_file(memory, write):
    memory.ingest(write("boats.md", MARKDOWN), user="ana")
    hit = memory.search("larch hull", user="ana", profile="fast")[0]
    assert hit.unit.text.startswith("The hull of the Petrel is made of larch. Larch floats well.\n")
    wide = memory.widen(hit.unit.id, user="ana")
    assert wide.text == MARKDOWN[wide.start : wide.end]
    assert wide.text.startswith("## Hulls")
    assert "Sails" not in wide.text


def test_a_changed_document_is_widened_as_it_now_stands_and_a_gone_unit_is_refused(memory, write):
    text = PLAIN.replace("The green", "GREEN ONES\n\nThe green")
    path = write("buoys.txt", text)
    memory.ingest(path, user="ana")
    red, green = (memory.search(f"{colour} buoy", user="ana", profile="fast")[0].unit for colour in ("red", "green"))
    write("buoys.txt", text.replace("The red buoy rings in fog.", "The blue buoy blinks."))
    memory.ingest(path, user="ana")
    assert memory.widen(green.id, user="ana").path[-1:] == ("GREEN ONES",)
    with pytest.raises(NotFoundError, match=r"no longer says|there is no unit"):
        memory.widen(red.id, user="ana")


CHANGES = {
    "crew.csv": (b"Rui,Porto", b"Rui,Faro"),
    "larch.rst": (b"Oak sinks slowly.", b"Oak sinks at once."),
    "moor.py": (b"KNOTS = 2", b"KNOTS = 3"),
    "fees.eml": (b"It is due in May.", b"It is due in June."),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_an_edit_leaves_alone_keeps_its_unit_in_every_format(memory, write, name):
    path = write(name, FILES[name])
    before = {item.id for item in memory.ingest(path, user="ana")}
    path.write_bytes(path.read_bytes().replace(*CHANGES[name]))
    after = memory.ingest(path, user="ana")
    assert [item.status for item in after].count("added") == 1
    assert len(before - {item.id for item in after}) == 1
    assert {unit.id for unit in memory.list(user="ana", limit=None)} == {item.id for item in after}


def test_a_letter_is_of_its_day_and_of_its_author(memory, write):
    memory.ingest(write("fees.eml", bytes(papers.letter("I live in Porto now."))), user="ana")
    hit = memory.search("Where does Berta live?", user="ana", profile="fast")[0].unit
    assert (hit.speaker, hit.event_time.isoformat()) == ("Berta Falk", "2026-03-02T08:12:00+00:00")
    [known] = memory.facts(user="ana", relation="lives_in")
    assert (known.subject, known.value) == ("Berta Falk", "Porto")


def test_a_letter_of_tomorrow_is_of_today(memory, write):
    memory.ingest(
        write("a.eml", bytes(papers.letter("The fee is due.", date="2999-01-01T00:00:00+00:00"))), user="ana"
    )
    assert {unit.event_time for unit in memory.list(user="ana")} == {memory.list(user="ana")[0].recorded_time}


def test_a_turn_cannot_be_widened(memory):
    [written] = memory.remember("the kettle is on the shelf", user="ana")
    with pytest.raises(NotFoundError, match="only a document's unit can be widened"):
        memory.widen(written.id, user="ana")
    memory.remember("the kettle is on the shelf", user="ana", id="boats.md#kettle")
    with pytest.raises(NotFoundError, match="only a document's unit can be widened"):
        memory.widen("boats.md#kettle", user="ana")


def test_nobody_widens_another_users_unit(memory, write):
    memory.ingest(write("buoys.txt", PLAIN), user="ana")
    for unit in memory.list(user="ana"):
        for stranger in ({"user": "ben"}, {"user": "ana", "tenant": "elsewhere"}):
            with pytest.raises(NotFoundError, match="no unit"):
                memory.widen(unit.id, **stranger)


# --------------------------------------------------------------------------------------------------- units

UNITS = [
    {"id": "a", "claim": "Mira works with the loom.", "subject": "Mira", "relation": "uses", "object": "the loom"},
    {
        "id": "b", "claim": "Cloth comes off it.", "subject": "the loom", "relation": "provides", "object": "cloth",
        "confidence": 0.5,
    },
    {"id": "c", "procedure": "Oil the pedals, then wind the warp.", "role": "Procedure", "topic": "Upkeep"},
]  # fmt: skip
YAML = "\n".join("- " + "\n  ".join(f"{key}: {value}" for key, value in unit.items()) for unit in UNITS)
WRITTEN = {
    "units.jsonl": "\n".join(map(json.dumps, UNITS)),
    "units.json": json.dumps(UNITS),
    "units.yaml": YAML,
}


@pytest.mark.parametrize("name", WRITTEN)
def test_units_of_a_file_are_used_in_a_proof_at_their_confidence(memory, write, name):
    memory.ingest(write(name, WRITTEN[name]), user="ana")
    assert {unit.id for unit in memory.list(user="ana")} == {f"{name}#{key}" for key in "abc"}
    found = memory.search("What can Mira do?", user="ana", profile="thinking", explain=True)
    bridge = next(hit for hit in found if hit.unit.id == f"{name}#b")
    derived = bridge.contributions.find("derived: mira has_capability cloth")
    assert [part.value for part in derived.parts] == [1.0, 0.5, 0.95]
    assert derived.compose() == 0.475
    assert bridge.contributions.compose() == bridge.score
    [procedure] = [unit for unit in memory.list(user="ana") if unit.role == "Procedure"]
    assert (procedure.procedure, procedure.claim) == ("Oil the pedals, then wind the warp.", "")


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_of_units_is_taken_in_again_without_new_versions(memory, write, name):
    path = write(name, WRITTEN[name])
    memory.ingest(path, user="ana")
    assert {done.status for done in memory.ingest(path, user="ana")} == {"duplicate"}
    write(name, WRITTEN[name].replace("0.5", "0.25"))
    changed = memory.ingest(path, user="ana")
    assert sorted(done.status for done in changed) == ["duplicate", "duplicate", "updated"]
    assert memory.get(f"{name}#b", user="ana").fact.confidence == 0.25


@pytest.mark.parametrize("name", WRITTEN)
def test_a_unit_of_a_file_of_units_is_widened_to_its_place(memory, write, name):
    memory.ingest(write(name, WRITTEN[name]), user="ana")
    wide = memory.widen(f"{name}#b", user="ana")
    place = wide.text[wide.unit_start - wide.start : wide.unit_end - wide.start]
    assert "Cloth comes off it." in place
    assert "Mira" not in place


def test_messages_of_a_json_lines_file_become_turns_of_their_authors(memory, write):
    talk = [
        {"role": "user", "content": "The kiln door sticks."},
        {"role": "assistant", "content": "Oil the hinge of the kiln."},
    ]
    memory.ingest(write("talk.jsonl", "\n".join(map(json.dumps, talk))), user="ana")
    found = {unit.text: (unit.kind, unit.author) for unit in memory.list(user="ana")}
    assert found == {
        "The kiln door sticks.": ("turn", "user"),
        "Oil the hinge of the kiln.": ("turn", "assistant"),
    }


def test_a_further_relation_is_declared_in_settings(write):
    path = write("kin.json", json.dumps([UNITS[0] | {"relation": "mentored_by"}]))
    with opened() as memory, pytest.raises(InputError, match=r"mentored_by.*symbolic\.relations|mentored_by"):
        memory.ingest(path, user="ana")
    with opened(Settings.load({"symbolic.relations": ("mentored_by",)}, environ={})) as memory:
        assert len(memory.ingest(path, user="ana")) == 1


@pytest.mark.parametrize("name", ["units.json", "units.yaml", "units.jsonl"])
def test_an_authored_fact_is_read_and_its_words_are_not(memory, write, name):
    memory.ingest(write(name, WRITTEN[name]), user="ana")
    facts = known_facts(memory, memory._view(user="ana")).about(["mira", "loom", "cloth"], 100)
    assert {(fact.key, fact.confidence) for fact in facts} == {
        (("mira", "uses", "loom"), 1.0),
        (("loom", "provides", "cloth"), 0.5),
    }
