"""Odd data: what is broken is refused by name, what can be read is read, and what is left out is noted."""

import json
from pathlib import Path

import pytest

import evaldata as made
from holdfast.errors import InputError
from holdfast.eval.data import Notes
from holdfast.eval.datasets import load_sets
from holdfast.eval.readers import read_qrels


def one_set(root, **options):
    [data] = load_sets(root, **options).sets
    return data


def loaded(tmp_path, value, name="data.json"):
    made.write(tmp_path / "it" / name, value)
    return one_set(tmp_path)


def noted(data, kind):
    return [oddity.where for oddity in data.oddities if oddity.kind == kind]


def test_a_query_id_that_stands_twice_is_noted(tmp_path):
    queries = [{"id": "q1", "question": "Where does the otter live?"}, {"id": "q1", "question": "And the heron?"}]
    data = one_set(made.write_corpus(tmp_path / "c", queries=queries).parent)
    assert noted(data, "duplicate question id") == ["q1"]
    assert [question.text for question in data.haystacks[0].questions] == ["Where does the otter live?"]


@pytest.mark.parametrize(
    "value",
    [
        [made.talk("same", "barge"), made.talk("same", "sledge")],
        [made.plain_haystack("same"), made.plain_haystack("same")],
        [made.garden("same"), made.garden("same")],
        [made.mayor("same"), made.mayor("same")],
    ],
    ids=["two people", "haystacks", "probed", "pages"],
)
def test_haystacks_of_one_set_have_ids_of_their_own(tmp_path, value):
    data = loaded(tmp_path, value)
    [name] = noted(data, "duplicate haystack id")
    assert [haystack.id for haystack in data.haystacks] == [name, f"{name} (2)"]


def test_two_schemas_in_one_folder_are_two_sets(tmp_path):
    made.write(tmp_path / "mixed" / "talks.json", [made.talk()])
    made.write(tmp_path / "mixed" / "stacks.json", [made.plain_haystack()])
    assert [data.name for data in load_sets(tmp_path).sets] == ["mixed/stacks", "mixed/talks"]


def test_files_whose_names_differ_after_a_dot_are_all_read(tmp_path):
    made.write(tmp_path / "p" / "ida.first.json", made.lighthouse())
    made.write(tmp_path / "p" / "ida.second.json", made.lighthouse())
    assert len(one_set(tmp_path).haystacks) == 2


def test_splits_whose_names_differ_after_a_dot_have_names_of_their_own(tmp_path):
    made.write(tmp_path / "s" / "stacks.dev.json", [made.plain_haystack("a")])
    made.write(tmp_path / "s" / "stacks.test.json", [made.plain_haystack("b")])
    assert [data.name for data in load_sets(tmp_path).sets] == ["s/stacks.dev", "s/stacks.test"]


def test_a_set_beside_a_corpus_is_a_set_of_its_own(tmp_path):
    made.write_corpus(tmp_path / "c")
    made.write(tmp_path / "c" / "stacks.json", [made.plain_haystack()])
    extra = made.write(tmp_path / "c" / "notes.json", {"nothing": "to see"})
    found = load_sets(tmp_path)
    assert [data.name for data in found.sets] == ["c", "c/stacks"]
    assert found.unknown == [extra]


def test_only_does_not_rename_a_set(tmp_path):
    made.write_everything(tmp_path)
    assert [data.name for data in load_sets(tmp_path, ["large"]).sets] == ["gardens/large"]


def test_only_keeps_the_companions_of_what_it_names(tmp_path):
    made.write(tmp_path / "talks" / "dialogues.json", [made.talk()])
    made.write(tmp_path / "talks" / "audit.json", [made.erratum("locomo_0_qa0", ["D2:2"])])
    data = one_set(tmp_path, only=["dialogues"])
    assert data.haystacks[0].questions[0].gold == {"D2:2": 1}


def test_every_split_keeps_its_own_index(tmp_path):
    for split in ("dev", "test"):
        made.write(tmp_path / "s" / f"{split}.json", [made.plain_haystack(f"q-{split}")])
        row = {"question_id": f"q-{split}", "gold_turns": [["s-zither", 0]], "answer_in_gold_turns": True}
        made.write(tmp_path / "s" / f"{split}_index.jsonl", [row])
    answers = {data.name: data.haystacks[0].questions[0].answers for data in load_sets(tmp_path).sets}
    assert answers == {"s/dev": ("a zither",), "s/test": ("a zither",)}


def test_an_audit_is_used_beside_an_index(tmp_path):
    made.write(tmp_path / "talks" / "talks.json", [made.talk()])
    made.write(tmp_path / "talks" / "index.jsonl", made.talk_index("talk-1"))
    made.write(tmp_path / "talks" / "audit.json", [made.erratum("locomo_0_qa0", ["D2:2"])])
    assert one_set(tmp_path).haystacks[0].questions[0].gold == {"D2:2": 1}


def test_evidence_that_cannot_be_repaired_is_noted(tmp_path):
    chat = made.talk() | {"qa": [made.asked("?", ["D1:2", "D:2:1"])]}
    assert noted(loaded(tmp_path, [chat]), "gold that does not exist")


def test_evidence_that_the_index_calls_invalid_is_noted(tmp_path):
    chat = made.talk() | {"qa": [made.asked("?", ["D1:2", "D9:9"])]}
    made.write(tmp_path / "talks" / "talks.json", [chat])
    index = made.talk_index("talk-1")[:1]
    index[0] |= {"evidence": ["D1:2"], "invalid_evidence": ["D9:9"]}
    made.write(tmp_path / "talks" / "index.jsonl", index)
    assert noted(one_set(tmp_path), "gold that does not exist") == ["talk-1_qa0: D9:9"]


def test_a_probe_without_sources_is_noted(tmp_path):
    chat = made.garden() | {"probing_questions": {"summarization": [made.probe("What happened?", [])]}}
    assert noted(loaded(tmp_path, [chat]), "no gold") == ["1 summarization 0"]


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ([made.garden() | {"probing_questions": {"recall": [made.probe("?", [77])]}}], "1 recall 0"),
        ([made.page("p", ["one"], [("p#1", "What?", [(9, "x")])])], "p#1"),
    ],
    ids=["probed", "pages"],
)
def test_a_question_whose_gold_all_vanished_is_noted(tmp_path, value, where):
    assert noted(loaded(tmp_path, value), "no gold") == [where]


def test_a_query_whose_gold_all_vanished_is_noted(tmp_path):
    data = one_set(made.write_corpus(tmp_path / "c", qrels="q1\tghost\t1\nq2\td1\t1\n").parent)
    assert noted(data, "no gold") == ["q1"]


def test_of_several_splits_of_judgements_test_is_used(tmp_path):
    made.write_by_split(tmp_path / "b", dev="q1\td5\t1\n", test="q1\td0\t1\nq2\td1\t1\n", train="q1\td4\t1\n")
    data = one_set(tmp_path)
    assert data.haystacks[0].questions[0].gold == {"d0": 1}
    assert noted(data, "judgements of another split") == ["dev.tsv", "train.tsv"]


def test_judgements_that_were_used_are_not_listed_as_left_out(tmp_path):
    made.write_by_split(tmp_path / "b")
    assert load_sets(tmp_path).unknown == []


def test_a_quotation_mark_in_an_id_is_a_character():
    text = 'q1\t"Hamlet"\t1\nq1\t"Macbeth\t1\nq2\td1\t1\n'
    assert read_qrels(text, Path("qrels.tsv"), Notes()) == {
        "q1": {'"Hamlet"': 1, '"Macbeth': 1},
        "q2": {"d1": 1},
    }


def test_a_byte_order_mark_does_not_spoil_the_first_judgement(tmp_path):
    queries = [{"id": "q1", "question": "Where does the otter live?"}, {"id": "q2", "question": "And the heron?"}]
    made.write_corpus(tmp_path / "c", queries=queries, qrels="\ufeffq1\td0\t1\nq2\td1\t1\n")
    assert one_set(tmp_path).haystacks[0].questions[0].gold == {"d0": 1}


def test_a_byte_order_mark_before_json_is_no_damage(tmp_path):
    made.write(tmp_path / "it" / "data.json", b"\xef\xbb\xbf" + json.dumps([made.plain_haystack()]).encode())
    assert one_set(tmp_path).haystacks[0].id == "q-one"


def test_a_first_line_without_a_grade_is_not_a_header():
    with pytest.raises(InputError, match="line 1"):
        read_qrels("q1\td0\nq1\td1\t1\n", Path("qrels.tsv"), Notes())


def test_judgements_that_contradict_each_other_are_noted(tmp_path):
    data = one_set(made.write_corpus(tmp_path / "c", qrels="q1\td0\t2\nq1\td0\t0\nq1\td1\t1\nq2\td1\t1\n").parent)
    assert noted(data, "judged twice") == ["q1: d0"]
    assert data.haystacks[0].questions[0].gold == {"d0": 2, "d1": 1}


def test_null_is_nothing(tmp_path):
    corpus = [{"id": "d0", "title": None, "text": "An otter."}, {"id": "d1", "title": None, "text": None}]
    queries = [
        {"id": "q1", "question": None, "gold_ids": ["d0"]},
        {"id": "q2", "question": "Otter?", "gold_ids": ["d0"]},
    ]
    data = one_set(made.write_corpus(tmp_path / "c", corpus, queries, None).parent)
    assert [(message.id, message.title) for message in data.haystacks[0].messages] == [("d0", "")]
    assert [question.id for question in data.haystacks[0].questions] == ["q2"]


def test_a_null_question_about_a_chat_is_empty(tmp_path):
    chat = made.talk() | {"qa": [made.asked(None, ["D1:1"])]}
    data = loaded(tmp_path, [chat, made.talk("other")])
    assert noted(data, "empty question") == ["talk-1_qa0"]


def test_a_null_turn_is_empty(tmp_path):
    turns = [made.turn(None), made.turn("I bought a zither.", has_answer=True)]
    data = loaded(tmp_path, [made.haystack("q", [("s", "2023/05/20 (Sat) 02:21", turns)], ["s"])])
    assert [message.id for message in data.haystacks[0].messages] == ["s:1"]


def test_gold_ids_may_be_numbers(tmp_path):
    corpus = [{"id": 1, "title": "", "text": "An otter."}]
    queries = [{"id": 7, "question": "Otter?", "gold_ids": [1]}]
    data = one_set(made.write_corpus(tmp_path / "c", corpus, queries, None).parent)
    assert data.haystacks[0].questions[0].gold == {"1": 1}


def test_a_question_of_an_undated_session_is_asked_when_the_session_was(tmp_path):
    chat = made.persona(
        ("a", "2031-03-01 (Saturday)", [made.line("The oar is in the shed.")]),
        ("b", None, [made.query("Where is the oar?"), made.answer("In the shed.", "a")]),
    )
    [haystack] = loaded(tmp_path, chat).haystacks
    assert haystack.questions[0].at >= haystack.messages[0].at


def test_a_line_separator_inside_a_text_is_a_character(tmp_path):
    row = made.plain_haystack(question="Which\u2028instrument\x85did I buy?")
    data = loaded(tmp_path, [row], "data.jsonl")
    assert data.haystacks[0].questions[0].text == "Which\u2028instrument\x85did I buy?"


def test_a_damaged_line_is_named_by_its_number(tmp_path):
    whole = json.dumps(made.plain_haystack())
    (tmp_path / "data.jsonl").write_text(f"{whole}\n{whole}\n{whole[:40]}\n")
    with pytest.raises(InputError, match="line 3"):
        load_sets(tmp_path)


@pytest.mark.parametrize(
    "value",
    [
        [made.talk(), made.two_people("void", [], [made.asked("?")])],
        [made.talk(), made.two_people("void", [("2:00 pm on 1 May, 2023", [made.said("D1:1", " ")])], [])],
        [made.garden(), made.probed("void", [], {})],
        [made.plain_haystack(), made.haystack("void", [], question_date="")],
    ],
    ids=["no session", "nothing said", "no batch", "no session, no date"],
)
def test_a_haystack_without_messages_is_left_out_and_noted(tmp_path, value):
    data = loaded(tmp_path, value)
    assert len(data.haystacks) == 1
    assert noted(data, "empty haystack") == ["void"]


@pytest.mark.parametrize(
    "value",
    [
        made.talk(),
        made.plain_haystack(),
        made.garden(),
        made.mayor(),
        [made.lighthouse()],
        [made.plain_haystack(), None],
        [made.plain_haystack(haystack_sessions=None)],
        [made.talk() | {"conversation": []}],
        [made.talk() | {"qa": None}],
        [made.garden() | {"probing_questions": []}],
        [made.mayor() | {"paras": None}],
        made.lighthouse() | {"dialogues": None},
    ],
)
def test_a_file_of_the_wrong_shape_is_an_error_of_ours(tmp_path, value):
    made.write(tmp_path / "it" / "data.json", value)
    with pytest.raises(InputError, match=r"data\.json.*fetch it again"):
        load_sets(tmp_path)


@pytest.mark.parametrize("fields", [{"gold_ids": None}, {"answer_aliases": None, "answer_in_gold": True}])
def test_a_null_list_of_a_query_is_an_empty_one(tmp_path, fields):
    queries = [made.QUERIES[0] | fields, made.QUERIES[1]]
    data = one_set(made.write_corpus(tmp_path / "c", queries=queries, qrels=None).parent)
    assert len(data.haystacks[0].questions) == 2


def test_a_row_of_an_index_that_lacks_a_key_is_an_error_of_ours(tmp_path):
    made.write(tmp_path / "talks" / "talks.json", [made.talk()])
    index = made.talk_index("talk-1")
    del index[3]["qa_index"]
    made.write(tmp_path / "talks" / "index.jsonl", index)
    with pytest.raises(InputError, match=r"index\.jsonl"):
        load_sets(tmp_path)


@pytest.mark.parametrize("grade", ["--1", "²"])
def test_a_grade_that_only_looks_like_a_number_is_refused(grade):
    with pytest.raises(InputError, match="line 2"):
        read_qrels(f"q1\td0\t1\nq1\td1\t{grade}\n", Path("qrels.tsv"), Notes())


def test_a_replayed_session_id_that_stands_twice_keeps_both_parts(tmp_path):
    chat = made.persona(
        ("twin", "2024-03-01 (Friday)", [made.line("one")]),
        ("twin", "2024-03-02 (Saturday)", [made.line("two")]),
    )
    data = loaded(tmp_path, chat)
    assert len(data.haystacks[0].messages) == 2
    assert noted(data, "duplicate session id")


def test_a_null_list_of_gold_sessions_is_an_empty_one(tmp_path):
    data = loaded(tmp_path, [made.plain_haystack(answer_session_ids=None)])
    assert data.haystacks[0].questions[0].gold_sessions == frozenset()


def test_two_questions_of_one_id_on_a_page_are_told_apart(tmp_path):
    asked = [("p#1", "What?", [(0, "one")]), ("p#1", "Which?", [(1, "two")]), ("p#1 (2)", "Who?", [(0, "one")])]
    data = loaded(tmp_path, [made.page("p", ["one", "two"], asked)])
    assert [question.id for question in data.haystacks[0].questions] == ["p#1", "p#1 (3)", "p#1 (2)"]
    assert noted(data, "duplicate question id") == ["p: p#1"]


def test_a_session_given_twice_has_its_gold_once(tmp_path):
    sessions = [
        ("twin", "2023/05/20 (Sat) 02:21", made.ZITHER),
        ("other", "2023/05/21 (Sun) 02:21", made.ZITHER),
        ("twin", "2023/05/22 (Mon) 08:00", made.ZITHER),
    ]
    data = loaded(tmp_path, [made.haystack("q", sessions, ["twin", "other"])])
    assert data.haystacks[0].questions[0].gold == {"twin:0": 1, "other:0": 1}


@pytest.mark.parametrize(("name", "value"), [("talks", [made.talk()]), ("ida", made.lighthouse())])
def test_two_files_of_one_name_are_refused(tmp_path, name, value):
    made.write(tmp_path / "s" / f"{name}.json", value)
    made.write(tmp_path / "s" / f"{name}.json.gz", value)
    with pytest.raises(InputError, match="remove one of the"):
        load_sets(tmp_path)


def test_an_index_named_after_a_file_is_that_files_alone(tmp_path):
    for split, wrong in (("dev", "D2:2"), ("test", "D2:3")):
        made.write(tmp_path / "talks" / f"{split}.json", [made.talk()])
        made.write(tmp_path / "talks" / f"{split}_audit.json", [made.erratum("locomo_0_qa0", [wrong])])
    gold = {data.name: dict(data.haystacks[0].questions[0].gold) for data in load_sets(tmp_path).sets}
    assert gold == {"talks/dev": {"D2:2": 1}, "talks/test": {"D2:3": 1}}


def test_only_reads_a_part_of_a_mixed_folder_under_its_own_name(tmp_path):
    made.write_corpus(tmp_path / "c")
    made.write(tmp_path / "c" / "stacks.json", [made.plain_haystack()])
    assert [data.name for data in load_sets(tmp_path, ["stacks"]).sets] == ["c/stacks"]


def test_a_set_in_which_nothing_was_said_is_listed_as_empty(tmp_path):
    made.write(tmp_path / "void" / "talks.json", [made.two_people("void", [], [])])
    made.write(tmp_path / "s" / "stacks.json", [made.plain_haystack()])
    found = load_sets(tmp_path)
    assert [data.name for data in found.sets] == ["s"]
    assert found.empty == ["void"]


def test_ids_of_sessions_may_be_numbers(tmp_path):
    row = made.haystack("q", [(7, "2023/05/20 (Sat) 02:21", made.ZITHER)], [7])
    data = loaded(tmp_path, [row])
    assert data.haystacks[0].questions[0].gold_sessions == {"7"}
    assert {message.session for message in data.haystacks[0].messages} == {"7"}
