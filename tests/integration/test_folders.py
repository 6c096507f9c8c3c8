"""Folders through `Memory` (C1, C14): what is taken in, what changes with a file, what is left alone."""

import os
import shutil

import pytest

from builders import NOW, later, opened
from holdfast import Settings
from holdfast.errors import InputError
from holdfast.library import FolderReport

HARBOUR = "# Harbour\n\nThe crane lifts ten tons.\n\nThe quay is lit by gas.\n"
MARKET = "# Market\n\nEels are sold on Fridays.\n\nThe bell rings at noon.\n"


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
    assert report == FolderReport(added=("harbour.md", "tide.txt", "sub/market.md"), units=5)
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


# ------------------------------------------------------------------------------------------------- changing


def test_taking_in_again_changes_nothing(memory, folder):
    taken(memory, folder)
    before = versions(memory)
    stats = memory.stats(user="ana")
    again = taken(memory, folder)
    assert again == FolderReport(unchanged=("harbour.md", "tide.txt", "sub/market.md"), units=5)
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
    assert before.items() <= versions(memory).items()


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


def test_an_interruption_inside_a_file_is_made_good(memory, folder, monkeypatch):
    taken(memory, folder)
    (folder / "harbour.md").write_text(HARBOUR.replace("ten", "nine"), encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(memory.store, "put_document", lambda _: (_ for _ in ()).throw(_StoppedError))
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
    assert texts(memory) == ["The kettle is on the shelf.", "be kind"]
    memory.ingest(path, user="ana", core=True)
    assert texts(memory) == ["The kettle is on the shelf."]
    assert [unit.kind for unit in memory.list(user="ana")] == ["authored"]
    assert "be kind" in memory.assemble("zeppelin", user="ana").section("hard").text
    memory.ingest(path, user="ana")
    assert texts(memory) == ["The kettle is on the shelf.", "be kind"]
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
