"""Components that encoders compute from a segment's documents, with an artifact for each encoder and form."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ...core.errors import IndexFormatError
from ...core.values import Doc
from ...storage.artifact import Artifact, ArtifactKind, check_folder
from ...storage.hashes import hash_text
from ..component import DROP_REMEDY, Component, components
from ..files import folder_names
from ..segment import Leaf, Segment, leaves_of
from .journal import Encoding

DRAFT = re.compile(r"\.[a-z]\w*-[0-9a-f]{16}(-\w+)?")  # folders of incomplete encodings


class EncodedSegment(Protocol):
    """An open artifact of a segment's documents by one encoder."""

    folder: Path
    meta: dict[str, Any]

    def check(self, deep: bool = False) -> None:
        """Read every file; `deep` also compares them with one another."""
        ...


P = TypeVar("P", bound=EncodedSegment)
J = TypeVar("J")


@dataclass(frozen=True)
class EncodingJob:
    """Settings with which an encoder's vectors are computed.

    Args:
        settings: Text from which the encoder can be made again, or None.
        vectors: Returns the vectors of documents.
        precision: Returns the precision of the encoder's models, which it may have to load.
    """

    settings: str | None
    vectors: Callable[[Sequence[Doc]], Any]
    precision: Callable[[], str | None]


class EncodedComponent(Component[dict[str, P | IndexFormatError]], Generic[P, J]):
    """Artifacts named NAME-ENCODER or NAME-ENCODER-FORM in a segment's folder.

    Attributes:
        kind: The kind of artifacts.
        noun: Name of the artifacts in messages.
        forms: The forms in which they may be stored, the most exact first.
        remedy: How a user makes them; `{path}` is the index.
        misfit: Problem and remedy if `fit` differs between segments.
    """

    kind: ClassVar[ArtifactKind]
    noun: ClassVar[str]
    forms: ClassVar[tuple[object, ...]] = (None,)
    remedy: ClassVar[str]
    misfit: ClassVar[str] = ""

    @abstractmethod
    def load(self, folder: Path, segment: Segment) -> P:
        """Open an artifact of a segment. Raises IndexFormatError if it is damaged or of other documents."""

    @abstractmethod
    def join(self, leaves: Sequence[Leaf], parts: Sequence[P], facts: dict[str, object]) -> J:
        """Join the artifacts of one encoder over the living documents; `facts` describe them if there are no segments."""

    @abstractmethod
    def write_merged(self, leaves: Sequence[Leaf], parts: Sequence[P], segment: Path) -> None:
        """Write the artifact of the living documents to the folder of a new segment."""

    def encoding(
        self, encoder: object, job: EncodingJob, form: object, precision: str | None, source: P | None
    ) -> Callable[[Segment], Encoding[P]]:
        """Return a function that makes the encoding of a segment; it can be pickled unless there is a `source`."""
        raise NotImplementedError

    def chosen_forms(self, form: object, stored: Sequence[object]) -> Sequence[object]:
        """Return the forms in which to encode documents if `form` is requested and others are encoded in the forms `stored`."""
        return (form,)

    def source(self, parts: dict[str, P], fingerprint: str, form: object) -> P | None:
        """Return the artifact of a segment from which an artifact in `form` can be made without the encoder; None if none."""
        return None

    def name_of(self, fingerprint: str, form: object = None) -> str:
        """Return the name of an artifact, which is the prefix of its folder's name."""
        return f"{self.name}-{hash_text(fingerprint)[:16]}" + ("" if form is None else f"-{form}")

    def label(self, form: object) -> str:
        """Return the name of artifacts in a form (None: any), for messages."""
        return self.noun

    def described(self, meta: dict[str, Any]) -> str:
        """Describe an artifact by its metadata, for messages."""
        return f"{meta['encoder']} (fingerprint {meta['fingerprint'][:8]})"

    def folders(self, segment: Path) -> dict[str, Path]:
        """Return the folders of a segment's artifacts by name."""
        return {folder.name: folder for folder in sorted(segment.glob(f"{self.name}-*"))}

    def fit(self, folder: Path) -> object:
        """Return a value that must be equal in all segments to merge. Raises IndexFormatError if it cannot be read."""
        return None

    def open(self, segment: Segment) -> dict[str, P | IndexFormatError]:
        """Open all artifacts of a segment, by name; in place of a damaged one stands its error."""
        opened: dict[str, P | IndexFormatError] = {}
        for name, folder in self.folders(segment.folder).items():
            try:
                opened[name] = self.load(folder, segment)
            except IndexFormatError as error:
                if folder.exists():  # otherwise it has just been replaced
                    opened[name] = error
                elif name in (newer := self.folders(segment.folder)):
                    opened[name] = self.load(newer[name], segment)
        return opened

    def merge(self, leaves: Sequence[Leaf], folder: Path) -> dict[str, int]:
        """Merge the artifacts that all segments have, with the result of encoding the new segment; keep existing artifacts."""
        fits, existing = [self._fits(leaf) for leaf in leaves], self.folders(folder)
        for name, fit in fits[0].items() if fits else ():
            if name not in existing and all(name in part_fits and part_fits[name] == fit for part_fits in fits):
                parts = [self.load(self.folders(leaf.segment.folder)[name], leaf.segment) for leaf in leaves]
                for part in parts:
                    part.check()
                self.write_merged(leaves, parts, folder)
        return {}

    def conflict(self, leaves: Sequence[Leaf]) -> str | None:
        """Report artifacts that only some segments have, or that do not fit."""
        try:
            fits = [self._fits(leaf) for leaf in leaves]
        except IndexFormatError as error:
            return str(error)
        if all(part_fits == fits[0] for part_fits in fits):
            return None
        if all(set(part_fits) == set(fits[0]) for part_fits in fits):
            return f"{self.misfit}; {DROP_REMEDY}"
        remedy = "index.encode(encoder), or fontes encode, makes them"
        return f"some of its documents have no vectors of an encoder of which others have; {remedy}; {DROP_REMEDY}"

    def check(self, leaf: Leaf, deep: bool) -> None:
        for name, part in self.open(leaf.segment).items():
            if isinstance(part, IndexFormatError):
                Artifact(self.folders(leaf.segment.folder)[name], self.kind).check()  # names the file that has changed
                raise part
            part.check(deep)

    def _fits(self, leaf: Leaf) -> dict[str, object]:
        return {name: self.fit(folder) for name, folder in self.folders(leaf.segment.folder).items()}


def merge_conflict(leaves: Sequence[Leaf]) -> str | None:
    """Return why merging segments would lose data, such as encodings of only some of them; None if it would not."""
    for leaf in leaves:
        for entry in leaf.segment.folder.glob(".*-*"):
            if DRAFT.fullmatch(entry.name) and any(entry.iterdir()):
                return f"an encoding of its documents is under way or was stopped; fontes encode resumes it; {DROP_REMEDY}"
    folders = folder_names(leaf.segment.folder for leaf in leaves)
    files = {name for leaf in leaves for name in (*leaf.segment.opened, *leaf.segment.unknown)}
    for name in (*folders, *sorted(files)):
        if name not in components:
            return f"no package is installed for its component '{name}'; {DROP_REMEDY}"
        problem: str | None = components[name].conflict(leaves)
        if problem is not None:
            return problem
    return None


def merge_encoded(leaves: Sequence[Leaf], folder: Path) -> None:
    """Merge the artifacts that all these segments have into the one in `folder`; raises IndexFormatError for damaged ones."""
    leaves = leaves_of((leaf.segment, leaf.deletions) for leaf in leaves)
    for name in folder_names(leaf.segment.folder for leaf in leaves):
        if name in components:
            components[name].merge(leaves, folder)


def check_encoded(leaf: Leaf, deep: bool) -> None:
    """Read every file that encoders made of a segment; raise IndexFormatError if one is damaged."""
    for name in folder_names([leaf.segment.folder]):
        if name in components:
            components[name].check(leaf, deep)
        else:
            for folder in sorted(leaf.segment.folder.glob(f"{name}-*")):
                check_folder(folder)
