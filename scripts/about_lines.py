"""What `about` shows of the people of a set, and how many of the answers that hold now are among it.

    python scripts/about_lines.py HISTORIES.jsonl [JUDGED.tsv]

A person has `turns` and `questions`, as in `tests/data/changes`. `JUDGED.tsv` has person, turn, question and 1 or 0
for each line, judged by hand from the whole history: whether it answers its question and holds at the end.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast import Memory, Settings
from holdfast.types.known import About


def ask(person: dict[str, Any]) -> tuple[About, float]:
    """Return what is known of one person at the end, and the seconds of this process that it took."""
    last = datetime.fromisoformat(max(turn["at"] for turn in person["turns"]))
    with Memory.open(":memory:", settings=Settings().without_timeouts(), now=lambda: last) as memory:
        for turn in person["turns"]:
            memory.remember(
                turn["text"], user="u", author=turn["role"], id=turn["id"], at=turn["at"], session=turn["session"]
            )
        memory.search("Where do I live?", user="u")  # loads the models
        began = time.process_time()
        return memory.about(user="u"), time.process_time() - began


def main(data: Path, judged: Path | None = None) -> None:
    """Print each line with its judgement, then the shares."""
    rows = [line.split("\t") for line in judged.read_text("utf-8").splitlines()] if judged else []
    right = {(person, turn, question): told == "1" for person, turn, question, told in rows}
    told, held, covered, known = 0, 0, 0, 0
    for line in data.read_text("utf-8").splitlines():
        person = json.loads(line)
        found, seconds = ask(person)
        print(f"{person['person']}: {len(found)} lines, {seconds:.1f} CPU-seconds")
        for one in found:
            judgement = right.get((person["person"], one.id, one.question))
            shown = "?" if judgement is None else int(judgement)
            print(f"{person['person']}\t{one.id}\t{one.question}\t{shown}\t{one.confidence:.2f}\t{one.text[:90]!r}")
            print("".join(f"\t\treplaced {old.id} {old.text[:90]!r}\n" for old in one.replaced), end="")
            told, held = told + (judgement is not None), held + bool(judgement)
        ids = {one.id for one in found}
        now = [each for each in person["questions"] if each["about"] == "now"]
        known += len(now)
        covered += sum(bool(ids & {each["current"], *(each.get("also") or ())}) for each in now)
    print(f"right and current: {held} of {told} judged; answers that hold now: {covered} of {known}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
