"""Laws of sources: every piece stands where it says, no word is lost, and ids outlive changes elsewhere."""

import json
import re
from datetime import UTC, datetime
from itertools import pairwise

import yaml
from hypothesis import assume, event, example, given
from hypothesis import strategies as st

from builders import costly
from holdfast.documents.parser import read_source, source_units
from holdfast.documents.records import read_units
from holdfast.errors import InputError
from holdfast.text.facts import RELATIONS
from holdfast.types import ACTS, ROLES, SourceLimits

WORD = re.compile(r"\w+")
# So small that generated texts are cut.
SMALL = SourceLimits(piece_chars=60, lead_chars=40, fragment_chars=12)

words = st.lists(
    st.sampled_from(["harbour", "Ships", "*moor*", "`bow`", "at", "dawn.", "It", "é漢", "[quay](b)", "must", "_is_"]),
    min_size=1,
    max_size=12,
).map(" ".join)
block = st.one_of(
    words,
    words.map(lambda text: f"{text}, as follows:"),
    st.lists(words, min_size=2, max_size=3).map("\n".join),
    st.tuples(st.integers(1, 4), words).map(lambda pair: f"{'#' * pair[0]} {pair[1]}"),
    st.lists(words, min_size=1, max_size=4).map(lambda items: "\n".join(f"- {item}" for item in items)),
    st.lists(words, min_size=1, max_size=4).map(
        lambda items: "\n".join(f"{n}. {item}\n   - deeper {item}" for n, item in enumerate(items, 1))
    ),
    words.map(lambda text: f"> {text}\n> and {text}"),
    words.map(lambda text: f"```sh\n{text}\n\n  indented {text}\n```"),
    st.lists(words, min_size=1, max_size=6).map(
        lambda rows: "| a | b |\n|---|---|\n" + "\n".join(f"| {row} | c |" for row in rows)
    ),
)
markdown = st.lists(block, min_size=1, max_size=6).map("\n\n".join)
wild = st.text(st.sampled_from("-*+>#`~|[]():!<&\\ \t\n\n\n\r=_.aB1\"'é漢\u00a0\f\u2028\ufdd0"), max_size=120)
page = st.lists(
    st.one_of(
        words,
        st.sampled_from(
            "<p> </p> <div> <ul> <ol> <li> </li> </ul> </ol> <table> <tr> <td> <th> </table> <pre> </pre> <h1> </h1>"
            " <h2> </h2> <blockquote> </blockquote> <br> <caption> </caption> <title> </title> <![if> <!-- -->"
            " <script> </script> &amp; < <img alt=x>".split(" ")
        ),
    ),
    max_size=30,
).map(" ".join)
texts = st.one_of(
    st.tuples(st.just("a.md"), st.one_of(markdown, wild)),
    st.tuples(st.just("a.txt"), st.one_of(markdown, wild, words.map(lambda text: f"{text}\n=====\n\n{text}"))),
    st.tuples(st.just("a.html"), page),
)


def read(name, text, limits=SMALL):
    try:
        return read_source(name, text.encode(), limits=limits)
    except InputError as error:
        if "no content" not in str(error):
            raise
        return assume(condition=False)


def held(part, whole):
    """Return whether the letters of `part` are among those of `whole`, in order: markup may stand inside a word."""
    rest = iter(whole)
    return all(letter in rest for letter in part if letter.isalnum())


@given(texts)
@example(("a.md", "- a\n\n      code\n\n\ttab\ttab"))
@example(("a.html", "<table><tr><td>a<table><tr><td>b</table><p>c</table>d"))
def test_every_piece_stands_where_it_says(named):
    source = read(*named)
    end = 0
    for ordinal, piece in enumerate(source.pieces):
        assert piece.ordinal == ordinal
        assert end <= piece.start < piece.end <= len(source.text)
        assert piece.text.strip()
        end = piece.end
        if "&" not in named[1]:  # an entity is written in other letters than it shows
            assert held(piece.text, source.text[piece.start : piece.end])
        if piece.lead is not None:
            assert 0 <= piece.lead.start < piece.lead.end <= piece.start
            assert held(piece.lead.text, source.text[piece.lead.start : piece.lead.end])
    event(source.media_type)


@given(texts)
def test_sections_nest_as_their_levels_do(named):
    source = read(*named)
    by_id = {section.id: section for section in source.sections}
    assert len(by_id) == len(source.sections)
    root, *others = source.sections
    assert (root.level, root.parent, root.start, root.end) == (0, None, 0, len(source.text))
    for section in others:
        above = by_id[section.parent]
        assert above.level < section.level
        assert above.start <= section.start <= section.end <= above.end
        assert section.path == (*above.path, section.title)
    for piece in source.pieces:
        section = by_id[piece.section]
        assert section.start <= piece.start <= piece.end <= section.end


@given(markdown, st.sampled_from(["a.md", "a.txt"]))
def test_no_word_is_lost(text, name):
    source = read(name, text)
    kept = [piece.text for piece in source.pieces] + [section.title for section in source.sections]
    kept += [piece.lead.text for piece in source.pieces if piece.lead]
    # Without what Markdown does not show: where a link leads, the language of code, and the numbers of a list.
    shown = re.sub(r"\]\(b\)|```sh|^\d+\.", " ", text, flags=re.MULTILINE)
    missing = set(WORD.findall(shown.replace("_", " "))) - set(WORD.findall(" ".join(kept).replace("_", " ")))
    assert missing == set()


long_words = st.lists(st.one_of(words, st.text("ab.", min_size=1, max_size=90)), max_size=20).map(" ".join)


@given(long_words)
@example("a" * 59 + " b " + "c" * 59 + ". " + "D" * 80)
def test_only_one_word_may_be_longer_than_a_piece(text):
    pieces = read("a.txt", f"Start. {text}").pieces
    for piece in pieces:
        assert len(piece.text) <= SMALL.piece_chars or " " not in piece.text
    # Nor is anything cut that need not be.
    for one, other in pairwise(pieces):
        assert len(f"{one.text} {other.text}") > SMALL.piece_chars


@given(markdown, words)
def test_a_change_elsewhere_leaves_ids_alone(text, added):
    before = {unit.id for unit in source_units(read("a.md", f"# Stays\n\n{text}"))}
    longer = (
        f"A new beginning {added} stands here now.\n\n# Stays\n\n{text}\n\n# Another end\n\nIt says {added} at last."
    )
    after = source_units(read("a.md", longer))
    assert before <= {unit.id for unit in after}
    assert len({unit.id for unit in after}) == len(after)


@costly
@given(texts)
def test_units_say_what_their_pieces_say(named):
    source = read(*named)
    units = source_units(source)
    assert units == source_units(read(*named))
    for unit, piece in zip(units, source.pieces, strict=True):
        assert unit.text.endswith(piece.text)
        assert (unit.procedure, unit.claim) == ((unit.text, "") if unit.role == "Procedure" else ("", unit.text))
        assert unit.utility_acts
        assert unit.role in ROLES
        assert unit.condition in unit.text


@given(
    st.sampled_from(["a.md", "a.txt", "a.html", "a.jsonl", "a.json", "a.yaml", "a.pdf", "a"]), st.binary(max_size=60)
)
@example("a.yaml", b"- {claim: &a b}")
@example("a.yaml", b"[" * 2000)
@example("a.json", b"[" * 2000)
@example("a.pdf", b"%PDF-1.7\n1 0 obj")
@example("a.html", b"<![foo[x")
def test_any_bytes_are_a_source_or_an_input_error_that_names_it(name, body):
    try:
        source = read_source(name, body)
        found = bool(source.sections)
    except InputError as error:
        found = repr(name) in str(error)
    assert found


statement = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Zl", "Zp")), min_size=1
).filter(lambda text: text.strip())
times = st.integers(631_152_000, 4_102_444_800).map(lambda second: datetime.fromtimestamp(second, UTC).isoformat())
plain_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(-1e9, 1e9), statement),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(statement, inner, max_size=3)),
    max_leaves=5,
)
fact = st.fixed_dictionaries(
    {"subject": statement, "relation": st.sampled_from([*RELATIONS, "moors_at"]), "object": statement},
    optional={"confidence": st.floats(0, 1)},
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "topic": statement,
        "condition": statement,
        "utility_note": statement,
        "utility_acts": st.lists(st.sampled_from(ACTS)),
        "links": st.lists(statement.filter(lambda text: len(text) <= 256), max_size=2),
        "valid_from": times,
        "metadata": st.dictionaries(statement, plain_json, max_size=3),
    },
)
said = st.one_of(
    st.fixed_dictionaries({"procedure": statement}, optional={"text": statement, "role": st.just("Procedure")}),
    st.fixed_dictionaries(
        {"claim": statement},
        optional={"text": statement, "role": st.sampled_from([role for role in ROLES if role != "Procedure"])},
    ),
    st.fixed_dictionaries({"text": statement}, optional={"role": st.sampled_from(ROLES)}),
)
units = st.lists(st.tuples(said, fields, st.one_of(st.just({}), fact)).map(lambda t: t[0] | t[1] | t[2]), min_size=1)


@costly
@given(units)
def test_json_and_yaml_say_the_same(given_units):
    file = {"relations": ["moors_at"], "units": given_units}
    from_json = read_units(json.dumps(file, indent=1), "json", "a")
    from_yaml = read_units(yaml.safe_dump(file, allow_unicode=True), "yaml", "a")

    def content(unit):
        return {name: getattr(unit, name) for name in unit.__dataclass_fields__ if name != "line"}

    assert [content(unit) for unit in from_json] == [content(unit) for unit in from_yaml]
    assert len({unit.id for unit in from_json}) == len(given_units)
    for unit, given_unit in zip(from_json, given_units, strict=True):
        assert unit.metadata == given_unit.get("metadata", {})
        assert unit.text == given_unit.get("text", given_unit.get("claim", given_unit.get("procedure")))


@costly
@given(units, st.integers(0, 400), st.sampled_from(["", '"', "{", ",", "\n", "x", ": ", "- "]))
def test_a_slip_of_the_pen_is_read_or_refused_with_its_line(given_units, at, slip):
    for form in ("json", "yaml"):
        text = json.dumps(given_units, indent=1) if form == "json" else yaml.safe_dump(given_units)
        place = at % (len(text) + 1)
        try:
            found = bool(read_units(text[:place] + slip + text[place + 1 :], form, "a", relations=("moors_at",)))
        except InputError as error:
            found = re.match(r"'a' line \d+[:,]", str(error)) is not None
        assert found
