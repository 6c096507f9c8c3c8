"""Build the shipped reader from its weights, without torch.

    python scripts/build_reader.py --out src/holdfast/models --weights FILE

Needs the dependency group `models`. One graph has both uses: a question with one turn, and a question with several
turns in the order of time. It reads one sequence a run, so it needs no mask, and attention is one operation of
onnxruntime's own, which takes two thirds of the time. Weights are refused unless their SHA-256 is the pinned one; the
same libraries write the same bytes. The tokenizer is that of `minilm`, which is not copied.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from build_models import (
    CHECK_SENTENCES,
    HEAD_WIDTH,
    IR_VERSION,
    LAYERS,
    OPSET,
    WIDTH,
    Floats,
    Graph,
    affine,
    dense,
    digest,
    expect_digest,
    feed_forward,
    layer_norm,
    write,
)
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load as load_safetensors
from tokenizers import Tokenizer

WEIGHTS = "1fad7d04f7eed3c4cf9c017d6895e7fc108965a6e199cd0415f215540e79ac75"
NUMBERS = 5  # of each turn: rank, answers, earlier, nothing here answers, of another time
# What enters these products has a few columns ten times as large as the others, and one scale for all of them loses
# the rest. So such columns are made smaller, and their rows of the weights larger, before both are rounded: by
# (largest input)^SHARE / (largest weight)^(1 - SHARE). Of .5 to 1, .8 is nearest to fp32.
SMOOTHED = ("attention.qkv", "feed_forward.wide", "feed_forward.out")
SHARE = 0.8
# Twelve turns of a chat are read together, of so many tokens each at most.
TURNS, LONGEST_TURN = 12, 38
# What is 0 in all sentences needs no other scale; weights are not 0.
LEAST_INPUT, LEAST_WEIGHT = 1e-3, 1e-4
RUNTIME = "com.microsoft"  # the domain of onnxruntime's own operations
HEADS = [f"{name}.product/MatMul" for name in ("alone", "answer", "together", "joint")]
# Below it a stored model is another model; what was measured is written into PROVENANCE.json.
LEAST_CORRELATION = 0.97
QUESTIONS = ("Where do I live?", "What did the doctor say about my knee?", "Which tea do I like?", "Who has kittens?")
TURN, JOINT, ANSWER, CLS, SEP = 11, 10, 5, 101, 102

NAMES = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "o": "attention.output.dense", "n1": "attention.output.LayerNorm", "i": "intermediate.dense",
    "u": "output.dense", "n2": "output.LayerNorm",
}  # fmt: skip


def reader_graph(weights: dict[str, Floats]) -> onnx.ModelProto:
    """Return the reader: ids, token types and the places of markers in; `answer` and `joint` out."""
    graph = Graph()
    graph.constant("zero_index", np.array([0], np.int64))
    hidden = embeddings(graph, weights)
    for number in range(LAYERS):
        layer = {
            f"{full}.{part}": weights[f"layers.{number}.{short}.{part}"]
            for short, full in NAMES.items()
            for part in ("weight", "bias")
        }
        hidden = attention(graph, layer, hidden, f"layer{number}.attention")
        hidden = feed_forward(graph, layer, hidden, f"layer{number}.feed_forward")
    graph.node("Gather", hidden, "zero_index", name="cls", axis=1)
    graph.node("Gelu", dense(graph, weights, "dense", "cls", "alone"), name="alone.gelu")
    dense(graph, weights, "out", "alone.gelu", "answer")
    graph.node("Unsqueeze", "markers", "third_axis", name="places")
    graph.node("Expand", "places", "one_row", name="wide_places")
    graph.node("GatherElements", hidden, "wide_places", name="marked", axis=1)
    graph.node("Gelu", dense(graph, weights, "jdense", "marked", "together"), name="together.gelu")
    dense(graph, weights, "jout", "together.gelu", "joint")
    integers = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "token_type_ids")
    ]
    made = helper.make_graph(
        graph.nodes, "holdfast-reader",
        [*integers, helper.make_tensor_value_info("markers", TensorProto.INT64, ["batch", "turns"])],
        [
            helper.make_tensor_value_info("answer", TensorProto.FLOAT, ["batch", 1, 1]),
            helper.make_tensor_value_info("joint", TensorProto.FLOAT, ["batch", "turns", NUMBERS]),
        ],
        graph.constants,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(RUNTIME, 1)]
    model = helper.make_model(made, opset_imports=opsets, producer_name="holdfast")
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model)
    return model


def attention(graph: Graph, layer: dict[str, Floats], hidden: str, name: str) -> str:
    """Self-attention, its projection, the residual and the normalisation."""
    parts = ("query", "key", "value")
    matrix = np.concatenate([layer[f"attention.self.{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([layer[f"attention.self.{part}.bias"] for part in parts])
    graph.node("Split", affine(graph, matrix, bias, hidden, f"{name}.qkv"), name=f"{name}.split", outputs=3,
               axis=2, num_outputs=3)  # fmt: skip
    graph.node("MultiHeadAttention", *(f"{name}.split.{part}" for part in range(3)), name=f"{name}.joined",
               domain=RUNTIME, num_heads=WIDTH // HEAD_WIDTH)  # fmt: skip
    out = dense(graph, layer, "attention.output.dense", f"{name}.joined", f"{name}.out")
    graph.node("Add", out, hidden, name=f"{name}.residual")
    return layer_norm(graph, layer, "attention.output.LayerNorm", f"{name}.residual", f"{name}.normalised")


def embeddings(graph: Graph, weights: dict[str, Floats]) -> str:
    graph.constant("third_axis", np.array([2], np.int64))
    graph.constant("one_row", np.array([1, 1, WIDTH], np.int64))
    graph.constant("words", weights["word.weight"])
    graph.constant("positions", weights["pos.weight"])
    graph.constant("segments", weights["typ.weight"])
    graph.node("Gather", "words", "input_ids", name="word")
    graph.node("Gather", "segments", "token_type_ids", name="segment")
    graph.node("Shape", "input_ids", name="length", start=1, end=2)
    graph.node("Slice", "positions", "zero_index", "length", "zero_index", name="position")
    graph.node("Add", "word", "segment", name="typed")
    graph.node("Add", "typed", "position", name="summed")
    return layer_norm(graph, weights, "n", "summed", "embedded")


def smoothed(exact: onnx.ModelProto, sample: Path, tokenizer: Tokenizer) -> onnx.ModelProto:
    """Return the same model with smaller columns before some products, of which int8 then loses less."""
    made = onnx.ModelProto()
    made.CopyFrom(exact)
    del made.graph.node[:]
    weights = {one.name: one for one in made.graph.initializer}
    names = {f"layer{number}.{part}.product/MatMul" for number in range(LAYERS) for part in SMOOTHED}
    columns = [node.input[0] for node in exact.graph.node if node.name in names]
    largest = largest_inputs(exact, columns, sample, tokenizer)
    for node in exact.graph.node:
        kept = made.graph.node.add()
        kept.CopyFrom(node)
        if node.name not in names:
            continue
        wide, matrix = node.input
        rows = numpy_helper.to_array(weights[matrix])
        inputs = np.maximum(largest[wide], LEAST_INPUT)
        scale = inputs**SHARE / np.maximum(np.abs(rows).max(axis=1), LEAST_WEIGHT) ** (1.0 - SHARE)
        scale = (scale / np.exp(np.log(scale).mean())).astype(np.float32)
        weights[matrix].CopyFrom(numpy_helper.from_array(rows * scale[:, None], matrix))
        made.graph.initializer.append(numpy_helper.from_array(1.0 / scale, f"{matrix}.scale"))
        kept.input[0] = f"{matrix}.smaller"
        smaller = helper.make_node("Mul", [wide, f"{matrix}.scale"], [kept.input[0]], name=kept.input[0])
        made.graph.node.insert(len(made.graph.node) - 1, smaller)
    onnx.checker.check_model(made)
    return made


def largest_inputs(exact: onnx.ModelProto, names: Sequence[str], sample: Path, words: Tokenizer) -> dict[str, Floats]:
    """Return the largest number in each column of what has these names, when it reads the sample history."""
    shown = onnx.ModelProto()
    shown.CopyFrom(exact)
    shown.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    session = open_session(shown.SerializeToString())
    lines = (sample / "history.jsonl").read_text(encoding="utf-8").splitlines()
    said = [encode(words, f"{one['speaker']}: {one['content']}") for one in map(json.loads, lines)]
    found = {name: np.zeros(1, np.float32) for name in names}
    for number, asked in enumerate(json.loads((sample / "questions.json").read_text(encoding="utf-8"))):
        question, first = encode(words, asked["question"]), number * TURNS % (len(said) - TURNS)
        turns = [turn[:LONGEST_TURN] for turn in said[first : first + TURNS]]
        for given in (sequence(question, JOINT, turns, [TURN]), sequence(question, ANSWER, turns[:1], [])):
            for name, numbers in zip(names, session.run([*names], given), strict=True):
                found[name] = np.maximum(found[name], np.abs(numbers[0]).max(axis=0))
    return found


def quantised(exact: bytes) -> bytes:
    """Return the int8 model; `reduce_range` keeps it right on processors without VNNI."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "exact.onnx", Path(folder) / "int8.onnx"
        before.write_bytes(exact)
        quantize_dynamic(
            before, after, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True,
            nodes_to_exclude=HEADS, extra_options={"DefaultTensorType": TensorProto.FLOAT},
        )  # fmt: skip
        onnx.checker.check_model(str(after))
        return after.read_bytes()


def check_quantised(exact: bytes, small: bytes, tokenizer: Tokenizer) -> dict[str, float]:
    """Refuse an int8 model whose numbers stray from those of the fp32 one."""
    before, after = (judge(model, tokenizer) for model in (exact, small))
    found = {}
    for name, one, other in zip(("answer", "rank", "other time"), before, after, strict=True):
        correlation = float(np.corrcoef(one, other)[0, 1])
        print(f"{name}: correlation {correlation:.4f} of {len(one)} numbers, int8 with fp32")
        if correlation < LEAST_CORRELATION:
            raise SystemExit(f"{name} is too far from the exact model; {LEAST_CORRELATION} is the limit")
        found[name] = round(correlation, 2)
    return found


def judge(model: bytes, tokenizer: Tokenizer) -> tuple[Floats, Floats, Floats]:
    """Return what a model says of the check sentences, each alone and ten at a time."""
    session = open_session(model)
    found: dict[str, list[Floats]] = {"answer": [], "joint": []}
    for output, given in sequences(tokenizer):
        found[output].append(session.run([output], given)[0][0])
    alone, together = np.concatenate(found["answer"]), np.concatenate([numbers[1:] for numbers in found["joint"]])
    return alone[:, 0], together[:, 0], together[:, 4]


def open_session(model: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def sequences(tokenizer: Tokenizer) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the inputs of the check sentences, each alone and ten at a time, and the output wanted of them."""
    said = [encode(tokenizer, text) for text in CHECK_SENTENCES]
    for text in QUESTIONS:
        question = encode(tokenizer, text)
        yield from (("answer", sequence(question, ANSWER, [turn], [])) for turn in said)
        yield from (("joint", sequence(question, JOINT, said[n : n + 10], [TURN])) for n in range(0, len(said), 10))


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids


def sequence(question: list[int], task: int, turns: list[list[int]], mark: list[int]) -> dict[str, Any]:
    """Return the model's inputs for a question and turns: ids, their types, and where each turn begins."""
    ids, places = [CLS, task, *question, SEP], [0]
    first = len(ids)
    for turn in turns:
        places.append(len(ids))
        ids += [*mark, *turn, SEP]
    given = {"input_ids": ids, "token_type_ids": [0] * first + [1] * (len(ids) - first), "markers": places}
    return {name: np.array([values]) for name, values in given.items()}


def describe(path: Path, content: bytes) -> dict[str, Any]:
    return {
        "model": "holdfast-reader-2",
        "upstream": "sentence-transformers/all-MiniLM-L6-v2",
        "licence": "Apache-2.0",
        "source": {"file": path.name, "weights_sha256": digest(content)},
        "changes": "trained to judge one turn, and several in the order of time; written as an ONNX graph with two "
        "heads; quantised to int8 (dynamic, per channel, reduced range, large columns made smaller before) but for "
        "the heads",
        "trained_on": "3,112 items and 34 histories written for it; SQuADShifts reddit, amazon and new_wiki and "
        "Synthetic-Persona-Chat (CC BY 4.0), QAMR (MIT), QMSum (MIT); its start weights saw SGD and XQuAD-en "
        "(CC BY-SA 4.0)",
        "figures_of_seen_texts": ["XQuAD-en", "SGD"],
        "took_no_part_in_training": [
            "LoCoMo", "BEAM", "LongMemEval", "RealMem", "HotpotQA", "MuSiQue", "TSQA", "Cranfield",
        ],
        "format": "int8",
        "max_tokens": 512,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the shipped reader from its weights.")
    parser.add_argument("--out", type=Path, required=True, help="gets reader/; holds minilm/ and is beside sample/")
    parser.add_argument("--weights", type=Path, required=True, help="safetensors file of the reader, fp16")
    options = parser.parse_args()
    # The quantiser recommends a preprocessing step that does nothing to this graph.
    logging.getLogger().setLevel(logging.ERROR)
    content = options.weights.read_bytes()
    expect_digest(options.weights.name, content, WEIGHTS)
    weights = {name: value.astype(np.float32) for name, value in load_safetensors(content).items()}
    words = (options.out / "minilm" / "tokenizer.json").read_bytes()
    tokenizer, exact = Tokenizer.from_buffer(words), reader_graph(weights)
    small = quantised(smoothed(exact, options.out.parent / "sample", tokenizer).SerializeToString(deterministic=True))
    facts = describe(options.weights, content) | {
        "tokenizer": {"file": "minilm/tokenizer.json", "sha256": digest(words)},
        "checks": check_quantised(exact.SerializeToString(), small, tokenizer),
    }
    licence = (options.out / "minilm" / "LICENSE").read_bytes()
    write(options.out / "reader", facts, {"model.onnx": small, "LICENSE": licence}, "scripts/build_reader.py")


if __name__ == "__main__":
    main()
