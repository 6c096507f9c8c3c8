"""A folder of data → the sets in it, recognised by what their files hold, never by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.eval import chats, corpora
from holdfast.eval.data import DataSet, Haystack
from holdfast.eval.reading import DataFile, Notes, files_in, folders_in, rows

# A file of these names, in a folder with the other two, is part of a corpus with judgements.
_CORPUS, _QUERIES, _QRELS = "corpus", "queries", "qrels"


@dataclass(slots=True)
class Found:
    """What a folder holds: sets, and files that are not evaluation data."""

    sets: list[DataSet] = field(default_factory=list)
    unknown: list[Path] = field(default_factory=list)


def load_sets(root: str | Path, only: Sequence[str] = (), *, corrected: bool = True) -> Found:
    """Read every set below `root`; with `only`, those whose name contains one of these words.

    Where errata of the gold are known they are applied; with `corrected` off, the gold is what was published.

    Raises:
        InputError: there is nothing to evaluate, or a file cannot be read.
    """
    root = Path(root)
    if not root.is_dir():
        raise InputError(f"{root} is not a folder; give the folder that holds the evaluation data")
    found = Found()
    for folder in folders_in(root):
        _load_folder(folder, _set_name(root, folder), only, found, corrected=corrected)
    found.sets.sort(key=lambda data: data.name)
    if not found.sets:
        wanted = f" named like {', '.join(only)}" if only else ""
        seen = (
            f"; files of no known schema: {', '.join(path.name for path in found.unknown)}" if found.unknown else ""
        )
        raise InputError(f"{root} holds no evaluation set{wanted}{seen}; docs/evaluation.md lists the schemas")
    return found


def _set_name(root: Path, folder: Path) -> str:
    return folder.relative_to(root).as_posix() if folder != root else root.resolve().name


def _wanted(name: str, only: Sequence[str]) -> bool:
    return not only or any(word.lower() in name.lower() for word in only)


def _load_folder(folder: Path, name: str, only: Sequence[str], found: Found, *, corrected: bool) -> None:
    files = files_in(folder)
    named = {file.stem: file for file in files}
    if _CORPUS in named and _QUERIES in named:
        if _wanted(name, only):
            found.sets.append(_load_corpus(name, folder, named))
        return
    by_schema: dict[str, list[tuple[DataFile, Any]]] = {}
    beside: dict[str, tuple[DataFile, Any]] = {}
    for file in files:
        # A folder's name is enough to leave it out; several sets in one folder are told apart by their files.
        if only and not (_wanted(name, only) or _wanted(f"{name}/{file.stem}", only)):
            continue
        value = file.value() if file.kind != ".tsv" else None
        companion, schema = chats.companions(value), chats.schema_of(value)
        if companion is not None:
            beside[companion[0]] = (file, companion[1])
        elif schema is not None:
            by_schema.setdefault(schema, []).append((file, value))
        else:
            found.unknown.append(file.path)
    if not corrected:
        beside = {kind: (file, chats.as_published(kind, value)) for kind, (file, value) in beside.items()}
    for schema, group in by_schema.items():
        found.sets += _load_schema(schema, group, beside, name)


def _load_schema(
    schema: str, group: list[tuple[DataFile, Any]], beside: dict[str, tuple[DataFile, Any]], name: str
) -> list[DataSet]:
    if schema == "realmem":  # one persona a file, all of them one set
        return [_built(schema, name, [file for file, _ in group], {file.stem: value for file, value in group}, {})]
    used = {kind: beside[kind] for kind in _COMPANIONS.get(schema, ()) if kind in beside}
    given = {kind: rows_by_key for kind, (_, rows_by_key) in used.items()}
    companions = [file for file, _ in used.values()]
    return [
        _built(schema, name if len(group) == 1 else f"{name}/{file.stem}", [file, *companions], value, given)
        for file, value in group
    ]


# Which files beside a set's own belong to it.
_COMPANIONS = {"locomo": ("index", "errata"), "longmemeval": ("haystack index",)}


def _read(schema: str, value: Any, given: dict[str, Any], notes: Notes) -> list[Haystack]:  # noqa: ANN401 - any JSON
    if schema == "locomo":
        return chats.read_two_person_chats(value, given.get("index", {}), given.get("errata", {}), notes)
    if schema == "longmemeval":
        return chats.read_haystacks(value, given.get("haystack index", {}), notes)
    if schema == "beam":
        return chats.read_probed_chats(value, notes)
    if schema == "realmem":
        return chats.read_replayed_chats(value, notes)
    return corpora.read_pages(value, notes)


def _built(schema: str, name: str, files: Sequence[DataFile], value: object, given: dict[str, Any]) -> DataSet:
    notes = Notes()
    try:
        haystacks = _read(schema, value, given, notes)
    except KeyError as error:
        raise chats.missing_key(files[0].path, error) from error
    asked = tuple(haystack for haystack in haystacks if haystack.messages)
    for haystack in haystacks:
        if not haystack.messages:
            notes.add("empty haystack", haystack.id, "left out")
    checksums = {file.path.name: file.checksum() for file in files}
    return DataSet(name, schema, schema != "tsqa", asked, checksums, tuple(notes.oddities))


def _load_corpus(name: str, folder: Path, named: dict[str, DataFile]) -> DataSet:
    notes, files = Notes(), [named[_CORPUS], named[_QUERIES]]
    judged: corpora.Judgements = {}
    qrels = named.get(_QRELS) or next(
        iter(files_in(folder / _QRELS)) if (folder / _QRELS).is_dir() else iter(()), None
    )
    if qrels is not None:
        judged = corpora.read_qrels(qrels.text(), qrels.path)
        files.append(qrels)
    queries = rows(named[_QUERIES].value(), named[_QUERIES].path)
    if qrels is None and not any("gold_ids" in row for row in queries):
        raise InputError(f"{folder} has no {_QRELS}.tsv and its queries name no gold; put the judgements beside them")
    unused = set(judged) - {str(row.get("id", row.get("_id", ""))) for row in queries}
    for query in sorted(unused):
        notes.add("judged query that is not asked", query, "left out")
    haystack = corpora.read_corpus(name, rows(named[_CORPUS].value(), named[_CORPUS].path), queries, judged, notes)
    checksums = {file.path.name: file.checksum() for file in files}
    return DataSet(name, "qrels", False, (haystack,), checksums, tuple(notes.oddities))  # noqa: FBT003
