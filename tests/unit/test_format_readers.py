"""What each format becomes: sections, pieces, dates and authors."""

import mailbox
import sys
from datetime import UTC, datetime

import pytest

from holdfast.documents.parser import read_source, source_units
from holdfast.errors import InputError, MissingExtraError
from holdfast.types import SourceLimits
from papers import book, letter, word

RST = """
==========
The Petrel
==========

:Author: Berta Falk
:Date: 2026-03-02

.. contents::

Hulls
=====

The hull of the **Petrel** is made of larch, see :ref:`the sails <sails>` and :class:`~boat.Hull`.

.. note:: Tar it in May.

.. versionadded:: 2.0
   The keel was added in the yard.

.. toctree::

   other/page

.. _sails:

Sails
-----

1. Hoist the jib.
2. Turn into the wind.

.. include:: /etc/hostname

.. raw:: html

   <b>raw words</b>

=====  ======
sail   colour
=====  ======
jib    red
=====  ======

.. code-block:: python

   def hoist():
       return "jib"
"""
GO = """package main

// Moor ties a ship up.
func (h *Harbour) Moor(s Ship) int {
	return 7
}

type Ship struct {
	Length int
}
"""
PYTHON = '''"""Ships."""

import math


class Ship:
    """A ship."""

    knots = 2

    # Both ends are tied.
    @property
    def lines(self):
        return 2


def moor(ship):
    return ship
'''


def units(name, body):
    return source_units(read_source(name, body if isinstance(body, bytes) else body.encode()))


def said(name, body):
    return [(unit.topic, unit.text) for unit in units(name, body)]


def test_a_word_document_keeps_its_headings_lists_and_tables():
    found = units("harbour.docx", word())
    assert [(unit.topic, unit.text) for unit in found[:3]] == [
        ("Harbour handbook", "The harbour has nine berths."),
        (
            "Harbour handbook › Arriving",
            "To moor a ship, follow these steps:\nSlow down to two knots.\nThrow the bow line.",
        ),
        (
            "Harbour handbook › Arriving › Gear",
            "A fender is a cushion of rope.\nRopes are kept in the shed behind the office.",
        ),
    ]
    assert found[1].role == "Procedure"
    rows = [unit.text.split("\n") for unit in found[3:]]
    assert len(rows) > 1
    assert all(row[0] == "Berth | Ship" for row in rows), "every part of a long table has its header"
    assert {unit.at for unit in found} == {datetime(2024, 3, 1, 10, 0, tzinfo=UTC)}


def test_the_date_of_a_template_is_not_that_of_a_document():
    assert {unit.at for unit in units("a.docx", word(modified=None))} == {None}


def test_a_book_is_read_in_order_below_its_title():
    first = "<head><title>The Petrel</title></head><body><h1>One</h1><p>The sea was calm &amp; grey.</p></body>"
    second = "<?xml version='1.0' encoding='iso-8859-1'?><head><title>Zwei</title></head><body><p>Es war kühl.</p>"
    found = units("a.epub", book(first, second.encode("latin-1")))
    assert [(unit.topic, unit.text) for unit in found] == [
        ("The Petrel › One", "The sea was calm & grey."),
        ("The Petrel › Zwei", "Es war kühl."),
    ]
    assert {unit.at for unit in found} == {datetime(2020, 5, 1, tzinfo=UTC)}


def test_restructured_text_keeps_what_sphinx_adds_and_includes_nothing():
    found = units("petrel.rst", RST)
    assert [(unit.topic, unit.text) for unit in found] == [
        ("The Petrel", "Author: Berta Falk\nDate: 2026-03-02"),
        (
            "The Petrel › Hulls",
            "\n\n".join(
                [
                    "The hull of the Petrel is made of larch, see the sails and boat.Hull.",
                    "Note: Tar it in May.",
                    "versionadded: 2.0\nThe keel was added in the yard.",
                ]
            ),
        ),
        ("The Petrel › Hulls › Sails", "Hoist the jib.\nTurn into the wind."),
        ("The Petrel › Hulls › Sails", "sail | colour\njib | red"),
        ("The Petrel › Hulls › Sails", 'def hoist():\n    return "jib"'),
    ]
    assert {unit.at for unit in found} == {datetime(2026, 3, 2, tzinfo=UTC)}


def test_a_row_of_a_table_has_the_names_of_its_columns():
    body = 'name;city;born\nAna;Lisbon;1990\n"Rui\nCosta";"Porto; north";\n'
    assert said("people.csv", body) == [
        ("", "name: Ana | city: Lisbon | born: 1990"),
        ("", "name: Rui Costa | city: Porto; north"),
    ]
    assert said("a.tsv", "name\tcity\nAna\tLisbon, Alfama\n") == [("", "name: Ana | city: Lisbon, Alfama")]
    assert said("a.csv", "1990,Ana\n1985,Rui\n") == [("", "1990 | Ana"), ("", "1985 | Rui")], "values are no names"
    assert said("a.csv", "name,city\n") == [("", "name | city")]


def test_a_long_row_is_cut_and_each_part_says_whose_it_is():
    story = "The storm went on. " * 100
    found = said("ships.csv", f"ship,story\nAurora,{story}\nPetrel,It was calm.\n")
    assert len(found) > 2
    assert all(text.startswith("ship: Aurora") for _, text in found[:-1])
    assert found[-1] == ("", "ship: Petrel | story: It was calm.")


def test_python_is_read_by_definition():
    assert said("src/ships.py", PYTHON) == [
        ("ships.py", '"""Ships."""\n\nimport math'),
        ("ships.py › Ship", PYTHON[PYTHON.index("class") : PYTHON.index("\n\n\ndef")]),
        ("ships.py › moor", "def moor(ship):\n    return ship"),
    ]


def test_a_large_class_is_read_by_method_and_a_long_function_carries_its_name():
    method = "    # Why it is so.\n    def sail(self):\n        return 1\n\n"
    lines = "".join(f"    total += {number}  # and so on\n" for number in range(60))
    found = said("a.py", f"class Ship:\n    knots = {'2' * 990}\n\n{method}\n\ndef count(\n    ship,\n):\n{lines}")
    assert list(dict(found)) == ["a.py › Ship", "a.py › Ship › sail", "a.py › count"]
    assert dict(found)["a.py › Ship › sail"] == "    # Why it is so.\n    def sail(self):\n        return 1"
    assert len(found) > 4
    assert all(text.startswith("def count( ship, ):\n") for topic, text in found if topic == "a.py › count")


@pytest.mark.parametrize(
    ("name", "body", "topics"),
    [
        ("a.go", GO, ["a.go", "a.go › Moor", "a.go › Ship"]),
        ("a.py", "print 'old'\n\ndef moor(ship):\n    print ship\n", ["a.py", "a.py › moor"]),
        ("a.js", "export const moor = (s) => {\n  tie(s);\n};\n\nclass Ship {\n}\n", ["a.js › moor", "a.js › Ship"]),
        ("a.c", "#include <a.h>\n\nint\nmoor(int ship)\n{\n    return 7;\n}\n", ["a.c", "a.c › moor"]),
        ("a.rs", "/// Ties.\npub fn moor<T>(s: T) {\n}\n\nimpl Ship for Boat {\n}\n", ["a.rs › moor", "a.rs › Ship"]),
        ("a.rb", "def moor(ship)\n  ship.tie\nend\n", ["a.rb › moor"]),
        ("a.sql", "CREATE TABLE IF NOT EXISTS ships (\n  id INT\n);\n", ["a.sql › ships"]),
        ("a.sh", "set -e\n\nmoor() {\n  tie\n}\n", ["a.sh", "a.sh › moor"]),
    ],
)  # fmt: skip
def test_other_languages_are_read_by_what_looks_like_a_definition(name, body, topics):
    assert [topic for topic, _ in said(name, body)] == topics


def test_every_word_of_a_program_is_in_some_piece():
    for name, body in (("a.go", GO), ("a.py", PYTHON)):
        words = " ".join(text for _, text in said(name, body)).split()
        assert sorted(words) == sorted(body.split())


def test_an_email_says_who_wrote_it_and_when():
    body = letter(
        "The fee is 40 euros. I moved to Porto.\n\nBest wishes\nBerta\n\nOn Sunday, Ana wrote:\n"
        "> What does it cost?\n>\n> Please tell me.\n",
        subject="Gebühren für den Hafen", html="<p>The fee is <b>40</b> euros.</p>", attached="Preisliste März.pdf",
    )  # fmt: skip
    header, text, quote, further = units("a.eml", bytes(body))
    assert header.topic == "Gebühren für den Hafen › Berta Falk, 2026-03-02"
    assert header.text.endswith("Attachments: Preisliste März.pdf")
    assert text.text == "The fee is 40 euros. I moved to Porto.\nBest wishes Berta"
    assert (text.by, text.at) == ("Berta Falk", datetime(2026, 3, 2, 8, 12, tzinfo=UTC))
    assert (quote.kind, quote.text, quote.by) == ("quote", "On Sunday, Ana wrote:\nWhat does it cost?", "")
    assert further.text == "Please tell me."


def test_a_page_is_read_where_a_mail_has_no_text():
    body = letter("-", html="<p>The fee is <b>40</b> euros.</p>")
    body.get_payload()[0].replace_header("Content-Type", "text/enriched")
    assert said("a.eml", bytes(body))[-1][1] == "The fee is 40 euros."


def test_a_mailbox_leaves_out_what_a_reply_repeats(tmp_path):
    box = mailbox.mbox(tmp_path / "a.mbox")
    box.add(letter("What does it cost?\n\nFrom now on I pay.\n", subject="Fee", sender="Ana <ana@example.org>"))
    box.add(letter("Forty.\n\n> What does it cost?\n\n> From now on I pay.\n", subject="Re: Fee"))
    box.close()
    found = said("a.mbox", (tmp_path / "a.mbox").read_bytes())
    assert [text for _, text in found if not text.startswith("From: ")] == [
        "What does it cost?\n\nFrom now on I pay.", "Forty.",
    ]  # fmt: skip
    assert {topic.partition(" › ")[0] for topic, _ in found} == {"Fee", "Re: Fee"}


def test_mail_in_any_charset_is_read_with_what_can_be_read_of_it():
    header = b"From: =?nonsense?q?Ana?= <a@example.org>\nDate: never\nContent-Type: text/plain; charset=klingon\n\n"
    body = header + b"caf\xe9 words\n"
    *_, last = units("a.eml", body)
    assert (last.text, last.at) == ("caf\ufffd words", None)


@pytest.mark.parametrize(("name", "library"), [("a.docx", "mammoth"), ("a.rst", "docutils"), ("a.pdf", "pypdf")])
def test_a_missing_library_is_one_line_with_the_command(name, library, monkeypatch):
    for loaded in [library, *(one for one in sys.modules if one.startswith(f"{library}."))]:
        monkeypatch.setitem(sys.modules, loaded, None)
    bodies = {"a.docx": word(), "a.pdf": b"%PDF-1.4", "a.rst": b"Words."}
    with pytest.raises(MissingExtraError, match=f"needs {library}; .*pip install '\\.\\[documents\\]'"):
        read_source(name, bodies[name])


@pytest.mark.parametrize(("name", "body"), [("a.md", b"# a\n" * 4), ("a.jsonl", b'{"claim": "x"}\n' * 4)])
def test_a_document_makes_no_more_units_than_it_may(name, body):
    with pytest.raises(InputError, match="makes 4 units, more than 3; split it"):
        read_source(name, body, limits=SourceLimits(max_units=3))
    assert len(read_source(name, body, limits=SourceLimits(max_units=4)).pieces) == 4


def test_a_text_is_never_longer_than_a_file_may_be():
    with pytest.raises(InputError, match="characters, more than 50; split it"):
        read_source("a.csv", b"name,city\n" + b"A,B\n" * 10, limits=SourceLimits(max_bytes=50))
