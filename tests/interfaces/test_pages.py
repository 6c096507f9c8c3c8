"""The web inspector: who sees them, what they refuse, what they tell a browser, and what they are drawn from."""

import json
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from markupsafe import escape
from served import PATIENCE, client, served
from typer.testing import CliRunner

from builders import PATIENT, make_unit, opened
from holdfast import Memory
from holdfast.cli.main import app
from holdfast.server.access import Tokens, token_file
from holdfast.server.inspector.charts import chart_lineage, chart_time, stack
from holdfast.server.inspector.pages import local_path, visible
from holdfast.server.inspector.views import view_unit
from holdfast.testing.contracts import HashEmbedder
from holdfast.why import ScorePart

EXPORTS = Path(__file__).parents[1] / "data" / "exports"
PAGES = (
    "/",
    "/?q=key",
    "/context",
    "/context?q=key",
    "/timeline",
    "/timeline?session=s",
    "/facts",
    "/documents",
    "/status",
)


@pytest.fixture(scope="module")
def memory():
    with opened(embedder=HashEmbedder()) as memory:
        memory.remember("ana's key is under the wisteria", user="ana", tenant="acme", id="ana-1", session="s")
        memory.remember("bob keeps bees", user="bob", tenant="acme", id="bob-1")
        memory.remember("the office closes at six", user="ana", tenant="acme", scope="global", id="all-1")
        memory.remember("the local key hangs by the door", user="me", id="me-1", session="s")
        memory.remember("a second key is in the drawer", user="me", id="me-2", session="s")
        yield memory


@pytest.fixture(scope="module")
def guarded(memory, tmp_path_factory):
    """Serve with tokens; yields the address and the tokens by name."""
    tokens = Tokens(token_file(tmp_path_factory.mktemp("tokens") / "a.db"))
    made = {"acme": tokens.add("acme", "acme"), "bob": tokens.add("bob", "acme", "bob")}
    with served(memory, tokens, write=True) as address:
        yield address, made


@pytest.fixture
def here(memory):
    with served(memory) as address, client(address) as http:
        yield http


@pytest.fixture
def writing(memory):
    with served(memory, write=True) as address, client(address, Origin=address) as http:
        yield http


def proof_in(page):
    return re.search('name="proof" value="([0-9a-f]{64})"', page.text)[1]


def sign_in(http, address, token, **more):
    form = {"proof": proof_in(http.get("/")), "token": token, **more}
    return http.post("/sign-in", data=form, headers={"Origin": address})


# ------------------------------------------------------------------------------ what a browser is told


@pytest.mark.parametrize("path", [*PAGES, "/unit?id=none", "/unit", "/static/none.css"])
def test_no_page_lets_anything_in_from_elsewhere(here, path):
    answer = here.get(path)
    if path.startswith("/static"):
        assert answer.status_code == 404
        return
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"<script(?! src=\"/static/)|<style|\sstyle=|\son\w+=|https?://", answer.text)


def test_what_a_summary_says_is_shown_and_never_run():
    evil = '</text></svg><script>alert(1)</script><img src=x onerror="alert(1)"> {{ 7 * 1234567 }} " onload="x'
    said = [f"the ferry number {n} {evil} brings lamps, ropes and passengers to the old harbour" for n in range(60)]
    with opened(embedder=HashEmbedder()) as memory:
        memory.remember([{"role": "user", "content": one, "name": evil} for one in said], user="ana", session=evil)
        [summary, *_] = memory.compact(user="ana")[0].summaries
        about = {"user": "ana", "id": summary, "session": evil, "q": said[3]}
        with served(memory, write=True) as address, client(address) as http:
            for path in ("/unit", "/expand", "/forget", "/timeline", "/context", "/"):
                page = http.get(path, params={**about, "session": ""} if path == "/forget" else about)
                assert page.status_code == 200, page.text
                assert "&lt;/text&gt;&lt;/svg&gt;&lt;script&gt;alert(1)" in page.text, path
                assert "8641969" not in page.text
                tags = re.findall("<[^>]*>", page.text)
                assert not any(
                    re.search(r"<(script(?! src=\"/static/)|img src=x)|\son\w+=\"", tag) for tag in tags
                ), path


def test_files_of_the_pages_are_kept_by_a_browser_and_change_with_their_bytes(here):
    page = here.get("/").text
    for name in ("inspector.css", "inspector.js", "mark.svg"):
        stem, suffix = name.split(".")
        [address] = set(re.findall(rf"/static/{stem}\.[0-9a-f]{{12}}\.{suffix}", page))
        answer = here.get(address)
        assert (answer.status_code, "immutable" in answer.headers["cache-control"]) == (200, True)
        assert "http" not in answer.text.replace("http://www.w3.org/2000/svg", "")


def test_the_routes_for_programs_stand_beside_the_pages_unless_these_are_alone(memory):
    for pages, status in (("too", 200), ("alone", 404)):
        with served(memory, pages=pages) as address, client(address) as http:
            assert http.get("/v1/stats?user=me").status_code == status
            assert http.get("/openapi.json").status_code == status
            assert http.get("/").status_code == http.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/unit?id=none", 404, "there is no unit"),
        ("/unit", 422, "needs id"),
        ("/expand?id=me-1", 422, "not a summary"),
        ("/timeline?session=none", 404, "nothing in session"),
        ("/documents?name=none", 404, "no document"),
        ("/?q=key&limit=many", 422, "not a whole number"),
        ("/?q=key&limit=99999999999999999999", 422, "not a whole number"),
        ("/?q=key&as_of=yesterdayish", 422, "as_of"),
        ("/?q=key&profile=none", 422, "no profile"),
        ("/timeline?from=-1", 422, "not a whole number"),
        ("/forget?id=me-1", 403, "only read"),
    ],
)
def test_what_goes_wrong_is_told_in_one_sentence_on_a_page(here, path, status, told):
    answer = here.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert told in answer.text


# ------------------------------------------------------------------------------------------ who enters


def test_without_tokens_pages_are_for_this_machine_and_its_own_pages(here):
    assert here.get("/").status_code == 200
    assert here.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert here.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert here.post("/forget", headers={"Origin": "https://evil.example"}).status_code == 403


def test_with_tokens_nothing_is_shown_before_signing_in(guarded):
    address, _ = guarded
    with client(address) as http:
        for path in (*PAGES, "/unit?id=ana-1&user=ana", "/forget?id=ana-1"):
            answer = http.get(path)
            assert (answer.status_code, "Sign in" in answer.text) == (401, True)
            assert "wisteria" not in answer.text
        assert http.get("/", headers={"Authorization": "Bearer x", "Cookie": "holdfast_pages=x"}).status_code == 401


def test_a_browser_gets_a_key_and_never_the_token(guarded):
    address, made = guarded
    with client(address) as http:
        answer = sign_in(http, address, made["acme"], next="/timeline?user=ana")
        assert (answer.status_code, answer.headers["location"]) == (303, "/timeline?user=ana")
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
        assert made["acme"] not in cookie
        page = http.get("/unit?id=ana-1&user=ana")
        assert (page.status_code, "wisteria" in page.text) == (200, True)
        assert http.get("/v1/units/ana-1?user=ana").status_code == 401
        http.post("/sign-out", data={"proof": proof_in(page)}, headers={"Origin": address})
        assert http.get("/").status_code == 401


def test_a_token_opens_its_own_pages_and_no_others(guarded):
    address, made = guarded
    with client(address) as http:
        assert sign_in(http, address, "hf_wrong").status_code == 401
        sign_in(http, address, made["bob"])
        assert "bees" in http.get("/unit?id=bob-1").text
        assert http.get("/unit?id=ana-1&user=ana").status_code == 403
        assert http.get("/unit?id=ana-1").status_code == 404
        assert http.get("/unit?id=bob-1&tenant=other").status_code == 403
        assert http.get("/unit?id=all-1").status_code == 200
        assert http.get("/forget?id=all-1").status_code == 403
        status = http.get("/status").text
        assert "units of all users" not in status
        assert "place" not in status


def test_a_users_token_hears_of_nobody_else_and_erases_no_rules_of_everyone(memory, tmp_path):
    ours = {"user": "ana", "tenant": "acme"}
    memory.ingest("- Never call before nine.\n", name="rules.md", scope="global", core=True, **ours)
    tokens = Tokens(token_file(tmp_path / "a.db"))
    with served(memory, tokens, write=True) as address, client(address, Origin=address) as http:
        sign_in(http, address, tokens.add("carol", "acme", "carol"))
        for path in ("/?q=key", "/context?q=key", "/timeline", "/facts"):
            page = http.get(path)
            assert page.status_code == 200
            assert "bob" not in page.text
            assert ">ana" not in page.text
        proof = proof_in(http.get("/"))
        assert http.get("/forget?document=rules.md").status_code == 403
        assert http.post("/forget", data={"proof": proof, "document": "rules.md"}).status_code == 403
    assert [one.name for one in memory.documents(**ours)] == ["rules.md"]


@pytest.mark.parametrize("path", ["//evil.example", "https://evil.example", "/\\evil.example", "", "x", "/\nx"])
def test_signing_in_leads_to_no_other_site(path):
    assert local_path(path) == "/"
    assert local_path("/timeline?user=a%20b") == "/timeline?user=a%20b"


# ------------------------------------------------------------------------------------------ forgetting


def test_pages_that_only_read_forget_nothing(memory):
    with served(memory) as address, client(address, Origin=address) as http:
        form = {"proof": "0" * 64, "id": "me-1", "user": "me"}
        assert http.post("/forget", data=form).status_code == 403
        assert "Forget" not in http.get("/unit?id=me-1").text
    assert memory.get("me-1", user="me")


@pytest.mark.parametrize(
    ("headers", "change", "status"),
    [
        ({"Origin": "https://evil.example"}, {}, 403),
        ({"Origin": "null"}, {}, 403),
        ({"Origin": ""}, {}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, {}, 403),
        ({}, {"proof": ""}, 403),
        ({}, {"proof": "é"}, 403),
        ({}, {"proof": "0" * 64}, 403),
        ({}, {"id": ""}, 422),
        ({}, {"session": "s"}, 422),
        ({}, {"id": "none"}, 404),
        ({}, {"id": "x" * 70_000}, 413),
    ],
)
def test_a_form_from_elsewhere_or_a_broken_one_forgets_nothing(writing, memory, headers, change, status):
    planned = writing.get("/forget?id=me-1")
    assert "Nothing is erased yet" in planned.text
    form = {"proof": proof_in(planned), "id": "me-1", "user": "me", **change}
    assert writing.post("/forget", data=form, headers=headers).status_code == status
    assert memory.get("me-1", user="me")


def test_forgetting_needs_a_dry_runs_proof_and_says_what_went(writing, memory):
    memory.remember("forget this soon", user="me", id="soon", session="gone")
    planned = writing.get("/forget?session=gone")
    assert "forget this soon" in planned.text
    assert memory.get("soon", user="me")
    done = writing.post("/forget", data={"proof": proof_in(planned), "session": "gone", "user": "me"})
    assert (done.status_code, "Complete" in done.text) == (200, True)
    assert memory.list(user="me", session="gone") == []


# ----------------------------------------------------------------------------------------- the command


def test_inspect_serves_the_pages_alone_beside_a_server(tmp_path):
    with Memory.open(tmp_path / "a.db", embedder=HashEmbedder()) as memory:
        memory.remember("it rains", user="ana", id="rain")
    environment = {**os.environ, **PATIENT, "HOLDFAST_EMBEDDING__EMBEDDER": "none"}
    command = [sys.executable, "-m", "holdfast", "inspect", "--db", tmp_path / "a.db", "--user", "ana", "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = re.search(r"http://[\d.:]+", process.stdout.readline())[0]
            with client(address) as http:
                assert "it rains" in http.get("/unit?id=rain").text
                assert http.get("/v1/stats?user=ana").status_code == 404
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) in (0, -signal.SIGTERM)
        finally:
            process.kill()


@pytest.mark.parametrize(("database", "told"), [("none.db", "does not exist"), ("http://localhost:1", "is a server")])
def test_inspect_says_what_it_cannot_show(tmp_path, monkeypatch, database, told):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["inspect", "--db", database])
    assert told in str(done.exception)
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------------- drawings


def part(name, value):
    return ScorePart(name, value, change=value < 0), name


def test_a_bar_is_as_long_as_its_score_and_shows_what_was_taken_behind_it():
    bar = stack([part("lexical", 0.4), part("dense", 0.4), part("neighbours", -0.5), part("scope", 0.1)])
    assert [(one.colour, one.start, one.width) for one in bar] == [
        ("words", 0.0, 30.0), ("scope", 30.0, 10.0), ("taken", 40.0, 50.0),
    ]  # fmt: skip
    assert stack([]) == ()


def test_a_time_chart_holds_all_that_was_said():
    start = datetime(2026, 1, 31, tzinfo=UTC)
    spans = [(start + timedelta(days=day), start + timedelta(days=day), 1) for day in range(0, 400, 7)]
    chart = chart_time(spans)
    assert len(chart.bins) <= 60
    assert max(one.height for one in chart.bins) == 100
    assert all(0 <= one.x <= 100 for one in (*chart.bins, *chart.ticks))
    assert 3 <= len(chart.ticks) <= 8
    assert chart_time([]).bins == ()
    [only] = chart_time([(start, start, 5)]).bins
    assert only.height == 100


def test_a_lineage_has_a_curve_for_each_turn_that_a_summary_stands_for():
    turns = [(f"t{n}", "a turn", "user") for n in range(5)]
    chart = chart_lineage(turns, {"s1": ("summary", ["t0", "t2", "elsewhere"]), "s2": ("summary", ["elsewhere"])})
    assert [dot.id for dot in chart.dots] == ["t0", "t1", "t2", "t3", "t4", "s1"]
    assert len(chart.curves) == 2
    assert chart_lineage([], {}).dots == ()


def test_characters_that_a_browser_obeys_are_written_out():
    assert visible("a\u202eb\x00c\u2028d\ud800") == "a⟨U+202E⟩b⟨U+0000⟩c⟨U+2028⟩d⟨U+D800⟩"
    assert visible("tab\tline\r\nnext é 京 👩‍🌾") == "tab\tline\nnext é 京 👩‍🌾"


def test_a_version_shows_what_changed():
    first, second = (
        make_unit(text="the shop opens at seven"),
        make_unit(text="the shop opens at eight now", version=2),
    )
    newest, oldest = view_unit(second, [first, second]).versions
    assert [(one.kind, one.text) for one in newest.changes] == [
        ("kept", "the shop opens at"), ("removed", "seven"), ("added", "eight now"),
    ]  # fmt: skip
    assert [one.kind for one in oldest.changes] == ["kept"]
    assert json.loads(view_unit(make_unit(metadata={"a": [1]}), [first]).metadata) == {"a": [1]}


def test_a_units_page_lists_what_was_decided_and_how_to_overrule_it(memory, here):
    memory.remember("Always answer in French.", user="me", id="fr")
    page = here.get("/unit?id=fr").text
    assert "Automatic decisions" in page
    assert "--undo" not in page
    memory.overrule("fr", decision="standing", user="me")
    assert "standing, overruled" in (page := here.get("/unit?id=fr").text)
    assert "--undo" in page
    assert "Automatic decisions" not in here.get("/unit?id=me-1").text
    memory.forget(ids="fr", user="me")


def test_the_page_of_facts_calls_them_what_was_stated(here):
    page = here.get("/facts").text
    assert "What was stated" in page
    assert "known now" not in page


def test_the_page_of_facts_shows_what_is_known_when_it_is_asked_for():
    with opened(embedder=HashEmbedder()) as memory:
        memory.remember("My pet is a dog, a beagle called <b>Waldo</b>.", user="me", id="pet")
        memory.remember("It rained, and my pet was wet.", user="me")
        with served(memory) as address, client(address) as http:
            page = http.get("/facts?user=me").text
            assert ("What is known of this user" in page, "Waldo" in page) == (True, False)
            page = http.get("/facts?user=me&known=1").text
            assert ("not verified" in page, "confidence 0." in page) == (True, True)
            assert "&lt;b&gt;Waldo&lt;/b&gt;" in page
            assert "Nothing that is sure" in http.get("/facts?user=nobody&known=1").text


def test_recall_shows_the_part_of_a_long_text_that_matched():
    berths = "\n\n".join(f"Berth {name} belongs to the {name} company." for name in ("red", "blue", "grey", "green"))
    tide = "The tide turns at six. " * 12
    with opened(embedder=HashEmbedder()) as memory:
        memory.ingest(f"# Berths\n\n{berths}\n\nThe pilot is Berta Falk.\n\n{tide}", name="a.md", user="me")
        with served(memory) as address, client(address) as http:
            page = http.get("/?q=Who+is+the+pilot%3F&user=me").text
    assert "Berta Falk" in page
    assert "Berth red belongs" not in page


def test_sessions_are_shown_and_found_by_the_titles_of_their_conversations():
    with opened(embedder=HashEmbedder()) as memory:
        told = (
            (EXPORTS / "chatgpt" / "conversations.json").read_text().replace('"Sourdough"', '"Sourdough <starter>"')
        )
        memory.import_(told.encode(), user="me")
        memory.remember("We sail at nine.", user="me", session="harbour-1")
        titles = {one.name: one.title for one in memory.sessions(user="me")}
        assert titles == {"c-bread": "Sourdough <starter>", "c-bergen": "New chat", "harbour-1": "We sail at nine."}
        with served(memory) as address, client(address) as http:
            told = http.get("/v1/sessions?user=me").json()
            assert {one["name"]: one["title"] for one in told} == titles
            page = http.get("/timeline?user=me").text
            assert ("Sourdough &lt;starter&gt;" in page, 'name="find"' in page) == (True, True)
            for find, names in {"SOURDOUGH": ["c-bread"], "harbour": ["harbour-1"], "sail at": ["harbour-1"]}.items():
                page = http.get("/timeline", params={"user": "me", "find": find}).text
                assert [one for one in titles if f"session={one}" in page] == names
            page = http.get("/timeline?user=me&find=%3Ci%3E").text
            assert ("No session is called so" in page, "&lt;i&gt;" in page, "<i>" in page) == (True, True, False)
            page = http.get("/timeline?user=me&session=c-bread").text
            assert re.search(r"<h1><bdi>Sourdough &lt;starter&gt;</bdi> .*c-bread", page)


def test_the_context_page_says_when_each_item_was_said_and_by_whom():
    with opened(embedder=HashEmbedder()) as memory:
        for day, key in ((3, "kiwi-harbor"), (9, "plum-anchor")):
            memory.remember(f"the office key is {key}", user="me", speaker="Ida", at=f"2026-02-0{day}T10:30:00Z")
        with served(memory) as address, client(address) as http:
            page = http.get("/context?user=me&q=office+key").text
    for day in (3, 9):
        assert re.search(
            rf"<b><bdi>Ida</bdi></b> <time datetime=\"2026-02-0{day}T[^>]*>{day} Feb 2026, 10:30</time>", page
        )


def test_the_header_suggests_users_to_those_who_may_know_of_them(memory, tmp_path):
    odd = 'a "<b>' + "long name " * 9
    tokens = Tokens(token_file(tmp_path / "a.db"))
    made = {user: tokens.add(str(user), "acme", user) for user in (None, "bob")}
    memory.remember("rain", user=odd, tenant="acme", id="odd")
    try:
        with served(memory, tokens) as address:
            with client(address) as http:
                sign_in(http, address, made[None])
                page = http.get("/status", params={"user": odd}).text
                suggested = re.findall(r'<option value="([^"]*)">', page)
                assert {"ana", "bob", escape(odd)} <= {*suggested}
                assert "me" not in suggested  # of another tenant
                assert f'title="{escape(odd)}"' in page
            with client(address) as http:
                sign_in(http, address, made["bob"])
                page = http.get("/status").text
                assert ("<option" in page, "ana" in page) == (False, False)
    finally:
        memory.forget(ids="odd", user=odd, tenant="acme")


def test_the_header_suggests_no_more_users_than_a_page_holds():
    with opened(embedder=HashEmbedder()) as memory:
        for number in range(205):
            memory.remember("rain", user=f"user {number}")
        with served(memory) as address, client(address) as http:
            assert http.get("/status").text.count("<option ") == 200
