"""`holdfast eval`, from a folder of data to the table, the manifest and the page, and every way to ask wrongly."""

import gzip
import json
import re
from pathlib import Path

import pytest

import evaldata as made
from commands import command_line, holdfast
from holdfast.cli import evaluation
from holdfast.eval import run as eval_run
from holdfast.eval import systems
from holdfast.eval.systems import BASELINES, SWITCHES
from holdfast.testing.contracts import HashEmbedder

# Proofs are no part of hybrid.
# What the profile does without.
ABSENT = {"thinkingdb-symbolic", "proof_bonus", "hdc-vsa"}

POTION = ("--set", "embedding.embedder=potion")


@pytest.fixture
def data(tmp_path):
    """Write every schema."""
    return made.write_everything(tmp_path / "data")


@pytest.fixture
def talks(tmp_path):
    """Write three conversations."""
    chats = [made.talk(f"talk-{topic}", topic) for topic in ("barge", "sledge", "canoe")]
    made.write(tmp_path / "data" / "talks" / "talks.json", chats)
    return tmp_path / "data"


@pytest.fixture
def one_talk(tmp_path):
    """Write one conversation of two questions: enough where some forty systems are measured on it."""
    talk = made.talk()
    made.write(tmp_path / "data" / "talks" / "talks.json", [{**talk, "qa": talk["qa"][:2]}])
    return tmp_path / "data"


@pytest.fixture
def model(monkeypatch):
    """Stand in for the model, and ask for two budgets of four: words are enough for these tests."""
    monkeypatch.setattr(eval_run, "BUDGETS", {1_000: "1k", 8_000: "8k"})
    monkeypatch.setattr(eval_run, "_build_embedder", lambda embedding: HashEmbedder())


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs `holdfast eval` in an empty folder."""
    command = command_line(tmp_path, monkeypatch, COLUMNS="160")

    def measured(*arguments, code=0):
        given = [str(argument) for argument in arguments]
        if "--workers" not in given and "--compare" not in given:
            given += ["--workers", "1"]
        return command("eval", *given, code=code)

    return measured


def figures(report):
    """Return what was measured, by set and system."""
    return {(row["set"], row["system"]): row for row in report["runs"]}


def folder_of(said):
    """Return the folder that a run says it wrote to."""
    return Path(re.search(r"manifest (\S+manifest\.json)", said)[1]).parent


# -------------------------------------------------------------------------------------------------- drawing


def test_a_folder_of_data_becomes_a_table_a_manifest_and_a_page(run, data, model):
    said = run("--data", data)
    lines = [line.split() for line in said.splitlines()]
    measured = {(line[0], line[1]): line[2] for line in lines if len(line) > 2 and line[1] == "hybrid"}
    assert measured == {
        ("animals", "hybrid"): "2", ("beasts", "hybrid"): "2", ("gardens/large", "hybrid"): "2",
        ("gardens/small", "hybrid"): "4", ("lives", "hybrid"): "6", ("pages", "hybrid"): "4",
        ("projects", "hybrid"): "4", ("stacks", "hybrid"): "2", ("talks", "hybrid"): "18",
    }  # fmt: skip
    assert "recall@10" in said
    assert "notes.json: no known schema, left out" in said
    assert "projects: empty message × 2" in said
    folder = folder_of(said)
    assert (folder / "manifest.json").is_file()
    assert (folder / "report.md").is_file()


def test_json_has_the_promised_shape_and_accounts_for_every_question_and_file_as_the_manifest_does(run, data, model):
    report = run("--data", data, "--out", "here", "--json")
    assert len(report["runs"]) == 9
    for row in report["runs"]:
        assert {"set", "system", "n", "metrics", "ci", "by_category"} <= set(row)
        assert {"recall@10", "recall_all@5", "ndcg@10", "mrr"} <= set(row["metrics"])
        assert sum(each["n"] for each in row["by_category"].values()) == row["n"]
        for name, (low, high) in row["ci"].items():
            assert 0.0 <= low <= high, name
            assert high <= 1.0 or name.startswith("tokens@"), name
            assert name in row["metrics"]
    kept = json.loads(Path("here/manifest.json").read_text())
    assert report == {**kept, "compared": [], "remarks": []}
    assert "notes.json" in report["left_out"]
    for described, row in zip(report["data"], report["runs"], strict=True):
        assert described["set"] == row["set"]
        assert described["questions"] == row["n"] + sum(row["skipped"].values())
        assert sum(row["skipped"].values()) >= row["counts"].get("refused_unanswerable", 0)


def test_figures_are_what_the_rankings_say(run, tmp_path, model):
    # "otter" and "heron" each stand in one document only, so BM25 cannot miss; d5 is judged and shares no word.
    queries = [{"id": "q1", "question": "otter?"}, {"id": "q2", "question": "heron?"}]
    made.write_corpus(tmp_path / "data" / "c", queries=queries, qrels="q1\td0\t1\nq2\td1\t2\nq2\td5\t1\n")
    row = figures(run("--data", "data", "--baseline", "bm25", "--json"))[("c", "bm25")]
    assert row["metrics"]["recall@1"] == (1.0 + 0.5) / 2
    assert row["metrics"]["hit@1"] == row["metrics"]["mrr"] == 1.0
    assert row["metrics"]["recall@10"] == 1.0
    # q2 ranks d1, d0, d2, d3, d4, d5: the second gold stands at 6.
    second = (3 + 1 / 2.807354922057604) / (3 + 1 / 1.584962500721156)
    assert row["metrics"]["ndcg@10"] == pytest.approx((1 + second) / 2)
    assert row["metrics"]["ndcg@5"] == pytest.approx((1 + 3 / (3 + 1 / 1.584962500721156)) / 2)


# ------------------------------------------------------------------------------------------------- choosing


def test_only_some_sets(run, data, model):
    assert {name for name, _ in figures(run("--data", data, "--only", "talk", "--only", "anim", "--json"))} == {
        "talks", "animals",
    }  # fmt: skip


def test_baselines_alone_and_beside_the_product(run, data, model):
    one = run("--data", data, "--only", "talks", "--baseline", "bm25", "--json")
    assert set(figures(one)) == {("talks", "bm25")}
    all_of_them = run("--data", data, "--only", "talks", "--baseline", "all", "--json")
    assert [system for _, system in figures(all_of_them)] == [*BASELINES, "reference"]
    assert figures(all_of_them)[("talks", "bm25")]["metrics"] == figures(one)[("talks", "bm25")]["metrics"]
    beside = run("--data", data, "--only", "talks", "--baseline", "dense", "--profile", "fast", "--json")
    assert [system for _, system in figures(beside)] == ["dense", "fast"]


def test_a_part_switched_off_is_named_and_changes_the_figures(run, talks, model):
    whole = figures(run("--data", talks, "--json"))[("talks", "hybrid")]
    off = figures(run("--data", talks, "--off", "dense", "--off", "refusal", "--json"))
    [(name, row)] = off.items()
    assert name == ("talks", "hybrid without dense without refusal")
    assert row["metrics"] != whole["metrics"]


def test_an_ablation_switches_off_every_part_in_turn(run, one_talk, model):
    said = run("--data", one_talk, "--ablate", "--out", "here")
    report = figures(json.loads(Path("here/manifest.json").read_text()))
    assert [system for _, system in report] == [
        "hybrid",
        *(f"hybrid without {name}" for name in SWITCHES if name not in ABSENT),
    ]
    whole = report[("talks", "hybrid")]["metrics"]["recall@10"]
    table = said[said.index("What switching each part off does") :]
    for name in (name for name in SWITCHES if name not in ABSENT):
        part = report[("talks", f"hybrid without {name}")]["metrics"]["recall@10"]
        [line] = [line for line in table.splitlines() if f" hybrid without {name} " in line]
        shown = f"{'+' if part >= whole else '−'}{abs(part - whole):.3f}".replace("0.", ".")
        assert line.split(f"without {name}")[1].split()[0] == shown


def test_tuning_reports_the_held_out_figure(run, talks, model):
    report = run("--data", talks, "--tune", "hybrid.rank_by=fused,score", "--json")
    [tuned] = report["tuned"]
    assert (tuned["set"], tuned["metric"]) == ("talks", "recall@10")
    assert sum(tuned["chosen"].values()) == 3
    assert set(tuned["chosen"]) <= {"hybrid.rank_by=fused", "hybrid.rank_by=score"}
    assert tuned["cross_validated"] <= tuned["in_sample"]
    best = figures(report)[("talks", tuned["best"])]["metrics"]["recall@10"]
    assert best == tuned["in_sample"]
    said = run("--data", talks, "--tune", "hybrid.rank_by=fused,score", "--metric", "ndcg@10")
    assert "Tuned, leaving one conversation out" in said
    assert "ndcg@10" in said


def test_the_gold_as_published_is_another_gold(run, talks, model):
    made.write(talks / "talks" / "audit.json", [made.erratum(f"locomo_{n}_qa0", ["D2:3"]) for n in range(3)])
    corrected = run("--data", talks, "--baseline", "bm25", "--json")
    published = run("--data", talks, "--baseline", "bm25", "--as-cited", "--json")
    assert corrected["as_cited"] is False
    assert published["as_cited"] is True
    assert corrected["data"][0]["oddities"]["faulty gold"] == 3
    before, after = (figures(each)[("talks", "bm25")]["metrics"]["mrr"] for each in (published, corrected))
    assert after < before


def test_a_quick_run_is_a_part_and_says_so(run, talks, model):
    whole, part = run("--data", talks, "--json"), run("--data", talks, "--quick", "--out", "q", "--json")
    assert (whole["quick"], part["quick"]) == (False, True)
    assert (whole["runs"][0]["n"], part["runs"][0]["n"]) == (18, 12)
    assert "for a look" in Path("q/report.md").read_text()
    assert "A part of every set" in run("--data", talks, "--quick")


# ------------------------------------------------------------------------------------------------- comparing


def test_two_runs_are_compared_by_folder_or_by_manifest(run, talks, model):
    run("--data", talks, "--baseline", "bm25", "--out", "words")
    run("--data", talks, "--baseline", "dense", "--out", "meaning")
    rows = run("--compare", "words", "meaning/manifest.json", "--json")["compared"]
    before = figures(json.loads(Path("words/manifest.json").read_text()))[("talks", "bm25")]
    after = figures(json.loads(Path("meaning/manifest.json").read_text()))[("talks", "dense")]
    row = next(row for row in rows if row["metric"] == "ndcg@10")
    assert (row["before"], row["after"]) == (before["metrics"]["ndcg@10"], after["metrics"]["ndcg@10"])
    assert row["difference"] == row["after"] - row["before"]
    assert row["ci"][0] - 1e-12 <= row["difference"] <= row["ci"][1] + 1e-12
    assert row["clear"] is (row["ci"][0] > 0 or row["ci"][1] < 0)
    assert "ndcg@10" in run("--compare", "words", "meaning")


def test_a_run_is_compared_with_itself_without_a_difference(run, talks, model):
    run("--data", talks, "--baseline", "bm25", "--out", "words")
    rows = run("--compare", "words", "words", "--json")["compared"]
    assert {row["difference"] for row in rows} == {0.0}
    assert not any(row["clear"] for row in rows)


def test_a_new_run_against_an_old_one(run, talks, model):
    run("--data", talks, "--baseline", "bm25", "--out", "old")
    report = run("--data", talks, "--baseline", "bm25-stemmed", "--out", "new", "--against", "old", "--json")
    rows = {row["metric"]: row for row in report["compared"]}
    assert rows["recall@10"]["after"] == figures(report)[("talks", "bm25-stemmed")]["metrics"]["recall@10"]
    assert "Two runs, question by question" in Path("new/report.md").read_text()
    assert "Two runs, question by question" in run(
        "--data", talks, "--baseline", "bm25-stemmed", "--out", "new", "--against", "old"
    )


def test_a_run_against_its_own_folder_compares_with_what_was_there(run, talks, model):
    run("--data", talks, "--baseline", "bm25", "--out", "here")
    journal = Path("here/journal.jsonl")
    journal.write_text(re.sub('"recall@10": [0-9.]+', '"recall@10": 0.125', journal.read_text()))
    report = run("--data", talks, "--baseline", "bm25", "--out", "here", "--against", "here", "--json")
    assert next(row for row in report["compared"] if row["metric"] == "recall@10")["before"] == 0.125


def test_a_missing_run_to_compare_with_is_noticed_before_measuring(run, talks, model):
    run("--data", talks, "--baseline", "bm25", "--out", "here", "--against", "nowhere", code=2)
    assert not Path("here").exists()


# ----------------------------------------------------------------------------------- going on, and being the same


def counted(monkeypatch, fail_after=None):
    """Count the haystacks that are read from here on; fail after so many."""
    done, perform = [], eval_run.perform

    def counting(task):
        if fail_after is not None and len(done) >= fail_after:
            raise RuntimeError("the lights went out")
        done.append(task.haystack.id)
        return perform(task)

    monkeypatch.setattr(eval_run, "perform", counting)
    return done


def test_a_run_that_was_stopped_goes_on_and_redoes_nothing_that_was_finished(run, talks, model, monkeypatch):
    whole = run("--data", talks, "--baseline", "mix", "--out", "whole", "--json")
    with monkeypatch.context() as patch:
        counted(patch, fail_after=2)
        with pytest.raises(RuntimeError, match="the lights went out"):
            run("--data", talks, "--baseline", "mix")
    [journal] = Path("holdfast-eval").glob("*/journal.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 2
    journal.write_bytes(lines[0] + lines[1][: len(lines[1]) // 2])
    with monkeypatch.context() as patch:
        done = counted(patch)
        said = run("--data", talks, "--baseline", "mix")
    assert "going on with a run that was stopped" in said
    assert len(done) == 2
    assert json.loads(lines[0])["key"][2] not in done
    resumed = json.loads((folder_of(said) / "manifest.json").read_text())
    assert resumed["runs"] == whole["runs"]


def test_a_finished_run_begins_again(run, talks, model, monkeypatch):
    first = run("--data", talks, "--baseline", "mix", "--json")
    done = counted(monkeypatch)
    assert run("--data", talks, "--baseline", "mix", "--json")["runs"] == first["runs"]
    assert len(done) == 3


def test_runs_of_different_settings_or_data_do_not_share_a_folder(run, one_talk, model):
    told = [
        run("--data", one_talk),
        run("--data", one_talk, "--off", "recency"),
        run("--data", one_talk, "--baseline", "bm25"),
        run("--data", one_talk, "--quick"),
        run("--data", one_talk, "--as-cited"),
        run("--data", one_talk, *POTION),
    ]
    made.write(one_talk / "talks" / "talks.json", [made.talk("talk-barge", "barge"), made.talk("talk-new", "raft")])
    told.append(run("--data", one_talk))
    assert len({folder_of(said) for said in told}) == 7


def test_one_worker_or_two_give_the_same_figures_to_the_last_digit(run, talks):
    one = run("--data", talks, *POTION, "--baseline", "mix", "--profile", "hybrid", "--json", "--workers", "1")
    two = run("--data", talks, *POTION, "--baseline", "mix", "--profile", "hybrid", "--json", "--workers", "2")
    assert one["runs"] == two["runs"]


# ------------------------------------------------------------------------------------------------- manifest


def test_a_manifest_says_what_was_measured_with_what(run, talks, model):
    report = run("--data", talks, "--set", "hybrid.rank_by=fused", "--json")
    assert {
        "holdfast",
        "commit",
        "code",
        "command",
        "started",
        "seconds",
        "machine",
        "settings",
        "data",
        "runs",
    } <= set(report)
    assert report["settings"]["hybrid.rank_by"] == "fused"
    assert report["command"].startswith("holdfast eval --data")
    assert set(report["machine"]) == {"python", "system", "cores", "libraries"}
    [described] = report["data"]
    assert (described["set"], described["schema"], described["haystacks"]) == ("talks", "locomo", 3)
    assert (described["messages"], described["questions"]) == (18, 18)
    assert re.fullmatch("[0-9a-f]{64}", described["checksums"]["talks.json"])
    assert described["oddities"] == {"no index beside it": 1}
    assert described["oddities_listed"] == ["no index beside it: 3 chats (evidence ids are repaired by rule)"]


def test_the_page_has_every_figure_and_category(run, data, model):
    report = run("--data", data, "--baseline", "bm25", "--profile", "hybrid", "--out", "here", "--json")
    shown = Path("here/report.md").read_text()
    for row in report["runs"]:
        assert row["set"] in shown
        for name in ("recall@10", "ndcg@10"):
            assert f"{row['metrics'][name]:.3f}".removeprefix("0") in shown
        for category in row["by_category"]:
            assert f"| {category} |" in shown
    assert report["code"] in shown
    assert "| (even conversations) |" in shown


def test_the_page_of_a_tuned_and_compared_run_has_both(run, talks, model):
    run("--data", talks, "--out", "old")
    run("--data", talks, "--tune", "hybrid.rank_by=fused,score", "--out", "new", "--against", "old")
    shown = Path("new/report.md").read_text()
    assert "Tuned, leaving one conversation out" in shown
    assert "hybrid.rank_by=score" in shown
    assert "Two runs, question by question" in shown


def test_names_from_the_data_are_text_on_the_page(run, tmp_path, model):
    chat = made.talk("talk<1>") | {
        "qa": [made.asked("a?", ["D1:1"], "<b>loud</b>"), made.asked("b?", ["D1:2"], "ü | co")]
    }
    made.write(tmp_path / "data" / "a <i>b" / "talks.json", [chat])
    run("--data", "data", "--out", "here")
    shown = Path("here/report.md").read_text()
    assert "<b>" not in shown
    assert "<i>" not in shown
    assert "| &lt;b>loud&lt;/b> |" in shown
    assert "| ü \\| co |" in shown


# --------------------------------------------------------------------------------------------------- errors


def test_there_must_be_something_to_measure_on(run):
    assert "give --data FOLDER" in run(code=2)


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--data", "nowhere"], 2, "nowhere is not a folder"),
        (["--data", "data", "--only", "zebra"], 2, "no evaluation set named like zebra"),
        (["--data", "data", "--baseline", "bm26"], 2, "no baseline 'bm26'"),
        (["--data", "data", "--off", "telepathy"], 4, "there is no switch 'telepathy'"),
        (["--data", "data", "--set", "lexical.zeal=1"], 4, "there is no setting 'lexical.zeal'"),
        (["--data", "data", "--set", "lexical.b"], 4, "is not KEY=VALUE"),
        (["--data", "data", "--tune", "lexical.zeal=1,2"], 4, "there is no setting 'lexical.zeal'"),
        (["--data", "data", "--tune", "embedding.embedder=potion,minilm"], 4, "embedding.embedder cannot be tuned"),
        (["--data", "data", "--profile", "fast", "--off", "lexical"], 4, "changes nothing in profile fast"),
        (["--data", "data", "--profile", "psychic"], 2, "psychic"),
        (["--data", "data", "--tune", "hybrid.rank_by=score,fused", "--metric", "luck"], 2, "luck was measured on 0"),
        (["--data", "data", "--set", "embedding.embedder=none", "--baseline", "dense"], 2, "embedder is none"),
        (["--compare", "nowhere", "nowhere"], 2, "nowhere cannot be read"),
        (["--compare", "data/talks/talks.json", "nowhere"], 2, "is not a manifest: it has no runs"),
        (["--compare", "broken.json", "broken.json"], 2, "broken.json is not a manifest"),
    ],
)  # fmt: skip
def test_errors_are_one_line_with_a_stable_exit_code(run, talks, arguments, code, expected, monkeypatch):
    if "embedding.embedder=none" not in arguments:
        monkeypatch.setattr(eval_run, "_build_embedder", lambda embedding: HashEmbedder())
    Path("broken.json").write_text("{")
    said = run(*arguments, code=code).strip()
    assert said.startswith("error: ")
    assert expected in said
    assert len(said.splitlines()) == 1
    assert run(*arguments, "--json", code=code)["error"]["exit_code"] == code


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("cut.json.gz", gzip.compress(b"[" * 500, mtime=0)[:-9], "cut.json.gz cannot be read"),
        ("bad.json", b'[{"sample_id": 1,]', "bad.json is damaged or cut short"),
    ],
)
def test_a_damaged_file_between_good_ones_stops_the_run(run, talks, name, content, expected):
    (talks / "talks" / name).write_bytes(content)
    assert expected in run("--data", talks, code=2)


def test_a_folder_of_other_things_is_named(run, tmp_path):
    made.write(tmp_path / "data" / "stranger.json", {"what": "is this"})
    assert "stranger.json" in run("--data", "data", code=2)


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
def test_an_ablation_compares_with_the_same_system_whole(run, one_talk, arguments, base, model, monkeypatch):
    # That every part is switched off is the law above; this one is about what a part is compared with.
    monkeypatch.setattr(systems, "SWITCHES", {name: SWITCHES[name] for name in ("dense", "scope")})
    said = run("--data", one_talk, "--ablate", "--out", "here", *arguments)
    report = figures(json.loads(Path("here/manifest.json").read_text()))
    [part] = [name for _, name in report if name.startswith("hybrid ") and name.endswith(" scope")]
    whole, without = (report[("talks", name)]["metrics"]["recall@10"] for name in (base, part))
    difference = without - whole
    assert _ablated(said, part) == f"{'+' if difference >= 0 else '−'}{abs(difference):.3f}".replace("0.", ".")


def interrupted(monkeypatch, *arguments):
    """Run until everything is measured and nothing is written about it."""

    def fail(folder, manifest):
        raise RuntimeError("the lights went out")

    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "write_manifest", fail)
        with pytest.raises(RuntimeError, match="the lights went out"):
            holdfast("eval", *arguments, "--workers", "1", "--json")


def test_a_journal_of_other_settings_is_not_gone_on_with(run, talks, model, monkeypatch):
    other = ("--set", "hybrid.strategies=lexical")
    whole = run("--data", talks, "--out", "whole", "--json", *other)
    interrupted(monkeypatch, "--data", talks, "--out", "here")
    assert run("--data", talks, "--out", "here", "--json", *other)["runs"] == whole["runs"]


def test_a_journal_of_other_data_is_not_gone_on_with(run, talks, model, monkeypatch):
    interrupted(monkeypatch, "--data", talks, "--baseline", "bm25", "--out", "here")
    chats = [
        made.talk(f"talk-{topic}", topic) | {"qa": [made.asked("?", ["D2:3"])]}
        for topic in ("barge", "sledge", "canoe")
    ]
    made.write(talks / "talks" / "talks.json", chats)
    assert run("--data", talks, "--baseline", "bm25", "--out", "here", "--json")["runs"][0]["n"] == 3


def test_a_corpus_without_documents_is_left_out(run, tmp_path, model):
    made.write_corpus(tmp_path / "data" / "c", corpus=[{"id": "d0", "title": "", "text": ""}])
    made.write(tmp_path / "data" / "s" / "stacks.json", [made.plain_haystack()])
    report = run("--data", "data", "--baseline", "bm25", "--json")
    assert {row["set"] for row in report["runs"]} == {"s"}
    assert report["left_out"] == ["c"]
    assert "c: nothing was said in it, left out" in run("--data", "data", "--baseline", "bm25")


@pytest.mark.parametrize(
    "option", ["lexical.b=0.35", "refusal.enabled=false", "hybrid.max_results=5", "hybrid.mix.dense=0.5"]
)
def test_any_setting_can_be_set(run, talks, option, model):
    key, _, value = option.partition("=")
    assert run("--data", talks, "--set", option, "--json")["settings"][key] == json.loads(value)


def test_a_number_can_be_tuned(run, talks, model):
    [tuned] = run("--data", talks, "--tune", "lexical.b=0.35,0.75", "--json")["tuned"]
    assert sum(tuned["chosen"].values()) == 3


def test_a_folder_of_other_things_is_not_removed(run, talks, tmp_path, model):
    mine = tmp_path / "precious"
    made.write(mine / "manifest.json", {"name": "a web page"})
    made.write(mine / "thesis.txt", "years of work")
    said = run("--data", talks, "--baseline", "bm25", "--out", mine, code=2)
    assert "manifest.json was not written by a run" in said.replace("\n", " ")
    assert sorted(path.name for path in mine.iterdir()) == ["manifest.json", "thesis.txt"]


def test_a_run_leaves_other_files_of_its_folder_alone(run, talks, tmp_path, model):
    run("--data", talks, "--baseline", "bm25", "--out", "here")
    Path("here/thesis.txt").write_text("years of work")
    run("--data", talks, "--baseline", "bm25", "--out", "here")
    assert Path("here/thesis.txt").read_text() == "years of work"


def test_a_secret_on_the_command_line_is_not_written_down(run, talks, model):
    run("--data", talks, "--baseline", "bm25", "--set", "embedding.api_key=sesame-open", "--out", "here")
    assert "embedding.api_key=(hidden)" in Path("here/manifest.json").read_text()
    assert "sesame-open" not in Path("here/manifest.json").read_text()
    assert "sesame-open" not in Path("here/report.md").read_text()


def test_the_manifest_names_the_embedding_space(run, talks, model):
    assert run("--data", talks, "--baseline", "dense", "--json").get("space") == HashEmbedder().space


def test_brackets_in_a_name_are_shown(run, tmp_path, model):
    made.write(tmp_path / "data" / "talks[v2]" / "talks.json", [made.talk()])
    said = run("--data", "data", "--baseline", "bm25")
    assert "talks[v2]" in said[: said.index("Oddities")]


def test_a_number_of_workers_below_zero_is_refused(run, talks, model):
    run("--data", talks, "--baseline", "bm25", "--workers", "-1", code=2)


def test_a_message_that_the_memory_refuses_is_counted_and_the_run_goes_on(run, tmp_path, model):
    row = made.haystack("q-odd", [("s", "2023/05/20 (Sat) 02:21", [made.turn("nul \0", has_answer=True)])], ["s"])
    made.write(tmp_path / "data" / "s" / "stacks.json", [made.plain_haystack(), row])
    [measured] = run("--data", "data", "--json")["runs"]
    assert measured["skipped"] == {"message refused by the memory": 1}
    assert measured["n"] == 2


@pytest.mark.parametrize("content", [b'{"runs": 3}', b'{"runs": [{"set": "x"}]}', b"\xff\xfe"])
def test_what_is_no_manifest_is_refused_as_such(run, tmp_path, content, model):
    (tmp_path / "odd.json").write_bytes(content)
    said = run("--compare", "odd.json", "odd.json", code=2)
    assert "odd.json is not a manifest" in said


def test_a_comparison_lists_what_was_not_compared(run, talks, model):
    run("--data", talks, "--baseline", "bm25", "--baseline", "dense", "--out", "two")
    run("--data", talks, "--baseline", "bm25", "--quick", "--out", "one")
    remark = "talks, dense: only in the earlier run, not compared"
    report = run("--compare", "two", "one", "--json")
    assert report["remarks"] == [remark, "one of the runs is over a part of each set, the other is not"]
    assert remark in run("--compare", "two", "one")
    assert remark in run("--data", talks, "--baseline", "bm25", "--out", "one", "--against", "two")
    assert remark in Path("one/report.md").read_text()


def test_a_category_with_gold_sessions_only_is_on_the_page(run, tmp_path, model):
    unmarked = [("s", "2023/05/20 (Sat) 02:21", made.SOUP)]
    rows = [made.plain_haystack(), made.haystack("q-two", unmarked, ["s"], question_type="of sessions")]
    made.write(tmp_path / "data" / "s" / "stacks.json", rows)
    report = run("--data", "data", "--baseline", "bm25", "--out", "here", "--json")
    assert {name: row["n"] for name, row in report["runs"][0]["by_category"].items()} == {
        "of sessions": 1,
        "single-session-user": 1,
    }
    assert "of sessions" in Path("here/report.md").read_text()


def test_what_was_asked_without_being_judged_is_on_the_page(run, tmp_path, model):
    made.write(tmp_path / "data" / "gardens" / "small.json", [made.garden()])
    report = run("--data", "data", "--baseline", "bm25", "--out", "here", "--json")
    assert report["runs"][0]["skipped"] == {"abstention": 1}
    page = Path("here/report.md").read_text()
    assert "Asked without counting in recall: abstention × 1." in page
    assert "over conversations, or over questions where there is one" in page


def test_a_file_is_no_folder_for_a_run(run, talks, tmp_path, model):
    (tmp_path / "taken").write_text("a file")
    assert "is a file; give --out a folder" in run("--data", talks, "--baseline", "bm25", "--out", "taken", code=2)


def test_a_run_with_a_folder_of_its_own_goes_on_too(run, talks, model, monkeypatch):
    arguments = ("--data", talks, "--baseline", "bm25", "--out", "here")
    interrupted(monkeypatch, *arguments)
    done = counted(monkeypatch)
    assert "going on with a run that was stopped" in run(*arguments)
    assert done == []
    assert sorted(path.name for path in Path("here").iterdir()) == ["journal.jsonl", "manifest.json", "report.md"]
