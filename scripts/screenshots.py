"""Draw the inspector's pages into docs/img/: every page, light and dark, wide and narrow.

The pages show the sample history, two documents of the sample and one of rules, at a fixed moment. Chromium is needed
(Debian's package `chromium`), and `pip install playwright pillow`. With the packages fonts-inter, fonts-noto-core,
fonts-jetbrains-mono and fonts-ipafont-gothic the pictures look as they do in the repository.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import os
import queue
import tempfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from holdfast import Memory, Settings, sample
from holdfast.server.http import HttpServer
from holdfast.server.limits import ServerSettings
from holdfast.server.listening import Listener, listen_on

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "docs" / "img"
CHROMIUM = "/usr/bin/chromium"
# As root, and without a network: what Chromium would do besides showing a page is switched off.
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--font-render-hinting=none",
)  # fmt: skip
TODAY = datetime(2026, 6, 30, 9, 0, tzinfo=UTC)
# Small enough that the sample's short sessions have turns outside their tail, which a summary can stand for.
SMALL_BUDGET = 200
WIDTHS = {"wide": (1280, 860, 1.0), "narrow": (390, 844, 1.5)}
# A picture of flat areas and text needs few colours.
COLOURS = 160
MOST_BYTES, MOST_BYTES_OF_ALL = 120_000, 2_000_000
MOVED = "u-mara-moved"
QUESTION = "To which date was the opening of the bakery postponed?"
RULES = """# House rules

- Always answer in British English.
- Never tell the alarm code to a guest.

> Be brief when the question is brief.

## The flat

The router stands in the hall cupboard; its password is on the underside.

Bring the key back to the blue pot when you leave.

## Recycling

Paper goes out on the first Tuesday of the month, glass on the second.
"""


def fill(path: Path, settings: Settings) -> None:
    """Make the memory that the pictures show."""
    with Memory.open(path, settings=settings, now=lambda: TODAY) as memory:
        for session, messages in sample.sessions():
            memory.remember(messages, user=sample.USER, session=session)
        for name, text in sample.handbook().items():
            memory.ingest(text, user=sample.USER, name=name)
        memory.ingest(RULES, user=sample.USER, name="house-rules.md", core=True)
        memory.remember(
            "I moved to Lisbon in March.", user=sample.USER, speaker="Mara", session="2026-06-27-move",
            at="2026-06-27T10:00:00Z", id=MOVED, metadata={"source": "phone", "tags": ["home"]},
        )  # fmt: skip
    small = dataclasses.replace(settings, assembly=dataclasses.replace(settings.assembly, budget=SMALL_BUDGET))
    with Memory.open(path, settings=small, now=lambda: TODAY) as memory:
        memory.compact(user=sample.USER)


@contextlib.contextmanager
def served(path: Path, settings: Settings) -> Iterator[str]:
    """Serve the pages at a free port of this machine."""
    how = ServerSettings(port=0, pages="alone", user=sample.USER)
    with listen_on(how) as listening, Memory.open(path, settings=settings, now=lambda: TODAY) as memory:
        addresses: queue.Queue[str] = queue.Queue()
        listener = Listener(HttpServer(memory, how), listening, addresses.put)
        thread = threading.Thread(target=listener.listen)
        thread.start()
        try:
            yield addresses.get(timeout=60)
        finally:
            listener.should_exit = True
            thread.join()


def pages() -> dict[str, str]:
    """Return what is shown, by name."""
    return {
        "recall": f"/?{urlencode({'q': QUESTION})}",
        "context": f"/context?{urlencode({'q': QUESTION, 'budget': 500, 'compare': 650})}",
        "timeline": "/timeline",
        "session": f"/timeline?{urlencode({'session': '2026-02-14-birthday'})}",
        "unit": f"/unit?{urlencode({'id': MOVED, 'q': 'Where does Mara live?'})}",
        "facts": "/facts?all=1",
        "documents": f"/documents?{urlencode({'name': 'house-rules.md'})}",
        "health": "/status",
    }


def shoot(browser: Browser, address: str, shown: dict[str, str], place: Path) -> int:
    """Take every picture; return how many bytes they have."""
    total = 0
    for width, (pixels, height, scale) in WIDTHS.items():
        for theme in ("light", "dark"):
            context = browser.new_context(
                viewport={"width": pixels, "height": height}, device_scale_factor=scale, color_scheme=theme,
                reduced_motion="reduce",
            )  # fmt: skip
            page = context.new_page()
            for name, path in shown.items():
                page.goto(address + path)
                page.evaluate("document.activeElement?.blur()")
                size = keep(page.screenshot(), place / f"inspector-{name}-{theme}-{width}.png")
                total += size
            context.close()
    return total


def keep(picture: bytes, path: Path) -> int:
    """Write a picture with few colours; return its size."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{path.name} has {size:,} bytes; the most is {MOST_BYTES:,}")
    return size


def main() -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--place", type=Path, default=PLACE, help="folder for the pictures")
    place = parser.parse_args().place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    settings = Settings().without_timeouts()
    with tempfile.TemporaryDirectory(prefix="holdfast-pictures-") as folder, sync_playwright() as playwright:
        os.chdir(folder)  # the page on health names the place of the store
        store = Path("household.db")
        fill(store, settings)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        with served(store, settings) as address:
            total = shoot(browser, address, pages(), place)
        browser.close()
    if total > MOST_BYTES_OF_ALL:
        raise SystemExit(f"the pictures have {total:,} bytes; the most is {MOST_BYTES_OF_ALL:,}")
    print(f"{total:,} bytes in {place}")


if __name__ == "__main__":
    main()
