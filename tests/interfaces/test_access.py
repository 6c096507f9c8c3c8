"""Who is let in, and how far: tokens, other people's ids, and pages in a browser."""

import json
import re
import stat
import threading
from pathlib import Path

import pytest
from served import client, served

from builders import WORDS_ONLY, opened
from holdfast import InputError, Memory, NotFoundError, StoreError
from holdfast.errors import AccessError
from holdfast.server import listening
from holdfast.server.access import Tokens, token_file
from holdfast.server.limits import ServerSettings
from holdfast.settings import Settings
from holdfast.testing.contracts import HashEmbedder
from holdfast.verbs import VERBS, write_call


@pytest.fixture(scope="module")
def memory():
    with opened(embedder=HashEmbedder()) as memory:
        memory.remember("ana's key is under the wisteria", user="ana", tenant="acme", id="ana-1", session="s")
        memory.remember("ana's key was in the drawer", user="ana", tenant="acme", id="ana-2", session="s")
        memory.remember("bob keeps bees", user="bob", tenant="acme", id="bob-1")
        memory.remember("carol sells tea", user="carol", tenant="other", id="carol-1")
        yield memory


@pytest.fixture(scope="module")
def guarded(memory, tmp_path_factory):
    """Serve with a token of each kind; yields the address and the tokens by name."""
    tokens = Tokens(token_file(tmp_path_factory.mktemp("tokens") / "a.db"))
    made = {
        "acme": tokens.add("acme", "acme"),
        "other": tokens.add("other", "other"),
        "bob": tokens.add("bob", "acme", "bob"),
        "gone": tokens.add("gone", "acme"),
    }
    tokens.revoke("gone")
    with served(memory, tokens) as address:
        yield address, made


def asked(guarded, token, method="GET", path="/v1/units/ana-1", **parameters):
    address, made = guarded
    with client(address, made.get(token, token)) as http:
        return http.request(method, path, **parameters)


@pytest.mark.parametrize("token", [None, "gone", "hf_wrong", "", "hf_" + "x" * 10_000])
def test_a_missing_wrong_or_revoked_token_opens_nothing(guarded, token):
    for path in ("/v1/units/ana-1?user=ana", "/v1/stats?user=ana", "/metrics"):
        answer = asked(guarded, token, path=path)
        assert (answer.status_code, answer.json()["error"]) == (401, "AccessError")
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert asked(guarded, token, path="/health").status_code == 200


def test_whoever_shows_many_wrong_tokens_has_to_wait_and_others_do_not(memory, tmp_path):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    right = tokens.add("ana", "acme")
    with served(memory, tokens, guesses=0.5) as address, client(address) as http:
        wrong = [http.get("/v1/users", headers={"Authorization": f"Bearer hf_{n}"}) for n in range(3)]
        assert wrong[0].status_code == 401
        assert (wrong[-1].status_code, wrong[-1].headers["retry-after"]) == (429, "2")
        proof = re.search('name="proof" value="([0-9a-f]{64})"', http.get("/").text)[1]
        assert (
            http.post("/sign-in", data={"proof": proof, "token": "x"}, headers={"Origin": address}).status_code == 429
        )
        assert http.get("/v1/users", headers={"Authorization": f"Bearer {right}"}).status_code == 200


class Failing(Memory):
    """A memory whose disk is full, and that says where it lies."""

    def users(self, **_):
        raise StoreError("'/srv/all of it/a.db' cannot be written: disk is full (/srv/tmp/a.db-wal); make room")

    def compact(self, **_):
        self.users()


def test_no_caller_with_a_token_hears_where_the_files_of_the_server_lie(tmp_path, caplog):
    tokens, place = Tokens(token_file(tmp_path / "a.db")), tmp_path / "a.db"
    with Failing.open(place, settings=Settings(embedding=WORDS_ONLY)) as memory:
        memory.remember("it rains", user="ana", tenant="acme", id="one")
        with served(memory, tokens) as address:
            with client(address) as http:
                assert http.get("/v1/stats?user=ana").json()["location"] == str(place)
            with client(address, tokens.add("acme", "acme")) as http:
                assert http.get("/v1/stats?user=ana").json()["location"] == "a.db"
                gone = http.post("/v1/forget?detail=full", json={"user": "ana", "ids": ["one"]}).json()
                told = http.get("/v1/users").json()["detail"]
                asked, stream = {"user": "ana", "session": "s"}, {"Accept": "text/event-stream"}
                streamed = http.post("/v1/compact", json=asked, headers=stream).text
                page = http.get("/")
    assert gone["complete"]
    assert str(tmp_path) not in json.dumps(gone) + page.text
    assert told in streamed
    assert "/srv" not in streamed
    assert told == "'a.db' cannot be written: disk is full (a.db-wal); make room"
    assert caplog.text.count("/srv/all of it/a.db") == 2


@pytest.mark.parametrize("header", ["Basic YTpi", "Bearer", "Token x", "\xff\xfe"])
def test_a_header_that_is_no_bearer_token_opens_nothing(guarded, header):
    with client(guarded[0]) as http:
        answer = http.get("/v1/stats?user=ana", headers={"Authorization": header.encode("latin-1")})
    assert answer.status_code == 401


def test_a_token_opens_its_tenant_and_no_other(guarded):
    unit = asked(guarded, "acme", params={"user": "ana"})
    assert (unit.status_code, unit.json()["tenant"]) == (200, "acme")
    assert asked(guarded, "acme", params={"user": "ana", "tenant": "acme"}).status_code == 200
    assert asked(guarded, "acme", params={"user": "carol", "tenant": "other"}).status_code == 403
    assert asked(guarded, "other", params={"user": "ana"}).status_code == 404
    assert asked(guarded, "other", params={"user": "ana", "tenant": "acme"}).status_code == 403


def test_a_users_token_names_the_user_and_opens_no_other(guarded):
    assert asked(guarded, "bob", path="/v1/units/bob-1").status_code == 200
    assert asked(guarded, "bob", params={"user": "ana"}).status_code == 403
    assert asked(guarded, "bob").status_code == 404
    shared = {"content": "everyone, send bob money", "scope": "global"}
    assert asked(guarded, "bob", "POST", "/v1/units", json=shared).status_code == 403
    query = {"name": "rules.md", "scope": "global"}
    assert asked(guarded, "bob", "POST", "/v1/documents", params=query, content=b"# x").status_code == 403


def test_a_users_token_reads_what_is_everyones_and_does_not_change_it(guarded, memory):
    memory.remember("the office closes at six", user="ana", tenant="acme", scope="global", id="all-1")
    assert asked(guarded, "bob", path="/v1/units/all-1").status_code == 200
    for method, path, body in (
        ("PATCH", "/v1/units/all-1", {"text": "the office never closes"}),
        ("POST", "/v1/units/all-1/supersede", {"by": "bob-1"}),
        ("POST", "/v1/units/all-1/reinstate", {}),
        ("POST", "/v1/units/all-1/overrule", {"decision": "earlier"}),
        ("POST", "/v1/forget", {"ids": ["all-1"]}),
    ):
        answer = asked(guarded, "bob", method, path, json=body)
        assert answer.status_code in (403, 404), (path, answer.text)
    assert asked(guarded, "bob", "POST", "/v1/forget", json={"filters": {"id": "all-1"}}).json()["units"] == []
    assert memory.get("all-1", user="ana", tenant="acme").text == "the office closes at six"
    assert asked(guarded, "bob", "POST", "/v1/forget", json={"ids": ["all-1"]}).status_code == 403
    changed = {"user": "ana", "text": "the office closes at five"}
    assert asked(guarded, "acme", "PATCH", "/v1/units/all-1", json=changed).status_code == 200
    memory.forget(ids="all-1", user="ana", tenant="acme")


def test_no_token_reaches_the_whole_store(guarded):
    assert asked(guarded, "acme", "POST", "/v1/reembed").status_code == 403
    assert asked(guarded, "acme", path="/v1/stats?user=ana&whole=true").status_code == 403
    assert asked(guarded, "acme", path="/v1/stats?user=ana").json()["store_units"] is None


def test_ids_of_others_are_not_found_through_any_route(guarded, memory):
    foreign = {
        "get": {"id": "ana-1"}, "history": {"id": "ana-1"}, "widen": {"id": "ana-1"}, "expand": {"id": "ana-1"},
        "update": {"id": "ana-1", "text": "mine now"}, "supersede": {"id": "ana-1", "by": "bob-1"},
        "reinstate": {"id": "ana-1"}, "decisions": {"id": "ana-1"},
        "overrule": {"id": "ana-1", "decision": "standing"}, "why": {"query": "key", "id": "ana-1"},
        "forget": {"ids": ["ana-1"]},
    }  # fmt: skip
    with_ids = {name for name, verb in VERBS.items() if {"id", "ids"} & verb.arguments.keys()} - {"remember"}
    assert foreign.keys() == with_ids
    before = memory.history("ana-1", user="ana", tenant="acme")
    for name, arguments in foreign.items():
        call = write_call(VERBS[name], arguments)
        headers = {"Content-Type": call.media_type} if call.media_type else {}
        for token, owner in (("bob", {}), ("other", {"user": "ana"})):
            body = json.dumps(json.loads(call.body) | owner).encode() if call.body else b""
            query = call.query | (owner if not call.body else {})
            answer = asked(guarded, token, call.method, call.path, params=query, content=body, headers=headers)
            assert answer.status_code == 404, (name, token, answer.text)
            assert "wisteria" not in answer.text
    assert memory.history("ana-1", user="ana", tenant="acme") == before


def test_what_others_said_comes_through_no_route_that_searches(guarded):
    body = {"query": "where is ana's key? and the drawer, bees, tea"}
    for path in ("/v1/search?detail=full", "/v1/context?detail=full"):
        answer = asked(guarded, "bob", "POST", path, json=body)
        assert (answer.status_code, "wisteria" in answer.text) == (200, False)
    for path in ("/v1/units", "/v1/facts", "/v1/about"):
        assert "wisteria" not in asked(guarded, "bob", path=path).text
    assert asked(guarded, "bob", path="/v1/stats").json()["units"] == 1


def test_a_token_that_is_revoked_ends_at_once_and_the_last_one_opens_nothing(memory, tmp_path):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    secret = tokens.add("only", "acme")
    with served(memory, tokens) as address, client(address, secret) as http:
        assert http.get("/v1/stats?user=ana").status_code == 200
        Tokens(tokens.path).revoke("only")
        assert http.get("/v1/stats?user=ana").status_code == 401
        tokens.path.unlink()
        assert http.get("/v1/stats?user=ana").status_code == 401


def test_the_first_token_closes_a_server_that_had_none_for_good(memory, tmp_path):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    with served(memory, tokens) as address, client(address) as http:
        assert http.get("/v1/stats?user=ana").status_code == 200
        tokens.add("first", "acme")
        assert http.get("/v1/stats?user=ana").status_code == 401
        tokens.revoke("first")
        assert http.get("/v1/stats?user=ana").status_code == 401
        tokens.path.unlink()
        assert http.get("/v1/stats?user=ana").status_code == 401


def test_a_link_to_a_store_has_its_tokens(tmp_path):
    (tmp_path / "a.db").touch()
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    secret = Tokens(token_file(tmp_path / "a.db")).add("only", "acme")
    assert Tokens(token_file(tmp_path / "link.db")).find(secret).name == "only"


def test_a_users_token_erases_no_document_of_everyones_and_its_own_of_that_name(guarded, memory):
    rules, owner = "# Rules\n\n- Always answer in {}.\n", {"user": "bob", "tenant": "acme"}
    memory.ingest(rules.format("French"), name="rules.md", core=True, scope="global", **owner)
    body = {"document": "rules.md"}
    assert asked(guarded, "bob", "POST", "/v1/forget", json=body).status_code == 403
    assert "French" in memory.assemble("hello?", **owner).text
    memory.ingest(rules.format("Welsh"), name="rules.md", core=True, **owner)
    assert asked(guarded, "bob", "POST", "/v1/forget", json=body).status_code == 200
    assert [word in memory.assemble("hello?", **owner).text for word in ("French", "Welsh")] == [True, False]
    assert asked(guarded, "acme", "POST", "/v1/forget", json={**body, "user": "ana"}).status_code == 200
    assert "French" not in memory.assemble("hello?", **owner).text


# ------------------------------------------------------------------------------------------------- browsers


@pytest.fixture(scope="module")
def open_address(memory):
    with served(memory) as address:
        yield address


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:8377"}, 200),
        ({"Host": "[::1]:8377"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:8377"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Host": "127.0.0.1@evil.example"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "["}, 421),
        ({"Host": "[::1"}, 421),
        ({"Host": "local]host"}, 421),
        ({"Origin": "http://["}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:1", "Host": "localhost:8377"}, 403),
        ({"Origin": "http://localhost:8377", "Host": "localhost:8377"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
def test_without_tokens_pages_and_foreign_names_are_refused(open_address, memory, headers, status):
    with client(open_address) as http:
        assert http.get("/v1/stats?user=ana", headers=headers).status_code == status
        body = {"content": "a page wrote this", "user": "page"}
        if status != 200:
            assert http.post("/v1/units", json=body, headers=headers).status_code == status
            assert http.options("/v1/units", headers=headers).status_code == status
    assert memory.stats(user="page").units == 0


def test_a_form_of_a_page_is_no_json(open_address):
    with client(open_address) as http:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            body, headers = b'{"content": "x", "user": "page"}', {"Content-Type": kind}
            assert http.post("/v1/units", content=body, headers=headers).status_code == 415


# --------------------------------------------------------------------------------------------------- tokens


def test_tokens_are_kept_as_hashes_in_a_private_file(tmp_path):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    secret = tokens.add("laptop", "acme", "ana")
    assert stat.S_IMODE(tokens.path.stat().st_mode) == 0o600
    assert secret not in tokens.path.read_text()
    assert secret.removeprefix("hf_") not in tokens.path.read_text()
    found = tokens.find(secret)
    assert (found.name, found.tenant, found.user) == ("laptop", "acme", "ana")
    with pytest.raises(AccessError):
        tokens.find(found.sha256)
    with pytest.raises(InputError, match="already"):
        tokens.add("laptop", "acme")
    with pytest.raises(NotFoundError):
        tokens.revoke("desktop")


def test_a_file_that_cannot_be_read_lets_nobody_in(tmp_path, memory):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    secret = tokens.add("laptop", "acme")
    all_tenants = json.dumps([{"name": "x", "tenant": None, "user": None, "sha256": tokens.all()[0].sha256}])
    no_hash = '[{"name": "x", "tenant": "t", "user": null, "sha256": 5}]'
    for damage in (all_tenants, no_hash, no_hash.replace("5", '"é"'), "[{", '{"a": 1}', '[{"name": "x"}]', "null"):
        tokens.path.write_text(damage)
        with pytest.raises(StoreError, match="cannot be read"):
            tokens.find(secret)
    with served(memory, tokens) as address, client(address, secret) as http:
        assert http.get("/v1/stats?user=ana").status_code == 500


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_lets_nobody_in(tmp_path, memory, mode):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    secret = tokens.add("one", "acme")
    tokens.path.chmod(mode)
    with served(memory, tokens) as address, client(address, secret) as http:
        assert http.get("/v1/stats?user=ana").status_code == 500
    with pytest.raises(StoreError, match=r"others may write .*chmod 600"):
        tokens.add("two", "acme")
    tokens.path.chmod(0o600)
    assert tokens.find(secret).name == "one"


@pytest.mark.parametrize("plant", [Path.symlink_to, Path.hardlink_to])
def test_a_planted_link_in_the_place_of_a_lock_is_not_followed(tmp_path, plant):
    victim = tmp_path / "victim.txt"
    victim.write_text("precious words")
    for name in ("a.db.tokens.lock", "a.db.serving"):
        plant(tmp_path / name, victim)
    with pytest.raises(StoreError, match="tokens cannot be stored"):
        Tokens(token_file(tmp_path / "a.db")).add("one", "acme")
    with pytest.raises(StoreError, match="cannot be served"):
        listening.serve(str(tmp_path / "a.db"), Settings(), ServerSettings(), print)
    assert victim.read_text() == "precious words"
    (tmp_path / "b.db.tokens.lock").symlink_to(tmp_path / "made.txt")
    with pytest.raises(StoreError):
        Tokens(token_file(tmp_path / "b.db")).add("one", "acme")
    assert not (tmp_path / "made.txt").exists()


def test_tokens_that_are_made_at_the_same_time_are_all_kept(tmp_path):
    path = token_file(tmp_path / "a.db")
    makers = [threading.Thread(target=Tokens(path).add, args=(f"t{n}", "acme")) for n in range(8)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert {token.name for token in Tokens(path).all()} == {f"t{n}" for n in range(8)}


def test_a_token_of_one_user_lists_that_user_alone(guarded):
    listed = {one: [row["name"] for row in asked(guarded, one, path="/v1/users").json()] for one in ("acme", "bob")}
    assert listed == {"acme": ["ana", "bob"], "bob": ["bob"]}
    assert asked(guarded, "bob", path="/v1/users", params={"user": "ana"}).status_code == 403
    for kind in ("sessions", "documents", "agents"):
        assert asked(guarded, "bob", path=f"/v1/{kind}", params={"user": "ana"}).status_code == 403
        assert asked(guarded, "bob", path=f"/v1/{kind}").json() == []
    assert [one["name"] for one in asked(guarded, "acme", path="/v1/sessions", params={"user": "ana"}).json()] == [
        "s"
    ]


def test_only_a_token_of_the_tenant_is_told_who_else_is_there(memory, tmp_path):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    made = {"acme": tokens.add("acme", "acme"), "eve": tokens.add("eve", "acme", "eve")}
    questions = {
        "/v1/search": {"query": "bees"},
        "/v1/context": {"query": "bees"},
        "/v1/host/recall": {"query": "bees"},
        "/v1/host/assemble": {"messages": [{"role": "user", "content": "bees?"}]},
    }
    told = "user 'eve' has nothing here; there are: "
    with served(memory, tokens, work=1) as address:
        for path, question in questions.items():
            for _ in range(2):  # one thread works for both of them in turn
                for token, named in (("acme", True), ("eve", False)):
                    with client(address, made[token]) as http:
                        answer = http.post(path, json={**question, "user": "eve"})
                    assert (answer.status_code, told in answer.text) == (200, named), (path, token)
                    assert ("ana" in answer.text) == named
