"""Asking every question of every system: what is counted where, what is never asked twice, what may be seen."""

import json
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from holdfast.eval import run
from holdfast.eval.data import DataSet, DatasetMessage, GoldQuestion, Haystack, Prompt, Ranking
from holdfast.eval.metrics import STRANGER
from holdfast.eval.report import Journal, StoredRun, compare, describe_run, write_manifest
from holdfast.eval.run import evaluate
from holdfast.eval.systems import Product
from holdfast.settings import EmbeddingSettings, Settings
from holdfast.testing.contracts import HashEmbedder

AT = datetime(2024, 3, 5, tzinfo=UTC)
POTION = EmbeddingSettings(embedder="potion")


@pytest.fixture(autouse=True)
def _no_model(monkeypatch):
    monkeypatch.setattr(run, "_build_embedder", lambda embedding: HashEmbedder())


@dataclass
class Scripted:
    """A system that gives the answers it was told, and remembers what it was asked."""

    name: str = "scripted"
    answers: Mapping[str, list[str]] = field(default_factory=dict)
    refuses: frozenset[str] = frozenset()
    kept: Mapping[str, set[str]] | None = None
    sessions: Mapping[str, list[str]] = field(default_factory=dict)
    fails_on: str = ""
    asked: list[tuple[str, str, int]] = field(default_factory=list)

    @contextmanager
    def read(self, haystack, embedder):
        yield Scripted.Reader(self, haystack)

    @dataclass
    class Reader:
        system: "Scripted"
        haystack: Haystack
        refused: Mapping[str, str] = field(default_factory=dict)

        def rank(self, question):
            if self.haystack.id == self.system.fails_on:
                raise RuntimeError("the lights went out")
            self.system.asked.append((self.haystack.id, question.id, question.visible))
            found, sessions = (given.get(question.id, ()) for given in (self.system.answers, self.system.sessions))
            return Ranking(tuple(found), question.id in self.system.refuses, tuple(sessions))

        def prompts(self, question, budgets):
            if self.system.kept is None:
                return {}
            kept = self.system.kept.get(question.id, ())
            by_budget = kept if isinstance(kept, dict) else dict.fromkeys(budgets, kept)
            return {budget: Prompt("The answer is Teal.", frozenset(by_budget[budget])) for budget in budgets}


def stack(name, *questions, level="message", count=6):
    """Build a haystack of sessions with two messages each."""
    messages = tuple(
        DatasetMessage(f"m{place}", f"s{place // 2}", f"text {place} of {name}", AT + timedelta(hours=place))
        for place in range(count)
    )
    return Haystack(name, messages, questions, level=level)


def asking(name, *gold, sessions=(), visible=6, category="all", **fields):
    return GoldQuestion(
        name, f"text of {name}?", category, AT + timedelta(days=1), visible, dict.fromkeys(gold, 1),
        frozenset(sessions), **fields,
    )  # fmt: skip


def data(*haystacks, name="set", chat=True):
    return DataSet(name, "x", chat, haystacks, {"file": "0" * 64})


def measured(tmp_path, sets, *systems):
    return evaluate(sets, systems, POTION, tmp_path / "out" / "run")


def metrics_of(found, question):
    [record] = [record for record in found.records if record.question == question]
    return record.metrics


# ------------------------------------------------------------------------------------------- what is counted


def test_both_levels_are_measured_from_one_ranking(tmp_path):
    question = asking("q", "m1", "m4", sessions=["s0", "s2"])
    [found] = measured(tmp_path, [data(stack("h", question))], Scripted(answers={"q": ["m0", "m3", "m1", "m5"]}))
    values = metrics_of(found, "q")
    assert (values["recall@5"], values["hit@1"], values["mrr"]) == (0.5, 0.0, 1 / 3)
    assert (values["session_hit@1"], values["session_recall_all@5"]) == (1.0, 1.0)
    assert found.records[0].detail == {"ranks": {"m1": 3}}
    assert found.summary["n"] == 1


def test_where_gold_names_sessions_the_plain_metrics_are_of_sessions(tmp_path):
    question = asking("q", sessions=["s1"])
    haystack = stack("h", question, level="session")
    [found] = measured(tmp_path, [data(haystack)], Scripted(answers={"q": ["m0", "m1", "m3"]}))
    values = metrics_of(found, "q")
    assert (values["recall@5"], values["mrr"], values["hit@1"]) == (1.0, 0.5, 0.0)
    assert values["session_mrr"] == 0.5
    assert found.summary["n"] == 1


def test_a_system_may_rank_sessions_by_themselves(tmp_path):
    question = asking("q", "m4", sessions=["s2"])
    system = Scripted(answers={"q": ["m0", "m4"]}, sessions={"q": ["s2", "s0"]})
    [found] = measured(tmp_path, [data(stack("h", question))], system)
    values = metrics_of(found, "q")
    assert (values["session_hit@1"], values["hit@1"]) == (1.0, 0.0)


def test_what_fits_a_budget_is_measured_for_every_system(tmp_path):
    long = DatasetMessage("m0", "s0", "word " * 1_000, AT)  # 1,250 tokens at four characters each
    short = DatasetMessage("m1", "s0", "a short answer", AT)
    haystack = Haystack("h", (long, short), (asking("q", "m1", visible=2), asking("r", "m0", visible=2)))
    [found] = measured(tmp_path, [data(haystack)], Scripted(answers={"q": ["m0", "m1"], "r": ["m0"]}))
    assert [metrics_of(found, "q")[f"packed@{size}"] for size in ("1k", "2k")] == [1.0, 1.0]
    assert [metrics_of(found, "r")[f"packed@{size}"] for size in ("1k", "2k")] == [0.0, 1.0]


def test_a_question_that_is_unanswerable_counts_for_refusal_only(tmp_path):
    questions = (asking("q", "m0"), asking("never", answerable=False), asking("abs", "m1", answerable=False))
    system = Scripted(answers={"q": ["m0"], "abs": ["m1"]}, refuses=frozenset({"never"}))
    [found] = measured(tmp_path, [data(stack("h", *questions))], system)
    assert metrics_of(found, "never") == {"refused_unanswerable": 1.0}
    assert metrics_of(found, "abs") == {"refused_unanswerable": 0.0}
    assert found.summary["n"] == 1
    assert found.summary["metrics"]["refused_unanswerable"] == 0.5
    assert found.summary["metrics"]["recall@1"] == 1.0


def test_a_refused_question_is_not_kept_and_finds_nothing(tmp_path):
    questions = (asking("kept", "m0"), asking("lost", "m0"))
    system = Scripted(answers={"kept": ["m0"]}, refuses=frozenset({"lost"}))
    [found] = measured(tmp_path, [data(stack("h", *questions))], system)
    assert found.summary["metrics"]["kept"] == 0.5
    assert found.summary["metrics"]["recall@10"] == 0.5


def test_questions_of_one_conversation_are_asked_of_another(tmp_path):
    system = Scripted(answers={name: ["m0"] for name in "abc"}, refuses=frozenset({"a"}))
    haystacks = [stack(f"h-{name}", asking(name, "m0", visible=2)) for name in "abc"]
    [found] = measured(tmp_path, [data(*haystacks)], system)
    strangers = {(r.haystack, r.question): r.metrics for r in found.records if r.category == STRANGER}
    assert strangers == {
        ("h-a", "stranger c"): {"refused_strangers": 0.0},
        ("h-b", "stranger a"): {"refused_strangers": 1.0},
        ("h-c", "stranger b"): {"refused_strangers": 0.0},
    }
    assert found.summary["n"] == 3
    assert found.summary["counts"]["recall@10"] == 3
    assert STRANGER not in found.summary["by_category"]
    # A stranger may see everything; a question of the conversation sees what had been said by then.
    assert ("h-b", "a", 6) in system.asked
    assert ("h-b", "b", 2) in system.asked


@pytest.mark.parametrize(
    "sets",
    [
        data(stack("a", asking("a", "m0")), stack("b", asking("b", "m0")), chat=False),
        data(stack("a", asking("a", "m0"))),
    ],
)
def test_strangers_belong_to_sets_of_several_conversations(tmp_path, sets):
    [found] = measured(tmp_path, [sets], Scripted())
    assert "refused_strangers" not in found.summary["metrics"]


def test_time_only_moves_forward(tmp_path):
    questions = (asking("late", "m0", visible=6), asking("early", "m0", visible=2), asking("middle", "m0", visible=4))
    system = Scripted()
    [found] = measured(tmp_path, [data(stack("h", *questions))], system)
    assert [name for _, name, _ in system.asked] == ["early", "middle", "late"]
    assert [record.question for record in found.records] == ["late", "early", "middle"]


def test_what_a_larger_prompt_loses_is_counted_by_step_and_by_question(tmp_path):
    questions = (asking("q", "m0", "m1"), asking("r", "m2"), asking("s", sessions=["s0"]))
    shown = {8_000: {"m0"}, 4_000: {"m1"}, 2_000: {"m0", "m1"}, 1_000: {"m0"}, 500: {"m0"}}
    system = Scripted(kept={"q": shown, "r": {"m2"}})
    [found] = measured(tmp_path, [data(stack("h", *questions))], system)
    values = metrics_of(found, "q")
    assert (values["lost_by_growing"], values["ever_lost_by_growing"]) == (2 / 4, 1.0)
    assert metrics_of(found, "r")["lost_by_growing"] == 0.0
    assert "lost_by_growing" not in metrics_of(found, "s")
    assert found.summary["metrics"]["lost_by_growing"] == 1 / 4  # of the eight pairs of question and step, two
    assert found.summary["metrics"]["ever_lost_by_growing"] == 0.5


def test_survival_is_measured_where_a_system_can_assemble(tmp_path):
    questions = (asking("q", "m0", "m1", answers=("teal",)), asking("r", "m2"), asking("s", sessions=["s0"]))
    system = Scripted(kept={"q": {"m0"}, "r": {"m2"}})
    [found] = measured(tmp_path, [data(stack("h", *questions))], system)
    values = metrics_of(found, "q")
    assert (values["survival@1k"], values["survived_share@1k"], values["answer_shown@8k"]) == (0.0, 0.5, 1.0)
    assert metrics_of(found, "r")["survival@4k"] == 1.0
    assert "answer_shown@4k" not in metrics_of(found, "r")
    assert not any(name.startswith("survi") for name in metrics_of(found, "s"))
    assert found.summary["counts"]["survival@2k"] == 2
    assert found.summary["counts"]["answer_shown@2k"] == 1


def test_sets_and_systems_are_reported_each_in_the_order_given(tmp_path):
    sets = [data(stack("h", asking("q", "m0")), name="B"), data(stack("h", asking("q", "m1")), name="A")]
    right, wrong = Scripted("right", {"q": ["m0"]}), Scripted("wrong", {"q": ["m1"]})
    found = measured(tmp_path, sets, right, wrong)
    assert [(each.set, each.system, each.summary["metrics"]["recall@1"]) for each in found] == [
        ("B", "right", 1.0), ("B", "wrong", 0.0), ("A", "right", 0.0), ("A", "wrong", 1.0),
    ]  # fmt: skip


def test_a_haystack_without_questions_is_no_obstacle(tmp_path):
    [found] = measured(
        tmp_path, [data(stack("empty"), stack("h", asking("q", "m0")))], Scripted(answers={"q": ["m0"]})
    )
    assert (found.summary["n"], found.summary["metrics"]["recall@1"]) == (1, 1.0)


# ------------------------------------------------------------------------------------------------- journal


def journal_of(tmp_path):
    return tmp_path / "out" / "run" / "journal.jsonl"


HAYSTACKS = [stack(f"h{number}", asking(f"q{number}", "m0"), count=6 + number) for number in range(3)]


def test_a_finished_haystack_is_not_asked_again(tmp_path):
    first = measured(tmp_path, [data(*HAYSTACKS)], Scripted(answers={"q1": ["m0"]}))
    system = Scripted()
    assert measured(tmp_path, [data(*HAYSTACKS)], system) == first
    assert system.asked == []


def test_a_run_that_was_stopped_goes_on_where_it_stood(tmp_path):
    stopped = Scripted(answers={"q1": ["m0"]}, fails_on="h0")  # the shortest haystack comes last
    with pytest.raises(RuntimeError, match="the lights went out"):
        measured(tmp_path, [data(*HAYSTACKS)], stopped)
    again = Scripted(answers={"q1": ["m0"]})
    found = measured(tmp_path, [data(*HAYSTACKS)], again)
    assert {haystack for haystack, _, _ in again.asked} == {"h0"}
    whole = evaluate([data(*HAYSTACKS)], [Scripted(answers={"q1": ["m0"]})], POTION, tmp_path / "other" / "run")
    assert found == whole


@pytest.mark.parametrize("cut", [1, 2, 20])
def test_a_line_cut_short_is_done_again_and_the_others_are_not(tmp_path, cut):
    first = measured(tmp_path, [data(*HAYSTACKS)], Scripted())
    journal = journal_of(tmp_path)
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-cut])
    system = Scripted()
    assert measured(tmp_path, [data(*HAYSTACKS)], system) == first
    last = json.loads(whole.splitlines()[-1])["key"][2]
    assert {haystack for haystack, _, _ in system.asked} == {last}
    assert journal.read_bytes() == whole


def test_a_further_system_or_set_is_all_that_is_measured(tmp_path):
    old = Scripted("old")
    measured(tmp_path, [data(*HAYSTACKS)], old)
    old.asked.clear()
    new = Scripted("new")
    found = measured(tmp_path, [data(*HAYSTACKS), data(*HAYSTACKS, name="more")], old, new)
    assert len(new.asked) == 2 * 6
    assert len(old.asked) == 6
    assert [(each.set, each.system) for each in found] == [
        ("set", "old"), ("set", "new"), ("more", "old"), ("more", "new"),
    ]  # fmt: skip


def test_the_order_of_the_journal_does_not_change_the_figures(tmp_path):
    first = measured(tmp_path, [data(*HAYSTACKS)], Scripted(answers={"q1": ["m0"]}))
    lines = journal_of(tmp_path).read_text().splitlines(keepends=True)
    journal_of(tmp_path).write_text("".join(reversed(lines)))
    assert measured(tmp_path, [data(*HAYSTACKS)], Scripted()) == first


def test_progress_is_told_for_every_haystack(tmp_path):
    told = []
    evaluate([data(*HAYSTACKS)], [Scripted()], POTION, tmp_path / "run", progress=lambda *done: told.append(done))
    assert told == [("set", 1)] * 3


def test_a_journal_that_is_not_there_is_empty(tmp_path):
    assert Journal(tmp_path / "nothing.jsonl").read() == {}


def test_embeddings_are_kept_by_embedding_space(tmp_path, monkeypatch):
    settings = Settings()
    measured(tmp_path, [data(*HAYSTACKS)], Product("p", settings))
    folders = list((tmp_path / "out" / "vectors").iterdir())
    assert len(folders) == 1
    assert len(list(folders[0].iterdir())) == 3
    monkeypatch.setattr(run, "_build_embedder", lambda embedding: HashEmbedder(32))
    journal_of(tmp_path).unlink()
    measured(tmp_path, [data(*HAYSTACKS)], Product("p", settings))
    assert len(list((tmp_path / "out" / "vectors").iterdir())) == 2


# ------------------------------------------------------------------------------------------- the product itself


def told(*texts, sessions=None):
    sessions = sessions or [f"s{place}" for place in range(len(texts))]
    messages = tuple(
        DatasetMessage(f"m{place}", session, text, AT + timedelta(minutes=place))
        for place, (text, session) in enumerate(zip(texts, sessions, strict=True))
    )
    return Haystack("h", messages, ())


def ask(reader, text, visible):
    return reader.rank(GoldQuestion("q", text, "all", AT + timedelta(days=1), visible))


def test_the_product_sees_only_what_had_been_said():
    haystack = told("The otter sleeps here", "A kite flew by", "The otter moved away")
    with Product("p", Settings(), "fast").read(haystack, HashEmbedder()) as reader:
        assert ask(reader, "otter", 0).ids == ()
        assert set(ask(reader, "otter", 2).ids) == {"m0"}
        assert set(ask(reader, "otter", 3).ids) == {"m0", "m2"}


def test_the_same_words_said_three_times_are_three_messages():
    haystack = told(*["The otter sleeps here"] * 3, sessions=["a", "a", "b"])
    with Product("p", Settings(), "hybrid").read(haystack, HashEmbedder()) as reader:
        assert sorted(ask(reader, "otter sleeps", 3).ids) == ["m0", "m1", "m2"]


def test_copies_that_the_product_shows_as_one_hit_are_all_ranked():
    # Of one moment, and in the same words: the product folds them into one hit.
    messages = tuple(DatasetMessage(key, key, "The otter sleeps here.", AT, "document") for key in ("a", "b"))
    with Product("p", Settings(), "fast").read(Haystack("h", messages, ()), HashEmbedder()) as reader:
        assert sorted(ask(reader, "otter", 2).ids) == ["a", "b"]


def test_a_hit_that_is_no_message_finds_its_session_all_the_same():
    haystack = told("The otter sleeps here", "The otter woke up", sessions=["a", "b"])
    with Product("p", Settings(), "hybrid").read(haystack, HashEmbedder()) as reader:
        assert ask(reader, "otter sleeps", 2).sessions == ()
        reader.message_of.popitem()  # as a summary would be, which a recipe may make by itself
        assert ask(reader, "otter sleeps", 2).sessions == ("a", "b")


def test_documents_are_found_by_their_titles():
    messages = (
        DatasetMessage("a", "a", "", AT, "document", title="The heron"),
        DatasetMessage("b", "b", "It fishes at dawn.", AT, "document", title="Otters"),
    )
    with Product("p", Settings(), "fast").read(Haystack("h", messages, ()), HashEmbedder()) as reader:
        assert ask(reader, "heron", 2).ids == ("a",)
        assert ask(reader, "otters", 2).ids == ("b",)


def test_a_refusal_of_the_product_is_told():
    class Vague(HashEmbedder):
        """Sees a little of everything in everything: cosines of .2 between any two texts."""

        def embed_documents(self, texts):
            return np.tile(np.array([[1.0] + [0.0] * 63], np.float32), (len(texts), 1))

        def embed_query(self, text):
            return np.array([0.2, 0.96**0.5] + [0.0] * 62, np.float32)

    with Product("p", Settings(), "hybrid").read(told("The otter sleeps here"), Vague()) as reader:
        assert ask(reader, "quantum chromodynamics", 1) == Ranking((), refused=True)
        assert ask(reader, "Where does the otter sleep?", 1) == Ranking(("m0",), refused=False)


def test_a_switched_off_strategy_changes_what_is_found():
    found = {}
    for name, settings in {
        "words": Settings.load({"hybrid.strategies": "lexical"}, environ={}),
        "both": Settings(),
    }.items():
        with Product(name, settings).read(told("The otter sleeps", "A kite flies"), HashEmbedder(2)) as reader:
            found[name] = ask(reader, "otter", 2).ids
    assert found["words"] == ("m0",)
    assert set(found["both"]) == {"m0", "m1"}


# --------------------------------------------------------------------------------------- manifest, comparison


def written(tmp_path, name, system, sets):
    folder = tmp_path / name
    runs = evaluate(sets, [system], POTION, folder)
    write_manifest(folder, describe_run(runs, sets, Settings(), tuned=[], quick=False))
    return StoredRun.read(folder)


def test_two_runs_are_compared_question_by_question(tmp_path):
    before = written(tmp_path, "before", Scripted(answers={"q0": ["m0"]}), [data(*HAYSTACKS)])
    after = written(tmp_path, "after", Scripted(answers={f"q{n}": ["m0"] for n in range(3)}), [data(*HAYSTACKS)])
    rows = {row.metric: row for row in compare(before, after).differences}
    recall = rows["recall@10"]
    assert (recall.before, recall.after, recall.questions) == (pytest.approx(1 / 3), 1.0, 3)
    assert recall.ci == (0.0, 1.0)
    assert not recall.clear
    assert recall.to_json()["difference"] == pytest.approx(2 / 3)
    assert rows["refused_strangers"].ci == (-1.0, 0.0)


def test_a_difference_on_every_question_is_clear(tmp_path):
    before = written(tmp_path, "before", Scripted(answers={f"q{n}": ["m5"] for n in range(3)}), [data(*HAYSTACKS)])
    after = written(tmp_path, "after", Scripted(answers={f"q{n}": ["m0"] for n in range(3)}), [data(*HAYSTACKS)])
    rows = {row.metric: row for row in compare(before, after).differences}
    assert rows["recall@10"].clear
    assert not rows["kept"].clear
    assert {row.metric: row.clear for row in compare(after, before).differences}["recall@10"]


def test_single_systems_of_different_names_are_compared_and_others_are_not(tmp_path):
    one = written(tmp_path, "one", Scripted("a"), [data(*HAYSTACKS)])
    other = written(tmp_path, "other", Scripted("b"), [data(*HAYSTACKS)])
    assert {(row.set, row.system) for row in compare(one, other).differences} == {("set", "b")}
    elsewhere = written(tmp_path, "elsewhere", Scripted("b"), [data(*HAYSTACKS, name="another")])
    with pytest.raises(ValueError, match="no set and system in common"):
        compare(one, elsewhere)


def test_a_manifest_without_its_journal_still_compares_the_means(tmp_path):
    before = written(tmp_path, "before", Scripted(), [data(*HAYSTACKS)])
    after = written(tmp_path, "after", Scripted(answers={"q0": ["m0"]}), [data(*HAYSTACKS)])
    (tmp_path / "after" / "journal.jsonl").unlink()
    bare = StoredRun.read(tmp_path / "after" / "manifest.json")
    rows = {row.metric: row for row in compare(before, bare).differences}
    assert rows["recall@10"].after == after.manifest["runs"][0]["metrics"]["recall@10"] == pytest.approx(1 / 3)
    assert rows["recall@10"].ci is None
    assert not rows["recall@10"].clear


def test_a_question_without_gold_is_not_counted_as_unanswerable(tmp_path):
    [found] = measured(tmp_path, [data(stack("h", asking("q", "m0"), asking("no gold", category="odd")))], Scripted())
    assert "refused_unanswerable" not in found.summary["metrics"]
    assert (found.summary["n"], found.summary["skipped"]) == (1, {"odd": 1})


def test_a_question_with_gold_sessions_only_is_counted(tmp_path):
    questions = (asking("q", "m0", sessions=["s0"]), asking("r", sessions=["s1"], category="other"))
    [found] = measured(tmp_path, [data(stack("h", *questions))], Scripted())
    assert found.summary["counts"]["session_mrr"] == 2
    assert found.summary["n"] == 2
    assert "other" in found.summary["by_category"]


def test_an_empty_answer_is_not_a_kept_question(tmp_path):
    question = replace(asking("q", "m0"), text="zyzzyva?")
    haystacks = [stack(name, question) for name in ("a", "b")]
    [found] = measured(tmp_path, [data(*haystacks)], Product("fast", Settings(), "fast"))
    assert found.summary["metrics"]["refused_strangers"] == 1.0
    assert found.summary["metrics"]["kept"] == 0.0


def test_a_difference_is_of_the_questions_in_common(tmp_path):
    easy, hard = stack("easy", asking("q", "m0")), stack("hard", asking("r", "m0"))
    before = written(tmp_path, "part", Scripted(answers={"q": ["m0"]}), [data(easy)])
    after = written(tmp_path, "whole", Scripted(answers={"q": ["m0"]}), [data(easy, hard)])
    [row] = [row for row in compare(before, after).differences if row.metric == "recall@1"]
    assert (row.before, row.after, row.questions) == (1.0, 1.0, 1)  # nothing changed on the one that both have
    assert row.ci is None
    assert after.manifest["runs"][0]["metrics"]["recall@1"] == 0.5


def test_what_was_not_compared_is_listed(tmp_path):
    extra = data(stack("h", asking("q", "m0")), name="extra")
    before = written(tmp_path, "before", Scripted("a"), [data(*HAYSTACKS), extra])
    after = written(tmp_path, "after", Scripted("b", kept={}), [data(*HAYSTACKS), replace(extra, name="other")])
    said = compare(before, after).remarks
    assert said[:2] == [
        "extra, a: only in the earlier run, not compared",
        "other, b: only in the later run, not compared",
    ]
    [metrics] = said[2:]
    assert metrics.startswith("set, b: in one of the runs only, not compared: ever_lost_by_growing, ")
    assert compare(before, before).remarks == []


def test_runs_over_different_data_are_remarked_upon(tmp_path):
    changed = replace(data(*HAYSTACKS), checksums={"file": "1" * 64})
    before = written(tmp_path, "before", Scripted(), [data(*HAYSTACKS)])
    after = written(tmp_path, "after", Scripted(), [changed])
    after.manifest["as_cited"] = after.manifest["quick"] = True
    assert compare(before, after).remarks == [
        "set: the files differ between the runs; a difference may be one of the data",
        "one of the runs is over a part of each set, the other is not",
        "one of the runs is over the gold as published, the other is not",
    ]
