"""Documents that cannot be used: one message with the value and the remedy, and the store is as it was."""

import json
import logging
import sys
from pathlib import Path

import pytest

from builders import ask, opened
from commands import BY_WORDS, command_line
from holdfast import Settings
from holdfast.errors import InputError, SettingsError
from papers import book, zipped
from papers import word as paper
from pdfs import tiny_pdf

HOLDFAST = Path(sys.executable).with_name("holdfast")
FACT = {"claim": "Mira works with the loom.", "subject": "Mira", "relation": "uses", "object": "loom"}
GOOD = {"claim": "Cloth is blue."}


WORDS = "word/document.xml"
LOCKED = '<a><EncryptedData><CipherReference URI="OEBPS/text/c%200.xhtml"/></EncryptedData></a>'

NESTED = b"Content-Type: message/rfc822\n\n" * 2_000
PARTS = b"".join(b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n) for n in range(1_700))
RINGS = "".join(f"{'  ' * n}* a\n\n" for n in range(300))


def listed(*units):
    return json.dumps([GOOD, *units]).encode()


def without(*names):
    return {name: value for name, value in FACT.items() if name not in names}


# name → (file, bytes, words that the message has to hold: the value, and the remedy)
REFUSED = {
    "binary text": ("a.txt", b"\x7fELF\x00\x01", ("a.txt", "NUL byte at 4", "save the file as UTF-8")),
    "binary Markdown": ("a.md", b"\x89PNG\r\n\x1a\n", ("a.md", "0x89", "save the file as UTF-8")),
    "a PDF called text": ("a.txt", b"%PDF-1.4\n", ("a.txt", "rename it to .pdf")),
    "no PDF": ("a.pdf", b"PK\x03\x04", ("a.pdf", "no %PDF- mark", "check the file")),
    "encrypted PDF": ("a.pdf", tiny_pdf(["Words."], password="x"), ("a.pdf", "encrypted", "without a password")),
    "broken PDF": ("a.pdf", tiny_pdf(["Words."])[:200], ("a.pdf", "cannot be read as a PDF", "save it anew")),
    "PDF of pictures": ("a.pdf", tiny_pdf([]), ("a.pdf", "1 pages and no text", "OCR")),
    "no Word file": ("a.docx", b"words", ("a.docx", "not a zip", "save it anew")),
    "half a Word file": ("a.docx", paper()[:5000], ("a.docx", "not a zip", "save it anew")),
    "a zip called Word": ("a.docx", zipped(b"PK\x05\x06" + bytes(18), "x", b""), ("no Word document", "rename it")),
    "encrypted Word file": ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), ("encrypted", "password")),
    "broken Word file": ("a.docx", zipped(paper(), WORDS, b"<a>"), ("a.docx", "damaged at 'word/document.xml'")),
    "a Word file that grows": (
        "a.docx",
        zipped(paper(), WORDS, b"<a>" + b" " * 70_000_000),
        ("67,108,864", "split it"),
    ),
    "a Word file of many parts": (
        "a.docx",
        zipped(paper(), WORDS, b"<a>" + b"<b/>" * 1_000_001),
        ("1,000,000", "split"),
    ),
    "entities": (
        "a.docx",
        zipped(paper(), WORDS, b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'),
        ("defines an entity",),
    ),
    "no book": ("a.epub", paper(), ("a.epub", "holds no book", "rename it")),
    "a protected book": ("a.epub", book("<p>Words.</p>", more=[("META-INF/encryption.xml", LOCKED)]), ("DRM",)),
    "a book in another encoding": ("a.epub", book(b"<p>caf\xe9</p>"), ("a.epub", "not utf-8", "save it anew")),
    "a book without words": ("a.epub", book("<p></p>"), ("a.epub", "no content", "leave it out")),
    "a table in another encoding": ("a.csv", b"name,caf\xe9\n", ("a.csv", "0xe9", "save the file as UTF-8")),
    "a table with an open quote": ("a.csv", b'name,city\nAna,"Lisbon\n', ("a.csv", "line 2", "save it as CSV anew")),
    "an empty table": ("a.csv", b",,\n", ("a.csv", "no content")),
    "a binary called Python": ("a.py", b"\x7fELF\x00\x01", ("a.py", "NUL byte at 4")),
    "an empty program": ("a.py", b"\n\n", ("a.py", "no content")),
    "a binary called mail": ("a.eml", b"From: a\n\n\x00", ("a.eml", "NUL byte at 9", "no e-mail")),
    "no mail": ("a.eml", b"\nwords\n", ("a.eml", "no header", ".txt")),
    "encrypted mail": ("a.eml", b"From: a\nContent-Type: multipart/encrypted\n\nx", ("a.eml", "encrypted")),
    "mail in mail in mail": ("a.eml", NESTED, ("a.eml", "too deep", "save the inner ones")),
    "parts in parts in parts": ("a.eml", PARTS, ("a.eml", "too deep", "save the inner ones")),
    "a mailbox of such mail": (
        "a.mbox",
        b"From a@b Mon Jan  1 00:00:00 2024\n" + NESTED,
        ("a.mbox", "too deep", "save the inner ones"),
    ),
    "lists in lists in lists": ("a.rst", RINGS.encode(), ("a.rst", "recursion", ".txt")),
    "targets without end": ("a.rst", b".. _a:\n\n" * 5_001, ("a.rst", "5,001 references", "split it")),
    "substitutions without end": ("a.rst", b"|a| \n" * 5_001, ("a.rst", "5,001 references", "split it")),
    "footnotes without end": ("a.rst", b".. [#] a\n" * 5_001, ("a.rst", "5,001 references", "split it")),
    "classes without end": ("a.rst", b".. class:: a\n\n" * 5_001, ("a.rst", "references", "split it")),
    "a long rst": ("a.rst", b"words\n\n" * 80_000, ("a.rst", "560,000 characters", "split it")),
    "no mailbox": ("a.mbox", b"words\n", ("a.mbox", "no mailbox", ".eml")),
    "a line without end": ("a.rst", b"x" * 10_001, ("a.rst", "10,000 characters", "wrap it")),
    "empty": ("a.md", b" \n", ("a.md", "no content", "leave it out")),
    "invalid YAML": ("a.yaml", b"- claim: [open\n", ("a.yaml", "line")),
    "invalid JSON": ("a.json", b'[{"claim": }]', ("a.json", "line")),
    "invalid JSON line": ("a.jsonl", b'{"claim": "x"}\n{"claim"\n', ("a.jsonl", "line 2")),
    "JSON that is no units": ("a.json", b'{"colour": "red"}', ("a.json",)),
    "claim and procedure": ("a.json", listed({"claim": "x", "procedure": "y"}), ("line 1", "not both", "drop one")),
    "half a triple": ("a.json", listed(without("object")), ("line 1", "object")),
    "a confidence alone": ("a.json", listed(GOOD | {"confidence": 0.5}), ("line 1", "confidence")),
    "confidence above one": ("a.json", listed(FACT | {"confidence": 1.5}), ("line 1", "confidence", "1.5")),
    "confidence below zero": ("a.json", listed(FACT | {"confidence": -0.1}), ("line 1", "confidence", "-0.1")),
    "confidence NaN": ("a.json", b'[{"claim": "x", "confidence": NaN}]', ("a.json", "NaN")),
    "confidence in words": ("a.json", listed(FACT | {"confidence": "high"}), ("line 1", "confidence", "'high'")),
    "unknown role": ("a.json", listed({"claim": "x", "role": "Poem"}), ("line 1", "role", "'Poem'", "Narrative")),
    "unknown relation": ("a.json", listed(FACT | {"relation": "adores"}), ("line 1", "'adores'", "uses")),
    "unknown act": ("a.json", listed({"claim": "x", "utility_acts": ["sing"]}), ("line 1", "'sing'", "compare")),
    "unknown field": ("a.json", listed({"claim": "x", "colour": "red"}), ("line 1", "colour", "no such field")),
    "an id twice": ("a.json", listed({"id": "k", "claim": "x"}, {"id": "k", "claim": "y"}), ("'k'", "taken")),
}


@pytest.fixture
def memory(tmp_path):
    with opened(path=tmp_path / "m.db") as opened_memory:
        opened_memory.ingest("The kettle is on the shelf.\n", name="kept.md", user="ana")
        opened_memory.remember("the violin hangs in the hall", user="ana", id="turn")
        yield opened_memory


def state(memory, *paths):
    """Return all that a user could see of the store."""
    view = memory._view(user="ana")
    units = {unit.id: unit for unit in memory.list(user="ana", limit=None, current_only=False)}
    documents = [(kept.name, kept.body) for kept in ask(memory, lambda reading: reading.documents(), view)]
    return memory.stats(user="ana"), units, documents


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_document_is_refused_and_nothing_is_half_written(memory, tmp_path, case, caplog):
    caplog.set_level(logging.CRITICAL, logger="pypdf")
    name, body, words = REFUSED[case]
    path = tmp_path / name
    path.write_bytes(body)
    before = state(memory)
    with pytest.raises(InputError) as caught:
        memory.ingest(path, user="ana")
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 400
    for word in words:
        assert word in said
    assert state(memory) == before


@pytest.mark.parametrize("case", ["claim and procedure", "half a triple", "unknown relation", "invalid JSON"])
def test_a_bad_next_version_of_a_document_leaves_the_last_one(memory, tmp_path, case):
    name, body, _ = REFUSED[case]
    path = tmp_path / name
    path.write_bytes(json.dumps([GOOD, FACT]).encode())
    memory.ingest(path, user="ana")
    before = state(memory)
    path.write_bytes(body)
    with pytest.raises(InputError):
        memory.ingest(path, user="ana")
    assert state(memory) == before


@pytest.mark.parametrize("case", ["binary text", "encrypted PDF", "claim and procedure", "invalid YAML"])
def test_a_folder_goes_on_past_a_bad_document(memory, tmp_path, case, caplog):
    caplog.set_level(logging.CRITICAL, logger="pypdf")
    name, body, words = REFUSED[case]
    root = tmp_path / "notes"
    root.mkdir()
    (root / name).write_bytes(body)
    (root / "good.md").write_text("The good page.\n", encoding="utf-8")
    report = memory.ingest_folder(root, user="ana", include=("*",))
    assert report.added == ("good.md",)
    [(failed, why)] = report.failed
    assert failed == name
    assert all(word in why for word in words)


@pytest.mark.parametrize(
    ("case", "code"), [("binary text", 2), ("encrypted PDF", 2), ("claim and procedure", 2), ("unknown role", 2)]
)
def test_the_command_line_says_it_in_one_message(tmp_path, case, code, monkeypatch):
    name, body, words = REFUSED[case]
    (tmp_path / name).write_bytes(body)
    error = command_line(tmp_path, monkeypatch, **BY_WORDS)("ingest", name, "--json", code=code)["error"]
    assert error["exit_code"] == code
    assert all(word in error["message"] for word in words)


# --------------------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("x likes y", "no `->`"),
        ("x likes y -> x meets z", "z follows from nothing"),
        ("x likes y, z likes w -> x meets w", "share no variable"),
        ("x likes y -> x likes y", "what its body says"),
        ("x likes y -> y likes x : nan", "outside"),
        ("x likes y -> y likes x : often", "is not a weight"),
    ],
)
def test_a_bad_rule_is_refused_with_the_rule_and_the_remedy(rule, reason):
    settings = Settings.load({"symbolic.rules": (rule,)}, environ={})
    with pytest.raises(SettingsError, match=reason) as caught, opened(settings) as memory:
        memory.search("Mira", user="ana", profile="thinking")
    assert rule in str(caught.value)
    assert "as in 'x located_in y, y part_of z -> x located_in z : 0.9'" in str(caught.value)


def test_a_bad_rule_is_refused_when_the_settings_are_built_or_the_memory_is_opened():
    with (
        pytest.raises(SettingsError, match="no `->`"),
        opened(Settings.load({"symbolic.rules": ("x likes y",)}, environ={})),
    ):
        pass


@pytest.mark.parametrize(
    "rules",
    [
        ("x uses y -> y uses x : 1.0",),
        ("x uses y, y uses z -> x uses z : 1.0", "x uses y -> y uses x : 1.0"),
        ("x uses y -> x provides y : 1.0", "x provides y -> x uses y : 1.0"),
    ],
)
def test_rules_that_feed_themselves_end(rules):
    settings = Settings.load({"symbolic.rules": rules}, environ={}).without_timeouts()
    with opened(settings) as memory:
        ring = [f"Loom{i} uses Loom{(i + 1) % 30}." for i in range(30)]
        memory.ingest("\n\n".join(ring), name="ring.md", user="ana")
        found = memory.search("What of Loom7?", user="ana", profile="thinking", explain=True)
        assert 0 < len(found) <= 8
        for hit in found:
            assert hit.contributions.compose() == hit.score
            assert 0.0 <= hit.rel <= 1.0
