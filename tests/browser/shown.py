"""A memory for pages to show: a short history with a summary, facts that change, documents, and hostile texts."""

import contextlib
import dataclasses

from builders import NOW, opened
from holdfast import Settings
from holdfast.testing.contracts import HashEmbedder

USER = "ana"
SESSION = "garden"
# The small budget leaves turns outside of the tail, which a summary can stand for.
SMALL = dataclasses.replace(Settings(), assembly=dataclasses.replace(Settings().assembly, budget=120))
TURNS = (
    "The wisteria by the gate needs pruning in late February, before the buds swell.",
    "The wisteria by the gate gets pruned twice, once in February and once in July.",
    "The wisteria by the gate is older than the house, says the neighbour.",
    "The wisteria by the gate flowers in May when the winter was mild.",
    "The compost heap stands behind the shed, under the hazel.",
    "The compost heap needs brown leaves, or it smells.",
    "The water butt leaks at the tap; a washer of 18 mm fits.",
    "The seeds are in the blue tin on the shelf above the bench.",
    "The hose is in the cellar, left of the boiler.",
    "The key of the shed hangs behind the kitchen door.",
)
RULES = "# Rules\n\n- Never water at noon.\n\n> Prefer rain water.\n\nThe beds are numbered from the gate.\n"
SHEET = "# Roses\n\nRoses get manure in November.\n\n## Pruning\n\nPrune roses above an outward bud in March.\n"

# What a browser would run, load or turn around if a page let it.
TAGS = '<script>window.ran = 1</script><img src=x onerror="window.ran = 1"><b>bold</b> "quoted" &amp; </textarea>'
TURNED = "evil \u202ereversed\u202c \u2066isolate\u2069 \u200fmark\u200e \x07bell\x1b[31m"
HOSTILE = f"{TAGS} {TURNED} {{{{ 7 * 7 }}}} javascript:alert(1)"
HOSTILE_USER = '"><script>window.ran = 1</script>'


def fill(memory):
    """Remember what the pages show."""
    said = [{"role": "user", "content": text} for text in TURNS]
    memory.remember(said, user=USER, session=SESSION, at="2026-03-01T10:00:00Z")
    memory.remember("I live in Porto.", user=USER, session="home", at="2026-01-05T08:00:00Z", id="porto")
    memory.remember("I moved to Lisbon.", user=USER, session="home", at="2026-04-05T08:00:00Z", id="lisbon")
    memory.ingest(RULES, user=USER, name="rules.md", core=True)
    memory.ingest(SHEET, user=USER, name="roses.md")
    memory.compact(user=USER, session=SESSION)


def fill_hostile(memory):
    """Remember texts that attack a page, in every place that a page shows."""
    memory.remember(
        HOSTILE, user=HOSTILE_USER, session=HOSTILE, id=HOSTILE, speaker=TAGS, at=NOW, metadata={TAGS: HOSTILE}
    )
    memory.update(HOSTILE, user=HOSTILE_USER, text=f"{HOSTILE} again", topic=TAGS)
    memory.remember(f"I live in {TAGS}.", user=HOSTILE_USER, session="a/b?c#d", id="a/b?c&d=e#f")
    memory.ingest(f"# {TAGS}\n\n- {HOSTILE}\n\n{HOSTILE}\n", user=HOSTILE_USER, name=f"{TAGS} {TURNED}.md", core=True)
    memory.ingest(f"# {TAGS}\n\n{HOSTILE} is a sentence.\n", user=HOSTILE_USER, name="<u>plain</u>.md")


@contextlib.contextmanager
def remembered(fill_it=fill, settings=SMALL):
    """Open a memory that holds what the pages show."""
    with opened(settings=settings, embedder=HashEmbedder()) as memory:
        fill_it(memory)
        yield memory
