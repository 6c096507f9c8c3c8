"""A folder of data → the sets in it, recognised by what their files hold, never by their names."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.eval import chats, corpora, schemas
from holdfast.eval.data import DataSet, Haystack
from holdfast.eval.reading import DataFile, Notes, files_in, folders_in, id_of, rows

# A file of these names, in a folder with the other two, is part of a corpus with judgements.
_CORPUS, _QUERIES, _QRELS = "corpus", "queries", "qrels"
# Where judgements come in splits, this one is what published figures are of.
_TEST = "test"
# Which files beside a set's own belong to it.
_COMPANIONS = {"locomo": ("index", "errata"), "longmemeval": ("haystack index",)}


@dataclass(slots=True)
class Found:
    """What a folder holds: sets, sets with nothing in them, and files that are not evaluation data."""

    sets: list[DataSet] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    unknown: list[Path] = field(default_factory=list)

    def add(self, data: DataSet) -> None:
        """Take in a set; one without a message is only remembered by its name."""
        if data.haystacks:
            self.sets.append(data)
        else:
            self.empty.append(data.name)


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
        _load_folder(_Folder(folder, _set_name(root, folder), only, corrected), found)
    found.sets.sort(key=lambda data: data.name)
    if not found.sets:
        wanted = f" named like {', '.join(only)}" if only else ""
        seen = (
            f"; files of no known schema: {', '.join(path.name for path in found.unknown)}" if found.unknown else ""
        )
        raise InputError(f"{root} holds no evaluation set{wanted}{seen}; docs/evaluation.md lists the schemas")
    twice = [name for name, count in Counter(data.name for data in found.sets).items() if count > 1]
    if twice:
        raise InputError(f"two sets below {root} are called {twice[0]}; rename or remove one of their files")
    return found


def _set_name(root: Path, folder: Path) -> str:
    return folder.relative_to(root).as_posix() if folder != root else root.resolve().name


@dataclass(frozen=True, slots=True)
class _Folder:
    """One folder, what its sets are named after, and what is wanted of it."""

    path: Path
    name: str
    only: Sequence[str]
    corrected: bool

    def wants(self, *files: DataFile) -> bool:
        """Return whether the folder's name, or that of one of these files in it, is asked for."""
        names = [self.name, *(f"{self.name}/{file.stem}" for file in files)]
        return not self.only or any(word.lower() in name.lower() for word in self.only for name in names)


def _is_corpus(files: Sequence[DataFile]) -> bool:
    return {_CORPUS, _QUERIES} <= {file.stem for file in files}


def _load_folder(folder: _Folder, found: Found) -> None:
    if folder.path.name == _QRELS and _is_corpus(files_in(folder.path.parent)):
        return  # read with the corpus beside it
    files = files_in(folder.path)
    if not folder.wants(*files):
        return
    corpus = _Corpus.of(folder.path, files) if _is_corpus(files) else None
    if corpus is not None:
        files = [file for file in files if file not in corpus.files]
        if folder.wants(*corpus.files):
            found.add(corpus.load(folder.name))
    groups, beside = _recognised(folder, files, found)
    # A set is called after its folder when it is alone there, whichever part of the folder is asked for.
    alone = len(groups) == 1 and corpus is None
    for group in groups:
        if folder.wants(*group.files):
            found.add(group.load(folder.name if alone else f"{folder.name}/{group.label}", beside))


# ------------------------------------------------------------------------------------------- files by schema


@dataclass(frozen=True, slots=True)
class _Companion:
    kind: str
    file: DataFile
    rows: dict[Any, Any]


@dataclass(frozen=True, slots=True)
class _Group:
    """The files of one set: one, or all the personas of a folder."""

    schema: str
    files: tuple[DataFile, ...]
    value: Any

    @property
    def label(self) -> str:
        return self.files[0].stem if len(self.files) == 1 else self.schema

    def load(self, name: str, beside: Sequence[_Companion]) -> DataSet:
        used = [own for kind in _COMPANIONS.get(self.schema, ()) for own in self._own(kind, beside)]
        given: dict[str, dict[Any, Any]] = {}
        for companion in used:
            given[companion.kind] = {**companion.rows, **given.get(companion.kind, {})}
        return _built(self.schema, name, [*self.files, *(companion.file for companion in used)], self.value, given)

    def _own(self, kind: str, beside: Sequence[_Companion]) -> list[_Companion]:
        """Return the companions of one kind: those named after the file where there are any, else all of them."""
        of_kind = [companion for companion in beside if companion.kind == kind]
        named = [companion for companion in of_kind if companion.file.stem.startswith(self.files[0].stem)]
        return named or of_kind


def _recognised(folder: _Folder, files: Sequence[DataFile], found: Found) -> tuple[list[_Group], list[_Companion]]:
    """Return the sets of a folder and what lies beside them; what is neither is listed as unknown."""
    groups: list[_Group] = []
    beside: list[_Companion] = []
    personas: dict[DataFile, Any] = {}
    for file in files:
        value = file.value() if file.kind != ".tsv" else None
        companion, schema = _companion(file, value, corrected=folder.corrected), schemas.schema_of(value)
        if companion is not None:
            beside.append(companion)
        elif schema == "realmem":  # one persona a file, all of them one set
            personas[file] = value
        elif schema is not None:
            groups.append(_Group(schema, (file,), value))
        elif folder.wants(file):
            found.unknown.append(file.path)
    if personas:
        by_name = {file.stem: value for file, value in personas.items()}
        if len(by_name) < len(personas):
            raise InputError(f"two files in {folder.path} have one name but for their endings; remove one of them")
        groups.append(_Group("realmem", tuple(personas), by_name))
    return groups, beside


def _companion(file: DataFile, value: object, *, corrected: bool) -> _Companion | None:
    try:
        recognised = schemas.companions(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _misshapen(file.path, error) from error
    if recognised is None:
        return None
    kind, by_key = recognised
    return _Companion(kind, file, by_key if corrected else schemas.as_published(kind, by_key))


def _misshapen(path: Path, error: Exception) -> InputError:
    what = f"a row has no {error}" if isinstance(error, KeyError) else f"its rows are not of its schema ({error})"
    return InputError(f"{path}: {what}; the file is cut short or of another version, fetch it again")


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
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _misshapen(files[0].path, error) from error
    return _finished(name, schema, haystacks, files, notes)


def _finished(
    name: str, schema: str, haystacks: Sequence[Haystack], files: Sequence[DataFile], notes: Notes
) -> DataSet:
    asked = []
    for haystack in haystacks:
        if haystack.messages:
            asked.append(haystack)
        else:
            notes.add("empty haystack", haystack.id, "left out")
    checksums = {file.path.name: file.checksum() for file in files}
    chat = schema not in ("tsqa", "qrels")
    return DataSet(name, schema, chat, _apart(asked, notes), checksums, tuple(notes.oddities))


def _apart(haystacks: Sequence[Haystack], notes: Notes) -> tuple[Haystack, ...]:
    """Give haystacks, and the questions of each, ids of their own: figures are kept by id."""
    kept = []
    for name, haystack in zip(_numbered([each.id for each in haystacks]), haystacks, strict=True):
        if name != haystack.id:
            notes.add("duplicate haystack id", haystack.id, f"kept as {name}")
        labels = _numbered([question.id for question in haystack.questions])
        for label, question in zip(labels, haystack.questions, strict=True):
            if label != question.id:
                notes.add("duplicate question id", f"{name}: {question.id}", f"kept as {label}")
        questions = tuple(
            dataclasses.replace(question, id=label)
            for label, question in zip(labels, haystack.questions, strict=True)
        )
        kept.append(dataclasses.replace(haystack, id=name, questions=questions))
    return tuple(kept)


def _numbered(names: Sequence[str]) -> list[str]:
    """Return the names, each that stood before with a number that makes it new."""
    given, used = set(names), dict[str, None]()
    for name in names:
        label, number = name, 1
        while label in used or (number > 1 and label in given):
            number += 1
            label = f"{name} ({number})"
        used[label] = None
    return list(used)


# -------------------------------------------------------------------------------------------------- corpora


@dataclass(frozen=True, slots=True)
class _Corpus:
    """The files of a corpus: documents, queries, judgements, and judgements of other splits."""

    corpus: DataFile
    queries: DataFile
    qrels: DataFile | None
    others: tuple[DataFile, ...]

    @classmethod
    def of(cls, folder: Path, files: Sequence[DataFile]) -> _Corpus:
        named = {file.stem: file for file in reversed(files)}
        splits = files_in(folder / _QRELS) if (folder / _QRELS).is_dir() else []
        splits.sort(key=lambda file: file.stem != _TEST)
        qrels = named.get(_QRELS) or next(iter(splits), None)
        return cls(named[_CORPUS], named[_QUERIES], qrels, tuple(file for file in splits if file != qrels))

    @property
    def files(self) -> list[DataFile]:
        return [self.corpus, self.queries, *([self.qrels] if self.qrels else [])]

    def load(self, name: str) -> DataSet:
        notes = Notes()
        for split in self.others:
            notes.add("judgements of another split", split.path.name, "not used")
        judged: corpora.Judgements = {}
        if self.qrels is not None:
            judged = corpora.read_qrels(self.qrels.text(), self.qrels.path, notes)
        queries = rows(self.queries.value(), self.queries.path)
        if self.qrels is None and not any("gold_ids" in row for row in queries):
            raise InputError(
                f"{self.corpus.path.parent} has no {_QRELS}.tsv and its queries name no gold; "
                "put the judgements beside them"
            )
        for query in sorted(set(judged) - {id_of(row) for row in queries}):
            notes.add("judged query that is not asked", query, "left out")
        documents = rows(self.corpus.value(), self.corpus.path)
        try:
            haystack = corpora.read_corpus(name, documents, queries, judged, notes)
        except (TypeError, AttributeError) as error:
            raise _misshapen(self.queries.path, error) from error
        return _finished(name, "qrels", [haystack], self.files, notes)
