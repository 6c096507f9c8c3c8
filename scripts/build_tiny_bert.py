"""Build the tiny embedding model of 768 dimensions that tests read, in the shape of a BERT brought as a folder.

    python scripts/build_tiny_bert.py --out some/folder

Needs onnx, tokenizers and numpy. Nothing is trained: words of one topic lie together because their vectors are drawn
together; one layer of attention and feeding forward, with small weights, lets its neighbours move a word a little.
The first dimensions carry the most, as in a model whose prefixes were trained. The same bytes come out every time.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

SEED = 768
DIMS, HEAD, INNER, POSITIONS = 768, 64, 128, 512
# An operator set that onnxruntime 1.20, the oldest we accept, can read, and the file version that goes with it.
OPSET, IR_VERSION = 17, 9
# How far a word lies from the middle of its topic, and how much less each further dimension carries.
OWN, DECAY = 0.5, 0.35
# Words without a topic, marks and pieces of words say little.
FAINT = 0.25
# So small that a word stays near itself.
LAYER = 0.3
# Far below any real score and finite, so that nothing becomes NaN.
MASKED = -1e9

MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
TOPICS = (
    "dog puppy hound kennel leash bark paw terrier vet collar walk fetch",
    "kettle tea cup teapot brew mug saucer leaf steep boil coffee pot",
    "boat sail harbour anchor mast tide ferry oar deck hull rudder dock",
    "garden rose tulip soil spade seed hedge lawn bloom weed prune pots",
    "train station ticket platform rail carriage conductor track journey depart arrive luggage",
    "doctor knee physician clinic rest nurse fever pill bandage surgeon recover hospital",
    "guitar piano violin chord melody song drum choir tune concert band rehearse",
    "money rent invoice salary bank loan budget bill tax pay euros price",
    "winter snow ice frost sleigh cold coat scarf blizzard freeze gloves ski",
    "code compiler bug deploy server function test release branch merge patch script",
    "bread oven flour bake dough loaf crust yeast cake pastry butter sugar",
    "school teacher lesson pupil exam chalk homework class grade essay term library",
)
PLAIN = (
    "the a an of in on at to for with and or is are was were has have had my your his her our their i you he she it "
    "we they what where when who why how did do does that this there from by about not no yes new old number search "
    "query document red blue green small big every day week bought lost found broke told said wants likes needs"
)
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def vocabulary() -> dict[str, int | None]:
    """Return every piece with the number of its topic, if it has one."""
    topics: dict[str, int | None] = dict.fromkeys([*MARKS, *"_:.,?!'-"])
    topics |= dict.fromkeys(PLAIN.split()) | dict.fromkeys(LETTERS) | {f"##{one}": None for one in LETTERS}
    topics |= {word: number for number, words in enumerate(TOPICS) for word in words.split()}
    return topics


def tokenizer(pieces: list[str]) -> Tokenizer:
    """Return BERT's tokenizer with our few pieces."""
    made = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    marks = [("[CLS]", pieces.index("[CLS]")), ("[SEP]", pieces.index("[SEP]"))]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    return made


def weights() -> dict[str, NDArray[np.float32]]:
    """Draw every table and matrix of the model."""
    draw = np.random.default_rng(SEED)
    carried = np.arange(1, DIMS + 1) ** -DECAY
    middles = draw.normal(size=(len(TOPICS), DIMS)) * carried
    found = vocabulary().values()
    words = [
        draw.normal(size=DIMS) * carried * (FAINT if topic is None else OWN)
        + (0.0 if topic is None else middles[topic])
        for topic in found
    ]
    shapes = {"query": (DIMS, HEAD), "key": (DIMS, HEAD), "value": (DIMS, HEAD), "out": (HEAD, DIMS)}
    shapes |= {"into": (DIMS, INNER), "back": (INNER, DIMS)}
    made = {name: draw.normal(size=shape) * LAYER / shape[0] ** 0.5 for name, shape in shapes.items()}
    made |= {"words": np.array(words), "positions": draw.normal(size=(POSITIONS, DIMS)) * FAINT * FAINT * carried}
    made |= {"types": np.zeros((2, DIMS)), "gain": np.ones(DIMS), "bias": np.zeros(DIMS)}
    return {name: value.astype(np.float32) for name, value in made.items()}


def graph() -> onnx.ModelProto:
    """Return embeddings, one layer of attention and feeding forward, and the vectors of all tokens as the output."""
    known = [numpy_helper.from_array(value, name) for name, value in weights().items()]
    numbers = {"one": 1.0, "half": 0.5, "masked": MASKED, "scale": HEAD**-0.5, "root": 2**-0.5}
    known += [numpy_helper.from_array(np.array(value, dtype=np.float32), name) for name, value in numbers.items()]
    whole = {"zero": 0, "step": 1, "second": [1], "axes": [1]}
    known += [numpy_helper.from_array(np.array(value, dtype=np.int64), name) for name, value in whole.items()]
    nodes = [helper.make_node(*step) for step in STEPS]
    nodes += [
        helper.make_node("Transpose", ["keys"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("Softmax", ["hidden"], ["shares"], axis=-1),
        # Before what is added, not after: a word that says little stays short.
        helper.make_node("LayerNormalization", ["summed", "gain", "bias"], ["embedded"], axis=-1),
        helper.make_node("LayerNormalization", ["attended", "gain", "bias"], ["between"], axis=-1),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in ("input_ids", "token_type_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "length", DIMS])
    ordered = _sorted(nodes, {*(one.name for one in known), *(one.name for one in inputs)})
    made = helper.make_graph(ordered, "tiny", inputs, [output], known)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model


STEPS = (
    ("Shape", ["input_ids"], ["shape"]),
    ("Gather", ["shape", "second"], ["lengths"]),
    ("Squeeze", ["lengths"], ["length"]),
    ("Range", ["zero", "length", "step"], ["places"]),
    ("Gather", ["words", "input_ids"], ["read"]),
    ("Gather", ["positions", "places"], ["placed"]),
    ("Gather", ["types", "token_type_ids"], ["typed"]),
    ("Add", ["read", "placed"], ["at"]),
    ("Add", ["at", "typed"], ["summed"]),
    ("MatMul", ["embedded", "query"], ["queries"]),
    ("MatMul", ["embedded", "key"], ["keys"]),
    ("MatMul", ["embedded", "value"], ["values"]),
    ("MatMul", ["queries", "turned"], ["raw"]),
    ("Mul", ["raw", "scale"], ["scores"]),
    ("CastLike", ["attention_mask", "one"], ["there"]),
    ("Unsqueeze", ["there", "axes"], ["row"]),
    ("Sub", ["one", "row"], ["absent"]),
    ("Mul", ["absent", "masked"], ["away"]),
    ("Add", ["scores", "away"], ["hidden"]),
    ("MatMul", ["shares", "values"], ["mixed"]),
    ("MatMul", ["mixed", "out"], ["said"]),
    ("Add", ["summed", "said"], ["attended"]),
    ("MatMul", ["between", "into"], ["inner"]),
    ("Mul", ["inner", "root"], ["rooted"]),
    ("Erf", ["rooted"], ["bent"]),
    ("Add", ["bent", "one"], ["lifted"]),
    ("Mul", ["lifted", "half"], ["gate"]),
    ("Mul", ["inner", "gate"], ["active"]),
    ("MatMul", ["active", "back"], ["answer"]),
    ("Add", ["attended", "answer"], ["last_hidden_state"]),
)


def _sorted(nodes: list[onnx.NodeProto], known: set[str]) -> list[onnx.NodeProto]:
    """Return the nodes so that each comes after what it reads, as ONNX asks for."""
    left, done = list(nodes), []
    while left:
        ready = next(node for node in left if known.issuperset(node.input))
        left.remove(ready)
        done.append(ready)
        known |= {*ready.output}
    return done


def build(folder: Path) -> Path:
    """Write model.onnx and tokenizer.json into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(graph(), folder / "model.onnx")
    tokenizer([*vocabulary()]).save(str(folder / "tokenizer.json"))
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    build(parser.parse_args().out)
