"""Vectors and term weights of a state's documents: opening, joining and encoding the artifacts of each encoder."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.errors import FontesError, IndexFormatError, ParameterError
from ...core.work import Progress, reported_as, silent, work
from ...storage.artifact import LABEL, reseal
from ...storage.caches import Cached
from ..component import components
from ..files import folder_names
from ..segment import Leaf, Segment
from .encoded import EncodedComponent, EncodedSegment, EncodingJob, check_encoded
from .encoding import VECTORS
from .journal import BlockSource, Encoding, encode
from .weights import WEIGHTS

if TYPE_CHECKING:
    from ..state import State

P = TypeVar("P", bound=EncodedSegment)
J = TypeVar("J")
T = TypeVar("T")


class VectorStore:
    """Artifacts of the documents of a state, by component, encoder and form.

    An artifact of a segment covers all its documents, deleted ones too. A state has an encoder's artifacts if all its segments
    have them.

    Args:
        path: Path of the index, for messages.
        leaves: The segments.

    Attributes:
        changes: Number of changes since the store was opened.
    """

    def __init__(self, path: Path, leaves: Sequence[Leaf]) -> None:
        self.changes = 0
        self._path, self._leaves = path, tuple(leaves)
        self._opened: dict[str, list[dict[str, Any]]] = {}  # artifacts by component, then for each segment by name
        self._joined: Cached[str, Any] = Cached()  # joined artifacts by name
        self._labels: dict[str, tuple[int, dict[str, dict[str, object]]]] = {}  # by component: changes, metadata by label
        self._open(VECTORS)  # before a merge can remove them

    def of(self, component: EncodedComponent[P, J], encoder: Any, form: object = None) -> J:
        """Join the artifacts of an encoder over all documents, in the most exact form if `form` is None.

        Raises:
            ParameterError: There are none, or some documents have none.
            IndexFormatError: They are damaged.
            FontesError: Another process has removed a segment meanwhile.
        """
        fingerprint: str = encoder.fingerprint
        if not self._leaves:
            dim = {"dim": encoder.dim} if hasattr(encoder, "dim") else {}
            facts = {"encoder": repr(encoder), "settings": None, "fingerprint": fingerprint, "form": form, **dim}
            return component.join((), (), facts)
        if (name := self._complete(component, fingerprint, form)) is None:
            self._reopen(component)  # another process may have made them
            name = self._complete(component, fingerprint, form)
        if name is None:
            raise self._missing_error(component, encoder, form)
        joined: J = self._joined.get(name, lambda: component.join(self._leaves, self._parts(component, name), {}))
        return joined

    def add(
        self,
        component: EncodedComponent[P, J],
        encoder: Any,
        job: EncodingJob,
        form: object,
        overwrite: bool,
        actors: BlockSource | None = None,
    ) -> None:
        """Encode the documents of the segments that lack an encoder's artifact.

        Args:
            component: The component that the encoder makes.
            encoder: The encoder.
            job: Settings of the encoding.
            form: Form in which they are stored; None takes the forms of other segments.
            overwrite: Whether to make existing artifacts again.
            actors: Actors that encode; None encodes in this process.

        Raises:
            ParameterError: The form is unknown.
            FontesError: Another process has removed a segment meanwhile.
        """
        fingerprint: str = encoder.fingerprint
        component.chosen_forms(form, ())  # raises for an unknown form before anything else
        check_segments_exist(self._path, self._leaves)
        self._reopen(component)
        existing_forms = [known_form for known_form in component.forms if any(self._sound(component, fingerprint, known_form))]
        for chosen_form in component.chosen_forms(form, existing_forms):
            name = component.name_of(fingerprint, chosen_form)
            lacking = [overwrite or not usable for usable in self._sound(component, fingerprint, chosen_form)]
            for number, reported in with_progress(self._leaves, lacking):
                segment, parts = self._leaves[number].segment, self._opened[component.name][number]
                sound = {key: part for key, part in parts.items() if is_sound(part)}
                source = None if overwrite else component.source(sound, fingerprint, chosen_form)
                precision = source.meta.get("precision") if source else job.precision() if lacking[number] else None
                make = component.encoding(encoder, job, chosen_form, precision, source)
                with reported:
                    parts[name] = encode_segment(segment, make, overwrite, None if source else actors)
                self._joined.drop(name)
                self.changes += 1

    def precision(self, component: EncodedComponent[P, J], fingerprint: str) -> object:
        """Return the precision of an encoder's artifacts; None if it is unknown."""
        metas = [parts[0].meta for _, parts in self.sound(component).values()]
        return next((meta.get("precision") for meta in metas if meta["fingerprint"] == fingerprint), None)

    def labelled(self, component: EncodedComponent[P, J]) -> dict[str, dict[str, Any]]:
        """Return the metadata of the artifacts to which a user gave a name, by this name."""
        changes, labels = self._labels.get(component.name, (-1, {}))
        if changes != self.changes:
            metas = [parts[0].meta for _, parts in self.sound(component).values()]
            labels = {meta[LABEL]: meta for meta in metas if LABEL in meta}
            self._labels[component.name] = self.changes, labels
        return labels

    def label(self, component: EncodedComponent[P, J], fingerprint: str, name: str | None, settings: str | None) -> None:
        """Give the artifacts of an encoder a name; another encoder's artifacts of this name lose it.

        Args:
            component: The component.
            fingerprint: Fingerprint of the encoder.
            name: The name; None: the one that some of them have, for the others.
            settings: Text from which the encoder can be made again.
        """
        self._reopen(component)
        artifacts = [parts for _, parts in self.sound(component).values() if parts[0].meta["fingerprint"] == fingerprint]
        if name is None:
            labelled = next((part.meta for parts in artifacts for part in parts if LABEL in part.meta), None)
            if labelled is None:
                return
            name, settings = labelled[LABEL], labelled["settings"]
        for _, parts in self.sound(component).values():
            for part in parts:
                if part.meta["fingerprint"] == fingerprint:
                    changes = {LABEL: name, "settings": settings}
                elif part.meta.get(LABEL) == name:
                    changes = {LABEL: None}
                else:
                    continue
                if any(part.meta.get(key) != value for key, value in changes.items()):
                    reseal(part.folder, component.kind, changes)
        self.forget(component)

    def sound(self, component: EncodedComponent[P, J]) -> dict[str, tuple[list[Leaf], list[P]]]:
        """Return the readable artifacts by name, each with the segments that have it."""
        sound: dict[str, tuple[list[Leaf], list[P]]] = {}
        for leaf, parts in zip(self._leaves, self._open(component), strict=True):
            for name, part in parts.items():
                if is_sound(part):
                    leaves, sound_parts = sound.setdefault(name, ([], []))
                    leaves.append(leaf)
                    sound_parts.append(part)
        return sound

    def forget(self, component: EncodedComponent[P, J]) -> None:
        """Close the artifacts of a component, which are out of date."""
        for name in {name for parts in self._opened.pop(component.name, ()) for name in parts}:
            self._joined.drop(name)
        self.changes += 1

    def check(self, deep: bool = False) -> None:
        """Read every file; `deep` also compares them with one another. Raises IndexFormatError for a damaged one."""
        for leaf in self._leaves:
            check_encoded(leaf, deep)

    def facts(self, state: State) -> dict[str, Any]:
        """Entries of `Index.info`: vectors and weights always, others if there are any."""
        further = [name for name in folder_names(leaf.segment.folder for leaf in self._leaves) if name in components]
        names = dict.fromkeys([VECTORS.name, WEIGHTS.name, *further])
        return {key: value for name in names for key, value in components[name].facts(state).items()}

    def _open(self, component: EncodedComponent[P, J]) -> list[dict[str, Any]]:
        if component.name not in self._opened:
            self._opened[component.name] = [component.open(leaf.segment) for leaf in self._leaves]
        return self._opened[component.name]

    def _parts(self, component: EncodedComponent[P, J], name: str) -> list[P]:
        return [parts[name] for parts in self._open(component)]

    def _sound(self, component: EncodedComponent[P, J], fingerprint: str, form: object) -> list[bool]:
        """Return for each segment whether it has a sound artifact of an encoder in a form."""
        name = component.name_of(fingerprint, form)
        return [is_sound(parts.get(name)) for parts in self._open(component)]

    def _complete(self, component: EncodedComponent[P, J], fingerprint: str, form: object) -> str | None:
        """Return the name of the most exact artifacts of an encoder that all segments have; None if there are none."""
        for candidate in component.forms if form is None else (form,):
            name = component.name_of(fingerprint, candidate)
            if name in self._joined or all(self._sound(component, fingerprint, candidate)):
                return name
        return None

    def _reopen(self, component: EncodedComponent[P, J]) -> None:
        self.changes += 1
        previous = self._open(component)
        self._opened[component.name] = [
            {**component.open(leaf.segment), **{name: part for name, part in parts.items() if is_sound(part)}}
            for leaf, parts in zip(self._leaves, previous, strict=True)
        ]

    def _missing_error(self, component: EncodedComponent[P, J], encoder: Any, form: object) -> FontesError:
        """Return the error for missing artifacts, which lists the existing ones."""
        check_segments_exist(self._path, self._leaves)
        fingerprint, opened = encoder.fingerprint, self._open(component)
        forms = component.forms if form is None else (form,)
        for name in (component.name_of(fingerprint, candidate) for candidate in forms):
            for parts in opened:
                if isinstance(part := parts.get(name), IndexFormatError):
                    return part
        kind, remedy = component.label(form), component.remedy.format(path=shlex.quote(str(self._path)))
        covered = max(
            sum(leaf.documents for leaf, is_usable in zip(self._leaves, usable, strict=True) if is_usable)
            for usable in (self._sound(component, fingerprint, candidate) for candidate in forms)
        )
        if covered:
            coverage = f"{covered:,} of {sum(leaf.documents for leaf in self._leaves):,} documents"
            return ParameterError(f"{self._path} holds {kind} of {encoder!r} for {coverage}; {remedy} for the others")
        other_encoders = dict.fromkeys(component.described(parts[0].meta) for _, parts in self.sound(component).values())
        other_note = f", only those of {' and '.join(other_encoders)}" if other_encoders else ""
        return ParameterError(
            f"{self._path} holds no {kind} of {encoder!r} (fingerprint {fingerprint[:8]}){other_note}; {remedy}"
        )


def is_sound(part: object) -> bool:
    """Whether an artifact exists and can be read."""
    return part is not None and not isinstance(part, IndexFormatError)


def check_segments_exist(path: Path, leaves: Sequence[Leaf]) -> None:
    """Raise FontesError if another process has merged a segment away or replaced the index."""
    if not all(leaf.segment.folder.is_dir() for leaf in leaves):
        raise FontesError(f"{path} has changed since it was opened; index.refresh() reads its newest state")


def encode_segment(segment: Segment, make: Callable[[Segment], Encoding[T]], overwrite: bool, actors: BlockSource | None) -> T:
    """Encode the documents of a segment and store the result with it, unless it exists; see `journal.encode`.

    Args:
        segment: The segment.
        make: Makes the encoding of a segment; it can be pickled.
        overwrite: Whether to encode again if the artifact exists.
        actors: Actors that encode; None encodes in this process.
    """
    blocks = None if actors is None else actors.blocks(make, segment)
    return encode(segment.folder, make(segment), overwrite, blocks)


def with_progress(leaves: Sequence[Leaf], lacking: Sequence[bool]) -> Iterator[tuple[int, AbstractContextManager[object]]]:
    """Yield the number of each segment, and a block that reports its progress as part of the whole.

    Args:
        leaves: The segments.
        lacking: Whether each segment is to be encoded; others report nothing.
    """
    total = sum(leaf.segment.documents for leaf, lacks in zip(leaves, lacking, strict=True) if lacks)
    first = 0

    def shifted(offset: int, current: Progress) -> Progress:
        part = (offset + (current.fraction or 0.0) * (current.total or 0)) / max(1, total)
        return replace(current, done=offset + current.done, total=total, part=part, before=offset + current.before)

    for number, lacks in enumerate(lacking):
        yield number, reported_as(partial(shifted, first)) if lacks else work(progress=silent)
        first += leaves[number].segment.documents if lacks else 0
