"""Stages of the default recipe: what else speaks for a unit than its own words and meaning.

`STAGES` is the recipe, in order. A stage is a function from a pool to a pool: most mix a signal into the relevance
of every row, rel' = (1 - w)·rel + w·signal, before min_score, gap and max. A profile that ranks by the fused score
has no stages, and the reference recipe sets every weight to 0.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import MINYEAR, UTC, datetime, timedelta
from typing import TypeVar

import numpy as np

from holdfast.kernels import Bools, Floats
from holdfast.kernels.vectors import order_rows
from holdfast.ranking.current import prefer_current
from holdfast.ranking.pool import Pool, Stage, StageEffect, StageInputs, UnitCache
from holdfast.ranking.read import read_together
from holdfast.ranking.same import prefer_newest
from holdfast.settings import StageSettings
from holdfast.text.names import entities, folded_words, phrases, titles
from holdfast.text.questions import asks_beside, opening
from holdfast.text.temporal import OPEN_END, mentioned_years
from holdfast.types import Mention, Unit

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_NO_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))
T = TypeVar("T")

# Less is what any two texts have in common: the right speaker must not carry it past the cuts.
LEAST_MEANT = 0.2
# A question for a time alone: the time decides, and of two in it the nearer one stands first.
ONLY_TIME = 0.9
# Where nothing is of that time, what is nearest to it comes first, and the rest stays.
NEAREST_TIME = 0.6

# What opens with an identifier stands so far above what only mentions it: more than scope and recency count.
_APART = 0.075

# Characters at which a turn takes over half as much from a neighbour: two sentences name their subject themselves.
SMOOTHING_HALF_LENGTH = 160.0
# The same of a name that two units share: a passage of this length drops many names.
SHARED_HALF_LENGTH = 2000.0
# A name of more units than this tells little of any, and links none of them.
RARE_NAME_UNITS = 5
# So many of the best units lead to others: what is linked to a worse one is rarely what was asked for.
LINK_PARENTS = 5
# Share of common words from which on two units say the same: a word or two among ten may differ, no number may.
SAME_WORDS = 0.9

# One good turn may be by chance; more than these say little more.
_BEST_TURNS = 3
_TINY = 1e-12
# Of one title, so many are parents of links; and so many rows are looked at for each parent before fewer must do.
_SAME_TITLE, _ROWS_FOR_PARENT = 2, 3
# Further down a passage needs more than years to come up.
_YEARS_READ = 20
# A life or an age covers every year of it and answers for none; terms, posts and productions are shorter.
_LONGEST_STRETCH = 40
# What a text of an earlier year is worth, and the years after which it is worth half of that.
_BEGUN_EARLIER, _YEARS_TO_HALF = 0.8, 10.0


def smooth_neighbours(pool: Pool, staging: StageInputs) -> Pool:
    """Let a short turn take over from the better of the turns before and after it.

    An answer of five words says little by itself; the question it answers says what it is about. The longer a turn,
    the less it needs that: it takes over weight / (1 + (characters / length)²). What only asks lends to its answer by
    somebody else; "let me check" of an assistant is none. Where the assistant's words are asked
    for, each of its turns takes over the rest of the weight from what it answers: the longer, the more of an answer.
    """
    weight, length = staging.settings.smoothing, SMOOTHING_HALF_LENGTH
    if not weight or "before" not in pool.columns:
        return pool
    beside = (pool.columns[side].tolist() for side in ("before", "after"))
    before, after = (_lent(pool, side, staging) for side in beside)
    shares = np.array([weight / (1.0 + (chars / length) ** 2) for chars in pool.columns["length"].tolist()])
    signal = np.maximum(before, after)
    if staging.query.perspective == "assistant":
        answers = pool.columns["author"] == "assistant"
        signal, shares = np.where(answers, before, signal), np.where(answers, weight - shares, shares)
    return pool.apply(StageEffect("neighbours", np.where(signal >= 0.0, shares, 0.0), np.maximum(signal, 0.0)))


def _lent(pool: Pool, beside: Sequence[str | None], staging: StageInputs) -> Floats:
    """Return the relevance of the turn beside each row; -1 where there is none, or it lends nothing."""
    row_of = {unit_id: row for row, unit_id in enumerate(pool.ids)}
    rows = np.array([-1 if one is None else row_of.get(one, -1) for one in beside], dtype=np.intp)
    author, speaker = pool.columns["author"], pool.columns["speaker"]
    own = (author == author[rows]) & (speaker == speaker[rows])
    unasked = (author == "assistant") & (staging.query.perspective != "assistant")
    unanswered = pool.columns["asks"][rows] & (own | unasked)
    return np.where((rows >= 0) & ~unanswered, pool.rel[rows], -1.0)


def share_session(pool: Pool, staging: StageInputs) -> Pool:
    """Let a turn take over a little from its session: what is said around the subject is more likely about it.

    A session's relevance is the mean of its best turns', beside the best session's.
    """
    weight = staging.settings.session
    turns: dict[str, list[int]] = {}
    for row, session in enumerate(pool.columns["session"].tolist() if weight else ()):
        if session is not None:
            turns.setdefault(session, []).append(row)
    if len(turns) < 2:
        return pool
    weights, signal = np.zeros(len(pool)), np.zeros(len(pool))
    stated = np.where(pool.columns["asks"], 0.0, pool.rel)
    for rows in turns.values():
        best = sorted(stated[rows].tolist(), reverse=True)[:_BEST_TURNS]
        weights[rows], signal[rows] = weight, sum(best) / _BEST_TURNS
    because = "relevance of its session beside the best one's"
    return pool.apply(StageEffect("session", weights, signal * (stated.max() / max(signal.max(), _TINY)), because))


def prefer_perspective(pool: Pool, staging: StageInputs) -> Pool:
    """Prefer the one whose words are asked for: a named speaker, the user, the assistant.

    What users ask of themselves they said themselves; a summary of a talk is of both sides. What is hardly relevant
    is not meant, whoever said it.
    """
    query, of_role = staging.query, staging.query.perspective in ("user", "assistant")
    weight = staging.settings.own_words if of_role else staging.settings.perspective
    if query.perspective is None or not weight or (query.perspective == "user" and query.summary):
        return pool
    if of_role:
        said: Bools = pool.columns["author"] == query.perspective
    else:
        speakers = {name.casefold() for name in query.participants}
        said = np.array([(name or "").casefold() in speakers for name in pool.columns["speaker"]], dtype=np.bool_)
    meant = ~said | (pool.rel >= LEAST_MEANT)
    return pool.apply(StageEffect("perspective", np.where(meant, weight, 0.0), said.astype(np.float64)))


def prefer_time_range(pool: Pool, staging: StageInputs) -> Pool:
    """Prefer what was said in the time that the question names, or tells of it; a summary counts by all of its span.

    What tells of a longer time counts by the share of it that is asked for. A question for a time alone that finds
    nothing of it prefers what is nearest to it.
    """
    query = staging.query
    if query.time_range is None:
        return pool
    if "nearest" in pool.columns:
        return pool.apply(_everywhere("nearest time", NEAREST_TIME, pool.columns["nearest"]))
    weight = ONLY_TIME if query.only_time else staging.settings.time_range
    return pool.apply(_everywhere("time range", weight, pool.columns["of_time"]))


def prefer_identifiers(pool: Pool, staging: StageInputs) -> Pool:
    """Prefer what holds the very identifiers of the question: a code, a path, a quoted word.

    What merely looks like E0308 to a model is something else; the rarer the identifier, the more it decides.
    """
    weight = staging.settings.identifiers
    if not weight or "lexical" not in pool.scores or not (staging.query.identifiers or staging.query.years):
        return pool
    held = pool.scores["lexical"].identified
    return pool.apply(StageEffect("identifiers", np.where(np.isnan(held), 0.0, weight), np.nan_to_num(held)))


def prefer_years(pool: Pool, staging: StageInputs) -> Pool:
    """Prefer what tells of the years that the question names, whenever it was said.

    rel' = (1 - w·s)·rel + w·s·min(2·rel, 1), so that years alone lift nothing: a passage that is about something
    else stays where it is. Nothing is lowered, and only the best rows are read for it.
    """
    query, weight = staging.query, staging.settings.told_years
    if not weight or query.time_range is None or query.only_time or not query.years:
        return pool
    first, last = query.time_range[0].year, (query.time_range[1] - _MICROSECOND).year
    asked = (last, last) if query.time_range[0].year == MINYEAR else (first, last)
    rows = order_rows(pool.fused, pool.ids)[:_YEARS_READ].tolist()
    units = staging.units([pool.ids[row] for row in rows])
    weights = np.zeros(len(pool))
    for row in rows:
        if pool.ids[row] in units:
            weights[row] = weight * years_overlap(_years_in(units[pool.ids[row]]), *asked)
    because = "twice its rel, as the years it tells of are asked for"
    return pool.apply(StageEffect("told years", weights, np.minimum(2.0 * pool.rel, 1.0), because))


def years_overlap(told: Sequence[tuple[int, int]], first: int, last: int) -> float:
    """Return how well a unit's years speak for what held from `first` to `last`.

    What held from a year on began in it, or in a stretch that covers it. What was told of an earlier year may still
    hold; the longer ago that is, the less is it worth.
    """
    best = 0.0
    for start, end in told:
        covers = (
            start < end and start <= first and last <= end and (end == OPEN_END or end - start < _LONGEST_STRETCH)
        )
        if start == first or covers:
            return 1.0
        if start < first:
            best = max(best, _BEGUN_EARLIER / (1.0 + (first - start) / _YEARS_TO_HALF))
    return best


# The stages that look at one row at a time.
PREFERENCES: tuple[Stage, ...] = (prefer_perspective, prefer_time_range, prefer_identifiers, prefer_years)


def _everywhere(stage: str, weight: float, signal: Floats | Bools) -> StageEffect:
    return StageEffect(stage, np.full(len(signal), weight), signal.astype(np.float64))


# ----------------------------------------------------------------------------------------- what units say

_phrases_in = UnitCache(lambda unit: phrases(unit.text))
_names_in = UnitCache(lambda unit: (*titles(unit.topic), *entities(unit.text)))
_opening_of = UnitCache(lambda unit: frozenset(opening(unit.text)))
_years_in = UnitCache(lambda unit: mentioned_years(unit.text))
_words_in = UnitCache(lambda unit: frozenset(unit.text.casefold().translate(_NO_PUNCTUATION).split()))


# -------------------------------------------------------------------------------------------------- openings


def raise_openings(pool: Pool, staging: StageInputs) -> Pool:
    """Let a turn that opens with an identifier of the question stand above those that only mention it.

    "E0321: the types do not agree" is about it, as a page under that title; "see also E0321" is nearer to any
    question about it. It takes over their relevance, but for that of a turn that holds more of what else is asked.
    """
    query, lexical = staging.query, pool.scores.get("lexical")
    if not staging.settings.identifiers or not query.identifiers or lexical is None:
        return pool
    places = {name: query.terms.index(name) for name in query.identifiers if name in query.terms}
    holders = lexical.matched[:, [*places.values()]].any(axis=1) & (pool.columns["author"] != "document")
    opened = _find_openings(pool, np.flatnonzero(holders).tolist(), places, staging)
    signals, because = pool.rel.copy(), ["signal"] * len(pool)
    beside = lexical.matched[:, asks_beside(query)]
    for row, place in opened.items():
        mentions = lexical.matched[:, place] & ~np.isin(np.arange(len(pool)), [*opened])
        more = mentions & (beside & ~beside[row]).any(axis=1)
        if (mentions & ~more).any():
            reached = float(pool.rel[mentions & ~more].max()) + _APART
            signals[row] = max(min(reached, pool.rel[more].min(initial=np.inf) - _APART), signals[row])
            because[row] = f"it opens with {query.terms[place]}, which others only mention"
    return pool.apply(StageEffect("opening", (signals > pool.rel).astype(np.float64), signals, tuple(because)))


def _find_openings(
    pool: Pool, rows: Sequence[int], places: Mapping[str, int], staging: StageInputs
) -> dict[int, int]:
    """Return the rows whose unit opens with an identifier, each with the place of that among the question's terms."""
    units = staging.units([pool.ids[row] for row in rows])
    found = {}
    for row in rows:
        said = _opening_of(units[pool.ids[row]]) if pool.ids[row] in units else ()
        if name := next((name for name in places if name in said), None):
            found[row] = places[name]
    return found


# ----------------------------------------------------------------------------------------------------- links


def link_mentions(pool: Pool, staging: StageInputs) -> Pool:
    """Let a unit take over relevance from a better one that names it, or names the same rare thing (C12).

    rel' = (1 - w)·rel + w·rel(parent), for the parent that lifts it most; nothing is ever lowered. An answer often
    stands in two units, and only the first of them speaks of what the question asks: it names the second.
    """
    mentions = find_mentions(choose_parents(pool, staging), staging)
    known = pool.rows_by_id()
    if newcomers := [target for target in dict.fromkeys(one.target for one in mentions) if target not in known]:
        fresh = staging.join(newcomers)
        for prefer in PREFERENCES:
            fresh = prefer(fresh, staging)
        pool = pool.joined(fresh).merge_copies()
    return pool.apply(raise_mentioned(pool, mentions, staging.settings)) if mentions else pool


def choose_parents(pool: Pool, staging: StageInputs) -> list[Unit]:
    """Return the best units, at most two of one title: a long article would say the same names again and again."""
    settings, most = staging.settings, LINK_PARENTS
    if not settings.mentions and not settings.shared_names:
        return []
    rows = order_rows(pool.fused, pool.ids)[: most * _ROWS_FOR_PARENT].tolist()
    asks = pool.columns["asks"]
    ids = [pool.ids[row] for row in rows if pool.rel[row] > 0.0 and not asks[row]]
    found: list[Unit] = []
    titled: Counter[str] = Counter()
    for start in range(0, len(ids), most):
        units = staging.units(page := ids[start : start + most])
        for unit in (units[unit_id] for unit_id in page if unit_id in units):
            titled[unit.topic] += 1
            if not unit.topic or titled[unit.topic] <= _SAME_TITLE:
                found.append(unit)
        if len(found) >= most:
            break
    return found[:most]


def find_mentions(parents: Sequence[Unit], staging: StageInputs) -> tuple[Mention, ...]:
    """Return the links that lead away from the best units, each once.

    A name that stands in the question leads nowhere: what it names was looked for already.
    """
    settings = staging.settings
    asked = folded_words(staging.query.text)
    found: list[Mention] = []
    for weight, mentioned in ((settings.mentions, False), (settings.shared_names, True)):
        if weight:
            said = _names_in if mentioned else _phrases_in
            names = {unit.id: [key for key in said(unit) if f" {key} " not in asked] for unit in parents}
            wanted = [*dict.fromkeys(key for keys in names.values() for key in keys)]
            leads = staging.find_names(wanted, RARE_NAME_UNITS, mentioned)
            found += [
                Mention(unit.id, target, key, called=not mentioned)
                for unit in parents
                for key in names[unit.id]
                for target in leads.get(key, ())
                if target != unit.id
            ]
    return tuple(dict.fromkeys(found))


def raise_mentioned(pool: Pool, mentions: Sequence[Mention], settings: StageSettings) -> StageEffect:
    """Return what every row takes over from its best parent."""
    row_of, rel = pool.rows_by_id(), pool.rel.tolist()
    weights, signals, because = np.zeros(len(pool)), np.zeros(len(pool)), ["signal"] * len(pool)
    lifted = list(rel)
    for mention in mentions:
        parent, target = row_of.get(mention.parent), row_of.get(mention.target)
        if parent is None or target is None or rel[parent] <= rel[target]:
            continue
        weight = settings.mentions if mention.called else _share_name(pool, parent, target, settings)
        reached = min((1.0 - weight) * rel[target] + weight * rel[parent], 1.0)
        if reached > lifted[target]:
            lifted[target] = reached
            weights[target], signals[target] = weight, rel[parent]
            way = "which names it" if mention.called else "which names the same"
            because[target] = f"rel of {mention.parent}, {way}: {mention.name}"
    return StageEffect("mentions", weights, signals, tuple(because))


def _share_name(pool: Pool, parent: int, target: int, settings: StageSettings) -> float:
    """Return the weight of a shared name.

    The longer a unit, the more names it drops in passing, and the less one of them says: as with smoothing, it takes
    over weight / (1 + (characters / length)²). Turns of one session lean on their neighbours instead.
    """
    sessions = pool.columns["session"]
    if (
        pool.columns["kind"][target] == "turn"
        and sessions[target] is not None
        and sessions[target] == sessions[parent]
    ):
        return 0.0
    return settings.shared_names / (1.0 + (int(pool.columns["length"][target]) / SHARED_HALF_LENGTH) ** 2)


# --------------------------------------------------------------------------------------------------- threads


def prefer_latest_session(pool: Pool, staging: StageInputs) -> Pool:
    """Prefer the latest session of the thread that someone goes on with: "what's next for the garden?".

    The thread are the sessions that the question brings up, each as far as it does: the mean rel of its best turns,
    spread over [0, 1]. The signal of a session is that, divided by 1 + those of all later ones, so that a later
    session about something else takes nothing away.
    """
    weight, query = staging.settings.thread, staging.query
    sessions, codes = pool.columns["session"].tolist(), dict[str | None, int]()
    if not weight or not query.continues or query.time_range is not None or len(set(sessions)) < 2:
        return pool
    code_of = [codes.setdefault(session, len(codes)) for session in sessions]
    sums, counts, ends = [0.0] * len(codes), [0] * len(codes), [-np.inf] * len(codes)
    stated = np.where(pool.columns["asks"], 0.0, pool.rel)
    for rel, code, end in sorted(zip(stated.tolist(), code_of, pool.columns["ends"].tolist(), strict=True))[::-1]:
        ends[code] = max(ends[code], end)
        if counts[code] < _BEST_TURNS:
            counts[code] += 1
            sums[code] += rel / _BEST_TURNS
    if None in codes:  # belongs to no session, and to no thread
        sums[codes[None]] = min(sums)
    about = np.array(sums)
    about = (about - about.min()) / max(float(np.ptp(about)), _TINY)
    latest = np.argsort(-np.array(ends), kind="stable")
    later = np.cumsum(about[latest]) - about[latest]
    signal = np.empty(len(codes))
    signal[latest] = about[latest] / (1.0 + later)
    weights = np.where([session is None for session in sessions], 0.0, weight)
    effect = StageEffect("thread", weights, signal[code_of], "how near its session is, less by each later one")
    return pool.apply(effect)


# ------------------------------------------------------------------------------------------------- questions

ONLY_ASKS = "only asks"


def lower_questions(pool: Pool, staging: StageInputs) -> Pool:
    """Let what only asks stand below what states something: a question is not an answer (C19).

    rel' = (1 - w)·rel + w·least, where `least` passes every cut: nothing is hidden, and questions keep their order.
    """
    weights = np.where(pool.columns["asks"] & (pool.rel > staging.least), staging.settings.questions, 0.0)
    return pool.apply(StageEffect(ONLY_ASKS, weights, np.full(len(pool), staging.least), "it only asks"))


# ------------------------------------------------------------------------------------------------- diversity


def diversify(pool: Pool, staging: StageInputs) -> Pool:
    """Let near-duplicates step back: a unit that says what a better one says leaves its place to another.

    rel' = (1 - w)·rel for it, and for a question no less than passes the cuts. Two units say the same when nearly all
    of their words are the same and no number differs: a changed number or date is news, however alike the rest is. So
    is it when another one says it. As soon as `most` units say something of their own the list is full, and nobody
    looks further down. The best hit may be the wrong one of two that are alike, so the first that says what it says
    steps back to the end of the list only.
    """
    settings, order = staging.settings, order_rows(pool.fused, pool.ids).tolist()
    if not settings.diversity:
        return pool.sorted()
    weights, because, own = np.zeros(len(pool)), ["signal"] * len(pool), 0
    signals = np.where(pool.columns["asks"], np.minimum(pool.rel, staging.least), 0.0)
    twin: int | None = None
    said: dict[tuple[str, str], list[tuple[str, frozenset[str]]]] = {}
    authors, speakers = pool.columns["author"], pool.columns["speaker"]
    for row, words in zip(order, _read_words([pool.ids[row] for row in order], staging), strict=True):
        if own == staging.most:
            break
        theirs = said.setdefault((authors[row], speakers[row]), [])
        first = next((one for one, heard in theirs if is_same(words, heard)), None)
        if first is None:
            theirs.append((pool.ids[row], words))
            own += 1
        else:
            weights[row], because[row] = settings.diversity, f"{first} says the same"
            if twin is None and first == pool.ids[order[0]]:
                twin = row
    lowered = pool.apply(StageEffect("diversity", weights, signals, tuple(because))).sorted()
    if twin is None or pool.ids[twin] in lowered.ids[: staging.most]:
        return lowered
    # As good as the last but one, it comes before the last.
    weights[twin], signals[twin] = 1.0, min(pool.rel[twin], lowered.rel[staging.most - 2])
    because[twin] += ", and it stays among the hits"
    return pool.apply(StageEffect("diversity", weights, signals, tuple(because))).sorted()


def _read_words(ids: Sequence[str], staging: StageInputs) -> Iterator[frozenset[str]]:
    """Yield the words of units, which are read a page of hits at a time."""
    for start in range(0, len(ids), staging.most):
        units = staging.units(page := ids[start : start + staging.most])
        yield from (_words_in(units[unit_id]) if unit_id in units else frozenset() for unit_id in page)


def is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two sets of words have nearly all of their words in common, and all that hold a digit."""
    if not one or min(len(one), len(other)) < SAME_WORDS * max(len(one), len(other)):
        return False
    common = len(one & other)
    if common < SAME_WORDS * (len(one) + len(other) - common):
        return False
    return not any(character.isdigit() for word in one ^ other for character in word)


STAGES: tuple[Stage, ...] = (
    smooth_neighbours, share_session, *PREFERENCES, link_mentions,
    prefer_latest_session, prefer_current, prefer_newest, raise_openings, lower_questions, diversify, read_together,
)  # fmt: skip


def run_stages(stages: Sequence[Stage], pool: Pool, staging: StageInputs) -> Pool:
    """Return the pool after every stage, best first."""
    for stage in stages:
        pool = stage(pool, staging)
    return pool.sorted()
