"""Documents as sources: Markdown, plain text, HTML and PDF become sections, pieces and units."""

import hashlib
import random
import sys
from pathlib import Path

import pytest

from holdfast.documents.parser import decode, kind_of, read_source, source_units
from holdfast.errors import InputError, MissingExtraError
from holdfast.types import SourceLimits
from pdfs import tiny_pdf

DATA = Path(__file__).parents[1] / "data/sources"


def read(name, text=None, **limits):
    """Return a source as its blocks make it: its pieces are joined only where a test says so."""
    limits = {"joined_chars": 0, **limits}
    body = (DATA / name).read_bytes() if text is None else text.encode() if isinstance(text, str) else text
    return read_source(name, body, limits=SourceLimits(**limits))


def pieces(source):
    return [(piece.kind, piece.lead.text if piece.lead else None, piece.text) for piece in source.pieces]


# Reviewed by hand: kind, role, last title, condition, first words.
HARBOUR = [
    ("record", "Description", "", "", "title: Harbour handbook"),
    (
        "paragraph",
        "Description",
        "Harbour handbook",
        "",
        "The harbour plans berths for ships. It has forty of them, of",
    ),
    ("list", "Procedure", "Mooring", "", "To moor a ship, follow these steps:\nSlow down to two knots.\nThrow"),
    ("paragraph", "Constraint", "Mooring", "If the wind is above thirty knots", "If the wind is above thirty"),
    ("item", "Definition", "Equipment", "", "On board you will find: A fender is a cushion of rope"),
    ("item", "Explanation", "Equipment", "", "On board you will find: Every line is checked in spring, because"),
    ("table", "Description", "Equipment", "", "| Line | Length |"),
    ("code", "Description", "Equipment", "", "Print the tide table with:\ntides --berth 7"),
    ("quote", "Description", "Equipment", "", "Slow is smooth, and smooth is fast."),
    ("paragraph", "Description", "Notes", "", "Notes"),  # nothing stands below it: its word is kept
]


def test_a_markdown_file_becomes_units():
    source = read("harbour.md")
    units = source_units(source)
    assert source.links == ("tides.md#000001",)
    assert source.sha256 == hashlib.sha256((DATA / "harbour.md").read_bytes()).hexdigest()
    for unit, (kind, role, title, condition, first) in zip(units, HARBOUR, strict=True):
        assert (unit.kind, unit.role, unit.path[-1:], unit.condition) == (
            kind,
            role,
            (title,) if title else (),
            condition,
        )
        assert unit.text.startswith(first)
        assert unit.links == source.links
    assert units[2].topic == "Harbour handbook › Mooring"
    assert units[2].procedure == units[2].text
    assert units[2].utility_acts == ("implement",)


def test_offsets_lead_back_to_the_words_of_the_file():
    source = read("harbour.md")
    steps = source.pieces[2]
    assert source.text[steps.start : steps.end].startswith("Slow down to two knots.\n2. Throw")
    assert source.text[steps.lead.start : steps.lead.end] == "To moor a ship, follow these steps:"
    mooring = next(section for section in source.sections if section.title == "Mooring")
    assert source.text[mooring.start : mooring.end].startswith("## Mooring\n\nTo moor a ship")
    assert source.text[mooring.start : mooring.end].endswith("must stay aboard.\n\n")


def test_plain_text_has_headings_lists_and_joined_lines():
    source = read("tides.txt")
    assert [(section.title, section.level) for section in source.sections[1:]] == [("TIDE NOTES", 2), ("Depths", 3)]
    assert pieces(source) == [
        (
            "paragraph",
            None,
            "The tide turns twice a day. It is strongest in spring, because sun and moon then pull together.",
        ),
        ("paragraph", None, "Berth seven is deeper than berth eight."),
        ("list", "What to bring:", "rope\ngloves\na lamp"),
    ]
    assert [unit.role for unit in source_units(source)] == ["Explanation", "Comparison", "Description"]


@pytest.mark.parametrize(
    "text",
    [
        "NASA\n\nIt flies.",
        "OK\n\nIt flies.",
        "THE END.\n\nIt flies.",
        "IT IS\nCAPITALS\n\nIt flies.",
        "- ALL CAPS\n\nYes.",
    ],
)
def test_capitals_alone_make_no_heading_unless_they_look_like_one(text):
    titles = [section.title for section in read("a.txt", text).sections[1:]]
    assert titles == (["NASA"] if text.startswith("NASA") else [])


def test_html_shows_what_a_reader_sees():
    source = read("moor.html")
    assert "var x" not in source.text
    assert [section.path for section in source.sections[1:]] == [
        ("Tides & berths",),
        ("Tides & berths", "How to moor"),
    ]
    assert pieces(source) == [
        ("paragraph", None, "Ships berth by tide. Two tides a day."),
        ("list", "Do this:", "Slow down.\nThrow the line.\nBow\nStern"),
        ("table", "Depths", "Berth | Depth\nA | 4 m\nB | 5 m"),
        ("quote", None, "Slow is smooth.\nSaid Ines."),
        ("code", None, "make\n  all"),
        ("paragraph", None, "Fender\nA cushion of rope.\nlast"),
    ]


def test_a_title_is_a_heading_only_where_there_is_no_first_heading():
    assert [s.title for s in read("a.html", "<title>T</title><h1>H</h1><p>Words.").sections] == ["", "H"]
    assert [s.title for s in read("a.html", "<title>T</title><h2>H</h2><p>Words.").sections] == ["", "T", "H"]


# ------------------------------------------------------------------------------------------------------------ pieces


def test_long_paragraphs_are_cut_at_sentence_ends():
    text = "Dr. Marlow came at 9. She left **soon. Very soon.** Then e.g. the rain fell. Nobody saw it."
    assert [piece.text for piece in read("a.md", text, piece_chars=45).pieces] == [
        "Dr. Marlow came at 9.",
        "She left soon. Very soon.",
        "Then e.g. the rain fell. Nobody saw it.",
    ]


def test_a_long_table_repeats_its_header():
    rows = "\n".join(f"| ship {n} | berth {n} |" for n in range(4))
    source = read("a.md", f"The list of ships:\n\n| ship | berth |\n|---|---|\n{rows}", piece_chars=50)
    header = "The list of ships:\n| ship | berth |\n|---|---|"
    assert pieces(source) == [
        ("table", header, "| ship 0 | berth 0 |\n| ship 1 | berth 1 |"),
        ("table", header, "| ship 2 | berth 2 |\n| ship 3 | berth 3 |"),
    ]
    lead = source.pieces[1].lead
    assert source.text[lead.start : lead.end].endswith("|---|---|")


def test_a_lead_in_with_sentences_before_it_stays_a_paragraph_too():
    source = read("a.md", "We sail at dawn. Bring along:\n\n- a warm coat for the night watch, and gloves\n- tea")
    assert pieces(source) == [
        ("paragraph", None, "We sail at dawn. Bring along:"),
        ("item", "Bring along:", "a warm coat for the night watch, and gloves"),
        ("item", "Bring along:", "tea"),
    ]


def test_fragments_join_the_paragraph_after_them_or_before():
    assert pieces(read("a.txt", "Ines Marlow\n\nShe runs the harbour.\n\nIt is old.\n\nHarbour office")) == [
        ("paragraph", None, "Ines Marlow\nShe runs the harbour."),
        ("paragraph", None, "It is old.\nHarbour office"),
    ]


def test_lists_of_two_kinds_are_two_lists():
    found = pieces(read("a.md", "- rope\n- lamp\n\n1. Slow down.\n2. Moor.\n\n* tea\n* milk"))
    assert [text for _, _, text in found] == ["rope\nlamp", "Slow down.\nMoor.", "tea\nmilk"]


def test_a_link_reference_resolves_inside_items():
    assert pieces(read("a.md", "- See the [tide table][t] before you sail.\n\n[t]: tides.md")) == [
        ("item", None, "See the tide table before you sail.")
    ]


# --------------------------------------------------------------------------------------------------------------- ids


def test_ids_stay_when_something_is_added_above():
    text = (DATA / "harbour.md").read_text()
    before = {unit.id for unit in source_units(read("harbour.md"))}
    added = text.replace("## Mooring", "A new paragraph stands here.\n\n## Mooring")
    after = [unit.id for unit in source_units(read("harbour.md", added))]
    assert len(set(after) - before) == 1
    assert before < set(after)


def test_equal_paragraphs_have_ids_of_their_own():
    ids = [unit.id for unit in source_units(read("a.md", "# A\n\nYes, we do.\n\nYes, we do.\n\n# B\n\nYes, we do."))]
    assert len(set(ids)) == 3
    assert all(name.startswith("a.md#") for name in ids)


# --------------------------------------------------------------------------------------------------------------- PDF


def test_pages_become_sections_and_no_topic():
    source = read("a.pdf", tiny_pdf(["Ships moor at dawn,", "and leave at dusk."], [], ["Berth seven is deep."]))
    assert [(section.title, section.page) for section in source.sections[1:]] == [
        ("Page 1", 1), ("Page 2", 2), ("Page 3", 3),
    ]  # fmt: skip
    units = source_units(source)
    assert [(unit.page, unit.topic, unit.text) for unit in units] == [
        (1, "", "Ships moor at dawn, and leave at dusk."),
        (3, "", "Berth seven is deep."),
    ]
    assert source.text[units[1].start : units[1].end] == "Berth seven is deep."


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (tiny_pdf(["Words."], password="x"), "is encrypted; save it without a password"),
        (tiny_pdf([]), "1 pages and no text"),
        (tiny_pdf(["Words."])[:200], "cannot be read as a PDF"),
        (b"%PDF-1.7\nnothing", "cannot be read as a PDF"),
        (tiny_pdf(["a"], ["b"]), "has 2 pages, more than 1"),
    ],
)
def test_a_pdf_that_cannot_be_read_is_refused(body, reason):
    with pytest.raises(InputError, match=reason):
        read("a.pdf", body, max_pages=1)


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_pdf_is_read_or_refused(seed):
    chance, body = random.Random(seed), bytearray(tiny_pdf(["Ships moor at dawn."], ["Berth seven."]))
    for _ in range(6):
        place = chance.randrange(len(body))
        body[place : place + chance.randint(0, 9)] = chance.randbytes(chance.randint(0, 3))
    try:
        found = read("a.pdf", bytes(body)).media_type == "application/pdf"
    except InputError as error:
        found = "'a.pdf'" in str(error)
    assert found


def test_a_missing_extra_is_named_with_its_install_line(monkeypatch):
    body = tiny_pdf(["Words."])
    monkeypatch.setitem(sys.modules, "pypdf.errors", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[documents\]'"):
        read("a.pdf", body)


# ------------------------------------------------------------------------------------------------------- recognising


@pytest.mark.parametrize(
    ("name", "first", "expected"),
    [
        ("a.MD", b"", "text/markdown"),
        ("notes/a.markdown", b"x", "text/markdown"),
        ("a.txt", b"<html>", "text/plain"),
        ("a.htm", b"", "text/html"),
        ("a.ndjson", b"{}", "application/jsonl"),
        ("a.json", b"[]", "application/json"),
        ("a.yml", b"", "application/yaml"),
        ("a.pdf", b"\n%PDF-1.4", "application/pdf"),
        ("scan", b"%PDF-1.4", "application/pdf"),
        ("README", b"Words", "text/plain"),
        ("v1.2/README", b"Words", "text/plain"),
        ("page", b"\xef\xbb\xbf\n<!DOCTYPE HTML>", "text/html"),
        ("a.txt", b"\xff\xfea\x00", "text/plain"),
    ],
)
def test_a_source_is_known_by_its_name_and_its_content(name, first, expected):
    assert kind_of(name, first) == expected


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("a.md", b"PK\x03\x04\x00\x00", "NUL byte at 4, so it is no text"),
        ("a.txt", b"%PDF-1.4", "rename it to .pdf"),
        ("a.pdf", b"PK\x03\x04", "no %PDF- mark"),
        ("a.txt", "naïve".encode("latin-1"), r"not UTF-8: byte 0xef at 2; save the file as UTF-8"),
        ("a.txt", "tide".encode("utf-32"), "UTF-32 by its byte order mark"),
        ("a.txt", b"\xff\xfea", "not UTF-16-LE"),
        ("a.txt", "a\0b".encode("utf-16"), "NUL character at 1"),
        ("a.txt", b" \n", "no content"),
        ("a.html", b"<script>x</script>", "no content"),
        ("a.md", b"", "no content"),
        ("a.txt", b"x" * 101, "has 101 bytes, more than 100"),
        ("n" * 236, b"x", "has 236 characters; the most is 234"),
        (" ", b"x", "source name is missing or blank"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_remedy(name, body, reason):
    with pytest.raises(InputError, match=reason):
        read_source(name, body, limits=SourceLimits(max_bytes=100))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_marks_of_encodings_are_no_text(encoding):
    assert decode("a.txt", "Gezeiten: Ebbe – Flut 🌊".encode(encoding)) == "Gezeiten: Ebbe – Flut 🌊"
    unit = source_units(read("a.md", "# Tide\n\nIt is – 🌊 high.\n\nIt falls.".encode(encoding)))[1]
    assert (unit.text, unit.start) == ("It falls.", 25)


def test_what_would_take_for_ever_is_refused():
    with pytest.raises(InputError, match="opens more than 5,000 brackets in one paragraph"):
        read("a.md", "[" * 100_000)


def test_many_brackets_that_are_closed_are_read():
    assert len(read("a.md", "[a](b) " * 6_000, piece_chars=20_000).pieces) == 1


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("<p>tea <a href='x cake", "tea <a href='x cake"),
        ("<p>tea <a href='x>cake</a> and jam", "tea cake and jam"),
        ("tea <!-- cake", "tea <!-- cake"),
        ("tea <!-- cake --!> jam <!--> milk", "tea jam milk"),
        ("1 < 2 and 2<3 <3", "1 < 2 and 2<3 <3"),
        ("tea </ cake", "tea </ cake"),
        ("tea </> cake </ x> jam", "tea cake jam"),
        ('<img alt="1 > 2 &amp; 3" src=x/>', "1 > 2 & 3"),
        ("<script>if (a < b) {}</scripty></SCRIPT >tea", "tea"),
        ("a &#" + "9" * 5_000 + "; b &#xFFFFFFFFF c", "a \ufffd b \ufffd c"),
    ],
)
def test_broken_html_loses_no_words(markup, shown):
    assert " ".join(piece.text for piece in read("a.html", markup).pieces) == shown
