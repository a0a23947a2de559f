"""`Reordering`: base class of stages that reorder or thin out the documents of a run by facts of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import PipelineError
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Explanation, Topic

if TYPE_CHECKING:
    from ..index import Index


class Reordering(Stage[Run, Run]):
    """A stage from run to run over one index. It sees the documents of the run alone, not those that the run lacks.

    Attributes:
        index: The index that holds the documents.
    """

    selects: ClassVar[bool] = True
    starts_from_scores: ClassVar[bool] = True
    index: Index

    def ordinals(self, run: Run) -> NDArray[np.integer[Any]]:
        """Return the document of each row as its ordinal in the index.

        Raises:
            InputError: A document is not in the index.
        """
        return self.index.ordinals_in(run, self.name)

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        raise PipelineError(f"{self.name} explains documents of a run: (retriever >> {self.name}(…)).explain(query, doc_id)")

    def explain_in(self, run: Run, topic_id: str, doc_id: str) -> Explanation:
        """Explain the score of a document by its score in the run and by what this stage makes of it."""
        topic_run = run.keep(run.topic_numbers == list(run.topics).index(topic_id))
        place = next((i for i, code in enumerate(topic_run.codes.tolist()) if topic_run.ids[code] == doc_id), None)
        if place is None:
            self.index.ordinal(doc_id)  # which says that there is no such document
            return Explanation(0.0, f"'{doc_id}' is not among the {topic_run.rows} documents that {self.name} gets")
        return self.explained(topic_run, place)

    def explained(self, run: Run, row: int) -> Explanation:
        """Explain a row of a run that has documents for one topic alone.

        The first part is the row's own score, from `score_before`, if the new score is made of it.
        """
        raise NotImplementedError


def score_before(run: Run, row: int) -> Explanation:
    """Explain the score that a row has before a stage."""
    return Explanation(float(run.scores[row]), f"score before, rank {row + 1}")
