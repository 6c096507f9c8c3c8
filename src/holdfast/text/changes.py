"""Changed facts (C19): whether a new statement takes the place of an earlier one.

Conservative on purpose, because what is taken for replaced is no longer recalled by default. A change needs words
that say so ("moved", "new", "switched", "now", "no longer", "instead", "changed to"), or a relation that has one
value at a time with both sides plain present statements. Speaker and subject must be the same. Questions, hedges,
plans, reports, the past, additions ("also", "too") and what holds only at times ("at weekends", "until Friday")
never replace anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from holdfast.text.calendar import MONTHS
from holdfast.text.facts import StatedTriple, extract, is_uncertain, resolve_speaker, speaker_of
from holdfast.text.grammar import ADVERBS, has_shape, may_begin_name
from holdfast.text.names import symbol
from holdfast.text.sentences import PROSE, is_question, memoize_short, parts_in, read_sentence
from holdfast.text.words import any_of, regex, words
from holdfast.types import Unit
from holdfast.values import dataclass

# Usually one value at a time: a second one replaces the first when its words speak of a change. Without such words
# "I live in England" may only say more about "I live in Leeds", so that the plain rule needs a declared relation.
_MARKED = frozenset({"lives_in", "works_at", "works_as", "married_to", "drives"})
_SINGLE = frozenset(words("changes", "single"))


def _any_of(name: str) -> re.Pattern[str]:
    return regex(rf"\b{any_of('changes', name)}\b", re.IGNORECASE)


_ADDS, _AT_TIMES, _ENDED, _MARKER = map(_any_of, ("adds", "at_times", "ended", "markers"))
# The first words of every marker, and what the patterns below ask for: most turns have none, and need not be read.
_CHANGE_WORDS = frozenset(words("changes", "first_words"))
_ANY_CHANGE = regex(
    rf"{_MARKER.pattern}|{_ENDED.pattern}|\b(?:{any_of('changes', 'leads')}|{any_of('changes', 'gone')}|"
    rf"{any_of('changes', 'reset')})\b",
    re.IGNORECASE,
)

# Words that somebody else says, or that are written for somebody: a colon, a quote, code, a text to work on.
_QUOTING = regex(
    r"""(?<!\d)(?<!update)(?<!news):|["“”„«»`>]|\b(?:stor(?:y|ies)|letter|essay|poem|novel|script|lyrics|quote|proofread|translate|rewrite|draft)\b""",
    re.IGNORECASE,
)
_TITLE = regex(r"""["“«](?![^"“”«»]*\b(?:i|we|my|our)\b)[^"“”«»\n]*["”»]""", re.IGNORECASE)

_WEEKDAY = any_of("calendar", "weekdays")
_VALUE = r"(?P<value>(?:[^,;:!?()]|(?<=\d)[:,](?=\d))+?)"
# Where one clause of a sentence ends: a mark, or a conjunction with a new subject behind it.
_SUBJECT = regex(r"(?:i|we|my|our|the|he|she|it|they|you|which|so|because|since|but)\b", re.IGNORECASE)
_CUT = regex(
    r"(?:[,;:—–]|\s-)\s+(?:(?:and|but|so|because|while|though|then)\s+)?"
    rf"|\s(?:and|but|so|because|while|since|though)\s+(?={_SUBJECT.pattern})",
    re.IGNORECASE,
)
_LEADS = regex(rf"(?:(?:(?P<mark>{any_of('changes', 'leads')})|{any_of('changes', 'fillers')}),? )+", re.IGNORECASE)
_SHORT = (("'m ", " am "), ("'re ", " are "), ("n't ", " not "), ("'ve ", " have "))
_HABITS = frozenset(words("changes", "habits"))
_FORMS = {
    form: verb
    for verb in _HABITS
    for form in (verb, f"{verb}s", f"{verb}es", f"{verb}ing", f"{verb[:-1]}ing", f"{verb}{verb[-1]}ing")
}
_VERBS = _FORMS.keys() | {"am", "is", "are"}
_ADVERB = "(?:currently |just |finally |actually |recently )?"
# "My new phone is a Pixel", "the meeting is now at 4", "I no longer drink coffee", "I stopped smoking".
_STATES = regex(
    r"^(?P<owner>i|we|(?P<of>my|our|the|(?-i:(?!It'|That'|Here'|There'|What'|[HS]h?e'|Who'|This'|Let')[A-Z]\w+'s)))"
    rf"(?(of) (?P<renewed>new |current )?(?P<what>[\w'-]+(?: [\w-]+){{0,3}}?)) {_ADVERB}(?P<now>now )?"
    r"(?:(?P<not>no longer|(?:do|does) not|(?:have )?(?:stopped|quit|gave up|given up)) )?"
    rf"(?:(?:am|is|are) (?P<never>no longer |not )?{_ADVERB}(?P<then>now )?|"
    rf"(?P<verb>{'|'.join(sorted(_FORMS, key=len, reverse=True))})(?: |(?=[.!]*$)))"
    rf"(?:{_VALUE})??(?P<later> ?\b{any_of('changes', 'lately')})?[.!]*$",
    re.IGNORECASE,
)
# "The meeting was moved to 4", "my address changed to 9 Quay Street"; "they moved the meeting to 4" is put so, too.
_RESET = regex(
    rf"^(?P<owner>the|my|our) (?P<what>[\w-]+(?: [\w-]+){{0,3}}?) (?:(?:was|is|has been|got|has) )?"
    rf"(?:now |just |recently )?(?P<verb>{any_of('changes', 'reset')}) (?:from (?P<old>[^,;]+?) )?to {_VALUE}"
    r"(?: (?:by|starting|from|as of|effective) .*)?[.!]*$",
    re.IGNORECASE,
)
_RESET_BY = regex(
    rf"^(?:they|we|i|he|she) (?:have |had to |just )?({any_of('changes', 'reset')}) (?:back )?((?:the|my|our) .+?) "
    r"(?:back )?(?=(?:from .+ )?to )",
    re.IGNORECASE,
)
# "I cancelled Netflix", "we dropped Slack for Zulip"; "we're moving to Breda in May", "we moved in last week".
_NAMED = r"(?P<value>(?-i:[A-Z])[\w.'-]*?(?: (?-i:[A-Z])[\w.'-]*?)*)"
_GONE = regex(
    rf"^(?:i|we) (?:have )?{_ADVERB}(?P<verb>{any_of('changes', 'gone')}) (?:(?:my|our|the) )?"
    rf"(?P<old>[\w.'-]+?(?: [\w.'-]+?){{0,3}}?)(?: for (?:{_NAMED}|good))?"
    r"(?: (?:last|this|yesterday|today|because|since|in|on|after|again) .*)?[.!]*$",
    re.IGNORECASE,
)
_PLANNED = regex(
    r"^(?:i|we) (?:(?:am|are|will be) (?:\w+ )?(?:moving|relocating)|(?:will|am going to|are going to) move) "
    rf"(?:(?:back|down|up|over|out) )?to {_NAMED}(?: [a-z].*)?[.!]*$",
    re.IGNORECASE,
)
_FULFILLED = regex(
    rf"^(?:i|we) (?:have )?{_ADVERB}moved(?: in| house)?(?: (?:last|yesterday|today|on|this|over) ?.*)?[.!]*$",
    re.IGNORECASE,
)
# "Actually it is Tuesday, not Monday".
_CORRECTION = regex(
    rf"^(?P<mark>actually|sorry|correction|no)[,:]? (?:it is|it's|that is|that's) (?:on |at |in )?{_VALUE},? not "
    r"(?:on |at |in )?(?P<old>[^,;:!?()]+?)[.!]*$",
    re.IGNORECASE,
)
# Small words inside a day or a time.
_SMALL = frozenset({"of", "pm", "am"})
_TIME = regex(r"^\d{1,2}(?:[:.]\d\d)?(?: ?[ap]\.?m\.?)?$", re.IGNORECASE)
_MONTH, _ORDINAL = "|".join(MONTHS), r"\d{1,2}(?:st|nd|rd|th)?"
_DAY = regex(rf"^(?:{_WEEKDAY}s?|{_ORDINAL} (?:of )?(?:{_MONTH})|(?:{_MONTH}) {_ORDINAL})$", re.IGNORECASE)
_NO_VALUES = frozenset({"not", "no", "on", "at", "in", "so", "very", "more"})
_INTENDED = ("going to ", "about to ", "trying to ", "planning ", "thinking ", "looking ")
_UNITS, _LISTED = frozenset(words("changes", "units")), frozenset(words("changes", "listed"))
_NUMBER = regex(r"\d+(?:[.,:]\d+)*")
# In characters, and of a sentence: they bound the search, and nobody tells a change at such length.
_LONGEST_CLAUSE, _MOST_CLAUSES = 200, 64
_MOST_VALUE_WORDS = 5  # nobody repeats more when it changes
# Where the words of a habit end and its value begins: "play badminton on | Mondays", "get up at | 7".
_MEASURED = regex(rf"^(?P<middle>(?:[a-z-]+ )*?)(?P<value>[$£€]?\d.*|{_WEEKDAY}s?)$", re.IGNORECASE)
# States of which a person is in one at a time.
_EXCLUSIVE = {word: row for row in words("changes", "exclusive") for word in row.split()}
# What a thing that is given up was to somebody; who gives up a thing may still like it.
_KEPT_SLOTS = frozenset({"likes", "dislikes", "lives_in", "works_at", "works_as", "married_to", "speaks", "prefer"})


@dataclass(frozen=True, slots=True)
class Assertion:
    """What a unit says that a later one could replace: one value in one slot of one subject.

    `marker` holds the words that speak of a change, `replaces` the value that is said to go; an `ended` assertion
    only takes its value away. A correction has no subject and no slot of its own. A table of facts shows what is
    `listed`; "I'm at the station" can end, but nobody asks for it. A `planned` one does not hold yet.
    """

    speaker: str
    subject: str
    slot: str
    value: str
    start: int
    end: int
    marker: str = ""
    replaces: str = ""
    ended: bool = False
    adds: bool = False
    listed: bool = False
    planned: bool = False

    @property
    def told(self) -> bool:
        """Return whether a table of facts has it, at least when it has changed: "I'm on page 200"."""
        return self.listed or _sort(self.value) != "name"

    def may_change(self, functional: frozenset[str]) -> bool:
        """Return whether it may replace an earlier one, or take it away."""
        return bool(self.marker or self.replaces or self.ended or self.slot in functional)


@dataclass(frozen=True, slots=True)
class StatementChange:
    """A replaced value: its slot, the value that goes, the one that comes ("" when none), the rule and the words."""

    slot: str
    old: str
    new: str
    rule: str
    words: str


def is_quoting(text: str) -> bool:
    """Return whether a text holds words that its speaker may not mean; the quoted title of a book is none."""
    return _QUOTING.search(_TITLE.sub("", text)) is not None


def speaks_of_change(text: str) -> bool:
    """Return whether a text may say that something changed: a cheap look before it is read."""
    return not _CHANGE_WORDS.isdisjoint(parts_in(text)) and _ANY_CHANGE.search(text) is not None


@memoize_short
def read_assertions(text: str, speaker: str) -> tuple[Assertion, ...]:
    """Return what `text`, said by `speaker`, states in a form that can replace or be replaced."""
    found: list[Assertion] = []
    stated, changing = resolve_speaker(extract(text), speaker), speaks_of_change(text)
    for start, end in PROSE.spans(text):
        said = text[start:end].replace("’", "'")
        own = [one for one in stated if one.start == start]
        if own and not _AT_TIMES.search(said):
            found.extend(_from_facts(own, said, speaker))
        read = [*_from_patterns(said, (start, end), speaker, changing=changing)]
        if read and not is_question(text, start, end) and not is_uncertain(read_sentence(text, start, end)):
            found.extend(one for one in read if one.listed or one.slot != "is" or not own)
    return tuple(dict.fromkeys(fulfil_plans(found, ())))


def fulfil_plans(said: Iterable[Assertion], before: Iterable[Assertion]) -> tuple[Assertion, ...]:
    """Return the assertions of a turn, where "we moved in" is given the place that was planned, by it or before."""
    told = (*said,)
    plans = {one.subject: one.value for one in (*before, *told) if one.planned}
    return tuple(
        replace(one, slot="lives_in", value=plans[one.subject], listed=True)
        if one.slot == "moved" and one.subject in plans
        else one
        for one in told
    )


def read_assertions_of(unit: Unit) -> tuple[Assertion, ...]:
    """Return what a turn of a user asserts; any other unit nothing."""
    return read_assertions(unit.text, speaker_of(unit)) if unit.kind == "turn" and unit.author == "user" else ()


def find_changes(
    new: Iterable[Assertion], old: Iterable[Assertion], functional: frozenset[str] = frozenset()
) -> tuple[StatementChange, ...]:
    """Return every change that the assertions of one unit make to those of an earlier one, each once."""
    earlier = tuple(old)
    found = (find_change(one, other, functional) for one in new for other in earlier)
    return tuple(dict.fromkeys(one for one in found if one))


def find_change(new: Assertion, old: Assertion, functional: frozenset[str] = frozenset()) -> StatementChange | None:
    """Return how `new` changes what `old` said, or None. The caller knows that `new` is the later one.

    `functional` names the slots declared to have one value (C8: none by default), such as `lives_in` or `has car`:
    there a second plain statement is enough.
    """
    if new.speaker != old.speaker or old.ended or new.adds or new.planned or old.planned:
        return None
    rule = _rule(new, old, functional)
    return StatementChange(old.slot, old.value, "" if new.ended else new.value, rule, new.marker) if rule else None


def _rule(new: Assertion, old: Assertion, functional: frozenset[str]) -> str:
    """Return the name of the rule by which `new` takes the place of `old`, or nothing."""
    if new.replaces and symbol(new.replaces) == symbol(old.value) and _may_replace(new, old):
        return "replaced"
    if new.ended:
        return "ended" if _ends(new, old) else ""
    if (
        symbol(new.subject) != symbol(old.subject)
        or not _fill_one_slot(new, old)
        or not _differ(new.value, old.value)
    ):
        return ""
    if new.marker and (old.slot in functional | _MARKED or _is_single(old.slot) or _are_alike(new, old)):
        return "marked"
    return "functional" if old.slot in functional else ""


def _ends(new: Assertion, old: Assertion) -> bool:
    if new.slot == "gone":
        return _may_give_up(new, old)
    # Who no longer studies biology does not study it at Leiden either.
    same = f"{symbol(old.value)} ".startswith(f"{symbol(new.value)} ")
    return same and symbol(new.subject) == symbol(old.subject) and _fill_one_slot(new, old)


def _may_give_up(new: Assertion, old: Assertion) -> bool:
    """Return whether what is given up is what `old` speaks of: "my phone is a Pixel", "I'm subscribed to Netflix"."""
    given, had = symbol(new.replaces or new.value), symbol(old.value)
    mine = f"{old.subject} ".startswith(f"{new.subject} ") and old.slot not in _KEPT_SLOTS
    return mine and (given == had or (old.slot == "is" and had.endswith(f" to {given}")))


def _may_replace(new: Assertion, old: Assertion) -> bool:
    """Return whether the value that `new` says goes can be the one of `old`."""
    if new.slot == "gone":
        return _may_give_up(new, old)
    if not new.slot:
        return True  # a correction names what it corrects
    if symbol(new.subject) == symbol(old.subject):
        return _fill_one_slot(new, old)
    # "I switched from the ThinkPad to …" is about "my laptop is a ThinkPad".
    return new.slot == "uses" and old.slot.startswith("has ") and old.subject == f"{new.subject} {old.slot[4:]}"


def _fill_one_slot(new: Assertion, old: Assertion) -> bool:
    """Return whether both fill one slot; "moved to Friday" fills whichever slot holds a day."""
    if "is reset" not in {new.slot, old.slot}:
        return new.slot == old.slot
    one_thing = all(one.slot.startswith(("is ", "has ")) for one in (new, old))
    return one_thing and (_sort(new.value) == _sort(old.value) or _is_single(old.slot))


def _sort(value: str) -> str:
    """Return what sort of value it is: a meeting at 3 that was moved to Friday may still be at 3.

    A number is of the sort of the words around it: "1590 euros", "port 8000".
    """
    if _TIME.match(value):
        return "time"
    if _DAY.match(value):
        return "day"
    return _NUMBER.sub("#", value.lower()) if _NUMBER.search(value) else _EXCLUSIVE.get(value.lower(), "name")


def _are_alike(new: Assertion, old: Assertion) -> bool:
    """Return whether two values of a slot are of one sort, so that the later one takes the other's place."""
    sort = _sort(new.value)
    if sort != _sort(old.value):
        return False
    if sort != "name" or old.slot.startswith("is "):
        return True
    # "Dark mode" and "light mode", "on the night shift" and "on the day shift".
    one, other = new.value.lower().split(), old.value.lower().split()
    differ = [k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
    turned = len(one) == len(other) and len(differ) == 1 and differ[0] < len(one) - 1
    return turned and (old.slot == "is" or old.slot in _FORMS) and old.slot != "have"


def _is_single(slot: str) -> bool:
    return slot.startswith("favourite_") or (slot.startswith("has ") and slot.rsplit(maxsplit=1)[-1] in _SINGLE)


def _differ(new: str, old: str) -> bool:
    """Return whether two values exclude each other; "Lisbon" and "Lisbon Portugal" only say more or less."""
    one, other = set(symbol(new).split()), set(symbol(old).split())
    return not one <= other and not other <= one


def _from_facts(stated: list[StatedTriple], said: str, speaker: str) -> Iterator[Assertion]:
    adds, ended = _ADDS.search(said) is not None, _ENDED.search(said)
    gone = {one.fact.relation: one.fact.object for one in stated if one.negated and one.rule in {"shift", "contrast"}}
    kept = {one.fact.relation for one in stated if not one.negated}
    clauses = [clause[:_LONGEST_CLAUSE] for clause in _CUT.split(said, _MOST_CLAUSES)]
    for one in stated:
        parts = (speaker, one.fact.subject, one.fact.relation, one.fact.object, one.start, one.end)
        if not one.negated:
            # The words of change stand in the clause of the value: "I live in Leeds and I have a new job".
            clause = next((clause for clause in clauses if one.fact.object in clause), said[:_LONGEST_CLAUSE])
            marker = _MARKER.search(clause.replace(one.fact.object, ""))  # "New York" is not new
            mark = marker.group().lower() if marker else ""
            yield Assertion(*parts, mark, gone.get(one.fact.relation, ""), adds=adds)
        elif ended and one.fact.relation not in kept:
            yield Assertion(*parts, ended.group().lower(), ended=True)


def _from_patterns(said: str, span: tuple[int, int], speaker: str, *, changing: bool) -> Iterator[Assertion]:
    """Yield what a sentence says of which each clause, or the whole, is one of the patterns."""
    if changing and len(said) <= _LONGEST_CLAUSE and (match := _CORRECTION.match(said)):
        yield Assertion(speaker, "", "", _bare(match["value"]), *span, match["mark"].lower(), _bare(match["old"]))
        return
    for short, long in _SHORT if "'" in said else ():
        said = said.replace(short, long)
    lead = _LEADS.match(said)
    corrects, adds = (lead["mark"] or "").lower() if lead else "", _ADDS.search(said) is not None
    clauses = [one[:_LONGEST_CLAUSE] for one in _CUT.split(said[lead.end() :] if lead else said)]
    for clause, after in zip(clauses, (*clauses[1:], ""), strict=True):
        denied = _bare(after[4:]) if after.startswith("not ") else ""
        for one in _from_clause(clause, span, speaker, changing=changing):
            # "I prefer a clean, professional style": what stands before a comma may go on behind it.
            apart = not after or bool(denied) or _SUBJECT.match(after) is not None
            whole = apart or one.marker or _sort(one.value) != "name"
            if whole and (apart or not _AT_TIMES.search(after)):  # "I start at 8 now, just for this week"
                yield replace(one, marker=one.marker or corrects, replaces=one.replaces or denied, adds=adds)
        corrects = ""


def _from_clause(clause: str, span: tuple[int, int], speaker: str, *, changing: bool) -> Iterator[Assertion]:
    if speaker and " mov" in clause and (match := _PLANNED.match(clause)):
        if has_shape(match["value"], "place"):
            yield Assertion(speaker, speaker, "lives_in", match["value"], *span, planned=True)
    elif not _VERBS.isdisjoint(clause.lower().rstrip(".!").split()) and (match := _STATES.match(clause)):
        yield from _from_state(match, span, speaker)
    elif not changing or _AT_TIMES.search(clause):
        return
    elif match := _RESET.match(_RESET_BY.sub(r"\2 \1 ", clause)):
        what, verb, mine = match["what"].lower(), match["verb"].lower(), match["owner"].lower() != "the"
        if _is_definite(match["value"]) and (speaker or not mine):
            subject, slot = (f"{speaker} {what}", f"has {what}") if mine else (what, "is reset")
            value, old = _bare(match["value"]), _bare(match["old"] or "")
            yield Assertion(speaker, subject, slot, value, *span, verb, old, listed=mine)
    elif speaker and (match := _GONE.match(clause)):
        old, verb, value = _bare(match["old"]), match["verb"].lower(), match["value"] or ""
        if value and verb != "sold":
            yield Assertion(speaker, speaker, "gone", value, *span, verb, old)
        else:
            slot = "works_at" if old.startswith("job at ") else "gone"
            yield Assertion(speaker, speaker, slot, old.removeprefix("job at "), *span, verb, ended=True)
    elif speaker and _FULFILLED.match(clause):
        yield Assertion(speaker, speaker, "moved", "", *span, "moved")


def _from_state(match: re.Match[str], span: tuple[int, int], speaker: str) -> Iterator[Assertion]:
    """Yield what "I run on Mondays now", "my rent is 900 euros" or "I'm not vegan any more" says."""
    part = {name: (found or "").strip().lower() for name, found in match.groupdict().items()}
    owner, what, form = part["owner"], part["what"], part["verb"]
    denial, lately = part["not"] or part["never"], part["later"] or part["now"] or part["then"]
    ended = bool(denial) and (not denial.endswith("not") or lately.startswith(("any", "no ")))
    stops = ended and not denial.endswith(("not", "longer"))
    # Whose it is; no name is "the memories we" have, nor "my full" study plan.
    mine, alone = owner in {"i", "we", "my", "our"}, owner in {"i", "we"}
    named = all(may_begin_name(word) and word not in ADVERBS for word in what.split())
    agrees = (
        (form.endswith("ing") == stops and (alone or form not in _HABITS or what.endswith("s"))) if form else True
    )
    if not named or not agrees or (mine and not speaker) or (denial and not ended):
        return
    slot, value, listed = _slot_of(match, owner, what)
    day = value if _sort(value) == "day" else "|"  # a day as the value is no time at which something else holds
    if not value or value.lower().startswith(_INTENDED) or _AT_TIMES.search(match.string.replace(day, "", 1)):
        return
    subject = f"{speaker} {what}" if mine else what if owner == "the" else f"{match['owner'][:-2]} {what}"
    marker = denial if ended and not denial.endswith("not") else lately or part["renewed"].removeprefix("current")
    listed = listed and all(map(may_begin_name, value.lower().split()))
    yield Assertion(speaker, subject.strip(), slot, value, *span, marker, ended=ended, listed=listed)


def _slot_of(match: re.Match[str], owner: str, what: str) -> tuple[str, str, bool]:
    """Return the slot that a clause fills, its value, and whether a table of facts has it."""
    value, verb = (match["value"] or "").strip(), _FORMS.get((match["verb"] or "").lower(), "")
    if len(value.split()) > _MOST_VALUE_WORDS or what.startswith(
        ("favourite ", "favorite ")
    ):  # facts have favourites
        return "", "", False
    if verb:
        measured, listed = _MEASURED.match(value), verb in _LISTED
        if measured:
            return f"{verb} {measured['middle']}".strip().lower(), measured["value"], verb != "have"
        if verb == "have" and not value.lower().startswith(("a ", "an ", "the ", "my ", "our ")):
            return "", "", False  # "I have to go now"
        return (verb, _bare(value), listed) if value else ("does", verb, listed)
    where, _, rest = value.partition(" ") if value[:3].lower() in {"on ", "at ", "in "} else ("", "", value)
    if not what or not _is_definite(rest):
        return "is", value, value.lower() in _EXCLUSIVE
    return (f"is {where.lower()}" if owner == "the" else f"has {what}"), _bare(rest), True


def _bare(value: str) -> str:
    return re.sub(r"^(?:a|an|the|on|at|in) ", "", value.strip().rstrip("."), flags=re.IGNORECASE)


def _is_definite(value: str) -> bool:
    """Return whether a value could be told apart from another: a number, a day, a name, an identifier, "a Pixel"."""
    said = value.strip().split()
    if not 0 < len(said) <= _MOST_VALUE_WORDS or said[0].lower() in _NO_VALUES:
        return False
    bare = [word.lower() if word.islower() else word for word in _bare(value).split()]
    counted = bool(bare) and bare[0][-1:].isdigit()  # "1590 euros a month"
    return bool(bare) and all(
        _tells(word) or word.lower() in MONTHS or word in _SMALL or (counted and word in _UNITS) for word in bare
    )


def _tells(word: str) -> bool:
    return any(c.isdigit() or c.isupper() for c in word) or "@" in word
