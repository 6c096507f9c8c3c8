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


# In order: what the reference has, then what it lacks. In languages with spaces each alternative starts a word.
LANGUAGES = {
    "en": Language(
        r"(?:i|we) (?:really |also |still |absolutely )?(?:prefer|like|love|enjoy|hate|dislike)\b"
        r"|(?:my|our) favou?rite\b|(?:i|we) (?:do not|don't) (?:really )?like\b"
        r"|i (?:cannot|can't) stand\b|i(?:'d| would) rather\b",
        r"(?:i|we) (?:work (?:at|for|as)|live in|moved to)\b|(?:my|our) \w+ (?:is|are)\b|i am\b|i'm\b"
        r"|i have\b|i've\b|i was born\b|i no longer\b|call me\b",
        r"(?:i|we) (?:plan|intend|hope|want) to\b|(?:i|we) (?:decided|agreed|chose|picked|switched)\b"
        r"|(?:we're|we are|i'm|i am) (?:going|planning) to\b|from now on\b|scheduled for\b|instead of\b"
        r"|no longer\b|i meant\b|correction:|^(?:please )?(?:remember|note|stop|always)\b"
        r"|^(?:please )?(?:never|don't|do not) (?!mind|worry|know|think)",
        "what how why who whom whose which when where can could would should shall will do does did is are was were "
        "am has have may might",
        "ok okay yes yep yeah no nope sure right hi hello hey yo good morning afternoon evening night bye goodbye "
        "welcome thank thanks cheers please sorry great perfect nice cool fine awesome excellent lovely much "
        "appreciated lot lol haha hmm oh ah well today tomorrow later mate never mind",
    ),
    "de": Language(
        r"ich (?:mag|liebe|bevorzuge|hasse)\b|ich \w+ (?:\w+ )?(?:lieber|gerne?|am liebsten|ungern)\b"
        r"|meine? lieblings",
        r"ich (?:bin|heiße|heisse|wohne|lebe|arbeite|habe)\b|(?:meine?|unsere?) \w+ (?:ist|heißt|heisst)\b",
        r"(?:ich habe|wir haben) \b[^.!?]{0,60}\b(?:entschieden|beschlossen)\b|ab (?:jetzt|sofort)\b|wir ziehen\b"
        r"|(?:ich|wir) (?:plane|planen|will|wollen)\b|^(?:bitte )?(?:immer|nie|niemals|merk dir)\b",
        "wie was wann wo wer wen wem warum wieso welche welcher welches kannst können könntest ist sind gibt hast",
        "danke dank vielen bitte hallo guten tag morgen abend gute nacht tschüss ja nein alles klar gut super",
    ),
    "fr": Language(
        r"j'(?:aime|adore|apprécie)\b|je (?:préfère|déteste|n'aime pas)\b|m(?:on|a|es) \w+ préférée?s?\b",
        r"je (?:suis|m'appelle|travaille|vis)\b|j'(?:habite|ai)\b|m(?:on|a) \w+ (?:est|s'appelle)\b",
        r"(?:j'ai|nous avons|on a) décidé\b|désormais\b|à partir de maintenant\b|nous allons\b|je vais\b"
        r"|^(?:toujours|jamais|souviens-toi)\b",
        "quel quelle quels quelles comment pourquoi où quand qui que quoi combien est-ce peux-tu pouvez-vous as-tu",
        "merci beaucoup bonjour bonsoir salut au revoir oui non d'accord bien bonne nuit parfait",
    ),
    "es": Language(
        r"(?:prefiero|odio|detesto)\b|me (?:gustan?|encantan?)\b|mis? \w+ favorit[oa]s?\b",
        r"me llamo\b|vivo en\b|trabajo (?:en|como|de|para)\b|tengo\b|mi \w+ (?:es|se llama)\b|yo soy\b"
        r"|soy (?:un|una|de|alérgic[oa]|vegetarian[oa]|vegan[oa])\b",  # "soy sauce" is English
        r"(?:hemos decidido|he decidido|decidimos)\b|a partir de ahora\b|(?:voy|vamos) a\b"
        r"|^(?:siempre|nunca|recuerda)\b",
        "qué cuál cuáles cómo cuándo dónde quién quiénes cuánto cuántos puedes",
        "gracias muchas hola buenos buenas días tardes noches adiós sí vale muy bien por favor",
    ),
    "pt": Language(
        r"(?:prefiro|adoro|odeio|detesto)\b|gosto (?:muito |mais )?d[eoa]s?\b"
        r"|(?:meus?|minhas?) \w+ (?:favorit|preferid)[oa]s?\b",
        r"(?:meu|minha) \w+ (?:é|se chama)\b|(?:moro|trabalho) (?:em|no|na|como|para)\b|eu sou\b|tenho\b"
        r"|sou (?:um|uma|de|do|da|alérgic[oa]|vegetarian[oa]|vegan[oa])\b|me chamo\b|chamo-me\b"
        r"|vivo (?:em|no|na)\b",
        r"(?:decidimos|decidi)\b|a partir de agora\b|(?:vou|vamos) \w+r\b|^(?:sempre|nunca|lembra|lembre)\b",
        "que qual quais como quando onde quem quanto quantos podes pode",
        "obrigado obrigada muito bom boa dia tarde noite olá oi tchau sim não tudo bem certo",
    ),
    "it": Language(
        r"(?:preferisco|adoro|odio|detesto)\b|mi piac(?:e|ciono)\b|mi[oa] \w+ preferit[oa]\b",
        r"mi chiamo\b|(?:abito|vivo|lavoro) (?:a|ad|in|come|per)\b|io sono\b|mi[oa] \w+ (?:è|si chiama)\b"
        r"|sono (?:un|uno|una|di|nat[oa]|allergic[oa]|vegetarian[oa]|vegan[oa])\b",
        r"(?:abbiamo|ho) deciso\b|d'ora in poi\b|^(?:sempre|mai|ricorda)\b",
        "che chi come quando dove quale quali perché cosa quanto quanti puoi",
        "grazie mille ciao buongiorno buonasera buona notte sì va bene prego perfetto",
    ),
    "nl": Language(
        r"ik (?:hou van|haat)\b|ik \w+ (?:\w+ )?(?:liever|graag|het liefst)\b|mijn lievelings",
        r"ik (?:ben|heet|woon|werk|heb)\b|mijn \w+ (?:is|heet)\b",
        r"we hebben besloten\b|vanaf nu\b|^(?:altijd|nooit|onthoud)\b",
        "wat hoe waarom wie welke wanneer waar kun kan",
        "dank bedankt hallo goedemorgen goedenavond dag ja nee goed prima",
    ),
    "pl": Language(
        r"(?:wolę|lubię|kocham|uwielbiam|nienawidzę)\b|mój ulubiony\b|moj[ae] ulubion[ae]\b",
        r"nazywam się\b|mam na imię\b|mieszkam w\b|pracuję (?:w|jako)\b|jestem\b",
        r"postanowi(?:łem|łam|liśmy)\b|od teraz\b|^(?:zawsze|nigdy|pamiętaj)\b",
        "co jak dlaczego kto który która które kiedy gdzie ile czy",
        "dziękuję dzięki cześć dzień dobry dobranoc tak nie proszę dobrze",
    ),
    "ru": Language(
        r"я (?:\w+ )?(?:предпочитаю|люблю|обожаю|ненавижу)\b|мне (?:\w+ )?нрав(?:ится|ятся)\b|мо[йяёеи] любим",
        r"я (?:живу|работаю|родился|родилась)\b|меня зовут\b|у меня (?:есть|аллергия)\b|мо[йяёе] \w+ зовут\b",
        r"я решила?\b|мы решили\b|отныне\b|теперь всегда\b|^(?:всегда|никогда|запомни)\b",
        "что как где когда кто почему сколько какой какая какие зачем",
        "спасибо большое привет здравствуйте доброе утро добрый день вечер пока да нет хорошо ладно",
    ),
    "zh": Language(
        r"我(?:更|最|很|不|也|非常|特别|特別|比较|比較)?(?:喜欢|喜歡|爱|愛|讨厌|討厭|偏好)|我(?:宁愿|寧願)",
        r"我(?:叫|姓|住|来自|來自)|我是(?![说說否不])|我有(?![点點个個问問一])|我在\w{1,12}(?:工作|上班)"
        r"|我的\w{1,6}(?:是|叫)",
        r"我们?(?:决定|打算|计划|計劃|決定)|我們(?:決定|打算|計劃)|从现在起|從現在起"
        r"|以后(?:请|都)|记住|記住|下(?:周|週|个月|個月)",
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
        r"에 (?:살아|살고|삽니다)|에서 (?:일해|일하고|일합니다)|(?:제|내) 이름은"
        r"|(?:저는|나는) \w+(?:이에요|예요|입니다|이야)",
        r"기로 (?:했|결정)|앞으로는?|기억해",
        "",
        "감사합니다 고마워요 고마워 안녕하세요 안녕 네 아니요 좋아요",
    ),
}
# Their words have no border that a pattern could start at.
_UNSPACED = ("zh", "ja", "ko")
_Reading = tuple[re.Pattern[str], re.Pattern[str]]


def _reading(part: str) -> _Reading:
    """Return one pattern for languages with spaces, tried at the start of words only, and one for the others."""
    spaced = "|".join(getattr(words, part) for name, words in LANGUAGES.items() if name not in _UNSPACED)
    return re.compile(rf"(?<!\w)(?=\w)(?:{spaced})"), re.compile(
        "|".join(getattr(LANGUAGES[n], part) for n in _UNSPACED)
    )


def _says(reading: _Reading, lowered: str) -> bool:
    spaced, unspaced = reading
    if spaced.search(lowered) is not None:
        return True
    return not lowered.isascii() and unspaced.search(lowered) is not None


_PREFERENCE, _IDENTITY, _RESOLVE = _reading("preference"), _reading("identity"), _reading("resolve")
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
    preferring, identifying = _says(_PREFERENCE, lowered), _says(_IDENTITY, lowered)
    resolved = wide and _says(_RESOLVE, lowered)
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
