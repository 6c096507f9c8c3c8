"""Export and import through interfaces: held to the token, streamed, as bytes; file paths are never sent."""

import asyncio
import io
import json
from pathlib import Path

import pytest
from served import client, served

from builders import opened
from holdfast import AsyncMemory, HoldfastError, InputError, Memory
from holdfast.server.access import Tokens, token_file
from holdfast.testing.contracts import HashEmbedder

EXPORTS = Path(__file__).parents[1] / "data" / "exports"


@pytest.fixture
def memory():
    with opened(embedder=HashEmbedder(32)) as memory:
        for user in ("ana", "bob"):
            memory.remember(f"the key of {user} is under the stone", user=user, tenant="acme", id=f"{user}-1")
        memory.remember("the gate closes at nine", user="ana", tenant="acme", id="gate", scope="global")
        yield memory


@pytest.fixture
def guarded(memory, tmp_path):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    made = {
        "acme": tokens.add("acme", "acme"),
        "bob": tokens.add("bob", "acme", "bob"),
        "o": tokens.add("o", "other"),
    }
    with served(memory, tokens) as address:
        yield address, made


def exported(memory, **options):
    out = io.BytesIO()
    memory.export(out, **options)
    return out.getvalue()


def test_a_token_exports_what_it_opens(guarded, memory):
    address, made = guarded

    def get(token, **params):
        with client(address, made[token]) as http:
            return http.get("/v1/export", params=params)

    answer = get("bob")
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.content == exported(memory, user="bob", tenant="acme")
    assert b"ana" not in answer.content
    assert get("acme", all="true").content == exported(memory, all=True, tenant="acme")
    assert get("acme", user="ana", format="markdown").text.startswith("# Memory of ana\n")
    assert (get("bob", user="ana").status_code, get("bob", all="true").status_code) == (403, 422)
    assert (get("o", user="ana").status_code, get("acme").status_code) == (404, 422)
    assert get("acme", all="true", tenant="other").status_code == 403
    assert get("acme", user="ana", target="/tmp/x").status_code == 422


def test_a_token_of_one_user_imports_for_that_user_alone(guarded, memory):
    address, made = guarded

    def post(token, body, kind="application/octet-stream", **params):
        with client(address, made[token]) as http:
            return http.post("/v1/import", content=body, params=params, headers={"Content-Type": kind})

    everyone, ana = exported(memory, all=True, tenant="acme"), exported(memory, user="ana", tenant="acme")
    refused = post("bob", everyone)
    assert (refused.status_code, "not of one user" in refused.json()["detail"]) == (422, True)
    assert post("bob", everyone, user="ana").status_code == 403
    taken = post("bob", ana)
    assert (taken.status_code, taken.json()["added"]) == (200, 1)
    assert {one.name: one.units for one in memory.users(tenant="acme")} == {"ana": 1, "bob": 2}
    assert post("acme", everyone).json()["known"] == 3
    chat = post("bob", b"User: hi\nAssistant: hello\n", name="chat.txt", dry_run="true").json()
    assert (chat["format"], chat["read"], chat["dry_run"]) == ("transcript", 2, True)


def test_file_paths_are_never_sent(guarded, tmp_path):
    address, made = guarded
    secret = tmp_path / "chat.txt"
    secret.write_text("User: my secret\nAssistant: kept\n")
    with client(address, made["acme"]) as http:
        for kind in ("text/plain", "application/octet-stream", "application/json"):
            answer = http.post(
                "/v1/import", content=str(secret), params={"user": "eve"}, headers={"Content-Type": kind}
            )
            assert (answer.status_code, "secret" in answer.text) == (422, False)
        assert http.get("/v1/users", params={"user": "eve"}).json() == []


def test_a_client_reads_and_writes_its_own_files(memory, tmp_path):
    with served(memory) as address, Memory.open(address) as remote:
        report = remote.import_(EXPORTS / "slack", user="me", tenant="acme")
        assert (report.format, report.added) == ("slack", 6)
        told = []
        whatsapp = {"user": "me", "tenant": "acme", "progress": lambda *done: told.append(done)}
        assert remote.import_(str(EXPORTS / "whatsapp_german.txt"), **whatsapp).added == 3
        assert {one.name for one in remote.sessions(user="me", tenant="acme")} >= {"whatsapp_german", "harbour"}
        done = remote.export(tmp_path / "me.jsonl", user="me", tenant="acme")
        written = (tmp_path / "me.jsonl").read_bytes()
        assert (len(written), json.loads(written.splitlines()[-1])["end"]["units"]) == (done.bytes, 9)
        with pytest.raises(InputError, match="exists"):
            remote.export(tmp_path / "me.jsonl", user="me", tenant="acme")
        with pytest.raises(HoldfastError, match="has nothing here"):
            remote.export(tmp_path / "no.jsonl", user="nobody", tenant="acme")
        with pytest.raises(InputError, match="there is no file"):
            remote.import_(tmp_path / "none.txt", user="me")
        with pytest.raises(InputError, match="neither a path nor"):
            remote.export(5, user="me", tenant="acme")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["me.jsonl"]


def test_exports_are_awaited_too(memory, tmp_path):
    async def carry():
        awaited = AsyncMemory(memory)
        await awaited.export(tmp_path / "a.jsonl", user="ana", tenant="acme")
        return await awaited.import_(tmp_path / "a.jsonl", tenant="other")

    assert asyncio.run(carry()).added == 1
    assert [one.name for one in memory.users(tenant="other")] == ["ana"]
