"""Build the tiny T5 that the tests of the summariser read: trained here, on sentences made here.

    python scripts/build_tiny_t5.py --out tests/fixtures/tiny_t5

Needs torch, onnx, onnxscript, onnxruntime, tokenizers and numpy; the tests need none of it but the last three. The
model learns a toy: of a few turns keep the sentences that state something, and leave out the small talk. It is
exported file by file as Hugging Face Optimum lays out a T5, and `oracle.json` beside it holds what PyTorch itself
writes for some inputs, running the whole decoder again for every token, without a cache.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from torch.nn import functional

SEED = 20
# Heads times their width differ from the width of the model on purpose: in real T5s they may, too.
WIDTH, HEADS, HEAD_WIDTH, INNER, LAYERS = 48, 2, 16, 96, 2
BUCKETS, MAX_DISTANCE, EPSILON = 16, 64, 1e-6
PAD, EOS, UNKNOWN = 0, 1, 2
PIECES = 320
# Far below any real score and finite, so that nothing becomes NaN.
MASKED = -1e9
STEPS, BATCH, RATE, WARM_UP = 2_500, 48, 4e-3, 200
# An operator set that onnxruntime 1.20, the oldest we accept, can read, and the file version that goes with it.
OPSET, IR_VERSION = 17, 9
PREFIX = "summarize: "
# What ONNX may differ from PyTorch by: both add in single precision, in other orders.
TOLERANCE = 1e-3

NAMES = "Ana Tom Mira Ivo Lena Otto Nora Sami".split()
PLACES = "Lisbon Oslo Riga Porto Turin Ghent".split()
MONTHS = "March May July October".split()
DAYS = "Monday Tuesday Friday Sunday".split()
NUMBERS = "7 9 12 15 40 80".split()
THINGS = ("the red bicycle", "the blue boat", "the old piano", "the green car")
FOODS = "walnuts honey milk mustard".split()
FACTS = (
    "{name} moved to {place} in {month}.",
    "{name} works in {place}.",
    "{name} bought {thing} in {month}.",
    "{name} did not buy {thing}.",
    "{name} paid {number} euros for {thing}.",
    "{name} is allergic to {food}.",
    "{name} never eats {food}.",
    "{name} leaves on {day} at {number}.",
    "{name} no longer lives in {place}.",
)
LEADS = ("", "", "", "By the way, ", "You know, ", "I heard that ", "As I said, ")
SMALL_TALK = (
    "That sounds nice.", "Thank you so much.", "How are you today?", "I see.", "Good morning.", "Really?",
    "What a lovely day it is.", "Let us talk about it later.", "I am fine, and you?",
)  # fmt: skip

# What the oracle answers: turns, and the most tokens that may be written about them.
QUESTIONS: tuple[tuple[tuple[str, ...], int], ...] = (
    (("Good morning.", "Ana moved to Lisbon in March.", "That sounds nice."), 64),
    (("By the way, Tom did not buy the blue boat.", "Really?", "Mira paid 40 euros for the old piano."), 64),
    (("You know, Otto never eats honey.", "I see.", "How are you today?", "Nora works in Riga."), 64),
    (("Lena leaves on Friday at 9.", "I heard that Sami no longer lives in Ghent."), 64),
    (("Ivo is allergic to walnuts.",), 64),
    # Cut by the number of tokens, before the end.
    (("As I said, Ana bought the green car in May.", "Let us talk about it later."), 5),
    (("Tom works in Oslo.", "Really?"), 1),
    # Words it never saw: little confidence, whatever it writes.
    (("The turbine hums.", "Über 漢字 🎉"), 24),
    # More than the 64 tokens that the tests let it read; the fact after the cut cannot be in the summary.
    (("Nora moved to Turin in July.", *("What a lovely day it is.",) * 12, "Ivo works in Porto."), 64),
)
QUESTION_TOKENS = 64


# ---------------------------------------------------------------------------------------------------- the toy task


def fact(draw: random.Random) -> str:
    return draw.choice(FACTS).format(
        name=draw.choice(NAMES),
        place=draw.choice(PLACES),
        month=draw.choice(MONTHS),
        day=draw.choice(DAYS),
        number=draw.choice(NUMBERS),
        thing=draw.choice(THINGS),
        food=draw.choice(FOODS),
    )


def example(draw: random.Random) -> tuple[str, str]:
    """Return some turns as the model reads them, and the summary it should learn to write."""
    facts = [fact(draw) for _ in range(draw.choice((1, 1, 2, 2, 3)))]
    turns = [(draw.choice(LEADS) + one, one) for one in facts]
    for _ in range(draw.choice((0, 1, 2, 3))):
        turns.insert(draw.randrange(len(turns) + 1), (draw.choice(SMALL_TALK), ""))
    return PREFIX + "\n".join(said for said, _ in turns), " ".join(kept for _, kept in turns if kept)


def train_tokenizer(draw: random.Random) -> Tokenizer:
    """Return a tokenizer that marks the space before a word and adds EOS at the end, as T5's own does."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(vocab_size=PIECES, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([text for _ in range(3_000) for text in example(draw)], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", EOS)])
    assert [tokenizer.token_to_id(one) for one in special] == [PAD, EOS, UNKNOWN]
    return tokenizer


# ---------------------------------------------------------------------------------------------------- the model

Past = list[tuple[Tensor, Tensor, Tensor, Tensor]]


class Norm(nn.Module):
    """T5's norm: the root mean square, without a mean and without a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON))


class Attention(nn.Module):
    """Attention without scaling and without biases; what positions mean comes in as `bias`."""

    def __init__(self) -> None:
        super().__init__()
        inside = HEADS * HEAD_WIDTH
        self.query, self.key, self.value = (nn.Linear(WIDTH, inside, bias=False) for _ in range(3))
        self.out = nn.Linear(inside, WIDTH, bias=False)
        nn.init.normal_(self.query.weight, std=(WIDTH * HEAD_WIDTH) ** -0.5)
        nn.init.normal_(self.key.weight, std=WIDTH**-0.5)
        nn.init.normal_(self.value.weight, std=WIDTH**-0.5)
        nn.init.normal_(self.out.weight, std=inside**-0.5)

    @staticmethod
    def heads(x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], x.shape[1], HEADS, HEAD_WIDTH).transpose(1, 2)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.heads(self.key(x)), self.heads(self.value(x))

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        scores = self.heads(self.query(x)) @ keys.transpose(2, 3) + bias
        mixed = (scores.softmax(-1) @ values).transpose(1, 2)
        return self.out(mixed.reshape(mixed.shape[0], mixed.shape[1], HEADS * HEAD_WIDTH))


class Positions(nn.Module):
    """T5's relative positions: near distances have a bucket each, far ones share buckets by their logarithm."""

    def __init__(self, *, both_ways: bool) -> None:
        super().__init__()
        self.both_ways = both_ways
        self.weight = nn.Embedding(BUCKETS, HEADS)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return what is added to the scores, (1, heads, queries, keys), for positions on both axes."""
        distance = keys[None, :] - queries[:, None]
        buckets, offset = BUCKETS, torch.zeros_like(distance)
        if self.both_ways:
            buckets //= 2
            offset = (distance > 0).long() * buckets
            distance = distance.abs()
        else:
            distance = (-distance).clamp(min=0)
        exact = buckets // 2
        ratio = torch.log(distance.clamp(min=1).float() / exact) / math.log(MAX_DISTANCE / exact)
        far = (exact + (ratio * (buckets - exact)).long()).clamp(max=buckets - 1)
        found: Tensor = self.weight(offset + torch.where(distance < exact, distance, far))
        return found.permute(2, 0, 1).unsqueeze(0)


class Feed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(WIDTH, INNER, bias=False), nn.Linear(INNER, WIDTH, bias=False)
        nn.init.normal_(self.into.weight, std=WIDTH**-0.5)
        nn.init.normal_(self.out.weight, std=INNER**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(functional.relu(self.into(x)))


class EncoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(Norm() for _ in range(2))
        self.attention, self.feed = Attention(), Feed()

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        inside = self.norms[0](x)
        x = x + self.attention(inside, *self.attention.project(inside), bias)
        return x + self.feed(self.norms[1](x))


class DecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(Norm() for _ in range(3))
        self.own, self.cross, self.feed = Attention(), Attention(), Feed()


class Encoder(nn.Module):
    def __init__(self, shared: nn.Embedding) -> None:
        super().__init__()
        self.shared, self.positions, self.norm = shared, Positions(both_ways=True), Norm()
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(LAYERS))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        places = torch.arange(input_ids.shape[1])
        bias = self.positions(places, places) + (1.0 - attention_mask[:, None, None, :].float()) * MASKED
        x = self.shared(input_ids)
        for layer in self.layers:
            x = layer(x, bias)
        return self.norm(x)


class Decoder(nn.Module):
    def __init__(self, shared: nn.Embedding) -> None:
        super().__init__()
        self.shared, self.positions, self.norm = shared, Positions(both_ways=False), Norm()
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(LAYERS))

    def forward(
        self, input_ids: Tensor, encoder_attention_mask: Tensor, hidden: Tensor | None, past: Past | None = None
    ) -> tuple[Tensor, Past]:
        """Return the logits of every position and the keys and values: own ones grown, cross ones as they were."""
        before = past[0][0].shape[2] if past else 0
        keys = torch.arange(before + input_ids.shape[1])
        queries = keys[before:]
        later = (keys[None, :] > queries[:, None]).float() * MASKED
        bias = self.positions(queries, keys) + later
        cross_bias = (1.0 - encoder_attention_mask[:, None, None, :].float()) * MASKED
        x, presents = self.shared(input_ids), []
        for number, layer in enumerate(self.layers):
            inside = layer.norms[0](x)
            key, value = layer.own.project(inside)
            if past:
                key = torch.cat([past[number][0], key], dim=2)
                value = torch.cat([past[number][1], value], dim=2)
            cross = past[number][2:] if past else layer.cross.project(hidden)
            x = x + layer.own(inside, key, value, bias)
            x = x + layer.cross(layer.norms[1](x), *cross, cross_bias)
            x = x + layer.feed(layer.norms[2](x))
            presents.append((key, value, *cross))
        # The table of pieces is used at both ends, and scaled at this one.
        return (self.norm(x) * WIDTH**-0.5) @ self.shared.weight.T, presents


class TinyT5(nn.Module):
    def __init__(self, pieces: int) -> None:
        super().__init__()
        shared = nn.Embedding(pieces, WIDTH)
        self.encoder, self.decoder = Encoder(shared), Decoder(shared)

    def forward(self, ids: Tensor, mask: Tensor, written: Tensor) -> Tensor:
        logits: Tensor = self.decoder(written, mask, self.encoder(ids, mask))[0]
        return logits


def train(tokenizer: Tokenizer, draw: random.Random) -> TinyT5:
    torch.manual_seed(SEED)
    model = TinyT5(tokenizer.get_vocab_size())
    adam = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    for step in range(STEPS):
        share = min(step / WARM_UP, 0.5 * (1 + math.cos(math.pi * step / STEPS)))
        for group in adam.param_groups:
            group["lr"] = RATE * share
        pairs = [example(draw) for _ in range(BATCH)]
        read = padded([tokenizer.encode(text).ids for text, _ in pairs])
        due = padded([tokenizer.encode(text).ids for _, text in pairs])
        written = functional.pad(due, (1, 0), value=PAD)[:, :-1]
        logits = model(read, (read != PAD).long(), written)
        loss = functional.cross_entropy(logits.transpose(1, 2), due, ignore_index=PAD)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        if step % 500 == 0 or step == STEPS - 1:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    return model.eval()


def padded(rows: list[list[int]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


# ---------------------------------------------------------------------------------------------------- the oracle


@torch.no_grad()
def answer(model: TinyT5, tokenizer: Tokenizer, turns: tuple[str, ...], max_tokens: int) -> dict[str, Any]:
    """Write greedily, running the whole decoder again for every token."""
    tokenizer.enable_truncation(QUESTION_TOKENS)
    read = tokenizer.encode(PREFIX + "\n".join(turns)).ids
    tokenizer.no_truncation()
    ids = torch.tensor([read])
    written = [PAD]
    sure: list[float] = []
    while len(sure) < max_tokens:
        logits = model(ids, torch.ones_like(ids), torch.tensor([written]))[0, -1]
        odds = logits.double().log_softmax(-1)
        best = int(odds.argmax())
        if best == EOS:
            break
        written.append(best)
        sure.append(float(odds[best]))
    return {
        "turns": turns,
        "max_tokens": max_tokens,
        "max_input_tokens": QUESTION_TOKENS,
        "input_ids": read,
        "ids": written[1:],
        "log_probabilities": sure,
        "text": tokenizer.decode(written[1:]),
    }


def learnt(model: TinyT5, tokenizer: Tokenizer, draw: random.Random, count: int = 200) -> float:
    """Return the share of new examples that the model summarises to the letter."""
    pairs = [example(draw) for _ in range(count)]
    turns = [tuple(read.removeprefix(PREFIX).split("\n")) for read, _ in pairs]
    found = [answer(model, tokenizer, one, 64)["text"] for one in turns]
    return sum(text == due for text, (_, due) in zip(found, pairs, strict=True)) / count


# ---------------------------------------------------------------------------------------------------- the files


def cache_names(kind: str, sides: tuple[str, ...]) -> list[str]:
    return [f"{kind}.{n}.{side}.{part}" for n in range(LAYERS) for side in sides for part in ("key", "value")]


class Step(nn.Module):
    """The decoder with keys and values as single inputs and outputs: given some, it gives back only what grew."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, input_ids: Tensor, mask: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        if len(rest) == 1:
            logits, presents = self.decoder(input_ids, mask, rest[0])
            return logits, *(one for layer in presents for one in layer)
        layers = [(rest[n], rest[n + 1], rest[n + 2], rest[n + 3]) for n in range(0, len(rest), 4)]
        logits, presents = self.decoder(input_ids, mask, None, layers)
        return logits, *(one for layer in presents for one in layer[:2])


def export(module: nn.Module, inputs: dict[str, Tensor], outputs: list[str], path: Path) -> None:
    """Write one file, with names and moving axes as Optimum gives them."""
    axes: dict[str, dict[int, str]] = {}
    for name in [*inputs, *outputs]:
        if ".encoder." in name:
            axes[name] = {0: "batch_size", 2: "encoder_sequence_length"}
        elif name.startswith("past"):
            axes[name] = {0: "batch_size", 2: "past_decoder_sequence_length"}
        elif name.startswith("present"):
            axes[name] = {0: "batch_size", 2: "decoder_sequence_length"}
        else:
            axes[name] = {0: "batch_size", 1: f"{'encoder_' if 'encoder' in name else ''}sequence_length"}
    with warnings.catch_warnings():
        # The exporter that Optimum uses, too, is said to be old; and it wonders about numbers we mean to be constant.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            tuple(inputs.values()),
            str(path),
            input_names=list(inputs),
            output_names=outputs,
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
    onnx.save(cleaned(onnx.load(path)), path)


def cleaned(model: ModelProto) -> ModelProto:
    """Return the model without what only says where it was made."""
    model.ir_version = IR_VERSION
    model.doc_string = ""
    del model.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    onnx.checker.check_model(model, full_check=True)
    return model


def merge(first: ModelProto, later: ModelProto) -> ModelProto:
    """Return one decoder with both inside and a switch, as Optimum merges them."""
    weights: dict[bytes, TensorProto] = {}
    outputs = [one.name for one in first.graph.output]
    otherwise = branch(first.graph, "first", outputs, weights)
    then = branch(later.graph, "later", outputs, weights)
    inputs = {one.name: one for one in [*first.graph.input, *later.graph.input]}
    switch = helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1])
    node = helper.make_node("If", [switch.name], outputs, then_branch=then, else_branch=otherwise)
    around = [*inputs.values(), switch], list(first.graph.output), list(weights.values())
    graph = helper.make_graph([node], "merged", *around)
    return cleaned(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)]))


def branch(graph: GraphProto, label: str, outputs: list[str], weights: dict[bytes, TensorProto]) -> GraphProto:
    """Return `graph` as one side of the switch: its inputs and weights are those of the graph around it."""
    renamed = {one.name: one.name for one in graph.input} | {"": ""}
    for weight in graph.initializer:
        content = numpy_helper.to_array(weight)
        key = f"{content.dtype} {content.shape} ".encode() + content.tobytes()
        if key not in weights:
            weights[key] = numpy_helper.from_array(content, f"weight_{len(weights)}")
        renamed[weight.name] = weights[key].name
    nodes = []
    for old in graph.node:
        node = NodeProto()
        node.CopyFrom(old)
        node.name = f"{label}/{old.name}"
        for names in (node.input, node.output):
            names[:] = [renamed.get(name, f"{label}/{name}") for name in names]
        nodes.append(node)
    # The later step has no new keys and values of the text; it gives an empty tensor in the place of each.
    empty = numpy_helper.from_array(np.zeros((0, HEADS, 1, HEAD_WIDTH), np.float32))
    missing = sorted(set(outputs) - {one.name for one in graph.output})
    nodes += [helper.make_node("Constant", [], [f"{label}/{name}"], value=empty) for name in missing]
    given = [helper.make_tensor_value_info(f"{label}/{name}", TensorProto.FLOAT, None) for name in outputs]
    return helper.make_graph(nodes, label, [], given)


def write_model(model: TinyT5, tokenizer: Tokenizer, out: Path) -> None:
    step, ids, mask = Step(model.decoder), torch.tensor([[5, 6, 7, EOS]]), torch.ones(1, 4, dtype=torch.long)
    read = {"input_ids": ids, "attention_mask": mask}
    export(model.encoder, read, ["last_hidden_state"], out / "encoder_model.onnx")
    step, context = (
        Step(model.decoder),
        {"encoder_attention_mask": mask, "encoder_hidden_states": model.encoder(ids, mask)},
    )
    inputs = {"input_ids": torch.tensor([[PAD, 5]]), **context}
    outputs = ["logits", *cache_names("present", ("decoder", "encoder"))]
    export(step, inputs, outputs, out / "decoder_model.onnx")
    _, *presents = step(*inputs.values())
    past = dict(zip(cache_names("past_key_values", ("decoder", "encoder")), presents, strict=True))
    inputs = {"input_ids": torch.tensor([[6]]), "encoder_attention_mask": mask, **past}
    outputs = ["logits", *cache_names("present", ("decoder",))]
    export(step, inputs, outputs, out / "decoder_with_past_model.onnx")
    parts = [onnx.load(out / f"decoder{name}_model.onnx") for name in ("", "_with_past")]
    onnx.save(merge(parts[0], parts[1]), out / "decoder_model_merged.onnx")
    tokenizer.save(str(out / "tokenizer.json"))
    config = {
        "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True,
        "d_model": WIDTH, "d_kv": HEAD_WIDTH, "d_ff": INNER, "num_layers": LAYERS, "num_decoder_layers": LAYERS,
        "num_heads": HEADS, "vocab_size": tokenizer.get_vocab_size(), "relative_attention_num_buckets": BUCKETS,
        "relative_attention_max_distance": MAX_DISTANCE, "layer_norm_epsilon": EPSILON, "feed_forward_proj": "relu",
        "pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": PAD, "tie_word_embeddings": True,
    }  # fmt: skip
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


@torch.no_grad()
def compare(model: TinyT5, out: Path) -> float:
    """Return by how much the files differ from PyTorch at most, for lengths of which the export knew nothing."""
    encoder, first, later, merged = (
        ort.InferenceSession(str(out / f"{name}.onnx"), providers=["CPUExecutionProvider"])
        for name in ("encoder_model", "decoder_model", "decoder_with_past_model", "decoder_model_merged")
    )
    ids, written = torch.arange(3, 40)[None], torch.tensor([[PAD, 9, 11, 30, 7]])
    mask = torch.ones_like(ids)
    due = model(ids, mask, written).numpy()
    [hidden] = encoder.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
    context = {"encoder_attention_mask": mask.numpy(), "encoder_hidden_states": hidden}
    [whole, *_] = first.run(None, {"input_ids": written.numpy(), **context})
    worst = [float(np.abs(whole - due).max())]
    _, *presents = first.run(None, {"input_ids": written[:, :4].numpy(), **context})
    past = dict(zip(cache_names("past_key_values", ("decoder", "encoder")), presents, strict=True))
    given = {"input_ids": written[:, 4:].numpy(), "use_cache_branch": np.array([True]), **context, **past}
    for session in (later, merged):
        asked = {one.name for one in session.get_inputs()}
        [logits] = session.run(["logits"], {name: value for name, value in given.items() if name in asked})
        worst.append(float(np.abs(logits[:, 0] - due[:, 4]).max()))
    return max(worst)


def provenance(out: Path, checks: dict[str, float]) -> dict[str, Any]:
    files = sorted(path for path in out.iterdir() if path.name != "PROVENANCE.json")
    return {
        "model": "tiny_t5",
        "licence": "MIT",
        "source": "weights trained by the script on sentences it makes itself; nothing was taken from elsewhere",
        "purpose": "a real encoder and decoder, small enough for tests; it knows its toy task and nothing else",
        "checks": checks,
        "built_by": {
            "command": "python scripts/build_tiny_t5.py --out tests/fixtures/tiny_t5",
            "libraries": {name: version(name) for name in ("numpy", "onnx", "onnxruntime", "tokenizers", "torch")},
        },
        "files": {
            path.name: {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
            for path in files
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    draw = random.Random(SEED)
    tokenizer = train_tokenizer(draw)
    model = train(tokenizer, draw)
    write_model(model, tokenizer, out)
    checks = {"learnt": learnt(model, tokenizer, draw), "worst_difference": round(compare(model, out), 7)}
    print(checks)
    assert checks["worst_difference"] < TOLERANCE
    oracle = [answer(model, tokenizer, turns, most) for turns, most in QUESTIONS]
    for one in oracle:
        print(one["text"], round(math.exp(np.mean(one["log_probabilities"])), 4) if one["ids"] else "nothing")
    (out / "oracle.json").write_text(json.dumps(oracle, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    record = json.dumps(provenance(out, checks), indent=2)
    (out / "PROVENANCE.json").write_text(record + "\n", encoding="utf-8")
    print(sum(path.stat().st_size for path in out.iterdir()), "bytes")


if __name__ == "__main__":
    main()
