"""The pages as a person uses them, in a real browser."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect
from shown import HOSTILE, HOSTILE_USER, SESSION, TAGS, TURNED, fill_hostile, remembered

from holdfast import Settings
from holdfast.server.access import Tokens, token_file
from interfaces.served import served

pytestmark = pytest.mark.slow

QUESTION = "When does the wisteria need pruning?"
OPEN_ALL = "document.querySelectorAll('details').forEach(one => one.open = true)"
PHONE = {"viewport": {"width": 390, "height": 844}}
PAGES = {
    "start": "/",
    "recall": f"/?{urlencode({'q': QUESTION, 'limit': 3})}",
    "nothing": "/?q=zxqv",
    "nobody": "/?user=nobody",
    "context": f"/context?{urlencode({'q': QUESTION, 'budget': 150, 'compare': 400})}",
    "timeline": "/timeline",
    "session": f"/timeline?session={SESSION}",
    "unit": f"/unit?{urlencode({'id': 'lisbon', 'q': 'Where do I live?'})}",
    "facts": "/facts?all=1",
    "documents": "/documents",
    "core": "/documents?name=rules.md",
    "knowledge": "/documents?name=roses.md",
    "health": "/status",
    "missing": "/unit?id=none",
}


def test_a_question_is_typed_and_the_contributions_are_read(tabs, address):
    page = tabs(address).go("/")
    page.keyboard.press("Tab")  # leaves the field that has the focus, so that a slash is no text
    page.locator("body").press("/")
    expect(page.get_by_label("Question")).to_be_focused()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    first = page.locator(".hit").first
    expect(first.locator(".quote")).to_contain_text("wisteria")
    expect(first.locator(".parts")).to_contain_text("pruning")
    told = first.get_by_role("img").get_attribute("aria-label")
    assert re.fullmatch(r"Score 0\.\d{3}: words \d\.\d\d, .*", told), told
    assert not first.locator(".tree").is_visible()
    first.get_by_text("Every step of the score").click()
    expect(first.locator(".tree")).to_contain_text("bm25")
    page.get_by_text("list full").or_(page.get_by_text("too far behind")).or_(
        page.get_by_text("too weak")
    ).first.click()
    page.get_by_text("why not?").locator("visible=true").first.click()
    expect(page.locator(".verdict .said")).to_contain_text(re.compile("dropped|left out", re.IGNORECASE))


def test_the_bar_is_as_long_as_the_score(tabs, address):
    page = tabs(address).go(PAGES["recall"])
    hit = page.locator(".hit").first
    score = float(hit.locator(".value").inner_text())
    filled = hit.locator(".bar .fill:not(.taken)")
    widths = [float(filled.nth(one).get_attribute("width").rstrip("%")) for one in range(filled.count())]
    assert sum(widths) == pytest.approx(100 * score, abs=1.0)


def test_the_slider_shows_what_comes_and_goes(tabs, address):
    page = tabs(address).go(f"/context?{urlencode({'q': QUESTION, 'budget': 400})}")
    items = page.locator(".part li").count()
    slider = page.get_by_role("slider")
    slider.focus()
    slider.evaluate("it => { it.value = 150; it.dispatchEvent(new Event('input')); }")
    expect(page.locator(".budgeted")).to_contain_text("of 150 tokens")
    expect(page.locator("h3.goes")).to_be_visible()
    assert page.locator(".part li").count() < items
    gone = page.locator("ul.goes li").first.inner_text()
    assert "budget=150" in page.url
    slider.blur()
    slider.focus()
    slider.evaluate("it => { it.value = 400; it.dispatchEvent(new Event('input')); }")
    expect(page.locator("ul.comes")).to_contain_text(gone)
    expect(page.locator("li.new").first).to_be_visible()


def test_the_slider_is_a_form_without_javascript(tabs, address):
    page = tabs(address, java_script_enabled=False).go(f"/context?{urlencode({'q': QUESTION, 'budget': 400})}")
    page.get_by_role("slider").press("Home")
    page.get_by_role("button", name="Assemble").click()
    expect(page.locator(".budgeted")).to_contain_text("of 100 tokens")
    expect(page.get_by_text("Against 400 tokens")).to_be_visible()
    expect(page.locator("h3.goes")).to_be_visible()


def test_a_summary_expands_in_place(tabs, address):
    page = tabs(address).go("/timeline")
    page.get_by_role("link", name=SESSION, exact=True).click()
    expect(page.locator(".lineage .curve").first).to_be_attached()
    expand = page.get_by_role("link", name="Expand its turns").first
    expand.click()
    turns = page.locator(".summary .expanded .turn")
    expect(turns.first).to_contain_text("wisteria")
    assert turns.count() > 1
    page.get_by_role("link", name="Close its turns").click()
    expect(turns).to_have_count(0)


def test_a_session_opens_in_the_list(tabs, address):
    page = tabs(address).go("/timeline")
    page.get_by_role("link", name=f"Show its turns of {SESSION}").click()
    expect(page.locator(".sessions .expanded")).to_contain_text("hazel")


def test_a_fact_leads_to_its_source_and_to_what_it_replaced(tabs, address):
    page = tabs(address).go("/facts")
    fact = page.locator(".fact", has_text="Lisbon")
    expect(fact.locator("del")).to_have_text("Porto")
    fact.get_by_text("where it was said").click()
    expect(page.locator(".unit .quote")).to_have_text("I moved to Lisbon.")
    page.go_back()
    fact.get_by_text("before", exact=True).click()
    expect(page.locator(".unit .quote")).to_have_text("I live in Porto.")
    expect(page.get_by_text("Replaced by")).to_be_visible()


def test_a_documents_tiers_lie_over_its_text(tabs, address):
    page = tabs(address).go("/documents")
    page.get_by_role("link", name="rules.md").click()
    expect(page.locator(".block.hard")).to_contain_text("Never water at noon")
    expect(page.locator(".block.soft")).to_contain_text("Prefer rain water")
    page.locator(".block.variant").get_by_role("link").click()
    expect(page.locator(".unit .quote")).to_contain_text("numbered from the gate")


def test_a_unit_is_forgotten_after_a_dry_run(tabs):
    with remembered() as memory, served(memory, user="ana", write=True) as address:
        page = tabs(address).go("/unit?id=porto")
        page.get_by_role("link", name="Forget…").click()
        expect(page.get_by_text("Nothing is erased yet")).to_be_visible()
        expect(page.locator(".turn")).to_contain_text("I live in Porto.")
        assert memory.get("porto", user="ana").text == "I live in Porto."
        page.get_by_role("button", name="Erase 1 for good").click()
        expect(page.get_by_role("heading", name="Forgotten")).to_be_visible()
        expect(page.get_by_text("Complete")).to_be_visible()
        assert memory.list(user="ana", filters={"id": "porto"}) == []
        page.goto("/unit?id=porto")
        expect(page.get_by_role("heading", name="Not found")).to_be_visible()


def test_pages_that_only_read_offer_no_forgetting(tabs, address):
    page = tabs(address).go("/unit?id=porto")
    expect(page.get_by_text("Forget")).to_have_count(0)


def test_signing_in_opens_what_the_token_opens(tabs, tmp_path):
    tokens = Tokens(token_file(tmp_path / "a.db"))
    secret = tokens.add("laptop", "local", "ana")
    with remembered() as memory, served(memory, tokens) as address:
        page = tabs(address).go("/timeline")
        page.get_by_label("Token").fill("hf_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("unknown or revoked token", ignore_case=True)
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="What was said when")).to_be_visible()
        assert page.evaluate("document.cookie") == ""
        tokens.add("other", "local", "bob")
        tokens.revoke("laptop")
        page.goto("/timeline")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


# ------------------------------------------------------------------------------------------------ hostile texts


@pytest.fixture(scope="module")
def hostile():
    with remembered(fill_hostile, Settings()) as memory, served(memory, user=HOSTILE_USER, write=True) as address:
        yield address


def test_hostile_texts_are_shown_and_run_nowhere(tabs, hostile):
    tab = tabs(hostile)
    asked = {"q": HOSTILE, "budget": 2000}
    paths = (
        "/", f"/?{urlencode(asked)}", f"/context?{urlencode(asked)}", "/timeline",
        f"/timeline?{urlencode({'session': HOSTILE})}", f"/unit?{urlencode({'id': HOSTILE, 'q': HOSTILE})}",
        f"/unit?{urlencode({'id': 'a/b?c&d=e#f'})}", "/facts?all=1", "/documents",
        f"/documents?{urlencode({'name': f'{TAGS} {TURNED}.md'})}", "/documents?name=<u>plain</u>.md", "/status",
        f"/forget?{urlencode({'id': HOSTILE})}", f"/unit?{urlencode({'id': TAGS})}",
        f"/?{urlencode({'q': 'x', 'as_of': TAGS})}", f"/?{urlencode({'q': 'x', 'profile': TAGS})}",
    )  # fmt: skip
    for path in paths:
        page = tab.go(path)
        assert page.evaluate("window.ran") is None, path
        assert page.locator("main script, main img, main u, main b b").count() == 0, path
        assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", page.inner_text("body")), path


def test_hostile_texts_are_shown_as_they_were_written(tabs, hostile):
    page = tabs(hostile).go(f"/unit?{urlencode({'id': HOSTILE})}")
    shown = page.locator(".unit .quote").inner_text()
    assert shown.startswith(TAGS)
    assert "⟨U+202E⟩reversed⟨U+202C⟩" in shown
    assert "{{ 7 * 7 }}" in shown
    page.get_by_role("link", name="Forget…").click()
    page.get_by_role("link", name="Keep it").click()
    expect(page.locator(".unit .quote")).to_contain_text("reversed")


# ----------------------------------------------------------------------------------------------------- everyone


@pytest.mark.parametrize("name", [*PAGES])
def test_a_page_is_accessible_in_light_and_dark(tabs, address, axe, name):
    page = tabs(address, reduced_motion="reduce").go(PAGES[name])
    page.evaluate(OPEN_ALL)
    page.evaluate(axe)
    for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate("how => axe.run({resultTypes: ['violations'], ...how})", rules)["violations"]
        told = [(one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"]) for one in found]
        assert told == [], scheme


def test_pages_fit_a_phone(tabs, address):
    tab = tabs(address, **PHONE)
    for name, path in PAGES.items():
        page = tab.go(path)
        page.evaluate(OPEN_ALL)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"], name


def test_everything_is_reached_with_the_keyboard(tabs, address):
    page = tabs(address).go("/timeline")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
