"""What a summariser reads of a turn (C18): its words, without what no summary could say in words.

Code blocks, embedded data and encoded text become placeholders that say what was left out. Only the input of a
summary is treated so; what is stored stays as it was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# A fenced block from either of these on is left out (the reference's bounds; bytes with its fences).
_BLOCK_BYTES = 240
_BLOCK_LINES = 8
_DATA_CHARACTERS = 64
# Shorter lines are read whole, whatever stands in them: a digest beside a word or two is worth its tokens.
_OPAQUE_LINE = 96

# What stands in the place of what was left out; its number counts lines or characters and states no fact.
PLACEHOLDER = re.compile(r"\[(?:code, \d+ lines?|data, \d+ characters|encoded text, \d+ characters)\]")

# As in Markdown: behind an opening fence of backticks no further backtick stands, or it is code within a line.
_FENCE = re.compile(r" {0,3}(`{3,}+(?=[^`]*$)|~{3,}+)(.*)")
# Anchored at the start of a run and possessive, so that a run is scanned once.
_OPAQUE = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{80,}+=*+|(?<![0-9a-fA-F])[0-9a-fA-F]{64,}+")


def sanitise(text: str) -> str:
    """Return `text` as a summariser should read it; doing so twice changes nothing more.

    A fenced block of 240 bytes or 8 lines, a `data:` line of 64 characters and a base64 or hex run in a line of 96
    become placeholders. Such a run takes its line with it when it is most of the line. Blank lines are folded into
    one.
    """
    kept: list[str] = []
    for line in _without_blocks(text.strip().splitlines()):
        if line.strip():
            kept.append(_readable(line))
        elif kept[-1]:
            kept.append("")
    return "\n".join(kept)


def _without_blocks(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines, with one placeholder in the place of each long fenced block."""
    longest = _longest_closings(lines)
    i = 0
    while i < len(lines):
        opening = _FENCE.fullmatch(lines[i])
        # A fence that nothing closes is a slip of the writer; what follows it is not all code.
        if opening is None or longest[i + 1].get(opening[1][0], 0) < len(opening[1]):
            yield lines[i]
            i += 1
            continue
        end = i + 1
        while not _closes(lines[end], opening[1]):
            end += 1
        block = lines[i : end + 1]
        if _is_long(block):
            count = len(block) - 2
            yield f"[code, {count} line{'' if count == 1 else 's'}]"
        else:
            yield from block
        i = end + 1


def _longest_closings(lines: Sequence[str]) -> list[dict[str, int]]:
    """Return for each place the longest closing fence at it or after it, by its character.

    Without it, every one of many fences that nothing closes would be followed to the end of the text.
    """
    found: list[dict[str, int]] = [{}]
    for line in reversed(lines):
        fence = _FENCE.fullmatch(line)
        if fence and not fence[2].strip() and found[-1].get(fence[1][0], 0) < len(fence[1]):
            found.append(found[-1] | {fence[1][0]: len(fence[1])})
        else:
            found.append(found[-1])
    return found[::-1]


def _closes(line: str, opening: str) -> bool:
    fence = _FENCE.fullmatch(line)
    return bool(fence and fence[1].startswith(opening) and not fence[2].strip())


def _is_long(block: Sequence[str]) -> bool:
    # A lone surrogate cannot be stored, but it must not stop a reader either.
    size = len("\n".join(block).encode("utf-8", "surrogatepass"))
    return size >= _BLOCK_BYTES or len(block) - 2 >= _BLOCK_LINES


def _readable(line: str) -> str:
    bare = line.strip()
    if len(bare) >= _DATA_CHARACTERS and bare[:5].lower() == "data:":
        return f"[data, {len(bare)} characters]"
    if len(line) < _OPAQUE_LINE:
        return line
    opaque = sum(len(match.group()) for match in _OPAQUE.finditer(line))
    if 2 * opaque >= len(bare):
        return f"[encoded text, {len(bare)} characters]"
    return _OPAQUE.sub(lambda match: f"[encoded text, {len(match.group())} characters]", line)
