"""Train the model that tells what asks, and what puts off an answer, and write it as data of the package.

    python scripts/build_asking.py DIR [--out src/holdfast/text/asking.json]

DIR holds `items/*.jsonl` and `lives/*.jsonl`: invented chats with questions, written for the readers of this project.
Their questions ask; of their turns, those that answer a question state; what an assistant says of looking first puts
off. How questions are led up to, and how one stands beside what states something, is made from lists below. Authors
in `ASIDE` are kept from a first training, and the least sum at which a sentence asks is chosen on them. The same
texts give the same bytes.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.text.asking import features_of, parts_of
from holdfast.text.sentences import PROSE

ASIDE = frozenset({"w8", "w13", "w16", "lives3"})
# How many words are known by themselves, and by how many authors each must have been used; a name is used by few.
KNOWN, AUTHORS_OF_WORD, AUTHORS_OF_FEATURE, MOST_OF_AUTHOR = 1000, 6, 3, 40
SPARSITY, ROUNDS = 1.0, 150
# Weights are integers of 1/8.
SCALE = 8
# A statement that is taken for a question costs more than a question that is not found.
ASKED, ASKED_BY_MARK, STOPPED, MADE = 0.5, 1.0, 0.2, 0.5
TOLD, ASKED_WHILE_TELLING, MADE_TOLD = 2.0, 6.0, 0.7
# How what asks may end; a full stop is rare, and of a bare topic it is none.
ENDS = ("", "?", "", "?", ".", "?", "")
# At most so many of the turns that answer may be taken for questions; one step of a threshold is half a unit.
MOST_WRONG, STEPS = 0.005, range(0, 4 * SCALE, SCALE // 2)

WH = frozenset("what which who whom whose where when why how".split())
AUXILIARIES = frozenset("do does did is are was were am has have had can could should will would".split())
SUBJECTS = frozenset("i he she we they it you".split())
PLACES = frozenset("to in for at on".split())
NAMED = frozenset("the my his her our that this their those".split())

LEADS = """
tell me|please tell me|pls tell me|can you tell me|could you tell me|can u tell me|would you tell me|so tell me
tell me again|just tell me|remind me|please remind me|can you remind me|could you remind me|remind me again
pls remind me|do you know|do you remember|do you recall|do u know|do u remember|do you happen to know
do you still know|you know|any chance you know|would you know|i wonder|i was wondering|was wondering|just wondering
wondering|i'm wondering|i keep wondering|i was asking myself|i ask myself|i'm trying to remember|trying to remember
i was trying to recall|i forgot|i forget|i've forgotten|i have forgotten|i always forget|i can't remember
i cant remember|can't remember|cant remember|i don't remember|dont remember|i can't recall|i don't recall
i no longer remember|i have no idea|no idea|no idea any more|i've no idea any more|no clue|i don't know any more|dunno
i don't know|idk|i'm not sure any more|not sure any more|i've lost track of|i lost track of|i can never remember
my head is empty:|i'm drawing a blank on|i blanked on|i'd like to know|i would like to know|i want to know
i need to know|i have to know|i'd love to know|need to know|want to know|i should know|i'm curious|curious
he wants to know|she wants to know|they want to know|my wife wants to know|the doctor wants to know|she asks|he asks
they're asking|my mum is asking|somebody asked me|the form asks|a form wants to know|they ask me|the clerk asks
quick one:|quick question:|quick question,|question:|one question:|dumb question,|silly question:|sorry,|hey|hi,|hey,
hello,|ok so|so|and|btw|by the way,|again:|also,|oh and|well,|hang on,|wait,|ai|hm,|hmm|listen,|look,|honestly,
can you check|could you check|check for me|look up|can you look up|find out|help me remember|can you find|can you see
let me know|say again|say|you asked:|you asked|you wanted to know|you want to know
"""
WANTS = """
can you list|could you list|list for me|can you list for me|list me|list|please list|show me|can you show me|give me
can you give me|could you give me|pls give me|tell me about|remind me of|can you give me again|i need|i'm looking for
what about|what was|what's|whats|any idea of|do you have|have you got|i lost|i forgot|i can't find|can't remember
read me|read me again|repeat|do you remember|do u remember|do you know|do u know|remember|hey do you know|you know
do you still have|hey what was|hi what is|so what is|and what about|no idea any more of|i was wondering about
wondering about|can you see|can you find|look up|check|i need a list of|we need a list of|can you make a list of
i want a list of|give me a list of|i need to know
"""
# What is wanted again, of which there may be several.
WANTED = """
you wrote|you made|you wrote for me|i gave you|i sent you|we wrote|we made|i told you about|we agreed on|i told you
again|you sent me|i asked for|we talked about|i mentioned|you suggested|from last week
"""
TAILS = """
please|pls|again|again please|for a form|for the form|lol|exactly|do you know|you know|any idea|by the way|in the end
these days|to be exact|they ask me|if you know|or not|or what|yes or no|i mean|in total|roughly|can you tell me
remind me|i forgot|tell me|nowadays|at the moment|so far|for the doctor|for the paperwork
"""
BEFORE = """
for the form|for my mother|in March|last week at work|on Sunday|for the letter|at the school|in the old flat
about the trip|before the move|in the beginning|during the summer|back in May|of all the books|on that day
Nora|mum|Tom|guys|Ana
"""
# How a statement begins that sounds like a question.
TOLD_AS = """
when|while|since|if|because|now that|after|before|which means|which is why|which reminds me,|what i mean is
what i need is|what i like is|what matters is that|where i live|when i get home|as|whenever|once|how it went:
why i ask:|what a day,|who knows,|what happened is that|what they did is
"""
# What asks only in form.
ASKED_AS = """
can you believe|can you believe that|did you know|did you know that|did i tell you|did i tell you that|did i mention
did i mention that|have you heard|have you heard that|guess what,|do you realise|would you believe|have i told you
do you know that|did we tell you that|did you hear|did you see that|remember when|how can i relax now that|what if
what do i do, now that|where can i go now that|what can i eat because|how about this:|who would have thought that
"""
PLEASE = """
can you|could you|would you|will you|please|pls|can u|could you please|can you please|would you mind, please|you could
why don't you|how about you|should we|could we|shall we|can we|what about if we|help me|can you help me|let's|why not
why don't we|how about we|do you want to|would you like to|remind me to|can you remind me to|i need you to|we need to
i want to|i have to|i need to|i'd like to|we plan to
"""
DEEDS = """
book|add|put|set|send|write|draft|rewrite|make|plan|cancel|move|order|change|note|save|schedule|create|update|delete
close|rename|call|pack|buy|suggest|recommend|compose|prepare|translate|turn off|fill in|pick up|invite|meet|go to|pay
fix|clean|bring|print|reserve|water|feed|visit|ask|email|sell|return|renew|try|paint|cook|organise|sign|wash|repair
"""
RELATIVE = (", who is ", ", which is ", ", who has ", ", where ", ", when ", " which ", ", who ", ", whose ")
JOINTS = (", ", ", ", "; ", ": ", " - ", ", so ", ", and ", ", but ", " so ", ", then ")
TOGETHER = (", ", " and ", ", and ", ", or ")

WILL = """
let me|let me just|i'll|i will|i'd have to|i would have to|i'll have to|i will have to|i need to|i'd need to|i have to
i should|i'd better|i had better|i'm going to|give me a second to|give me a moment to|one moment, i'll
one second, let me|sure, let me|of course, i'll|hm, let me|happy to|good question, let me|hold on while i
just a moment while i|first let me|before i answer, let me|okay, let me|i want to|we should|i can|i could|lemme
"""
LOOK = """
look|check|see|search|find out|look that up|look it up|check that|look into that|look into it|go back|go through
go over|scroll back|scroll up|dig|dig into that|verify that|double-check|make sure|look for it|look for that|find that
find it|pull that up|pull up|gather|collect|count|put that together|piece that together|work that out|read|read back
reread|consult|think|line them up|see what i have|see what we said|get back to you on that|look this up|have a look
take a look
"""
AT_WHAT = """
|for you|first|again|in my notes|your notes|our notes|our conversations|our earlier messages|what you told me
what you've told me|what you have told me|what i have on that|what i have|what we said|what was noted|how it ended up
how that ended|how it stands|where that stands|the history|the log|the records|the dates|the list|the calendar
the latest|about that|about it|on that|for it|for that|that|from here|back a bit|a bit|carefully|before i say
if you mentioned it|whether you mentioned it|in what you told me|the messages
"""
WHOLE = """
one moment|one second|one sec|a moment|a moment please|one moment please|just a moment|just a second|give me a second
give me a sec|give me a moment|give me a minute|hold on|hold on a moment|hang on|bear with me|checking|checking now
checking that|checking that now|checking the notes|looking|looking now|looking it up|looking that up|looking for it
searching|searching my notes|digging|on it|good question|i'm on it|i'm checking|i'm looking|i'm looking it up
i'm searching|not sure|not sure offhand|not sure off the top of my head|i'm not sure|i'm not sure offhand
i'm not certain|i don't know offhand|i can't say offhand|i should know that|i should have that somewhere
i might have that|i don't want to guess|better to be sure|need a moment|need a moment to put that together
that may take me a moment|that will take a moment|that takes me a moment|that's a while back|let's see|let me think
i'd rather check|worth checking|important one|fair question|sure|sure thing|of course|will do|no problem|certainly
thinking|reading|please wait|counting|with pleasure|gladly|coming up|working on it|right away
"""
# What an assistant says of looking first, in the texts: so it begins, and one of these words is in it.
_PUT_OFF = re.compile(
    r"\W*(?:(?:sure|of course|good question|ok|okay|happy to|hm+|right|certainly|well|then|yes|gladly)\W+)?"
    r"(?:i'd|i'll|i will|i would|i need|i have to|i'm|i should|i can|i might|let me|lemme|\w+ing\b"
    r"|(?:one|a|just a) (?:moment|second|sec|minute)|give me|hold on|hang on|good question|not sure)",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    r"\b(?:check|look|search|find|see|read|scroll|dig|query|open|go|going|pull|consult|verify|count|gather|compare"
    r"|think|line|sure|have to|need to|moment|second|minute|one sec|notes?)",
    re.IGNORECASE,
)
_MOST_PUT_OFF = 16
# A request that something be done is an intention, and no question.
_REQUEST = re.compile(
    r"\W*(?:please |pls )?(?:(?:can|could|would|will) (?:you|u) "
    r"(?:please |also |just |kindly |maybe |again |quickly )*"
    r"(?!tell|remind me (?:what|which|who|when|where|how|why|of|if)|recall|remember|show|list|read|give|say|repeat"
    r"|find|check|look|see|explain|confirm|name|work out|count|sum)\w+"
    r"|(?:remind me to|book|add|put|set|send|write|draft|rewrite|make|plan|cancel|move|order|change|note|save"
    r"|schedule|create|update"
    r"|delete|close|rename|call me|pack|buy|suggest|recommend|compose|prepare|translate|turn|help me"
    r"|fill|pick)\b)",
    re.IGNORECASE,
)
_MOST_ASKED_BESIDE = 14
# Of so many statements one is put behind what puts off, so that there are about as many as of those.
BESIDE_DELAYS = 40
# One sentence of so many is typed without apostrophes.
TYPED_FAST = 7
# A statement that a question is put beside is neither a single word nor long.
_PUT_BESIDE = range(2, 13)


@dataclasses.dataclass(frozen=True)
class Example:
    """A sentence, who wrote it, what it is there for, and how much it weighs."""

    author: str
    text: str
    kind: str
    weight: float = 1.0


def phrases(listed: str) -> list[str]:
    """Return the phrases of one of the lists above."""
    return listed.strip("\n").replace("\n", "|").split("|")


LEAD, WANT, OF_WHICH, TAIL, FRONT = map(phrases, (LEADS, WANTS, WANTED, TAILS, BEFORE))
TELL_AS, ASK_AS, PLEAD, DEED = map(phrases, (TOLD_AS, ASKED_AS, PLEASE, DEEDS))


# ------------------------------------------------------------------------------------------------- the texts


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    plain = text.replace("\u2019", "'")
    return [plain[start:end] for start, end in PROSE.spans(plain)]


def read_texts(folder: Path) -> Iterator[Example]:
    """Yield every sentence whose purpose the files tell."""
    for file in sorted(folder.glob("items/w*.jsonl")):
        for item in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            answers = {one for question in item["questions"] for one in question["answers"] + question["outdated"]}
            alike = {one for pair in item["changes"] + item["keeps"] for one in pair}
            asked = [question["q"] for question in item["questions"]] + item["unanswerable"]
            turns = [(turn["id"], turn["who"], turn["text"]) for turn in item["turns"]]
            yield from questions_in(file.stem, asked)
            yield from turns_in(file.stem, turns, answers, alike)
    for file in sorted(folder.glob("lives/lives*.jsonl")):
        for life in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            about = [question["gold"] + question["earlier"] + question["also"] for question in life["questions"]]
            answers = {one for listed in about for one in listed}
            turns = [(turn["id"], turn["role"], turn["text"]) for turn in life["turns"]]
            yield from questions_in(file.stem, [question["text"] for question in life["questions"]])
            yield from turns_in(file.stem, turns, answers, answers)


def questions_in(author: str, asked: Iterable[str]) -> Iterator[Example]:
    """Yield the questions of one sentence."""
    for text in asked:
        if len(sentences(text)) == 1 and not _REQUEST.match(text):
            yield Example(author, text, "asks")


def turns_in(
    author: str, turns: Iterable[tuple[str, str, str]], answers: set[str], alike: set[str]
) -> Iterator[Example]:
    """Yield the sentences of turns: what answers states; of the others only what is sure."""
    before = ""
    for name, who, text in turns:
        said = sentences(text)
        if who == "assistant":
            found = assistant_says(said, before, answers=name in answers or name in alike)
        else:
            found = user_says(said, answers=name in answers, alike=name in alike)
        yield from (Example(author, sentence, kind) for sentence, kind in found)
        before = text


def assistant_says(said: Sequence[str], before: str, *, answers: bool) -> Iterator[tuple[str, str]]:
    """Yield an assistant's sentences: what asks is left out, and what may put off is none that states."""
    follows = before.rstrip().endswith("?") or begins(before, WH | AUXILIARIES)
    for sentence in said:
        short = len(sentence.split()) <= _MOST_PUT_OFF
        starts, looks = _PUT_OFF.match(sentence), _LOOKS.search(sentence)
        if is_marked(sentence):
            continue
        if answers:
            yield sentence, "states of assistants"
        elif short and starts and looks and not re.search(r"\d", sentence):
            yield sentence, "delays"
        elif not (follows and short and (starts or looks)):
            yield sentence, "states of assistants"


def user_says(said: Sequence[str], *, answers: bool, alike: bool) -> Iterator[tuple[str, str]]:
    """Yield a user's sentences."""
    alone = len(said) == 1
    for sentence in said:
        request = _REQUEST.match(sentence) is not None
        if not is_marked(sentence):
            if answers or (not alone and (request or not begins(sentence, WH | AUXILIARIES))):
                yield sentence, "states"
        elif alone and (answers or request):
            yield sentence, "states while asking"
        elif not request and (not alike if alone else len(sentence.split()) <= _MOST_ASKED_BESIDE):
            yield sentence, "asks"


def is_marked(sentence: str) -> bool:
    """Return whether a sentence ends in a question mark."""
    return sentence.rstrip("\"')").endswith("?")


def begins(text: str, listed: Iterable[str]) -> bool:
    """Return whether the first word of a text is one of those."""
    return text.split(maxsplit=1)[0].lower() in listed if text.strip() else False


# --------------------------------------------------------------------------------- what is made from the texts


def bare(text: str) -> str:
    """Return a sentence without its last marks."""
    return text.rstrip(" ?.!")


def lowered(text: str) -> str:
    """Return a text with a small first letter."""
    return text[:1].lower() + text[1:]


def turn_round(question: str) -> str | None:
    """Return a question as it stands behind "do you know", as far as that is plain; of a bare topic nothing."""
    words = question.split()
    small = [word.lower() for word in words]
    if small[0] in AUXILIARIES and len(words) > 2:
        subject = 2 if small[1] in SUBJECTS else 3
        verb = [] if small[0] in {"do", "does", "did"} else [words[0]]
        return " ".join(["if", *words[1:subject], *verb, *words[subject:]])
    if small[0] not in WH:
        return None
    place = next((place for place in (1, 2, 3) if place + 1 < len(words) and small[place] in AUXILIARIES), 0)
    head, rest = words[:place], words[place + 1 :]
    if place and len(words) > 3 and small[place + 1] in SUBJECTS:
        verb = [] if small[place] in {"do", "does", "did"} else [words[place]]
        return " ".join([*head, rest[0], *verb, *rest[1:]])
    if place and len(words) > 3 and len(rest) <= 3 and small[place] in {"is", "are", "was", "were"}:
        return " ".join([*head, *rest, words[place]])
    return question


def lead_up(questions: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield questions with what leads up to them or trails behind."""
    for number, (author, question) in enumerate(questions):
        turned = turn_round(question)
        lead = LEAD[number * 7 % len(LEAD)]
        if turned is None:
            if number % 2 and len(question.split()) < 12:
                wanted = f" {OF_WHICH[number // 6 % len(OF_WHICH)]}" if number % 3 == 0 else ""
                yield author, f"{WANT[number * 5 % len(WANT)]} {lowered(question)}{wanted}"
        elif number % 4 == 3:
            yield author, f"{question}{', ' if number % 8 == 3 else ' '}{TAIL[number % len(TAIL)]}"
        elif number % 3:
            yield author, f"{lead} {lowered(turned)}" if number % 5 else f"{lead.rstrip(',:')}, {lowered(question)}"


def put_together(questions: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield questions of several parts, which ask all the same."""
    whole = [(author, text) for author, text in questions if begins(text, WH | AUXILIARIES)]
    topics = [
        text for _, text in questions if not begins(text, WH | AUXILIARIES | PLACES) and 2 <= len(text.split()) <= 7
    ]
    fronts = [text for text in topics if begins(text, NAMED) or "'s" in text.split()[0]]
    for number, (author, question) in enumerate(whole):
        other = lowered(whole[number * 11 % len(whole)][1])
        front = f"{fronts[number % len(fronts)]}{', ' if number % 4 else ': '}{lowered(question)}"
        yield from (
            (author, text)
            for text in (
                (front,),
                (f"{question}, {topics[number * 7 % len(topics)]}",),
                (f"{question}{TOGETHER[number // 6 % 4]}{other}",),
                (f"{LEAD[number * 3 % len(LEAD)]} {lowered(question)}, {topics[number * 5 % len(topics)]}",),
                (f"{FRONT[number // 6 % len(FRONT)]}, {lowered(question)}",),
                (),
            )[number % 6]
        )


def tell_beside(questions: Sequence[tuple[str, str]], told: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield sentences that state something and ask, or only sound as if they asked: they state."""
    topics = [text for _, text in questions if begins(text, NAMED)]
    for number, (author, statement) in enumerate(told):
        question = questions[number * 13 % len(questions)][1]
        mark = "?" if number % 3 else ""
        if number % 8 in {0, 4}:
            yield author, f"{bare(statement)}{JOINTS[number % len(JOINTS)]}{lowered(question)}{mark}"
        elif number % 8 == 6:
            other = topics[number // 8 % len(topics)]
            yield author, f"{other}{RELATIVE[number // 8 % len(RELATIVE)]}{lowered(bare(statement))}"
        elif number % 8 in {2, 5}:
            wish = f"{PLEAD[number // 8 % len(PLEAD)]} {lowered(' '.join(statement.split()[1:]))}"
            beside = wish if number % 3 == 0 else statement
            yield author, f"{question}{JOINTS[number // 4 % 4]}{lowered(bare(beside))}{mark or '?'}"
        else:
            other = told[number * 7 % len(told)][1]
            if number % 8 == 7:
                if number % 16 < 8:
                    deed = DEED[number // 8 % len(DEED)]
                    text = f"{PLEAD[number // 8 % len(PLEAD)]} {deed} {lowered(topics[number // 3 % len(topics)])}"
                else:
                    text = f"{ASK_AS[number // 16 % len(ASK_AS)]} {lowered(bare(statement))}"
                yield author, text + ("?" if number % 3 else "")
                continue
            more = f"{', ' if number % 16 < 8 else ' '}{lowered(other)}" if number % 8 == 1 else ""
            yield author, f"{TELL_AS[number // 4 % len(TELL_AS)]} {lowered(bare(statement))}{more}"


def put_off() -> Iterator[str]:
    """Yield what an assistant says that looks first."""
    will, look, at_what, whole = map(phrases, (WILL, LOOK, AT_WHAT, WHOLE))
    for row, start in enumerate(will):
        for place, verb in enumerate(look):
            yield f"{start} {verb} {at_what[(row * 5 + place * 7) % len(at_what)]}".strip() + "."
    yield from (f"{one}." for one in whole * 3)
    for row, start in enumerate(whole):
        for place in range(4):
            verb = f"{will[(row + place * 3) % len(will)]} {look[(row * 3 + place * 11) % len(look)]}"
            yield f"{start}, {verb} {at_what[(row * 11 + place) % len(at_what)]}".strip() + "."


def examples_of_asking(read: Sequence[Example]) -> list[Example]:
    """Return what the model of questions learns from: half of all questions without their mark."""
    asked = [(one.author, bare(one.text)) for one in read if one.kind == "asks" and bare(one.text)]
    told = [one for one in read if one.kind == "states"]
    found = [Example(author, text, "asks", ASKED) for author, text in asked]
    found += [
        Example(author, f"{text}?", "asks", ASKED if begins(text, WH | AUXILIARIES) else ASKED_BY_MARK)
        for author, text in asked
    ]
    found += [
        Example(author, f"{text}.", "asks", STOPPED) for author, text in asked if begins(text, WH | AUXILIARIES)
    ]
    found += [
        Example(one.author, one.text, "states", TOLD)
        for one in read
        if one.kind in {"states", "states of assistants"}
    ]
    found += [
        Example(one.author, text, "states", ASKED_WHILE_TELLING)
        for one in read
        if one.kind == "states while asking"
        for text in (one.text, bare(one.text))
    ]
    made = [*lead_up(asked), *put_together(asked)]
    found += [
        Example(author, text + ENDS[number % len(ENDS)], "asks", MADE) for number, (author, text) in enumerate(made)
    ]
    short = [(one.author, one.text) for one in told if len(one.text.split()) in _PUT_BESIDE]
    found += [Example(author, text, "states", MADE_TOLD) for author, text in tell_beside(asked, short)]
    return [
        dataclasses.replace(one, text=one.text.replace("'", "")) if number % TYPED_FAST == 0 else one
        for number, one in enumerate(found)
    ]


def examples_of_delays(read: Sequence[Example]) -> list[Example]:
    """Return what the model of what puts off learns from."""
    found = [Example(one.author, one.text, "delays") for one in read if one.kind == "delays"]
    found += [
        Example(one.author, one.text, "states", TOLD)
        for one in read
        if one.kind in {"states", "states of assistants"}
    ]
    made = list(put_off())
    short = [one for one in found if one.kind == "states" and len(one.text.split()) in _PUT_BESIDE]
    beside = [
        Example(
            one.author,
            f"{bare(made[number % len(made)])}{JOINTS[number % len(JOINTS)]}{lowered(one.text)}",
            "states",
            MADE_TOLD,
        )
        for number, one in enumerate(short[::BESIDE_DELAYS])
    ]
    puts_off = [
        Example(f"made {number % AUTHORS_OF_FEATURE}", text, "delays", MADE) for number, text in enumerate(made)
    ]
    return [*found, *beside, *puts_off]


# ------------------------------------------------------------------------------------------------- training


def known_words(read: Sequence[Example]) -> list[str]:
    """Return the words that many authors use most, and those that lead up to a question or put off an answer."""
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for one in read:
        for part in set(parts_of(one.text.lower())):
            if part[0].isalpha():
                used[part][one.author] += 1
    sums = {
        word: sum(min(number, MOST_OF_AUTHOR) for number in by.values())
        for word, by in used.items()
        if len(by) >= AUTHORS_OF_WORD
    }
    lists = (LEADS, WANTS, WANTED, TAILS, ASKED_AS, PLEASE, WILL, LOOK, AT_WHAT, WHOLE)
    listed = {
        part for phrase in chain.from_iterable(map(phrases, lists)) for part in parts_of(phrase) if part.isalpha()
    }
    return sorted(listed.union(sorted(sums, key=lambda word: (-sums[word], word))[:KNOWN]))


def train(examples: Sequence[Example], kind: str, known: frozenset[str]) -> dict[str, int]:
    """Return the integer weights of a sparse logistic regression; "^", which all have, is the constant."""
    looked_at = [features_of(parts_of(one.text.lower()), known) for one in examples]
    authors: dict[str, set[str]] = defaultdict(set)
    for one, features in zip(examples, looked_at, strict=True):
        for feature in features:
            authors[feature].add(one.author)
    names = sorted(feature for feature, by in authors.items() if len(by) >= AUTHORS_OF_FEATURE)
    places = {name: place for place, name in enumerate(names)}
    pairs = [
        (row, places[feature])
        for row, features in enumerate(looked_at)
        for feature in sorted(features)
        if feature in places
    ]
    rows, columns = np.array(pairs, dtype=np.int64).T
    goal = np.array([float(one.kind == kind) for one in examples])
    weight = np.array([one.weight for one in examples])
    free = np.array([name == "^" for name in names])
    found = descend(rows, columns, goal, weight, np.where(free, 0.0, SPARSITY))
    return {name: whole for name, one in zip(names, found.tolist(), strict=True) if (whole := round(one * SCALE))}


def descend(rows: Any, columns: Any, goal: Any, weight: Any, sparsity: Any) -> Any:
    """Return the weights that fit best: proximal steps with momentum, each feature with a step of its own."""
    many, features = len(goal), len(sparsity)
    width = np.bincount(rows, minlength=many)
    steepest = 0.25 * np.bincount(columns, weights=(weight * width)[rows], minlength=features) + 1e-3
    now, ahead, speed = np.zeros(features), np.zeros(features), 1.0
    for _ in range(ROUNDS):
        sums = np.bincount(rows, weights=ahead[columns], minlength=many)
        slope = weight * (1.0 / (1.0 + np.exp(-sums)) - goal)
        moved = ahead - np.bincount(columns, weights=slope[rows], minlength=features) / steepest
        following = np.sign(moved) * np.maximum(np.abs(moved) - sparsity / steepest, 0.0)
        faster = (1.0 + (1.0 + 4.0 * speed * speed) ** 0.5) / 2.0
        ahead = following + (speed - 1.0) / faster * (following - now)
        now, speed = following, faster
    return now


def choose_least(read: Sequence[Example], answering: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the least sum of each purpose at which hardly an answer of the authors aside is taken for it."""
    first = [one for one in read if one.author not in ASIDE]
    known = frozenset(known_words(first))
    turns = [sentences(text.lower()) for author, text in answering if author in ASIDE]
    least = {}
    for purpose, examples in EXAMPLES.items():
        weights = train(examples(first), purpose, known)
        lowest = [min(sum_of(sentence, weights, known) for sentence in said) for said in turns if said]
        found = [step for step in STEPS if sum(low >= step for low in lowest) <= MOST_WRONG * len(lowest)]
        least[purpose] = found[0]
        wrong = sum(low >= found[0] for low in lowest)
        right = [
            sum_of(one.text.lower(), weights, known) >= found[0]
            for one in read
            if one.author in ASIDE and one.kind == purpose
        ]
        print(f"{purpose}: at {found[0]}, {wrong} of {len(lowest)} answers and {sum(right)} of {len(right)}")
    return least


def sum_of(sentence: str, weights: dict[str, int], known: frozenset[str]) -> int:
    """Return what a sentence in lower case sums up to."""
    return sum(weights.get(feature, 0) for feature in features_of(parts_of(sentence), known))


def grouped(weights: dict[str, int]) -> dict[str, str]:
    """Return the features of each weight."""
    groups: dict[int, list[str]] = defaultdict(list)
    for feature, weight in sorted(weights.items()):
        groups[weight].append(feature)
    return {str(weight): "|".join(groups[weight]) for weight in sorted(groups)}


def answering_turns(folder: Path) -> list[tuple[str, str]]:
    """Return who wrote what answers a question."""
    found = []
    for file in sorted([*folder.glob("items/w*.jsonl"), *folder.glob("lives/lives*.jsonl")]):
        for item in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            names = {one for question in item["questions"] for one in question.get("answers") or question["gold"]}
            found += [(file.stem, turn["text"]) for turn in item["turns"] if turn["id"] in names]
    return found


EXAMPLES: dict[str, Callable[[Sequence[Example]], list[Example]]] = {
    "asks": examples_of_asking,
    "delays": examples_of_delays,
}


def main() -> None:
    """Train on some authors to choose the least sums, then on all, and write the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("src/holdfast/text/asking.json"))
    args = parser.parse_args()
    read = list(read_texts(args.folder))
    least = choose_least(read, answering_turns(args.folder))
    words = known_words(read)
    known = frozenset(words)
    files = sorted([*args.folder.glob("items/w*.jsonl"), *args.folder.glob("lives/lives*.jsonl")])
    record = {
        "provenance": {
            "trained on": f"{len(read)} sentences of chats that were written for this project, and the lists of "
            "scripts/build_asking.py, which made this file",
            "licence": "that of the project",
            "files": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
        },
        "least": least,
        "words": " ".join(words),
        "weights": {
            purpose: grouped(train(examples(read), purpose, known)) for purpose, examples in EXAMPLES.items()
        },
    }
    args.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
