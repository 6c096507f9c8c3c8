"""Folders through `Memory` (C1, C14): what is taken in, what changes with a file, what is left alone."""

import os
import shutil
from pathlib import Path

import pytest

from builders import NOW, later, opened
from holdfast import Settings
from holdfast.errors import InputError
from holdfast.store.contract import DocumentChange
from holdfast.types.outcomes import FolderReport

HARBOUR = "# Harbour\n\nThe crane lifts ten tons.\n\n## Lamps\n\nThe quay is lit by gas.\n"
MARKET = "# Market\n\nEels are sold on Fridays.\n\n## Hours\n\nThe bell rings at noon.\n"


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "notes"
    (root / "sub").mkdir(parents=True)
    (root / "harbour.md").write_text(HARBOUR, encoding="utf-8")
    (root / "sub" / "market.md").write_text(MARKET, encoding="utf-8")
    (root / "tide.txt").write_text("High water is at six.\n", encoding="utf-8")
    (root / "data.json").write_text('{"not": "units"}', encoding="utf-8")
    (root / ".hidden.md").write_text("A hidden page.\n", encoding="utf-8")
    (root / ".cache").mkdir()
    (root / ".cache" / "page.md").write_text("A cached page.\n", encoding="utf-8")
    (root / "node_modules").mkdir()
    (root / "node_modules" / "README.md").write_text("A tool's page.\n", encoding="utf-8")
    return root


@pytest.fixture
def memory():
    with opened() as opened_memory:
        yield opened_memory


def taken(memory, folder, **more):
    return memory.ingest_folder(folder, user="ana", **more)


def texts(memory, user="ana", **more):
    return sorted(unit.text for unit in memory.list(user=user, limit=None, **more))


def versions(memory, user="ana"):
    return {unit.id: unit.version for unit in memory.list(user=user, limit=None)}


def gone(report):
    """Return the files that are gone, by their own names."""
    return [name.rpartition("/")[2] for name in report.removed]


def test_one_mail_that_cannot_be_read_is_reported_and_the_others_go_on(memory, folder):
    (folder / "evil.eml").write_bytes(b"Content-Type: message/rfc822\n\n" * 2_000)
    report = taken(memory, folder)
    [(name, reason)] = report.failed
    assert (name, "too deep" in reason) == ("evil.eml", True)
    assert "High water is at six." in texts(memory)


ALL = sorted(
    [
        "Eels are sold on Fridays.",
        "High water is at six.",
        "The bell rings at noon.",
        "The crane lifts ten tons.",
        "The quay is lit by gas.",
    ]
)


# ------------------------------------------------------------------------------------------------- choosing


def test_text_is_taken_in_and_hidden_files_tools_folders_and_data_are_not(memory, folder):
    report = taken(memory, folder)
    assert [name for name, _ in report.skipped] == ["data.json"]
    assert report == FolderReport(added=("harbour.md", "tide.txt", "sub/market.md"), skipped=report.skipped, units=5)
    assert texts(memory) == ALL
    assert {unit.kind for unit in memory.list(user="ana")} == {"knowledge"}
    assert {unit.author for unit in memory.list(user="ana")} == {"document"}


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["*.txt"], [], {"tide.txt"}),
        (["*.md"], ["sub/*"], {"harbour.md", ".hidden.md", ".cache/page.md", "node_modules/README.md"}),
        (["harbour.*", "tide.*"], ["tide.*"], {"harbour.md"}),
        (["sub/*.md"], [], {"sub/market.md"}),
        (["*.rst"], [], set()),
    ],
)
def test_patterns_choose_files(memory, folder, include, exclude, expected):
    report = taken(memory, folder, include=include, exclude=exclude)
    assert set(report.added) == expected
    assert report.failed == ()


@pytest.mark.parametrize("wrong", ["nowhere", "notes/tide.txt"])
def test_what_is_no_folder_is_refused(memory, folder, wrong):
    with pytest.raises(InputError, match="is not a folder; name one, or a single file"):
        taken(memory, folder.parent / wrong)
    assert memory.stats(user="ana").units == 0


def test_a_folder_that_contains_itself_through_a_link_is_entered_once(memory, folder):
    (folder / "sub" / "again").symlink_to(folder, target_is_directory=True)
    (folder / "sub" / "dead.md").symlink_to(folder / "nowhere.md")
    report = taken(memory, folder)
    assert report.failed == ()
    assert sorted(report.added) == ["harbour.md", "sub/market.md", "tide.txt"]
    assert texts(memory) == ALL


def test_an_empty_folder_gives_an_empty_report(memory, tmp_path):
    (tmp_path / "empty").mkdir()
    assert taken(memory, tmp_path / "empty") == FolderReport()


def test_two_folders_may_hold_a_readme_each(memory, tmp_path):
    for name in ("north", "south"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "README.md").write_text(f"The {name} gate is open.\n", encoding="utf-8")
        assert taken(memory, tmp_path / name).added == ("README.md",)
    assert texts(memory) == ["The north gate is open.", "The south gate is open."]
    (tmp_path / "north" / "README.md").unlink()
    assert gone(taken(memory, tmp_path / "north")) == ["README.md"]
    assert texts(memory) == ["The south gate is open."]


def test_two_folders_of_one_name_in_two_places_keep_their_units(memory, tmp_path):
    for place in ("work", "home"):
        root = tmp_path / place / "notes"
        root.mkdir(parents=True)
        (root / "todo.md").write_text(f"The {place} gate squeaks.\n", encoding="utf-8")
        assert taken(memory, root).added == ("todo.md",)
    assert texts(memory) == ["The home gate squeaks.", "The work gate squeaks."]


def test_what_is_skipped_is_named_with_the_reason(memory, folder):
    for name in ("page.tex", "program.py", "sub/run.log"):
        (folder / name).write_text("A line of something else.\n", encoding="utf-8")
    skipped = dict(taken(memory, folder).skipped)
    assert sorted(skipped) == ["data.json", "page.tex", "program.py", "sub/run.log"]
    assert set(skipped.values()) == {"of a kind that is not read; ask for it with include"}


def test_capitals_in_a_suffix_make_no_difference(memory, folder):
    (folder / "LOUD.MD").write_text("The gate is loud.\n", encoding="utf-8")
    assert "LOUD.MD" in taken(memory, folder).added


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are files where they can be made")
def test_pipes_and_links_out_of_the_folder_are_skipped_and_named(memory, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "private.md").write_text("A private line.\n", encoding="utf-8")
    (folder / "file.md").symlink_to(outside / "private.md")
    (folder / "way").symlink_to(outside, target_is_directory=True)
    (folder / "inner.md").symlink_to(folder / "harbour.md")
    os.mkfifo(folder / "pipe.md")
    report = taken(memory, folder, include=["*.md"], exclude=["node_modules/*", ".*", "data.json", "*.txt"])
    assert sorted(report.skipped) == [
        ("file.md", "it is a link to outside of the folder"),
        ("pipe.md", "it is no regular file"),
        ("way", "it is a link to outside of the folder"),
    ]
    assert sorted(report.added) == ["harbour.md", "inner.md", "sub/market.md"]
    assert "A private line." not in texts(memory)


@pytest.mark.parametrize("name", ["minutes.odt", "MINUTES.ODT", "photo.jpg"])
def test_a_file_of_another_program_is_not_taken_for_text(memory, folder, name):
    (folder / name).write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match="no text by its name; export it"):
        memory.ingest(folder / name, user="ana")
    assert [failed for failed, _ in taken(memory, folder, include=["*.odt", "*.jpg"]).failed] == [name]
    memory.ingest("What the minutes say.\n", name=name, user="ana")
    assert texts(memory) == ["What the minutes say."]


@pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX alone")
def test_a_name_that_is_not_utf8_is_reported_and_the_others_go_on(memory, folder):
    bad = os.fsencode(folder) + b"/caf\xe9.md"
    with open(bad, "wb") as file:  # noqa: PTH123 - a name of bytes
        file.write(b"A line.\n")
    report = taken(memory, folder)
    assert report.failed == (("caf\\xe9.md", "its name is not UTF-8; rename the file"),)
    assert texts(memory) == ALL
    with pytest.raises(InputError, match="is not UTF-8; rename the file"):
        memory.ingest(Path(os.fsdecode(bad)), user="ana")


def test_a_huge_file_is_reported_without_being_read(memory, folder):
    (folder / "huge.txt").touch()
    os.truncate(folder / "huge.txt", 2**40)
    [(name, reason)] = taken(memory, folder).failed
    assert name == "huge.txt"
    assert "1,099,511,627,776 bytes, more than 16,777,216" in reason


# ---------------------------------------------------------------------------------------------------- names


def test_two_files_of_one_name_in_two_places_are_two_documents(memory, tmp_path):
    for place in ("one", "two", "three"):
        path = tmp_path / place / "docs" / "README.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"The {place} gate is open.\n", encoding="utf-8")
        memory.ingest(path, user="ana")
    assert texts(memory) == ["The one gate is open.", "The three gate is open.", "The two gate is open."]
    (tmp_path / "two" / "docs" / "README.md").write_text("The two gates are shut.\n", encoding="utf-8")
    memory.ingest(tmp_path / "two" / "docs" / "README.md", user="ana")
    assert texts(memory) == ["The one gate is open.", "The three gate is open.", "The two gates are shut."]
    names = {unit.id.rpartition("#")[0] for unit in memory.list(user="ana")}
    assert names == {"README.md", "docs/README.md", "three/docs/README.md"}


def test_a_file_and_a_text_of_one_name_are_two_documents(memory, folder):
    memory.ingest("The gate is a text.\n", name="tide.txt", user="ana")
    memory.ingest(folder / "tide.txt", user="ana")
    assert texts(memory) == ["High water is at six.", "The gate is a text."]


@pytest.mark.parametrize("first", ["the folder", "the file"])
def test_a_file_of_a_folder_is_the_same_document_when_it_is_named_alone(memory, folder, first):
    if first == "the folder":
        taken(memory, folder)
        assert {done.status for done in memory.ingest(folder / "harbour.md", user="ana")} == {"duplicate"}
    else:
        memory.ingest(folder / "harbour.md", user="ana")
        assert taken(memory, folder).unchanged == ("harbour.md",)
    assert texts(memory) == ALL


def test_a_core_document_of_a_folder_stays_core(memory, folder):
    (folder / "AGENTS.md").write_text("- be kind\n", encoding="utf-8")
    memory.ingest(folder / "AGENTS.md", user="ana", core=True)
    assert "AGENTS.md" in taken(memory, folder).unchanged
    (folder / "AGENTS.md").write_text("- be kinder\n", encoding="utf-8")
    assert "AGENTS.md" in taken(memory, folder).changed
    assert "- be kinder" in memory.assemble("zeppelin", user="ana").section("hard").text
    assert texts(memory) == ALL


ONE, TWO = "The first is of harbours.\n", "The second is of mountains.\n"


@pytest.mark.parametrize("core", [True, False])
def test_a_document_whose_name_continues_anothers_is_not_its_part(memory, core):
    memory.ingest(ONE, name="C", user="ana", core=core)
    memory.ingest(TWO, name="C#guide", user="ana", core=core)
    memory.ingest(ONE.replace("harbours", "boats"), name="C", user="ana", core=core)
    assert texts(memory) == ["The first is of boats.", "The second is of mountains."]
    memory.forget(document="C", user="ana")
    assert texts(memory) == ["The second is of mountains."]
    memory.forget(document="C#guide", user="ana")
    assert memory.list(user="ana", current_only=False) == []


def test_files_whose_names_continue_each_other_are_kept_apart(memory, folder):
    (folder / "harbour.md#1.md").write_text("The dock is dry.\n", encoding="utf-8")
    taken(memory, folder)
    (folder / "harbour.md").write_text(HARBOUR.replace("ten", "nine"), encoding="utf-8")
    report = taken(memory, folder)
    assert (report.changed, report.units) == (("harbour.md",), 6)
    assert "The dock is dry." in texts(memory)


def test_a_unit_of_the_users_own_is_no_part_of_a_document(memory):
    memory.remember("my own note", id="notes.md#1", user="ana")
    memory.ingest(ONE, name="notes.md", user="ana")
    memory.ingest(TWO, name="notes.md", user="ana")
    assert texts(memory) == ["The second is of mountains.", "my own note"]
    memory.forget(document="notes.md", user="ana")
    assert texts(memory) == ["my own note"]


def test_nobody_writes_over_the_units_of_another(memory):
    memory.remember("my own note", id="A.md#000000", user="ana")
    with pytest.raises(InputError, match=r"taken by a unit that is no part of a document; give 'A\.md'"):
        memory.ingest("A line of text.\n", name="A.md", user="ana", core=True)
    memory.ingest("A line of text.\n", name="B.md", user="ana", core=True)
    with pytest.raises(InputError, match=r"taken by the document 'B\.md'; choose another id"):
        memory.remember("my own note", id="B.md#000000", user="ana")
    assert texts(memory) == ["A line of text.", "my own note"]


def test_units_whose_ids_hold_the_sign_between_name_and_part_belong_to_their_document(memory):
    units = '[{"id": "faq#1", "claim": "The gate is green."}, {"id": "faq#2", "claim": "The gate is tall."}]'
    memory.ingest(units, name="facts.json", user="ana")
    memory.ingest(units.replace("tall", "low"), name="facts.json", user="ana")
    assert texts(memory) == ["The gate is green.", "The gate is low."]
    assert memory.widen("facts.json#faq#1", user="ana").document == "facts.json"
    memory.forget(document="facts.json", user="ana")
    assert memory.list(user="ana", current_only=False) == []


def test_the_units_of_unchanged_files_are_those_that_they_say_now(memory, folder):
    taken(memory, folder)
    (folder / "harbour.md").write_text(HARBOUR.replace("ten", "nine"), encoding="utf-8")
    (folder / "tide.txt").unlink()
    assert taken(memory, folder).units == 4
    assert taken(memory, folder).units == 4 == len(texts(memory))


# ------------------------------------------------------------------------------------------------- changing


def test_taking_in_again_changes_nothing(memory, folder):
    taken(memory, folder)
    before = versions(memory)
    stats = memory.stats(user="ana")
    again = taken(memory, folder)
    assert again == FolderReport(
        unchanged=("harbour.md", "tide.txt", "sub/market.md"), skipped=again.skipped, units=5
    )
    assert versions(memory) == before
    assert memory.stats(user="ana") == stats


def test_only_the_units_of_a_changed_file_change(memory, folder):
    taken(memory, folder)
    before = versions(memory)
    (folder / "harbour.md").write_text(HARBOUR.replace("ten tons", "nine tons"), encoding="utf-8")
    report = taken(memory, folder)
    assert (report.changed, report.unchanged) == (("harbour.md",), ("tide.txt", "sub/market.md"))
    after = versions(memory)
    assert len(before.keys() - after.keys()) == 1
    assert len(after.keys() - before.keys()) == 1
    assert all(after[unit_id] == 1 for unit_id in after)
    assert texts(memory) == sorted([*ALL[:3], "The crane lifts nine tons.", ALL[4]])
    assert len(memory.search("crane", user="ana", profile="fast")) == 1


def test_what_is_added_above_leaves_the_ids_below_alone(memory, folder):
    taken(memory, folder)
    before = versions(memory)
    (folder / "harbour.md").write_text(HARBOUR.replace("# Harbour\n", "# Harbour\n\nIt is old.\n"), encoding="utf-8")
    taken(memory, folder)
    assert len(before.items() - versions(memory).items()) == 1  # the piece that it joined


def test_a_change_back_brings_the_first_units_back(memory, folder):
    taken(memory, folder)
    before = set(versions(memory))
    (folder / "harbour.md").write_text("# Harbour\n\nNothing else.\n", encoding="utf-8")
    taken(memory, folder)
    (folder / "harbour.md").write_text(HARBOUR, encoding="utf-8")
    assert taken(memory, folder).changed == ("harbour.md",)
    assert set(versions(memory)) == before
    assert texts(memory) == ALL
    assert len(memory.search("crane", user="ana", profile="fast")) == 1


def test_a_deleted_file_takes_its_units_along_and_one_left_out_by_patterns_stays(memory, folder):
    taken(memory, folder)
    assert taken(memory, folder, include=["*.txt"]).removed == ()
    assert texts(memory) == ALL
    (folder / "tide.txt").unlink()
    report = taken(memory, folder)
    assert gone(report) == ["tide.txt"]
    assert "High water is at six." not in texts(memory)
    assert len(memory.search("high water", user="ana", profile="fast")) == 0
    assert taken(memory, folder).removed == ()


def test_a_report_names_a_file_in_the_same_way_when_it_comes_and_when_it_goes(memory, folder):
    came = taken(memory, folder, include=["*.txt"]).added
    (folder / "tide.txt").unlink()
    assert taken(memory, folder).removed == came


def test_a_folder_that_is_moved_away_is_not_taken_for_deleted_files_of_another(memory, folder, tmp_path):
    taken(memory, folder)
    other = tmp_path / "notes-two"
    other.mkdir()
    shutil.rmtree(folder / "sub")
    assert taken(memory, other).removed == ()
    assert texts(memory) == ALL


def test_a_file_that_comes_back_is_read_again(memory, folder):
    taken(memory, folder)
    (folder / "tide.txt").unlink()
    taken(memory, folder)
    (folder / "tide.txt").write_text("High water is at six.\n", encoding="utf-8")
    assert taken(memory, folder).added == ("tide.txt",)
    assert texts(memory) == ALL


# ------------------------------------------------------------------------------------------- interruptions


class _StoppedError(Exception):
    """Somebody pressed a key."""


def test_interrupted_it_goes_on_where_it_stopped(memory, folder):
    seen = []

    def stop(done, of):
        seen.append((done, of))
        if done == 2:
            raise _StoppedError

    with pytest.raises(_StoppedError):
        taken(memory, folder, progress=stop)
    assert seen == [(0, 3), (1, 3), (2, 3)]
    assert texts(memory) == sorted(set(ALL) - {"Eels are sold on Fridays.", "The bell rings at noon."})
    seen.clear()
    report = taken(memory, folder, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert (report.added, report.unchanged) == (("sub/market.md",), ("harbour.md", "tide.txt"))
    assert texts(memory) == ALL
    assert set(versions(memory).values()) == {1}


def stopped_at_documents(mark):
    """Return `mark` of a store that is interrupted when a document is to be kept, and not before."""

    def interrupted(marks):
        if any(isinstance(one, DocumentChange) for one in marks):
            raise _StoppedError
        return mark(marks)

    return interrupted


def test_an_interruption_inside_a_file_is_made_good(memory, folder, monkeypatch):
    taken(memory, folder)
    (folder / "harbour.md").write_text(HARBOUR.replace("ten", "nine"), encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(memory.store, "apply", stopped_at_documents(memory.store.apply))
        with pytest.raises(_StoppedError):
            taken(memory, folder)
    assert taken(memory, folder).changed == ("harbour.md",)
    assert texts(memory) == sorted([*ALL[:3], "The crane lifts nine tons.", ALL[4]])


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("bad.md", b"caf\xe9\n", "not UTF-8"),
        ("bad.pdf", b"%PDF-1.4 nothing more", "cannot be read as a PDF"),
        ("bad.txt", b"\x00\x01\x02", "NUL byte at 0"),
        ("empty.md", b"", "no content"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported_and_the_others_go_on(memory, folder, name, body, reason):
    (folder / name).write_bytes(body)
    report = taken(memory, folder)
    [(failed, why)] = report.failed
    assert failed == name
    assert reason in why
    assert len(report.added) == 3
    assert texts(memory) == ALL


def test_a_file_that_becomes_unreadable_keeps_its_last_units(memory, folder):
    taken(memory, folder)
    (folder / "tide.txt").write_bytes(b"\x00\x01")
    report = taken(memory, folder)
    assert [name for name, _ in report.failed] == ["tide.txt"]
    assert report.removed == ()
    assert texts(memory) == ALL


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_reported(memory, folder):
    (folder / "tide.txt").chmod(0)
    assert [name for name, _ in taken(memory, folder).failed] == ["tide.txt"]


# ---------------------------------------------------------------------------------------------- ownership


def test_a_global_folder_is_everyones_and_a_users_own_is_not(memory, folder):
    memory.ingest_folder(folder, user="ana", scope="global")
    assert texts(memory) == texts(memory, user="ben") == ALL
    assert len(memory.search("crane", user="ben", profile="fast")) == 1
    assert texts(memory, tenant="elsewhere") == []
    (folder / "tide.txt").unlink()
    # What is everyone's is not ended by taking in the same folder for oneself.
    assert taken(memory, folder).removed == ()
    assert "High water is at six." in texts(memory, user="ben")
    assert gone(memory.ingest_folder(folder, user="ben", scope="global")) == ["tide.txt"]
    assert "High water is at six." not in texts(memory, user="ben")


@pytest.mark.parametrize("scope", ["session", "galaxy"])
def test_a_folder_has_no_other_scope(memory, folder, scope):
    with pytest.raises(InputError, match=scope):
        memory.ingest_folder(folder, user="ana", scope=scope)
    assert memory.stats(user="ana").units == 0


def test_users_take_in_the_same_folder_apart(memory, folder):
    taken(memory, folder)
    assert memory.ingest_folder(folder, user="ben").added == ("harbour.md", "tide.txt", "sub/market.md")
    memory.forget(user="ana", all=True)
    assert texts(memory) == []
    assert texts(memory, user="ben") == ALL


# ------------------------------------------------------------------------------------------ core and back


def test_a_document_may_become_core_and_knowledge_again(memory, folder):
    path = folder / "rules.md"
    path.write_text("# House\n\n- be kind\n\nThe kettle is on the shelf.\n", encoding="utf-8")
    memory.ingest(path, user="ana")
    assert texts(memory) == ["be kind\n\nThe kettle is on the shelf."]
    memory.ingest(path, user="ana", core=True)
    assert texts(memory) == ["The kettle is on the shelf."]
    assert [unit.kind for unit in memory.list(user="ana")] == ["authored"]
    assert "be kind" in memory.assemble("zeppelin", user="ana").section("hard").text
    memory.ingest(path, user="ana")
    assert texts(memory) == ["be kind\n\nThe kettle is on the shelf."]
    assert {unit.kind for unit in memory.list(user="ana")} == {"knowledge"}
    assert memory.assemble("zeppelin", user="ana").section("hard").text == ""


# ----------------------------------------------------------------------------------------------- redaction


def test_secrets_leave_before_anything_is_kept(tmp_path, folder):
    secret = "AKIA" + "Q7TARNWICK2OPENX"
    (folder / "keys.md").write_text(f"# Keys\n\nThe deploy key is {secret} as of today.\n", encoding="utf-8")
    settings = Settings.load({"ingest.redact": True}, environ={})
    path = tmp_path / "m.db"
    with opened(settings, path=path) as memory:
        assert "keys.md" in taken(memory, folder).added
        assert taken(memory, folder).unchanged == ("harbour.md", "keys.md", "tide.txt", "sub/market.md")
        [kept] = [text for text in texts(memory) if "deploy key" in text]
        assert secret not in kept
        assert "[redacted" in kept
        [unit] = [unit for unit in memory.list(user="ana") if unit.text == kept]
        assert secret not in memory.widen(unit.id, user="ana").text
    for file in tmp_path.glob("m.db*"):
        assert secret.encode() not in file.read_bytes()


def test_a_later_reading_is_recorded_later(folder, tmp_path):
    moments = iter([NOW, NOW, later(days=1), later(days=1)])
    with opened(path=tmp_path / "m.db", now=lambda: next(moments, later(days=2))) as memory:
        taken(memory, folder)
        first = {unit.id: unit.recorded_time for unit in memory.list(user="ana")}
        taken(memory, folder)
        assert {unit.id: unit.recorded_time for unit in memory.list(user="ana")} == first


def test_a_file_that_was_emptied_says_nothing_any_more(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("The boat is green.")
    with opened() as memory:
        memory.ingest_folder(notes, user="ana")
        (notes / "a.md").write_text("")
        report = memory.ingest_folder(notes, user="ana")
        assert (report.changed, report.failed, report.units) == (("a.md",), (), 0)
        assert memory.list(user="ana") == []
        assert memory.ingest_folder(notes, user="ana").unchanged == ("a.md",)
        (notes / "a.md").write_text("The boat is blue.")
        memory.ingest_folder(notes, user="ana")
        assert [unit.text for unit in memory.list(user="ana")] == ["The boat is blue."]


def test_a_link_that_leads_to_itself_is_refused(tmp_path):
    (tmp_path / "loop.md").symlink_to("loop.md")
    with opened() as memory, pytest.raises(InputError):
        memory.ingest(tmp_path / "loop.md", user="ana")


# ------------------------------------------------------------------------------------------------ several documents


def test_several_paths_are_what_each_of_them_is(tmp_path):
    paths = [tmp_path / "a" / "list.md", tmp_path / "b" / "list.md", tmp_path / "plan.txt"]
    for number, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"The gate number {number} is open.\n", encoding="utf-8")
    with opened() as together, opened() as alone:
        written = together.ingest(paths, user="ana")
        assert written == [item for path in paths for item in alone.ingest(path, user="ana")]
        names = [[one.name for one in memory.documents(user="ana")] for memory in (together, alone)]
        assert names[0] == names[1]
        assert {item.status for item in together.ingest(paths, user="ana")} == {"duplicate"}


def test_a_file_that_is_missing_keeps_the_others_out(tmp_path):
    there = tmp_path / "there.md"
    there.write_text("The gate is open.\n", encoding="utf-8")
    with opened() as memory:
        with pytest.raises(InputError, match="cannot be read"):
            memory.ingest([there, tmp_path / "gone.md"], user="ana")
        for wrong in ([], [there, "text"], ["notes.md"]):
            with pytest.raises(InputError, match="a list of documents is one of Paths"):
                memory.ingest(wrong, user="ana")
        with pytest.raises(InputError, match="without a name"):
            memory.ingest([there], user="ana", name="n")
        assert memory.stats(user="ana").units == 0


def test_a_text_without_a_name_is_told_how_a_file_is_named():
    with opened() as memory, pytest.raises(InputError, match=r"a file is named by a Path: ingest\(Path\("):
        memory.ingest("nofile.md", user="ana")
