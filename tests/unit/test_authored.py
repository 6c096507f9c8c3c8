"""Authored documents (C14): nodes, tiers, front matter, and what is refused."""

from pathlib import Path

import pytest

from builders import opened
from holdfast.documents.markdown import partition
from holdfast.documents.parser import read_source
from holdfast.errors import InputError, SettingsError
from holdfast.settings import AuthoredSettings, Settings
from reference import vectors

DATA = Path(__file__).parents[1] / "data/authored"

# Reviewed by hand, node by node: kind, tier, headings above, first words.
EXCERPTS = {
    "agents.md": [
        ("front_matter", "hard", (), "name: harbour-agents"),
        ("heading", "variant", (), "Working in this repository"),
        ("paragraph", "variant", (1,), "The harbour service plans"),
        ("paragraph", "soft", (1,), "You must read the design notes before"),
        ("heading", "variant", (1,), "Set-up"),
        ("item", "hard", (1, 4), "Install the tools with make tools."),
        ("item", "hard", (1, 4), "Copy the sample settings: cp settings.sample.toml settings.toml The copy is"),
        ("item", "hard", (1, 4), "Start the service."),
        ("code", "variant", (1, 4), "make serve"),
        ("heading", "variant", (1,), "Rules"),
        ("item", "hard", (1, 9), "Keep functions short. Forty lines are the most. Names say what a thing is. No abb"),
        ("item", "hard", (1, 9), "Tests come with the change that needs them."),
        ("item", "hard", (1, 9), "[ ] Move the tide tables"),
        ("item", "hard", (1, 9), "[x] Drop the old parser"),
        ("paragraph", "soft", (1, 9), "Commits must be signed."),
        ("quote", "soft", (1, 9), "Small steps, each of them green. A red main"),
        ("table", "variant", (1, 9), "Command Use make test all tests"),
        ("html", "variant", (1, 9), "<!-- The owners"),  # its "You must never" is hidden from readers
        ("paragraph", "soft", (1, 9), "Don’t push to main."),
        ("paragraph", "variant", (1, 9), "Who to ask: Ines"),
        ("code", "variant", (1, 9), "indented ="),
        ("paragraph", "soft", (1, 9), "Before you open a pull request, run"),
    ],
    "soul.md": [
        ("heading", "variant", (), "Persona of the desk assistant"),
        ("paragraph", "soft", (0,), "You are a patient assistant"),
        ("paragraph", "variant", (0,), "The library opened in 1931, in a former mill. Most"),
        ("heading", "variant", (0,), "Voice"),
        ("item", "hard", (0, 3), "Warm and brief."),
        ("item", "hard", (0, 3), "Plain words, no jargon. A visitor may be nine"),
        ("item", "hard", (0, 3), "British spelling"),
        ("quote", "soft", (0, 3), "Curiosity first. An answer that ends"),
        ("paragraph", "soft", (0, 3), "You speak slowly"),
        ("paragraph", "variant", (0, 3), "Humour is welcome. Always kind."),
        ("paragraph", "soft", (0, 3), "You may recommend books"),
        ("heading", "variant", (0, 3), "Limits"),
        ("item", "hard", (0, 3, 11), "Say so when you do not know."),
        ("item", "hard", (0, 3, 11), "Fines are a matter"),
        ("paragraph", "soft", (0, 3, 11), "You can't promise a seat"),
        ("paragraph", "variant", (0, 3, 11), "What would you tell a visitor who must"),
        ("paragraph", "variant", (0, 3, 11), "She must have been a librarian"),
        ("paragraph", "soft", (0, 3, 11), "Never guess at opening hours; look"),
        ("html", "variant", (0, 3, 11), "<details>"),
        ("paragraph", "variant", (0, 3, 11), "Signed, the founders."),
    ],
    "claude.md": [
        ("front_matter", "hard", (), "hop_targets: [agents.md#000006"),
        ("heading", "variant", (), "Project notes"),
        ("paragraph", "variant", (1,), "This is a weather station: a Rust daemon"),
        ("heading", "variant", (1,), "Layout"),
        ("table", "variant", (1, 3), "Folder What is in it daemon/ reads"),
        ("paragraph", "variant", (1, 3), "The daemon writes one line per minute. run starts it, must_stop"),
        ("heading", "variant", (1,), "Commands"),
        ("paragraph", "soft", (1, 6), "Build: cargo build"),
        ("paragraph", "variant", (1, 6), "The page is tested"),
        ("code", "variant", (1, 6), "cargo test"),
        ("heading", "variant", (1,), "Conventions"),
        ("paragraph", "soft", (1, 10), "All timestamps must be in UTC."),
        ("paragraph", "variant", (1, 10), "We chose SQLite"),
        ("item", "hard", (1, 10), "Errors. Return them; do not panic."),
        ("item", "hard", (1, 10), "Logs. One event, one line. level when warn a sensor"),
        ("item", "hard", (1, 10), "Units. Metric only."),
        ("quote", "soft", (1, 10), "Note the wind vane"),
        ("paragraph", "soft", (1, 10), "Releases are cut from main. Never tag"),
        ("paragraph", "soft", (1, 10), "Readings older than a year are not kept; the archive MUST"),
        ("heading", "variant", (1, 10), "Known quirks"),
        ("paragraph", "variant", (1, 10, 19), "The barometer drifts in summer. See the log for numbers."),
        ("paragraph", "variant", (1, 10, 19), "Map of the garden"),
        ("paragraph", "soft", (1, 10, 19), "If the page stays blank, check"),
        ("html", "variant", (1, 10, 19), '<div class="note">'),
    ],
    "style.md": [
        ("html", "variant", (), "<!-- style guide"),
        ("heading", "variant", (), "How we write"),
        ("paragraph", "variant", (1,), "Good writing is rewriting."),
        ("paragraph", "soft", (1,), "Write for a reader"),
        ("heading", "variant", (1,), "Sentences"),
        ("item", "hard", (1, 4), 'One thought each Cut the first paragraph. Then cut the adjectives. "Very" is a'),
        ("item", "hard", (1, 4), "Active voice"),
        ("item", "hard", (1, 4), "Numbers: words up to twelve digits from 13"),
        ("paragraph", "soft", (1, 4), "Please read every text aloud"),
        ("paragraph", "variant", (1, 4), "Long sentences were forbidden in"),
        ("paragraph", "soft", (1, 4), "Exclamation marks are forbidden here."),
        ("heading", "variant", (1,), "Words"),
        ("table", "variant", (1, 11), "say not use utilise"),
        ("paragraph", "soft", (1, 11), "No Latin, e.g. use"),
        ("quote", "soft", (1, 11), "Prefer the short word."),
        ("paragraph", "variant", (1, 11), "Use-case diagrams have"),
        ("paragraph", "soft", (1, 11), "Spelling follows the house dictionary, but check"),
        ("heading", "variant", (1, 11), "Headings"),
        ("paragraph", "variant", (1, 11, 17), "A heading is a promise. It should be kept."),
        ("code", "variant", (1, 11, 17), "## Do this"),
        ("paragraph", "soft", (1, 11, 17), "Every heading should be a phrase"),
        ("heading", "variant", (1, 11, 17), "Exceptions"),
        ("paragraph", "variant", (1, 11, 17, 21), "“Use less” was the motto"),
        ("paragraph", "variant", (1, 11, 17, 21), "It was two words shorter"),
        ("paragraph", "soft", (1, 11, 17, 21), "You may break any of these"),
    ],
}
LINKS = {
    "agents.md": ("style.md#000003", "notes.md#000008"),
    "claude.md": ("agents.md#000006", "soul.md#000002"),
}


def read(text, **options):
    return partition("notes.md", text.encode("utf-8"), **options)


def kinds(document):
    return [(node.kind, node.text) for node in document.nodes]


# ------------------------------------------------------------------------------------------------- reviewed excerpts


@pytest.mark.parametrize("name", EXCERPTS)
def test_every_node_of_an_excerpt_has_the_tier_a_reviewer_gave_it(name):
    nodes = partition(name, (DATA / name).read_bytes()).nodes
    assert len(nodes) == len(EXCERPTS[name])
    for node, (kind, tier, headings, words) in zip(nodes, EXCERPTS[name], strict=True):
        assert (node.kind, node.tier, node.headings) == (kind, tier, headings), node.text
        assert node.text.startswith(words)


@pytest.mark.parametrize("name", EXCERPTS)
def test_a_document_knows_its_name_and_its_hop_targets(name):
    raw = (DATA / name).read_bytes()
    document = partition(name, raw)
    assert document.name == name
    assert document.hop_targets == LINKS.get(name, ())
    assert [node.ordinal for node in document.nodes] == list(range(len(document.nodes)))


def test_a_tag_that_begins_like_a_line_break_reads_as_in_units_that_exist():
    text = b"Push to origin/<branch>, then wait<br>a minute.\n"
    assert partition("a.md", text).nodes[0].text == "Push to origin/ , then wait a minute."
    assert read_source("a.md", text).pieces[0].text == "Push to origin/, then wait a minute."


# ----------------------------------------------------------------------------------------------------- source lines


def test_an_item_keeps_its_marker_its_nested_items_and_their_order():
    first, second = read("- a\n  - nested b\n\n    1. deeper *c*\n  - d\n- e\n").nodes
    assert first.markdown == "- a\n  - nested b\n\n    1. deeper *c*\n  - d"
    assert first.text == "a nested b deeper c d"
    assert (second.markdown, second.text) == ("- e", "e")


def test_blank_lines_behind_a_node_are_not_part_of_it():
    item, code, end = read("- a  \n  \n\t\n\n<!-- -->\n \n~~~\nx\n  \n").nodes
    assert [node.markdown for node in (item, code, end)] == ["- a  ", "<!-- -->", "~~~\nx"]


def test_a_task_item_is_an_item_and_keeps_its_box():
    done, todo = read("- [x] Sort\n- [ ] Count\n").nodes
    assert [(node.kind, node.tier, node.markdown) for node in (done, todo)] == [
        ("item", "hard", "- [x] Sort"),
        ("item", "hard", "- [ ] Count"),
    ]


def test_code_keeps_its_fences_and_its_indentation():
    fenced, indented, open_ended = read("~~~ py\nx = 1\n\ny\n~~~\n\n    z = 2\n\n```\nto the end\n\n").nodes
    assert (fenced.markdown, fenced.text) == ("~~~ py\nx = 1\n\ny\n~~~", "x = 1\n\ny")
    assert (indented.markdown, indented.text) == ("    z = 2", "z = 2")
    assert (open_ended.markdown, open_ended.text) == ("```\nto the end", "to the end")


def test_a_table_is_one_variant_node_whatever_its_cells_say():
    (table,) = read("| Rule | Why |\n|---|---|\n| You must wait | it is slow |\n").nodes
    assert (table.kind, table.tier) == ("table", "variant")
    assert table.text == "Rule Why You must wait it is slow"
    assert table.markdown == "| Rule | Why |\n|---|---|\n| You must wait | it is slow |"


def test_a_quote_is_one_soft_node_with_all_it_holds():
    (quote,) = read("> # Title\n> - item\n>\n> words\nlazily continued\n").nodes
    assert (quote.kind, quote.tier, quote.text) == ("quote", "soft", "Title item words lazily continued")
    assert quote.markdown == "> # Title\n> - item\n>\n> words\nlazily continued"


def test_positions_count_bytes_of_the_file_and_not_characters():
    raw = "# Über 漢字\n\nWörter.\n".encode()
    heading, paragraph = partition("notes.md", raw).nodes
    assert (heading.position, paragraph.position) == (0, len("# Über 漢字\n\n".encode()))
    assert raw[paragraph.position :].decode() == "Wörter.\n"


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_of_other_systems_are_kept_in_the_source_and_not_in_the_words(end):
    source = "---\nhop_targets: a\n---\n# T\n\n- a\n  - b\n\n```\nx\ny\n```\n"
    there, here = read(source.replace("\n", end)), read(source)
    assert kinds(there) == kinds(here)
    assert there.hop_targets == ("a",)
    assert [node.markdown.replace(end, "\n") for node in there.nodes] == [node.markdown for node in here.nodes]


def test_a_byte_order_mark_belongs_to_no_node():
    document = partition("notes.md", b"\xef\xbb\xbf---\nname: x\n---\nBody.\n")
    assert kinds(document) == [("front_matter", "name: x"), ("paragraph", "Body.")]
    assert [node.position for node in document.nodes] == [3, 19]


def test_a_form_feed_or_a_unicode_separator_ends_no_line():
    one, two = read("a\fb\u2028c\x85d\n\nLast.\n").nodes
    assert (one.markdown, two.markdown) == ("a\fb\u2028c\x85d", "Last.")


# ------------------------------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Some *strong* `code` and\na [link](https://example.org).", "Some strong code and a link."),
        ("A hard  \nbreak, another\\\nand a<br/>tag.", "A hard break, another and a tag."),
        ("A ![picture of *boats*](b.png) here.", "A picture of boats here."),
        ("Kept <!-- hidden --> words, <b>bold</b>.", "Kept words, bold."),
        ("Fish &amp; chips \\*plain\\*.", "Fish & chips *plain*."),
    ],
)
def test_text_is_what_a_reader_sees(source, text):
    (paragraph,) = read(source).nodes
    assert (paragraph.text, paragraph.markdown) == (text, source)


@pytest.mark.parametrize(
    ("source", "tier"),
    [
        ("You must wait.", "soft"),
        ("It waits.", "variant"),
        ("**Never** push.", "soft"),
        ("`run` starts it.", "variant"),  # a name, not a command
        ("Never `push`.", "soft"),
        ("It waits. <!-- You must wait. -->", "variant"),
        ("It waits.  \nNever push.", "soft"),  # a hard break ends a sentence
        ("It waits in the\nbuild queue.", "variant"),  # a soft one does not
    ],
)
def test_a_paragraph_is_soft_when_one_of_its_sentences_is_deontic(source, tier):
    (paragraph,) = read(source).nodes
    assert paragraph.tier == tier


def test_only_paragraphs_are_judged_by_their_words():
    source = "# You must wait\n\n    You must wait.\n\n<p>You must wait.</p>\n\n- It waits.\n\n> It waits.\n"
    assert [node.tier for node in read(source).nodes] == ["variant", "variant", "variant", "hard", "soft"]


@pytest.mark.parametrize("recipe", [Settings(), Settings.reference()], ids=["default", "reference"])
def test_a_core_document_without_content_is_refused_when_it_is_given(recipe):
    with opened(recipe) as memory, pytest.raises(InputError, match="no content; write some text, or leave it out"):
        memory.ingest("", name="AGENTS.md", core=True, user="ana")


def test_empty_blocks_are_nodes_without_words():
    assert kinds(read("#\n\n-\n\n>\n")) == [("heading", ""), ("item", ""), ("quote", "")]


# --------------------------------------------------------------------------------------------------------- headings


def test_headings_above_a_node_are_listed_outermost_first():
    source = "a\n\n## Two\n\nb\n\n# One\n\nc\n\n### Three\n\nd\n\nTwo again\n---\n\n- e\n"
    found = {node.text: node.headings for node in read(source).nodes}
    assert found == {
        "a": (), "Two": (), "b": (1,), "One": (), "c": (3,), "Three": (3,), "d": (3, 5),
        "Two again": (3,), "e": (3, 7),
    }  # fmt: skip


def test_a_heading_inside_a_quote_or_an_item_heads_nothing_below():
    assert [node.headings for node in read("> # Quoted\n\n- # Listed\n\nafter\n").nodes] == [(), (), ()]


# ------------------------------------------------------------------------------------------------------ front matter


@pytest.mark.parametrize(
    ("source", "inner", "rest"),
    [
        ("---\nname: x\n---\nBody.\n", "name: x", "Body."),
        ("---\nname: x\n...\nBody.\n", "name: x", "Body."),
        ("---\nname: x\n---  \n\nBody.", "name: x", "Body."),
        ("---\na: 1\n\n# b\nc:\n  - d\n---\nBody.", "a: 1\n\n# b\nc:\n  - d", "Body."),
        ("---\n---\nBody.", "", "Body."),
    ],
)
def test_front_matter_is_one_hard_node_with_its_fences(source, inner, rest):
    front, body = read(source).nodes
    assert (front.kind, front.tier, front.text, body.text) == ("front_matter", "hard", inner, rest)
    assert (front.position, front.headings, front.ordinal) == (0, (), 0)
    assert front.markdown == source[: source.index(rest)].rstrip("\n")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("---\nname: x\n\nBody.\n", [("paragraph", "name: x"), ("paragraph", "Body.")]),  # never closed
        ("\n---\nname: x\n---\n", [("heading", "name: x")]),  # not at the start
        ("--- \nname: x\n---\n", [("heading", "name: x")]),  # not exactly three dashes
        ("----\nname: x\n---\n", [("heading", "name: x")]),
        ("---\n\nBetween two breaks.\n\n---\n", [("paragraph", "Between two breaks.")]),
        (" ---\nname: x\n---\n", [("heading", "name: x")]),
        ("---", []),
    ],
)
def test_what_only_looks_like_front_matter_is_ordinary_markdown(source, expected):
    assert kinds(read(f"{source}\n\nEnd.")) == [*expected, ("paragraph", "End.")]


@pytest.mark.parametrize(
    ("lines", "targets"),
    [
        ("hop_targets: a.md#000001", ("a.md#000001",)),
        ("hop_targets: 'a b'  # why", ("a b",)),
        ("hop_targets: a#1 # why", ("a#1",)),
        ("hop_targets: [a, \"b\", 'c', a]", ("a", "b", "c")),
        ("hop_targets: [a,  # why\n  b,\n]", ("a", "b")),
        ("hop_targets: []", ()),
        ("hop_targets:", ()),
        ('hop_targets:\n  - a\n\n  # why\n  - "b#2"\nother:\n  - c', ("a", "b#2")),
        ("hop_targets:\n- a\n-\n- b # why\n- a", ("a", "b")),
        ("hop_targets: # below\n  - a", ("a",)),
        ("other: [a]\nhop_targets: b", ("b",)),
        ("links:\n  hop_targets: a", ()),
        ("name: x", ()),
    ],
)
def test_hop_targets_are_read_from_the_front_matter(lines, targets):
    assert read(f"---\n{lines}\n---\nBody.\n").hop_targets == targets


def test_hop_targets_outside_the_front_matter_are_words():
    assert read("hop_targets: a\n").hop_targets == ()


def test_a_list_of_hop_targets_that_does_not_end_is_refused():
    with pytest.raises(InputError, match=r"hop_targets of 'notes.md' is '\[a, b' without an end; close it with \]"):
        read("---\nhop_targets: [a, b\nname: x\n---\n")


# ---------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize("raw", [b"", b" \n\t\r\n", b"\xef\xbb\xbf", b"***\n\n[a]: b\n"])
def test_a_document_without_content_has_no_nodes(raw):
    assert partition("notes.md", raw).nodes == ()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"caf\xe9 au lait", r"'notes.md' is not UTF-8: byte 0xe9 at 3; save the file as UTF-8"),
        (b"\xef\xbb\xbfcaf\xe9", r"'notes.md' is not UTF-8: byte 0xe9 at 6"),
        ("Rules".encode("utf-16"), r"'notes.md' holds a NUL byte at 3; .* save the file as UTF-8"),
        (b"a\x00b", r"'notes.md' holds a NUL byte at 1; remove it"),
    ],
)
def test_what_is_no_document_is_refused_with_its_name_the_value_and_the_remedy(raw, message):
    with pytest.raises(InputError, match=message):
        partition("notes.md", raw)


def test_a_large_file_is_refused_with_its_size_and_the_limit():
    with pytest.raises(InputError, match=r"'notes.md' has 5,000,000 bytes, more than authored.max_bytes = 1,048,576"):
        partition("notes.md", b"word " * 1_000_000)
    with pytest.raises(InputError, match=r"has 5 bytes, more than authored.max_bytes = 4; split it, or raise"):
        read("Rules", max_bytes=4)
    assert read("Rules", max_bytes=5).nodes


def test_the_limit_is_a_setting_with_a_domain():
    assert Settings().authored == Settings.reference().authored == AuthoredSettings()
    for value in (0, -1, float("nan")):
        with pytest.raises(SettingsError, match=r"authored.max_bytes = .* is outside"):
            AuthoredSettings(max_bytes=value)


def test_a_document_needs_a_name():
    with pytest.raises(InputError, match="document name is missing or blank"):
        partition(" ", b"Rules")


def test_the_words_of_deeply_nested_items_are_kept():
    (item,) = read("\n".join(f"{'  ' * level}- word{level}" for level in range(15))).nodes
    assert item.text.split() == [f"word{level}" for level in range(15)]


def test_deep_nesting_is_one_node_and_no_crash():
    for source in (
        ">" * 5_000 + " a",
        "- " * 5_000 + "a",
        "[" * 5_000,
        "![" * 500 + "a" + "](b)" * 500,
        "*" * 9_999 + "a",
    ):
        (node,) = read(f"{source}\n").nodes
        assert node.markdown == source


# --------------------------------------------------------------------------------------------------- the reference

_TIERS = {0: "variant", 1: "hard", 2: "soft"}


def test_documents_of_the_reference_have_its_tiers_words_and_targets():
    compared = 0
    for entry in vectors("ExtractDocument"):
        # Its quirks (fused nested items, tables as paragraphs, CRLF) are mended by C14, and an empty file is refused.
        if entry["kind"] != "conform" or not entry["inputs"]["raw"]:
            continue
        document = partition(entry["inputs"]["source_doc"], entry["inputs"]["raw"].encode())
        expected = entry["expected"]["nodes"]
        assert [(n.tier, n.text) for n in document.nodes] == [(_TIERS[n["tier"]], n["text"]) for n in expected]
        # Its positions point at the first word; ours, at the first byte of the source lines.
        assert all(ours.position <= theirs["position"] for ours, theirs in zip(document.nodes, expected, strict=True))
        variants = [tuple(node["hop_targets"] or ()) for node in expected if node["tier"] == 0]
        assert all(targets == document.hop_targets for targets in variants)
        compared += 1
    assert compared >= 3
