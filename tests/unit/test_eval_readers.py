"""Evaluation data is read as it stands: nothing is lost, doubled or changed without a note."""

import gzip
import hashlib
import json
import lzma
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import evaldata as made
from holdfast.errors import InputError
from holdfast.eval.data import UNDATED, DatasetMessage, GoldQuestion, Notes, find_current
from holdfast.eval.datasets import load_sets
from holdfast.eval.readers import read_date, read_qrels


def one_set(root, **options):
    """Load a folder that holds one set."""
    [data] = load_sets(root, **options).sets
    return data


def loaded(tmp_path, value, name="data.json", **options):
    """Write one file and load it."""
    made.write(tmp_path / "it" / name, value)
    return one_set(tmp_path, **options)


def the_question(data):
    [haystack] = data.haystacks
    [question] = haystack.questions
    return question


def noted(data, kind):
    """Return where an oddity of this kind was met."""
    return [oddity.where for oddity in data.oddities if oddity.kind == kind]


def everything(data):
    """Return all that was read, as one text."""
    return repr(data.haystacks)


# ---------------------------------------------------------------------------------------- files and folders


@pytest.mark.parametrize("name", ["data.json", "data.json.gz", "data.json.xz", "data.jsonl", "data.jsonl.gz"])
def test_a_file_is_read_alike_however_it_is_packed(tmp_path, name):
    data = loaded(tmp_path, [made.plain_haystack()], name)
    assert [message.text for message in data.haystacks[0].messages][2] == "I bought a zither at the harbour."
    assert data.checksums == {name: hashlib.sha256((tmp_path / "it" / name).read_bytes()).hexdigest()}
    assert (data.name, data.schema, data.oddities) == ("it", "longmemeval", ())


def _cut(packed):
    return packed[: len(packed) // 2]


WHOLE = json.dumps([made.plain_haystack()]).encode()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cut.json.gz", _cut(gzip.compress(WHOLE, mtime=0))),
        ("cut.json.xz", _cut(lzma.compress(WHOLE))),
        ("cut.json", _cut(WHOLE)),
        ("cut.jsonl", WHOLE[1:-1] + b"\n" + _cut(WHOLE[1:-1])),
        ("plain.json.gz", WHOLE),
        ("plain.json.xz", WHOLE),
        ("latin.json", '[{"question": "caf\xe9"}]'.encode("latin-1")),
        ("empty.json", b""),
        ("empty.json.gz", b"\x1f\x8b"),
    ],
)
def test_a_damaged_file_stops_the_run_and_is_named(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=name) as caught:
        load_sets(tmp_path)
    assert "fetch the file again" in str(caught.value)


def test_a_damaged_byte_inside_a_packed_file_is_noticed(tmp_path):
    packed = bytearray(gzip.compress(WHOLE, mtime=0))
    packed[len(packed) // 2] ^= 0xFF
    (tmp_path / "flipped.json.gz").write_bytes(packed)
    with pytest.raises(InputError, match=r"flipped\.json\.gz"):
        load_sets(tmp_path)


def test_a_folder_without_data_says_what_it_holds_instead(tmp_path):
    with pytest.raises(InputError, match="nowhere is not a folder"):
        load_sets(tmp_path / "nowhere")
    with pytest.raises(InputError, match="holds no evaluation set"):
        load_sets(tmp_path)
    made.write(tmp_path / "stranger.json", {"what": "is this"})
    made.write(tmp_path / "list.json", [1, 2])
    with pytest.raises(InputError, match=r"no known schema: list\.json, stranger\.json"):
        load_sets(tmp_path)


def test_a_file_is_not_a_folder_of_data(tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        load_sets(made.write(tmp_path / "data.json", [made.plain_haystack()]))


def test_every_schema_is_known_by_what_it_holds_and_unknown_files_are_listed(tmp_path):
    found = load_sets(made.write_everything(tmp_path))
    assert {data.name: (data.schema, data.chat) for data in found.sets} == {
        "animals": ("qrels", False),
        "beasts": ("qrels", False),
        "gardens/large": ("beam", True),
        "gardens/small": ("beam", True),
        "lives": ("changes", True),
        "pages": ("tsqa", False),
        "projects": ("realmem", True),
        "stacks": ("longmemeval", True),
        "talks": ("locomo", True),
    }
    assert tmp_path / "notes.json" in found.unknown
    # Every question that was written is there: 3 × 6 about talks, and so on.
    assert {data.name: sum(len(each.questions) for each in data.haystacks) for data in found.sets} == {
        "animals": 2, "beasts": 2, "gardens/large": 3, "gardens/small": 6, "lives": 8, "pages": 6, "projects": 4,
        "stacks": 3, "talks": 18,
    }  # fmt: skip


def test_a_life_that_changes_says_what_holds_and_what_held_before(tmp_path):
    made.write(tmp_path / "lives.jsonl", [made.life()])
    [data] = load_sets(tmp_path).sets
    now, then, alike, unknown = data.haystacks[0].questions
    assert (now.category, now.current, now.earlier) == ("plain", {"p-1-t2"}, {"p-1-t0"})
    assert (then.category, then.current, set(then.gold)) == ("then", frozenset(), {"p-1-t0"})
    assert (alike.category, alike.current, alike.decoys) == ("alike-if", {"p-1-t2", "p-1-t0"}, {"p-1-t1"})
    assert (unknown.category, unknown.answerable, unknown.has_gold) == ("unknown", False, False)
    assert [message.author for message in data.haystacks[0].messages] == ["user", "assistant", "user"]


def test_gold_of_a_life_that_does_not_exist_is_noted(tmp_path):
    life = made.life()
    life["questions"][1]["gold"] = ["p-1-t0", "gone"]
    made.write(tmp_path / "lives.jsonl", [life])
    [data] = load_sets(tmp_path).sets
    assert data.count_oddities() == {"gold that does not exist": 1}
    assert set(data.haystacks[0].questions[1].gold) == {"p-1-t0"}


@pytest.mark.parametrize(
    ("category", "text", "counts"),
    [
        ("knowledge-update", "How many pages have I read?", True),
        ("knowledge-update", "What was my previous goal?", False),
        ("multi-session", "How many pages have I read?", False),
    ],
)
def test_of_what_changed_the_newest_gold_is_current_unless_the_question_asks_for_before(category, text, counts):
    messages = [DatasetMessage(name, "s", name, UNDATED) for name in ("a", "b", "c", "d")]
    asked = GoldQuestion("q", text, category, UNDATED, 4, {"c": 1, "a": 1, "b": 1})
    found = find_current(asked, messages)
    assert (found.current, found.earlier) == (({"c"}, {"a", "b"}) if counts else (frozenset(), frozenset()))
    assert find_current(replace(asked, gold={"a": 1}), messages).current == frozenset()


def test_only_leaves_out_what_is_not_named(tmp_path):
    made.write_everything(tmp_path)
    assert [data.name for data in load_sets(tmp_path, ["TALK"]).sets] == ["talks"]
    assert [data.name for data in load_sets(tmp_path, ["anim", "stack"]).sets] == ["animals", "stacks"]
    with pytest.raises(InputError, match="no evaluation set named like zebra"):
        load_sets(tmp_path, ["zebra"])


def test_only_does_not_open_what_it_leaves_out(tmp_path):
    made.write(tmp_path / "good" / "data.json", [made.plain_haystack()])
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "data.json").write_bytes(b"[{")
    assert [data.name for data in load_sets(tmp_path, ["good"]).sets] == ["good"]


def test_a_folder_that_is_itself_a_set_and_folders_inside_folders(tmp_path):
    made.write(tmp_path / "top" / "data.json", [made.plain_haystack()])
    made.write(tmp_path / "top" / "deep" / "er" / "data.json", [made.plain_haystack()])
    made.write(tmp_path / "top" / ".hidden" / "data.json", [made.plain_haystack()])
    assert [data.name for data in load_sets(tmp_path / "top").sets] == ["deep/er", "top"]


def test_another_split_dropped_beside_the_first_is_a_set_of_its_own(tmp_path):
    made.write(tmp_path / "stacks" / "dev.json", [made.plain_haystack("q-dev")])
    made.write(tmp_path / "stacks" / "test.json.xz", [made.plain_haystack("q-test")])
    found = {data.name: data.haystacks[0].id for data in load_sets(tmp_path).sets}
    assert found == {"stacks/dev": "q-dev", "stacks/test": "q-test"}


def test_a_row_without_a_key_of_its_schema_is_an_error_that_names_both(tmp_path):
    broken = made.plain_haystack()
    del broken["haystack_dates"]
    with pytest.raises(InputError, match=r"data\.json.*haystack_dates"):
        loaded(tmp_path, [broken])


def test_oddities_are_counted_by_kind(tmp_path):
    chat = made.talk()
    chat["qa"] += [made.asked(" "), made.asked(""), made.asked("Anything else?")]
    counted = loaded(tmp_path, [chat]).count_oddities()
    assert counted == {"empty question": 2, "no gold": 1, "no index beside it": 1}


# --------------------------------------------------------------------------------------------------- dates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("12:09 am on 13 September, 2023", datetime(2023, 9, 13, 0, 9, tzinfo=UTC)),
        ("2023/05/20 (Sat) 02:21", datetime(2023, 5, 20, 2, 21, tzinfo=UTC)),
        ("2024-03-01 (Friday)", datetime(2024, 3, 1, tzinfo=UTC)),
        ("March-15-2024", datetime(2024, 3, 15, tzinfo=UTC)),
        (" 2024-03-01 ", datetime(2024, 3, 1, tzinfo=UTC)),
        ("2024/03/01", datetime(2024, 3, 1, tzinfo=UTC)),
        (None, None),
        ("", None),
    ],
)
def test_dates_are_read_in_every_form_the_data_uses(text, expected):
    notes = Notes()
    assert read_date(text, "here", notes) == expected
    assert notes.oddities == []


def test_a_date_that_cannot_be_read_is_noted():
    notes = Notes()
    assert read_date("the day before yesterday", "here", notes) is None
    assert [(oddity.kind, oddity.where) for oddity in notes.oddities] == [
        ("date that cannot be read", "here: the day before yesterday")
    ]


# ------------------------------------------------------------------------------------- chats of two people


def test_a_talk_is_read_with_speakers_pictures_and_dates_and_without_its_summaries(tmp_path):
    data = loaded(tmp_path, [made.talk()])
    [talk] = data.haystacks
    assert [message.id for message in talk.messages] == ["D1:1", "D1:2", "D1:3", "D2:1", "D2:2", "D2:3"]
    picture = talk.messages[2]
    assert picture.text == "Look at this! [image: a goat on a tin roof]"
    assert picture.spoken == "Wren: Look at this! [image: a goat on a tin roof]"
    assert talk.messages[1] == DatasetMessage(
        "D1:2", "session_1", "My cousin keeps eleven goats behind the mill.",
        datetime(2023, 5, 8, 13, 56, 1, tzinfo=UTC), "user", "Odile",
    )  # fmt: skip
    assert talk.participants == ("Wren", "Odile")
    assert "SPOILER" not in everything(data)
    assert {question.at for question in talk.questions} == {datetime(2023, 6, 15, 9, 5, 2, tzinfo=UTC)}
    assert {question.visible for question in talk.questions} == {6}


def test_sessions_are_in_the_order_of_their_numbers_not_of_their_names(tmp_path):
    sessions = [("2:00 pm on 1 May, 2023", [made.said(f"D{number}:1", f"turn {number}")]) for number in range(1, 12)]
    data = loaded(tmp_path, [made.two_people("long", sessions, [made.asked("?", ["D10:1"])])])
    assert [message.session for message in data.haystacks[0].messages] == [f"session_{n}" for n in range(1, 12)]
    assert the_question(data).gold_sessions == {"session_10"}
    assert not noted(data, "unsorted dates")


def test_sessions_out_of_order_are_put_into_the_order_of_their_dates(tmp_path):
    sessions = [
        ("2:00 pm on 9 May, 2023", [made.said("D1:1", "later")]),
        (None, [made.said("D2:1", "right after it")]),
        ("2:00 pm on 1 May, 2023", [made.said("D3:1", "first")]),
    ]
    data = loaded(tmp_path, [made.two_people("mixed", sessions, [])])
    assert [message.text for message in data.haystacks[0].messages] == ["first", "later", "right after it"]
    assert noted(data, "unsorted dates") == ["mixed"]


def test_a_talk_without_any_date_keeps_its_order(tmp_path):
    sessions = [(None, [made.said("D1:1", "one")]), (None, [made.said("D2:1", "two")])]
    data = loaded(tmp_path, [made.two_people("undated", sessions, [made.asked("?", ["D1:1"])])])
    assert [(message.text, message.at) for message in data.haystacks[0].messages] == [
        ("one", UNDATED),
        ("two", UNDATED),
    ]
    assert the_question(data).at > UNDATED


def test_categories_have_the_names_of_the_authors(tmp_path):
    rows = [made.asked("?", ["D1:1"], category) for category in (1, 2, 3, 4, 5, 6)]
    chat = made.talk() | {"qa": rows}
    assert [question.category for question in loaded(tmp_path, [chat]).haystacks[0].questions] == [
        "multi-hop", "temporal", "open-domain", "single-hop", "adversarial", "6",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "gold"),
    [
        (["D1:2; D2:1"], {"D1:2", "D2:1"}),
        (["D1:2 D2:1"], {"D1:2", "D2:1"}),
        (["(D1:2)"], {"D1:2"}),
        (["D1:2", "D1:2"], {"D1:2"}),
        ([], set()),
        (None, set()),
    ],
)
def test_malformed_evidence_is_repaired(tmp_path, evidence, gold):
    chat = made.talk() | {"qa": [made.asked("?") | {"evidence": evidence}]}
    data = loaded(tmp_path, [chat])
    assert the_question(data).gold == dict.fromkeys(gold, 1)
    assert noted(data, "no index beside it")
    assert bool(noted(data, "no gold")) is not bool(gold)


def test_evidence_that_does_not_exist_is_named_and_left_out(tmp_path):
    chat = made.talk() | {"qa": [made.asked("?", ["D1:2", "D9:9"]), made.asked("!", ["D7:7"])]}
    data = loaded(tmp_path, [chat])
    first, second = data.haystacks[0].questions
    assert (first.gold, first.has_gold, second.has_gold) == ({"D1:2": 1}, True, False)
    assert noted(data, "gold that does not exist") == ["talk-1_qa0: D9:9", "talk-1_qa1: D7:7"]
    assert noted(data, "no gold") == ["talk-1_qa1"]


def test_gold_in_an_empty_message_is_named(tmp_path):
    sessions = [("2:00 pm on 1 May, 2023", [made.said("D1:1", "  "), made.said("D1:2", "words")])]
    data = loaded(tmp_path, [made.two_people("gap", sessions, [made.asked("?", ["D1:1", "D1:2"])])])
    assert the_question(data).gold == {"D1:2": 1}
    assert noted(data, "empty message") == ["gap: D1:1"]
    assert noted(data, "gold that does not exist") == ["gap_qa0: D1:1"]


def test_two_turns_of_one_id_are_refused(tmp_path):
    sessions = [("2:00 pm on 1 May, 2023", [made.said("D1:1", "one"), made.said("D1:1", "two")])]
    with pytest.raises(InputError, match="two messages with the id D1:1"):
        loaded(tmp_path, [made.two_people("twice", sessions, [])])


def with_companions(tmp_path, index=None, errata=None, **options):
    made.write(tmp_path / "talks" / "talks.json", [made.talk()])
    if index is not None:
        made.write(tmp_path / "talks" / "index.jsonl.gz", index)
    if errata is not None:
        made.write(tmp_path / "talks" / "audit.json", errata)
    return one_set(tmp_path, **options)


def test_the_index_decides_the_evidence_and_where_answers_are_literal(tmp_path):
    index = made.talk_index("talk-1")
    index[5]["evidence"] = ["D2:3"]
    data = with_companions(tmp_path, index)
    questions = data.haystacks[0].questions
    assert [set(question.gold) for question in questions] == [
        {"D1:1"}, {"D1:2"}, {"D2:1"}, {"D2:1", "D2:2"}, {"D2:2", "D1:3"}, {"D2:3"},
    ]  # fmt: skip
    assert [question.answers for question in questions] == [("green",), (), (), (), (), ()]
    assert not noted(data, "no index beside it")
    assert set(data.checksums) == {"talks.json", "index.jsonl.gz"}


def test_errata_of_the_index_correct_the_gold_unless_it_is_wanted_as_published(tmp_path):
    index = made.talk_index("talk-1")
    index[0] |= {"errata": "WRONG_CITATION", "corrected_evidence": ["D2:2"], "corrected_answer": "blue"}
    index[2] |= {"errata": "HALLUCINATION", "corrected_evidence": []}
    corrected = with_companions(tmp_path, index)
    first, _, third, *_ = corrected.haystacks[0].questions
    assert (first.gold, first.answers) == ({"D2:2": 1}, ())
    assert third.gold == {"D2:1": 1}
    assert noted(corrected, "faulty gold") == ["talk-1_qa0: WRONG_CITATION", "talk-1_qa2: HALLUCINATION"]
    published = one_set(tmp_path, corrected=False)
    assert published.haystacks[0].questions[0].gold == {"D1:1": 1}
    assert published.haystacks[0].questions[0].answers == ("green",)
    assert not noted(published, "faulty gold")


def test_an_audit_alone_corrects_the_gold(tmp_path):
    errata = [made.erratum("locomo_0_qa0", ["D2:2"]), made.erratum("locomo_0_qa2", [], "HALLUCINATION")]
    data = with_companions(tmp_path, errata=errata)
    first, second, third, *_ = data.haystacks[0].questions
    assert [set(question.gold) for question in (first, second, third)] == [{"D2:2"}, {"D1:2"}, {"D2:1"}]
    assert noted(data, "faulty gold") == ["talk-1_qa0: WRONG_CITATION", "talk-1_qa2: HALLUCINATION"]
    assert set(data.checksums) == {"talks.json", "audit.json"}
    published = one_set(tmp_path, corrected=False)
    assert published.haystacks[0].questions[0].gold == {"D1:1": 1}


def test_answers_may_be_numbers(tmp_path):
    index = made.talk_index("talk-1")
    index[1]["answer_in_evidence_text"] = True
    assert with_companions(tmp_path, index).haystacks[0].questions[1].answers == ("11",)


# --------------------------------------------------------------------------- a haystack for every question


def test_a_haystack_is_read_with_its_gold_on_both_levels(tmp_path):
    data = loaded(tmp_path, [made.plain_haystack()])
    question = the_question(data)
    assert question.gold == {"s-zither:0": 1}
    assert question.gold_sessions == {"s-zither"}
    assert question.at == datetime(2023, 6, 1, 10, 0, tzinfo=UTC)
    assert [(m.id, m.author) for m in data.haystacks[0].messages][:2] == [
        ("s-soup:0", "user"),
        ("s-soup:1", "assistant"),
    ]
    assert question.answers == ()  # nothing promises that they stand in the gold


def test_the_index_says_where_the_answer_is_literal(tmp_path):
    made.write(tmp_path / "it" / "data.json", [made.plain_haystack("q-a"), made.plain_haystack("q-b")])
    rows = [
        {"question_id": key, "gold_turns": [["s-zither", 0]], "answer_in_gold_turns": key == "q-a"}
        for key in ("q-a", "q-b")
    ]
    made.write(tmp_path / "it" / "index.jsonl", rows)
    data = one_set(tmp_path)
    assert [each.questions[0].answers for each in data.haystacks] == [("a zither",), ()]
    assert set(data.checksums) == {"data.json", "index.jsonl"}


def test_sessions_that_are_not_sorted_are_sorted_and_noted(tmp_path):
    sessions = [
        ("late", "2023/05/24 (Wed) 19:30", made.TENT),
        ("early", "2023/05/20 (Sat) 02:21", made.ZITHER),
        ("middle", "2023/05/22 (Mon) 08:00", made.SOUP),
    ]
    data = loaded(tmp_path, [made.haystack("q", sessions, ["early"])])
    assert list(dict.fromkeys(message.session for message in data.haystacks[0].messages)) == [
        "early",
        "middle",
        "late",
    ]
    assert noted(data, "unsorted dates") == ["q"]
    assert the_question(data).gold == {"early:0": 1}


def test_a_session_id_that_stands_twice_keeps_both_parts(tmp_path):
    sessions = [
        ("twin", "2023/05/20 (Sat) 02:21", made.SOUP),
        ("other", "2023/05/21 (Sun) 02:21", made.TENT),
        ("twin", "2023/05/22 (Mon) 08:00", made.ZITHER),
    ]
    data = loaded(tmp_path, [made.haystack("q", sessions, ["twin"])])
    assert [(m.id, m.session) for m in data.haystacks[0].messages] == [
        ("twin:0", "twin"), ("twin:1", "twin"), ("other:0", "other"), ("other:1", "other"),
        ("twin(2):0", "twin"), ("twin(2):1", "twin"),
    ]  # fmt: skip
    assert noted(data, "duplicate session id") == ["q: twin"]
    assert the_question(data).gold == {"twin(2):0": 1}
    assert the_question(data).gold_sessions == {"twin"}


def test_sessions_of_one_name_in_two_haystacks_stay_apart(tmp_path):
    other = made.haystack("q-two", [("s-zither", "2023/05/20 (Sat) 02:21", made.SOUP)], ["s-zither"])
    data = loaded(tmp_path, [made.plain_haystack("q-one"), other])
    assert not noted(data, "duplicate session id")
    assert [len(each.messages) for each in data.haystacks] == [6, 2]


def test_an_empty_turn_is_noted_and_does_not_shift_the_others(tmp_path):
    turns = [
        made.turn(""),
        made.turn("I bought a zither.", has_answer=True),
        made.turn(" \n", "assistant", has_answer=True),
    ]
    data = loaded(tmp_path, [made.haystack("q", [("s", "2023/05/20 (Sat) 02:21", turns)], ["s"])])
    assert [message.id for message in data.haystacks[0].messages] == ["s:1"]
    assert the_question(data).gold == {"s:1": 1}
    assert noted(data, "empty message") == ["q: s:0", "q: s:2"]
    assert noted(data, "gold that does not exist") == ["q: s:2"]


def test_a_question_that_has_no_answer_is_asked_but_not_judged(tmp_path):
    data = loaded(tmp_path, [made.plain_haystack("q_abs")])
    assert (the_question(data).answerable, the_question(data).has_gold) == (False, False)
    assert not noted(data, "no gold")


def test_without_marked_turns_the_sessions_are_still_gold(tmp_path):
    turns = [made.turn("I bought a zither at the harbour.")]
    data = loaded(tmp_path, [made.haystack("q", [("s", "2023/05/20 (Sat) 02:21", turns)], ["s"])])
    question = the_question(data)
    assert (question.gold, question.gold_sessions, question.has_gold) == ({}, {"s"}, True)


def test_what_names_a_missing_session_is_noted(tmp_path):
    data = loaded(tmp_path, [made.plain_haystack("q", answer_session_ids=["s-zither", "s-nowhere"])])
    assert the_question(data).gold_sessions == {"s-zither"}
    assert noted(data, "gold that does not exist") == ["q: s-nowhere"]


def test_no_gold_at_all_is_noted(tmp_path):
    row = made.haystack("q", [("s", "2023/05/20 (Sat) 02:21", made.SOUP)], [])
    assert noted(loaded(tmp_path, [row]), "no gold") == ["q"]


def test_messages_after_the_question_are_noted(tmp_path):
    data = loaded(tmp_path, [made.plain_haystack("q", question_date="2023/05/22 (Mon) 08:00")])
    assert noted(data, "said after the question") == ["q: 3 messages"]
    assert the_question(data).visible == 6


def test_lists_of_different_lengths_are_refused(tmp_path):
    row = made.plain_haystack()
    row["haystack_dates"].pop()
    with pytest.raises(InputError, match="q-one: session ids, dates and sessions differ in number"):
        loaded(tmp_path, [row])


def test_an_empty_question_is_noted_and_not_asked(tmp_path):
    data = loaded(tmp_path, [made.plain_haystack("q", question="  ")])
    assert data.haystacks[0].questions == ()
    assert noted(data, "empty question") == ["q"]


def test_text_in_any_script_arrives_unchanged(tmp_path):
    text = "Je mange du pâté à Łódź 🍲 東京"
    row = made.haystack("q-ünï", [("s-ø", "2023/05/20 (Sat) 02:21", [made.turn(text, has_answer=True)])], ["s-ø"])
    data = loaded(tmp_path, [row], "dätä.json")
    assert data.haystacks[0].messages[0].text == text
    assert the_question(data).gold == {"s-ø:0": 1}


# ------------------------------------------------------------------------------------- chats with probes


def test_a_probed_chat_loses_its_markers_and_keeps_its_ids(tmp_path):
    data = loaded(tmp_path, [made.garden()])
    [garden] = data.haystacks
    assert [(m.id, m.session, m.author, m.text) for m in garden.messages] == [
        ("0", "batch 1", "user", "I planted quinces along the north wall."),
        ("1", "batch 1", "assistant", "Quinces like shelter."),
        ("2", "batch 1", "user", "The gate hinge squeaks."),
        ("3", "batch 2", "user", "I moved the quinces to the orchard."),
        ("4", "batch 2", "assistant", "They will recover by May."),
    ]
    assert [message.at.date().isoformat() for message in garden.messages] == ["2024-03-15"] * 3 + ["2024-04-02"] * 2
    assert {question.at.date().isoformat() for question in garden.questions} == {"2024-04-03"}
    assert data.oddities == ()


def test_sources_are_a_list_a_table_or_nothing(tmp_path):
    [garden] = loaded(tmp_path, [made.garden()]).haystacks
    by_category = {question.category: question for question in garden.questions}
    assert by_category["information_extraction"].gold == {"0": 1}
    assert by_category["contradiction_resolution"].gold == {"0": 1, "3": 1}
    assert by_category["contradiction_resolution"].gold_sessions == {"batch 1", "batch 2"}
    assert by_category["abstention"].answerable is False


def test_probes_of_one_ability_are_questions_of_their_own(tmp_path):
    chat = made.garden() | {
        "probing_questions": {"summarization": [made.probe("A?", [0]), made.probe("B?", [[1], [3]])]}
    }
    [garden] = loaded(tmp_path, [chat]).haystacks
    assert [set(question.gold) for question in garden.questions] == [{"0"}, {"1", "3"}]
    assert len({question.id for question in garden.questions}) == 2


def test_odd_probes_are_noted(tmp_path):
    probes = {"recall": [made.probe(""), made.probe("Where?", [0, 77])]}
    data = loaded(tmp_path, [made.garden() | {"probing_questions": probes}])
    assert noted(data, "empty question") == ["1 recall 0"]
    assert noted(data, "gold that does not exist") == ["1 recall 1: 77"]
    assert the_question(data).gold == {"0": 1}


def test_a_batch_without_an_anchor_happened_when_the_one_before_it_did(tmp_path):
    batches = [
        ("March-15-2024", [(0, "user", "one", "March-15-2024")]),
        (None, [(1, "user", "two", None)]),
        ("April-02-2024", [(2, "user", "three", None)]),
    ]
    [chat] = loaded(tmp_path, [made.probed("1", batches, {})]).haystacks
    assert [message.at.date().isoformat() for message in chat.messages] == ["2024-03-15", "2024-03-15", "2024-04-02"]


def test_a_message_that_is_only_a_marker_is_empty(tmp_path):
    batches = [("March-15-2024", [(0, "user", " ->-> 1,1", None), (1, "user", "a -> b", None)])]
    data = loaded(tmp_path, [made.probed("1", batches, {})])
    assert [message.text for message in data.haystacks[0].messages] == ["a -> b"]
    assert noted(data, "empty message") == ["1: 0"]


# --------------------------------------------------------------------------------- projects, replayed


def test_a_replayed_question_sees_earlier_sessions_only(tmp_path):
    data = loaded(tmp_path, made.lighthouse(), "ida.json")
    [chat] = data.haystacks
    assert (chat.id, chat.level) == ("ida", "session")
    first, second = chat.questions
    assert (first.text, first.gold, first.gold_sessions) == ("When does the supply boat come again?", {}, {"u-boat"})
    assert second.gold_sessions == {"u-lamp"}
    assert (first.category, second.category) == ("Dynamic Updating", "Temporal-reasoning")
    assert [message.session for message in chat.messages[: first.visible]] == ["u-lamp", "u-lamp", "u-boat", "u-boat"]
    assert first.visible == second.visible
    assert first.at == datetime(2024, 3, 9, tzinfo=UTC)


def test_a_replayed_question_is_asked_after_the_messages_of_its_session(tmp_path):
    [chat] = loaded(tmp_path, made.lighthouse(), "ida.json").haystacks
    for question in chat.questions:
        place = int(question.id.rpartition(":")[2])
        assert {message.session for message in question.said} <= {"u-ask"}
        assert len(question.said) == place
        texts = [message.text for message in question.said]
        given = [message["content"] for message in question.as_given] if place else [question.as_given]
        assert given == [*texts, question.text]


def test_its_own_session_and_later_ones_leave_the_gold_and_are_noted(tmp_path):
    data = loaded(tmp_path, made.lighthouse(), "ida.json")
    assert noted(data, "gold is the question's own session") == ["ida u-ask:2"]
    assert noted(data, "gold that had not been said yet") == ["ida u-ask:2: u-later"]
    assert noted(data, "empty message") == ["ida: u-boat:1"]


def test_what_was_extracted_from_the_answers_is_never_read(tmp_path):
    assert "SPOILER" not in everything(loaded(tmp_path, made.lighthouse()))


def test_the_gold_of_a_replayed_question_is_on_the_next_turn(tmp_path):
    chat = made.persona(
        ("a", "2024-03-01 (Friday)", [made.line("tea")]),
        ("b", "2024-03-02 (Saturday)", [made.line("milk")]),
        (
            "c",
            "2024-03-03 (Sunday)",
            [
                made.query("one?") | {"memory_session_uuids": ["b"]},
                made.answer("yes", "a", "a"),
                made.query("two?"),
            ],
        ),
    )
    data = loaded(tmp_path, chat)
    first, second = data.haystacks[0].questions
    assert first.gold_sessions == {"a"}
    assert not second.has_gold
    assert noted(data, "no gold") == ["data c:2"]


def test_a_replayed_chat_out_of_order_is_sorted_before_it_is_cut(tmp_path):
    chat = made.persona(
        ("ask", "2024-03-05 (Tuesday)", [made.query("Where is the oar?"), made.answer("There.", "before", "after")]),
        ("after", "2024-03-09 (Saturday)", [made.line("The oar broke.")]),
        ("before", "2024-03-01 (Friday)", [made.line("The oar is in the shed.")]),
    )
    data = loaded(tmp_path, chat)
    question = the_question(data)
    assert [message.session for message in data.haystacks[0].messages[: question.visible]] == ["before"]
    assert question.gold_sessions == {"before"}
    assert noted(data, "unsorted dates")
    assert noted(data, "gold that had not been said yet") == ["data ask:0: after"]


def test_gold_sessions_that_do_not_exist_are_noted(tmp_path):
    chat = made.persona(("a", "2024-03-01 (Friday)", [made.query("Why?"), made.answer("So.", "ghost")]))
    data = loaded(tmp_path, chat)
    assert noted(data, "gold that does not exist") == ["data a:0: ghost"]
    assert noted(data, "no gold") == ["data a:0"]
    assert the_question(data).visible == 0


def test_every_persona_of_a_folder_is_a_haystack_of_one_set(tmp_path):
    made.write(tmp_path / "p" / "ida.json", made.lighthouse())
    made.write(tmp_path / "p" / "jan.json.gz", made.lighthouse())
    data = one_set(tmp_path)
    assert [each.id for each in data.haystacks] == ["ida", "jan"]
    assert set(data.checksums) == {"ida.json", "jan.json.gz"}


# ------------------------------------------------------------------------------------------------ corpora


def test_a_corpus_keeps_its_grades(tmp_path):
    data = one_set(made.write_corpus(tmp_path / "animals").parent)
    first, second = data.haystacks[0].questions
    assert first.gold == {"d0": 4, "d4": 1}  # grade 0 says: looked at and not relevant
    assert second.gold == {"d1": 1, "d3": 2}
    assert (first.category, second.category) == ("bridge", "comparison")
    assert (first.answers, second.answers) == (("near bridge 0",), ())
    assert data.haystacks[0].messages[0].spoken == "On the otter\nA otter lives near bridge 0."
    assert set(data.checksums) == {"corpus.jsonl.gz", "queries.jsonl.gz", "qrels.tsv"}


def test_the_other_spelling_of_a_corpus_is_read_alike(tmp_path):
    data = one_set(made.write_by_split(tmp_path / "beasts").parent)
    plain = one_set(made.write_corpus(tmp_path / "other" / "animals").parent)
    for theirs, ours in zip(data.haystacks[0].questions, plain.haystacks[0].questions, strict=True):
        assert (theirs.id, theirs.text, theirs.gold) == (ours.id, ours.text, ours.gold)
    assert data.haystacks[0].messages == plain.haystacks[0].messages
    assert set(data.checksums) == {"corpus.jsonl", "queries.jsonl", "test.tsv"}


def test_without_judgements_the_queries_name_the_gold(tmp_path):
    data = one_set(made.write_corpus(tmp_path / "animals", qrels=None).parent)
    assert [question.gold for question in data.haystacks[0].questions] == [{"d0": 1}, {"d1": 1, "d3": 1}]


def test_without_any_judgement_there_is_nothing_to_measure(tmp_path):
    queries = [{"id": "q1", "question": "Where?"}]
    with pytest.raises(InputError, match=r"no qrels\.tsv"):
        load_sets(made.write_corpus(tmp_path / "animals", queries=queries, qrels=None).parent)


def test_odd_documents_and_queries_are_noted(tmp_path):
    corpus = [
        *made.documents(3),
        {"id": "d1", "title": "again", "text": "a second document of this id"},
        {"id": "blank", "title": "", "text": " "},
        {"id": "titled", "title": "Only a title", "text": ""},
    ]
    queries = [
        {"id": "q1", "question": "Where?"},
        {"id": "q2", "question": " "},
        {"id": "q3", "question": "Who?"},
        {"id": "q4", "question": "Nothing?"},
    ]
    qrels = "query_id\tdoc_id\tscore\nq1\td1\t1\nq1\tghost\t1\nq3\tblank\t1\nq3\ttitled\t1\nq4\td0\t0\nq9\td0\t1\n"
    data = one_set(made.write_corpus(tmp_path / "c", corpus, queries, qrels).parent)
    [haystack] = data.haystacks
    assert [message.id for message in haystack.messages] == ["d0", "d1", "d2", "titled"]
    assert haystack.messages[1].title == "On the heron"
    assert {question.id: question.gold for question in haystack.questions} == {
        "q1": {"d1": 1}, "q3": {"titled": 1}, "q4": {},
    }  # fmt: skip
    assert noted(data, "duplicate document id") == ["d1"]
    assert noted(data, "empty document") == ["blank"]
    assert noted(data, "empty question") == ["q2"]
    assert noted(data, "gold that does not exist") == ["q1: ghost", "q3: blank"]
    assert noted(data, "no gold") == ["q4"]
    assert noted(data, "judged query that is not asked") == ["q9"]


def test_aliases_of_an_answer_are_answers(tmp_path):
    queries = [made.QUERIES[0] | {"answer_aliases": ["by bridge 0", ""]}]
    data = one_set(made.write_corpus(tmp_path / "c", queries=queries, qrels=None).parent)
    assert the_question(data).answers == ("near bridge 0", "by bridge 0")


JUDGED = {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}
HERE = Path("qrels.tsv")


@pytest.mark.parametrize(
    "text",
    [
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td1\t1\n",
        "q1\td1\t2\nq1\td2\t0\nq2\td1\t1",
        "query-id\tcorpus-id\tscore\r\nq1\td1\t2\r\nq1\td2\t0\r\nq2\td1\t1\r\n",
        "q1\t0\td1\t2\nq1\t0\td2\t0\nq2\t0\td1\t1\n",
        "query\tdocument\tscore\n\nq1\td1\t2\nq1\td2\t0\n\nq2\td1\t1\n\n",
        "\ufeffquery-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td1\t1\n",
    ],
    ids=["header", "no header", "windows", "four columns", "blank lines", "mark before the header"],
)
def test_judgements_are_read_in_every_usual_spelling(text):
    assert read_qrels(text, HERE, Notes()) == JUDGED


@pytest.mark.parametrize("line", ["q1\td1", "q1\td1\thigh", "q1 0 d1 1", "\td1\t1"])
def test_a_judgement_that_cannot_be_read_is_named_by_its_line(line):
    with pytest.raises(InputError, match=r"qrels\.tsv, line 3"):
        read_qrels(f"query_id\tdoc_id\tscore\nq0\td0\t1\n{line}\n", HERE, Notes())


def test_negative_grades_are_no_gold(tmp_path):
    data = one_set(made.write_corpus(tmp_path / "c", qrels="q1\td0\t-1\nq1\td1\t1\nq2\td1\t1\n").parent)
    assert data.haystacks[0].questions[0].gold == {"d1": 1}


def test_a_corpus_that_is_no_list_of_rows_is_refused(tmp_path):
    made.write_corpus(tmp_path / "c")
    (tmp_path / "c" / "corpus.jsonl.gz").unlink()
    made.write(tmp_path / "c" / "corpus.json", {"d0": "text"})
    with pytest.raises(InputError, match=r"corpus\.json is not a list of JSON objects"):
        load_sets(tmp_path)


# -------------------------------------------------------------------------------------------------- pages


def test_a_page_is_a_haystack_of_paragraphs(tmp_path):
    data = loaded(tmp_path, [made.mayor()], "pages.jsonl")
    [page] = data.haystacks
    assert [(message.id, message.author) for message in page.messages] == [(f"{n}", "document") for n in range(3)]
    assert [question.gold for question in page.questions] == [{"0": 1}, {"1": 1}, {}]
    assert [question.answerable for question in page.questions] == [True, True, False]
    assert [question.answers for question in page.questions] == [
        ("mayor of Hoverdam",),
        ("ran the tram company",),
        (),
    ]
    assert {question.category for question in page.questions} == {"P-works"}
    assert data.chat is False


def test_an_empty_paragraph_does_not_shift_the_others(tmp_path):
    rows = [("p#1", "What?", [(2, "third")]), ("p#2", "Which?", [(1, "second")]), ("p#3", " ", [])]
    data = loaded(tmp_path, [made.page("p", ["first", "  ", "third"], rows)])
    [page] = data.haystacks
    assert [message.id for message in page.messages] == ["0", "2"]
    assert [question.gold for question in page.questions] == [{"2": 1}, {}]
    assert noted(data, "empty document") == ["p: 1 paragraphs"]
    assert noted(data, "gold that does not exist") == ["p#2: 1"]
    assert noted(data, "empty question") == ["p#3"]


def test_an_answer_in_two_paragraphs_has_both_as_gold(tmp_path):
    data = loaded(
        tmp_path, [made.page("p", ["a x", "b", "c x"], [("p#1", "Where?", [(0, "x"), (2, "x"), (0, "a")])])]
    )
    assert the_question(data).gold == {"0": 1, "2": 1}


def test_a_page_without_words_is_left_out_and_noted(tmp_path):
    data = loaded(tmp_path, [made.mayor(), made.page("void", [" "], [("v#1", "What?", [(0, "x")])])])
    assert [each.id for each in data.haystacks] == ["/page/Ilse_Brandt"]
    assert noted(data, "empty haystack") == ["void"]
