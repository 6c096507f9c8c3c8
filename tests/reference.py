"""Inputs and outputs of the systems that the reference recipe follows: numbers, words and short strings.

`HOLDFAST_VECTORS` names files with more of them, in the same form, to compare with instead.
"""

import json
import os
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("data") / "reference.json"
FILES = os.environ.get("HOLDFAST_VECTORS", str(FILE)).split(os.pathsep)


@cache
def _entries():
    found = [json.loads(Path(file).read_text("utf-8")) for file in FILES]
    return [entry for part in found for entry in (part["vectors"] if isinstance(part, dict) else part)]


def vectors(*functions, section=None):
    """Return the entries of some functions, or of a section."""
    return [
        entry
        for entry in _entries()
        if (not functions or entry["function"] in functions) and section in (None, entry["section"])
    ]
