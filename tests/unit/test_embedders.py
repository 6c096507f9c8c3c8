"""Embedders: how settings become one, what is published about the models, and what happens when things are broken."""

import json
import re
import shutil
import socket
import subprocess
import sys
import traceback

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from endpoint import EmbeddingServer, well_behaved
from holdfast import EmbedderError, InputError, SettingsError
from holdfast.models import build_embedder
from holdfast.models import embedder as shipped
from holdfast.models import onnx as onnx_module
from holdfast.models.embedder import (
    PROVENANCE,
    READER,
    SHIPPED,
    Preparation,
    shipped_folder,
    unit_vector,
    verify_shipped,
)
from holdfast.settings import EmbeddingSettings
from holdfast.testing.contracts import HashEmbedder


def build(embedder, **settings):
    return build_embedder(EmbeddingSettings(embedder=embedder, **settings))


def folder(path, **settings):
    return build("onnx", folder=str(path), **settings)


# ---------------------------------------------------------------------------------------------------- choosing


def test_none_is_no_embedder():
    assert build("none") is None


@pytest.mark.parametrize(("embedder", "missing"), [("onnx", "folder"), ("openai", "url"), ("ollama", "url")])
def test_an_embedder_asks_for_the_setting_it_needs(embedder, missing):
    with pytest.raises(SettingsError, match=rf"needs embedding\.{missing}"):
        build(embedder)


def test_an_endpoint_needs_a_model():
    with pytest.raises(SettingsError, match=r"needs embedding\.model"):
        build("ollama", url="http://127.0.0.1:1")


def test_importing_and_choosing_no_embedder_imports_no_model_library():
    program = (
        "import sys, holdfast, holdfast.models as e; from holdfast.settings import EmbeddingSettings as S; "
        "e.build_embedder(S(embedder='none')); e.build_embedder(S(embedder='ollama', url='http://h', model='m')); "
        "print([m for m in ('onnxruntime', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_library_is_named_with_its_install_line():
    # In a process of its own: in this one, another test may have imported the library's reader already.
    program = (
        "import sys; sys.modules['onnxruntime'] = None; "
        "from holdfast.models import build_embedder; from holdfast.settings import EmbeddingSettings as S; "
        "build_embedder(S(embedder='minilm'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "MissingExtraError" in last
    assert re.search(r"onnxruntime.*pip install onnxruntime tokenizers", last)


def test_one_text_in_place_of_a_list_is_refused():
    with pytest.raises(InputError, match="list of texts"):
        build("potion").embed_documents("one text")


# ---------------------------------------------------------------------------------------------------- preparing


def test_prefixes_are_used_to_the_letter():
    ready = Preparation(256, "search_query: ", "title:")
    assert ready.query(" Where? ") == "search_query: Where?"
    assert ready.document("Here.") == "title:Here."


def test_a_blank_text_stays_empty_and_a_blank_prefix_is_none():
    assert Preparation(256, "query: ").query(" \n") == ""
    blank = Preparation(256, "  ", "\t")
    assert blank.document("Here.") == "Here."
    assert blank.mark == Preparation(256).mark


def test_preparations_that_change_vectors_change_the_space():
    marks = {
        Preparation(256).mark,
        Preparation(128).mark,
        Preparation(256, "q: ").mark,
        Preparation(256, "", "q: ").mark,
        Preparation(256, "q: ", "d: ").mark,
    }
    assert len(marks) == 5


def test_a_vector_has_length_one_or_zero():
    assert unit_vector(np.array([3.0, 4.0]), 2, "it").tolist() == pytest.approx([0.6, 0.8])
    assert unit_vector(np.zeros(2), 2, "it").tolist() == [0.0, 0.0]


@pytest.mark.parametrize("values", [[np.nan, 1.0], [np.inf, 1.0], [1e300, 1e300]])
def test_a_vector_is_finite(values):
    with pytest.raises(EmbedderError, match="it gave a vector with a value that is no finite number"):
        unit_vector(np.array(values), 2, "it")


# ---------------------------------------------------------------------------------------------------- shipped models


def test_minilm_gives_the_values_of_its_weights():
    # Of the fp32 graph of the same weights, as scripts/build_models.py makes it. int8 moves a vector by 7 degrees.
    found = build("minilm").embed_query("This is an example sentence")
    assert found[:4] == pytest.approx([-0.153, 0.316, 0.026, 0.019], abs=0.03)


def test_the_first_dimensions_of_minilm_carry_the_most():
    told = build("minilm").embed_documents(["I moved to Porto in May.", "The soup needs salt.", "My cat is grey."])
    # Of 384, where 64 taken at random hold a sixth of the squared length.
    assert (np.square(told[:, :64]).sum(axis=1) > 2 / 6).all()


def test_long_texts_are_cut_at_the_token_limit():
    short, long = build("minilm", max_tokens=8), build("minilm", max_tokens=256)
    six_words, more = "one two three four five six", "one two three four five six seven eight nine"
    assert short.embed_query(more).tobytes() == long.embed_query(six_words).tobytes()
    assert short.embed_query(more).tobytes() != long.embed_query(more).tobytes()


def test_the_static_model_is_the_mean_of_its_tokens():
    embedder, folder = build("potion"), shipped_folder("potion")
    table, tokenizer = np.load(folder / "embeddings.npy"), Tokenizer.from_file(str(folder / "tokenizer.json"))
    tea, cup = (table[tokenizer.token_to_id(word)].astype(float) for word in ("tea", "cup"))
    expected = (tea + cup) / np.linalg.norm(tea + cup)
    assert embedder.embed_query("Tea 🎉 cup").tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_the_static_model_says_nothing_about_unknown_tokens():
    assert not build("potion").embed_query("🎉 🎉").any()


@pytest.mark.parametrize("max_tokens", [1, 2])
def test_a_limit_without_room_for_words_is_refused(max_tokens):
    with pytest.raises(EmbedderError, match="leaves no room"):
        build("minilm", max_tokens=max_tokens)


def test_a_limit_beyond_the_model_is_refused_when_it_is_loaded():
    with pytest.raises(EmbedderError, match=r"lower embedding\.max_tokens"):
        build("minilm", max_tokens=600)


def test_shipped_files_are_whole():
    assert verify_shipped() == []


def test_shipped_models_say_where_they_come_from():
    for name in (*SHIPPED, READER):
        record = json.loads((shipped_folder(name) / PROVENANCE).read_text(encoding="utf-8"))
        assert {path.name for path in shipped_folder(name).iterdir()} == {*record["files"], PROVENANCE}
        assert record["licence"] in ("Apache-2.0", "MIT")
        assert len(record["source"]["weights_sha256"]) == 64
        assert name == READER or build(name).dims == record["dims"]


def test_a_changed_byte_is_named(tmp_path):
    for name in (*SHIPPED, READER):
        shutil.copytree(shipped_folder(name), tmp_path / name)
    assert verify_shipped(tmp_path) == []
    changed = tmp_path / "potion" / "embeddings.npy"
    content = bytearray(changed.read_bytes())
    content[-1] ^= 1
    changed.write_bytes(content)
    (tmp_path / "minilm" / "tokenizer.json").unlink()
    missing, different = verify_shipped(tmp_path)
    assert "minilm/tokenizer.json cannot be read" in missing
    assert "potion/embeddings.npy is not the file that was shipped" in different


def test_a_model_of_which_a_byte_has_changed_is_not_loaded(tmp_path, monkeypatch):
    shutil.copytree(shipped_folder("potion"), tmp_path / "potion")
    changed = tmp_path / "potion" / "embeddings.npy"
    content = bytearray(changed.read_bytes())
    content[-1] ^= 1
    changed.write_bytes(content)
    monkeypatch.setattr(shipped, "shipped_folder", lambda name: tmp_path / name)
    build_embedder.cache_clear()
    with pytest.raises(EmbedderError, match=r"embeddings\.npy is not the file that was shipped.*install"):
        build("potion")


def test_a_missing_record_is_named(tmp_path):
    assert all(PROVENANCE in problem for problem in verify_shipped(tmp_path))
    assert len(verify_shipped(tmp_path)) == len(SHIPPED) + 1


# ---------------------------------------------------------------------------------------------------- a folder


def tiny_model(path, *, rows=40_000, kind=TensorProto.INT64, inputs=("input_ids",), value=None):
    """Write a model that gives each token the vector (id % 7, 1) and a pooled output, with MiniLM's tokenizer."""
    path.mkdir(exist_ok=True)
    table = np.stack([np.arange(rows) % 7, np.ones(rows)], axis=1).astype(np.float32)
    if value is not None:
        table[:] = value
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["tokens"]),
        helper.make_node("ReduceMax", ["tokens", "axis"], ["pooled"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, kind, ["batch", "length"]) for name in inputs],
        [
            helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["batch", 2]),
            helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["batch", "length", 2]),
        ],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([1]), "axis")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, path / "model.onnx")
    shutil.copy(shipped_folder("minilm") / "tokenizer.json", path)
    return path


def at_length_one(*values):
    return pytest.approx([value / np.hypot(*values) for value in values])


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
def test_pooling_turns_tokens_into_one_vector(tmp_path, kind):
    # "tea" is [CLS] 101, tea 5572, [SEP] 102: first numbers 3, 0 and 4.
    tiny_model(tmp_path, kind=kind)
    assert folder(tmp_path, pooling="mean").embed_query("tea").tolist() == at_length_one(7 / 3, 1)
    assert folder(tmp_path, pooling="cls").embed_query("tea").tolist() == at_length_one(3, 1)
    assert folder(tmp_path, pooling="none").embed_query("tea").tolist() == at_length_one(4, 1)


def test_models_may_ask_for_more_than_the_ids(tmp_path):
    tiny_model(tmp_path, inputs=("input_ids", "attention_mask", "token_type_ids", "position_ids"))
    assert folder(tmp_path).dims == 2


def test_a_model_that_asks_for_something_else_is_refused(tmp_path):
    with pytest.raises(EmbedderError, match="asks for the input 'pixel_values'"):
        folder(tiny_model(tmp_path, inputs=("input_ids", "pixel_values")))


def test_a_folders_space_follows_its_bytes(tmp_path):
    first, second = tiny_model(tmp_path / "a"), tiny_model(tmp_path / "b")
    assert folder(first).space == folder(second).space
    assert folder(first).space != folder(first, pooling="cls").space
    assert folder(first).space != folder(tiny_model(tmp_path / "c", value=1.0)).space


@pytest.mark.parametrize("replaced", ["model.onnx", "tokenizer.json"])
def test_a_model_that_is_replaced_while_it_is_read_is_not_called_by_the_name_of_another(
    tmp_path, monkeypatch, replaced
):
    models, other = tiny_model(tmp_path / "a"), tiny_model(tmp_path / "b", value=1.0)
    read = onnx_module.open_session

    def replace(*given):
        session = read(*given)
        (other / replaced).replace(models / replaced)
        return session

    with monkeypatch.context() as patch:
        patch.setattr(onnx_module, "open_session", replace)
        with pytest.raises(EmbedderError, match="were replaced while they were read"):
            folder(models)
    assert folder(models).dims == 2


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path, missing):
    (tiny_model(tmp_path) / missing).unlink()
    with pytest.raises(EmbedderError, match=f"there is no .*{missing}"):
        folder(tmp_path)


@pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json"])
def test_a_broken_file_is_named(tmp_path, broken, capfd):
    (tiny_model(tmp_path) / broken).write_bytes(b"\x00 not what it was")
    with pytest.raises(EmbedderError, match=f"{broken} is not a"):
        folder(tmp_path)
    assert capfd.readouterr() == ("", "")


def test_a_tokenizer_of_another_model_is_found_out(tmp_path, capfd):
    with pytest.raises(EmbedderError, match=r"tokenizer\.json knows the token 30521 .* two models"):
        folder(tiny_model(tmp_path, rows=100))
    assert capfd.readouterr() == ("", "")


def test_a_pooling_that_does_not_fit_is_explained(tmp_path):
    shutil.copytree(shipped_folder("minilm"), tmp_path, dirs_exist_ok=True)
    with pytest.raises(EmbedderError, match=r"embedding \(1, 384\)\. Choose `none`"):
        folder(tmp_path, pooling="mean")


def test_a_model_that_gives_nan_is_not_believed(tmp_path):
    embedder = folder(tiny_model(tmp_path, value=np.nan))
    with pytest.raises(EmbedderError, match="no finite number"):
        embedder.embed_query("tea")
    with pytest.raises(EmbedderError, match="no finite number"):
        embedder.embed_documents(["tea", "cup", "pot"])


# ---------------------------------------------------------------------------------------------------- endpoints


KEY = "sk-very-secret-0123"


def endpoint(server, dialect="openai", **settings):
    url = getattr(server, "url", server)
    return build(dialect, **{"url": url, "model": "small", "api_key": KEY, "threads": 1, **settings})


def answering(body, status=200):
    """Answer every question with the same words."""
    return EmbeddingServer(lambda _path, _question: (status, body))


def error_of(embedder):
    with pytest.raises(EmbedderError) as caught:
        embedder.embed_query("tea")
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert "the embedding endpoint http" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("dialect", "suffix", "path"),
    [
        ("openai", "", "/v1/embeddings"),
        ("openai", "/", "/v1/embeddings"),
        ("openai", "/v1", "/v1/embeddings"),
        ("openai", "/v1/", "/v1/embeddings"),
        ("openai", "/v1/embeddings", "/v1/embeddings"),
        ("ollama", "", "/api/embed"),
        ("ollama", "/api", "/api/embed"),
        ("ollama", "/api/embed/", "/api/embed"),
    ],
)
def test_the_address_may_be_the_server_the_api_or_the_path(dialect, suffix, path):
    with EmbeddingServer() as server:
        embedder = endpoint(server.url + suffix, dialect)
        assert embedder.embed_query("blue door").tolist() == pytest.approx(HashEmbedder().embed_query("blue door"))
        assert {asked for asked, _, _ in server.requests} == {path}


def test_each_text_is_asked_alone_and_the_key_goes_to_openai_only():
    with EmbeddingServer() as server:
        endpoint(server).embed_documents(["tea", "cup", " "])
        assert [question["input"] for _, _, question in server.requests] == [["memory"], ["tea"], ["cup"]]
        assert {headers["Authorization"] for _, headers, _ in server.requests} == {f"Bearer {KEY}"}
        server.requests.clear()
        endpoint(server, "ollama").embed_documents(["tea"])
        assert all("Authorization" not in headers for _, headers, _ in server.requests)


def test_an_endpoint_is_cut_by_characters():
    with EmbeddingServer() as server:
        endpoint(server, max_tokens=3, document_prefix="d: ").embed_documents(["tea and a cup"])
        assert server.requests[-1][2]["input"] == ["d: tea and a"]


def test_building_an_endpoint_asks_nobody():
    with EmbeddingServer() as server:
        endpoint(server)
        assert server.requests == []


def test_an_endpoints_space_names_model_and_size():
    with EmbeddingServer() as server:
        assert endpoint(server, "ollama").space == "small/64/remote/ollama-256"


def test_an_endpoint_that_is_down():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert "cannot be reached" in error_of(endpoint(f"http://127.0.0.1:{port}"))


def test_an_endpoint_that_does_not_answer():
    with EmbeddingServer(lambda _path, _question: None) as server:
        assert "gave no answer within 0.05 s" in error_of(endpoint(server, timeout_s=0.05))


def test_an_endpoint_that_hangs_up():
    # The announced body is longer than what follows.
    with EmbeddingServer(lambda _path, _question: (200, b"", ("Content-Length", "10"))) as server:
        error_of(endpoint(server))


def test_an_endpoint_that_refuses():
    body = json.dumps({"error": f"no model 'small', key {KEY}\x1b[31m"}).encode()
    with answering(body, 404) as server:
        message = error_of(endpoint(server))
    assert "HTTP 404" in message
    assert "no model 'small', key (hidden)" in message
    assert message.isprintable()


def test_a_long_refusal_is_cut():
    with answering(b"busy " * 100_000, 503) as server:
        assert len(error_of(endpoint(server))) < 500


def test_an_endpoint_that_is_a_web_page():
    with answering(b"<html>Welcome</html>") as server:
        assert "did not answer with JSON but with <html>Welcome</html>" in error_of(endpoint(server))


@pytest.mark.parametrize(
    "answer",
    [
        "[]",
        "null",
        "3",
        '{"data": []}',
        '{"data": [{"embedding": [1, 2]}, {"embedding": [1, 2]}]}',
        '{"data": [{"vector": [1]}]}',
        '{"data": [{"embedding": "AAAA"}]}',
        '{"data": [{"embedding": [1, "x"]}]}',
        '{"data": [{"embedding": [[1], [1, 2]]}]}',
        '{"data": [{"embedding": [[1, 2]]}]}',
        '{"data": [{"embedding": []}]}',
        '{"data": [{"embedding": 5}]}',
    ],
)
def test_an_endpoint_that_answers_something_else(answer):
    with answering(answer.encode()) as server:
        message = error_of(endpoint(server))
    assert "one vector for one text" in message or "not with a vector" in message


@pytest.mark.parametrize("value", ["NaN", "Infinity", "null"])
def test_an_endpoint_that_gives_no_number(value):
    with answering(f'{{"data": [{{"embedding": [1.0, {value}]}}]}}'.encode()) as server:
        assert "no finite number" in error_of(endpoint(server))


def test_an_endpoint_whose_vectors_change_length():
    lengths = iter([4, 4, 3])

    def answer(_path, _question):
        return 200, json.dumps({"embeddings": [[1.0] * next(lengths)]}).encode()

    with EmbeddingServer(answer) as server:
        embedder = endpoint(server, "ollama")
        assert embedder.embed_query("tea").shape == (4,)
        assert "shape (3,) where a vector of 4 numbers was due" in error_of(embedder)


def test_redirects_are_not_followed():
    with EmbeddingServer() as other:
        target = ("Location", f"{other.url}/v1/embeddings")
        with EmbeddingServer(lambda _path, _question: (302, b"moved", target)) as server:
            assert "HTTP 302" in error_of(endpoint(server))
        assert other.requests == []


def test_a_later_failure_in_a_batch_is_one_clear_error():
    def answer(path, question):
        return (500, b"out of memory") if question["input"] == ["cup"] else well_behaved(path, question)

    with EmbeddingServer(answer) as server, pytest.raises(EmbedderError, match="HTTP 500: out of memory"):
        endpoint(server, threads=2).embed_documents(["tea", "cup", "pot", "jug"])


@pytest.mark.parametrize("url", ["localhost:8080", "file:///etc/passwd", "http://", "http://host:port", "http://hé"])
def test_an_address_that_is_none(url):
    with pytest.raises(SettingsError, match=r"embedding\.url = .* is no address"):
        endpoint(url)


def test_secrets_in_the_wrong_place_are_not_shown():
    with pytest.raises(SettingsError) as caught:
        endpoint("http://ana:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(SettingsError) as caught:
        endpoint("http://host", api_key="sk-1\nsk-2")
    assert "sk-" not in str(caught.value)
