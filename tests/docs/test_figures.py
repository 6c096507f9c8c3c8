"""The figures of the evaluation page come from runs, and from nothing else."""

import json

import pytest

from builders import program
from holdfast import Settings

figures = program("scripts/figures.py")

CHATS = {"set": "talk", "schema": "locomo", "checksums": {"chats.json": "0"}}
LONG_CHATS = {"set": "probes", "schema": "beam", "checksums": {"small_100K.json.xz": "0"}}


def row(system, value, data="talk", **more):
    """Return what a manifest says of one set and system."""
    metrics = {"recall@10": value}
    return {
        "set": data, "system": system, "n": 4, "metrics": metrics, "ci": {"recall@10": [value - 0.1, value + 0.1]},
        "by_category": {}, **more,
    }  # fmt: skip


def write_run(folder, runs, *, data=(CHATS,), quick=False, changed=None, records=None):
    """Write a run's folder: its manifest, and the single questions of each system as {question: recall@10}."""
    folder.mkdir()
    settings = {each.key: each.value for each in Settings().describe()} | (changed or {})
    manifest = {"quick": quick, "settings": settings, "data": list(data), "runs": runs}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    lines = [
        json.dumps({
            "key": ["talk", system, "one"],
            "records": [
                {"haystack": "one", "question": name, "category": "", "metrics": {"recall@10": value}, "detail": {}}
                for name, value in asked.items()
            ],
        })
        for system, asked in (records or {}).items()
    ]  # fmt: skip
    (folder / "journal.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return folder


def lines_of(name, *folders):
    build, _ = figures.TABLES[name]
    return "\n\n".join(table.markdown() for table in build(figures.read_runs(folders))).split("\n")


def test_a_group_of_categories_is_weighted_by_its_questions(tmp_path):
    categories = {
        "multi-hop": {"n": 1, "metrics": {"recall@10": 0.2}},
        "single-hop": {"n": 3, "metrics": {"recall@10": 0.6}},
        "adversarial": {"n": 9, "metrics": {"recall@10": 1.0}},
    }
    run = write_run(tmp_path / "run", [row("bm25", 0.9, by_category=categories)])
    rows = {line.split(" | ")[1]: line for line in lines_of("baselines", run)}
    assert rows["without adversarial"] == "| LoCoMo | without adversarial | recall@10 | .593 | .500 | −.093 |"
    assert rows["multi-hop"] == "| LoCoMo | multi-hop | recall@10 | .283 | .200 | −.083 |"
    assert "temporal" not in rows


def test_a_set_is_known_by_schema_name_and_files_together(tmp_path):
    run = write_run(tmp_path / "run", [row("bm25", 0.5, "probes")], data=(LONG_CHATS,))
    assert lines_of("baselines", run)[2] == "| BEAM 100K | all | recall@10 | .420 | .500 | +.080 |"


def test_another_embedder_stands_beside_the_shipped_one_and_other_settings_do_not(tmp_path):
    asked = [{"hybrid": {"p": value, "q": value}} for value in (0.4, 0.6, 0.9)]
    changed = [{"embedding.embedder": "onnx"}, None, {"embedding.embedder": "onnx", "lexical.b": 0.1}]
    runs = [
        write_run(tmp_path / str(place), [row("hybrid", one["hybrid"]["q"])], changed=each, records=one)
        for place, (one, each) in enumerate(zip(asked, changed, strict=True))
    ]
    assert lines_of("embedders", *runs)[2:] == [
        "| LoCoMo | recall@10 | .400 | .600 | +.200 (+.200 to +.200) |",
    ]


def test_the_table_of_sets_shows_the_default_recipe_between_plain_bm25_and_the_reference_recipe(tmp_path):
    ours = write_run(
        tmp_path / "ours", [row("hybrid", 0.5), row("reference", 0.2), row("bm25", 0.4), row("mix", 0.3)]
    )
    other = write_run(tmp_path / "other", [row("hybrid", 0.7)], changed={"lexical.b": 0.1})
    assert lines_of("sets", ours, other) == [
        "| set | questions | system | recall@10 |",
        "| --- | ---: | ---: | ---: |",
        "| LoCoMo | 4 | plain BM25 | .400 (.300–.500) |",
        "| LoCoMo | 4 | Holdfast | .500 (.400–.600) |",
        "| LoCoMo | 4 | reference recipe | .200 (.100–.300) |",
    ]


def test_of_two_runs_the_later_one_counts(tmp_path):
    first = write_run(tmp_path / "first", [row("hybrid", 0.5)])
    second = write_run(tmp_path / "second", [row("hybrid", 0.6)])
    assert lines_of("sets", first, second)[2] == "| LoCoMo | 4 | Holdfast | .600 (.500–.700) |"


def test_an_ablation_is_a_paired_difference_within_one_run(tmp_path):
    records = {"hybrid": {"a": 1.0, "b": 0.5}, "hybrid without gap": {"a": 0.5, "b": 0.0}}
    runs = [row("hybrid", 0.75), row("hybrid without gap", 0.25)]
    run = write_run(tmp_path / "run", runs, records=records)
    stranger = write_run(tmp_path / "stranger", [row("hybrid without scope", 0.1)])
    assert lines_of("ablation", run, stranger) == [
        "| off: recall@10 | LoCoMo |",
        "| --- | ---: |",
        "| `gap` | −.500 (−.500 to −.500) |",
    ]


def test_evidence_lost_by_growing_is_pooled_over_questions(tmp_path):
    def lost(data, value, count):
        metrics = {"lost_by_growing": value, "ever_lost_by_growing": 2 * value}
        return row("hybrid", 0.5, data, metrics=metrics, ci={}, counts=dict.fromkeys(metrics, count))

    run = write_run(tmp_path / "run", [lost("talk", 0.0, 30), lost("probes", 0.1, 10)], data=(CHATS, LONG_CHATS))
    assert lines_of("growth", run)[-1] == "| all | Holdfast | .025 | .050 |"


def test_packing_tells_runs_apart_by_that_setting_alone(tmp_path):
    def survived(value):
        return [row("hybrid", 0.5, metrics={"survival@1k": value}, ci={})]

    skip = write_run(tmp_path / "skip", survived(0.8), changed={"assembly.packing": "skip"})
    prefix = write_run(tmp_path / "prefix", survived(0.7), changed={"assembly.packing": "prefix"})
    both = write_run(tmp_path / "both", survived(0.9), changed={"assembly.packing": "excerpt", "lexical.b": 0.1})
    assert lines_of("packing", skip, prefix, both)[2:] == [
        "| LoCoMo | `prefix` | .700 |  |  |  |",
        "| LoCoMo | `skip` | .800 |  |  |  |",
    ]


def test_places_are_filled_and_those_without_figures_stay(tmp_path):
    found = figures.read_runs([write_run(tmp_path / "run", [row("hybrid", 0.5)])])
    page = "<!-- figures: sets -->\nstale\n<!-- end -->\n<!-- figures: packing -->\nstale\n<!-- end -->\n"
    text, without = figures.rewrite(page, found)
    assert "| LoCoMo | 4 |" in text
    assert text.count("stale") == 1
    assert without == ["packing"]
    assert figures.rewrite(text, found) == (text, without)


def test_rows_and_columns_that_a_run_did_not_measure_stay(tmp_path):
    both = [row("hybrid", 0.5), row("hybrid", 0.3, "probes")]
    first = figures.read_runs([write_run(tmp_path / "first", both, data=(CHATS, LONG_CHATS))])
    page, _ = figures.rewrite("<!-- figures: sets -->\n<!-- end -->", first)
    later = [row("hybrid", 0.9, metrics={"recall@10": 0.9, "hit@1": 0.4}, ci={}), row("bm25", 0.1)]
    text, _ = figures.rewrite(page, figures.read_runs([write_run(tmp_path / "second", later)]))
    assert text.split("\n")[1:-1] == [
        "| set | questions | system | hit@1 | recall@10 |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| LoCoMo | 4 | plain BM25 |  | .100 (.000–.200) |",
        "| LoCoMo | 4 | Holdfast | .400 | .900 |",
        "| BEAM 100K | 4 | Holdfast |  | .300 (.200–.400) |",
    ]


def test_a_figure_over_all_sets_goes_when_only_some_were_measured(tmp_path):
    def lost(data, value):
        metrics = dict.fromkeys(figures.GROWTH, value)
        return row("hybrid", 0.5, data, metrics=metrics, ci={}, counts=dict.fromkeys(metrics, 10))

    both = [lost("talk", 0.0), lost("probes", 0.2)]
    first = figures.read_runs([write_run(tmp_path / "first", both, data=(CHATS, LONG_CHATS))])
    page, _ = figures.rewrite("<!-- figures: growth -->\n<!-- end -->", first)
    assert "| all | Holdfast | .100 | .100 |" in page
    second = figures.read_runs([write_run(tmp_path / "second", [lost("talk", 0.4)])])
    text, _ = figures.rewrite(page, second)
    assert "| all |" not in text
    assert "| LoCoMo | Holdfast | .400 | .400 |" in text
    assert "| BEAM 100K | Holdfast | .200 | .200 |" in text


def test_an_unknown_place_and_a_quick_run_are_refused(tmp_path):
    with pytest.raises(SystemExit, match="there is no table 'speed'"):
        figures.rewrite("<!-- figures: speed -->\n<!-- end -->", [])
    with pytest.raises(SystemExit, match="quick run"):
        figures.read_runs([write_run(tmp_path / "run", [row("hybrid", 0.5)], quick=True)])


def test_the_page_has_a_place_for_every_table():
    text = figures.PAGE.read_text(encoding="utf-8")
    assert [match["name"] for match in figures.PLACE.finditer(text)] == list(figures.TABLES)


def test_what_is_current_is_pooled_over_the_questions_of_public_sets(tmp_path):
    def told(system, data, value, n):
        metrics = dict.fromkeys(figures.CURRENT, value)
        return row(system, 0.5, data) | {"metrics": metrics, "ci": {}, "counts": dict.fromkeys(metrics, n)}

    own = {"set": "own", "schema": "changes", "checksums": {"own.jsonl": "0"}}
    asked = {"talk": (1.0, 1), "probes": (0.5, 3), "own": (0.2, 9)}
    runs = [told("hybrid", name, *values) for name, values in asked.items()]
    runs += [told("hybrid without current", name, 0.0, n) for name, (_, n) in asked.items()]
    lines = lines_of("currency", write_run(tmp_path / "run", runs, data=(CHATS, LONG_CHATS, own)))
    assert lines[2:] == [
        "| LoCoMo | 1 | .000 | 1.000 | .000 | 1.000 |",
        "| BEAM 100K | 3 | .000 | .500 | .000 | .500 |",
        "| own | 9 | .000 | .200 | .000 | .200 |",
        "| all | 4 | .000 | .625 | .000 | .625 |",
    ]
