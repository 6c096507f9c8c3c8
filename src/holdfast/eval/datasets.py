"""A folder of data → the sets in it, recognised by what their files hold, never by their names."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.eval.data import DataSet, DatasetMessage, GoldQuestion, Haystack, Notes
from holdfast.eval.readers import SCHEMAS, JsonRow, find_schema, id_of, read_companion, read_corpus, read_qrels
from holdfast.values import dataclass

_PACKED: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".xz": lzma.decompress}
_KINDS = (".json", ".jsonl", ".tsv")
# A file of these names, in a folder with the other two, is part of a corpus with judgements.
_CORPUS, _QUERIES, _QRELS = "corpus", "queries", "qrels"
# Where judgements come in splits, this one is what published figures are of.
_TEST = "test"
# The schema whose files are one haystack each, and all of a folder one set.
_ONE_EACH = "realmem"
# A quick run keeps so much of every set: enough to see that something broke, in a minute or two of embedding.
_QUICK_HAYSTACKS = 2
_QUICK_QUESTIONS = 40
_QUICK_MESSAGES = 500
# What a reader raises on rows that are not of its schema.
_MISSHAPEN = (KeyError, TypeError, ValueError, AttributeError)


# ---------------------------------------------------------------------------------------------------- files


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a data folder; `kind` is its ending without that of a packer."""

    path: Path
    kind: str

    @property
    def stem(self) -> str:
        """Return the name without what says how it is written."""
        return _without_packer(self.path).removesuffix(self.kind)

    def text(self) -> str:
        """Return the whole file, unpacked.

        Raises:
            InputError: it cannot be read, is damaged or cut short, or is not UTF-8.
        """
        unpack = _PACKED.get(self.path.suffix, bytes)
        try:
            # Some editors write a byte order mark first; it is no part of the text.
            return unpack(self.path.read_bytes()).decode("utf-8-sig")
        except (OSError, EOFError, zlib.error, lzma.LZMAError, UnicodeDecodeError) as error:
            raise InputError(f"{self.path} cannot be read: {error}; fetch the file again") from error

    def value(self) -> object:
        """Return the JSON value, or the list of rows, that the file holds.

        Raises:
            InputError: as `text`, or it is not JSON.
        """
        text = self.text()
        # A line ends at a line feed only: inside a JSON string other separators are characters like any other.
        parts = [text] if self.kind != ".jsonl" else text.split("\n")
        values = [
            self._parse(part, line) for line, part in enumerate(parts, start=1) if part.strip() or len(parts) == 1
        ]
        return values if self.kind == ".jsonl" else values[0]

    def rows(self) -> list[JsonRow]:
        """Return the value as a list of objects.

        Raises:
            InputError: as `value`, or it is something else.
        """
        value = self.value()
        if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
            raise InputError(f"{self.path} is not a list of JSON objects; check which file it is")
        return value

    def checksum(self) -> str:
        """Return the SHA-256 of the file as it lies there."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def _parse(self, text: str, line: int) -> object:
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            place = line + error.lineno - 1
            raise InputError(
                f"{self.path} is damaged or cut short: {error.msg} at line {place}; fetch the file again"
            ) from error


def _without_packer(path: Path) -> str:
    return path.name.removesuffix(path.suffix) if path.suffix in _PACKED else path.name


def files_in(folder: Path) -> list[DataFile]:
    """Return the data files of one folder, by name."""
    return [
        DataFile(path, kind)
        for path in sorted(folder.iterdir())
        if path.is_file()
        for kind in _KINDS
        if _without_packer(path).endswith(kind)
    ]


def _walk(root: Path) -> Iterator[Path]:
    """Yield `root` and every folder below it that is not hidden, by name."""
    yield root
    for path in sorted(root.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            yield from _walk(path)


# ----------------------------------------------------------------------------------------------------- sets


@dataclass(slots=True)
class LoadedData:
    """What a folder holds: sets, sets with nothing in them, and files that are not evaluation data."""

    sets: list[DataSet] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    unknown: list[Path] = field(default_factory=list)

    def add(self, data: DataSet) -> None:
        """Take in a set; of one without a message only the name is kept."""
        if data.haystacks:
            self.sets.append(data)
        else:
            self.empty.append(data.name)


def load_sets(root: str | Path, only: Sequence[str] = (), *, corrected: bool = True) -> LoadedData:
    """Read every set below `root`; with `only`, those whose name contains one of these words.

    Where errata of the gold are known they are applied; with `corrected` off, the gold is what was published.

    Raises:
        InputError: there is nothing to evaluate, or a file cannot be read.
    """
    root = Path(root)
    if not root.is_dir():
        raise InputError(f"{root} is not a folder; give the folder that holds the evaluation data")
    loaded = LoadedData()
    for path in _walk(root):
        name = path.relative_to(root).as_posix() if path != root else root.resolve().name
        _Folder(path, name, only, corrected).load(loaded)
    loaded.sets.sort(key=lambda data: data.name)
    if not loaded.sets:
        wanted = f" named like {', '.join(only)}" if only else ""
        names = ", ".join(path.name for path in loaded.unknown)
        seen = f"; files of no known schema: {names}" if names else ""
        raise InputError(f"{root} holds no evaluation set{wanted}{seen}; docs/evaluation.md lists the schemas")
    twice = [name for name, count in Counter(data.name for data in loaded.sets).items() if count > 1]
    if twice:
        raise InputError(f"two sets below {root} are called {twice[0]}; rename or remove one of their files")
    return loaded


@dataclass(frozen=True, slots=True)
class _Companion:
    """A file beside sets that says more about them."""

    kind: str
    file: DataFile
    rows: dict[Any, JsonRow]


@dataclass(frozen=True, slots=True)
class _Group:
    """The files of one set, one or several, and what they hold."""

    schema: str
    files: tuple[DataFile, ...]
    value: Any

    @property
    def label(self) -> str:
        return self.files[0].stem if len(self.files) == 1 else self.schema

    def load(self, name: str, beside: Sequence[_Companion]) -> DataSet:
        schema, notes = SCHEMAS[self.schema], Notes()
        used = [own for kind in schema.companions for own in self._own(kind, beside)]
        given: dict[str, dict[Any, JsonRow]] = {}
        for companion in used:
            given[companion.kind] = {**companion.rows, **given.get(companion.kind, {})}
        try:
            haystacks = list(schema.read(self.value, given, notes))
        except InputError:
            raise
        except _MISSHAPEN as error:
            raise _describe_misshapen(self.files[0].path, error) from error
        files = [*self.files, *(companion.file for companion in used)]
        return _finish_set(name, self.schema, haystacks, files, notes)

    def _own(self, kind: str, beside: Sequence[_Companion]) -> list[_Companion]:
        """Return the companions of one kind: those named after the file where there are any, else all of them."""
        of_kind = [companion for companion in beside if companion.kind == kind]
        named = [companion for companion in of_kind if companion.file.stem.startswith(self.files[0].stem)]
        return named or of_kind


@dataclass(frozen=True, slots=True)
class _Folder:
    """One folder, what its sets are named after, and what is wanted of it."""

    path: Path
    name: str
    only: Sequence[str]
    corrected: bool

    def load(self, loaded: LoadedData) -> None:
        if self.path.name == _QRELS and _is_corpus(files_in(self.path.parent)):
            return  # read with the corpus beside it
        files = files_in(self.path)
        if not self._wants(*files):
            return
        corpus = _corpus_files(self.path, files) if _is_corpus(files) else []
        if corpus:
            files = [file for file in files if file not in corpus]
            if self._wants(*corpus):
                loaded.add(_load_corpus(self.name, self.path, corpus))
        groups, beside = self._recognise(files, loaded)
        # A set is called after its folder when it is alone there, whichever part of the folder is asked for.
        alone = len(groups) == 1 and not corpus
        for group in groups:
            if self._wants(*group.files):
                loaded.add(group.load(self.name if alone else f"{self.name}/{group.label}", beside))

    def _wants(self, *files: DataFile) -> bool:
        """Return whether the folder's name, or that of one of these files in it, is asked for."""
        names = [self.name, *(f"{self.name}/{file.stem}" for file in files)]
        return not self.only or any(word.lower() in name.lower() for word in self.only for name in names)

    def _recognise(self, files: Sequence[DataFile], loaded: LoadedData) -> tuple[list[_Group], list[_Companion]]:
        """Return the sets of the folder and what lies beside them; what is neither is listed as unknown."""
        groups: list[_Group] = []
        beside: list[_Companion] = []
        one_each: dict[DataFile, object] = {}
        for file in files:
            value = file.value() if file.kind != ".tsv" else None
            try:
                companion = read_companion(value, corrected=self.corrected)
            except _MISSHAPEN as error:
                raise _describe_misshapen(file.path, error) from error
            schema = find_schema(value)
            if companion is not None:
                beside.append(_Companion(companion[0], file, companion[1]))
            elif schema == _ONE_EACH:
                one_each[file] = value
            elif schema is not None:
                groups.append(_Group(schema, (file,), value))
            elif self._wants(file):
                loaded.unknown.append(file.path)
        if one_each:
            by_name = {file.stem: value for file, value in one_each.items()}
            if len(by_name) < len(one_each):
                raise InputError(f"two files in {self.path} have one name but for their endings; remove one of them")
            groups.append(_Group(_ONE_EACH, tuple(one_each), by_name))
        return groups, beside


def _describe_misshapen(path: Path, error: Exception) -> InputError:
    what = f"a row has no {error}" if isinstance(error, KeyError) else f"its rows are not of its schema ({error})"
    return InputError(f"{path}: {what}; the file is cut short or of another version, fetch it again")


def _finish_set(
    name: str, schema: str, haystacks: Sequence[Haystack], files: Sequence[DataFile], notes: Notes
) -> DataSet:
    for haystack in haystacks:
        if not haystack.messages:
            notes.add("empty haystack", haystack.id, "left out")
    kept = _rename_twins([haystack for haystack in haystacks if haystack.messages], notes)
    checksums = {file.path.name: file.checksum() for file in files}
    chat = schema in SCHEMAS and SCHEMAS[schema].chat
    return DataSet(name, schema, chat, kept, checksums, tuple(notes.oddities))


def _rename_twins(haystacks: Sequence[Haystack], notes: Notes) -> tuple[Haystack, ...]:
    """Give haystacks, and the questions of each, ids of their own: figures are kept by id."""
    kept = []
    for name, haystack in zip(_number_twins([each.id for each in haystacks]), haystacks, strict=True):
        if name != haystack.id:
            notes.add("duplicate haystack id", haystack.id, f"kept as {name}")
        questions = []
        labels = _number_twins([question.id for question in haystack.questions])
        for label, question in zip(labels, haystack.questions, strict=True):
            if label != question.id:
                notes.add("duplicate question id", f"{name}: {question.id}", f"kept as {label}")
            questions.append(replace(question, id=label))
        kept.append(replace(haystack, id=name, questions=tuple(questions)))
    return tuple(kept)


def _number_twins(names: Sequence[str]) -> list[str]:
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


def _is_corpus(files: Sequence[DataFile]) -> bool:
    return {_CORPUS, _QUERIES} <= {file.stem for file in files}


def _splits_in(folder: Path) -> list[DataFile]:
    """Return the judgements that come in splits, the one to use first."""
    splits = files_in(folder / _QRELS) if (folder / _QRELS).is_dir() else []
    return sorted(splits, key=lambda file: file.stem != _TEST)


def _corpus_files(folder: Path, files: Sequence[DataFile]) -> list[DataFile]:
    """Return documents, queries and, where there are any, judgements."""
    named = {file.stem: file for file in reversed(files)}
    judged = [named[_QRELS]] if _QRELS in named else _splits_in(folder)[:1]
    return [named[_CORPUS], named[_QUERIES], *judged]


def _load_corpus(name: str, folder: Path, files: Sequence[DataFile]) -> DataSet:
    notes, (corpus, queries, *judgements) = Notes(), files
    for split in _splits_in(folder):
        if split not in judgements:
            notes.add("judgements of another split", split.path.name, "not used")
    judged = read_qrels(judgements[0].text(), judgements[0].path, notes) if judgements else {}
    asked = queries.rows()
    if not judgements and not any("gold_ids" in row for row in asked):
        raise InputError(f"{folder} has no {_QRELS}.tsv and its queries name no gold; put the judgements beside them")
    for query in sorted(set(judged) - {id_of(row) for row in asked}):
        notes.add("judged query that is not asked", query, "left out")
    documents = corpus.rows()
    try:
        haystack = read_corpus(name, documents, asked, judged, notes)
    except (TypeError, AttributeError) as error:
        raise _describe_misshapen(queries.path, error) from error
    return _finish_set(name, _QRELS, [haystack], files, notes)


# --------------------------------------------------------------------------------------- a part of a set


def take_quick_part(data: DataSet) -> DataSet:
    """Return a small part of a set, always the same one."""
    return replace(data, haystacks=tuple(_shrink(each) for each in data.haystacks[:_QUICK_HAYSTACKS]))


def _shrink(haystack: Haystack) -> Haystack:
    """Keep the first questions; of a large corpus, the messages that they need and the first of the others."""
    questions = haystack.questions[:_QUICK_QUESTIONS]
    if len(haystack.messages) <= _QUICK_MESSAGES:
        return replace(haystack, questions=questions)
    if any(question.visible < len(haystack.messages) for question in questions):
        # Where questions are asked in between, the beginning of the chat is a smaller chat.
        begun = tuple(question for question in haystack.questions if question.visible <= _QUICK_MESSAGES)
        return replace(haystack, messages=haystack.messages[:_QUICK_MESSAGES], questions=begun[:_QUICK_QUESTIONS])
    needed = _find_needed(haystack.messages, questions)
    messages = tuple(
        message
        for place, message in enumerate(haystack.messages)
        if place < _QUICK_MESSAGES - len(needed) or message.id in needed
    )
    sessions = {message.session for message in messages}
    kept = tuple(
        replace(each, visible=len(messages), gold_sessions=frozenset(each.gold_sessions & sessions))
        for each in questions
    )
    return replace(haystack, messages=messages, questions=kept)


def _find_needed(messages: Sequence[DatasetMessage], questions: Sequence[GoldQuestion]) -> set[str]:
    """Return the gold messages, and the whole of a gold session in which none is marked."""
    gold = {item for question in questions for item in question.gold}
    named = {session for question in questions for session in question.gold_sessions}
    unmarked = named - {message.session for message in messages if message.id in gold}
    return gold | {message.id for message in messages if message.session in unmarked}
