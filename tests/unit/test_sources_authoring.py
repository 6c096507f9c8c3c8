"""Files of units and of records: what they say, and what is refused with its line and field."""

import dataclasses
import json
import re
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import pytest

from holdfast.documents.parser import read_source, source_units
from holdfast.documents.records import UNIT_FIELDS, read_records, read_units
from holdfast.errors import InputError
from holdfast.messages.checks import MAX_IDS, MAX_NAME, MAX_NOTE
from holdfast.settings import IngestSettings
from holdfast.text.facts import RELATIONS
from holdfast.types import ACTS, ROLES, AuthoredUnit, Fact

DATA = Path(__file__).parents[1] / "data/sources"


@pytest.mark.parametrize(("form", "lines"), [("yaml", (3, 9, 15)), ("json", (4, 9, 13))])
def test_units_are_read_as_they_are_written(form, lines):
    units = read_units((DATA / f"units.{form}").read_text(), form, "units")
    assert tuple(unit.line for unit in units) == lines
    assert [dataclasses.replace(unit, line=0) for unit in units] == [
        AuthoredUnit(
            id="fender",
            id_given=True,
            text="A fender is a cushion of rope.",
            role="Definition",
            topic="Equipment",
            claim="A fender is a cushion of rope.",
            utility_acts=("define", "identify"),
            links=("lines",),
        ),
        AuthoredUnit(
            id="lines",
            id_given=True,
            text="Slow down.\nThrow the bow line.\n",
            role="Procedure",
            procedure="Slow down.\nThrow the bow line.\n",
            condition="when the wind is below thirty knots",
            utility_acts=("implement",),
            utility_note="for new crew",
        ),
        AuthoredUnit(
            id=units[2].id,
            text="The Aurora moors at berth seven.",
            role="Description",
            claim="The Aurora moors at berth seven.",
            utility_acts=("describe",),
            fact=Fact("Aurora", "moors_at", "berth seven", 0.9),
            valid_from=datetime(2026, 1, 1, tzinfo=UTC),
            valid_to=datetime(2026, 12, 31, tzinfo=UTC),
            metadata={"seen_by": ["Ines", "Tom"], "times": 3},
        ),
    ]
    assert re.fullmatch(r"units#[0-9a-f]{20}", units[2].id)


def test_what_is_not_given_is_derived():
    plain, ruled, told = read_units(
        json.dumps([{"text": "Slow is smooth."}, {"claim": "Use the crane."}, {"text": "Use the crane."}]),
        "json",
        "a",
    )
    assert (plain.role, plain.claim, plain.utility_acts) == ("Description", "Slow is smooth.", ("describe",))
    assert (ruled.role, ruled.claim) == ("Description", "Use the crane.")  # a claim is never a Procedure
    assert (told.role, told.procedure, told.claim) == ("Procedure", "Use the crane.", "")


def test_ids_that_are_not_given_outlive_changes_elsewhere():
    one, other = {"claim": "Slow is smooth."}, {"claim": "Smooth is fast."}
    before = read_units(json.dumps([one, other, one]), "json", "a")
    after = read_units(json.dumps([{"claim": "New."}, one, other, one]), "json", "a")
    assert [unit.id for unit in before] == [unit.id for unit in after[1:]]
    assert len({unit.id for unit in before}) == 3


# (YAML, line, field, reason); every one of them but the syntax is tried in JSON too.
BAD = [
    ({"claim": "a", "procedure": "b"}, "procedure", "not both"),
    ({"role": "Procedure", "claim": "a"}, "claim", "role Procedure takes a procedure"),
    ({"role": "Narrative", "procedure": "a"}, "procedure", "role Narrative takes a claim"),
    ({"role": "Rumour", "claim": "a"}, "role", "there is no role 'Rumour'; choose one of Comparison"),
    ({"utility_acts": ["ponder"], "claim": "a"}, "utility_acts", "there is no utility_acts 'ponder'"),
    ({"utility_acts": "define", "claim": "a"}, "utility_acts", "takes a list"),
    ({"colour": "red", "claim": "a"}, "colour", "no such field; a unit has id, role"),
    ({"topic": "a"}, "text", "missing; give a claim, a procedure or a text"),
    ({"claim": " "}, "claim", "is blank"),
    ({"claim": 7}, "claim", "is not text"),
    ({"claim": True}, "claim", "is not text"),
    ({"claim": None}, "claim", "empty; write a value, or leave the field out"),
    ({"topic": 7, "claim": "a"}, "topic", "is not text"),
    ({"subject": "a", "claim": "a"}, "relation", "missing next to subject; a fact has all three"),
    ({"subject": "a", "object": "b", "claim": "a"}, "relation", "missing next to subject and object"),
    ({"confidence": 0.5, "claim": "a"}, "confidence", "needs subject, relation and object"),
    ({"subject": "a", "relation": "uses", "object": "b", "confidence": 1.5, "claim": "a"}, "confidence", "outside"),
    (
        {"subject": "a", "relation": "uses", "object": "b", "confidence": "high", "claim": "a"},
        "confidence",
        "outside",
    ),
    ({"subject": "a", "relation": "likes", "object": "b", "claim": "a"}, "relation", "unknown relation 'likes'; use"),
    ({"subject": "a", "relation": "is fond of", "object": "b", "claim": "a"}, "relation", "not one plain word"),
    ({"subject": "a", "relation": "", "object": "b", "claim": "a"}, "relation", "is blank"),
    ({"valid_from": "2026-01-02T10:00", "claim": "a"}, "valid_from", "no time zone"),
    ({"valid_from": "soon", "claim": "a"}, "valid_from", "not a time"),
    (
        {"valid_from": "2026-01-02T00:00:00Z", "valid_to": "2026-01-01T00:00:00Z", "claim": "a"},
        "valid_to",
        "not after valid_from",
    ),
    ({"metadata": [1], "claim": "a"}, "metadata", "not a JSON object"),
    ({"links": "a", "claim": "a"}, "links", "takes a list"),
    ({"links": [""], "claim": "a"}, "links", "missing or blank"),
    ({"id": "", "claim": "a"}, "id", "missing or blank"),
    ({"id": "first", "claim": "a"}, "id", "'first' is taken by line 2"),
]


@pytest.mark.parametrize(("unit", "field", "reason"), BAD, ids=[f"{field}-{reason[:20]}" for _, field, reason in BAD])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_bad_unit_is_refused_with_its_line_and_field(form, unit, field, reason):
    units = [{"id": "first", "claim": "A good one."}, unit]
    if form == "json":
        rows = ["[", f"{json.dumps(units[0])},", "{"]
        rows += [f"{json.dumps(name)}: {json.dumps(value)}," for name, value in unit.items()]
        text = "\n".join(rows)[:-1] + "\n}]"
        first = 4
    else:
        rows = [
            f"{'-' if n == 0 else ' '} {name}: {json.dumps(value)}" for n, (name, value) in enumerate(unit.items())
        ]
        text = "\n".join(["units:", '- {"id": first, "claim": A good one.}', *rows])
        first = 3
    shown = field if field in unit else next(iter(unit))
    line = first + list(unit).index(shown)
    if field == "text":
        line = 3  # what is missing has the line of its unit
    with pytest.raises(InputError) as caught:
        read_units(text, form, "a.file")
    assert str(caught.value).startswith(f"'a.file' line {line}, field {field}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("yaml", "- claim: a\n  topic: [b\n", r"line 3: not YAML: expected ',' or ']'"),
        ("yaml", "- claim: a\n claim: b\n", "line 2: not YAML"),
        ("yaml", "- claim: a\n  claim: b\n", "line 2: field claim: given twice"),
        ("yaml", "- &a {claim: b}\n- *a\n", "line 1: anchors and aliases are not taken"),
        ("yaml", "- claim: !!python/name:os.system a\n", "line 1: the tag 'tag:yaml.org,2002:python/name:os.system'"),
        ("yaml", "- claim: a\n---\n- claim: b\n", "line 2: a second document begins"),
        ("yaml", "- claim: a\n  1: b\n", "line 2: the name 1 is not text"),
        ("yaml", "- claim: a\x07\n", r"line 1: not YAML: the character U\+0007"),
        ("yaml", '- claim: a\n- claim: "\\U00110000"\n', "line 2: not YAML: an escape for no character"),
        ("yaml", "", "line 1, field units: missing or empty"),
        ("yaml", "# nothing\n", "line 1, field units: missing or empty"),
        ("yaml", "just words", "line 1, field units: missing or empty"),
        ("yaml", "units:\n- claim: a\nauthor: me\n", "line 3, field author: no such field"),
        ("yaml", "relations: likes\nunits: [{claim: a}]", "line 1, field relations: relations takes a list"),
        (
            "yaml",
            "relations: ['is fond of']\nunits: [{claim: a}]",
            "line 1, field relations: 'is fond of' is no relation",
        ),
        ("yaml", "- words\n", "line 1: 'words' is not a unit"),
        ("json", "[{\"claim\": 'a'}]", "line 1: not JSON: \"'a'}]\" where a value should be"),
        ("json", '[{"claim": "a"\n "topic": "b"}]', r"line 2: not JSON: a comma or } should stand here"),
        ("json", '[{"claim": "a",\n}]', "line 1: not JSON: a comma too many"),
        (
            "json",
            '[{"claim": "a",\n"claim": "b"}]',
            "line 2, field claim: given twice|line 2: field claim: given twice",
        ),
        ("json", '[{"claim": NaN}]', "line 1: not JSON: .* where a value should be"),
        ("json", '[{"claim": "a"}]\n[]', "line 2: not JSON: more text behind the value"),
        ("json", '[{"claim": "a\n"}]', "line 1: not JSON: Invalid control character"),
        ("json", '[{"claim": "\\ud800"}]', "line 1, field claim: claim holds a lone surrogate"),
        ("json", "", "line 1: not JSON: the end where a value should be"),
        ("json", "[]", "line 1, field units: missing or empty"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(form, text, message):
    with pytest.raises(InputError, match=f"^'a' {message}"):
        read_units(text, form, "a")


def test_a_caller_may_declare_relations_too():
    text = '[{"claim": "a", "subject": "a", "relation": "likes", "object": "b"}]'
    assert read_units(text, "json", "a", relations=["likes"])[0].fact == Fact("a", "likes", "b", 1.0)
    with pytest.raises(InputError, match="is no relation"):
        read_units(text, "json", "a", relations=["is fond of"])


def test_there_are_two_formats():
    with pytest.raises(InputError, match="there is no format 'toml'; choose one of json, yaml"):
        read_units("", "toml", "a")


def test_the_schema_for_editors_says_what_the_reader_checks():
    schema = json.loads(files("holdfast.documents").joinpath("units.schema.json").read_text())
    unit = schema["$defs"]["unit"]
    fields = unit["properties"]
    # What the schema has for a field, a file may give; what it has not is refused.
    assert list(fields) == list(UNIT_FIELDS)
    assert unit["additionalProperties"] is False
    assert fields["role"]["enum"] == list(ROLES)
    assert fields["utility_acts"]["items"]["enum"] == list(ACTS)
    assert fields["id"]["maxLength"] == fields["links"]["items"]["maxLength"] == MAX_NAME
    assert {fields[name]["maxLength"] for name in ("topic", "condition", "utility_note", "subject")} == {MAX_NOTE}
    assert fields["links"]["maxItems"] == MAX_IDS
    assert unit["dependentRequired"]["confidence"] == ["subject", "relation", "object"]
    kept = {name for name in AuthoredUnit.__dataclass_fields__ if name not in ("fact", "line", "id_given")}
    assert kept == fields.keys() - {"subject", "relation", "object", "confidence"}


def test_the_relations_are_those_of_the_contract():
    assert len(RELATIONS) == 11
    assert RELATIONS[:2] == ("uses", "provides")


# ----------------------------------------------------------------------------------------------------------- records


def test_records_are_messages_or_units():
    source = read_source("talk.jsonl", (DATA / "talk.jsonl").read_bytes())
    asked, answered, kept = source.records
    assert [record.line for record in source.records] == [1, 3, 4]
    assert asked.message["at"] == "2026-04-02T09:00:00Z"
    assert (kept.message, kept.unit.id, kept.unit.fact.relation) == (None, "aurora", "part_of")
    assert [piece.text for piece in source.pieces] == [
        "Where does the Aurora moor?", "At berth seven.", "The Aurora moors at berth seven.",
    ]  # fmt: skip
    assert json.loads(source.text[answered.start : answered.end]) == answered.message
    assert source_units(source) == ()


@pytest.mark.parametrize("name", ["units.yaml", "units.json"])
def test_a_file_of_units_is_a_source_whose_records_have_places(name):
    source = read_source(name, (DATA / name).read_bytes())
    assert [record.unit.role for record in source.records] == ["Definition", "Procedure", "Description"]
    raw = source.text[source.pieces[1].start : source.pieces[1].end]
    assert "Throw the bow line." in raw
    assert raw.rstrip("}\n ").endswith(("for new crew", 'for new crew"'))


@pytest.mark.parametrize(
    ("line", "where", "reason"),
    [
        ('{"role": "pirate", "content": "a"}', "", "'pirate' is not a message role"),
        ('{"role": "user", "content": " "}', "", "content is blank"),
        ('{"role": "user", "content": 7}', "", "text or a list of parts"),
        ('{"role": "user", "content": ["a", 7]}', "", "is not a content part"),
        ('{"content": "a", "at": "noon"}', "", "is not a time"),
        ('{"content": "a", "id": ""}', "", "missing or blank"),
        ('{"content": "a", "speaker": 7}', "", "is not text"),
        ('{"content": "a", "metadata": []}', "", "not a JSON object"),
        ('{"tool_calls": "x"}', "", "takes a list"),
        ('{"claim": "a", "roles": "user"}', ", field roles", "no such field"),
        ('{"contents": "a"}', ", field contents", "no such field"),
        ('{"id": "first", "claim": "a"}', ", field id", "is taken by line 1"),
        ('{"content": "a"', "", "not JSON: a comma or } should stand here"),
        ('{"content": "a"} {}', "", "more text behind the value"),
        ('["a"]', "", "is not a record"),
    ],
)
def test_a_bad_record_is_refused_with_its_line_and_field(line, where, reason):
    with pytest.raises(InputError) as caught:
        read_records(f'{{"id": "first", "claim": "b"}}\n\n{line}\n', "a.jsonl")
    assert str(caught.value).startswith(f"'a.jsonl' line 3{where}: ")
    assert reason in str(caught.value)


def test_records_keep_the_limits_of_what_is_taken_in():
    with pytest.raises(InputError, match="line 1: content has 5 bytes"):
        read_records('{"content": "tides"}', "a", settings=IngestSettings(max_text_bytes=4))
    with pytest.raises(InputError, match="no record in the file"):
        read_records("\n \n", "a")
