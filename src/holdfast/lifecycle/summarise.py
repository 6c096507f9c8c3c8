"""One cluster of turns → one summary (C18), by a ladder of tries.

::

    rung      with a summariser                          without
    normal    written, `tokens` long                     extractive at `DENSITY`
    tight     written, `TIGHT_TOKENS` long               extractive at `TIGHT_DENSITY`
    last      extractive at `TIGHT_DENSITY`, then within `LAST_TOKENS`
              declined

A try is kept when it costs fewer tokens than its turns. A written summary must also align with them, keep the names,
numbers, dates and negations of the turns that an extractive one would pick, and say no other; else the extractive
one of the same rung takes its place. A summariser that fails is not asked again.

A summariser reads the words of a turn, without what no summary could say in words: code blocks, embedded data and
encoded text become placeholders that say what was left out. What is stored stays as it was said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import EmbedderError, InputError, SummariserError, quote_value
from holdfast.kernels.clustering import (
    Preservation,
    accepted_confidence,
    decay_rate,
    pick_count,
    preservation,
    rank_central,
)
from holdfast.models.summariser import Summariser, Writing
from holdfast.settings import CompactionSettings
from holdfast.text.preservation import essentials, invented, missing
from holdfast.text.quotes import name_of
from holdfast.text.terms import terms
from holdfast.text.tokens import TokenCounter
from holdfast.text.words import regex
from holdfast.types import Compacted, Declined, Rung, Summarised, Trivial, Unit

# A fenced block from either of these on is left out (the reference's bounds; bytes with its fences).
_BLOCK_BYTES = 240
_BLOCK_LINES = 8
_DATA_CHARACTERS = 64
# Shorter lines are read whole, whatever stands in them: a digest beside a word or two is worth its tokens.
_OPAQUE_LINE = 96

# What stands in the place of what was left out; its number counts lines or characters and states no fact.
PLACEHOLDER = regex(r"\[(?:code, \d+ lines?|data, \d+ characters|encoded text, \d+ characters)\]")

# As in Markdown: behind an opening fence of backticks no further backtick stands, or it is code within a line.
_FENCE = regex(r" {0,3}(`{3,}+(?=[^`]*$)|~{3,}+)(.*)")
# Anchored at the start of a run and possessive, so that a run is scanned once.
_OPAQUE = regex(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{80,}+=*+|(?<![0-9a-fA-F])[0-9a-fA-F]{64,}+")


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


Embed = Callable[[str], NDArray[np.float32]]

# Stands for a placeholder where facts are read: words around it do not belong together.
_LEFT_OUT = " … "
# exp(mean log p) may pass 1 by rounding, never by more.
_ROUNDING = 1e-6
# The ladder's own (C18): the share of the turns that an extract picks, and the most tokens of later tries.
DENSITY, TIGHT_DENSITY, TIGHT_TOKENS, LAST_TOKENS = 0.4, 0.25, 32, 16
# What the summariser's own confidence counts in a summary's (C18).
MODEL_SHARE = 0.2
# A note names the first few of many.
_NAMED_IN_NOTES = 6


def summarise(
    turns: Sequence[Unit],
    vectors: NDArray[np.float32],
    *,
    settings: CompactionSettings,
    embed: Embed,
    counter: TokenCounter,
    summariser: Summariser | None,
) -> Compacted:
    """Return what becomes of `turns`, which are in time order and have one row of `vectors` each.

    Raises:
        InputError: there is no turn, or not one vector for each.
        EmbedderError: a summary cannot be embedded.
    """
    if not turns or vectors.ndim != 2 or len(vectors) != len(turns):
        raise InputError(
            f"{len(turns)} turns came with vectors of shape {vectors.shape}; "
            "give at least one turn, and one vector for each"
        )
    if len(turns) == 1:
        return Trivial(turns[0].id)
    ladder = _Ladder(turns, vectors, settings, embed, counter, summariser)
    return (
        ladder.attempt("normal", DENSITY, settings.tokens)
        or ladder.attempt("tight", TIGHT_DENSITY, TIGHT_TOKENS)
        or ladder.extract("last", ladder.pick(TIGHT_DENSITY))
        or ladder.extract("last", ladder.fit(TIGHT_DENSITY, LAST_TOKENS))
        or Declined(ladder.cost, tuple(ladder.notes))
    )


class _Ladder:
    """One cluster and the tries so far: what all rungs need, and what the tries have left behind."""

    def __init__(
        self, turns: Sequence[Unit], vectors: NDArray[np.float32], settings: CompactionSettings, embed: Embed,
        counter: TokenCounter, summariser: Summariser | None,
    ) -> None:  # fmt: skip
        self.settings, self.embed, self.counter, self.summariser = settings, embed, counter, summariser
        self.vectors = vectors
        self.ids = tuple(turn.id for turn in turns)
        self.speakers = tuple(name_of(turn) for turn in turns)
        self.bodies = tuple(" ".join(sanitise(turn.text).split()) for turn in turns)
        self.cost = sum(counter(turn.text) for turn in turns)
        # The most central turns first, those that say something before bare courtesies.
        self.order = sorted(rank_central(vectors), key=self._says_little)
        self.notes: list[str] = []
        self.extracted: set[tuple[int, ...]] = set()

    def _says_little(self, place: int) -> bool:
        return len(set(terms(self.bodies[place]))) < self.settings.min_terms

    def attempt(self, rung: Rung, density: float, most: int) -> Summarised | None:
        """Return the summary of one rung: written if it can be, else extractive; None if it saves nothing."""
        places = self.pick(density)
        if self.summariser is not None and (writing := self._write(self.summariser, places, most)):
            tokens = self._saving(f"the summary written in at most {most} tokens", writing.text)
            if tokens is None:
                return None
            if kept := self._accept(writing.text, places):
                return self._summary(writing.text, rung, places, tokens, kept, writing.confidence)
        return self.extract(rung, places)

    def extract(self, rung: Rung, places: tuple[int, ...]) -> Summarised | None:
        """Return the picks as a summary, one line each; None if that saves nothing or was tried before."""
        if places in self.extracted:
            return None
        self.extracted.add(places)
        text = self._lines(places)
        tokens = self._saving(f"an extractive summary of {len(places)} of {len(self.ids)} turns", text)
        return None if tokens is None else self._summary(text, rung, places, tokens, self._kept(text))

    def pick(self, density: float) -> tuple[int, ...]:
        """Return the places of the most central turns, in time order."""
        return tuple(sorted(self.order[: pick_count(len(self.ids), density)]))

    def fit(self, density: float, most: int) -> tuple[int, ...]:
        """Return those of the most central turns that fit `most` tokens together, but at least the first."""
        chosen: tuple[int, ...] = ()
        for place in self.order[: pick_count(len(self.ids), density)]:
            wider = tuple(sorted((*chosen, place)))
            if not chosen or self.counter(self._lines(wider)) <= most:
                chosen = wider
        return chosen

    def _write(self, summariser: Summariser, places: Sequence[int], most: int) -> Writing | None:
        """Return what the summariser wrote; None, with a note, if it failed or wrote nothing."""
        keep = essentials(self._facts(places)).phrases()
        try:
            turns = self._lines(range(len(self.ids))).split("\n")
            writing = _check_writing(summariser.summarise(turns, max_tokens=most, keep=keep), summariser.name)
        except SummariserError as error:
            self.notes.append(f"{error}; extractive instead")
            self.summariser = None
            return None
        if not writing.text:
            self.notes.append("it wrote nothing; extractive instead")
            return None
        return writing

    def _accept(self, text: str, places: Sequence[int]) -> Preservation | None:
        """Return how much a written summary keeps, if it keeps enough and invents nothing; else note why not."""
        reasons = []
        if dropped := missing(essentials(self._facts(places)), text):
            reasons.append(f"it dropped {_list_first(dropped)}")
        if added := invented([self._lines(range(len(self.ids)))], text):
            reasons.append(f"it invented {_list_first(added)}")
        kept = None if reasons else self._kept(text)
        if kept and kept.align < self.settings.min_align:
            reasons.append(f"Q_align {_below(kept.align, self.settings.min_align)}")
        if reasons:
            self.notes.append(f"{'; '.join(reasons)}; extractive instead")
            return None
        return kept

    def _saving(self, what: str, text: str) -> int | None:
        """Return the cost of a text that costs less than the turns; else note that it does not."""
        tokens = self.counter(text)
        if tokens < self.cost:
            return tokens
        self.notes.append(f"{what} costs {tokens} tokens, its turns cost {self.cost}; it saves nothing")
        return None

    def _lines(self, places: Sequence[int]) -> str:
        return "\n".join(f"{self.speakers[place]}: {self.bodies[place]}" for place in places)

    def _facts(self, places: Sequence[int]) -> str:
        """Return what the picks say themselves: without who says it, and without what the sanitiser put in."""
        return "\n".join(PLACEHOLDER.sub(_LEFT_OUT, self.bodies[place]) for place in places)

    def _kept(self, text: str) -> Preservation:
        vector = np.asarray(self.embed(text))
        if vector.shape != self.vectors.shape[1:]:
            raise EmbedderError(
                f"the vector of a summary has shape {vector.shape}, those of its turns have "
                f"{self.vectors.shape[1:]}; embed both with the same embedder"
            )
        return preservation(vector, self.vectors)

    def _summary(
        self, text: str, rung: Rung, places: Sequence[int], tokens: int, kept: Preservation,
        conf_model: float | None = None,
    ) -> Summarised:  # fmt: skip
        confidence = kept.confidence
        if conf_model is not None:
            confidence = accepted_confidence(kept.confidence, conf_model, MODEL_SHARE)
        return Summarised(
            text=text,
            method="extractive" if conf_model is None else "abstractive",
            rung=rung,
            picks=tuple(self.ids[place] for place in places),
            tokens_before=self.cost,
            tokens_after=tokens,
            align=kept.align,
            cover=kept.cover,
            conf_space=kept.confidence,
            conf_model=conf_model,
            confidence=confidence,
            decay_rate=decay_rate(confidence),
            notes=tuple(self.notes),
        )


def _check_writing(writing: Writing, who: str) -> Writing:
    """Return what a summariser gave, at its edges trimmed, after making sure that it can be used.

    Raises:
        SummariserError: it is no text that can be stored, or its confidence is none.
    """
    text, confidence = writing.text, writing.confidence
    if not isinstance(text, str) or not _storable(text):
        raise SummariserError(f"the summariser {who} gave {quote_value(text)}, which is not text; choose another one")
    if not isinstance(confidence, int | float) or not 0.0 <= confidence <= 1.0 + _ROUNDING:
        raise SummariserError(
            f"the summariser {who} gave a confidence of {quote_value(confidence)}, outside [0, 1]; choose another one"
        )
    return Writing(text.strip(), min(1.0, float(confidence)))


def _storable(text: str) -> bool:
    """Return whether a store may hold `text`: no NUL and no lone surrogate."""
    return "\x00" not in text and text == text.encode("utf-8", "replace").decode("utf-8")


def _list_first(phrases: Sequence[str]) -> str:
    named = ", ".join(quote_value(phrase) for phrase in phrases[:_NAMED_IN_NOTES])
    rest = len(phrases) - _NAMED_IN_NOTES
    return f"{named} and {rest} more" if rest > 0 else named


def _below(value: float, bar: float) -> str:
    """Return "0.58 < 0.65", with as many digits as it takes to tell the two apart."""
    if f"{value:.2f}" != f"{bar:.2f}":
        return f"{value:.2f} < {bar:.2f}"
    return f"{value!r} < {bar!r}"
