"""Word lists are data: each is used, and each word stands in its list once."""

import tomllib
from importlib import resources
from pathlib import Path

import pytest

import holdfast
from holdfast.text.words import any_of, entries, words

LANGUAGE = resources.files("holdfast.text")
TABLES = tomllib.loads((LANGUAGE / "english.toml").read_text(encoding="utf-8"))
OWN = ["calendar", "lexical", "temporal", "mentions", "query"]
CODE = "".join(file.read_text(encoding="utf-8") for file in sorted(Path(holdfast.__file__).parent.rglob("*.py")))


@pytest.mark.parametrize(("table", "name"), [(table, name) for table in OWN for name in TABLES[table]])
def test_every_list_is_used_and_holds_a_word_once(table, name):
    assert f'("{table}", "{name}")' in CODE or f"('{table}', '{name}')" in CODE
    listed = list(entries(table, name)) if isinstance(TABLES[table][name], dict) else words(table, name)
    assert len(listed) == len(set(listed)) > 0


def test_a_list_in_one_string_is_divided_at_its_blanks():
    assert words("calendar", "seasons") == ("spring", "summer", "autumn", "fall", "winter")
    assert any_of("calendar", "seasons") == "(?:spring|summer|autumn|fall|winter)"


def test_an_unknown_list_is_a_mistake_of_the_program():
    with pytest.raises(KeyError):
        words("calendar", "no such list")
