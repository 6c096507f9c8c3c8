"""Ranking one candidate at a time, as plainly as C6, C9, C12 and C18 say it: columns must equal it bit for bit."""

import dataclasses
import math
import string
from dataclasses import dataclass, field
from datetime import timedelta

from holdfast.kernels.vectors import decay
from holdfast.ranking import stages as shipped
from holdfast.ranking.score import LEAST_NEARNESS_DOCUMENTS, LEAST_NEARNESS_TURNS
from holdfast.ranking.stages import LEAST_MEANT, NEAREST_TIME, ONLY_TIME
from holdfast.text.dates import TimeRange
from holdfast.text.names import entities, folded_words, phrases, titles
from holdfast.text.questions import asks_only
from holdfast.text.temporal import told_times
from holdfast.types import Adjustment, Mention

UNLISTED_WEIGHT = 1.0
LEAST_NEARNESS = {"turns": LEAST_NEARNESS_TURNS, "documents": LEAST_NEARNESS_DOCUMENTS}
ACTIVE, DURABLE, REST = 1.0, 0.6, 0.3  # how much a scope counts (C9)
NO_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))


@dataclass(frozen=True)
class Claim:
    """What one strategy says of one unit."""

    raw: float
    coverage: float = 0.0
    matched: frozenset = frozenset()
    identified: float | None = None
    proven: bool = False


@dataclass(frozen=True)
class Row:
    """One candidate."""

    unit: object
    fused: float
    rel: float
    claims: dict
    merged_ids: tuple = ()
    adjustments: tuple = ()


@dataclass(frozen=True)
class World:
    """Units, what strategies say of each of them, and who is asked: `scores` is {strategy: {id: claim}}."""

    units: dict
    scores: dict
    profile: object
    settings: object
    query: object
    relative: frozenset = frozenset()
    beside: dict = field(default_factory=dict)
    leads: dict = field(default_factory=dict)  # {(key, whether mentions count): ids}


def best_first(rows):
    return tuple(sorted(rows, key=lambda one: (-one.fused, one.unit.id)))


# ------------------------------------------------------------------------------------------------- finding


def find(world, depth):
    """Return the candidates after all stages, best first, and why the question is refused, if it is."""
    results = retrieve(world, depth)
    fusion = Fusion(world, results)
    staged_profile = world.profile.rank_by == "score"
    pool, beside = complete(world, results, staged_profile)
    first = fuse(world, pool, fusion)
    refused = refuse(world, first)
    rows = best_first(first)
    if staged_profile:
        near = [smoothing(world, rows, beside)] if beside else []
        stages = [*near, of_session(world, stage(rows, near, fusion.full)), *stages_of(world, rows)]
        rows = stage(rows, stages, fusion.full)
        mentions = find_mentions(world, rows)
        known = {unit_id for claims in pool.values() for unit_id in claims}
        if newcomers := [one for one in dict.fromkeys(mention.target for mention in mentions) if one not in known]:
            pool = join(world, pool, newcomers)
            rows = stage(fuse(world, pool, fusion), stages, fusion.full)
        rows = stage(link(world, rows, mentions, fusion.full), [lowering(world, fusion.full)], fusion.full)
        rows = diversify(world, rows, fusion.full)
    return fusion, rows, refused


def retrieve(world, depth):
    """Return {strategy: {id: claim}} of the best that each strategy finds, in order."""

    def look(name):
        found = {unit_id: claim for unit_id, claim in world.scores[name].items() if claim.raw > 0.0}
        order = sorted(found, key=lambda unit_id: (-found[unit_id].raw, unit_id))
        return {unit_id: found[unit_id] for unit_id in order[:depth]}

    results = {name: look(name) for name in world.profile.strategies}
    if len(results[world.profile.strategies[0]]) < world.profile.escalate_below:
        results |= {name: look(name) for name in world.profile.escalation}
    return results


def complete(world, results, staged_profile):
    if not staged_profile and not world.profile.mix:
        return results, {}
    ids = dict.fromkeys(unit_id for claims in results.values() for unit_id in claims)
    beside = {}
    if staged_profile:
        if world.query.time_range is not None and world.query.only_time:
            ids |= dict.fromkeys(happened_then(world))
        if world.settings.stages.smoothing:
            ids |= dict.fromkeys(near for one in [*ids] for near in world.beside.get(one, ()) if near is not None)
            beside = {one: world.beside.get(one, ()) for one in ids}
    return join(world, results, ids), beside


def happened_then(world):
    """Return what was said in the time asked for, last before it and first after it, and what tells of it."""
    start, end = world.query.time_range
    sides = said_between(world, start, end), said_between(world, None, start), said_between(world, end, None)
    telling = [unit.id for unit in world.units.values() if share_told(unit, start, end)]
    return [*sides[0], *sides[1][:1], *sides[2][-1:], *telling]


def said_between(world, start, end):
    then = [
        unit
        for unit in world.units.values()
        if (start is None or start <= unit.event_time) and (end is None or unit.event_time < end)
    ]
    then.sort(key=lambda unit: (unit.event_time, unit.position, unit.id), reverse=True)
    return [unit.id for unit in then[: world.settings.retrieval.max_candidates]]


def share_told(unit, start, end):
    told = told_times(unit.text, unit.event_time)
    return max((math.sqrt(time.share_in(TimeRange(start, end))) for time in told), default=0.0)


def join(world, pool, ids):
    """Let every primary strategy score those of `ids` that it did not find itself."""
    return {
        name: claims | {one: world.scores[name][one] for one in ids if one not in claims}
        if name in world.profile.strategies
        else claims
        for name, claims in pool.items()
    }


# -------------------------------------------------------------------------------------------------- fusion


class Fusion:
    def __init__(self, world, results):
        mix, fusion = world.profile.mix, world.settings.fusion
        self.weights, self.bonus = (mix, 0.0) if mix else (fusion.weights, fusion.agreement_bonus)
        self.scales = {}
        for name, claims in results.items():
            best = next(iter(claims.values())).raw if claims else 0.0
            if world.profile.normalise == "best":
                best = next((claim.raw for one, claim in claims.items() if not asks(world, world.units[one])), best)
            if world.profile.normalise == "best" and claims:
                self.scales[name] = best or 1.0
            else:
                self.scales[name] = best if name in world.relative and claims else 1.0
        self.full = 0.0
        for name in world.profile.strategies:
            self.full = self.full + self.weight(name)
        self.full = self.full + self.bonus * (len(world.profile.strategies) - 1)

    def weight(self, name):
        return self.weights.get(name, UNLISTED_WEIGHT)


def fuse(world, pool, fusion):
    claims, sums = {}, {}
    for name, said in pool.items():
        for unit_id, claim in said.items():
            claims.setdefault(unit_id, {})[name] = claim
            part = fusion.weight(name) * min(claim.raw / fusion.scales[name], 1.0)
            sums[unit_id] = sums.get(unit_id, 0.0) + part
    rows = []
    for unit_id, found in claims.items():
        fused, others = sums[unit_id], max(0.0, sum(claim.raw > 0.0 for claim in found.values()) - 1.0)
        if fusion.bonus and others:
            fused = fused + fusion.bonus * others
        rows.append(Row(world.units[unit_id], fused, min(fused / fusion.full, 1.0), found))
    return merge_copies(best_first(rows))


def merge_copies(rows):
    kept = {}
    for row in rows:
        first = kept.get(row.unit.said())
        merged = (*first.merged_ids, row.unit.id) if first else ()
        kept[row.unit.said()] = dataclasses.replace(first, merged_ids=merged) if first else row
    return tuple(kept.values())


def refuse(world, rows):
    query = world.query
    if query.vector is None or query.only_time or not world.settings.refusal.enabled or not rows:
        return ""
    terms = len(query.terms)
    if query.time_range is not None and any(of_time(row.unit, query) for row in rows):
        terms -= len(query.time_terms)
    near = {"turns": [], "documents": []}
    for row in rows:
        words = max((claim.coverage for claim in row.claims.values()), default=0.0)
        cosine = row.claims["dense"].raw if "dense" in row.claims else 0.0
        near["documents" if row.unit.author == "document" else "turns"].append((words, cosine))
    for kind, pairs in near.items():
        if pairs:
            best = max(words for words, _ in pairs) + 4.0 * max(cosine for _, cosine in pairs)
            if best - 0.15 * min(terms, 4) >= LEAST_NEARNESS[kind]:
                return ""
    words, cosine = (max(side) for side in zip(*near["turns"], *near["documents"], strict=True))
    reason = f"no candidate covers more than {words:.2f} of its words or has a cosine above {cosine:.2f}"
    return "" if words >= 1.0 - 1e-9 else reason


# -------------------------------------------------------------------------------------------------- stages


def adjust(row, change, full):
    """Return a row after one stage."""
    if change is None or change.weight <= 0.0:
        return row
    rel = min((1.0 - change.weight) * row.rel + change.weight * change.signal, 1.0)
    return dataclasses.replace(row, rel=rel, fused=rel * full, adjustments=(*row.adjustments, change))


def stage(rows, stages, full):
    """Return the rows after some stages, of which each sees what the one before it left."""
    for one in stages:
        rows = [adjust(row, one(row), full) for row in rows]
    return best_first(rows)


def of_session(world, rows):
    weight, rels = world.settings.stages.session, {}
    for row in rows:
        if row.unit.session is not None:
            rels.setdefault(row.unit.session, []).append(stated(world, row))
    means = {session: sum(sorted(found, reverse=True)[:3]) / 3 for session, found in rels.items()}
    scale = max((stated(world, row) for row in rows), default=0.0) / max(*means.values(), 1e-12, 1e-12)
    taking = {row.unit.id for row in rows if row.unit.session is not None and weight and len(means) > 1}
    because = "relevance of its session beside the best one's"

    def take(row):
        if row.unit.id not in taking:
            return None
        return Adjustment("session", weight, means[row.unit.session] * scale, because)

    return take


def stages_of(world, rows):
    query, settings, stages = world.query, world.settings.stages, []
    share = settings.own_words if query.perspective in ("user", "assistant") else settings.perspective
    if share and query.perspective is not None and not (query.perspective == "user" and query.summary):

        def prefer(row):
            said = speaks(row.unit, query)
            return None if said and row.rel < LEAST_MEANT else Adjustment("perspective", share, float(said))

        stages.append(prefer)
    if query.time_range is not None:
        weight = ONLY_TIME if query.only_time else settings.time_range
        if query.only_time and not any(of_time(row.unit, query) for row in rows):
            near = nearest(rows, query)
            stages.append(lambda row: Adjustment("nearest time", NEAREST_TIME, float(row.unit.id in near)))
        else:
            stages.append(lambda row: Adjustment("time range", weight, of_time(row.unit, query)))
    if (query.identifiers or query.years) and settings.identifiers:
        stages.append(lambda row: identified(row, settings.identifiers))
    return stages


def smoothing(world, rows, beside):
    settings, answers = world.settings.stages, world.query.perspective == "assistant"
    rels = {row.unit.id: row.rel for row in rows}

    def smooth(row):
        answer = answers and row.unit.author == "assistant"
        near = [
            rels[one]
            for one in beside.get(row.unit.id, ())[: 1 if answer else 2]
            if one in rels and lends(world, world.units[one], row.unit)
        ]
        if not near:
            return None
        taken = settings.smoothing / (1.0 + (len(row.unit.text) / shipped.SMOOTHING_HALF_LENGTH) ** 2)
        return Adjustment("neighbours", settings.smoothing - taken if answer else taken, max(near))

    return smooth


def asks(world, unit):
    """Return whether a unit answers nothing."""
    minded = world.profile.rank_by == "score" and world.settings.stages.questions
    return bool(minded) and "did I ask" not in world.query.text and asks_only(unit)


def stated(world, row):
    return 0.0 if asks(world, row.unit) else row.rel


def lends(world, unit, taker):
    own = (unit.author, unit.speaker) == (taker.author, taker.speaker)
    answers = taker.author == "assistant" and world.query.perspective != "assistant"
    return not (asks(world, unit) and (own or answers))


def least(world, full):
    return max(world.profile.min_score / full, world.profile.gap, world.settings.projection.min_similarity)


def lowering(world, full):
    floor = least(world, full)

    def lower(row):
        if not asks(world, row.unit) or row.rel <= floor:
            return None
        return Adjustment("only asks", world.settings.stages.questions, floor, "it only asks")

    return lower


def speaks(unit, query):
    if query.perspective in ("user", "assistant"):
        return unit.author == query.perspective
    return unit.speaker.casefold() in {name.casefold() for name in query.participants}


def span_of(unit):
    return (unit.lineage.starts, unit.lineage.ends) if unit.lineage else (unit.event_time, unit.event_time)


def of_time(unit, query):
    (start, end), (first, last) = query.time_range, span_of(unit)
    return 1.0 if first < end and last >= start else share_told(unit, start, end)


def nearest(rows, query):
    """Return what lies within a day of what is next to the time asked for, on either side."""
    start, end = query.time_range
    before, after = {}, {}
    for unit in (row.unit for row in rows):
        told = told_times(unit.text, unit.event_time)
        first, last = span_of(unit)
        ends = [time.end - timedelta.resolution for time in told if time.end <= start]
        starts = [time.start for time in told if time.start >= end]
        if ends := [*ends, *([last] if last < start else [])]:
            before[unit.id] = max(ends)
        if starts := [*starts, *([first] if first >= end else [])]:
            after[unit.id] = min(starts)
    day = timedelta(days=1)
    near = {one for one, moment in before.items() if moment > max(before.values()) - day}
    return near | {one for one, moment in after.items() if moment < min(after.values()) + day}


def identified(row, weight):
    claim = row.claims.get("lexical")
    return None if claim is None or claim.identified is None else Adjustment("identifiers", weight, claim.identified)


# --------------------------------------------------------------------------------------------------- links


def choose_parents(world, rows, most):
    """Return the best, at most two of one title, and of the first three times as many rows as are wanted."""
    found = []
    for row in rows[: 3 * most]:
        alike = [unit for unit in found if unit.topic == row.unit.topic != ""]
        if row.rel > 0.0 and len(alike) < 2 and not asks(world, row.unit):
            found.append(row.unit)
    return found[:most]


def find_mentions(world, rows):
    settings, asked = world.settings.stages, folded_words(world.query.text)
    parents = choose_parents(world, rows, shipped.LINK_PARENTS)
    found = []
    for weight, mentioned in ((settings.mentions, False), (settings.shared_names, True)):
        for unit in parents if weight else ():
            names = (*titles(unit.topic), *entities(unit.text)) if mentioned else phrases(unit.text)
            found += [
                Mention(unit.id, target, key, not mentioned)
                for key in names
                if f" {key} " not in asked and len(world.leads.get((key, mentioned), ())) <= shipped.RARE_NAME_UNITS
                for target in world.leads.get((key, mentioned), ())
                if target != unit.id
            ]
    return tuple(dict.fromkeys(found))


def link(world, rows, mentions, full):
    settings = world.settings.stages
    by_id = {unit_id: row for row in rows for unit_id in (row.unit.id, *row.merged_ids)}
    lifted = {}
    for mention in mentions:
        parent, target = by_id.get(mention.parent), by_id.get(mention.target)
        if parent is None or target is None or parent.rel <= target.rel:
            continue
        weight = settings.mentions if mention.called else share_name(parent.unit, target.unit, settings)
        way = "which names it" if mention.called else "which names the same"
        because = f"rel of {mention.parent}, {way}: {mention.name}"
        row = adjust(target, Adjustment("mentions", weight, parent.rel, because), full)
        if row.rel > lifted.get(target.unit.id, target).rel:
            lifted[target.unit.id] = row
    return best_first(lifted.get(row.unit.id, row) for row in rows)


def share_name(parent, target, settings):
    if target.kind == "turn" and target.session is not None and target.session == parent.session:
        return 0.0
    return settings.shared_names / (1.0 + (len(target.text) / shipped.SHARED_HALF_LENGTH) ** 2)


def diversify(world, rows, full):
    settings, said, found = world.settings.stages, [], []
    if not settings.diversity:
        return rows
    for row in rows:
        if len(said) == world.profile.max_results:
            break
        words = frozenset(row.unit.text.casefold().translate(NO_PUNCTUATION).split())
        by = (row.unit.author, row.unit.speaker)
        alike = (one for one, other in said if same(words, other, shipped.SAME_WORDS))
        first = next((one for one in alike if (one.author, one.speaker) == by), None)
        if first is None:
            said.append((row.unit, words))
            found.append(row)
        else:
            because = f"{first.id} says the same"
            left = min(row.rel, least(world, full)) if asks(world, row.unit) else 0.0
            found.append(adjust(row, Adjustment("diversity", settings.diversity, left, because), full))
    lowered = best_first((*found, *rows[len(found) :]))
    most, because = world.profile.max_results, f"{rows[0].unit.id} says the same" if rows else ""
    twins = (row for row, new in zip(rows, found, strict=False) if new is not row and because in reasons(new))
    twin = next(twins, None)
    if twin is None or twin.unit.id in {row.unit.id for row in lowered[:most]}:
        return lowered
    stays = Adjustment(
        "diversity", 1.0, min(twin.rel, lowered[most - 2].rel), f"{because}, and it stays among the hits"
    )
    kept = adjust(twin, stays, full)
    return best_first(kept if row.unit.id == twin.unit.id else row for row in lowered)


def reasons(row):
    return [change.because for change in row.adjustments]


def same(one, other, share):
    if not one or min(len(one), len(other)) < share * max(len(one), len(other)):
        return False
    common = len(one & other)
    if common < share * (len(one) + len(other) - common):
        return False
    return not any(character.isdigit() for word in one ^ other for character in word)


# ---------------------------------------------------------------------------------------- settling, cutting


def quality(unit, settings):
    return 1.0 if unit.lineage is None else 1.0 - settings.delta * unit.lineage.decay_rate


def settle(rows, settings):
    """Return who answers, and who gave way: {id: (cut, needed, had)}."""
    weights = {row.unit.id: row.fused * quality(row.unit, settings) for row in rows if row.unit.lineage is not None}
    best, kept, dropped = {}, [], {}
    for row in rows:
        if (by := row.unit.covered_by) in weights:
            best[by] = max(best.get(by, 0.0), row.fused)
    for row in rows:
        unit_id, by = row.unit.id, row.unit.covered_by
        if unit_id in best and best[unit_id] >= weights[unit_id]:
            dropped[unit_id] = ("turns", best[unit_id], weights[unit_id])
        elif by in weights and best[by] < weights[by]:
            dropped[unit_id] = ("summary", weights[by], row.fused)
        else:
            kept.append(row)
    return kept, dropped


def cut(rows, profile):
    kept, dropped = [], {}
    gap = rows[0].fused * profile.gap if rows else 0.0
    for row in rows:
        if row.fused < profile.min_score:
            dropped[row.unit.id] = ("min_score", profile.min_score, row.fused)
        elif row.fused < gap and not any(claim.proven for claim in row.claims.values()):
            dropped[row.unit.id] = ("gap", gap, row.fused)
        else:
            kept.append(row)
    return kept, dropped


def score(row, settings, session, at):
    alpha, beta, gamma = settings.shares
    unit = row.unit
    if unit.scope == "global":
        scope, rate = REST, settings.lambda_global
    elif session is not None and unit.session == session:
        scope, rate = ACTIVE, settings.lambda_session
    else:
        scope, rate = DURABLE if unit.scope == "user" else REST, settings.lambda_user
    moment = unit.lineage.ends if unit.lineage is not None else unit.event_time
    recent = 1.0 if unit.kind == "authored" else decay(rate, (at - moment).total_seconds())
    return min((alpha * row.rel + beta * recent + gamma * scope) * quality(unit, settings), 1.0)


def rank(rows, world, session, at):
    """Return (score, row), best first."""
    by_score = world.profile.rank_by == "score"
    scored = [(score(row, world.settings.score, session, at) if by_score else row.fused, row) for row in rows]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].unit.id))
