"""Summarisers: how settings become one, and what a T5 from a folder writes, or refuses to be.

The folder is a tiny T5 of our own (scripts/build_tiny_t5.py); what PyTorch writes with it, running the whole decoder
again for every token, is in its `oracle.json`.
"""

import hashlib
import json
import math
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper

from holdfast import InputError, SettingsError, SummariserError
from holdfast.models import can_summarise, open_summariser
from holdfast.models import t5 as t5_module
from holdfast.models.embedder import shipped_folder
from holdfast.models.t5 import ENCODER, FIRST, LATER, MERGED, T5File, T5Model
from holdfast.settings import SummariserSettings

TINY = Path(__file__).parents[1] / "fixtures" / "tiny_t5"
ORACLE = json.loads((TINY / "oracle.json").read_text(encoding="utf-8"))
LAYOUTS = {"merged": (FIRST, LATER), "two files": (MERGED,)}
TURNS = ["Good morning.", "Ana moved to Lisbon in March.", "That sounds nice."]
SUMMARY = "Ana moved to Lisbon in March."


def t5(folder=TINY, **settings):
    # Not through the cache: each test gets a model of its own, not yet loaded.
    return open_summariser.__wrapped__(SummariserSettings(summariser="onnx", folder=str(folder), **settings))


def laid_out(path, layout="merged"):
    """Copy the folder, with one kind of decoder in it."""
    shutil.copytree(TINY, path, dirs_exist_ok=True)
    for name in LAYOUTS[layout]:
        (path / name).unlink()
    return path


@pytest.fixture(params=LAYOUTS)
def folder(request, tmp_path):
    return laid_out(tmp_path / "tiny", request.param)


def steps(summariser, read, max_tokens):
    """Return the ids that are written and their log-probabilities."""
    ids, logs = zip(*summariser._model().write(read, max_tokens), strict=True)
    return list(ids), list(logs)


def refused(folder, match, **settings):
    with pytest.raises(SummariserError, match=match) as caught:
        t5(folder, **settings).summarise(TURNS, max_tokens=64)
    return str(caught.value)


# ---------------------------------------------------------------------------------------------------- choosing


def test_whether_a_model_would_write_summaries_is_known_without_reading_or_asking_it(tmp_path):
    def able(**settings):
        return can_summarise(SummariserSettings(**settings))

    assert not able()
    assert able(summariser="onnx", folder=str(TINY))
    assert not able(summariser="onnx", folder=str(tmp_path))
    assert not able(summariser="onnx")
    assert able(summariser="openai", url="http://127.0.0.1:1", model="m")
    assert not able(summariser="openai", url="http://127.0.0.1:1")


def test_extractive_is_no_summariser():
    assert open_summariser(SummariserSettings()) is None


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({"summariser": "onnx"}, "folder"),
        ({"summariser": "onnx", "folder": "  "}, "folder"),
        ({"summariser": "openai", "model": "m"}, "url"),
        ({"summariser": "openai", "url": "http://127.0.0.1:1"}, "model"),
    ],
)
def test_a_summariser_asks_for_the_setting_it_needs(settings, missing):
    with pytest.raises(SettingsError, match=rf"needs summariser\.{missing}, which is empty; set it"):
        open_summariser(SummariserSettings(**settings))


def test_one_model_is_shared():
    settings = SummariserSettings(summariser="onnx", folder=str(TINY))
    assert open_summariser(settings) is open_summariser(SummariserSettings(summariser="onnx", folder=str(TINY)))


def test_choosing_no_model_imports_no_model_library():
    program = (
        "import sys; from holdfast.models import open_summariser as o; "
        "from holdfast.settings import SummariserSettings as S; "
        "o(S()); o(S(summariser='openai', url='http://h', model='m')); "
        "print([m for m in ('onnxruntime', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_library_is_named_with_its_install_line():
    program = (
        "import sys; sys.modules['onnxruntime'] = None; "
        "from holdfast.models import open_summariser as o; "
        "from holdfast.settings import SummariserSettings as S; o(S(summariser='onnx', folder='.'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert "SummariserError" in last
    assert "pip install onnxruntime tokenizers" in last


def test_nothing_is_read_before_it_is_needed(tmp_path):
    later = t5(tmp_path / "tiny")
    laid_out(tmp_path / "tiny")
    assert later.summarise(TURNS, max_tokens=64).text == SUMMARY


# ---------------------------------------------------------------------------------------------------- writing


def test_the_fixture_is_what_its_record_says():
    record = json.loads((TINY / "PROVENANCE.json").read_text(encoding="utf-8"))
    found = {path.name for path in TINY.iterdir()}
    assert found == {*record["files"], "PROVENANCE.json"}
    for name, known in record["files"].items():
        assert hashlib.sha256((TINY / name).read_bytes()).hexdigest() == known["sha256"], name
    assert sum(known["bytes"] for known in record["files"].values()) < 1_500_000


@pytest.mark.parametrize("case", ORACLE, ids=lambda case: case["text"][:24] or "nothing")
def test_it_writes_what_pytorch_writes_without_a_cache(folder, case):
    summariser = t5(folder, max_input_tokens=case["max_input_tokens"])
    ids, logs = steps(summariser, case["input_ids"], case["max_tokens"])
    assert ids == case["ids"]
    assert logs == pytest.approx(case["log_probabilities"], abs=1e-4)
    writing = summariser.summarise(case["turns"], max_tokens=case["max_tokens"])
    assert writing.text == case["text"].strip()
    assert writing.confidence == pytest.approx(math.exp(np.mean(case["log_probabilities"])), abs=1e-4)


def test_the_oracle_ends_by_itself_by_the_limit_and_with_doubt():
    assert any(len(case["ids"]) == case["max_tokens"] for case in ORACLE)
    assert any(len(case["ids"]) < case["max_tokens"] for case in ORACLE)
    means = [math.exp(np.mean(case["log_probabilities"])) for case in ORACLE]
    assert min(means) < 0.97 < max(means)
    assert any(len(case["input_ids"]) == case["max_input_tokens"] for case in ORACLE)


@cache
def session(name):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(str(TINY / name), options)


def without_cache(read, written):
    """Return the log-probabilities after each prefix of `written`, of a decoder that reads the whole prefix again."""
    ids = np.array([read])
    [hidden] = session(ENCODER).run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    context = {"encoder_attention_mask": np.ones_like(ids), "encoder_hidden_states": hidden}
    for length in range(len(written) + 1):
        feeds = {"input_ids": np.array([[0, *written[:length]]]), **context}
        scores = session(FIRST).run(["logits"], feeds)[0][0, -1].astype(float)
        yield scores - np.logaddexp.reduce(scores)


@given(read=st.lists(st.integers(0, 300), min_size=1, max_size=20), max_tokens=st.integers(1, 12))
def test_with_a_cache_it_writes_what_it_writes_without(read, max_tokens):
    for summariser in BOTH.values():
        found = list(summariser._model().write([*read, 1], max_tokens))
        *due, end = without_cache([*read, 1], [token for token, _ in found])
        for (token, log), odds in zip(found, due, strict=True):
            assert log == pytest.approx(odds[token], abs=1e-4)
            # Nothing else is likelier, beyond what rounding can decide.
            assert log == pytest.approx(odds.max(), abs=1e-4)
        assert len(found) == max_tokens or end[1] == pytest.approx(end.max(), abs=1e-4)


def test_each_step_reads_one_token_and_the_text_is_read_once(folder, monkeypatch):
    calls, run = [], T5File.run

    def spy(part, feeds):
        calls.append((part.path.name, feeds))
        return run(part, feeds)

    monkeypatch.setattr(T5File, "run", spy)
    assert t5(folder).summarise(TURNS, max_tokens=64).text == SUMMARY
    names = [name for name, _ in calls]
    first, later = (MERGED, MERGED) if (folder / MERGED).exists() else (FIRST, LATER)
    assert names == [ENCODER, first, *[later] * (len(names) - 2)]
    assert len(names) > 6
    assert {feeds["input_ids"].shape for _, feeds in calls[1:]} == {(1, 1)}
    for step, (_, feeds) in enumerate(calls[2:], start=1):
        assert feeds["past_key_values.1.decoder.key"].shape == (1, 2, step, 16)
        assert feeds["past_key_values.1.encoder.value"] is calls[2][1]["past_key_values.1.encoder.value"]


@pytest.mark.parametrize("max_tokens", [1, 2, 3, 64])
def test_the_limit_of_tokens_holds(folder, max_tokens):
    whole, limited = t5(folder), t5(folder)
    read = whole._model().tokenizer.encode("summarize: " + "\n".join(TURNS)).ids
    everything, some = steps(whole, read, 500)[0], steps(limited, read, max_tokens)[0]
    assert some == everything[:max_tokens]
    assert limited.summarise(TURNS, max_tokens=max_tokens).text == whole._model().tokenizer.decode(some).strip()


def test_words_to_keep_do_not_change_what_it_writes():
    assert t5().summarise(TURNS, max_tokens=64, keep=["Oslo"]) == t5().summarise(TURNS, max_tokens=64)


@pytest.mark.parametrize("prefix", ["", "  "])
def test_a_blank_prefix_is_none(prefix):
    bare = t5(prefix="").summarise(TURNS, max_tokens=64)
    assert t5(prefix=prefix).summarise(TURNS, max_tokens=64) == bare
    assert bare.confidence != t5().summarise(TURNS, max_tokens=64).confidence


def test_long_input_is_cut():
    long = ["Ana moved to Lisbon in March.", *["What a lovely day it is."] * 40_000, "Ivo works in Porto."]
    summariser = t5(max_input_tokens=24)
    lengths, run = [], T5File.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            T5File, "run", lambda part, feeds: lengths.append(feeds["input_ids"].shape[1]) or run(part, feeds)
        )
        cut = summariser.summarise(long, max_tokens=64)
    assert lengths[0] == 24
    assert "Porto" not in cut.text
    assert cut == summariser.summarise(long[:30], max_tokens=64)


def test_a_limit_without_room_for_words_is_refused():
    refused(TINY, r"summariser\.max_input_tokens = 1 leaves no room next to the 1 marks", max_input_tokens=1)


BOTH: dict[str, object] = {}


@pytest.fixture(autouse=True, scope="module")
def _both(tmp_path_factory):
    for layout in LAYOUTS:
        BOTH[layout] = t5(laid_out(tmp_path_factory.mktemp("both") / "tiny", layout))
    yield
    BOTH.clear()


def outcome(summariser, turns, max_tokens):
    try:
        return summariser.summarise(turns, max_tokens=max_tokens)
    except (InputError, SummariserError) as error:
        return error


@given(turns=st.lists(st.text(), max_size=6), max_tokens=st.integers(1, 12))
def test_whatever_it_reads_it_writes_a_little_or_says_why_not(turns, max_tokens):
    for summariser in BOTH.values():
        found = outcome(summariser, turns, max_tokens)
        if not any(turn.strip() for turn in turns):
            assert isinstance(found, InputError)
        elif isinstance(found, SummariserError):
            assert "wrote nothing" in str(found)
        else:
            assert 0.0 <= found.confidence <= 1.0
            assert found.text == found.text.strip() != ""
            assert found == outcome(summariser, turns, max_tokens)


def test_many_threads_load_once_and_write_the_same(folder, monkeypatch):
    loads, load = [], T5Model.load

    def counting(path, max_tokens):
        loads.append(path)
        return load(path, max_tokens)

    monkeypatch.setattr(t5_module.T5Model, "load", counting)
    cases = [case for case in ORACLE if case["text"].strip()] * 4
    alone = t5(folder)
    expected = [alone.summarise(case["turns"], max_tokens=case["max_tokens"]) for case in cases]
    loads.clear()
    shared, start = t5(folder), threading.Barrier(8)

    def write(case):
        if not loads:
            start.wait()
        return shared.summarise(case["turns"], max_tokens=case["max_tokens"])

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(write, cases[:8])) + list(pool.map(write, cases[8:]))
    assert found == expected
    assert len(loads) == 1


# ---------------------------------------------------------------------------------------------------- naming


def test_the_name_is_the_folders_and_its_bytes(tmp_path):
    first = t5(laid_out(tmp_path / "a" / "tiny")).name
    assert first.startswith("tiny-")
    assert len(first) == len("tiny-") + 12
    assert t5(laid_out(tmp_path / "b" / "tiny")).name == first
    assert t5(laid_out(tmp_path / "c" / "other")).name == first.replace("tiny", "other")
    assert t5(laid_out(tmp_path / "d" / "tiny", "two files")).name != first
    changed = laid_out(tmp_path / "e" / "tiny")
    (changed / f"{MERGED}_data").write_bytes(b"weights beside the model")
    assert t5(changed).name != first


def test_a_name_needs_files(tmp_path):
    with pytest.raises(SummariserError, match="there is no folder"):
        _ = t5(tmp_path / "gone").name


# ---------------------------------------------------------------------------------------------------- broken folders


def test_a_missing_folder_is_named(tmp_path):
    assert str(tmp_path / "gone") in refused(tmp_path / "gone", r"there is no folder .*set summariser\.folder")


@pytest.mark.parametrize("missing", [ENCODER, "tokenizer.json", "config.json"])
def test_a_missing_file_is_named(folder, missing):
    (folder / missing).unlink()
    assert str(folder / missing) in refused(folder, "there is no .*; a T5 folder holds")


def test_a_folder_without_a_decoder_is_refused(folder):
    for name in (MERGED, FIRST, LATER):
        (folder / name).unlink(missing_ok=True)
    refused(folder, "there is no decoder in .*a T5 folder holds .*optimum-cli export onnx")


@pytest.mark.parametrize("missing", [FIRST, LATER])
def test_half_a_decoder_is_refused(tmp_path, missing):
    (laid_out(tmp_path, "two files") / missing).unlink()
    refused(tmp_path, f"there is no .*{missing} beside the other half .*text2text-generation-with-past")


@pytest.mark.parametrize("broken", [ENCODER, MERGED, FIRST, LATER, "tokenizer.json", "config.json"])
def test_a_broken_file_is_named(tmp_path, broken, capfd):
    laid_out(tmp_path, "merged" if broken == MERGED else "two files")
    (tmp_path / broken).write_bytes(b"\x00 not what it was")
    refused(tmp_path, f"{broken} (is not a|cannot be read).*(copy it again|export or copy)")
    assert capfd.readouterr() == ("", "")


def test_a_repaired_folder_can_be_used(folder):
    summariser = t5(folder)
    (folder / "config.json").rename(folder / "away.json")
    with pytest.raises(SummariserError):
        summariser.summarise(TURNS, max_tokens=64)
    (folder / "away.json").rename(folder / "config.json")
    assert summariser.summarise(TURNS, max_tokens=64).text == SUMMARY


def configure(folder, **changes):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8")) | changes
    kept = {name: value for name, value in config.items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(kept), encoding="utf-8")


@pytest.mark.parametrize("name", ["decoder_start_token_id", "eos_token_id", "num_heads", "d_kv"])
@pytest.mark.parametrize("value", [..., None, "1", [1], True, -1, 1.0])
def test_a_configuration_without_its_numbers_is_refused(tmp_path, name, value):
    configure(laid_out(tmp_path), **{name: value})
    refused(tmp_path, rf"config\.json says {name} = .* where a whole number from [01] was due; use a model of the T5")


@pytest.mark.parametrize("text", ["[]", "null", "3", "[" * 100_000])
def test_a_configuration_that_is_none_is_refused(tmp_path, text):
    (laid_out(tmp_path) / "config.json").write_text(text)
    refused(tmp_path, r"config\.json (holds|cannot be read)")


def test_layers_are_counted_once_where_both_halves_are_equally_deep(folder):
    configure(folder, num_decoder_layers=None)
    assert t5(folder).summarise(TURNS, max_tokens=64).text == SUMMARY
    configure(folder, num_decoder_layers=..., num_layers=...)
    refused(folder, "num_decoder_layers = None")


@pytest.mark.parametrize(
    ("layers", "wrong"),
    [(1, "asks for the input 'past_key_values.1"), (3, "has no input"), (10**12, "has no input")],
)
def test_a_model_with_other_layers_than_configured_is_refused(folder, layers, wrong):
    configure(folder, num_decoder_layers=layers)
    refused(folder, f"not shaped like this part of a T5 .*{wrong}")


@pytest.mark.parametrize(
    ("part", "other"),
    [
        (part, other)
        for part in (ENCODER, MERGED, FIRST, LATER)
        for other in ("bert", ENCODER, FIRST, LATER)
        if part != other
    ],
)
def test_a_model_of_another_kind_is_refused(tmp_path, part, other):
    laid_out(tmp_path, "merged" if part == MERGED else "two files")
    shutil.copy(shipped_folder("minilm") / "model.onnx" if other == "bert" else TINY / other, tmp_path / part)
    refused(tmp_path, f"{part} is not shaped like this part of a T5 .*optimum-cli export onnx")


def test_a_tokenizer_of_another_model_is_found_out(folder, capfd):
    shutil.copy(shipped_folder("minilm") / "tokenizer.json", folder)
    refused(folder, f"{ENCODER} fails: .*; see that all files of .* are of one model")
    assert capfd.readouterr() == ("", "")


def test_a_start_that_the_model_does_not_know_is_found_out(tmp_path):
    configure(laid_out(tmp_path), decoder_start_token_id=10**6)
    refused(tmp_path, f"{MERGED} fails: ")


def poison(path, value):
    """Put a value into the largest table of a model: that of the pieces."""
    model = onnx.load(path)
    table = max(model.graph.initializer, key=lambda one: np.prod(one.dims))
    changed = numpy_helper.to_array(table).copy()
    changed[:] = value
    table.CopyFrom(numpy_helper.from_array(changed, table.name))
    onnx.save(model, path)


@pytest.mark.parametrize("part", [MERGED, FIRST, LATER])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_model_that_gives_no_numbers_is_not_believed(tmp_path, part, value):
    laid_out(tmp_path, "merged" if part == MERGED else "two files")
    poison(tmp_path / part, value)
    refused(tmp_path, f"{part} gave the logit nan for token .* no finite number; export or copy it again")


def test_a_model_that_ends_at_once_wrote_nothing(folder):
    configure(folder, eos_token_id=ORACLE[0]["ids"][0])
    refused(folder, r"wrote nothing about a text of \d+ tokens; check summariser\.prefix")


def test_of_equally_likely_tokens_the_lowest_is_taken():
    part = T5File(Path("decoder"), None, {}, ())
    assert t5_module._likeliest(np.array([[[0.0, 7.0, 7.0, -np.inf]]]), part) == (
        1,
        pytest.approx(7 - math.log(1 + 2 * math.exp(7))),
    )
    # In single precision the sum would be exactly one.
    assert t5_module._likeliest(np.array([[[30.0, 0.0]]], np.float32), part)[1] == pytest.approx(-math.exp(-30.0))
    for shape in ((1, 2, 4), (2, 1, 4), (1, 4), (1, 1, 0)):
        with pytest.raises(SummariserError, match="gave logits of shape"):
            t5_module._likeliest(np.zeros(shape), part)


# ---------------------------------------------------------------------------------------------------- asked badly


@pytest.mark.parametrize(
    ("turns", "max_tokens", "wrong"),
    [
        ("one text", 8, "list of turns"),
        ([], 8, "none of the 0 turns"),
        ([" ", ""], 8, "none of the 2 turns"),
        (TURNS, 0, "no room"),
    ],
)
def test_what_cannot_be_summarised_is_refused(turns, max_tokens, wrong):
    with pytest.raises(InputError, match=wrong):
        t5().summarise(turns, max_tokens=max_tokens)


def test_half_a_character_and_blank_turns_do_no_harm():
    plain = t5().summarise(["Ana moved to Lisbon in March.", "?"], max_tokens=64)
    assert t5().summarise([" Ana moved to Lisbon in March.", "", "\ud800"], max_tokens=64) == plain
