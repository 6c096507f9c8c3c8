"""What the evaluation harness does wrong today: every test here fails, and says above it what should happen."""

import json
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import evaldata as made
from holdfast.errors import HoldfastError, InputError, SettingsError
from holdfast.eval import plan
from holdfast.eval import run as eval_run
from holdfast.eval.baselines import BASELINES
from holdfast.eval.comparison import Kept, compare
from holdfast.eval.corpora import read_qrels
from holdfast.eval.data import DataSet, Haystack, Message, Question
from holdfast.eval.datasets import load_sets
from holdfast.eval.journal import Journal
from holdfast.eval.manifest import describe_run, write_manifest
from holdfast.eval.run import evaluate
from holdfast.eval.summary import Record, intervals, paired_interval
from holdfast.eval.systems import Product, Ranking
from holdfast.eval.vectors import CachedEmbedder
from holdfast.interfaces import cli
from holdfast.settings import EmbeddingSettings, Settings
from holdfast.testing.embedders import HashEmbedder

AT = datetime(2024, 3, 5, tzinfo=UTC)


# ------------------------------------------------------------------------------------------------- helpers


def one_set(root, **options):
    [data] = load_sets(root, **options).sets
    return data


def loaded(tmp_path, value, name="data.json"):
    made.write(tmp_path / "it" / name, value)
    return one_set(tmp_path)


def noted(data, kind):
    return [oddity.where for oddity in data.oddities if oddity.kind == kind]


def stack(name, *questions, count=4, level="message", texts=None):
    texts = texts or [f"text {place} of {name}" for place in range(count)]
    messages = tuple(
        Message(f"m{place}", f"s{place // 2}", text, AT + timedelta(hours=place)) for place, text in enumerate(texts)
    )
    return Haystack(name, messages, questions, level=level)


def asking(name, *gold, text="otter?", sessions=(), visible=4, category="all", **fields):
    return Question(
        name, text, category, AT + timedelta(days=1), visible, dict.fromkeys(gold, 1), frozenset(sessions), **fields
    )


def data(*haystacks, name="set", chat=True, checksum="0"):
    return DataSet(name, "x", chat, haystacks, {"file": checksum * 64})


@dataclass
class Scripted:
    """Gives the answers it was told, by haystack and the question's text."""

    name: str = "scripted"
    answers: dict = field(default_factory=dict)

    @contextmanager
    def read(self, haystack, embedder):
        yield Scripted.Reader(self, haystack)

    @dataclass
    class Reader:
        system: "Scripted"
        haystack: Haystack

        def rank(self, question):
            found = self.system.answers.get((self.haystack.messages[0].text, question.text), ())
            return Ranking(tuple(found))

        def prompts(self, question, budgets):
            return {}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Return a function that measures one system on sets."""
    monkeypatch.setattr(eval_run, "_embedder", lambda embedding: HashEmbedder())

    def measure(sets, system, folder="run"):
        return evaluate(sets, [system], EmbeddingSettings(embedder="potion"), tmp_path / "out" / folder)

    return measure


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs `holdfast eval` in this process, with a model of hashed words."""
    monkeypatch.setattr(eval_run, "_embedder", lambda embedding: HashEmbedder())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def command(*arguments, code=0):
        """Run; `code=None` means that either end will do."""
        given = [str(argument) for argument in arguments]
        monkeypatch.setattr(
            sys, "argv", ["holdfast", "eval", *given, *([] if "--workers" in given else ["--workers", "1"])]
        )
        with pytest.raises(SystemExit) as left:
            cli.main()
        shown, said = capsys.readouterr()
        assert code is None or (left.value.code or 0) == code, shown + said
        return json.loads(shown) if "--json" in given else shown + said

    return command


@pytest.fixture
def talks(tmp_path):
    chats = [made.talk(f"talk-{topic}", topic) for topic in ("barge", "sledge", "canoe")]
    made.write(tmp_path / "data" / "talks" / "talks.json", chats)
    return tmp_path / "data"


def figures(report):
    return {(row["set"], row["system"]): row for row in report["runs"]}


# ------------------------------------------------------------------------------- A. figures that are silently wrong


# Two questions of one id: `run._asked` keeps records by question id, so one is lost and the other counts twice.
# Refuse such data, or note it and tell the two apart.
def test_two_questions_of_one_id_are_both_measured(measured):
    questions = (asking("q", "m0", text="first?"), asking("q", "m1", text="second?"))
    haystack = stack("h", *questions)
    system = Scripted(answers={(haystack.messages[0].text, "first?"): ["m0"]})
    with suppress(InputError):
        [found] = measured([data(haystack)], system)
        assert sorted(record.metrics["recall@1"] for record in found.records) == [0.0, 1.0]


# The same through a corpus whose queries repeat an id: nothing is noted.
def test_a_query_id_that_stands_twice_is_noted(tmp_path):
    queries = [{"id": "q1", "question": "Where does the otter live?"}, {"id": "q1", "question": "And the heron?"}]
    with suppress(InputError):
        data = one_set(made.write_corpus(tmp_path / "c", queries=queries).parent)
        assert "q1" in " ".join(oddity.where for oddity in data.oddities)


# Two haystacks of one id: the journal is keyed by (set, system, haystack id), so the later result replaces the other
# and is counted twice. Chats with one `sample_id`, pages of one name, a question id that stands twice.
def test_two_haystacks_of_one_id_are_both_measured(measured):
    first, second = (
        stack("h", asking("q", "m0"), texts=["one", "two"]),
        stack("h", asking("q", "m0"), texts=["three", "four"]),
    )
    with suppress(InputError):
        [found] = measured([data(first, second)], Scripted(answers={("one", "otter?"): ["m0"]}))
        assert found.summary.metrics["recall@1"] == 0.5


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
    with suppress(InputError):
        assert len({haystack.id for haystack in loaded(tmp_path, value).haystacks}) == 2


# A question that can be answered but has no usable gold (evidence missing or unknown) is no unanswerable question; it
# counts in `refused_unanswerable` today, as do all unjudged queries of a corpus.
def test_a_question_without_gold_is_not_counted_as_unanswerable(measured):
    [found] = measured([data(stack("h", asking("q", "m0"), asking("no gold")))], Scripted())
    assert "refused_unanswerable" not in found.summary.metrics


# Gold that names sessions only, beside messages as the finest level (no turn is marked): the question is measured
# on sessions, but `summarise` looks for "mrr", so it is missing from n and from its category.
def test_a_question_with_gold_sessions_only_is_counted(measured):
    questions = (asking("q", "m0", sessions=["s0"]), asking("r", sessions=["s1"], category="other"))
    [found] = measured([data(stack("h", *questions))], Scripted())
    assert found.summary.counts["session_mrr"] == 2
    assert found.summary.n == 2
    assert "other" in found.summary.by_category


# Nothing returned at all is a refusal too: a memory that answers a stranger with nothing did not keep the question.
# Today only the refusal rule's own verdict counts; `fast` is credited with no refusal, and with keeping everything.
def test_an_empty_answer_is_not_a_kept_question(measured):
    haystacks = [stack(name, asking("q", "m0", text="zyzzyva?")) for name in ("a", "b")]
    [found] = measured([data(*haystacks)], Product("fast", Settings(), "fast"))
    assert found.summary.metrics["refused_strangers"] == 1.0
    assert found.summary.metrics["kept"] == 0.0


# The ablation table subtracts the first run whose name lacks " without ": with a baseline in front that is the
# baseline, with two profiles it is the first profile, and with --off there is none at all.
def _ablated(said, system):
    table = said[said.index("What switching each part off does") :]
    [line] = [line for line in table.splitlines() if f" {system} " in line]
    return line.split(system)[1].split()[0]


@pytest.mark.parametrize(
    ("arguments", "base"),
    [
        (["--baseline", "bm25"], "hybrid"),
        (["--profile", "fast", "--profile", "hybrid"], "hybrid"),
        (["--off", "dense"], "hybrid without dense"),
    ],
)
def test_an_ablation_compares_with_the_same_system_whole(run, talks, arguments, base):
    said = run("--data", talks, "--ablate", "--out", "here", *arguments)
    report = figures(json.loads(Path("here/manifest.json").read_text()))
    [part] = [name for _, name in report if name.startswith("hybrid ") and name.endswith(" scope")]
    whole, without = (report[("talks", name)]["metrics"]["recall@10"] for name in (base, part))
    difference = without - whole
    assert _ablated(said, part) == f"{'+' if difference >= 0 else '−'}{abs(difference):.3f}".replace("0.", ".")


# `--off dense --ablate` calls a system without dense *and* scope "hybrid without scope".
def test_an_ablation_names_everything_that_is_off():
    systems = plan.systems(Settings(), off=["dense"], ablate=True).systems
    assert all("dense" in system.name for system in systems)


# `--profile fast --off lexical` measures `fast` unchanged under the name "fast without lexical".
def test_a_switch_that_cannot_be_thrown_is_refused():
    with pytest.raises(SettingsError):
        plan.systems(Settings(), profiles=["fast"], off=["lexical"])


# An interrupted run with --out is gone on with, whatever it measured: the journal knows names only, so other settings
# under the same system name, or other data under the same names, get the old figures.
def _interrupted(folder):
    (folder / "manifest.json").unlink()


def test_a_journal_of_other_settings_is_not_gone_on_with(run, talks):
    other = ("--set", "hybrid.strategies=lexical")
    whole = run("--data", talks, "--out", "whole", "--json", *other)
    run("--data", talks, "--out", "here")
    _interrupted(Path("here"))
    assert run("--data", talks, "--out", "here", "--json", *other)["runs"] == whole["runs"]


def test_a_journal_of_other_data_is_not_gone_on_with(run, talks):
    run("--data", talks, "--baseline", "bm25", "--out", "here")
    _interrupted(Path("here"))
    chats = [
        made.talk(f"talk-{topic}", topic) | {"qa": [made.asked("?", ["D2:3"])]}
        for topic in ("barge", "sledge", "canoe")
    ]
    made.write(talks / "talks" / "talks.json", chats)
    assert run("--data", talks, "--baseline", "bm25", "--out", "here", "--json")["runs"][0]["n"] == 3


# Before and after are means over each run's own questions, the interval is over those in common: a part beside
# the whole shows a difference that lies outside its own interval.
def test_a_difference_is_of_the_questions_in_common(measured, tmp_path):
    easy, hard = stack("easy", asking("q", "m0")), stack("hard", asking("q", "m0"))
    system = Scripted(answers={("text 0 of easy", "otter?"): ["m0"]})
    kept = []
    for name, sets in {"part": [data(easy)], "whole": [data(easy, hard)]}.items():
        runs = measured(sets, system, name)
        write_manifest(tmp_path / "out" / name, describe_run(runs, sets, Settings(), tuned=[], quick=False))
        kept.append(Kept.read(tmp_path / "out" / name))
    [row] = [row for row in compare(*kept) if row.metric == "recall@1"]
    assert row.after - row.before == 0.0  # nothing changed on the one question that both have


# One question in common, or one conversation that has the metric, says nothing about spread; the interval is a
# point, and the comparison calls it clear.
def test_one_question_is_no_clear_difference():
    before, after = Record("h", "q", "all", {"x": 0.0}), Record("h", "q", "all", {"x": 1.0})
    found = paired_interval([before], [after], "x")
    assert found is None or found[1] is None or found[1][0] < found[1][1]


def test_a_metric_of_one_conversation_among_several_has_the_spread_of_its_questions():
    records = [Record("h0", f"q{n}", "all", {"x": float(n % 2), "y": 1.0}) for n in range(10)]
    records.append(Record("h1", "r", "all", {"y": 0.0}))
    low, high = intervals(records).get("x", (0.0, 1.0))
    assert low < 0.5 < high


# Messages that had not been said yet take part in the spread of a mix and in the ranks of RRF (and in idf and average
# length), so the future changes the order of the past. One query word and texts of one length: BM25's order is fixed.
@pytest.mark.parametrize("name", ["mix", "rrf"])
def test_what_had_not_been_said_does_not_change_the_order(name):
    cosines = {
        "otter otter": 0.25,
        "hill cave": 0.7,
        "ice ice": 0.1,
        "kite kite": 1.0,
        "fog fog": 0.5,
        "rain rain": 0.5,
    }

    class Told(HashEmbedder):
        def embed_documents(self, texts):
            return np.array([[cosines[text], (1 - cosines[text] ** 2) ** 0.5] for text in texts], np.float32)

        def embed_query(self, text):
            return np.array([1.0, 0.0], np.float32)

    past, future = ["otter otter", "hill cave", "ice ice"], ["kite kite", "fog fog", "rain rain"]
    orders = []
    for texts in (past, past + future):
        with BASELINES[name].read(stack("h", texts=texts), Told()) as reader:
            orders.append(reader.rank(asking("q", visible=3)).ids)
    assert orders[0] == orders[1]


# `--quick` keeps the messages that the gold names, not the sessions: gold sessions without marked turns leave
# the gold without a word.
def test_a_quick_run_keeps_the_gold_sessions(measured):
    question = asking("q", "m0", sessions=["s0", "s299"], visible=600)
    [small] = plan.quick(data(stack("h", question, count=600))).haystacks
    assert small.questions[0].gold_sessions == {"s0", "s299"}


# Variants are built with `environ={}`, the product beside them is not: they differ in more than what is tuned.
def test_tuned_variants_differ_from_the_product_in_what_is_tuned_only(monkeypatch):
    monkeypatch.setenv("HOLDFAST_LEXICAL__K1", "0.5")
    asked = plan.systems(Settings.load(), tune={"hybrid.rank_by": ["fused"]})
    assert [system.settings.lexical.k1 for system in asked.systems] == [0.5, 0.5]


# Every system gets the one embedder of the command, so variants of `embedding.*` are all the same measurement.
def test_tuning_the_embedder_is_refused_or_done(run, talks, monkeypatch):
    used = []

    def remembered(embedding):
        used.append(embedding.embedder)
        return HashEmbedder()

    monkeypatch.setattr(eval_run, "_embedder", remembered)
    said = run("--data", talks, "--tune", "embedding.embedder=potion,minilm", code=None)
    assert "error: " in said or set(used) == {"potion", "minilm"}


# ------------------------------------------------------------------------------------ B. data that is lost silently


# Files of two schemas in one folder become two sets of one name: one hides the other in comparisons and reports.
def test_two_schemas_in_one_folder_are_two_sets(tmp_path):
    made.write(tmp_path / "mixed" / "talks.json", [made.talk()])
    made.write(tmp_path / "mixed" / "stacks.json", [made.plain_haystack()])
    names = [data.name for data in load_sets(tmp_path).sets]
    assert len(set(names)) == 2


# Names are told apart up to the first dot only: two personas become one, two splits get one name.
def test_files_whose_names_differ_after_a_dot_are_all_read(tmp_path):
    made.write(tmp_path / "p" / "ida.first.json", made.lighthouse())
    made.write(tmp_path / "p" / "ida.second.json", made.lighthouse())
    assert len(one_set(tmp_path).haystacks) == 2


def test_splits_whose_names_differ_after_a_dot_have_names_of_their_own(tmp_path):
    made.write(tmp_path / "s" / "stacks.dev.json", [made.plain_haystack("a")])
    made.write(tmp_path / "s" / "stacks.test.json", [made.plain_haystack("b")])
    assert len({data.name for data in load_sets(tmp_path).sets}) == 2


# Another file in the folder of a corpus is neither read nor listed as left out.
def test_a_set_beside_a_corpus_is_read_or_listed(tmp_path):
    made.write_corpus(tmp_path / "c")
    extra = made.write(tmp_path / "c" / "stacks.json", [made.plain_haystack()])
    found = load_sets(tmp_path)
    assert len(found.sets) == 2 or extra in found.unknown


# A set is called by its folder when one file is left of several, so `--only` renames it: two different splits get one
# name, and a run over one of them cannot be compared with a run over all.
def test_only_does_not_rename_a_set(tmp_path):
    made.write_everything(tmp_path)
    assert [data.name for data in load_sets(tmp_path, ["large"]).sets] == ["gardens/large"]


# `--only` by a file's name leaves out the files beside it, so the gold changes: index and errata are not applied.
def test_only_keeps_the_companions_of_what_it_names(tmp_path):
    made.write(tmp_path / "talks" / "dialogues.json", [made.talk()])
    made.write(tmp_path / "talks" / "audit.json", [made.erratum("locomo_0_qa0", ["D2:2"])])
    data = one_set(tmp_path, only=["dialogues"])
    assert data.haystacks[0].questions[0].gold == {"D2:2": 1}


# Two splits, each with an index: `beside` keeps the last index only.
def test_every_split_keeps_its_own_index(tmp_path):
    for split in ("dev", "test"):
        made.write(tmp_path / "s" / f"{split}.json", [made.plain_haystack(f"q-{split}")])
        row = {"question_id": f"q-{split}", "gold_turns": [["s-zither", 0]], "answer_in_gold_turns": True}
        made.write(tmp_path / "s" / f"{split}_index.jsonl", [row])
    answers = {data.name: data.haystacks[0].questions[0].answers for data in load_sets(tmp_path).sets}
    assert set(answers.values()) == {("a zither",)}


# An index without errata in its rows makes the audit beside it go unused, without a note.
def test_an_audit_is_used_beside_an_index(tmp_path):
    made.write(tmp_path / "talks" / "talks.json", [made.talk()])
    made.write(tmp_path / "talks" / "index.jsonl", made.talk_index("talk-1"))
    made.write(tmp_path / "talks" / "audit.json", [made.erratum("locomo_0_qa0", ["D2:2"])])
    assert one_set(tmp_path).haystacks[0].questions[0].gold == {"D2:2": 1}


# Evidence in which no id can be found is dropped without a note, and so is what an index lists as `invalid_evidence`.
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


# A probe that is no abstention and names no source counts as unanswerable, without a note.
def test_a_probe_without_sources_is_noted(tmp_path):
    chat = made.garden() | {"probing_questions": {"summarization": [made.probe("What happened?", [])]}}
    assert noted(loaded(tmp_path, [chat]), "no gold") == ["1 summarization 0"]


# "no gold" is noted where none was given, but not where all of it turned out not to exist: n shrinks unexplained.
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


# Judgements by split: the first file by name is taken, so `dev` wins over `test`, and nothing says so.
def test_of_several_splits_of_judgements_test_is_used_or_each_is_a_set(tmp_path):
    made.write_by_split(tmp_path / "b", dev="q1\td5\t1\n", test="q1\td0\t1\nq2\td1\t1\n", train="q1\td4\t1\n")
    sets = {data.name: data.haystacks[0].questions[0].gold for data in load_sets(tmp_path).sets}
    assert sets.get("b") == {"d0": 1} or {"d0": 1} in sets.values()


# … and the judgements that were used are reported as "no known schema, left out".
def test_judgements_that_were_used_are_not_listed_as_left_out(tmp_path):
    made.write_by_split(tmp_path / "b")
    assert load_sets(tmp_path).unknown == []


# A quotation mark at the start of an id opens a quoted cell for `csv`, which swallows the lines up to the next one.
def test_a_quotation_mark_in_an_id_is_a_character():
    text = 'q1\t"Hamlet"\t1\nq1\t"Macbeth\t1\nq2\td1\t1\n'
    assert read_qrels(text, Path("qrels.tsv")) == {"q1": {'"Hamlet"': 1, '"Macbeth': 1}, "q2": {"d1": 1}}


# The mark that Windows editors put at the start becomes part of the first id: its judgement is lost.
def test_a_byte_order_mark_does_not_spoil_the_first_judgement(tmp_path):
    queries = [{"id": "q1", "question": "Where does the otter live?"}, {"id": "q2", "question": "And the heron?"}]
    made.write_corpus(tmp_path / "c", queries=queries, qrels="\ufeffq1\td0\t1\nq2\td1\t1\n")
    assert one_set(tmp_path).haystacks[0].questions[0].gold == {"d0": 1}


def test_a_byte_order_mark_before_json_is_no_damage(tmp_path):
    made.write(tmp_path / "it" / "data.json", b"\xef\xbb\xbf" + json.dumps([made.plain_haystack()]).encode())
    assert one_set(tmp_path).haystacks[0].id == "q-one"


# The first line passes for a header whenever its last cell is no number, a broken judgement included.
def test_a_first_line_without_a_grade_is_not_a_header():
    with pytest.raises(InputError, match="line 1"):
        read_qrels("q1\td0\nq1\td1\t1\n", Path("qrels.tsv"))


# Two grades for one document: the last one counts, without a note.
def test_judgements_that_contradict_each_other_are_noted(tmp_path):
    data = one_set(made.write_corpus(tmp_path / "c", qrels="q1\td0\t2\nq1\td0\t0\nq1\td1\t1\nq2\td1\t1\n").parent)
    assert data.oddities


# JSON's null becomes the word "None": an empty document is remembered, an empty question is asked.
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


# Ids of documents are made text, ids of gold are not.
def test_gold_ids_may_be_numbers(tmp_path):
    corpus = [{"id": 1, "title": "", "text": "An otter."}]
    queries = [{"id": 7, "question": "Otter?", "gold_ids": [1]}]
    data = one_set(made.write_corpus(tmp_path / "c", corpus, queries, None).parent)
    assert data.haystacks[0].questions[0].gold == {"1": 1}


# An undated session of a replayed chat: its messages take the date of the one before, its question takes 2024.
def test_a_question_of_an_undated_session_is_asked_when_the_session_was(tmp_path):
    chat = made.persona(
        ("a", "2031-03-01 (Saturday)", [made.line("The oar is in the shed.")]),
        ("b", None, [made.query("Where is the oar?"), made.answer("In the shed.", "a")]),
    )
    [haystack] = loaded(tmp_path, chat).haystacks
    assert haystack.questions[0].at >= haystack.messages[0].at


# ------------------------------------------------------------------------------- C. errors that are no errors of ours


# Lines are parted at every character that Unicode calls a line end, also inside a JSON string.
def test_a_line_separator_inside_a_text_is_a_character(tmp_path):
    row = made.plain_haystack(question="Which\u2028instrument\x85did I buy?")
    data = loaded(tmp_path, [row], "data.jsonl")
    assert data.haystacks[0].questions[0].text == "Which\u2028instrument\x85did I buy?"


def test_a_line_separator_inside_an_id_survives_the_journal(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write(("set", "system", "page\u2028one"), [Record("page\u2028one", "q\x85", "c", {"x": 1.0})])
    assert list(journal.read()) == [("set", "system", "page\u2028one")]


# A journal cut inside a character of several bytes cannot be read at all.
def test_a_journal_cut_inside_a_character_goes_on(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    for name in ("one", "zwölf"):
        journal.write(("set", "system", name), [])
    written = journal.path.read_bytes()
    journal.path.write_bytes(written[: written.index("ö".encode()) + 1])
    assert list(journal.read()) == [("set", "system", "one")]


# Every line of a file of JSON lines is called line 1.
def test_a_damaged_line_is_named_by_its_number(tmp_path):
    whole = json.dumps(made.plain_haystack())
    (tmp_path / "data.jsonl").write_text(f"{whole}\n{whole}\n{whole[:40]}\n")
    with pytest.raises(InputError, match="line 3"):
        load_sets(tmp_path)


# Haystacks without a message: `max()` of nothing, or an index error, where "empty haystack, left out" was meant.
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


def test_a_corpus_without_documents_is_an_error_or_left_out(tmp_path, run):
    made.write_corpus(tmp_path / "data" / "c", corpus=[{"id": "d0", "title": "", "text": ""}])
    made.write(tmp_path / "data" / "s" / "stacks.json", [made.plain_haystack()])
    report = run("--data", "data", "--baseline", "bm25", "--json")
    assert {row["set"] for row in report["runs"]} == {"s"}


# A file that has the keys of its schema, but not their shape, ends in a traceback.
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
        [made.plain_haystack(answer_session_ids=None)],
        [made.talk() | {"conversation": []}],
        [made.talk() | {"qa": None}],
        [made.garden() | {"probing_questions": []}],
        [made.mayor() | {"paras": None}],
        made.lighthouse() | {"dialogues": None},
    ],
)
def test_a_file_of_the_wrong_shape_is_an_error_of_ours(tmp_path, value):
    made.write(tmp_path / "it" / "data.json", value)
    try:
        load_sets(tmp_path)
    except HoldfastError as error:
        assert "data.json" in str(error)  # noqa: PT017 - reading it after all would do as well


@pytest.mark.parametrize("fields", [{"gold_ids": None}, {"answer_aliases": None, "answer_in_gold": True}])
def test_a_null_list_of_a_query_is_an_empty_one(tmp_path, fields):
    queries = [made.QUERIES[0] | fields, made.QUERIES[1]]
    assert one_set(made.write_corpus(tmp_path / "c", queries=queries, qrels=None).parent).haystacks


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
        read_qrels(f"q1\td0\t1\nq1\td1\t{grade}\n", Path("qrels.tsv"))


# A session id that stands twice is handled in haystacks, and stops the run in replayed chats.
def test_a_replayed_session_id_that_stands_twice_keeps_both_parts(tmp_path):
    chat = made.persona(
        ("twin", "2024-03-01 (Friday)", [made.line("one")]),
        ("twin", "2024-03-02 (Saturday)", [made.line("two")]),
    )
    data = loaded(tmp_path, chat)
    assert len(data.haystacks[0].messages) == 2
    assert noted(data, "duplicate session id")


# A haystack in which BM25 finds no word (another script, or function words only) breaks the library.
@pytest.mark.parametrize(
    ("name", "texts"),
    [("bm25", ["мама мыла раму", "кошка спит"]), ("bm25", ["the of", "and"]), ("bm25-stemmed", ["a", "the"])],
)
def test_a_haystack_without_known_words_is_ranked_as_it_stands(name, texts):
    with BASELINES[name].read(stack("h", texts=texts), HashEmbedder()) as reader:
        assert reader.rank(asking("q", text="кошка", visible=2)).ids == ("m0", "m1")


# `--set` and `--tune` hand text to settings that want a number or a truth value, so only settings of text can be set.
@pytest.mark.parametrize(
    "option", ["lexical.b=0.35", "refusal.enabled=false", "hybrid.max_results=5", "hybrid.mix.dense=0.5"]
)
def test_any_setting_can_be_set(run, talks, option):
    key, _, value = option.partition("=")
    assert run("--data", talks, "--set", option, "--json")["settings"][key] == json.loads(value)


def test_a_number_can_be_tuned(run, talks):
    [tuned] = run("--data", talks, "--tune", "lexical.b=0.35,0.75", "--json")["tuned"]
    assert sum(tuned["chosen"].values()) == 3


# Folders whose manifest.json is someone else's are removed with all they hold. (On a file system that does not tell
# cases apart, MANIFEST.json will do.)
def test_a_folder_of_other_things_is_not_removed(run, talks, tmp_path):
    mine = tmp_path / "precious"
    made.write(mine / "manifest.json", {"name": "a web page"})
    made.write(mine / "thesis.txt", "years of work")
    run("--data", talks, "--baseline", "bm25", "--out", mine, code=None)
    assert (mine / "thesis.txt").exists()


# The command line goes into manifest and report as it was given, a key included.
def test_a_secret_on_the_command_line_is_not_written_down(run, talks):
    run("--data", talks, "--baseline", "bm25", "--set", "embedding.api_key=sesame-open", "--out", "here")
    assert "sesame-open" not in Path("here/manifest.json").read_text()
    assert "sesame-open" not in Path("here/report.html").read_text()


# The page has a line "embedding space" and the manifest never a value for it.
def test_the_manifest_names_the_embedding_space(run, talks):
    assert run("--data", talks, "--baseline", "dense", "--json").get("space") == HashEmbedder().space


# The terminal's library reads names as markup: what stands in brackets vanishes from the table.
def test_brackets_in_a_name_are_shown(run, tmp_path):
    made.write(tmp_path / "data" / "talks[v2]" / "talks.json", [made.talk()])
    said = run("--data", "data", "--baseline", "bm25")
    assert "talks[v2]" in said[: said.index("Oddities")]


def test_a_number_of_workers_below_zero_is_refused(run, talks):
    run("--data", talks, "--baseline", "bm25", "--workers", "-1", code=2)


# What the memory refuses (a NUL, a lone surrogate, a megabyte) stops the run half way, as "message 0" of no one knows
# which conversation.
def test_a_message_that_the_memory_refuses_is_named(run, tmp_path):
    row = made.haystack("q-odd", [("s", "2023/05/20 (Sat) 02:21", [made.turn("nul \0", has_answer=True)])], ["s"])
    made.write(tmp_path / "data" / "s" / "stacks.json", [made.plain_haystack(), row])
    assert "q-odd" in run("--data", "data", code=None)


@pytest.mark.parametrize("content", [b'{"runs": 3}', b'{"runs": [{"set": "x"}]}', b"\xff\xfe"])
def test_what_is_no_manifest_is_refused_as_such(run, tmp_path, content):
    (tmp_path / "odd.json").write_bytes(content)
    said = run("--compare", "odd.json", "odd.json", code=2)
    assert "odd.json is not a manifest" in said


# A cache with one damaged byte: most are noticed, but a damaged table of contents raises NotImplementedError or
# RuntimeError, and numpy leaves the file open (a ResourceWarning).
def test_a_cache_with_any_damaged_byte_is_an_empty_one_or_the_same(tmp_path):
    file = tmp_path / "cache.npz"
    with CachedEmbedder(lambda: HashEmbedder(4), "space", 4, file) as embedder:
        rows = embedder.embed_documents(["a boat", "a kite"])
    whole = file.read_bytes()
    for place in range(0, len(whole), 2):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        file.write_bytes(damaged)
        again = CachedEmbedder(lambda: HashEmbedder(4), "space", 4, file)
        assert np.array_equal(again.embed_documents(["a boat", "a kite"]), rows), place
