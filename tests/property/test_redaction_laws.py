"""Laws of redaction: twice is once, prose stays, and no secret survives wherever it stands."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.messages.redaction import RULES, redact, redact_json

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def of(alphabet, least, most=None):
    return st.text(alphabet, min_size=least, max_size=most or least)


# Made of parts, so that nothing here looks like a secret.
tokens = st.one_of(
    of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 16).map(lambda t: "AKIA" + t),
    of(LETTERS, 36).map(lambda t: "ghp" + "_" + t),
    of(LETTERS + "_-", 20, 30).map(lambda t: "glpat" + "-" + t),
    of(LETTERS, 10, 20).map(lambda t: "xoxb" + "-" + t),
    of(LETTERS, 16, 24).map(lambda t: "sk" + "_live_" + t),
    of(LETTERS + "_-", 20, 40).map(lambda t: "sk-" + "ant-" + t),
    of(LETTERS, 32, 48).map(lambda t: "sk-" + t),
    of(LETTERS + "_-", 35).map(lambda t: "AI" + "za" + t),
    of(LETTERS, 36).map(lambda t: "npm" + "_" + t),
    of(LETTERS + "_-", 50, 60).map(lambda t: "py" + "pi-" + t),
    st.tuples(of(LETTERS, 16, 22), of(LETTERS, 16, 43)).map(lambda t: "S" + "G." + ".".join(t)),
    of("0123456789abcdef", 32).map(lambda t: "S" + "K" + t),
    st.tuples(of(LETTERS, 8), of(LETTERS, 8), of(LETTERS, 8)).map(
        lambda t: "ey" + "J" + t[0] + "." + "ey" + "J" + t[1] + "." + t[2]
    ),
    of(LETTERS + "+/=", 64, 200).map(
        lambda t: "-----BEGIN RSA PRIVATE" + f" KEY-----\n{t}\n-----END RSA PRIVATE" + " KEY-----"
    ),
)
pieces = st.one_of(
    tokens,
    st.text(max_size=12),
    st.sampled_from(
        ["password=", "api_key: ", "token = ", "secret", "is ", '"', "'", "://u:", "@h", "Bearer ", "Authorization: ",
         " ", "\n", "=", ":", "hunter2", "none", "4242" * 4, "4242 ", "[redacted: ", "]", "-----", "eyJ", ".", "-",
         "_", "--password ", "data:image/png;base64,", "your_", "AKIA"],
    ),
)  # fmt: skip
texts = st.lists(pieces, max_size=12).map("".join)

words = st.sampled_from(
    """the ship sails at dawn with 12 crates and a cat; password reset, secret garden, token of thanks. Born
    1984-05-02, commit 4f9c2ab7d1e03b55, id 550e8400-e29b-41d4-a716-446655440000, see https://example.org/a?b=1 or
    mail ana@example.org key: value good news $5 100% (see below) naïve 我喜欢茶 привет v2.1.0
    src/app.py x=1""".split()
)
prose = st.lists(words, max_size=30).map(" ".join)
values = st.recursive(
    st.one_of(texts, st.integers(), st.none(), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["note", "password", "apiKey", "text", "my_secret"]), inner, max_size=3),
    ),
    max_leaves=6,
)


@given(texts)
def test_redacting_twice_is_redacting_once(text):
    once = redact(text)
    twice = redact(once.text)
    assert twice.text == once.text
    assert twice.found == ()


@given(texts)
def test_what_was_found_is_what_was_marked(text):
    assume("[redacted: " not in text)
    cleaned = redact(text)
    assert (cleaned.text != text) == bool(cleaned.found)
    assert set(cleaned.found) <= set(RULES)


@given(prose)
def test_prose_is_not_touched(text):
    # A word with digits right behind "password" is taken for one.
    assume(not re.search(r"password \S*\d", text))
    assert redact(text).text == text


@given(texts, tokens, texts)
def test_no_token_survives_wherever_it_stands(before, token, after):
    assume("base64," not in before)  # pictures are not looked into
    assert token not in redact(before + token + after).text


@given(
    st.text(max_size=20),
    st.sampled_from(["4242" * 4, "5555-5555-5555-4444", "3782 822463 10005"]),
    st.text(max_size=20),
)
def test_no_card_number_survives_between_other_characters(before, card, after):
    assume(not before[-1:].isdigit() and before[-1:] != "." and not after[:1].isdigit())
    assert card not in redact(before + card + after).text


@given(
    prose,
    of(LETTERS, 8, 20).map(lambda text: text + "7"),  # letters alone may be a stand-in
    prose,
    st.sampled_from(["password='{}'", 'api_key: "{}"', "SECRET=x{}", "DB_PASSWORD=p{}"]),
)
def test_no_assigned_secret_survives(before, secret, after, form):
    assert secret not in redact(f"{before} {form.format(secret)} {after}").text.replace(before, "").replace(after, "")


@given(values)
def test_json_keeps_its_shape_and_is_cleaned_once(value):
    once = redact_json(value)
    assert redact_json(once) == once
    assert _shape(once) == _shape(value)


def _shape(value):
    if isinstance(value, dict):
        return {key: _shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shape(inner) for inner in value]
    return value if value is None or isinstance(value, bool) else "text, or a number that may be a secret"


HARD = [
    "a", "1", " ", "\n", "-", "-----", "-----BEGIN PRIVATE KEY-----", "eyJ", ".eyJ", "eyJ.", "a.eyJa.", "password=",
    "password:", "password='", "password=your_", "password=\\", "secret: ", "secretkey", "token=", "token:", "awskey",
    "awskey=", "aws key ", "://", "://a:", "://a:b", "bearer ", "authorization: ", "sk-", "ghp_", "SG.a", "AKIA",
    "4242 ", "4242", "data:image/png;base64,", "password is ", "--password ", "[redacted: ", "x=", "é", "pwd: a.",
]  # fmt: skip


@pytest.mark.parametrize("length", [40_000, pytest.param(200_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("piece", HARD)
def test_a_long_text_of_anything_is_read(piece, length):
    text = (piece * length)[:length]
    assert redact(redact(text).text).found == ()
