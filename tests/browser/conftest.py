"""One Chromium for all tests of a process; without it they are skipped, and say so, unless they must run."""

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from shown import remembered

from interfaces.served import served

# Read before the tests hide the environment.
REQUIRED = bool(os.environ.get("HOLDFAST_REQUIRE_BROWSER"))
# The first has no windows to draw, and needs half of the time.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, PROGRAMS)), None)
AXE = Path(__file__).parents[2] / ".browser" / "node_modules" / "axe-core" / "axe.min.js"
# As root, and without a network: what Chromium would do besides showing a page is switched off.
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
# No test waits that long; it ends one that would wait for ever.
PATIENCE = 60_000


def missing(what, remedy):
    """Skip a test, or fail where the browser is required."""
    message = f"{what} is not installed, so pages are not tested in a browser; {remedy}"
    if REQUIRED:
        pytest.fail(message)
    pytest.skip(message)


def pytest_terminal_summary(terminalreporter):
    """Say aloud that pages were not tested."""
    skipped = [one for one in terminalreporter.stats.get("skipped", ()) if "in a browser" in str(one.longrepr)]
    if skipped:
        terminalreporter.write_line(
            f"{len(skipped)} tests of pages were skipped: {skipped[0].longrepr[2]}", yellow=True
        )


# It runs an event loop in this thread: the tests of other modules may need their own.
@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        missing("chromium", "apt-get install chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe():
    if not AXE.exists():
        missing("axe-core", "make browser")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def address():
    """Serve pages that only read."""
    with remembered() as memory, served(memory, user="ana") as address:
        yield address


class Tab:
    """A tab of a browser that remembers whatever should not have happened in it."""

    def __init__(self, browser, address, **options):
        self._context = browser.new_context(base_url=address, **options)
        self._context.set_default_timeout(PATIENCE)
        self.page = self._context.new_page()
        self.wrong = []
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("console", lambda said: said.type == "error" and self._tell(said))
        self.page.on(
            "request", lambda asked: asked.url.startswith(address) or self.wrong.append(f"asked {asked.url}")
        )

    def _check(self, url, address):
        if not url.startswith(address):
            self.wrong.append(f"asked for {url}")

    def _tell(self, said):
        # A page that tells of a problem has the status of one, which Chromium calls an error.
        if "the server responded with a status of" not in said.text:
            self.wrong.append(f"console: {said.text}")

    def go(self, path):
        self.page.goto(path)
        return self.page

    def close(self):
        self._context.close()
        assert self.wrong == []


@pytest.fixture
def tabs(browser):
    """Return a function that opens a tab at an address; nothing wrong may have happened in it at the end."""
    opened = []

    def open_tab(address, **options):
        opened.append(Tab(browser, address, **options))
        return opened[-1]

    yield open_tab
    for tab in opened:
        tab.close()
