"""What shares a unit in a document, how a log is cut, and what the embedder reads of a piece."""

import pytest

from builders import NOW, opened
from commands import BY_WORDS, command_line
from holdfast.documents.parser import read_source, source_units
from holdfast.lifecycle.embedding import text_to_embed
from holdfast.testing.contracts import HashEmbedder
from holdfast.text.sentences import matching_part
from holdfast.types import SearchResult, Unit
from holdfast.wire import encode


def units(name, text):
    """Return topic and text of what a document says."""
    return [(unit.topic, unit.text) for unit in source_units(read_source(name, text.encode()))]


SETTINGS = """\
========
Settings
========

.. setting:: MOORING_LIMIT

MOORING_LIMIT
-------------

Default: ``40`` (berths).

The most ships that may moor.

.. warning::

    Count the tugs, too.

See also :setting:`TUG_LIMIT`.

.. _tugs:
.. setting:: TUG_LIMIT

TUG_LIMIT
---------

Default::

    {
        "tugs": 4,

        "pilots": 2,
    }

Later
-----
"""


def test_stubs_share_a_unit_with_their_neighbours_and_directives_go_with_the_heading_below_them():
    assert units("settings.txt", SETTINGS) == [
        (
            "Settings › MOORING_LIMIT",
            "\n\n".join(
                [
                    "Default: ``40`` (berths).",
                    "The most ships that may moor.",
                    ".. warning::",
                    "Count the tugs, too.",
                    "See also :setting:`TUG_LIMIT`.",
                ]
            ),
        ),
        ("Settings › TUG_LIMIT", 'Default::\n{\n    "tugs": 4,\n\n    "pilots": 2,\n}\n\nLater'),
    ]


def test_a_heading_alone_is_a_unit_only_where_it_has_no_chapter():
    assert units("a.md", "# Ships\n\nThey moor at dawn.\n\n## Tugs\n\n## Pilots\n\nThey are four.\n\n# Later\n") == [
        ("Ships", "They moor at dawn.\nTugs"),
        ("Ships › Pilots", "They are four."),
        ("Later", "Later"),
    ]


def test_a_section_longer_than_a_piece_is_cut_between_paragraphs():
    paragraphs = [f"Berth {number} takes {'a ship ' * 40}at high water." for number in range(8)]
    found = [text for _, text in units("a.md", "# Berths\n\n" + "\n\n".join(paragraphs))]
    assert found == ["\n\n".join(paragraphs[first : first + 3]) for first in (0, 3, 6)]


def test_each_list_keeps_its_own_lead_in_and_a_quote_its_own_unit():
    text = "Bring:\n\n- a coat for the night\n- some tea\n\nLeave:\n\n- the dog\n\n> Nobody swims here.\n"
    assert units("a.md", text) == [
        ("", "Bring:\na coat for the night\nsome tea"),
        ("", "Leave: the dog"),
        ("", "Nobody swims here."),
    ]


LOG = "".join(
    f"2026-03-02 09:{minute:02}:00 INFO berth {minute} is free\n  waited {minute} s\n" for minute in range(60)
)


@pytest.mark.parametrize(
    ("name", "text"), [("harbour.log", LOG), ("notes.txt", LOG), ("night.log", "ebb\nflood\n" * 90)]
)
def test_a_log_is_cut_between_its_lines_and_keeps_them(name, text):
    found = [said for _, said in units(name, text)]
    assert "\n".join(found) == text.rstrip("\n")
    assert len(found) > 1
    assert max(map(len, found)) <= 240


def test_the_embedder_reads_the_heading_and_the_opening_of_a_piece():
    text = "# Boats\n\n## Hulls\n\nSee :ref:`the yard <yard>`.\n\n    >>> tar(2)\n\n" + "Larch floats well, " * 40
    *_, found = source_units(read_source("a.txt", text.replace("# Boats", "BOATS").encode()))
    unit = Unit(id=found.id, text=found.text, claim=found.text, author="document", topic="Boats › Hulls", **OWNED)
    read = text_to_embed(unit)
    assert read.startswith("Hulls ")
    assert "Larch floats well Larch" in read
    assert len(read) <= len("Hulls ") + 240


@pytest.mark.parametrize("name", ["a.txt#0123456789abcdef0123", "note", "a#p1"])
def test_a_text_that_is_no_piece_is_embedded_whole(name):
    said = "Larch floats well. " * 40
    unit = Unit(id=name, text=said, claim=said, author="document", topic="Hulls", **OWNED)
    assert text_to_embed(unit) == unit.text


OWNED = {
    "kind": "knowledge",
    "tenant": "local",
    "user": "ana",
    "scope": "user",
    "event_time": NOW,
    "recorded_time": NOW,
}


class Listening(HashEmbedder):
    """An embedder that keeps what it was given."""

    def __init__(self):
        super().__init__()
        self.heard = []

    def embed_documents(self, texts):
        self.heard += texts
        return super().embed_documents(texts)


def test_pieces_are_embedded_by_their_openings_and_turns_whole():
    embedder = Listening()
    with opened(embedder=embedder) as memory:
        memory.ingest("# Hulls\n\n" + "Larch floats well. " * 40, name="a.md", user="ana")
        memory.remember("Larch sinks. " * 60, user="ana")
    piece, turn = embedder.heard
    assert piece.startswith("Hulls Larch floats well Larch")
    assert len(piece) < 300 < len(turn)


PAGE = "# Berths\n\n" + "\n\n".join(
    f"Berth {name} belongs to the {name} company and is let by the month."
    for name in ("red", "blue", "green", "grey")
)
LONG = PAGE + "\n\nThe pilot of the harbour is Berta Falk, who knows every rock.\n\n" + "The tide turns at six. " * 12


def test_a_hit_of_a_long_text_says_which_part_matched():
    with opened() as memory:
        memory.ingest(LONG, name="berths.md", user="ana")
        memory.remember("The pilot came late.", user="ana")
        hits = {hit.unit.kind: hit for hit in memory.search("Who is the pilot of the harbour?", user="ana")}
    part = hits["knowledge"].part
    assert "Berta Falk" in part
    assert part in hits["knowledge"].unit.text
    assert len(part) <= 300
    assert hits["turn"].part is None


def test_short_answers_over_http_hold_the_part_that_matched():
    with opened() as memory:
        memory.ingest(LONG, name="berths.md", user="ana")
        found = memory.search("Who is the pilot of the harbour?", user="ana")
    first, *_ = encode(SearchResult, found, full=False)["hits"]
    assert "Berta Falk" in first["part"]


def test_the_command_line_shows_the_part_that_matched(tmp_path, monkeypatch):
    run = command_line(tmp_path, monkeypatch, **BY_WORDS)
    (tmp_path / "berths.md").write_text(LONG, encoding="utf-8")
    run("ingest", "berths.md")
    shown = " ".join(run("search", "Who is the pilot of the harbour?").split())
    assert "The pilot of the harbour is Berta Falk" in shown
    assert "Berth red belongs" not in shown
    first, *_ = run("search", "Who is the pilot of the harbour?", "--json")["hits"]
    assert "Berta Falk" in first["part"]


def test_a_part_is_the_beginning_where_no_word_matches():
    assert matching_part("The tide turns at six. " * 30, ["zebra"], str.split).startswith("The tide turns at six.")
    assert matching_part("short", ["zebra"], str.split) is None
