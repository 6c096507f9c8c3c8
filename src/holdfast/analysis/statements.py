"""What a turn states about its speaker (C17, D_nl): dates, numbers, people, preferences, who and where one is.

The reference knows English only and is blind to everyone else. A language is a few patterns here: the plainest ways
to say what one likes and who one is, and, for the wide reading, what one is resolved to do, how a question opens and
what is mere courtesy. They read text in lower case with single spaces and straight apostrophes.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

# \b knows no border between a Chinese word and a digit, so borders of numbers are named.
_DATE = re.compile(
    r"(?<![\w/.])(?:\d{4}-\d\d-\d\d|\d{1,2}/\d{1,2}/(?:\d{4}|\d\d)|\d{1,2}\.\s?\d{1,2}\.\s?(?:19|20)\d\d)(?![\d/])"
    r"|\d{4}年\d{1,2}月"
)
_NUMBER = re.compile(r"(?<![A-Za-z\d_])\d++(?![A-Za-z_])")
_TITLED = re.compile(r"\b(?:mr|mrs|ms|dr|prof)\b\.? (\w+)", re.IGNORECASE)
# The first four are the reference's.
_RELATIVE = re.compile(
    r"\b(?:my|our) (?:manager|teammate|friend|colleague|boss|co-?worker|neighbou?r|partner|wife|husband|girlfriend"
    r"|boyfriend|brother|sister|mother|father|mum|mom|dad|son|daughter|cousin|uncle|aunt|dog|cat) (\w+)",
    re.IGNORECASE,
)


class Language(NamedTuple):
    """How the speakers of one language say what they like, who they are, what they resolve, and what they ask."""

    preference: str
    identity: str
    resolve: str
    question: str
    courtesy: str


# In order: what the reference has, then what it lacks. A few patterns each; word order keeps them short.
LANGUAGES = {
    "en": Language(
        r"\b(?:i|we) (?:really |also |still |absolutely )?(?:prefer|like|love|enjoy|hate|dislike)\b"
        r"|\b(?:my|our) favou?rite\b|\b(?:i|we) (?:do not|don't) (?:really )?like\b"
        r"|\bi (?:cannot|can't) stand\b|\bi(?:'d| would) rather\b",
        r"\b(?:i|we) (?:work (?:at|for|as)|live in|moved to)\b|\b(?:my|our) \w+ (?:is|are)\b|\bi am\b|\bi'm\b"
        r"|\bi have\b|\bi've\b|\bi was born\b|\bi no longer\b|\bcall me\b",
        r"\b(?:i|we) (?:plan|intend|hope|want) to\b|\b(?:i|we) (?:decided|agreed|chose|picked|switched)\b"
        r"|\b(?:we're|we are|i'm|i am) (?:going|planning) to\b|\bfrom now on\b|\bscheduled for\b|\binstead of\b"
        r"|\bno longer\b|\bi meant\b|\bcorrection:|^(?:please )?(?:remember|note|stop|always)\b"
        r"|^(?:please )?(?:never|don't|do not) (?!mind|worry|know|think)",
        "what how why who whom whose which when where can could would should shall will do does did is are was were am "
        "has have may might",
        "ok okay yes yep yeah no nope sure right hi hello hey yo good morning afternoon evening night bye goodbye welcome "
        "thank thanks cheers please sorry great perfect nice cool fine awesome excellent lovely much appreciated lot lol "
        "haha hmm oh ah well today tomorrow later mate never mind",
    ),
    "de": Language(
        r"\bich (?:mag|liebe|bevorzuge|hasse)\b|\bich \w+ (?:\w+ )?(?:lieber|gerne?|am liebsten|ungern)\b"
        r"|\bmeine? lieblings",
        r"\bich (?:bin|heiße|heisse|wohne|lebe|arbeite|habe)\b|\b(?:meine?|unsere?) \w+ (?:ist|heißt|heisst)\b",
        r"\b(?:ich habe|wir haben) \b[^.!?]{0,60}\b(?:entschieden|beschlossen)\b|\bab (?:jetzt|sofort)\b|\bwir ziehen\b"
        r"|\b(?:ich|wir) (?:plane|planen|will|wollen)\b|^(?:bitte )?(?:immer|nie|niemals|merk dir)\b",
        "wie was wann wo wer wen wem warum wieso welche welcher welches kannst können könntest ist sind gibt hast haben",
        "danke dank vielen bitte hallo guten tag morgen abend gute nacht tschüss ja nein alles klar gut super",
    ),
    "fr": Language(
        r"\bj'(?:aime|adore|apprécie)\b|\bje (?:préfère|déteste|n'aime pas)\b|\bm(?:on|a|es) \w+ préférée?s?\b",
        r"\bje (?:suis|m'appelle|travaille|vis)\b|\bj'(?:habite|ai)\b|\bm(?:on|a) \w+ (?:est|s'appelle)\b",
        r"\b(?:j'ai|nous avons|on a) décidé\b|\bdésormais\b|\bà partir de maintenant\b|\bnous allons\b|\bje vais\b"
        r"|^(?:toujours|jamais|souviens-toi)\b",
        "quel quelle quels quelles comment pourquoi où quand qui que quoi combien est-ce peux-tu pouvez-vous as-tu",
        "merci beaucoup bonjour bonsoir salut au revoir oui non d'accord bien bonne nuit parfait",
    ),
    "es": Language(
        r"\b(?:prefiero|odio|detesto)\b|\bme (?:gustan?|encantan?)\b|\bmis? \w+ favorit[oa]s?\b",
        r"\bme llamo\b|\bvivo en\b|\btrabajo (?:en|como|de|para)\b|\btengo\b|\bmi \w+ (?:es|se llama)\b|\byo soy\b"
        r"|\bsoy (?:un|una|de|alérgic[oa]|vegetarian[oa]|vegan[oa])\b",  # "soy sauce" is English
        r"\b(?:hemos decidido|he decidido|decidimos)\b|\ba partir de ahora\b|\b(?:voy|vamos) a\b|^(?:siempre|nunca|recuerda)\b",
        "qué cuál cuáles cómo cuándo dónde quién quiénes cuánto cuántos puedes",
        "gracias muchas hola buenos buenas días tardes noches adiós sí vale muy bien por favor",
    ),
    "pt": Language(
        r"\b(?:prefiro|adoro|odeio|detesto)\b|\bgosto (?:muito |mais )?d[eoa]s?\b"
        r"|\b(?:meus?|minhas?) \w+ (?:favorit|preferid)[oa]s?\b",
        r"\b(?:meu|minha) \w+ (?:é|se chama)\b|\b(?:moro|trabalho) (?:em|no|na|como|para)\b|\beu sou\b|\btenho\b"
        r"|\bsou (?:um|uma|de|do|da|alérgic[oa]|vegetarian[oa]|vegan[oa])\b|\bme chamo\b|\bchamo-me\b"
        r"|\bvivo (?:em|no|na)\b",
        r"\b(?:decidimos|decidi)\b|\ba partir de agora\b|\b(?:vou|vamos) \w+r\b|^(?:sempre|nunca|lembra|lembre)\b",
        "que qual quais como quando onde quem quanto quantos podes pode",
        "obrigado obrigada muito bom boa dia tarde noite olá oi tchau sim não tudo bem certo",
    ),
    "it": Language(
        r"\b(?:preferisco|adoro|odio|detesto)\b|\bmi piac(?:e|ciono)\b|\bmi[oa] \w+ preferit[oa]\b",
        r"\bmi chiamo\b|\b(?:abito|vivo|lavoro) (?:a|ad|in|come|per)\b|\bio sono\b|\bmi[oa] \w+ (?:è|si chiama)\b"
        r"|\bsono (?:un|uno|una|di|nat[oa]|allergic[oa]|vegetarian[oa]|vegan[oa])\b",
        r"\b(?:abbiamo|ho) deciso\b|\bd'ora in poi\b|^(?:sempre|mai|ricorda)\b",
        "che chi come quando dove quale quali perché cosa quanto quanti puoi",
        "grazie mille ciao buongiorno buonasera buona notte sì va bene prego perfetto",
    ),
    "nl": Language(
        r"\bik (?:hou van|haat)\b|\bik \w+ (?:\w+ )?(?:liever|graag|het liefst)\b|\bmijn lievelings",
        r"\bik (?:ben|heet|woon|werk|heb)\b|\bmijn \w+ (?:is|heet)\b",
        r"\bwe hebben besloten\b|\bvanaf nu\b|^(?:altijd|nooit|onthoud)\b",
        "wat hoe waarom wie welke wanneer waar kun kan",
        "dank bedankt hallo goedemorgen goedenavond dag ja nee goed prima",
    ),
    "pl": Language(
        r"\b(?:wolę|lubię|kocham|uwielbiam|nienawidzę)\b|\bmój ulubiony\b|\bmoj[ae] ulubion[ae]\b",
        r"\bnazywam się\b|\bmam na imię\b|\bmieszkam w\b|\bpracuję (?:w|jako)\b|\bjestem\b",
        r"\bpostanowi(?:łem|łam|liśmy)\b|\bod teraz\b|^(?:zawsze|nigdy|pamiętaj)\b",
        "co jak dlaczego kto który która które kiedy gdzie ile czy",
        "dziękuję dzięki cześć dzień dobry dobranoc tak nie proszę dobrze",
    ),
    "ru": Language(
        r"\bя (?:\w+ )?(?:предпочитаю|люблю|обожаю|ненавижу)\b|\bмне (?:\w+ )?нрав(?:ится|ятся)\b|\bмо[йяёеи] любим",
        r"\bя (?:живу|работаю|родился|родилась)\b|\bменя зовут\b|\bу меня (?:есть|аллергия)\b|\bмо[йяёе] \w+ зовут\b",
        r"\bя решила?\b|\bмы решили\b|\bотныне\b|\bтеперь всегда\b|^(?:всегда|никогда|запомни)\b",
        "что как где когда кто почему сколько какой какая какие зачем",
        "спасибо большое привет здравствуйте доброе утро добрый день вечер пока да нет хорошо ладно",
    ),
    "zh": Language(
        r"我(?:更|最|很|不|也|非常|特别|特別|比较|比較)?(?:喜欢|喜歡|爱|愛|讨厌|討厭|偏好)|我(?:宁愿|寧願)",
        r"我(?:叫|姓|住|来自|來自)|我是(?![说說否不])|我有(?![点點个個问問一])|我在\w{1,12}(?:工作|上班)|我的\w{1,6}(?:是|叫)",
        r"我们?(?:决定|打算|计划|計劃|決定)|我們(?:決定|打算|計劃)|从现在起|從現在起|以后(?:请|都)|记住|記住|下(?:周|週|个月|個月)",
        "",
        "",
    ),
    "ja": Language(
        r"(?:が|は|も|を)(?:大|一番)?(?:好き|嫌い|苦手|好み)",
        r"に住んで|で働いて|に勤めて|(?:私|僕|俺)は|(?:私|僕|俺)の\w{1,6}は|と申します|といいます",
        r"ことにし(?:た|ました)|つもりです|予定です|今後は|これからは|覚えておいて",
        "",
        "",
    ),
    "ko": Language(
        r"(?:좋아|싫어)(?:해|하|합|함)|선호(?:해|하|합)",
        r"에 (?:살아|살고|삽니다)|에서 (?:일해|일하고|일합니다)|(?:제|내) 이름은|(?:저는|나는) \w+(?:이에요|예요|입니다|이야)",
        r"기로 (?:했|결정)|앞으로는?|기억해",
        "",
        "감사합니다 고마워요 고마워 안녕하세요 안녕 네 아니요 좋아요",
    ),
}
_PREFERENCE = re.compile("|".join(language.preference for language in LANGUAGES.values()))
_IDENTITY = re.compile("|".join(language.identity for language in LANGUAGES.values()))
_RESOLVE = re.compile("|".join(language.resolve for language in LANGUAGES.values()))
_OPENERS = frozenset(word for language in LANGUAGES.values() for word in language.question.split())
COURTESIES = frozenset(word for language in LANGUAGES.values() for word in language.courtesy.split())
_RESOLVE_WEIGHT = 0.3

_SENTENCE = re.compile(r"[^.!?;…。！？؟；]+[.!?;…。！？؟；]*")
_ASKED = tuple("?？؟")
_WORD = re.compile(r"[\w'-]+")


@dataclass(frozen=True, slots=True)
class Statement:
    """What a text states: D_nl, and whether it says anything about someone; a date or a number alone does not."""

    value: float = 0.0
    about_someone: bool = False


def statement(text: str, *, wide: bool = False) -> Statement:
    """Return D_nl ∈ [0, 1]; `wide` also counts plans, decisions, corrections and standing instructions."""
    spaced = _folded(text)
    lowered = spaced.lower()
    named = _names_someone(spaced)
    preferring, identifying = _PREFERENCE.search(lowered) is not None, _IDENTITY.search(lowered) is not None
    resolved = wide and _RESOLVE.search(lowered) is not None
    found = (
        (0.3, _DATE.search(spaced) is not None),
        (0.2, _NUMBER.search(spaced) is not None),
        (0.3, named),
        (0.4, preferring),
        (0.3, identifying),
        (_RESOLVE_WEIGHT, resolved),
    )
    total = 0.0
    for weight, holds in found:
        total = total + weight * holds
    return Statement(min(total, 1.0), named or preferring or identifying or resolved)


def only_asks(text: str) -> bool:
    """Return whether every sentence is a question; a courtesy before it does not count."""
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(_folded(text).lower())]
    asked = [sentence for sentence in sentences if not _is_courtesy(sentence)]
    return bool(asked) and all(map(_is_question, asked))


def _is_courtesy(sentence: str) -> bool:
    return all(word in COURTESIES for word in _WORD.findall(sentence))


def _is_question(sentence: str) -> bool:
    if not sentence.endswith(_ASKED):
        return False
    words = (word for word in _WORD.findall(sentence) if word not in COURTESIES)
    opener = next(words, "")
    # "I keep bees, what should I plant?" tells before it asks. Chinese and Japanese ask at the end of a sentence.
    return sentence.startswith("¿") or not opener.isascii() or opener in _OPENERS


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).replace("\u2019", "'").split())


def _names_someone(spaced: str) -> bool:
    """Return whether a person is named; a name has a capital, where its script has capitals."""
    names = [match[1] for pattern in (_TITLED, _RELATIVE) for match in pattern.finditer(spaced)]
    return any(len(name) > 1 and name[0].isalpha() and not name[0].islower() for name in names)
