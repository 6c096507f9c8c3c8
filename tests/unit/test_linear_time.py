"""Eight times the text takes about eight times the work, whatever the text: nobody keeps a reader busy for ever."""

from functools import cache
from time import process_time

import pytest

from holdfast.documents.formats.html import read_html
from holdfast.documents.parser import read_source
from holdfast.errors import InputError
from holdfast.text import dates
from holdfast.text.asking import is_for
from holdfast.text.changes import is_quoting, read_assertions
from holdfast.text.dates import TimePoint
from holdfast.text.time_expressions import TimeMeaning

# Work that grows with the square of the text is at 64, linear work at 8: what a busy machine adds lies far below.
LONGER, MOST_GROWTH, TRIES = 8, 28, 8


def is_linear(read, seed, size):
    """Return whether the longer text takes not much more than its share, by the processor's time.

    It is tried until it does: what a busy machine adds differs from try to try, a square is there in all of them.
    """

    def cost(characters):
        text = seed * (characters // len(seed))
        begin = process_time()
        read(text)
        return process_time() - begin

    short = min(cost(size) for _ in range(4))
    return any(cost(LONGER * size) < MOST_GROWTH * short for _ in range(TRIES))


@pytest.mark.parametrize(
    "seed",
    [
        "<a ", "<a b='", '<a b="', "<a/", "<a b=c ", "<a '", "<a=", "<", "</", "</a ", "<!--", "<!", "<![CDATA[",
        "<?", "<script>", "<style><", "</script", "&", "&#", "&#9", "<p>", "<ul><li>", "<table><tr><td>", "<!-- -->",
        "<a b='><a b=\">", "<!--a--!",
    ],
)  # fmt: skip
def test_html_is_read_in_one_pass(seed):
    assert is_linear(read_html, seed, 20_000)


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("a.csv", 'a,"b'), ("a.csv", "a;b\n"), ("a.py", "(" * 50 + "\n"), ("a.py", "def a():\n  b\n"),
        ("a.go", "func "), ("a.go", "type a struct {\n"), ("a.c", "int a (b, "), ("a.js", "const a "),
        ("a.eml", "From: a\n>b\n\n"), ("a.eml", "a:"),
        ("a.mbox", "From a Mon Mar  2 09:00:00 2026\nTo: a\n\n> b\n\n"), ("a.mbox", "From 1:"),
    ],
)  # fmt: skip
def test_files_of_every_format_are_read_in_one_pass(name, seed):
    def read(text):
        try:
            return read_source(name, text.encode())
        except InputError:
            return None

    assert is_linear(read, seed, 10_000)


def test_tags_without_end_are_read_in_one_pass_as_a_document():
    assert is_linear(lambda text: read_source("a.html", text.encode()), "<a ", 10_000)


@pytest.mark.parametrize("seed", ["I run, ", "we moved from to ", "I am a ", "I live in A, ", "“", "1:1,", "no "])
def test_changes_are_read_in_one_pass(seed):
    assert is_linear(lambda text: read_assertions(text, "Vera") or is_quoting(text), seed, 4_000)


@pytest.mark.parametrize("seed", ["where is my ", "a,", "zorbing's ", "- "])
def test_what_asks_is_judged_in_one_pass(seed):
    assert is_linear(lambda text: is_for(text, "asks"), seed, 4_000)


def test_dates_are_told_apart_without_comparing_each_with_each():
    # Made once: what the garbage collector does while they are made grows faster than their number.
    @cache
    def points(length):
        return [TimePoint(place, place + 4, TimeMeaning(None), lambda _: None) for place in range(0, length, 5)]

    def apart(text):
        found = points(len(text))
        assert len(dates._drop_overlapping(found)) == len(found)

    assert is_linear(apart, "2026 ", 20_000)
