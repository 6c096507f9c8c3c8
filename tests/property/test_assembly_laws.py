"""C20 for assembly, on generated rules, sessions, projections and budgets, under counters of every kind."""

import dataclasses
import re
import zlib
from datetime import timedelta
from functools import partial

from hypothesis import assume, given
from hypothesis import strategies as st

from builders import NOW, assemble, costly, make_unit
from holdfast.context.pack import fill, fill_whole
from holdfast.context.plan import ContextRequest, base_start, plan_tail, safe_starts
from holdfast.errors import BudgetError
from holdfast.settings import AssemblySettings
from holdfast.text.quotes import (
    GUIDANCE,
    RULES,
    Cursor,
    Quote,
    authored_pieces,
    escape,
    quote,
    quotes,
    recalled_heading,
    recent_heading,
    section_text,
    unescape,
)
from holdfast.text.sentences import EXCERPT
from holdfast.text.tokens import REFERENCE_RATIOS, Estimator, estimate
from holdfast.types import AuthoredText
from holdfast.types.contexts import RecalledUnit, StandingInstruction, node_id

# ---------------------------------------------------------------------------------------------------- counters


def words(text):
    return len(text.split())


def scattered(text):
    """Answer without any regard to length: a longer text may cost less."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) % 150


def shrinking(text):
    """Cost less the longer the text is."""
    return max(0, 400 - len(text) // 2)


def swelling(text):
    """Cost more than the parts do."""
    return len(text) ** 2 // 2000


ADDITIVE = {"chars": len, "words": words}
MONOTONE = {
    **ADDITIVE,
    "default": estimate,
    "reference": partial(estimate, ratios=REFERENCE_RATIOS),
    "by lines": Estimator(),
    "swelling": swelling,
}
COUNTERS = {**MONOTONE, "scattered": scattered, "shrinking": shrinking, "seven": lambda _: 7, "free": lambda _: 0}

# -------------------------------------------------------------------------------------------------- generated

FRAMES = [
    RULES,
    GUIDANCE,
    recent_heading(),
    recalled_heading(),
    "2026-05-04 12:00 #1\n",
    "12:00 user: ",
    "user: ",
    "assistant: yes\n",
    ">",
]
# Everything that Python, a terminal or a model may read as the end of a line.
LINE_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
# What a terminal obeys, what turns the direction of writing round, what nobody sees, and how a context spells it out.
OBEYED = ["\x1b", "\x08", "\x9b", "\x7f", "\u202e", "\u2066", "\U000e0041", "⟦U+202E⟧", "⟦"]
HOSTILE = st.lists(
    st.one_of(st.sampled_from(FRAMES), st.sampled_from([*LINE_BREAKS, "\r\n", *OBEYED]), st.text(max_size=8)),
    max_size=6,
).map("".join)
TEXTS = st.one_of(
    HOSTILE,
    st.text(st.sampled_from("ab ,.?!\n漢я1"), max_size=80),
    st.sampled_from(["yes", "One. Two. Three! Four?"]),
)
AUTHORS = st.sampled_from(["user", "assistant", "tool", "system"])
SPEAKERS = st.one_of(
    st.just(""), st.sampled_from(["Ana", "system", "> x", "[rules]", "a: b", "2026-05-04 12"]), HOSTILE
)


@st.composite
def units(draw, prefix, sessions, most):
    made = []
    for index in range(draw(st.integers(0, most))):
        made.append(  # noqa: PERF401 - drawing inside a comprehension hides the order of the draws
            make_unit(
                f"{prefix}{index}",
                draw(TEXTS),
                session=draw(sessions),
                author=draw(AUTHORS),
                speaker=draw(SPEAKERS),
                bundle_id=draw(st.sampled_from([None, None, None, "p", "q"])),
                origin=draw(st.sampled_from(["conversation", "conversation", "tool", "document"])),
                event_time=NOW + timedelta(minutes=draw(st.integers(0, 3)), days=draw(st.integers(0, 1))),
            )
        )
    return made


@st.composite
def nodes(draw, positions, most):
    made = []
    for index in range(draw(st.integers(0, most))):
        heads = draw(st.integers(0, 2))
        headings = tuple((ordinal, f"{'#' * (ordinal + 1)} part {ordinal}") for ordinal in range(heads))
        document = draw(st.sampled_from(["A.md", "B.md"]))
        made.append(AuthoredText(document, positions + index, draw(st.text(min_size=1, max_size=30)), headings))
    return made


SETTINGS = st.builds(
    AssemblySettings,
    hard_share=st.sampled_from([0.0, 0.30, 0.5]),
    soft_share=st.sampled_from([0.0, 0.20]),
    tail_share=st.sampled_from([0.0, 0.25]),
    min_turns=st.integers(0, 5),
    lenient_hard=st.booleans(),
    packing=st.sampled_from(["prefix", "skip", "excerpt"]),
)
BUDGETS = st.one_of(st.integers(0, 60), st.integers(60, 400), st.integers(400, 3000), st.just(10**12))


@st.composite
def cases(draw, counters=tuple(COUNTERS), settings=SETTINGS, most_standing=3, groups=("",), read=False):
    session = draw(units("t", st.just("now"), 8))
    others = draw(units("r", st.sampled_from([None, "now", "s1", "s2"]), 8))
    mixed = draw(st.permutations([*others, *session[:2], *others[:1]]))
    projection = [
        RecalledUnit(unit, 1.0 - index / 100, group=draw(st.sampled_from(groups)), read=read and draw(st.booleans()))
        for index, unit in enumerate(mixed)
    ]
    told = [*draw(units("i", st.sampled_from([None, "now", "s1"]), most_standing)), *session[:1], *others[:1]]
    standing = [
        StandingInstruction(unit, unit.text[: draw(st.sampled_from([3, None]))]) for unit in told if most_standing
    ]
    request = ContextRequest(
        draw(BUDGETS),
        COUNTERS[draw(st.sampled_from(counters))],
        draw(settings),
        hard=draw(nodes(0, 4)),
        soft=draw(nodes(100, 4)),
        session_turns=session,
        standing=standing,
        first=draw(st.sampled_from([None, *(entry.unit for entry in projection[:1])])) if most_standing else None,
        strict=draw(st.booleans()),
    )
    return request, projection


def moment(unit):
    """Order by time, then by session; whatever belongs to none has no order of its own there."""
    return (unit.event_time, unit.session or "", unit.position if unit.session else 0, unit.id)


GROUPED = cases(groups=("", "g", "h"))
READ = cases(groups=("", "g", "h", "i"), read=True)


def score(sentence):
    return float(len(sentence) % 4)


def assembled(request, projection):
    """Return the context, or None when there is a reason to refuse one; refusing without a reason fails."""
    base = base_start(len(request.session_turns), request.settings.min_turns)
    hard = section_text(RULES, authored_pieces(request.hard)[0])
    needed = request.counter(hard)
    last = request.counter(
        hard + section_text(recent_heading(), quotes(map(Quote.whole, request.session_turns[base:])))
    )
    refused = request.budget <= 0 or needed > request.budget or (request.strict and last > request.budget)
    try:
        context = assemble(request, projection, score)
    except BudgetError:
        assert refused
        return None
    assert not refused
    return context


def shown(context, name):
    return [item.id for item in context.section(name).items]


# -------------------------------------------------------------------------------------------------------- laws


@given(GROUPED)
def test_the_rendered_text_never_passes_the_budget(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    assert request.counter(context.text) == context.tokens <= request.budget
    assert sum(section.tokens for section in context.sections) == context.tokens


@given(cases(), st.integers(0, 1000))
def test_every_hard_rule_is_in_every_context_first_and_byte_for_byte(case, more):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    pieces, _ = authored_pieces(request.hard)
    hard = section_text(RULES, pieces)
    assert context.text.startswith(hard)
    assert shown(context, "hard") == [node_id(node) for node in request.hard]
    assert all(node.markdown in hard for node in request.hard)
    # Whatever else is asked for, the bytes at the front stay: prompt caches hold.
    other = assembled(
        dataclasses.replace(request, budget=request.budget + more, soft=(), strict=False), projection[::-1]
    )
    assert other is None or other.section("hard").text == context.section("hard").text


@given(cases())
def test_soft_rules_are_a_prefix(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    soft = shown(context, "soft")
    assert soft == [node_id(node) for node in request.soft][: len(soft)]


@costly
@given(GROUPED)
def test_tiers_are_disjoint_and_nothing_comes_from_elsewhere(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    parts = [item for item in context.section("standing").items if item.kind == "excerpt"]
    everything = [item.id for item in context.items if item not in parts]
    assert len(everything) == len(set(everything))
    assert set(shown(context, "tail")) <= {turn.id for turn in request.session_turns}
    assert set(shown(context, "projection")) <= {recalled.unit.id for recalled in projection}


@given(cases())
def test_the_tail_is_a_suffix_of_whole_turns_and_holds_the_last_ones_unless_degraded(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    session = [turn.id for turn in request.session_turns]
    tail = shown(context, "tail")
    assert tail == session[len(session) - len(tail) :]
    assert [item.text for item in context.section("tail").items] == [
        t.text for t in request.session_turns[len(session) - len(tail) :]
    ]
    base = session[base_start(len(session), request.settings.min_turns) :]
    if not context.degraded:
        assert set(base) <= set(tail)
        assert bool(base) or not tail
        return
    assert set(tail) <= set(base)
    assert shown(context, "soft") == shown(context, "projection") == []
    missing = [turn_id for turn_id in base if turn_id not in tail]
    assert all(turn_id in context.degraded for turn_id in missing)
    assert {left.id for left in context.left_out if left.cut == "tail"} == set(missing)
    if not missing:
        assert not request.settings.lenient_hard


@given(GROUPED)
def test_nothing_is_cut_silently(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    given_ids = {node_id(node) for node in (*request.hard, *request.soft)} | {r.unit.id for r in projection}
    given_ids |= set() if context.degraded else {one.unit.id for one in request.standing}
    told = {item.id for item in context.items} | {left.id for left in context.left_out}
    assert given_ids <= told
    for left in context.left_out:
        assert left.needed >= 0
        assert left.short >= (1 if left.cut in ("budget", "prefix") else 0)
    raw = {unit.id: unit.text for unit in (*request.session_turns, *(r.unit for r in projection))}
    for item in (*context.section("tail").items, *context.section("projection").items):
        whole = raw[item.id]
        assert (item.text == whole) == (item.kind == "whole")
        if item.kind == "excerpt":
            assert request.settings.packing == "excerpt"
            parts = [whole[start:end] for start, end in EXCERPT.spans(whole)]
            assert sum(part in item.text for part in parts) >= 1


@given(cases(counters=tuple(ADDITIVE)))
def test_standing_instructions_are_the_first_of_theirs_within_their_share(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    section = context.section("standing")
    assert section.tokens <= int(request.settings.standing_share * request.budget + 1e-9)
    tail, rest = set(shown(context, "tail")), set(shown(context, "projection"))
    fresh = [one.unit.id for one in request.standing if one.unit.id not in tail]
    assert shown(context, "standing") == fresh[: len(section.items)]
    assert rest.isdisjoint(item.id for item in section.items if item.kind == "whole")
    without = assembled(dataclasses.replace(request, standing=()), projection)
    for name in ("hard", "soft", "tail"):
        assert context.section(name) == without.section(name)
    if request.first and request.first.id in shown(without, "projection"):
        assert request.first.id in {*rest, *shown(context, "standing")} or projection[0].unit != request.first


@given(GROUPED)
def test_the_same_again_gives_the_same(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    again = dataclasses.replace(
        request,
        hard=tuple(request.hard),
        soft=tuple(request.soft),
        session_turns=tuple(request.session_turns),
    )
    plan = plan_tail(again)
    assert fill(plan, tuple(projection), score) == context
    assert fill(plan, tuple(projection), score) == context
    assert plan.room >= 0
    assert plan.tail_ids == set(shown(context, "tail"))


@given(GROUPED)
def test_a_group_stands_together_by_time_where_its_best_would_stand(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    ranks, units = {}, {}
    for rank, one in enumerate(projection):
        ranks.setdefault(one.unit.id, (one.group or str(rank), moment(one.unit)))
        units.setdefault(one.group or str(rank), rank)
    places = [(units[ranks[one][0]], ranks[one][1]) for one in shown(context, "projection")]
    assert places == sorted(places)


@given(READ)
def test_groups_that_were_read_share_out_their_places_the_newest_first(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    group_of = {one.unit.id: one.group for one in reversed(projection)}
    newest = {}
    for one in projection:
        if one.read and one.group:
            newest[one.group] = max(newest.get(one.group, moment(one.unit)), moment(one.unit))
    order = dict.fromkeys(group_of[one] for one in shown(context, "projection"))
    ages = [newest[group] for group in order if group in newest]
    assert ages == sorted(ages, reverse=True)


@given(READ)
def test_the_heading_says_best_first_only_where_groups_stand_by_rank(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    ranks, group_of = {}, {}
    for rank, one in enumerate(projection):
        group_of.setdefault(one.unit.id, one.group or rank)
        ranks.setdefault(one.group or rank, rank)
    order = [ranks[group_of[one]] for one in shown(context, "projection")]
    assert order == sorted(order) or "[recalled, newest first, " in context.section("projection").text


@given(GROUPED, st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 8))
def test_a_whole_memory_keeps_the_budget_and_its_share_or_is_none(case, share, found):
    request, recalled = case
    memory = sorted({one.unit.id: one.unit for one in recalled}.values(), key=moment)
    assume(request.budget > 0 and memory)
    settings = dataclasses.replace(request.settings, fill=share)
    try:
        plan = plan_tail(dataclasses.replace(request, settings=settings))
    except BudgetError:
        assume(False)
    memory = [unit for unit in memory if unit.id not in plan.shown_ids]
    context = fill_whole(plan, recalled[:found], memory, score)
    if context is None:
        return
    assert request.counter(context.text) == context.tokens <= request.budget
    assert sum(section.tokens for section in context.sections) == context.tokens
    items = context.section("projection").items
    assert {unit.id for unit in memory} <= {item.id for item in items if item.kind == "whole"}
    rest = [item.id for item in items if item.score is None]
    assert rest == [unit.id for unit in memory if unit.id not in {one.unit.id for one in recalled[:found]}]
    assert [item.id for item in items][len(items) - len(rest) :] == rest
    assert not context.degraded or not memory
    if request.counter is len:
        assert len("".join(map(escape, (unit.text for unit in memory)))) <= share * request.budget
    told = {item.id for item in context.items} | {left.id for left in context.left_out}
    assert told >= {one.unit.id for one in recalled[:found]}


# ---------------------------------------------------------------------------------- slow and obvious, and the same


def text_of(request, soft, start, projection=()):
    rules, headings = authored_pieces(request.hard)
    guidance, _ = authored_pieces(request.soft, headings)
    recalled, cursor = [], Cursor(numbered=True)
    for entry in projection:
        piece, cursor = quote(Quote.whole(entry.unit), cursor)
        recalled.append(piece)
    return (
        section_text(RULES, rules)
        + section_text(GUIDANCE, guidance[:soft])
        + section_text(recent_heading(), quotes(map(Quote.whole, request.session_turns[start:])))
        + section_text(recalled_heading(), recalled)
    )


def expected(request, projection):
    """Return (soft, start, projection ids) by trying everything in order; for a request that is not degraded."""
    tau, turns, settings = request.budget, request.session_turns, request.settings
    count = request.counter
    base = base_start(len(turns), settings.min_turns)
    hard = count(text_of(request, 0, len(turns)))
    with_base = count(text_of(request, 0, base))
    soft_bound = min(int(settings.soft_share * tau + 1e-9), max(0, tau - with_base))
    soft = max(n for n in range(len(request.soft) + 1) if count(text_of(request, n, base)) - with_base <= soft_bound)
    i2 = count(text_of(request, soft, base)) - with_base
    bound = min(max(int(settings.tail_share * tau + 1e-9), with_base - hard), tau - hard - i2)
    starts = safe_starts(turns, base) if base < len(turns) else []
    fitting = [start for start in starts if count(text_of(request, soft, start)) - hard - i2 <= bound]
    start = min(fitting, default=base)
    tail, chosen = {turn.id for turn in turns[start:]}, []
    for entry in projection:
        if entry.unit.id in tail | {taken.unit.id for taken in chosen}:
            continue
        if count(text_of(request, soft, start, [*chosen, entry])) <= tau:
            chosen.append(entry)
        elif settings.packing == "prefix":
            break
    return soft, start, [entry.unit.id for entry in chosen]


WHOLE = st.builds(
    AssemblySettings,
    hard_share=st.just(0.5),
    soft_share=st.sampled_from([0.0, 0.20]),
    tail_share=st.sampled_from([0.0, 0.25]),
    min_turns=st.integers(0, 5),
    packing=st.just("prefix"),
)
SKIPPING = st.builds(dataclasses.replace, WHOLE, packing=st.just("skip"))


@given(cases(tuple(MONOTONE), WHOLE, 0))
def test_a_prefix_is_the_longest_that_fits(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None and not context.degraded)
    soft, start, ids = expected(request, projection)
    assert len(shown(context, "soft")) == soft
    assert len(shown(context, "tail")) == len(request.session_turns) - start
    assert shown(context, "projection") == ids


@given(cases(tuple(ADDITIVE), SKIPPING, 0))
def test_skipping_takes_whatever_still_fits(case):
    request, projection = case
    request = dataclasses.replace(request, settings=dataclasses.replace(request.settings, item_tokens=0))
    context = assembled(request, projection)
    assume(context is not None and not context.degraded)
    assert shown(context, "projection") == expected(request, projection)[2]


@given(cases(tuple(MONOTONE)))
def test_a_tail_that_splits_a_bundle_is_said_to(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None and not context.degraded and shown(context, "tail"))
    start = len(request.session_turns) - len(shown(context, "tail"))
    base = base_start(len(request.session_turns), request.settings.min_turns)
    split = start not in safe_starts(request.session_turns, base)
    assert split == any("inside a bundle" in warning for warning in context.warnings)
    assert not split or start == base


# --------------------------------------------------------------------------------------------------- rendering

# A line of ours ends at a line break with no mark behind it.
LINES = re.compile(f"(?>\r\n|[{LINE_BREAKS}])(?!>)")
STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d"
PLACE = re.compile(rf"{STAMP}(?: to {STAMP})?(?: #\d+)?(?: (?:tool|document|authored|summary))?")
ENTRY = re.compile(r"(?:\d\d:\d\d )?(?P<name>[^:\[\]>]+?)(?P<excerpt> \(excerpt of \S+\))?: (?P<text>.*)", re.DOTALL)


def read_back(section, heading):
    """Read the quotes of a section by nothing but their frames."""
    if not section:
        return []
    first, *lines, last = LINES.split(section)
    assert (f"{first}\n", last) == (heading, "")
    entries = [line for line in lines if not PLACE.fullmatch(line)]
    assert PLACE.fullmatch(lines[0])
    return [unescape(ENTRY.fullmatch(line)["text"]) for line in entries]


@given(TEXTS)
def test_escaping_can_be_undone_and_leaves_no_line_at_the_margin(text):
    escaped = escape(text)
    assert unescape(escaped) == text
    assert len(LINES.split(escaped)) == 1
    assert all(line.startswith(">") for line in escaped.splitlines()[1:])
    assert not set(escaped).intersection([*LINE_BREAKS[2:], *OBEYED[:-2]])


@given(cases())
def test_no_words_can_open_close_or_imitate_a_frame(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    for name, heading in (("tail", recent_heading()), ("projection", recalled_heading())):
        section = context.section(name)
        assert read_back(section.text, heading) == [item.text for item in section.items]


@given(cases())
def test_the_text_follows_from_the_items_alone(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    known = {recalled.unit.id: recalled.unit for recalled in projection}
    pieces, cursor = [], Cursor(numbered=True)
    for item in context.section("projection").items:
        unit = known[item.id]
        quoted = Quote.whole(unit) if item.kind == "whole" else Quote.part(unit, item.text)
        piece, cursor = quote(quoted, cursor)
        pieces.append(piece)
    assert context.section("projection").text == section_text(recalled_heading(), pieces)
    start = len(request.session_turns) - len(shown(context, "tail"))
    assert context.section("tail").text == section_text(
        recent_heading(), quotes(map(Quote.whole, request.session_turns[start:]))
    )


@given(cases())
def test_messages_say_the_same_and_never_as_the_system(case):
    request, projection = case
    context = assembled(request, projection)
    assume(context is not None)
    messages = context.as_messages()
    assert "".join(message["content"] for message in messages) == context.text
    assert {message["role"] for message in messages} <= {"user"}
