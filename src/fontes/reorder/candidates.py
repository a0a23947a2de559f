"""`Reordering`: base class of stages that reorder or remove documents of a run by what an index knows about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..core.arrays import Ints
from ..core.errors import PipelineError
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Explanation, Topic

if TYPE_CHECKING:
    from ..index import Index


class Reordering(Stage[Run, Run]):
    """Base class of stages that reorder or remove documents of a run; they never add documents.

    Attributes:
        index: The index that holds the documents.
    """

    returns_subset: ClassVar[bool] = True
    starts_from_scores: ClassVar[bool] = True
    index: Index

    def ordinals(self, run: Run) -> Ints:
        """Return the ordinal in the index of each row's document.

        Raises:
            InputError: A document is not in the index.
        """
        return self.index.ordinals_in(run, self.name)

    def explain(self, query: str | Topic, doc_id: str) -> Explanation:
        raise PipelineError(f"{self.name} explains documents of a run: (retriever >> {self.name}(…)).explain(query, doc_id)")

    def explain_in(self, run: Run, topic_id: str, doc_id: str) -> Explanation:
        """Explain the score that this stage gives to a document of the run."""
        topic_run = run.keep(run.topic_numbers == list(run.topics).index(topic_id))
        row = next((i for i, code in enumerate(topic_run.codes.tolist()) if topic_run.ids[code] == doc_id), None)
        if row is None:
            self.index.ordinal(doc_id)  # raises for an unknown document
            return Explanation(0.0, f"'{doc_id}' is not among the {topic_run.rows} documents that {self.name} gets")
        return self.explained(topic_run, row)

    def explained(self, run: Run, row: int) -> Explanation:
        """Explain a row of a run that has documents for only one topic.

        If the new score depends on the row's previous score, `score_before` is the first part.
        """
        raise NotImplementedError


def score_before(run: Run, row: int) -> Explanation:
    """Return the explanation of a row's score before a stage."""
    return Explanation(float(run.scores[row]), f"score before, rank {row + 1}")
