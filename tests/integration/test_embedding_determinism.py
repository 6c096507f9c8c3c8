"""A text's vector is a fact: the same bytes in every process, for any number of threads, after a fork."""

import hashlib
import os
import subprocess
import sys

import pytest

from holdfast import sample
from holdfast.models import build_embedder
from holdfast.settings import EmbeddingSettings

TEXTS = [message["content"] for _, messages in sample.sessions() for message in messages][:60]

# Reads the name of the embedder and the number of threads; prints a checksum of all vectors.
PROGRAM = """
import hashlib, sys
from holdfast import sample
from holdfast.models import build_embedder
from holdfast.settings import EmbeddingSettings
texts = [message["content"] for _, messages in sample.sessions() for message in messages][:60]
embedder = build_embedder(EmbeddingSettings(embedder=sys.argv[1], threads=int(sys.argv[2])))
vectors = embedder.embed_documents(texts)
print(embedder.space, hashlib.sha256(vectors.tobytes()).hexdigest(), flush=True)
"""
# The child of a fork has none of its parent's threads; it must be able to embed all the same.
FORKED = """
import os
child = os.fork()
again = embedder.embed_documents(texts[::-1])[::-1].tobytes()
assert again == vectors.tobytes()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
# Far above what loading and sixty texts take; it only ends a deadlock.
PATIENCE = 1200


def in_another_process(embedder, threads, program=PROGRAM):
    done = subprocess.run(
        # From Python 3.12 on a fork beside other threads is warned of.
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", program, embedder, str(threads)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("name", ["minilm", "potion"])
def test_threads_and_processes_give_the_same_bytes(name):
    one, two = (build_embedder(EmbeddingSettings(embedder=name, threads=threads)) for threads in (1, 2))
    vectors = one.embed_documents(TEXTS)
    assert two.embed_documents(TEXTS).tobytes() == vectors.tobytes()
    expected = [one.space, hashlib.sha256(vectors.tobytes()).hexdigest()]
    assert in_another_process(name, 1) == in_another_process(name, 2) == expected


def test_a_question_reads_as_a_document_does():
    embedder = build_embedder(EmbeddingSettings(threads=2))
    rows = embedder.embed_documents(TEXTS[:10])
    assert b"".join(embedder.embed_query(text).tobytes() for text in TEXTS[:10]) == rows.tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_can_embed():
    in_another_process("minilm", 2, PROGRAM + FORKED)
