"""The baselines are what they say: BM25 by the book, cosine, and two ways to join them."""

import math
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest

from holdfast.errors import InputError, MissingExtraError
from holdfast.eval import systems
from holdfast.eval.data import DatasetMessage, GoldQuestion, Haystack
from holdfast.eval.systems import BASELINES, Baseline, plain_text, plain_words
from holdfast.testing.contracts import HashEmbedder

AT = datetime(2024, 3, 5, 9, 0, tzinfo=UTC)

TEXTS = [
    "The otter slept under the old bridge by the river",
    "A bridge club meets on Tuesdays",
    "River boats, river fish, river mud: the river has it all",
    "Otters eat fish",
    "The council painted the bridge green and the otter statue gold",
    "Nothing to see here",
]


def stack(texts, level="message", sessions=None, participants=()):
    sessions = sessions or ["s"] * len(texts)
    messages = tuple(
        DatasetMessage(f"m{place}", session, text, AT)
        for place, (text, session) in enumerate(zip(texts, sessions, strict=True))
    )
    return Haystack("h", messages, (), participants, level)


def asking(text, visible):
    return GoldQuestion("q", text, "all", AT, visible)


def read(recipe, haystack, embedder=None):
    with recipe.read(haystack, embedder or HashEmbedder()) as reader:
        return reader


def ranked(recipe, haystack, text, visible=None, embedder=None):
    visible = len(haystack.messages) if visible is None else visible
    return list(read(recipe, haystack, embedder).rank(asking(text, visible)).ids)


def ranked_sessions(recipe, haystack, text, visible=None, embedder=None):
    visible = len(haystack.messages) if visible is None else visible
    return list(read(recipe, haystack, embedder).rank(asking(text, visible)).sessions)


def scores(recipe, haystack, text, embedder=None):
    return read(recipe, haystack, embedder).messages._scores(text)


# What the library's own tokenizer makes of these texts: two letters or more, its stop words out, Porter's stems.
STEMMED = {
    "The otter slept under the old bridge by the river": "otter slept under old bridg river",
    "A bridge club meets on Tuesdays": "bridg club meet tuesdai",
    "River boats, river fish, river mud: the river has it all": "river boat river fish river mud river ha all",
    "Otters eat fish": "otter eat fish",
    "The council painted the bridge green and the otter statue gold": ("council paint bridg green otter statu gold"),
    "Nothing to see here": "noth see here",
    "Where did the otter sleep?": "where did otter sleep",
    "river river fish": "river river fish",
    "bridge": "bridg",
    "Is the otter of the bridge gold?": "otter bridg gold",
}


def stemmed(text):
    return STEMMED[text].split()


class Given:
    """An embedder that was told what each text means."""

    space, dims = "given/2", 2

    def __init__(self, **vectors):
        self.vectors = {text.replace("_", " "): np.array(vector, np.float32) for text, vector in vectors.items()}

    def embed_documents(self, texts):
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text):
        return self.vectors[text]


# ---------------------------------------------------------------------------------------------------- BM25


def slow_bm25(documents, question, k1, b):
    """Score as Lucene does: idf = ln(1 + (N - df + ½) / (df + ½)), no k1 + 1 above the line."""
    counts = [Counter(words) for words in documents]
    average = sum(len(words) for words in documents) / len(documents)
    scores = []
    for words, count in zip(documents, counts, strict=True):
        score = 0.0
        for term in set(question):
            df = sum(term in other for other in counts)
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            score += idf * count[term] / (count[term] + k1 * (1 - b + b * len(words) / average))
        scores.append(score)
    return scores


@pytest.mark.parametrize(
    ("name", "words", "b"),
    [("bm25", plain_words, 0.75), ("bm25-stemmed", stemmed, 0.75), ("bm25-short", stemmed, 0.35)],
)
@pytest.mark.parametrize(
    "question", ["Where did the otter sleep?", "river river fish", "bridge", "Is the otter of the bridge gold?"]
)
def test_scores_are_those_of_the_formula(name, words, b, question):
    expected = slow_bm25([words(text) for text in TEXTS], words(question), 1.2, b)
    assert scores(BASELINES[name], stack(TEXTS), question) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (2.0, 0.0), (1.2, 1.0)])
def test_its_two_constants_are_used(k1, b):
    expected = slow_bm25([plain_words(text) for text in TEXTS], plain_words("river bridge otter"), k1, b)
    found = scores(Baseline("x", words="plain", k1=k1, b=b), stack(TEXTS), "river bridge otter")
    assert found == pytest.approx(expected, abs=1e-6)


def test_best_first_and_equal_scores_keep_their_order():
    assert ranked(BASELINES["bm25"], stack(["fish", "owl", "fish", "fish owl"]), "fish")[:2] == ["m0", "m2"]
    same = stack(["fish", "fish", "fish"])
    assert ranked(BASELINES["bm25"], same, "fish") == ["m0", "m1", "m2"]


@pytest.mark.parametrize("question", ["the of and", "zyzzyva", "???", "東京"])
def test_a_question_without_a_known_word_ranks_everything_as_it_stands(question):
    assert ranked(BASELINES["bm25"], stack(TEXTS), question) == [f"m{place}" for place in range(len(TEXTS))]


def test_every_message_is_ranked_exactly_once():
    for recipe in BASELINES.values():
        assert sorted(ranked(recipe, stack(TEXTS), "otter bridge")) == [f"m{place}" for place in range(len(TEXTS))]


def test_plain_words_are_lower_case_without_function_words_and_not_stemmed():
    assert plain_words("The Otters' 2 rafts ARE here, and there") == ["otters", "2", "rafts", "here"]


def test_the_index_is_given_speaker_date_and_title():
    spoken = DatasetMessage("m", "s", "Hello.", AT, speaker="Wren")
    assert plain_text(spoken) == "09:00 AM 5 March 2024 Wren: Hello."
    assert plain_text(DatasetMessage("m", "s", "Text.", AT, "document", title="Title")) == "Title\nText."
    assert plain_text(DatasetMessage("m", "s", "Text.", AT)) == "Text."
    messages = (
        DatasetMessage("a", "s", "same", AT, speaker="Odile"),
        DatasetMessage("b", "s", "same", AT, speaker="Wren"),
    )
    assert ranked(BASELINES["bm25"], Haystack("h", messages, ()), "What did Wren say?") == ["b", "a"]


def test_plain_bm25_finds_a_date_and_stemmed_bm25_does_not():
    messages = tuple(
        DatasetMessage(key, "s", "same", AT.replace(month=month), speaker="Wren")
        for key, month in (("a", 3), ("b", 5))
    )
    assert ranked(BASELINES["bm25"], Haystack("h", messages, ()), "What was said in May?") == ["b", "a"]
    assert ranked(BASELINES["bm25-stemmed"], Haystack("h", messages, ()), "What was said in May?") == ["a", "b"]


def test_without_the_library_the_error_says_how_to_get_it(monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(systems, "import_module", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[eval\]'"):
        read(BASELINES["bm25"], stack(TEXTS))


def test_a_recipe_without_words_or_vectors_is_refused():
    with pytest.raises(InputError, match="baseline 'nothing' has no words and no vectors"):
        ranked(Baseline("nothing"), stack(TEXTS), "otter")


# ------------------------------------------------------------------------------------------- dense and joined

# Lexical scores of "kite" are 0, high and low; the vectors say otherwise.
THREE = ["calm lake", "kite kite", "kite over long green hills tonight"]
MEANING = Given(calm_lake=(1, 0), kite_kite=(0, 1), kite_over_long_green_hills_tonight=(0.6, 0.8), kite=(1, 0))


def test_dense_ranks_by_cosine():
    assert ranked(BASELINES["dense"], stack(THREE), "kite", embedder=MEANING) == ["m0", "m2", "m1"]


def test_a_mix_spreads_each_side_from_0_to_1():
    low, high, middle = slow_bm25([text.split() for text in THREE], ["kite"], 1.2, 0.75)
    spread = (middle - low) / (high - low)
    expected = [0.6 * 1.0, 0.4 * 1.0, 0.6 * 0.6 + 0.4 * spread]
    assert scores(BASELINES["mix"], stack(THREE), "kite", MEANING) == pytest.approx(expected, abs=1e-6)


def test_a_share_of_the_mix_belongs_to_the_dense_side():
    only_words = Baseline("w", words="stemmed", dense=True, fusion="mix", share=0.0)
    only_meaning = Baseline("m", words="stemmed", dense=True, fusion="mix", share=1.0)
    assert ranked(only_words, stack(THREE), "kite", embedder=MEANING) == ["m1", "m2", "m0"]
    assert ranked(only_meaning, stack(THREE), "kite", embedder=MEANING) == ["m0", "m2", "m1"]


def test_a_side_that_tells_nothing_apart_adds_nothing():
    flat = Given(calm_lake=(1, 0), kite_kite=(1, 0), kite_over_long_green_hills_tonight=(1, 0), kite=(1, 0))
    assert ranked(BASELINES["mix"], stack(THREE), "kite", embedder=flat) == ["m1", "m2", "m0"]


def test_reciprocal_ranks_are_added():
    # Words rank m1, m2, m0; vectors rank m0, m2, m1.
    expected = [1 / 63 + 1 / 61, 1 / 61 + 1 / 63, 1 / 62 + 1 / 62]
    assert scores(BASELINES["rrf"], stack(THREE), "kite", MEANING) == pytest.approx(expected)
    assert ranked(BASELINES["rrf"], stack(THREE), "kite", embedder=MEANING) == ["m0", "m1", "m2"]


def test_names_leave_the_question_where_a_recipe_says_so():
    asked = []

    class Listening(HashEmbedder):
        def embed_query(self, text):
            asked.append(text)
            return super().embed_query(text)

    haystack = stack(["boat", "Wren", "hill"], participants=("Wren",))
    for name in ("dense-nameless", "mix-nameless", "dense", "mix"):
        reader = read(BASELINES[name], haystack, Listening())
        asked.clear()
        reader.rank(asking("Wren's boat", 3))
        assert asked == ["boat" if "nameless" in name else "Wren's boat"]
    words_only = Baseline("x", words="plain", names=False)
    assert ranked(words_only, haystack, "Wren hill") == ["m2", "m0", "m1"]


def test_what_is_embedded_has_its_title_or_its_speaker():
    told = []

    class Listening(HashEmbedder):
        def embed_documents(self, texts):
            told.extend(texts)
            return super().embed_documents(texts)

    messages = (
        DatasetMessage("a", "s", "Text.", AT, "document", title="Title"),
        DatasetMessage("b", "s", "Hello.", AT, speaker="Wren"),
    )
    read(BASELINES["dense"], Haystack("h", messages, ()), Listening())
    assert told == ["Title\nText.", "Wren: Hello."]


# ------------------------------------------------------------------------------- sessions and what may be seen


def test_where_gold_names_sessions_a_session_is_one_document():
    texts = ["fish", "mud", "otter", "statue", "fish otter mud statue owl owl"]
    haystack = stack(texts, "session", ["a", "a", "b", "b", "c"])
    assert ranked_sessions(BASELINES["bm25"], haystack, "fish mud") == ["a", "c", "b"]
    joined = [plain_words(" ".join(text)) for text in (texts[:2], texts[2:4], texts[4:])]
    found = read(BASELINES["bm25"], haystack).sessions._scores("fish mud")
    assert found == pytest.approx(slow_bm25(joined, ["fish", "mud"], 1.2, 0.75), abs=1e-6)
    assert ranked(BASELINES["bm25"], haystack, "fish mud") == []


def test_plain_bm25_ranks_sessions_by_themselves_too():
    # Best message: b's. Best session as a whole: a, which has both words.
    haystack = stack(["fish", "mud", "fish mud", "a b c d e f g h " * 9], "message", ["a", "a", "b", "b"])
    assert ranked(BASELINES["bm25"], haystack, "fish mud")[0] == "m2"
    assert ranked_sessions(BASELINES["bm25"], haystack, "fish mud") == ["a", "b"]
    assert ranked_sessions(BASELINES["bm25-stemmed"], haystack, "fish mud") == []  # the best message decides


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("visible", [0, 1, 3, 6])
def test_what_had_not_been_said_is_never_ranked(name, visible):
    assert set(ranked(BASELINES[name], stack(TEXTS), "otter bridge river", visible)) == {
        f"m{place}" for place in range(visible)
    }


@pytest.mark.parametrize("name", BASELINES)
def test_sessions_that_had_not_begun_are_never_ranked(name):
    haystack = stack(TEXTS, "session", ["a", "a", "b", "b", "c", "c"])
    assert set(ranked_sessions(BASELINES[name], haystack, "otter bridge river", 4)) == {"a", "b"}
    assert ranked_sessions(BASELINES[name], haystack, "otter bridge river", 0) == []


def test_a_baseline_never_refuses():
    assert not read(BASELINES["bm25"], stack(TEXTS)).rank(asking("zyzzyva", 6)).refused


@pytest.mark.parametrize("name", ["mix", "rrf"])
def test_what_had_not_been_said_does_not_change_the_order(name):
    cosines = {
        "otter otter": 0.25,
        "hill cave": 0.7,
        "ice ice": 0.1,
        "kite kite": 1.0,
        "fog fog": 0.5,
        "rain rain": 0.5,
    }

    class Told(HashEmbedder):
        def embed_documents(self, texts):
            return np.array([[cosines[text], (1 - cosines[text] ** 2) ** 0.5] for text in texts], np.float32)

        def embed_query(self, text):
            return np.array([1.0, 0.0], np.float32)

    past, future = ["otter otter", "hill cave", "ice ice"], ["kite kite", "fog fog", "rain rain"]
    orders = [ranked(BASELINES[name], stack(texts), "otter", 3, Told()) for texts in (past, past + future)]
    assert orders[0] == orders[1]


@pytest.mark.parametrize(
    ("name", "texts"),
    [("bm25", ["мама мыла раму", "кошка спит"]), ("bm25", ["the of", "and"]), ("bm25-stemmed", ["a", "the"])],
)
def test_a_haystack_without_known_words_is_ranked_as_it_stands(name, texts):
    assert ranked(BASELINES[name], stack(texts), "кошка") == ["m0", "m1"]


@pytest.mark.parametrize("name", BASELINES)
def test_before_anything_was_said_there_is_nothing_to_rank(name):
    assert ranked(BASELINES[name], stack(TEXTS), "otter", 0) == []
