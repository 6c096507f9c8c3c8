"""Settings: two recipes, four origins, and a refusal that names the key and the value."""

import dataclasses
import json
import math
import os

import pytest

from holdfast.errors import SettingsError
from holdfast.settings import PROFILES, EmbeddingSettings, ProfileSettings, ScoreSettings, Settings, unread_file

# Every constant of the contract that the engine has so far, written out by hand.
REFERENCE = {
    "recipe": "reference",
    "analysis.tokenizer": "reference",
    "tokens.ratios": "reference",
    "lexical.k1": 1.2,
    "lexical.b": 0.75,
    "lexical.role_boost": 1.3,
    "lexical.weights.topic": 1.5,
    "lexical.weights.claim": 1.0,
    "lexical.weights.procedure": 1.0,
    "lexical.weights.utility_acts": 0.8,
    "lexical.weights.utility_note": 0.6,
    "lexical.weights.condition": 0.6,
    "lexical.weights.role": 0.5,
    "fusion.weights.lexical": 1.0,
    "fusion.weights.hdc-vsa": 0.7,
    "fusion.weights.thinkingdb-symbolic": 0.85,
    "fusion.weights.dense": 1.0,
    "fusion.agreement_bonus": 0.15,
    "score.alpha": 0.7,
    "score.beta": 0.2,
    "score.gamma": 0.1,
    "score.lambda_session": 1e-4,
    "score.lambda_user": 1e-5,
    "score.lambda_global": 2e-6,
    "score.delta": 0.5,
    "projection.min_similarity": 0.2,
    "projection.keyword_weight": 0.3,
    "projection.rates.turn": 1e-5,
    "projection.rates.knowledge": 1e-5,
    "projection.rates.summary": 1e-5,
    "temporal.picks": 3,
    "dense.exit_64": 0.65,
    "dense.exit_256": 0.75,
    "compaction.min_align": 0.65,
    "fast.max_results": 3,
    "fast.min_score": 0.30,
    "fast.gap": 0.50,
    "fast.rank_by": "fused",
    "hybrid.max_results": 20,
    "hybrid.min_score": 0.12,
    "hybrid.gap": 0.25,
    "hybrid.rank_by": "score",
}


def load(overrides=None, *, file=None, **environ):
    return Settings.load(overrides, file=file, environ=environ)


def values(settings):
    return {row.key: row.value for row in settings.describe()}


def origin(settings, key):
    return next(row.origin for row in settings.describe() if row.key == key)


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a settings file and returns its path."""

    def write(text):
        path = tmp_path / "holdfast.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


# ------------------------------------------------------------------------------------------------- recipes


def test_the_reference_recipe_carries_the_constants_of_the_contract():
    found = values(Settings.reference())
    assert {key: found.get(key) for key in REFERENCE} == REFERENCE


def test_the_recipe_can_be_named_and_then_changed_key_by_key():
    assert load({"recipe": "reference"}) == Settings.reference()
    assert load(HOLDFAST_RECIPE="reference") == Settings.reference()
    assert load({"recipe": "reference", "lexical.k1": 2.0}).tokens.ratios == "reference"


def test_without_anything_given_the_default_recipe_is_loaded():
    assert load() == Settings()
    assert Settings().recipe == "default"


def test_an_unknown_recipe_is_refused():
    with pytest.raises(SettingsError, match=r"recipe = 'tasty'.*default, reference"):
        load({"recipe": "tasty"})


def test_every_named_profile_is_a_group_of_settings():
    assert all(isinstance(getattr(Settings(), name), ProfileSettings) for name in PROFILES)


# ------------------------------------------------------------------------------------------- what is described


def test_every_key_is_described_once_with_its_value_and_its_origin():
    rows = Settings().describe()
    assert len({row.key for row in rows}) == len(rows)
    assert all(row.doc.strip() for row in rows)
    assert all(row.origin in ("default", "default recipe") for row in rows)


def test_every_described_key_can_be_set_to_the_value_it_has():
    for row in Settings().describe():
        assert load({row.key: row.value}) == Settings(), row.key


# ----------------------------------------------------------------------------------------------------- origins


def test_argument_beats_environment_beats_file_beats_recipe(written):
    file = written("[lexical]\nk1 = 1.1\nb = 0.6\n[score]\nalpha = 0.5\n")
    settings = load(
        {"lexical.k1": 1.9},
        file=file,
        HOLDFAST_LEXICAL__K1="1.8",
        HOLDFAST_LEXICAL__B="0.5",
        HOLDFAST_HYBRID__GAP="0.4",
    )
    assert (settings.lexical.k1, settings.lexical.b, settings.score.alpha) == (1.9, 0.5, 0.5)
    assert settings.hybrid.gap == 0.4
    assert origin(settings, "lexical.k1") == "argument"
    assert origin(settings, "lexical.b") == "environment HOLDFAST_LEXICAL__B"
    assert origin(settings, "score.alpha") == f"file {file}"
    assert origin(settings, "score.beta") == "default recipe"


def test_the_file_is_the_named_one_or_the_environments_or_the_users_own(written, tmp_path):
    named = written("[score]\nalpha = 0.4\n")
    other = tmp_path / "other.toml"
    other.write_text("[score]\nalpha = 0.5\n")
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    for folder, alpha in ((tmp_path / ".config", 0.6), (tmp_path / "xdg", 0.7)):
        (folder / "holdfast").mkdir(parents=True)
        (folder / "holdfast" / "holdfast.toml").write_text(f"[score]\nalpha = {alpha}\n")
    assert load(file=other, HOLDFAST_SETTINGS=str(named), **home).score.alpha == 0.5
    assert load(HOLDFAST_SETTINGS=str(other), **home).score.alpha == 0.5
    assert load(**home, HOLDFAST_SETTINGS="").score.alpha == 0.7
    assert load(HOME=str(tmp_path)).score.alpha == 0.6
    assert origin(load(**home), "score.alpha") == f"file {tmp_path / 'xdg' / 'holdfast' / 'holdfast.toml'}"


@pytest.mark.parametrize("config", [{}, {"XDG_CONFIG_HOME": "."}, {"XDG_CONFIG_HOME": "", "HOME": ""}, {"HOME": "."}])
def test_a_file_that_lies_in_the_working_folder_decides_nothing(config, written, tmp_path, monkeypatch):
    hostile = '[embedding]\nembedder = "openai"\nurl = "http://127.0.0.1:9"\n[store]\npath = "elsewhere.db"\n'
    beside = written(hostile)
    for folder in (tmp_path / "holdfast", tmp_path / ".config" / "holdfast"):
        folder.mkdir(parents=True)
        (folder / "holdfast.toml").write_text(hostile)
    monkeypatch.chdir(tmp_path)
    assert load(**config) == Settings()
    assert unread_file(config).resolve() == beside


def test_only_a_file_that_is_passed_over_is_unread(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert unread_file({}) is None
    beside = written("")
    assert unread_file({"HOLDFAST_SETTINGS": "holdfast.toml"}) is None
    (tmp_path / "holdfast").mkdir()
    (tmp_path / "holdfast" / "holdfast.toml").symlink_to(beside)
    assert unread_file({"XDG_CONFIG_HOME": str(tmp_path)}) is None


def test_keys_are_never_shown(tmp_path):
    settings = load({"embedding.api_key": "sk-one", "summariser.api_key": "sk-two"})
    assert (settings.embedding.api_key, settings.summariser.api_key) == ("sk-one", "sk-two")
    shown = repr(settings) + str(settings) + repr(settings.describe())
    assert "sk-" not in shown
    with pytest.raises(SettingsError) as refusal:
        load({"embedding.api_key": ["sk-three"]})
    assert "sk-" not in str(refusal.value)


def test_arguments_may_be_nested_or_dotted():
    assert load({"lexical": {"k1": 2.0, "weights": {"topic": 2.0}}}) == load(
        {"lexical.k1": 2.0, "lexical.weights.topic": 2.0}
    )


def test_variables_that_are_not_ours_are_left_alone():
    assert load(HOLDING="1", PATH="/bin", holdfast_lexical__k1="9") == Settings()


def test_tables_are_merged_entry_by_entry_over_all_origins(written):
    file = written("[lexical.weights]\ntopic = 2.0\nclaim = 1.1\n")
    settings = load({"lexical.weights.role": 0.4}, file=file, HOLDFAST_LEXICAL__WEIGHTS__CLAIM="1.2")
    assert settings.lexical.weights == {**Settings().lexical.weights, "topic": 2.0, "claim": 1.2, "role": 0.4}
    assert origin(settings, "lexical.weights.topic") == f"file {file}"
    assert origin(settings, "lexical.weights.claim") == "environment HOLDFAST_LEXICAL__WEIGHTS__CLAIM"
    assert origin(settings, "lexical.weights.condition") == "default recipe"


def test_a_third_partys_strategy_can_be_given_a_weight():
    assert load({"fusion.weights.colour": 0.3}).fusion.weights["colour"] == 0.3


def test_whole_numbers_serve_as_numbers_and_lists_as_names():
    settings = load(
        {"lexical.k1": 2}, HOLDFAST_HYBRID__STRATEGIES="lexical,colour", HOLDFAST_RETRIEVAL__TIMEOUT_MS="50"
    )
    assert (settings.lexical.k1, settings.retrieval.timeout_ms) == (2.0, 50.0)
    assert isinstance(settings.lexical.k1, float)
    assert settings.hybrid.strategies == ("lexical", "colour")
    assert load({"fast.strategies": ["lexical"]}).fast.strategies == ("lexical",)


@pytest.mark.parametrize("text", ["shop", "1.10", "1e5", "007", "true", "12", "NaN", " padded"])
def test_an_environment_value_of_a_text_setting_is_kept_letter_for_letter(text):
    assert load(HOLDFAST_STORE__TENANT=text).store.tenant == text


def test_one_memorys_settings_are_not_anothers():
    one, two = Settings(), Settings()
    assert one.lexical.weights is not two.lexical.weights
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.lexical.k1 = 9.0


# ---------------------------------------------------------------------------------------------------- refusing


@pytest.mark.parametrize(
    "key",
    [
        "lexical.k9",
        "lexcal.k1",
        "k1",
        "",
        "lexical",
        "lexical.",
        "origins.x",
        "lexical.k1.x",
        "fast.weights.topic",
        ".",
    ],
)
def test_an_unknown_key_is_refused_by_name(key):
    with pytest.raises(SettingsError) as refusal:
        load({key: 1.0})
    assert repr(key) in str(refusal.value)


def test_an_unknown_environment_name_is_refused():
    with pytest.raises(SettingsError, match=r"'lexical\.k9'"):
        load(HOLDFAST_LEXICAL__K9="1")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lexical.k1", "fast"),
        ("lexical.k1", True),
        ("lexical.k1", None),
        ("lexical.k1", [1.2]),
        ("lexical.weights.topic", "high"),
        ("lexical.weights", 1.0),
        ("retrieval.max_candidates", 10.5),
        ("retrieval.max_candidates", True),
        ("retrieval.max_candidates", "many"),
        ("store.path", True),
        ("store.tenant", None),
        ("hybrid.strategies", 5),
        ("hybrid.rank_by", True),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_with_its_key(key, value):
    with pytest.raises(SettingsError) as refusal:
        load({key: value})
    assert key in str(refusal.value)


NUMBERS = [row.key for row in Settings().describe() if isinstance(row.value, float)]


@pytest.mark.parametrize("key", NUMBERS)
def test_not_a_number_is_refused_everywhere_with_its_key(key):
    with pytest.raises(SettingsError) as refusal:
        load({key: math.nan})
    assert key in str(refusal.value)
    assert "nan" in str(refusal.value) or "not a number" in str(refusal.value)
    name = f"HOLDFAST_{key.upper().replace('.', '__')}"
    with pytest.raises(SettingsError, match=key):
        load(**{name: "NaN"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lexical.k1", -0.1),
        ("lexical.k1", math.inf),
        ("lexical.b", 1.1),
        ("lexical.b", -0.1),
        ("lexical.role_boost", 0.9),
        ("lexical.weights.claim", -1.0),
        ("fusion.weights.dense", 0.0),
        ("fusion.agreement_bonus", -0.15),
        ("score.lambda_session", 0.0),
        ("score.lambda_user", -1e-5),
        ("score.lambda_global", math.inf),
        ("score.delta", 1.5),
        ("projection.keyword_weight", -0.1),
        ("projection.min_similarity", 1.5),
        ("projection.rates.summary", 0.0),
        ("dense.exit_256", -1.5),
        ("temporal.picks", 0),
        ("compaction.min_align", 2.0),
        ("balanced.gap", 1.5),
        ("thinking.max_results", 0),
        ("fast.escalate_below", -1),
        ("retrieval.timeout_ms", 0.0),
        ("retrieval.max_candidates", 0),
        ("fast.max_results", 0),
        ("fast.min_score", -0.3),
        ("hybrid.gap", 1.5),
        ("hybrid.rank_by", "luck"),
        ("hybrid.strategies", []),
        ("ingest.max_text_bytes", 0),
        ("ingest.max_metadata_bytes", 1),
        ("store.busy_timeout_ms", -1),
        ("store.path", ""),
        ("store.tenant", ""),
        ("tokens.ratios", "cheap"),
        ("lexical.weights.colour", 1.0),
    ],
)
def test_a_value_outside_its_domain_is_refused_with_key_and_value(key, value):
    with pytest.raises(SettingsError) as refusal:
        load({key: value})
    message = str(refusal.value)
    if key == "lexical.weights.colour":
        assert "lexical.weights" in message
        assert "'colour'" in message
        return
    assert key in message
    assert str(value) in message or "empty" in message or "()" in message


@pytest.mark.parametrize("key", [row.key for row in Settings().describe()])
def test_every_key_may_stand_in_the_environment(key):
    value = values(Settings())[key]
    text = ",".join(value) if isinstance(value, tuple) else json.dumps(value) if not isinstance(value, str) else value
    if "-" in key or value in ((), {}):  # a shell knows no such name, and what is empty has no text
        return
    assert load(**{f"HOLDFAST_{key.upper().replace('.', '__')}": text}) == Settings()


def test_every_value_in_which_the_recipes_differ_may_stand_in_a_file(written):
    ours, theirs = values(Settings()), values(Settings.reference())
    apart = {key: value for key, value in theirs.items() if value != ours[key] and key != "recipe"}
    for key, value in apart.items():
        group, _, name = key.rpartition(".")
        text = json.dumps(value)
        # On its own a value may break an order that both recipes keep.
        base = {"projection.min_similarity": 1.0} if key == "temporal.recovery_similarity" else {}
        assert values(load(base, file=written(f"[{group}]\n{name} = {text}\n")))[key] == value
    assert len(apart) > 40


TURNED = {
    "score.delta": 0.3, "projection.keyword_weight": 0.5, "projection.min_similarity": 0.25, "dense.early_exit": True,
    "dense.exit_64": 0.6, "dense.exit_256": 0.7, "temporal.picks": 2, "compaction.min_align": 0.4,
    "fusion.agreement_bonus": 0.1, "analysis.tokenizer": "reference", "tokens.ratios": "reference",
    "lexical.role_boost": 1.1, "symbolic.goal_bonus": 1.0, "symbolic.seed_bonus": 1.2, "stages.thread": 0.0,
    "stages.questions": 0.0, "projection.growth": 0, "projection.hop_share": 0.4, "temporal.stop": 0.2,
    "gate.wide": False, "compaction.min_terms": 0, "hybrid.rank_by": "fused", "fast.normalise": "best",
    "projection.rates.turn": 2e-5, "projection.rates.knowledge": 1e-7,
    "projection.rates.summary": 1e-6, "fast.max_results": 4, "balanced.min_score": 0.2, "balanced.escalate_below": 2,
    "thinking.gap": 0.4, "thinking.escalation": ("hdc-vsa",), "fast.mix.lexical": 0.5,
}  # fmt: skip


@pytest.mark.parametrize("key", TURNED)
def test_what_the_contract_or_a_recipe_may_change_can_stand_in_a_file_and_in_the_environment(key, written):
    group, _, name = key.rpartition(".")
    value, text = TURNED[key], json.dumps(TURNED[key])
    variable = f"HOLDFAST_{key.upper().replace('.', '__')}"
    from_file = load(file=written(f"[{group}]\n{name} = {text}\n"))
    said = ",".join(value) if isinstance(value, tuple) else value if isinstance(value, str) else text
    from_environment = load(**{variable: said})
    assert values(from_file)[key] == values(from_environment)[key] == value
    assert values(Settings()).get(key) != value


@pytest.mark.parametrize("called", ["all-minilm-l6-v2", "nomic-embed-text-v1.5"])
def test_an_embedder_may_be_called_as_the_sources_systems_call_it(called, written):
    real = {"all-minilm-l6-v2": "minilm", "nomic-embed-text-v1.5": "nomic-768"}[called]
    ways = (
        load({"embedding.embedder": called}),
        load(HOLDFAST_EMBEDDING__EMBEDDER=called),
        load(file=written(f'[embedding]\nembedder = "{called}"\n')),
        Settings(embedding=EmbeddingSettings(embedder=called)),
    )
    assert all(values(settings)["embedding.embedder"] == real for settings in ways)
    with pytest.raises(SettingsError, match="'kb-fast'"):
        load({"embedding.embedder": "kb-fast"})


def test_a_rate_of_an_unknown_kind_is_refused():
    with pytest.raises(SettingsError, match=r"projection\.rates has no field 'authored'.*turn, knowledge, summary"):
        load({"projection.rates.authored": 1e-5})


@pytest.mark.parametrize("key", ["symbolic.depth", "hyper.weights.topic", "refusal.turns", "stages.rare_names"])
def test_a_constant_is_no_setting_and_the_refusal_says_where_it_was_named(key, written):
    group, _, name = key.rpartition(".")
    file = written(f"[{group}]\n{name} = 1\n")
    with pytest.raises(SettingsError) as refusal:
        load(file=file)
    assert str(refusal.value) == (
        f"there is no setting {key!r} (from file {file}); `holdfast settings` lists all of them"
    )
    with pytest.raises(SettingsError, match=rf"no setting '{key}';"):
        load({key: 1})


def test_settings_built_directly_are_validated_too():
    with pytest.raises(SettingsError, match=r"score\.delta = 2"):
        ScoreSettings(delta=2.0)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("lexical = [", "not valid TOML"),
        ("[lexical]\nk9 = 1\n", "'lexical.k9'"),
        ("k1 = 3\n", "'k1'"),
        ("\ud800", "TOML"),
        ("a = " + "[" * 5000, "too deeply"),
        ("a = " + "{a = " * 3000, "too deeply"),
    ],
)
def test_a_bad_settings_file_is_refused(text, part, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(SettingsError) as refusal:
        load(file=path)
    assert part in str(refusal.value)


@pytest.mark.parametrize("named", ["argument", "environment"])
def test_a_named_file_that_is_not_there_is_an_error_that_names_it(named, tmp_path):
    path = tmp_path / "absent.toml"
    with pytest.raises(SettingsError, match=r"absent\.toml"):
        load(file=path) if named == "argument" else load(HOLDFAST_SETTINGS=str(path))


def test_a_settings_file_that_is_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(SettingsError, match="no ordinary file"):
        load(file=tmp_path / "pipe.toml")
