"""No text makes Holdfast fail: every public function that reads text returns, or raises a typed error."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable

import pytest

import holdfast.messages
import holdfast.text
from builders import NOW, make_unit, opened
from holdfast import HoldfastError
from holdfast.documents import formats, markdown, parser, pieces, records
from holdfast.documents.formats import plain
from holdfast.lifecycle import gate
from holdfast.messages import checks, content, redaction
from holdfast.ranking import current
from holdfast.settings import Settings
from holdfast.text import (
    analyse,
    asking,
    calendar,
    changes,
    dates,
    facts,
    grammar,
    instructions,
    preservation,
    questions,
    sentences,
    signals,
    statements,
    temporal,
    terms,
    tokens,
)
from holdfast.text import names as symbols
from holdfast.text.time_expressions import QuestionTime
from texts import corpus_texts, many_texts, own_texts

SETTINGS = Settings()
WIDE = Settings().gate
NOT_WIDE = Settings.reference().gate
FEW = [text for text in own_texts() if len(text.split()) > 5][:40]


def _source(name):
    return lambda text: parser.source_units(parser.read_source(name, text.encode()))


def _partition(text):
    return markdown.partition("a.md", text.encode())


def _unit(text):
    return make_unit(text=text, topic=text, speaker=text)


def _sentences(text):
    return [sentences.read_sentence(text, *span) for span in sentences.PROSE.spans(text)]


def _message(text):
    return {"role": "user", "content": text, "name": text[:50]}


# Public functions that read words and want more than a text, called as their callers do.
_CALLED = {
    "analyse": lambda text: analyse(_unit(text), SETTINGS.analysis),
    "markdown.partition": _partition,
    "changes.read_assertions": lambda text: changes.find_changes(
        changes.read_assertions(text, "Ana"), changes.read_assertions("I live in Lisbon. We use Redis.", "Ana")
    ),
    "changes.find_changes": lambda text: changes.find_changes(
        changes.read_assertions("I live in Lisbon. We use Redis.", "Ana"), changes.read_assertions(text, "Ana")
    ),
    "statements.tells_change": lambda text: statements.tells_change(
        statements.read_question_cues(text),
        statements.read_cues(text),
        statements.read_cues("We moved to Lisbon in May."),
    ),
    "statements.share_rare_words": lambda text: statements.share_rare_words(
        statements.read_question_cues("Where do we live?"),
        statements.read_cues(text),
        statements.read_cues(text),
        statements.find_rare([statements.read_cues(text)]),
    ),
    "statements.has_other_value": lambda text: statements.has_other_value(
        statements.read_question_cues("When is it?"),
        statements.read_values(text),
        statements.read_values(f"at six {text}"),
    ),
    "changes.read_assertions_of": lambda text: changes.read_assertions_of(_unit(text)),
    "instructions.instructions_of": lambda text: instructions.instructions_of(_unit(text)),
    "dates.time_mention": lambda text: dates.time_mention(text, NOW),
    "dates.find_named": lambda text: [*dates.find_named(text, QuestionTime(NOW, told=True))],
    "temporal.told_times": lambda text: temporal.told_times(text, NOW),
    "questions.asks_only": lambda text: questions.asks_only(_unit(text)),
    "questions.asks_beside": lambda text: questions.asks_beside(questions.profile_query(text)),
    "facts.resolve_speaker": lambda text: facts.resolve_speaker(facts.extract(text), "Ana"),
    "facts.facts_of": lambda text: facts.facts_of(_unit(text)),
    "facts.sentences_of": lambda text: facts.sentences_of(_unit(text)),
    "facts.speaker_of": lambda text: facts.speaker_of(_unit(text)),
    "facts.stated_facts": lambda text: facts.stated_facts(_unit(text), symbols.Aliases()),
    "grammar.has_shape": lambda text: [
        grammar.has_shape(text, shape) for shape in ("place", "name", "date", "belonging", "job", "thing")
    ],
    "asking.is_for": lambda text: [asking.is_for(text.lower(), purpose) for purpose in ("asks", "delays")],
    "sentences.is_question": lambda text: [
        sentences.is_question(text, *span) for span in sentences.PROSE.spans(text)
    ],
    "sentences.read_sentence": _sentences,
    "signals.signals": lambda text: signals.has_content(text, signals.signals(text, WIDE), wide=True),
    "signals.has_content": lambda text: signals.has_content(text, signals.signals(text, NOT_WIDE)),
    "signals.read_statement": lambda text: (signals.read_statement(text), signals.read_statement(text, wide=True)),
    "preservation.invented": lambda text: preservation.invented([text], "Ana met Rui on 3 May."),
    "preservation.missing": lambda text: preservation.missing(
        preservation.essentials("Ana did not meet Rui on 3 May."), text
    ),
    "names.aliases_of": lambda text: symbols.aliases_of((f"{text} = tea",)),
    "content.question_of": lambda text: content.question_of([_message(text), _message(text)]),
    "content.visible_messages": lambda text: content.visible_messages([_message(text)]),
    "questions.profile_query": lambda text: questions.profile_query(text, earlier=[text], speakers=[text]),
    "questions.without_names": lambda text: questions.without_names(text, [text, "Ana"]),
    "redaction.redact_json": lambda text: redaction.redact_json({text: [text, {"password": text}]}),
    "checks.read_rule": lambda text: checks.read_rule(text, "mine"),
    "checks.read_rules": lambda text: checks.read_rules([text]),
    "parser.read_source": _source("a.md"),
    "parser.source_units": _source("a.txt"),
    "markdown.read_markdown": lambda text: markdown.read_markdown("a.md", text),
    "pieces.render_plain": lambda text: pieces.render_plain(text, [0, len(text)]),
    "pieces.strip_span": lambda text: pieces.strip_span(text, 0, len(text)),
    "records.read_json": lambda text: records.read_json("a.json", text),
    "records.read_records": lambda text: records.read_records(text, "a.jsonl"),
    "records.read_unit_records": lambda text: records.read_unit_records(text, "yaml", "a.yaml"),
    "records.read_units": lambda text: records.read_units(text, "json", "a.json"),
    "records.read_yaml": lambda text: records.read_yaml("a.yaml", text),
    "parser.decode": lambda text: parser.decode("a.txt", text.encode("utf-16")),
    "parser.kind_of": lambda text: parser.kind_of(text, text.encode()),
    "formats.plain.read_plain": lambda text: list(plain.read_plain(text)),
    "formats.plain.read_log": lambda text: plain.read_log("a.log", text),
    "sentences.matching_part": lambda text: sentences.matching_part(text, terms.terms(text), terms.terms),
    "formats.code.read_code": _source("a.py"),
    "formats.rst.read_rst": _source("a.rst"),
    "formats.plain.read_table": _source("a.csv"),
    "formats.mail.read_mail": lambda text: parser.read_source("a.eml", b"From: " + text.encode()),
    "formats.mail.read_mailbox": lambda text: parser.read_source(
        "a.mbox", f"From a Mon Mar  2 09:00:00 2026\nSubject: {text}\n\n{text}".encode()
    ),
    "pieces.role_of": lambda text: pieces.role_of(text, lead=text, heading=text),
    "temporal.temporal_indicator": lambda text: (
        temporal.temporal_indicator(text, wide=False),
        temporal.temporal_indicator(text, wide=True),
    ),
    "calendar.read_time": lambda text: calendar.read_time("at", text),
    "tokens.class_of": lambda text: [tokens.class_of(character) for character in text[:50]],
    "content.message_words": lambda text: content.message_words(_message(text)),
    "content.read_message": lambda text: content.read_message(_message(text) | {"further": text}, SETTINGS.ingest),
    "content.read_content": lambda text: content.read_content(
        [text, _message(text), {"claim": text}], SETTINGS.ingest
    ),
}
# Public functions that read no words of a caller: they get numbers, matches, or values that a reader made.
WORDLESS = frozenset(
    """
    calendar.choose calendar.days calendar.each_year calendar.midnight calendar.next_such calendar.nth_of
    calendar.part_of calendar.period calendar.shift calendar.stretch calendar.window time_expressions.measure
    time_expressions.phrase words.any_of words.entries words.words content.match_visible content.identity
    content.occurrence_id content.sessions_in content.unit_fields pieces.divide formats.pdf.read_pdf
    formats.zipped.read_docx formats.zipped.read_epub tokens.checked_counter changes.find_change
    statements.find_rare current.prefer_current current.asks_for_past current.margin_above grammar.lower_plural
    grammar.read_name
    grammar.read_object grammar.read_objects grammar.shift grammar.verb_group grammar.word_set
    grammar.phrase_end sentences.memoize_short dates.to_range asking.features_of asking.form_of
    content.plain_message temporal.date_words temporal.name_day temporal.name_time
    """.split()
)


# What writes quotes takes units, and is tested on any of them in test_sanitise and test_render.
WRITTEN = {"holdfast.text.quotes"}


def _public_functions() -> dict[str, Callable]:
    packages = [holdfast.text, holdfast.messages, formats]
    names = [found.name for one in packages for found in pkgutil.iter_modules(one.__path__, f"{one.__name__}.")]
    others = [one.__name__ for one in (*packages, current, markdown, parser, pieces, records)]
    return {
        f"{module.__name__}.{name}".split(".", 2)[2]: value
        for module in map(importlib.import_module, {*others, *names} - WRITTEN)
        for name, value in vars(module).items()
        if inspect.isfunction(inspect.unwrap(value))
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }


def _takes_a_text(function) -> bool:
    needed = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    return len(needed) == 1 and str(needed[0].annotation).strip("'") in {"str", "str | None"}


def _read(function):
    """Return a call that also runs what a generator would do later."""

    def read(text):
        found = function(text)
        return list(found) if inspect.isgenerator(found) else found

    return read


PUBLIC = _public_functions()
READERS = {name: _read(one) for name, one in PUBLIC.items() if _takes_a_text(one) and name not in WORDLESS} | _CALLED


def test_every_public_function_of_analysis_reads_any_text_or_none():
    """A new function that wants more than a text is called in `_CALLED`, or is listed as one that reads none."""
    checking = {name for name in PUBLIC if name.startswith("checks.")}
    assert PUBLIC.keys() - READERS.keys() - WORDLESS - checking == set()
    assert (READERS.keys() | WORDLESS) - PUBLIC.keys() == set()


@pytest.mark.parametrize("each", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", READERS)
def test_no_text_fails_in_a_reader(name, each):
    _sweep(READERS[name], many_texts(each))


@pytest.mark.parametrize("name", READERS)
def test_no_text_of_a_corpus_fails_in_a_reader(name):
    _sweep(READERS[name], corpus_texts(most=300))


def _sweep(read, texts):
    """Read every text; collect what failed, so that one run shows all of it."""
    failed = {}
    for text in texts:
        try:
            read(text)
        except HoldfastError:
            pass
        except UnicodeEncodeError:  # a lone surrogate has no bytes: the test's own `encode`
            assert any("\ud800" <= character <= "\udfff" for character in text)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            failed.setdefault(f"{type(error).__name__}: {error}", text)
    assert not failed


# ------------------------------------------------------------------------------------------------------- verbs


def _tried(call, *arguments, **named):
    try:
        return call(*arguments, **named)
    except HoldfastError:
        return None
    except UnicodeEncodeError:
        assert any("\ud800" <= character <= "\udfff" for character in arguments[0])
        return None


def test_any_text_can_be_judged():
    _sweep(lambda text: gate.judge(text, [0.5], [0.2], WIDE), many_texts(each=5) + corpus_texts(most=300))


def test_any_text_can_be_remembered_and_is_kept_to_the_letter():
    texts = many_texts(each=1) + corpus_texts(most=150)
    with opened() as memory:
        kept = {}
        for number, text in enumerate(texts):
            written = _tried(memory.remember, text, user="ana", session=f"s{number % 7}", id=f"u{number}")
            if written:
                kept[f"u{number}"] = text
        assert len(kept) > len(texts) * 0.9
        assert {unit.id: unit.text for unit in memory.list(user="ana", limit=None, current_only=False)} == kept


def test_any_text_can_be_asked_and_put_into_a_context():
    with opened() as memory:
        memory.remember(FEW, user="ana", session="s")
        for text in many_texts(each=0) + corpus_texts(most=50):
            _tried(memory.search, text, user="ana", session="s", profile="thinking")
            _tried(memory.assemble, text, user="ana", session="s", budget=200, track_access=False)


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.html", "a.json", "a.yaml", "a.jsonl", "core.md"])
def test_any_text_can_be_a_document(name):
    with opened() as memory:
        for text in many_texts(each=0)[::2] + corpus_texts(most=20):
            _tried(memory.ingest, text, name=name, user="ana", core=name == "core.md")
