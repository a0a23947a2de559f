"""Encoding by actors of a cluster: blocks are written next to the journal and joined in order."""

from __future__ import annotations

import contextlib
import io
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any

import numpy as np

from ..core.errors import FontesError
from ..index.embeddings.journal import PARTS, Block, Blocks, Encoding, Span
from ..index.segment import Segment
from ..storage.files import write
from ..storage.hashes import hash_json
from .actors import Actors, in_order, memory_of
from .joining import joined_here

Make = Callable[[Segment], Encoding[Any]]
Work = tuple[int, int, Path]
Encodings = dict[str, Encoding[Any]]


class RemoteEncoder:
    """Encoding actors, which are started when the first block is needed and end with `stack`."""

    def __init__(self, encoder: Any, stack: contextlib.ExitStack) -> None:
        self._encoder, self._stack = encoder, stack
        self._actors: Actors[Encodings] | None = None

    def blocks(self, make: Make, segment: Segment) -> Blocks:
        """Function that yields the blocks of a segment's encoding in order, for `journal.encode`; `make` is pickled."""
        folder, texts = segment.folder.resolve(), segment.has_texts
        return partial(self._blocks, partial(_open_encoding, make, self._encoder, self._encoder.fingerprint, folder, texts))

    def _blocks(
        self, open_encoding: Callable[[], Encoding[Any]], draft: Path, encoding: Encoding[Any], spans: Sequence[Span]
    ) -> Iterator[Block]:
        """Yield the blocks of all spans in order; blocks that an earlier run left are not encoded again."""
        draft, settings = draft.resolve(), encoding.settings | dict.fromkeys(encoding.NAMES)
        paths = [draft / f"{PARTS}{hash_json(settings)[:16]}-{first}-{last}" for first, last in spans]
        for leftover in set(draft.glob(f"*{PARTS}*")) - set(paths):
            leftover.unlink(missing_ok=True)
        missing = [number for number, path in enumerate(paths) if not _is_complete(path)]
        work = [(*spans[number], paths[number]) for number in missing]
        encode_part = partial(_encode_part, hash_json([str(draft), settings]), open_encoding)
        with contextlib.closing(self._encode(encode_part, work)) as completed:
            for number, path in enumerate(paths):
                if number in missing[:1]:
                    next(completed)
                    del missing[0]
                yield _read(path)
                path.unlink(missing_ok=True)

    def _encode(self, function: Callable[[Encodings, Work], None], work: Sequence[Work]) -> Generator[None]:
        """Encode the parts; yield once per part, in order, when it is complete."""
        if not work:
            return
        if self._actors is None:
            cluster = self._stack.enter_context(joined_here("encoding on a cluster"))
            actors: Actors[Encodings] = Actors.alike(cluster, dict, "encoding", len(work), memory_of(self._encoder))
            self._actors = self._stack.enter_context(actors)
        with contextlib.closing(self._actors.map_unordered(function, work)) as results:
            yield from in_order(results)


@contextlib.contextmanager
def remote_encoder(encoder: Any) -> Iterator[RemoteEncoder]:
    """Encoding actors of the cluster of `work`, which end with the block."""
    with contextlib.ExitStack() as stack:
        yield RemoteEncoder(encoder, stack)


def _open_encoding(make: Make, encoder: Any, fingerprint: str, folder: Path, texts: bool) -> Encoding[Any]:
    """Open a segment's encoding in an actor; raise FontesError if the segment is missing or the model differs there."""
    if not folder.is_dir():
        problem = "an index for a cluster must be in a folder that all nodes see"
        raise FontesError(f"{folder} is missing on {gethostname()}; {problem}")
    if encoder.fingerprint != fingerprint:
        raise FontesError(f"the model of {encoder!r} differs on {gethostname()}; install the same one there")
    return make(Segment(folder, texts=texts))


def _encode_part(key: str, open_encoding: Callable[[], Encoding[Any]], encodings: Encodings, work: Work) -> None:
    """Encode the documents of a part and write the block atomically."""
    first, last, path = work
    if key not in encodings:
        encodings[key] = open_encoding()
    file = io.BytesIO()
    np.savez(file, *encodings[key].block(first, last))
    write(path, [file.getvalue()])


def _is_complete(path: Path) -> bool:
    """Whether an earlier run left this part complete."""
    try:
        return len(_read(path)) > 0
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        return False


def _read(path: Path) -> Block:
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
        return tuple(arrays[f"arr_{number}"] for number in range(len(arrays.files)))
