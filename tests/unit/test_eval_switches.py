"""Every part of the product can be switched off by name, and a switch does what its name says."""

import dataclasses
from datetime import UTC, datetime
from importlib.metadata import entry_points

import pytest

from holdfast.errors import InputError, SettingsError
from holdfast.eval import systems as evaluated
from holdfast.eval.data import DataSet, DatasetMessage, GoldQuestion, Haystack
from holdfast.eval.datasets import take_quick_part
from holdfast.eval.systems import BASELINES, SWITCHES, find_ablations, switch_off
from holdfast.settings import PROFILES, ProfileSettings, Settings

# Proofs are no part of hybrid.
PROOFS = {"thinkingdb-symbolic", "proof_bonus"}
HYBRID = [name for name in SWITCHES if name not in {*PROOFS, "hdc-vsa"}]


def flat(settings):
    return {row.key: row.value for row in settings.describe()}


def changed(name, settings=None):
    """Return the keys that a switch changes, with their new values."""
    before = settings or Settings()
    after = flat(switch_off(before, [name]))
    return {key: after[key] for key, value in flat(before).items() if after[key] != value}


# ------------------------------------------------------------------------------------------------ switches


def test_every_registered_strategy_has_a_switch():
    assert {entry.name for entry in entry_points(group="holdfast.strategies")} <= set(SWITCHES)


def test_every_boost_bonus_and_share_is_changed_by_some_switch():
    parts = {key for key in flat(Settings()) if "boost" in key or "bonus" in key}
    parts |= {"score.beta", "score.gamma", "score.delta", "refusal.enabled"}
    parts |= {
        f"{profile}.{cut}"
        for profile in PROFILES
        for cut in ("min_score", "gap")
        if flat(Settings())[f"{profile}.{cut}"]
    }
    reached = set().union(*(changed(name) for name in SWITCHES))
    assert parts <= reached


def test_every_share_of_a_stage_has_a_switch_that_turns_off_nothing_else():
    keys = dataclasses.fields(Settings().stages)
    shares = [one.name for one in keys if (one.metadata["ge"], one.metadata["le"]) == (0.0, 1.0)]
    assert len(shares) >= 7
    assert [changed(name) for name in shares] == [{f"stages.{name}": 0.0} for name in shares]
    assert {name: value for name in shares if (value := getattr(Settings.reference().stages, name))} == {}


@pytest.mark.parametrize("name", SWITCHES)
def test_every_switch_changes_the_default_settings_and_does_so_once(name):
    assert changed(name)
    once = switch_off(Settings(), [name])
    assert switch_off(once, [name]) == once


def test_a_switch_changes_its_own_part_only():
    single = ("role_boost", "agreement_bonus", "refusal", "recency", "scope", "quality")
    assert {name: changed(name) for name in single} == {
        "role_boost": {"lexical.role_boost": 1.0},
        "agreement_bonus": {"fusion.agreement_bonus": 0.0},
        "refusal": {"refusal.enabled": False},
        "recency": {"score.beta": 0.0},
        "scope": {"score.gamma": 0.0},
        "quality": {"score.delta": 0.0},
    }  # fmt: skip
    assert set(changed("min_score")) <= {f"{profile}.min_score" for profile in PROFILES}
    assert set(changed("gap")) <= {f"{profile}.gap" for profile in PROFILES}


@pytest.mark.parametrize("strategy", ["lexical", "dense", "hdc-vsa"])
def test_a_strategy_leaves_every_profile_that_has_another(strategy):
    off = switch_off(Settings(), [strategy])
    for profile in PROFILES:
        before, after = getattr(Settings(), profile), getattr(off, profile)
        assert strategy not in after.escalation
        if len(before.strategies) > 1:
            assert after.strategies == tuple(each for each in before.strategies if each != strategy)
        else:
            assert after.strategies == before.strategies


def test_switches_add_up():
    off = switch_off(Settings(), ["recency", "scope"])
    assert (off.score.beta, off.score.gamma) == (0.0, 0.0)
    assert off.score.shares == (1.0, 0.0, 0.0)


def test_an_unknown_switch_is_refused_with_the_known_ones():
    with pytest.raises(SettingsError, match="there is no switch 'telepathy'; choose from lexical, dense"):
        switch_off(Settings(), ["recency", "telepathy"])


def test_an_ablation_has_a_row_for_every_switch_that_changes_something():
    # Proofs are no part of hybrid; of thinking they are, as hypervectors are of the reference.
    assert list(find_ablations(Settings(), "hybrid")) == [f"without {name}" for name in HYBRID]
    assert {name.removeprefix("without ") for name in find_ablations(Settings(), "thinking")} >= PROOFS
    assert "without hdc-vsa" in find_ablations(Settings.reference(), "hybrid")
    assert "without refusal" not in find_ablations(Settings.reference(), "hybrid")
    already = switch_off(Settings(), ["recency"])
    assert "without recency" not in find_ablations(already, "hybrid")
    assert not {"without lexical", "without dense", "without hdc-vsa"} & set(find_ablations(Settings(), "fast"))


# --------------------------------------------------------------------------------------------------- plans


def names(asked):
    return [system.name for system in asked.systems]


def test_what_is_measured_follows_from_what_was_asked():
    base = Settings()
    assert names(evaluated.select_systems(base)) == ["hybrid"]
    assert names(evaluated.select_systems(base, baselines=["bm25", "bm25"])) == ["bm25"]
    assert names(evaluated.select_systems(base, baselines=["all"])) == [*BASELINES, "reference"]
    assert names(evaluated.select_systems(base, baselines=["bm25"], profiles=["fast"])) == ["bm25", "fast"]
    assert names(evaluated.select_systems(base, off=["recency", "scope"])) == ["hybrid without recency without scope"]
    assert names(evaluated.select_systems(base, ablate=True)) == [
        "hybrid",
        *(f"hybrid without {name}" for name in HYBRID),
    ]


def test_the_settings_measured_are_those_named():
    [fast, off] = evaluated.select_systems(
        Settings(), profiles=["fast"], baselines=["reference"], off=["recency"]
    ).systems[::-1]
    assert (fast.profile, fast.settings.score.beta) == ("fast", 0.0)
    assert off.settings == Settings.reference()


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match=r"no baseline 'bm26'; choose from bm25, .*reference, all"):
        evaluated.select_systems(Settings(), baselines=["bm26"])
    with pytest.raises(SettingsError, match="there is no switch 'everything'"):
        evaluated.select_systems(Settings(), off=["everything"])
    with pytest.raises(SettingsError, match=r"there is no setting 'lexical\.zeal'"):
        evaluated.select_systems(Settings(), tune={"lexical.zeal": ["1"]})


def test_variants_are_every_combination_and_are_known_as_such():
    asked = evaluated.select_systems(Settings(), tune={"hybrid.rank_by": ["fused", "score"]}, off=["scope"])
    assert asked.variants == ("hybrid.rank_by=fused", "hybrid.rank_by=score")
    assert names(asked) == ["hybrid without scope", *asked.variants]
    assert [system.settings.hybrid.rank_by for system in asked.systems[1:]] == ["fused", "score"]
    assert {system.settings.score.gamma for system in asked.systems} == {0.0}


def test_assignments_are_pairs():
    assert evaluated.read_assignments(["a.b = 1", "c=x=y"]) == {"a.b": "1", "c": "x=y"}
    for wrong in ("a.b", "=1"):
        with pytest.raises(SettingsError, match=r"is not KEY=VALUE"):
            evaluated.read_assignments([wrong])


# --------------------------------------------------------------------------------------------------- quick

MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


def stack(count, questions, name="h", sessions=10):
    messages = tuple(
        DatasetMessage(f"m{place}", f"s{place // sessions}", f"text {place}", MOMENT) for place in range(count)
    )
    return Haystack(name, messages, tuple(questions))


def asking(number, visible, *gold):
    sessions = frozenset(f"s{int(item[1:]) // 10}" for item in gold)
    return GoldQuestion(f"q{number}", "?", "all", MOMENT, visible, dict.fromkeys(gold, 1), sessions)


def quick(*haystacks):
    return take_quick_part(DataSet("d", "x", True, haystacks, {}))


def test_a_quick_run_keeps_small_haystacks_whole():
    small = stack(20, [asking(n, 20, "m3") for n in range(50)])
    [kept] = quick(small).haystacks
    assert kept.messages == small.messages
    assert kept.questions == small.questions[:40]
    assert len(quick(small, small, small).haystacks) == 2


def test_a_quick_run_keeps_every_gold_message_of_the_questions_it_keeps():
    large = stack(2_000, [asking(n, 2_000, f"m{1_990 - n}", f"m{n}") for n in range(60)])
    [kept] = quick(large).haystacks
    ids = {message.id for message in kept.messages}
    assert len(kept.questions) == 40
    assert len(ids) <= 500
    for question in kept.questions:
        assert set(question.gold) <= ids
        assert question.visible == len(kept.messages)
        assert question.gold_sessions <= {message.session for message in kept.messages}
    assert list(kept.messages) == [message for message in large.messages if message.id in ids]


def test_a_quick_run_of_a_replayed_chat_keeps_its_beginning():
    large = stack(1_000, [asking(n, n * 100, "m0") for n in range(1, 10)])
    [kept] = quick(large).haystacks
    assert kept.messages == large.messages[:500]
    assert [question.visible for question in kept.questions] == [100, 200, 300, 400, 500]


def test_a_quick_run_is_always_the_same_part():
    large = stack(2_000, [asking(n, 2_000, f"m{1_990 - n}") for n in range(60)])
    assert quick(large) == quick(large)


def test_the_profiles_that_switches_reach_are_all_there_are():
    own = {f.name for f in dataclasses.fields(Settings) if isinstance(getattr(Settings(), f.name), ProfileSettings)}
    assert own == set(PROFILES)


def test_an_ablation_names_everything_that_is_off():
    systems = evaluated.select_systems(Settings(), off=["dense"], ablate=True).systems
    assert all("dense" in system.name for system in systems)


def test_a_switch_that_cannot_be_thrown_is_refused():
    with pytest.raises(SettingsError, match="switching off 'lexical' changes nothing in profile fast"):
        evaluated.select_systems(Settings(), profiles=["fast"], off=["lexical"])


def test_tuned_variants_differ_from_the_product_in_what_is_tuned_only(monkeypatch):
    monkeypatch.setenv("HOLDFAST_LEXICAL__K1", "0.5")
    asked = evaluated.select_systems(Settings.load(), tune={"hybrid.rank_by": ["fused"]})
    assert [system.settings.lexical.k1 for system in asked.systems] == [0.5, 0.5]


def test_an_ablation_knows_its_whole():
    asked = evaluated.select_systems(
        Settings(), baselines=["bm25"], profiles=["fast", "hybrid"], off=["scope"], ablate=True
    )
    names = [system.name for system in asked.systems]
    assert set(asked.ablated) < set(names)
    for name, whole in asked.ablated.items():
        assert whole in ("fast without scope", "hybrid without scope")
        assert name.startswith(f"{whole} without ")
    # `fast` has one strategy: there is nothing to learn from switching off another one.
    assert not {"fast without scope without dense", "fast without scope without lexical"} & set(names)
    assert "hybrid without scope without dense" in names


@pytest.mark.parametrize("key", ["embedding.embedder", "embedding.api_key"])
def test_the_embedder_is_not_tuned(key):
    with pytest.raises(SettingsError, match=rf"{key} cannot be tuned"):
        evaluated.select_systems(Settings(), tune={key: ["a", "b"]})


def test_a_profile_or_a_switch_named_twice_counts_once():
    asked = evaluated.select_systems(Settings(), profiles=["fast", "fast"], off=["scope", "scope"])
    assert [system.name for system in asked.systems] == ["fast without scope"]


def test_a_quick_run_keeps_the_gold_sessions():
    question = GoldQuestion("q", "?", "all", MOMENT, 600, {"m0": 1}, frozenset({"s0", "s299"}))
    [small] = quick(stack(600, [question], sessions=2)).haystacks
    assert small.questions[0].gold_sessions == {"s0", "s299"}
    assert {"m598", "m599"} <= {message.id for message in small.messages}
    assert len(small.messages) <= 500
