"""The Dockerfile serves: its command, its check of health and its refusals are run as they are written there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from builders import PATIENT
from holdfast.errors import AccessError

ROOT = Path(__file__).parents[2]
TRIES = 200
HOLDFAST = Path(sys.executable).with_name("holdfast")
STEPS = re.findall(
    r"^([A-Z]+) (.*)$", (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " "), re.MULTILINE
)


def step(name):
    return next(words for found, words in STEPS if found == name)


@pytest.fixture
def home(tmp_path):
    """Return the environment of a container: its store in its volume, and nothing of ours."""
    path = step("ENV").partition("=")[2].replace("/data", str(tmp_path))
    keep = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return keep | {"HOLDFAST_STORE__PATH": path, "HOLDFAST_EMBEDDING__EMBEDDER": "none"} | PATIENT


def test_it_runs_as_nobody_in_particular_and_keeps_its_data_in_a_volume():
    names = [name for name, _ in STEPS]
    assert names.index("USER") > max(place for place, name in enumerate(names) if name == "RUN")
    assert step("USER") == "holdfast"
    assert step("VOLUME") == step("WORKDIR") == "/data"
    assert step("FROM") == "python:3.11-slim"


def test_without_tokens_it_does_not_listen_to_others(home, tmp_path):
    command = [HOLDFAST, *json.loads(step("CMD"))]
    done = subprocess.run(command, cwd=tmp_path, env=home, capture_output=True, text=True, check=False)
    assert done.returncode == AccessError.exit_code
    assert "token" in done.stderr


def test_its_check_of_health_asks_the_server_that_it_starts(home, tmp_path):
    check = step("HEALTHCHECK")
    program = json.loads(check[check.index("[") :])
    port = step("EXPOSE")
    command = [HOLDFAST, *json.loads(step("CMD")), "--port", "0"]
    command[command.index("0.0.0.0")] = "127.0.0.1"
    with subprocess.Popen(command, cwd=tmp_path, env=home, stdout=subprocess.PIPE, text=True) as running:
        address = running.stdout.readline().removeprefix("listening at ").strip()
        assert f"127.0.0.1:{port}/" in program[2]
        asked = program[2].replace(f"http://127.0.0.1:{port}", address)
        # While the store and the models are loaded it is not ready: a container asks again, and so does this test.
        asking = (subprocess.run([sys.executable, "-c", asked], check=False, env=home) for _ in range(TRIES))
        healthy = next((done for done in asking if done.returncode == 0), None)
        running.terminate()
    ill = subprocess.run([sys.executable, "-c", asked], check=False, env=home, capture_output=True)
    assert healthy is not None
    assert ill.returncode == 1
