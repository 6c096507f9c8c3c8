"""Core documents through `Memory` (C14): what is refused, what is read again, whose rules they are."""

import io
import os
import shutil

import pytest

from builders import NOW, later, opened
from holdfast import Memory, Settings
from holdfast.documents import core as documents
from holdfast.documents import folder
from holdfast.errors import BudgetError, InputError
from holdfast.testing.contracts import HashEmbedder

BODY = "# House\n\n- be kind\n\nYou must ask first.\n\nThe kettle is on the shelf.\n\nThe violin hangs in the hall.\n"


@pytest.fixture
def memory():
    with opened(embedder=HashEmbedder(64)) as opened_memory:
        yield opened_memory


@pytest.fixture
def core(tmp_path):
    path = tmp_path / "AGENTS.md"
    path.write_text(BODY, encoding="utf-8")
    return path


def rules(memory, user="ana", **call):
    return memory.assemble("zeppelin", user=user, track_access=False, **call).section("hard").text


def found(memory, question, user="ana"):
    return [hit.unit.text for hit in memory.search(question, user=user)]


def assert_nothing_kept(memory, user="ana"):
    assert memory.list(user=user, current_only=False) == []
    assert memory.assemble("kettle", user=user).text == ""


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "no content"),
        (b" \n\n\t\n", "no content"),
        (b"\xef\xbb\xbf", "no content"),
        (b"caf\xe9 is a word\n", "not UTF-8"),
        (b"- be\x00kind\n", "NUL"),
        (b"word " * 4_194_304, "20,971,520 bytes"),
    ],
)
@pytest.mark.parametrize("core", [True, False])
def test_what_is_no_document_is_refused_and_nothing_is_kept(memory, tmp_path, raw, reason, core):
    path = tmp_path / "AGENTS.md"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=reason):
        memory.ingest(path, user="ana", core=core)
    assert_nothing_kept(memory)


def test_a_file_that_is_not_there_or_no_file_is_refused(memory, tmp_path):
    for path, reason in ((tmp_path / "nowhere.md", "cannot be read"), (tmp_path, "ingest_folder")):
        with pytest.raises(InputError, match=reason):
            memory.ingest(path, user="ana", core=True)
    assert_nothing_kept(memory)


@pytest.mark.parametrize(
    ("source", "more"),
    [
        ("- a rule\n", {}),
        ("- a rule\n", {"name": " "}),
        ("- a rule\n", {"name": "x" * 300}),
        ("- a rule\n", {"name": "A.md", "scope": "session"}),
        ("- a rule\n", {"name": "A.md", "core": "yes"}),
        ("\ud800", {"name": "A.md"}),
        ("", {"name": "A.md", "core": True}),
        (None, {"name": "A.md"}),
        (b"- a rule\n", {}),
        (7, {"name": "A.md"}),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(memory, source, more):
    with pytest.raises(InputError):
        memory.ingest(source, user="ana", **more)
    assert_nothing_kept(memory)


def saved_while_read(monkeypatch, path, times):
    """Let so many readings find a file that its writer has not finished."""
    whole, left = folder.read_all, [times]

    def reading(file, most):
        raw = whole(file, most)
        if left[0]:
            left[0] -= 1
            path.write_bytes(raw + b"\n- one more\n")
            os.utime(path, ns=(left[0], left[0]))
        return raw

    monkeypatch.setattr(folder, "read_all", reading)


def test_a_file_that_is_saved_while_it_is_read_is_read_again(memory, core, monkeypatch):
    saved_while_read(monkeypatch, core, 1)
    memory.ingest(core, user="ana", core=True)
    assert "- one more" in rules(memory)


def test_a_file_that_would_let_its_reader_wait_is_refused(memory, core, monkeypatch):
    class Waiting(io.FileIO):  # as /proc/kmsg, which is a regular file by its kind
        def read(self, _size=-1):
            return None

    monkeypatch.setattr(os, "fdopen", lambda file, _mode: Waiting(file))
    with pytest.raises(InputError, match="cannot be read: it has nothing to read now"):
        memory.ingest(core, user="ana")
    monkeypatch.undo()
    assert_nothing_kept(memory)


def test_a_file_that_never_holds_still_is_refused(memory, core, monkeypatch):
    saved_while_read(monkeypatch, core, 9)
    with pytest.raises(InputError, match="changes while it is read"):
        memory.ingest(core, user="ana", core=True)
    assert_nothing_kept(memory)


# ---------------------------------------------------------------------------------------- the start-up check

HEAVY = f"- {'word ' * 3000}\n- be kind\n\nThe kettle is on the shelf.\n"


def test_rules_beyond_their_share_are_refused_whole_and_the_heaviest_is_named(memory):
    with pytest.raises(BudgetError, match=r"hard_share.*heaviest: A\.md#0"):
        memory.ingest(HEAVY, name="A.md", user="ana", core=True)
    assert_nothing_kept(memory)
    memory.ingest(HEAVY, name="A.md", user="ana")  # as an ordinary document it may be as long


def test_documents_count_together_and_the_old_text_of_one_does_not(memory):
    half = f"- {'word ' * 1200}\n"
    memory.ingest(half, name="A.md", user="ana", core=True)
    with pytest.raises(BudgetError, match=r"A\.md#0.*B\.md#0"):
        memory.ingest(half, name="B.md", user="ana", core=True)
    memory.ingest(f"{half}- and more\n", name="A.md", user="ana", core=True)
    memory.ingest(half, name="B.md", user="ben", core=True)
    assert "and more" in rules(memory)


def test_rules_that_settings_no_longer_hold_are_told_to_their_owner_alone(tmp_path):
    path = tmp_path / "a.db"
    with opened(path=path) as memory:
        memory.ingest(BODY, name="A.md", user="ana", core=True)
    with opened(Settings.load({"assembly.budget": 5}, environ={}), path=path) as memory:
        with pytest.raises(BudgetError, match=r"A\.md#"):
            memory.assemble("kettle", user="ana")
        assert "A.md" not in str(memory.assemble("kettle", user="ben").warnings)
    with opened(Settings.load({"assembly.hard_share": 0.0}, environ={}), path=path) as memory:
        assert "hard_share = 0.0" in memory.assemble("kettle", user="ana").warnings[0]


def test_a_file_that_outgrows_its_share_keeps_nobody_else_from_the_store(tmp_path, core):
    with opened(path=tmp_path / "a.db") as memory:
        memory.ingest(core, user="mallory", tenant="other", core=True)
        memory.remember("a boat", user="ana")
    core.write_text(HEAVY * 4, encoding="utf-8")
    with opened(path=tmp_path / "a.db") as memory:
        assert memory.assemble("boat", user="ana").warnings == ()
        with pytest.raises(BudgetError, match=r"heaviest: AGENTS\.md"):
            memory.assemble("boat", user="mallory", tenant="other")


def test_nobody_is_told_of_another_users_rules(memory):
    memory.ingest(f"- {'word ' * 1200}\n", name="Secret.md", user="ben", core=True)
    memory.ingest(f"- {'word ' * 1200}\n", name="All.md", user="ana", scope="global", core=True)
    with pytest.raises(BudgetError) as refused:
        memory.ingest(f"- {'word ' * 1200}\n", name="More.md", user="ana", scope="global", core=True)
    assert "Secret" not in str(refused.value)
    assert memory.assemble("boat", user="ana").warnings == ()
    assert "the hard rules take" in memory.assemble("boat", user="ben").warnings[0]


# ----------------------------------------------------------------------------------------------- tiers


def test_hard_and_soft_nodes_are_rules_and_no_units(memory, core):
    memory.ingest(core, user="ana", core=True)
    context = memory.assemble("kind ask kettle violin", user="ana")
    assert context.section("hard").text == "[rules]\n# House\n- be kind\n"
    assert context.section("soft").text == "[guidance]\nYou must ask first.\n"
    assert {unit.text for unit in memory.list(user="ana")} == {
        "The kettle is on the shelf.",
        "The violin hangs in the hall.",
    }
    assert {unit.kind for unit in memory.list(user="ana")} == {"authored"}


def test_an_ordinary_document_brings_no_rules(memory, core):
    memory.ingest(core, user="ana")
    context = memory.assemble("be kind", user="ana")
    assert context.section("hard").items == context.section("soft").items == ()
    assert any(unit.text.startswith("be kind") for unit in memory.list(user="ana"))
    assert {unit.origin for unit in memory.list(user="ana")} == {"document"}


def test_documents_stand_in_the_order_in_which_they_were_declared(memory):
    for name in ("B.md", "A.md", "C.md"):
        memory.ingest(f"- rule of {name}\n", name=name, user="ana", core=True)
    memory.ingest("- new rule of B.md\n", name="B.md", user="ana", core=True)
    assert rules(memory) == "[rules]\n- new rule of B.md\n- rule of A.md\n- rule of C.md\n"


def test_ingesting_the_same_again_changes_nothing(memory, core):
    first = memory.ingest(core, user="ana", core=True)
    again = memory.ingest(core, user="ana", core=True)
    assert [done.status for done in first] == ["added", "added"]
    assert [(done.id, done.status, done.version) for done in again] == [(d.id, "duplicate", 1) for d in first]


# ------------------------------------------------------------------------------------------ read again


def test_an_edit_is_seen_at_the_next_context(memory, core):
    memory.ingest(core, user="ana", core=True)
    before = rules(memory)
    core.write_text("# House\n\n- be brief\n\nThe kettle is broken.\n", encoding="utf-8")
    context = memory.assemble("kettle", user="ana")
    assert context.section("hard").text == before.replace("kind", "brief")
    assert context.section("soft").text == ""
    assert [item.text for item in context.section("projection").items] == ["The kettle is broken."]
    assert context.warnings == ()


def test_removed_nodes_are_no_longer_recalled_and_stay_in_history(memory, core):
    memory.ingest(core, user="ana", core=True)
    [violin] = [unit for unit in memory.list(user="ana") if "violin" in unit.text]
    core.write_text("- be kind\n\nThe kettle is on the shelf.\n", encoding="utf-8")
    rules(memory)
    assert found(memory, "violin hall") == []
    assert "violin" not in memory.assemble("violin hall", user="ana").text
    assert [unit.text for unit in memory.list(user="ana")] == ["The kettle is on the shelf."]
    assert memory.history(violin.id, user="ana")[0].text == violin.text


def test_a_node_that_comes_back_is_recalled_again(memory, core):
    memory.ingest(core, user="ana", core=True)
    for body in ("- be kind\n", BODY):
        core.write_text(body, encoding="utf-8")
        rules(memory)
    assert "The violin hangs in the hall." in found(memory, "violin hall")


def test_a_line_that_becomes_a_rule_is_no_unit_any_more(memory, core):
    core.write_text("The violin hangs in the hall.\n", encoding="utf-8")
    memory.ingest(core, user="ana", core=True)
    core.write_text("- The violin hangs in the hall.\n", encoding="utf-8")
    assert "- The violin" in rules(memory)
    assert found(memory, "violin hall") == []


def test_an_unchanged_file_makes_no_versions(core):
    moment = [NOW]
    with opened(embedder=HashEmbedder(64), now=lambda: moment[0]) as memory:
        memory.ingest(core, user="ana", core=True)
        for days in range(1, 4):
            moment[0] = later(days=days)
            core.touch()
            rules(memory)
        assert memory.stats(user="ana").versions == 2
        core.write_text(BODY.replace("shelf", "stove"), encoding="utf-8")
        rules(memory)
        assert memory.stats(user="ana").versions == 3


UNREADABLE = {
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe"),
    "too large": lambda path: path.write_bytes(b"x" * 2_000_000),
    "a huge hole": lambda path: os.truncate(path, 2**33),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a device": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


def rewritten(path, body):
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.unlink(missing_ok=True)
    path.write_text(body, encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes and devices are files where they can be made")
@pytest.mark.parametrize("spoil", UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_became_unreadable_keeps_its_last_rules_and_says_so(memory, core, spoil):
    memory.ingest(core, user="ana", core=True)
    before = rules(memory)
    spoil(core)
    context = memory.assemble("kettle", user="ana")
    assert context.section("hard").text == before
    [warning] = context.warnings
    assert "AGENTS.md is used as it was last read" in warning
    assert found(memory, "kettle shelf")[0] == "The kettle is on the shelf."
    with pytest.raises(InputError):
        memory.ingest(core, user="ana", core=True)
    rewritten(core, "- be back\n")
    context = memory.assemble("kettle", user="ana")
    assert (context.section("hard").text, context.warnings) == ("[rules]\n- be back\n", ())


def test_a_new_part_whose_id_is_taken_keeps_the_last_rules_and_says_so(memory, core):
    core.write_text("- be kind\n\nThe kettle is on the shelf.\n", encoding="utf-8")
    memory.ingest(core, user="root", core=True, scope="global")
    memory.remember({"id": "AGENTS.md#000002", "claim": "this was here first"}, user="eve", scope="global")
    core.write_text("- be kinder\n\nThe kettle is on the shelf.\n\nThe violin hangs in the hall.\n", encoding="utf-8")
    for user in ("root", "ana", "eve"):
        context = memory.assemble("kettle", user=user)
        assert context.section("hard").text == "[rules]\n- be kind\n"
        [warning] = context.warnings
        assert "AGENTS.md is used as it was last read: the id 'AGENTS.md#000002' is taken" in warning
    assert "violin" not in memory.assemble("violin hall", user="ana").text


@pytest.mark.parametrize("body", [None, "", " \n\n", "\ufeff"])
def test_a_file_that_was_emptied_or_removed_ends_its_rules_at_once(memory, core, body):
    memory.ingest(core, user="ana", core=True)
    core.unlink() if body is None else core.write_text(body, encoding="utf-8")
    for _ in range(2):
        context = memory.assemble("kettle", user="ana")
        assert context.text == ""
        [warning] = context.warnings
        assert f"AGENTS.md has no rules any more: its file is {'gone' if body is None else 'empty'}" in warning
    assert found(memory, "kettle shelf") == []
    core.write_text(BODY, encoding="utf-8")
    context = memory.assemble("kettle", user="ana")
    assert "- be kind" in context.section("hard").text
    assert context.warnings == ()
    assert found(memory, "kettle shelf")[0] == "The kettle is on the shelf."


@pytest.mark.parametrize("how", ["copied", "moved"])
def test_a_store_that_came_from_elsewhere_reads_no_file_of_this_machine(tmp_path, core, how):
    there, here = tmp_path / "there.db", tmp_path / "here.db"
    with opened(path=there) as memory:
        memory.ingest(core, user="ana", core=True)
    (shutil.copyfile if how == "copied" else os.replace)(there, here)
    core.write_text("- a private line\n", encoding="utf-8")
    with opened(path=here) as memory:
        context = memory.assemble("kettle", user="ana")
        assert "- be kind" in context.text
        assert "private" not in context.text
        [warning] = context.warnings
        assert "its store has moved; ingest the file again" in warning
        memory.ingest(core, user="ana", core=True)
        context = memory.assemble("kettle", user="ana")
        assert context.warnings == ()
        assert "- a private line" in context.text


def test_what_rules_cost_is_counted_once_for_each_content_and_counter(memory, core):
    counted = []

    def counter(text):
        counted.append(text)
        return len(text) // 4

    def other(text):
        return counter(text)

    def counts_of_rules(count):
        counted.clear()
        memory.assemble("zeppelin", user="ana", counter=count)
        return [text for text in counted if "be kind" in text and "[rules]\n" in text and "ask" not in text]

    memory.ingest(core, user="ana", core=True)
    assert len(counts_of_rules(counter)) == 1
    assert counts_of_rules(counter) == []
    assert len(counts_of_rules(other)) == 1
    core.write_text(BODY.replace("be kind", "be kinder"), encoding="utf-8")
    assert len(counts_of_rules(counter)) == 1


def test_a_forgotten_document_is_not_kept_in_memory(memory, core):
    memory.ingest(core, user="ana", core=True)
    rules(memory)
    memory.forget(document="AGENTS.md", user="ana")
    assert documents._partitioned.cache_info().currsize == 0


def test_an_edit_beyond_the_budget_is_an_error_and_never_a_cut(memory, core):
    memory.ingest(core, user="ana", core=True)
    core.write_text(HEAVY, encoding="utf-8")
    with pytest.raises(BudgetError, match="hard rules need"):
        memory.assemble("kettle", user="ana", budget=500)
    context = memory.assemble("kettle", user="ana", budget=8_000)
    assert context.section("hard").text.endswith("- be kind\n")
    assert "hard_share" in context.warnings[0]


def test_a_reload_is_seen_by_another_memory_of_the_same_store(tmp_path, core):
    path = tmp_path / "a.db"
    with opened(path=path) as first, opened(path=path) as second:
        first.ingest(core, user="ana", core=True)
        assert "- be kind" in rules(second)
        core.write_text("- be brief\n\nA hedge is green.\n", encoding="utf-8")
        assert rules(first) == rules(second) == "[rules]\n- be brief\n"
        assert found(second, "hedge green") == ["A hedge is green."]


def test_why_sees_the_edit_too(memory, core):
    memory.ingest(core, user="ana", core=True)
    [violin] = [unit for unit in memory.list(user="ana") if "violin" in unit.text]
    core.write_text("- be kind\n", encoding="utf-8")
    rules(memory)
    why = memory.why("violin hall", violin.id, user="ana", budget=4_000)
    assert not why.returned
    assert "not searched" in why.verdict


# -------------------------------------------------------------------------------------------- whose rules


def test_rules_of_a_user_of_everyone_and_of_another_tenant(memory):
    memory.ingest("- rule of ana\n\nAna has a kettle.\n", name="ANA.md", user="ana", core=True)
    memory.ingest("- rule of ben\n\nBen has a kettle.\n", name="BEN.md", user="ben", core=True)
    memory.ingest("- rule of all\n\nAll have a kettle.\n", name="ALL.md", user="ben", scope="global", core=True)
    memory.ingest(
        "- rule of t2\n\nT2 has a kettle.\n", name="T2.md", user="ana", tenant="t2", scope="global", core=True
    )
    assert rules(memory) == "[rules]\n- rule of ana\n- rule of all\n"
    assert rules(memory, "ben") == "[rules]\n- rule of ben\n- rule of all\n"
    assert rules(memory, "eve") == "[rules]\n- rule of all\n"
    assert rules(memory, "ana", tenant="t2") == "[rules]\n- rule of t2\n"
    assert set(found(memory, "kettle")) == {"Ana has a kettle.", "All have a kettle."}
    assert set(found(memory, "kettle", "eve")) == {"All have a kettle."}


def test_two_users_may_each_have_a_document_of_the_same_name(memory):
    for user in ("ana", "ben"):
        memory.ingest(f"- rule of {user}\n\nThe kettle of {user}.\n", name="AGENTS.md", user=user, core=True)
    memory.ingest("- other rule of ana\n", name="AGENTS.md", user="ana", core=True)
    assert rules(memory) == "[rules]\n- other rule of ana\n"
    assert rules(memory, "ben") == "[rules]\n- rule of ben\n"
    assert found(memory, "kettle") == []
    assert found(memory, "kettle", "ben") == ["The kettle of ben."]


def test_front_matter_links_lead_to_units_and_to_documents(memory):
    memory.ingest("Quite another thing.\n", name="B.md", user="ana", core=True)
    memory.remember("unrelated words", user="ana", id="note")
    head = "---\nhop_targets:\n  - note\n  - B.md\n---\n\n"
    memory.ingest(f"{head}The kettle is on the top shelf.\n", name="A.md", user="ana", core=True)
    context = memory.assemble("kettle on the top shelf", user="ana")
    texts = [item.text for item in context.section("projection").items]
    assert texts[0] == "The kettle is on the top shelf."
    assert set(texts[1:]) == {"unrelated words", "Quite another thing."}


def test_after_a_store_has_moved_the_file_that_is_ingested_again_takes_over(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    (first / "AGENTS.md").write_text("- Speak Greek.\n")
    with Memory.open(first / "m.db") as memory:
        memory.ingest(first / "AGENTS.md", user="ana", core=True)
    first.rename(second)
    (second / "AGENTS.md").write_text("- Speak Latin.\n")
    with Memory.open(second / "m.db") as memory:
        assert "Speak Greek" in memory.assemble("hello there", user="ana").text
        memory.ingest(second / "AGENTS.md", user="ana", core=True)
        context = memory.assemble("hello there", user="ana")
        assert "Speak Latin" in context.text
        assert "Speak Greek" not in context.text
        assert context.warnings == ()
