"""Texts of every kind to read: our own in `data/texts`, changed by fixed rules into many more, and a corpus if given.

    HOLDFAST_TEXTS=all pytest tests/integration/test_any_text.py

reads every text of the evaluation data beside the repository, where there is one; without it a sample of them.
"""

import functools
import gzip
import json
import lzma
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

OWN = Path(__file__).parent / "data" / "texts"
BESIDE = Path(__file__).parents[2] / "shared" / "data"
ALL = os.environ.get("HOLDFAST_TEXTS") == "all"
_MARKS = "\u200b\u200d\u200e\u200f\u202e\u202c\u0301\u0308\u00ad\ufeff\ufe0f\u0007\u001b\u0085\u2028\t\r\n"
_LOOK_ALIKES = {"l": "1", "O": "0", "I": "l", "rn": "m", "m": "rn", "e": "c", "S": "5", "B": "8"}
_OPENED = re.compile(r"(?i)n't\b|'(?:s|m|re|ve|ll|d)\b")
# Longer texts of a corpus are cut: what matters is their variety.
_LONGEST = 4_000
# For a sample the large files are left packed.
_LARGEST_SAMPLED = 150_000


@functools.cache
def own_texts() -> list[str]:
    """Return our own texts, one for each line, block or JSON string."""
    texts = []
    for file in sorted(OWN.iterdir()):
        content = file.read_text(encoding="utf-8")
        if file.name == "blocks.txt":
            texts += content.split("%%\n")
        elif file.suffix == ".jsonl":
            texts += [json.loads(line) for line in content.splitlines()]
        else:
            texts += content.splitlines()
    return texts


def changed(text: str, others: list[str], chance: random.Random) -> str:
    """Return `text` with one to three changes of the kinds that copying, typing, scanning and splitting make."""
    for _ in range(chance.randint(1, 3)):
        text = chance.choice(_CHANGES)(text, others, chance)
    return text


@functools.cache
def many_texts(each: int) -> list[str]:
    """Return our own texts and `each` changed forms of every one; always the same."""
    own = own_texts()
    chance = random.Random("texts")
    return [*own, *(changed(text, own, chance) for text in own for _ in range(each))]


# ------------------------------------------------------------------------------------------------------ changes


def _split_contractions(text, others, chance):
    return _OPENED.sub(lambda match: f" {match.group()}", text)


def _curly(text, others, chance):
    return text.replace("'", "’").replace('"', "”")


def _words_shuffled(text, others, chance):
    words = text.split()
    chance.shuffle(words)
    return " ".join(words)


def _word_dropped(text, others, chance):
    words = text.split(" ")
    del words[chance.randrange(len(words))]
    return " ".join(words)


def _word_repeated(text, others, chance):
    words = text.split(" ")
    place = chance.randrange(len(words))
    return " ".join(words[:place] + words[place : place + 1] * chance.randint(2, 9) + words[place:])


def _word_borrowed(text, others, chance):
    words, borrowed = text.split(" "), chance.choice(others).split(" ")
    words[chance.randrange(len(words))] = chance.choice(borrowed)
    return " ".join(words)


def _joined(text, others, chance):
    return text + chance.choice(["", " ", "\n", ". ", ", which ", " is a ", " and "]) + chance.choice(others)


def _cut(text, others, chance):
    places = sorted(chance.randint(0, len(text)) for _ in range(2))
    return text[places[0] : places[1]]


def _character_dropped(text, others, chance):
    place = chance.randint(0, len(text))
    return text[:place] + text[place + 1 :]


def _marked(text, others, chance):
    place = chance.randint(0, len(text))
    return text[:place] + chance.choice(_MARKS) + text[place:]


def _scanned(text, others, chance):
    first, second = chance.choice(list(_LOOK_ALIKES.items()))
    return text.replace(first, second)


def _spaced(text, others, chance):
    return chance.choice(["  ", "\u00a0", "\n", "\t", "", " , ", " n't ", " . "]).join(text.split(" "))


def _cased(text, others, chance):
    return chance.choice([str.upper, str.lower, str.title, str.swapcase, str.capitalize])(text)


def _wrapped(text, others, chance):
    begin, end = chance.choice(
        ["“”", "''", '""', "()", "[]", "<>", "**", "__", "- ", "# ", "> ", "? ", " ?", " .", "`" * 2]
    )
    return begin + text + end


def _lengthened(text, others, chance):
    words = text.split(" ")
    place = chance.randrange(len(words))
    words[place] = words[place] * chance.randint(20, 60)
    return " ".join(words)


_CHANGES = (
    _split_contractions, _curly, _words_shuffled, _word_dropped, _word_repeated, _word_borrowed, _joined, _cut,
    _character_dropped, _marked, _scanned, _spaced, _cased, _wrapped, _lengthened,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------- corpus


@functools.cache
def corpus_texts(most: int) -> list[str]:
    """Return the texts of the evaluation data beside the repository: all in the long form, else `most` short ones."""
    files = [file for file in sorted(BESIDE.rglob("*")) if file.is_file()] if BESIDE.is_dir() else []
    if ALL:
        return [*dict.fromkeys(text for file in files for text in _texts_of(file))]
    small = [file for file in files if file.stat().st_size < _LARGEST_SAMPLED]
    short = dict.fromkeys(text for file in small for text in _texts_of(file) if len(text) < 600)
    return random.Random("corpus").sample([*short], min(most, len(short)))


def _texts_of(file: Path) -> Iterator[str]:
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(file.suffix, open)
    with opened(file, "rt", encoding="utf-8") as stream:
        content = stream.read()
    name = file.name.removesuffix(file.suffix) if file.suffix in {".gz", ".xz"} else file.name
    if name.endswith(".jsonl"):
        values = [json.loads(line) for line in content.splitlines() if line.strip()]
    elif name.endswith(".json"):
        values = [json.loads(content)]
    else:
        values = [*content.split("\n\n"), content]
    for value in values:
        yield from _strings(value)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:_LONGEST]
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
