"""Exports of other programs and our own are read: what can be is kept, the rest is told with its reason and place."""

import io
import json
import shutil
import zipfile
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import pytest

from builders import NOW, opened
from holdfast import InputError
from holdfast.testing.contracts import HashEmbedder
from holdfast.transfer.file_formats import FORMATS

EXPORTS = Path(__file__).parents[1] / "data" / "exports"
# By file: its format, what is kept in each session, and why how much is left out.
EXPECTED = {
    "chatgpt": (
        "chatgpt",
        {"c-bread": 5, "c-bergen": 1},
        {"no mapping": 2, "another branch": 1, "system's": 1, "no words": 1},
    ),
    "claude": (
        "claude",
        {"k-1": 2, "k-2": 1},
        {"no words": 1, "'narrator' is not a message role": 1, "no chat_messages": 1},
    ),
    "mem0.json": ("mem0", {None: 1, "dinner": 1}, {"no memory": 2, "'the day before' is not a time": 1}),
    "openai.json": ("messages", {"openai": 5}, {"'wizard' is not a message role": 1, "no role and content": 1}),
    "anthropic.json": ("messages", {"anthropic": 4}, {}),
    "langchain.json": ("messages", {"langchain": 5}, {"no role and content": 1}),
    "finetune.jsonl": ("messages", {"finetune 1": 2, "finetune 4": 2}, {"no role and content": 1}),
    "plain.txt": ("transcript", {"plain": 4}, {"no words": 1}),
    "chat.md": ("transcript", {"chat": 3}, {"before the first speaker": 1}),
    "headed.md": ("transcript", {"headed": 3}, {}),
    "whatsapp_android.txt": (
        "whatsapp",
        {"whatsapp_android": 4},
        {"system message of the app": 2, "left out": 1, "does not exist": 1, "deleted": 1},
    ),
    "whatsapp_ios.txt": ("whatsapp", {"whatsapp_ios": 3}, {"system message of the app": 1, "left out": 1}),
    "whatsapp_german.txt": ("whatsapp", {"whatsapp_german": 3}, {}),
    "telegram": ("telegram", {"Allotment": 4}, {"system message of the app": 1, "no words": 1, "no message": 1}),
    "telegram_all.json": ("telegram", {"Ilse": 1, "2": 1}, {"no messages": 1}),
    "slack": (
        "slack",
        {"harbour": 5, "Vera, Omar Haddad": 1},
        {"cannot be read as JSON": 1, "no time": 1, "system message of the app": 1},
    ),
}


@pytest.fixture
def memory():
    with opened(embedder=HashEmbedder(32)) as memory:
        yield memory


def units(memory, user="me", **more):
    return memory.list(user=user, limit=None, order="oldest", **more)


def said(memory, **more):
    return [(unit.speaker or unit.author, unit.text) for unit in units(memory, **more)]


@pytest.mark.parametrize("name", EXPECTED)
def test_what_can_be_read_is_kept_and_the_rest_is_told(memory, name):
    kind, sessions, reasons = EXPECTED[name]
    report = memory.import_(EXPORTS / name, user="me")
    assert (report.format, report.read, report.added) == (kind, sum(sessions.values()), sum(sessions.values()))
    counts = {}
    for unit in units(memory):
        counts[unit.session] = counts.get(unit.session, 0) + 1
    assert counts == sessions
    assert len(report.skipped) == len(reasons)
    for reason, count in reasons.items():
        [found] = [one for one in report.skipped if reason in one.reason]
        assert (found.count, len(found.where)) == (count, count)
    assert kind in FORMATS


@pytest.mark.parametrize("name", EXPECTED)
def test_a_second_run_adds_nothing(memory, name):
    first = memory.import_(EXPORTS / name, user="me")
    before = units(memory)
    again = memory.import_(EXPORTS / name, user="me")
    assert (again.added, again.updated, again.known) == (0, 0, first.read)
    assert (units(memory), again.skipped) == (before, first.skipped)


def test_chats_with_assistants_keep_who_spoke_when_and_about_what(memory):
    memory.import_(EXPORTS / "chatgpt", user="me")
    bread = units(memory, session="c-bread")
    assert [unit.author for unit in bread] == ["user", "assistant", "user", "tool", "assistant"]
    assert bread[0].event_time == datetime.fromtimestamp(1714550001.25, UTC)
    assert bread[1].metadata == {"conversation": "Sourdough", "model": "gpt-4o"}
    assert bread[2].text == "[image]\nDoes this crumb look right?"
    memory.import_(EXPORTS / "claude", user="me")
    pear, quince = units(memory, session="k-1")
    assert pear.text == "The pear tree by the shed died.\n\nsoil.txt:\npH 6.1, heavy clay\n\n[file tree.jpg]"
    assert (quince.text, quince.author) == (
        'search {"q": "pear rootstock clay"}\nPlant a quince rootstock instead.',
        "assistant",
    )
    assert pear.event_time == datetime(2025, 3, 2, 8, 0, 1, 123456, tzinfo=UTC)


def test_tools_are_heard_in_every_kind_of_message_list(memory):
    for name in ("openai.json", "anthropic.json", "langchain.json"):
        memory.import_(EXPORTS / name, user="me")
    tools = {unit.session: unit.text for unit in units(memory) if unit.author == "tool"}
    assert tools == {"openai": "noodles, miso, egg", "anthropic": "-12 C", "langchain": "saved"}
    calls = [unit.text for unit in units(memory) if unit.author == "assistant" and unit.parts]
    assert sorted(calls)[:2] == ['I look.\nweather {"city": "Oulu"}', "Noodles, miso and an egg."]
    assert 'note {"text": "locker 77"}' in calls


def test_memories_of_others_keep_their_owner_and_last(memory):
    report = memory.import_(EXPORTS / "mem0.json")
    assert [one.name for one in memory.users()] == ["tilda"]
    sesame = units(memory, user="tilda", session="dinner")[0]
    assert (sesame.agent, sesame.scope, sesame.metadata) == ("chef", "user", {"categories": ["food"]})
    assert report.first == datetime(2025, 1, 5, 10, tzinfo=timezone(-timedelta(hours=8)))
    memory.import_(EXPORTS / "mem0.json", user="guest")
    assert len(units(memory, user="guest")) == 2
    rows = json.loads((EXPORTS / "mem0.json").read_text())["results"][:2]
    rows[0]["user_id"] = "otto"
    with pytest.raises(InputError, match="is of otto, tilda, not of one user"):
        memory.import_(json.dumps(rows).encode(), user="guest")


def test_messengers_name_speakers_and_read_clocks_and_dates_of_any_order(memory):
    report = memory.import_(EXPORTS / "whatsapp_android.txt", user="me", zone="Europe/Oslo")
    assert said(memory)[0] == ("Rosa", "We meet at the lighthouse\nat ten, bring the lantern")
    assert units(memory)[0].event_time == datetime(2023, 12, 31, 20, 6, tzinfo=UTC)
    assert (report.speakers, report.warnings) == (("+47 912 34 567", "Rosa", "Nils"), ())
    memory.import_(EXPORTS / "whatsapp_ios.txt", user="me", session="choir")
    assert [(u.speaker, f"{u.event_time:%d %H:%M}") for u in units(memory, session="choir")] == [
        ("Mette", "13 00:00"),
        ("Ola", "13 21:06"),
        ("Ola", "14 10:01"),
    ]
    american = b"01/02/24, 9:05 PM - Ann: first\n01/03/24, 9:06 PM - Ann: second\n01/03/24, 9:07 AM - Bo: third\n"
    assert "month, day, year" in memory.import_(american, user="us").warnings[0]
    assert units(memory, user="us")[0].event_time == datetime(2024, 1, 2, 21, 5, tzinfo=UTC)
    year_first = b"2024-01-02, 21:05 - Ann: first\n2024-02-01, 21:06 - Bo: second\n"
    memory.import_(year_first, user="iso")
    assert [f"{u.event_time:%m-%d}" for u in units(memory, user="iso")] == ["01-02", "02-01"]
    finnish = "[12.3.2022 klo 14.08.18] Aino: moi\n[12.3.2022 klo 14.09.00] Eero: moi moi\n"
    memory.import_(finnish.encode(), user="fi")
    assert units(memory, user="fi")[0].event_time == datetime(2022, 3, 12, 14, 8, 18, tzinfo=UTC)


# What the app writes by itself: a line without a speaker, placeholders, a deleted message, and events.
APP_LINES = {
    "en": (
        "Messages and calls are end-to-end encrypted. Only people in this chat can read them.",
        ("<Media omitted>", "image omitted", "Plan.pdf • \u200e3 pages \u200edocument omitted"),
        "You deleted this message",
        ("Nils left", "Rosa added Nils", 'Rosa changed the subject to "Trip: 2024"', "Missed voice call"),
    ),
    "de": (
        "Nachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt. Niemand außerhalb dieses Chats kann sie lesen.",
        ("<Medien ausgeschlossen>", "Bild weggelassen", "Video weggelassen"),
        "Diese Nachricht wurde gelöscht.",
        (
            "Nils hat die Gruppe verlassen",
            "Rosa hat Nils hinzugefügt",
            "Rosa hat den Betreff zu „Reise: 2024“ geändert",
        ),
    ),
    "es": (
        "Los mensajes y las llamadas están cifrados de extremo a extremo. Nadie fuera de este chat puede leerlos.",
        ("<Multimedia omitido>", "imagen omitida", "audio omitido"),
        "Eliminaste este mensaje.",
        ("Nils salió del grupo", "Rosa añadió a Nils", "Rosa cambió el asunto a “Viaje: 2024”"),
    ),
    "fr": (
        "Les messages et les appels sont chiffrés de bout en bout. Aucune tierce personne ne peut les lire.",
        ("<Médias omis>", "image absente", "audio omis"),
        "Ce message a été supprimé.",
        ("Nils a quitté le groupe", "Rosa a ajouté Nils", "Rosa a changé l’objet en « Voyage : 2024 »"),
    ),
    "it": (
        "I messaggi e le chiamate sono crittografati end-to-end. Nessuno al di fuori di questa chat può leggerli.",
        ("<Media omessi>", "immagine omessa", "video omesso"),
        "Questo messaggio è stato eliminato",
        ("Nils ha abbandonato il gruppo", "Rosa ha aggiunto Nils", "Rosa ha cambiato l'oggetto in “Viaggio: 2024”"),
    ),
    "pt": (
        "As mensagens e as chamadas são protegidas com a criptografia de ponta a ponta. Ninguém mais pode ler.",
        ("<Mídia oculta>", "imagem ocultada", "áudio ocultado"),
        "Mensagem apagada",
        ("Nils saiu", "Rosa adicionou Nils", "Rosa mudou o nome do grupo para “Viagem: 2024”"),
    ),
    "nl": (
        "Berichten en oproepen zijn end-to-end versleuteld. Niemand buiten deze chat kan ze lezen.",
        ("<Media weggelaten>", "afbeelding weggelaten", "video weggelaten"),
        "Dit bericht is verwijderd",
        (
            "Nils heeft de groep verlaten",
            "Rosa heeft Nils toegevoegd",
            "Rosa heeft het onderwerp gewijzigd in “A: b”",
        ),
    ),
}


@pytest.mark.parametrize("form", ["android", "ios"])
@pytest.mark.parametrize("language", APP_LINES)
def test_lines_and_placeholders_of_the_app_are_left_out_in_every_usual_language(memory, language, form):
    notice, placeholders, deleted, events = APP_LINES[language]
    if form == "android":
        lines = [f"03.04.24, 10:0{n} - {line}" for n, line in enumerate((notice, *events))]
        lines += [f"03.04.24, 11:0{n} - Rosa: {line}" for n, line in enumerate((*placeholders, deleted))]
        lines += ["03.04.24, 12:00 - Rosa: IMG-20240403-WA0001.jpg (x y)", "03.04.24, 12:01 - Rosa: ja: ok"]
    else:
        lines = [f"\u200e[03.04.24, 10:0{n}:00] Choir: \u200e{line}" for n, line in enumerate((notice, *events))]
        lines += [
            f"[03.04.24, 11:0{n}:00] ~\u202fRosa: \u200e{line}" for n, line in enumerate((*placeholders, deleted))
        ]
        lines += ["\u200e[03.04.24, 12:00:00] Rosa: \u200e<x: 00000012-PHOTO-2024-04-03-12-00-00.jpg>"]
        lines += ["[03.04.24, 12:01:00] Rosa: ja: ok"]
    report = memory.import_("\r\n".join(lines).encode(), user="me")
    assert said(memory) == [("Rosa", "ja: ok")]
    told = {one.reason.split()[-1]: one.count for one in report.skipped}
    assert told == {"app": 1 + len(events), "out": len(placeholders) + 1, "deleted": 1}


@pytest.mark.parametrize(
    "words",
    [
        "Nils left", "Rosa added Nils to the list", "Kai hat die Gruppe verlassen", "Nils salió del grupo",
        "the image omitted the harbour", "null", "Null.", "I read: messages and calls are end-to-end encrypted",
        "Plan for May.pdf (file attached)", "Missed voice call from the bank, call them", "it says: <Media omitted>",
    ],
)  # fmt: skip
def test_what_a_person_writes_is_kept_though_the_app_could_have_written_it(memory, words):
    memory.import_(f"03.04.24, 10:00 - Rosa: {words}\n03.04.24, 10:01 - Kai: ok\n".encode(), user="me")
    assert said(memory) == [("Rosa", words), ("Kai", "ok")]


def test_slack_names_people_and_channels_in_what_was_said(memory):
    memory.import_(EXPORTS / "slack", user="me")
    assert said(memory, session="harbour") == [
        ("guest", "Is berth 4 free?"),
        ("Vera", "Berth 4 is free & dry, @Omar Haddad. See the plan (https://port.example/4) and #harbour"),
        ("Omar Haddad", "I take it"),
        ("tidebot", "High tide at 14:10"),
        ("Vera", "[file Berths]"),
    ]
    assert units(memory, session="harbour")[3].author == "tool"
    assert units(memory, session="harbour")[2].metadata == {"thread": "1706860100.000200"}


def test_transcripts_go_on_until_somebody_else_speaks_and_code_is_no_turn(memory):
    memory.import_(EXPORTS / "plain.txt", user="me")
    assert said(memory)[1:3] == [("Teo", "Which one,\nthe big one?"), ("Nadia", "Yes. It fires to 1280: stoneware.")]
    memory.import_(EXPORTS / "chat.md", user="md")
    assert said(memory, user="md")[1] == ("assistant", "In winter.\n\n```text\nUser: not a turn\n```")
    lines = ("10:00] Lea: the sluice is open", "10:05] Jon: close it", "10:06] Lea: done")
    timed = "".join(f"[2026-02-01 {line}\n" for line in lines).encode()
    report = memory.import_(timed, user="timed", name="sluice.txt")
    assert (report.first, report.last) == (
        datetime(2026, 2, 1, 10, tzinfo=UTC),
        datetime(2026, 2, 1, 10, 6, tzinfo=UTC),
    )


@pytest.mark.parametrize("name", ["chatgpt", "claude", "telegram", "slack", "whatsapp_ios.txt"])
def test_an_archive_is_read_as_what_is_in_it(memory, tmp_path, name):
    source = EXPORTS / name
    archive = tmp_path / "WhatsApp Chat - Choir.zip" if name.endswith(".txt") else tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in [source] if source.is_file() else sorted(source.rglob("*.json")):
            packed.write(file, "_chat.txt" if source.is_file() else file.relative_to(source).as_posix())
        packed.writestr("photos/1.jpg", b"\xff\xd8 no text")
    report = memory.import_(archive, user="me")
    kind, sessions, _ = EXPECTED[name]
    assert (report.format, report.added) == (kind, sum(sessions.values()))
    named = {"Choir"} if source.is_file() else sessions.keys()
    assert {unit.session for unit in units(memory)} == {*named}


def test_a_longer_file_adds_only_what_is_new(memory, tmp_path):
    text = (EXPORTS / "whatsapp_android.txt").read_text()
    chat = tmp_path / "chat.txt"
    chat.write_text(text)
    memory.import_(chat, user="me")
    chat.write_text(text + "02/01/2024, 08:00 - Nils: one more\n02/01/2024, 08:00 - Nils: one more\n")
    report = memory.import_(chat, user="me")
    assert (report.added, report.known) == (2, 4)
    tree = json.loads((EXPORTS / "chatgpt" / "conversations.json").read_text())
    memory.import_(json.dumps(tree).encode(), user="gpt")
    tree[0]["mapping"]["a5"]["children"] = ["a6"]
    reply = {
        "id": "a6",
        "author": {"role": "user"},
        "create_time": 1714560000.0,
        "metadata": {},
        "content": {"content_type": "text", "parts": ["Gustav doubled overnight."]},
    }
    tree[0]["mapping"]["a6"] = {"id": "a6", "parent": "a5", "children": [], "message": reply}
    tree[0]["current_node"] = "a6"
    assert memory.import_(json.dumps(tree).encode(), user="gpt").added == 1
    assert units(memory, user="gpt", session="c-bread")[-1].text == "Gustav doubled overnight."


@pytest.mark.parametrize(
    ("name", "kept"), [("chatgpt/conversations.json", 5), ("mem0.json", 1), ("telegram/result.json", 3)]
)
def test_a_file_that_was_cut_is_kept_up_to_there_and_told(memory, name, kept):
    text = (EXPORTS / name).read_text()
    marks = {"chatgpt/conversations.json": '"New chat"', "mem0.json": '"m-2"', "telegram/result.json": '"garbage"'}
    cut = text[: text.index(marks[name]) + 5]
    report = memory.import_(cut.encode(), user="me")
    assert (report.complete, report.added >= kept) == (False, True)
    assert f"line {cut.count(chr(10)) + 1}" in report.warnings[0] or "line" in report.warnings[0]
    whole = memory.import_(text.encode(), user="me")
    assert (whole.known, whole.complete) == (report.added, True)


def test_names_and_ids_of_any_length_are_brought_in_and_bad_ones_told(memory):
    chat = {"name": "n" * 900, "type": "private_group", "messages": []}
    for number, text in enumerate(["one", "two", "\ud800", "four\0"], start=1):
        chat["messages"].append(
            {"id": number, "type": "message", "date_unixtime": "1714546860", "from": "A", "text": text}
        )
    report = memory.import_(json.dumps(chat).encode(), user="me")
    assert (report.added, [one.count for one in report.skipped]) == (2, [1, 1])
    assert memory.sessions(user="me")[0].name == "n" * 256
    rows = [{"id": "1", "memory": "x", "user_id": "u" * 999}, {"id": "2", "memory": "y", "user_id": "eve"}]
    report = memory.import_(json.dumps(rows).encode())
    assert (report.added, report.skipped[0].count) == (1, 1)


def test_an_archive_that_would_fill_the_memory_is_refused(memory):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * 5_000_000 + b"]")
    with pytest.raises(InputError, match="is too large to be read"):
        memory.import_(packed.getvalue(), user="me")


NOT_KNOWN = {
    "a text": b"The harbour opens at nine.\nIt closes at ten.\n",
    "a letter": b"Date: 2 May\nSubject: the boat\n\nDear Ana,\nit leaks.\n",
    "a table": b"name,age\nana,3\n",
    "other JSON": b'{"a": 1}',
    "a list of numbers": b"[1, 2, 3]",
    "an empty list": b"[]",
    "nothing": b"",
    "no text": b"\xff\x00\x80 binary",
    "no archive": b"PK\x03\x04 broken",
    "deep JSON": b"[" * 100_000,
    "messages without words": b'[{"role": "user", "content": ""}]',
}


@pytest.mark.parametrize("what", NOT_KNOWN)
def test_what_is_no_export_is_refused_with_one_message_and_nothing_is_written(memory, what):
    with pytest.raises(InputError) as refused:
        memory.import_(NOT_KNOWN[what], user="me", name="it.txt")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400
    assert memory.users() == ()


def test_a_missing_file_an_unknown_format_and_a_wrong_one_are_refused(memory, tmp_path):
    for source, options, told in (
        (tmp_path / "none.json", {}, "there is no file"),
        (5, {}, "neither a path nor bytes"),
        (EXPORTS / "plain.txt", {"format": "signal"}, "there is no format 'signal'; choose one of holdfast"),
        (EXPORTS / "plain.txt", {"format": "chatgpt"}, "is no file of chatgpt"),
        (EXPORTS / "plain.txt", {"format": "slack"}, "a folder or a zip archive"),
        (tmp_path, {}, "holds no known export"),
    ):
        with pytest.raises(InputError, match=told):
            memory.import_(source, user="me", **options)


def test_a_dry_run_tells_the_same_and_writes_nothing(memory):
    planned = memory.import_(EXPORTS / "slack", user="me", dry_run=True)
    assert (planned.read, planned.added, planned.dry_run, memory.users()) == (6, 0, True, ())
    done = memory.import_(EXPORTS / "slack", user="me")
    assert (done.read, done.skipped, done.speakers) == (planned.read, planned.skipped, planned.speakers)


def test_progress_is_told_and_an_interruption_is_made_good(memory):
    chat = [{"role": "user", "content": f"step {n} of the walk", "id": f"w{n}"} for n in range(2_500)]
    told = []

    class StoppedError(Exception):
        pass

    def stop(done, of):
        told.append((done, of))
        if done == 2_000:
            raise StoppedError

    with pytest.raises(StoppedError):
        memory.import_(json.dumps(chat).encode(), user="me", name="walk", progress=stop)
    at = [done for done, _ in told]
    assert (at[0], at[-1], {of for _, of in told}) == (0, 2_000, {2_500})
    assert all(0 <= after - before <= 100 for before, after in pairwise(at))
    report = memory.import_(json.dumps(chat).encode(), user="me", name="walk", progress=lambda *_: None)
    assert (report.added, report.known) == (500, 2_000)


# ------------------------------------------------------------------------------------------------- our own file


@pytest.fixture
def own(memory):
    """Return the lines of an export of two users and of what is everyone's."""
    memory.remember(
        [{"role": "user", "content": f"stone {n} is grey", "id": f"s{n}"} for n in range(4)], user="ana", session="s"
    )
    memory.remember("I moved to Faro", user="ben", id="moved", metadata={"a": [1]})
    memory.remember("the gate closes at nine", user="ana", id="gate", scope="global")
    memory.ingest("# Rules\n\n- No shoes.\n", user="ana", name="rules.md", core=True)
    out = io.BytesIO()
    memory.export(out, all=True)
    return out.getvalue().splitlines(keepends=True)


def fresh():
    return opened(embedder=HashEmbedder(32))


def test_a_cut_or_changed_file_of_our_own_is_noticed_and_the_rest_is_kept(own):
    cases = {
        "cut between lines": (own[:-1], 6, "no last line"),
        "cut inside a line": ([*own[:4], own[4][:20]], 2, "no last line"),
        "a line lost": (own[:3] + own[4:], 5, "not as it was written; 5 of 6 units could be read"),
        "a byte changed": ([*own[:3], own[3].replace(b"grey", b"gray"), *own[4:]], 6, "not as it was written"),
        "a broken line": ([*own[:3], b"{broken\n", *own[4:]], 5, "not as it was written"),
    }
    for lines, kept, told in cases.values():
        with fresh() as copy:
            report = copy.import_(b"".join(lines))
            assert (report.complete, report.added) == (False, kept)
            assert told in report.warnings[0]
            assert copy.store.verify() == []
            whole = copy.import_(b"".join(own))
            assert whole.complete
            assert len(units(copy, "ana")) == 5


def test_names_in_the_file_count_unless_one_user_takes_over_that_of_another(memory, own):
    with fresh() as copy:
        with pytest.raises(InputError, match="is of ana, ben, everyone, not of one user"):
            copy.import_(b"".join(own), user="cleo")
        assert copy.users() == ()
        out = io.BytesIO()
        memory.export(out, user="ana")
        assert copy.import_(out.getvalue(), user="cleo").added == 4
        assert [one.name for one in copy.users()] == ["cleo"]
        assert copy.documents(user="cleo")[0].name == "rules.md"
        assert copy.import_(out.getvalue()).added == 4  # and under her own name
        copy.remember("stone 0 is white", user="cleo", id="own")


WRONG = {
    "text": 5,
    "event_time": "yesterday",
    "recorded_time": "2026-05-04T12:00:00",
    "kind": "spell",
    "scope": "planet",
    "user": ["x"],
    "session": "",
    "id": None,
    "position": -1,
    "version": 2,
    "authority": 7,
    "pinned": "yes",
    "metadata": [1],
    "parts": "x",
    "author": "nobody",
    "role": "King",
    "links": [1],
    "fact": {"subject": 1},
    "lineage": {},
    "unheard_of": 1,
    "utility_acts": ["sing"],
    "supersedes": "x" * 5,
    "expires_at": 12,
}


# What no store can count or date; one such line must not keep the whole file out.
BEYOND = [
    ("position", 2**31), ("position", 2**70), ("version", 2**70), ("event_time", "0001-01-01T00:00:00+14:00"),
    ("event_time", "9999-12-31T23:59:59-12:00"), ("expires_at", "9999-12-31T23:59:59+00:00"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [*WRONG.items(), *BEYOND])
def test_a_unit_with_a_field_that_no_unit_has_is_left_out(own, name, value):
    [place] = [n for n, line in enumerate(own) if b'"moved"' in line]
    row = json.loads(own[place])
    row["unit"][name] = value
    lines = [*own[:place], json.dumps(row).encode() + b"\n", *own[place + 1 :]]
    with fresh() as copy:
        report = copy.import_(b"".join(lines))
        left = {one.where[0]: one.reason for one in report.skipped}
        assert [*left] == [f"line {place + 1}"], left
        assert report.added == 5
        assert [one.name for one in copy.users()] == ["ana"]


def _core(name, text, user=None):
    return json.dumps({"document": {"user": user, "name": name, "core": True, "text": text}}).encode() + b"\n"


@pytest.mark.parametrize("text", ["- always follow this rule\n" * 20_000, "words without a rule\n\n" * 60_000])
def test_a_core_document_that_ingest_refuses_ends_nobodys_contexts(own, text):
    with fresh() as copy:
        with pytest.raises(InputError) as refused:
            copy.ingest(text, user="ana", name="bomb.md", core=True, scope="global")
        report = copy.import_(b"".join([own[0], _core("bomb.md", text), *own[1:]]))
        assert (report.added, report.documents) == (6, 1)
        assert [one.reason[:100] for one in report.skipped] == [str(refused.value)[:100]]
        for user in ("ana", "ben", "nobody"):
            assert copy.assemble("which stone is grey?", user=user, budget=500)
            assert [one.name for one in copy.documents(user=user)] == (["rules.md"] if user == "ana" else [])


def test_rules_of_an_import_are_counted_together(own):
    some = "- always follow this rule number one\n" * 200
    documents = [_core(f"rules-{number}.md", some) for number in range(4)]
    with fresh() as copy:
        report = copy.import_(b"".join([own[0], *documents]))
        assert 0 < report.documents < 4
        assert sum(one.count for one in report.skipped) == 4 - report.documents
        assert copy.assemble("which stone is grey?", user="ana")


@pytest.mark.parametrize(
    "marks",
    [
        {"superseded_by": "s1"},
        {"covered_at": "2026-05-04T12:00:00.000000Z"},
        {"access_count": -1},
        {"access_count": "x"},
        {"access_count": 2**70},
        {"gate": {}},
        {"gate": 5},
        {"absences": [[1, 2]]},
        {"versions": [{}]},
        {"document": 7},
        {"vectors": ["?"]},
        {"vectors": [None, None]},
    ],
)
def test_marks_that_no_store_has_are_left_out(own, marks):
    [place] = [n for n, line in enumerate(own) if b'"moved"' in line]
    row = json.loads(own[place]) | marks
    lines = [*own[:place], json.dumps(row).encode() + b"\n", *own[place + 1 :]]
    with fresh() as copy:
        report = copy.import_(b"".join(lines))
        assert (report.added, [one.count for one in report.skipped]) == (5, [1])
        assert copy.store.verify() == []


def test_a_newer_file_is_refused_and_a_name_that_is_taken_is_told(own):
    heading = json.loads(own[0]) | {"version": 99}
    with fresh() as copy:
        with pytest.raises(InputError, match="of version 99, and this reads 1; upgrade"):
            copy.import_(b"".join([json.dumps(heading).encode() + b"\n", *own[1:]]))
        copy.remember("I moved to Tavira", user="ben", id="moved")
        copy.ingest("# Rules\n\n- Shoes.\n", user="ana", name="rules.md", core=True)
        report = copy.import_(b"".join(own))
        assert {one.reason.split(" has")[0]: one.count for one in report.skipped} == {
            "another unit": 1,
            "another document": 1,
        }
        assert copy.get("moved", user="ben").text == "I moved to Tavira"


def test_what_must_not_be_kept_is_taken_out_of_an_import_too(own):
    hide = {"redactor": lambda text: text.replace("Faro", "[place]")}
    from holdfast import Memory, Settings  # noqa: PLC0415 - a memory with a redactor, which the builder has not

    settings = Settings.load({"embedding.embedder": "none"}, environ={})
    with Memory.open(":memory:", settings=settings, now=lambda: NOW, **hide) as copy:
        copy.import_(b"".join(own))
        assert copy.get("moved", user="ben").text == "I moved to [place]"
        copy.import_(b"User: I am in Faro\nAssistant: Nice.\n", user="eve", name="x")
        assert "I am in [place]" in [unit.text for unit in units(copy, "eve")]


def test_markdown_is_for_people(memory, own, tmp_path):
    memory.remember("# not a heading\n\u202eobeyed", user="ana", session="s", id="odd", pinned=True)
    done = memory.export(tmp_path / "ana.md", user="ana", format="markdown")
    text = (tmp_path / "ana.md").read_text()
    assert (done.units, done.documents, done.bytes) == (5, 1, len(text.encode()))
    assert text.startswith("# Memory of ana\n")
    assert "## Session s\n\n**user** · 2026-05-04 12:00 · " in text
    assert "> # not a heading\n> \\u202eobeyed\n" in text
    assert "## Document rules.md (core)\n\n```text\n# Rules\n" in text
    memory.export(tmp_path / "all.md", all=True, format="markdown")
    everyone = (tmp_path / "all.md").read_text()
    assert "# Memory of ben" in everyone
    assert "> the gate closes at nine" in everyone.partition("# Memory of everyone")[2]
    shutil.rmtree(tmp_path)
