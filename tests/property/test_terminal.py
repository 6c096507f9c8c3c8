"""What reaches a terminal: nothing that it would obey, and on 30 columns as on 200 every word and every id."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import holdfast
from holdfast.cli.output import visible, visible_json
from holdfast.settings import Settings

TEXTS = (
    "We moved to Lisbon in March, to a flat above the old lighthouse keeper's workshop.",
    "The lighthouse keeper of Peniche calls himself Bartholomew-Alexander of Almeida-e-Vasconcelos.",
    "No lighthouse on Saturdays.",
)
LONG_ID = "an-id-of-our-own/which-is-as-long-as-a-path/of-many-folders/and-still-an-id.md"
LONG_SPEAKER = "Wilhelmina Featherstonehaugh-Cholmondeley"
# Whatever shares a word with a question is shown.
ENVIRON = {
    "NO_COLOR": "1",
    "HOLDFAST_EMBEDDING__EMBEDDER": "none",
    "HOLDFAST_HYBRID__GAP": "0",
    "HOLDFAST_HYBRID__MIN_SCORE": "0",
}
QUESTION = "Where is the lighthouse keeper?"
HOSTILE = (
    "\x1b[2Jgone \x1b]0;title\x07 \x9b31m red \u202egnp.exe\u202c \u2066x\u2069 a\rb \x08 \x7f \U000e0041tag "
    "\u2028 end"
)


def run(*arguments, columns=120, given=""):
    """Run `holdfast`; return what it wrote to both streams."""
    ended = holdfast(*arguments, given=given, COLUMNS=str(columns), **ENVIRON)
    return ended.out + ended.err


def squashed(text):
    return "".join(text.split())


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Keep a session, a document and a changed unit; return how to ask for them."""
    folder = tmp_path_factory.mktemp("terminal")
    db = ["--db", str(folder / "m.db")]
    (folder / "notes.md").write_text("# Harbour\n\nThe lighthouse keeper counts every single wave.\n")
    session = ["--session", "a-session-with-a-name-of-its-own", "--json", *db]
    said = zip(TEXTS, (LONG_SPEAKER, "Bo", "Bo"), (["--id", LONG_ID], [], []), strict=True)
    written = [run("remember", text, "--speaker", who, *more, *session) for text, who, more in said]
    ids = [json.loads(one)[0]["id"] for one in written]
    run("update", ids[2], "--text", f"{TEXTS[2]} Except in the summer holidays.", *db)
    part = json.loads(run("ingest", str(folder / "notes.md"), "--json", *db))[0]["id"]
    return db, ids, part


def shown_by(db, ids, part):
    """Return, for every command that draws, what it has to show."""
    everything = (*TEXTS, *ids, LONG_SPEAKER)
    searched = ("--limit", "20")
    keys = [row.key for row in Settings().describe()]
    return {
        ("search", QUESTION, *searched): everything,
        ("search", QUESTION, "--explain", *searched): (*everything, "words", "lighthouse"),
        ("search", QUESTION, "--tree", *searched): (*everything, "termlighthous", "idf"),
        ("search", "nothing of the kind"): ("Nothing found", "kind"),
        ("list",): everything,
        ("show", ids[0]): (TEXTS[0], LONG_ID, LONG_SPEAKER),
        ("history", ids[2]): (TEXTS[2], "summer holidays"),
        ("why", QUESTION, ids[1]): (TEXTS[1], "returned at rank", "lighthouse, keeper"),
        ("why", QUESTION, ids[1], "--tree"): (TEXTS[1], "termlighthous"),
        ("assemble", QUESTION, "--session", "a-session-with-a-name-of-its-own"): TEXTS,
        ("assemble", QUESTION, "--explain"): ids[:1],
        ("forget", "--all", "--dry-run"): everything,
        ("stats",): ("4 units", db[1]),
        ("settings",): keys,
        ("widen", part): ("counts every single wave",),
        ("show", "nobody-of-this-name"): ("nobody-of-this-name",),
    }


@given(st.integers(30, 200), st.data())
def test_no_word_and_no_id_is_lost_at_any_width(store, columns, data):
    db, ids, part = store
    commands = shown_by(db, ids, part)
    arguments = data.draw(st.sampled_from(sorted(commands)))
    drawn = run(*arguments, *(db if arguments != ("settings",) else []), columns=columns)
    assert max(map(len, drawn.splitlines())) <= columns or drawn.startswith("error:")
    for piece in commands[arguments]:
        assert squashed(piece) in squashed(drawn), (piece, drawn)


def test_a_pipe_has_no_width(store):
    db, ids, _ = store
    lines = run("show", ids[1], *db, columns=0).splitlines()  # as if COLUMNS were not set
    assert lines[0] == TEXTS[1]


# -------------------------------------------------------------------------------------------- control characters


def obeyed(text):
    """Return the characters that a terminal would obey, judged by their Unicode properties."""
    turning = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    return {
        c for c in text
        if (unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs") and c not in "\n\t")
        or unicodedata.bidirectional(c) in turning
        or 0xE0000 <= ord(c) <= 0xE007F
    }  # fmt: skip


@given(st.text() | st.text(alphabet=st.sampled_from(HOSTILE)))
def test_what_is_shown_is_never_obeyed_and_json_means_the_same(text):
    assert not obeyed(visible(text))
    written = visible_json(json.dumps(text, ensure_ascii=False))
    assert not obeyed(written)
    assert json.loads(written) == text


def test_ordinary_text_is_shown_as_it_is():
    for text in ("naïve café\tMüller\n", "👩‍🚀 क्षि می‌خواهم", "東京", "\u200fשלום"):
        assert visible(text) == text
    assert visible("one\r\ntwo") == "one\ntwo"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Keep units whose words, session, user, speaker, id, topic and document are full of control characters."""
    folder = tmp_path_factory.mktemp("hostile")
    name = "bad \x1b[2J \u202e \x9b name"
    db = ["--db", str(folder / "m.db"), "--user", f"u{name}"]
    names = {"session": f"s{name}", "name": f"w{name}", "id": f"m{name}", "metadata": {name: name}}
    message = [{"role": "user", "content": f"boat {HOSTILE}", **names}]
    (folder / "m.json").write_text(json.dumps(message))
    ids = [json.loads(run("remember", "--messages", str(folder / "m.json"), "--json", *db))[0]["id"]]
    ids.append(json.loads(run("remember", f"boat two {HOSTILE}", "--id", f"i{name}", "--json", *db))[0]["id"])
    run("update", ids[1], "--text", f"boat three {HOSTILE}", "--topic", name, *db)
    (folder / "d.md").write_text(f"# {name}\n\nThe boat {HOSTILE} is blue.\n".replace("\r", " "))
    part = json.loads(run("ingest", str(folder / "d.md"), "--name", f"d{name}", "--json", *db))[0]["id"]
    (folder / "many").mkdir()
    (folder / "many" / f"f{name}.md").write_bytes(b"\xff\xfe\x00")
    return db, ids, part, str(folder / "many"), name


@pytest.mark.parametrize("as_json", [False, True])
def test_control_characters_of_what_is_remembered_reach_no_terminal(hostile, as_json):
    db, ids, part, many, name = hostile
    commands = (
        ("search", "boat"), ("search", "boat", "--explain"), ("search", "boat", "--tree"), ("search", name),
        ("list",), ("list", "--session", f"s{name}"), ("show", ids[0]), ("show", ids[1]), ("show", part),
        ("history", ids[1]), ("why", "boat", ids[0]), ("why", name, ids[1], "--tree"),
        ("assemble", "boat"), ("assemble", "boat", "--explain"),
        ("assemble", "boat", "--tree", "--session", f"s{name}"),
        ("widen", part), ("stats",), ("compact",), ("supersede", ids[1], "--by", ids[0]), ("reinstate", ids[1]),
        ("forget", "--all", "--dry-run"), ("forget", "--document", f"d{name}", "--dry-run"), ("forget", "--all"),
        ("ingest", many), ("show", f"no{name}"), ("expand", ids[1]), ("search", "boat", "--profile", name),
        ("remember", f"again {HOSTILE}", "--id", f"j{name}"), ("search", "boat", f"--{name}"), (f"{name}",),
        ("search", "nothing", "--user", f"v{name}"),
    )  # fmt: skip
    for arguments in commands:
        drawn = run(*arguments, *(["--json"] if as_json else []), *(db if arguments[0] != name else []))
        assert not obeyed(drawn), (arguments, drawn)
        assert "Traceback" not in drawn
    assert "gone" in run("search", "boat", *db)
