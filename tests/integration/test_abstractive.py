"""Summaries that are written behind `Memory.compact`: accepted by their measure, or refused, and nothing is lost."""

import contextlib
import json
import math
import socket
from pathlib import Path

import numpy as np
import pytest

from builders import NOW, later
from endpoint import EmbeddingServer
from histories import SMALL
from holdfast import Memory, Settings
from holdfast.models import build_embedder
from holdfast.settings import EmbeddingSettings

TINY_T5 = Path(__file__).parents[1] / "fixtures" / "tiny_t5"
TURNS = (
    "Mara did not stay in Porto: on 3 March 2024 she moved to Lisbon and rents a flat near the river.",
    "She pays 900 euros a month for the flat in Lisbon, which is not cheap.",
    "Her new job in Lisbon is at the harbour office, and she does not start before April.",
    "Until then Mara walks along the river in Lisbon and learns the names of boats.",
)
TAIL = ("What else is new?", "Not much, it is quiet here.", "And the weather?", "It rains, as it always does.")
# Says what the turns say, each name, number, date and negation included.
GOOD = (
    "Mara did not stay in Porto and moved to Lisbon on 3 March 2024; her flat near the river costs 900 euros, "
    "which is not cheap, and her job at the harbour office does not start before April."
)
LOGS = (-0.1, -0.3)


def chat(content, logs=LOGS):
    """Return the body of a well-formed answer."""
    told = {"content": [{"token": "x", "logprob": log} for log in logs]}
    message = {"role": "assistant", "content": content}
    return json.dumps({"choices": [{"index": 0, "message": message, "logprobs": told}]}).encode()


@contextlib.contextmanager
def memory_with(**summariser):
    """Open a memory with the shipped embedder, tell it a session, and see that nothing of it is lost."""
    given = (
        SMALL | {"embedding.embedder": "minilm"} | {f"summariser.{key}": value for key, value in summariser.items()}
    )
    settings = Settings.load(given, environ={}).without_timeouts()
    with Memory.open(":memory:", settings=settings, now=lambda: NOW) as memory:
        said = [
            {"role": "user", "content": text, "at": later(minutes=number)} for number, text in enumerate(TURNS + TAIL)
        ]
        ids = [done.id for done in memory.remember(said, user="ana", session="s")]
        yield memory
        kept = {unit.id: unit.text for unit in memory.list(user="ana", limit=None) if unit.kind == "turn"}
        assert kept == dict(zip(ids, TURNS + TAIL, strict=True))
        for unit in memory.list(user="ana", limit=None):
            if unit.kind == "summary":
                assert [turn.text for turn in memory.expand(unit.id, user="ana")] == list(TURNS)


@contextlib.contextmanager
def answering(answer, **more):
    """Let an endpoint of our own answer; `answer` is a text, bytes, a status, or None for silence."""

    def reply(_path, _question):
        if answer is None:
            return None
        return (
            (answer, b"away")
            if isinstance(answer, int)
            else (200, answer if isinstance(answer, bytes) else chat(answer))
        )

    with EmbeddingServer(reply) as server:
        given = {"summariser": "openai", "url": server.url, "model": "small", **more}
        with memory_with(**given) as memory:
            yield memory, server


def compacted(memory):
    """Compact, and return the one summary, what the run reports of it, and its unit."""
    [done] = memory.compact(user="ana", session="s")
    [made] = done.made
    return done, made, memory.get(done.summaries[0], user="ana")


def measured(text):
    """Return align and cover of a text, computed here from the shipped embedder alone."""
    embedder = build_embedder(EmbeddingSettings(embedder="minilm"))
    rows = embedder.embed_documents([*TURNS, text]).astype(np.float64)
    vectors, own = rows[:-1], rows[-1]

    def cosine(one, other):
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    return cosine(own, vectors.mean(axis=0)), sum(max(0.0, cosine(own, one)) for one in vectors) / len(vectors)


# ------------------------------------------------------------------------------------------------- accepted


def test_a_good_summary_is_accepted_with_its_measure():
    with answering(GOOD) as (memory, server):
        done, made, unit = compacted(memory)
        assert (done.method, done.notes, unit.text) == ("abstractive", (), GOOD)
        align, cover = measured(GOOD)
        assert align >= memory.settings.compaction.min_align
        assert unit.lineage.align == pytest.approx(align, abs=1e-5)
        assert unit.lineage.cover == pytest.approx(cover, abs=1e-5)
        model = math.exp(sum(LOGS) / len(LOGS))
        confidence = 0.8 * min(1.0, max(0.0, (unit.lineage.align + unit.lineage.cover) / 2)) + 0.2 * model
        assert unit.lineage.confidence == pytest.approx(confidence)
        assert unit.lineage.decay_rate == 1.0 - unit.lineage.confidence
        assert (unit.lineage.method, made.conf_model) == ("abstractive", pytest.approx(model))
        assert made.tokens_after < made.tokens_before
        assert len(server.requests) == 1
        asked = json.loads(server.requests[0][2]["messages"][1]["content"])
        assert asked["turns"] == [f"user: {text}" for text in TURNS]
        assert [hit.unit.id for hit in memory.search("Where did Mara move to?", user="ana", limit=1)]


def test_a_second_run_asks_nobody():
    with answering(GOOD) as (memory, server):
        compacted(memory)
        assert memory.compact(user="ana", session="s")[0].clusters == ()
        assert len(server.requests) == 1


# --------------------------------------------------------------------------------------------------- refused


def with_the_facts(words):
    """Return an unrelated text with every name, number and negation of the turns: only meaning can tell."""
    return f"{words}; Mara not stay in Porto, Lisbon, 3 March 2024, not start before April"


BAD = {
    "unrelated": ("The parliament passed the budget.", "it dropped"),
    "drops a name": (GOOD.replace("Lisbon", "the city"), "it dropped 'Lisbon'"),
    "drops a negation": (GOOD.replace(" not", "").replace("does start", "starts"), "it dropped 'not stay in Porto'"),
    "invents a number": (GOOD.replace("900 euros", "900 euros (950 with heating)"), "it invented '950'"),
    "invents a name": (GOOD.replace("and moved", "and moved with Tomas"), "it invented 'Tomas'"),
    "rubbish": (b"\x00\x01 no JSON", "did not answer with JSON"),
    "another shape": (b'{"choices": []}', "did not answer with a message"),
    "an error": (500, "HTTP 500"),
    "nothing": (" ", "empty text"),
    "endless": ("Mara " * 2000, "characters where"),
    "a NUL": (GOOD + "\x00", "extractive instead"),
}


@pytest.mark.parametrize("how", sorted(BAD))
def test_a_bad_summary_is_refused_and_the_turns_speak(how):
    answer, words = BAD[how]
    with answering(answer) as (memory, _):
        done, made, unit = compacted(memory)
        assert (done.method, unit.lineage.method) == ("extractive", "extractive")
        assert any(words in note and "extractive instead" in note for note in done.notes), done.notes
        assert made.conf_model is None
        picked = [memory.get(key, user="ana").text for key in made.picks]
        assert unit.text == "\n".join(f"user: {text}" for text in picked)
        assert unit.lineage.confidence == pytest.approx((unit.lineage.align + unit.lineage.cover) / 2)


def test_a_summary_about_something_else_is_refused_by_its_alignment():
    text = with_the_facts(
        "quantum chromodynamics binds quarks by gluons; polynomial rings factor into ideals; enzymes fold proteins; "
        "parsers reduce tokens by tables"
    )
    align, _ = measured(text)
    assert align < 0.35
    with answering(text) as (memory, _):
        done, _, unit = compacted(memory)
        assert unit.lineage.method == "extractive"
        assert any(f"Q_align {align:.2f} < 0.35" in note for note in done.notes), done.notes


def test_a_slow_endpoint_does_not_hold_compaction_up():
    with answering(None, timeout_s=0.05) as (memory, server):
        done, _, _ = compacted(memory)
        assert done.method == "extractive"
        assert any("no answer within 0.05 s" in note for note in done.notes)
        assert len(server.requests) == 1  # one that fails is not asked again


def test_an_endpoint_that_is_down():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with memory_with(summariser="openai", url=f"http://127.0.0.1:{port}", model="small") as memory:
        done, _, _ = compacted(memory)
        assert done.method == "extractive"
        assert any("cannot be reached" in note for note in done.notes)


# ------------------------------------------------------------------------------------------------- a local T5


def test_a_t5_from_a_folder_is_judged_like_anyone():
    said = ["Good morning.", "Ana moved to Lisbon in March.", "That sounds nice."]
    written = json.loads((TINY_T5 / "oracle.json").read_text())[0]
    assert written["turns"] == said
    for least, method in ((0.0, "abstractive"), (0.99, "extractive")):
        given = SMALL | {
            "embedding.embedder": "minilm", "summariser.summariser": "onnx", "summariser.folder": str(TINY_T5),
            "compaction.min_align": least, "assembly.min_turns": 1, "assembly.budget": 30,
        }  # fmt: skip
        with Memory.open(":memory:", settings=Settings.load(given, environ={}), now=lambda: NOW) as memory:
            messages = [
                {"role": "user", "content": text, "at": later(minutes=number)}
                for number, text in enumerate([*said, "the last turn is the tail"])
            ]
            ids = [done.id for done in memory.remember(messages, user="ana", session="s")]
            [done] = memory.compact(user="ana", session="s")
            [summary], [made] = done.summaries, done.made
            unit = memory.get(summary, user="ana")
            assert unit.lineage.method == method, (done.notes, made)
            if method == "extractive":
                assert any("Q_align" in note for note in done.notes)
            else:
                assert 0.0 < made.conf_model <= 1.0
                assert unit.lineage.confidence == pytest.approx(0.8 * made.conf_space + 0.2 * made.conf_model)
                assert "Lisbon" in unit.text
            assert [turn.text for turn in memory.expand(summary, user="ana")] == said
            assert {one.id for one in memory.list(user="ana", limit=None)} == {*ids, summary}
