"""Redaction at write: which secrets leave, and what must stay. Every secret here is made up."""

import pytest

from holdfast.messages.redaction import RULES, redact, redact_json

# Nothing in this file may look like a secret to a scanner: parts are joined when the tests run.
DIGITS = "0123456789"
FAKE = "FAKE" + "fake" + DIGITS + "Example"  # 25 letters and digits
LONG = FAKE * 3
HEX = "deadbeef" * 4
PEM = "-----BEGIN {} KEY-----\n" + "\n".join([FAKE * 2] * 3) + "\n-----END {} KEY-----"
JWT = ".".join(("ey" + "J" + FAKE, "ey" + "J" + FAKE, FAKE))

# Rule → (text with {} where the secret stands, secret).
POSITIVE = [
    ("private key", "here:\n{}\ndone", PEM.format("RSA PRIVATE", "RSA PRIVATE")),
    ("private key", "{}", PEM.format("PRIVATE", "PRIVATE")),
    ("private key", "key = '{}'", PEM.format("OPENSSH PRIVATE", "OPENSSH PRIVATE").replace("\n", "\\n")),
    ("private key", "cut off: {}", PEM.format("EC PRIVATE", "").partition("-----END")[0].rstrip()),
    ("private key", "{}", PEM.format("PGP PRIVATE", "PGP PRIVATE").replace("KEY", "KEY BLOCK")),
    ("aws access key", "id {} in use", "AKIA" + "FAKE" * 4),
    ("aws access key", "x{}", "ASIA" + "EXAMPLE0" * 2),
    ("aws secret key", "aws_secret_access_key = {}", "fAkE/+" * 6 + "fak3"),
    ("aws secret key", 'AWS secret key: "{}"', "fAkE0+/x" * 5),
    ("github token", "use {} please", "ghp" + "_" + LONG[:36]),
    ("github token", "({})", "gho" + "_" + LONG[:40]),
    ("github token", "{},", "github" + "_pat_" + LONG[:30]),
    ("gitlab token", "{}", "glpat" + "-" + FAKE),
    ("slack token", "bot {}", "xoxb" + "-" + "-".join([DIGITS, FAKE])),
    ("slack token", "post to https://{} now", "hooks.slack" + ".com/services/T00FAKE/B00FAKE/" + FAKE),
    ("stripe key", "{}", "sk" + "_live_" + FAKE),
    ("stripe key", "{}", "rk" + "_test_" + FAKE),
    ("stripe key", "signing {}", "wh" + "sec_" + FAKE),
    ("anthropic key", "{}", "sk-" + "ant-api03-" + LONG),
    ("openai key", "key {}", "sk-" + LONG[:48]),
    ("openai key", "{}", "sk-" + "proj-" + LONG),
    ("google key", "maps {}", "AI" + "za" + LONG[:35]),
    ("google key", "{}", "ya29" + "." + LONG),
    ("google key", "{}", "GOC" + "SPX-" + FAKE),
    ("hugging face token", "{}", "hf" + "_" + LONG[:34]),
    ("npm token", "//registry/:_authToken {}", "npm" + "_" + LONG[:36]),
    ("pypi token", "{}", "py" + "pi-" + LONG),
    ("sendgrid key", "{}", "S" + "G." + FAKE + "." + FAKE),
    ("twilio key", "{}", "S" + "K" + HEX),
    ("json web token", "cookie {}; path=/", JWT),
    ("json web token", "glued_{}", JWT),
    ("authorization header", "Authorization: Basic {}", "ZmFrZTpm" + "YWtl" + "=="),
    ("authorization header", '-H "authorization: Bearer {}"', FAKE),
    ("authorization header", '{{"Authorization": "token {}"}}', FAKE),
    ("bearer token", "send it as bearer {} then", FAKE),
    ("password in a url", "postgres://app:{}@db.example.org:5432/shop", "fake-pass-1"),
    ("password in a url", "https://ana:{}@example.org/x", "tr0ub4dor&3"),
    ("password in a url", "redis://:{}@cache:6379/0", "fakefake"),
    ("assigned secret", "password={}", "swordfish"),
    ("assigned secret", "PASSWORD = '{}'", "swordfish"),
    ("assigned secret", '{{"api_key": "{}"}}', FAKE),
    ("assigned secret", "api_key: {} # old", FAKE),
    ("assigned secret", "db:\n  password: {}\n  host: x", "swordfish"),
    ("assigned secret", "Server=db;User=sa;Password={};Encrypt=yes", "fake!Pass1"),
    ("assigned secret", "DefaultEndpointsProtocol=https;AccountKey={};", FAKE + "=="),
    ("assigned secret", "DB_PASSWORD={} make run", "swordfish"),
    ("assigned secret", "https://example.org/?client_secret={}&x=1", FAKE),
    ("assigned secret", "export AUTH_TOKEN={}", FAKE),
    ("assigned secret", "token: {}", FAKE),
    ("assigned secret", "PASSWORD={}", "pa$$word"),
    ("assigned secret", '{{\\"password\\": \\"{}\\"}}', "swordfish"),
    ("assigned secret", "my password is {}.", "hunter2"),
    ("assigned secret", "the api key is: '{}'", "abc-12345"),
    ("assigned secret", "password {}", "hunter2"),
    ("assigned secret", "the Wi-Fi password {} is on the box", "tulip-4471"),
    ("assigned secret", "log in with ana and password '{}', then", "c0rrectHorse"),
    ("aws secret key", "secret {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("assigned secret", "mysql --user root --password {} shop", "hunter22"),
    ("assigned secret", "SECRET_KEY := {}", FAKE),
    ("card number", "pay with {} today", "4242" * 4),
    ("card number", "pay with {}.", " ".join(["4242"] * 4)),
    ("card number", "{}", "-".join(["5555", "5555", "5555", "4444"])),
    ("card number", "amex {}", " ".join(["3782", "822463", "10005"])),
]

NEGATIVE = [
    "I prefer tea over coffee.",
    "My password is on the fridge.",
    "The password is required, and the password must be long.",
    "Change your password: it is too short.",
    "I forgot my password again!",
    "password: minimum eight characters",
    "password: 12-character minimum",
    "She keeps a secret: the garden.",
    "The secret is patience.",
    "Tokens: 4096",
    "max_tokens = 4096",
    "token: the smallest unit of text",
    "A token is a word or a part of one.",
    "password = input('Password: ')",
    "password = getpass.getpass()",
    "login(password=user.password)",
    "password=None, token=None",
    "api_key = os.environ['API_KEY']",
    "api_key=process.env.API_KEY",
    "api_key = load_key",
    "password: ${DB_PASSWORD}",
    "password=<password>",
    "PASSWORD=$PASSWORD",
    "password=********",
    'api_key="your-api-key"',
    '"password": "must be at least eight letters"',
    "commit 4f9c2ab7d1e03b5586aa7c1f22d9e0b3c4a5f607",
    "sha256:" + "0123456789abcdef" * 4,
    "550e8400-e29b-41d4-a716-446655440000",
    "The meeting is on 2026-03-29 at 10:30.",
    "2026-03-29T10:30:00.123456Z",
    "Call +44 20 7946 0958 or 555-0100.",
    "order 1234567890123456",
    "epoch 1750000000000",
    "0.4242424242424242",
    "pi is 3.14159265358979323846",
    "4242 4242 4242 4241",
    "https://example.org:8080/users/@me",
    "ssh git@example.org:team/repo.git",
    "mail ana@example.org",
    "https://example.org/a?page=2&sort=asc",
    "The bearer of bad news arrived.",
    "bearer token authentication is described below",
    "task-management-system-for-very-large-teams",
    "sk-learn and sk-image",
    "risk-assessment-framework-documentation-2026",
    "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUg" + "AI" + "za" + LONG,
    "-----BEGIN CERTIFICATE-----\n" + FAKE + "\n-----END CERTIFICATE-----",
    "It starts with -----BEGIN PRIVATE KEY----- and so on.",
    "我的密码在冰箱上。",
    "for (const key of keys) { map[key] = value; }",
    "print(token)",
    "secretary: Anna",
    "The password policy changed last week.",
    "The password manager syncs, the password hashing does not.",
    "password argon2id hashing, password SHA-256 digests, password pbkdf2_sha256",
    "password 1st try, password step2, password 8-character minimum, password 2FA",
    "use the password from 2026-04-03 or the passphrase of room-12b",
    "cache key da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "token DA39A3EE5E6B4B0D3255BFEF95601890AFD80709AB",
    "passwordless login",
    "ISBN 978-3-16-148410-0",
    "IBAN DE00 0000 0000 0000 0000 00",
    "",
]


@pytest.mark.parametrize(("name", "text", "secret"), POSITIVE)
def test_secrets_leave_and_the_rest_stays(name, text, secret):
    cleaned = redact(text.format(secret))
    assert cleaned.found == (name,)
    assert secret not in cleaned.text
    mark = f"[redacted: {name}]"
    before, after = text.format("\0").split("\0")
    # What is glued to a web token leaves with it.
    assert cleaned.text == (mark if text == "glued_{}" else f"{before}{mark}{after}")


@pytest.mark.parametrize("text", NEGATIVE)
def test_ordinary_text_is_not_touched(text):
    assert redact(text).text == text
    assert redact(text).found == ()


def test_every_rule_is_tried_and_there_are_many_cases():
    assert {name for name, _, _ in POSITIVE} == set(RULES)
    assert len(POSITIVE) >= 40
    assert len(NEGATIVE) >= 40


def test_several_secrets_are_named_once_each_in_the_order_of_the_rules():
    card, key = "4242" * 4, "AKIA" + "FAKE" * 4
    cleaned = redact(f"card {card}, again {card}, and {key}")
    assert cleaned.found == ("aws access key", "card number")
    assert (
        cleaned.text == "card [redacted: card number], again [redacted: card number], and [redacted: aws access key]"
    )


def test_what_stood_glued_to_a_secret_is_found_too():
    first, second = "ghp" + "_" + LONG[:36], "AKIA" + "FAKE" * 4
    assert redact(f"{second}-{first}").text == "[redacted: aws access key]-[redacted: github token]"


def test_json_is_cleaned_inside_and_keeps_its_keys_and_its_shape():
    key = "AKIA" + "FAKE" * 4
    value = {
        "note": f"use {key}",
        "password": "swordfish",
        "nested": [{"api_key": FAKE, "n": 3, "yes": True, "nothing": None}, ["plain", 1.5]],
        "accessToken": [FAKE],
        "secret": "required",
        "pin": {"password": 4711, "hint": "the street"},
        "secret_key": {"value": ("swordfish", True, None)},
        "token": FAKE,
        "tokens": 4096,
        "max_token": "many",
        key: "keys are not touched",
    }
    cleaned = redact_json(value)
    assert cleaned == {
        "note": "use [redacted: aws access key]",
        "password": "[redacted: assigned secret]",
        "nested": [
            {"api_key": "[redacted: assigned secret]", "n": 3, "yes": True, "nothing": None},
            ["plain", 1.5],
        ],
        "accessToken": ["[redacted: assigned secret]"],
        "secret": "required",
        "pin": {"password": "[redacted: assigned secret]", "hint": "the street"},
        "secret_key": {"value": ("[redacted: assigned secret]", True, None)},
        "token": "[redacted: assigned secret]",
        "tokens": 4096,
        "max_token": "many",
        key: "keys are not touched",
    }
    assert redact_json(cleaned) == cleaned


def test_a_redactor_of_ones_own_finds_the_secrets_of_texts():
    cleaned = redact_json({"city": "Porto", "password": "Porto", "links": ("Porto",)}, lambda text: f"not {text}")
    assert cleaned == {"city": "not Porto", "password": "[redacted: assigned secret]", "links": ("not Porto",)}
