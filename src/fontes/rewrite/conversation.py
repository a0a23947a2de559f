"""Conversations: each turn is searched in the context of the earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from ..core.answers import cited_answer
from ..core.errors import InputError, ParameterError
from ..core.run import Ranking, Run
from ..core.stage import Stage
from ..core.values import Documents, Explanation, Topic, Topics, Turn
from ..core.work import ProgressCallback
from ..formats import write_topics
from ..formats.cast import PTKB
from ..storage.files import plain_name


class Conversation:
    """Searches turn by turn and keeps turns and hits: `Conversation(ft.rewrite.LastTurns(3) >> index.bm25()).ask("why?")`."""

    def __init__(
        self,
        stage: Stage[Topics, Run],
        k: int = 10,
        *,
        id: str = "1",
        turns: Iterable[Turn] = (),
        answer: Callable[[Ranking], str] | None = None,
        ptkb: Iterable[str] = (),
    ) -> None:
        """Start a conversation, or continue from earlier turns.

        Args:
            stage: Any stage from topics to a run. Each turn is passed as a topic with all earlier turns and answers, for a
                rewriter in the stage.
            k: Number of hits of a turn.
            id: Id of the conversation; the topics are "<id>_1", "<id>_2", …
            turns: Earlier turns, such as the `turns` of a topic from `read_topics`.
            answer: Function from the hits of a turn to the answer to remember, such as a language model; not called
                without hits. By default the text of the best document or passage.
            ptkb: Statements about the user, as in TREC iKAT, for a stage such as `Statements`.
        """
        stage.require(Topics, Run, "a conversation")
        if not id:
            raise ParameterError("a conversation needs an id: its topics are named after it, such as 1_1, 1_2, …")
        self.stage = stage % k
        self.id = id
        self._answer = answer
        statements = list(ptkb)
        self._metadata = {PTKB: statements} if statements else {}
        self._turns = tuple(turns)
        self._last: tuple[Topic, Ranking] | None = None

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Turns so far, oldest first, each with its query as `automatic` rewrite, and its answer."""
        return self._turns

    @property
    def hits(self) -> Ranking | None:
        """Hits of the last turn; None before the first."""
        return None if self._last is None else self._last[1]

    def ask(self, turn: str | Turn, *, progress: ProgressCallback | None = None) -> Ranking:
        """Search for a turn and remember it, unless an error is raised.

        Args:
            turn: The question. A `Turn` may have a manual rewrite, for a stage that begins with `Manual`, and an answer, which
                is remembered instead of the answer from the hits; the stage does not see it.
            progress: Called with the progress of the stage.

        Returns:
            The stage's ranking; its `topic.text` is the query.

        Raises:
            InputError: The turn is empty.
        """
        current = turn if isinstance(turn, Turn) else Turn(turn)
        if not isinstance(current.text, str) or not current.text.strip():
            raise InputError("the turn is empty; ask something")
        turns = (*self._turns, replace(current, answer="", answer_id=""))
        topic = Topic(f"{self.id}_{len(turns)}", current.text, turns=turns, metadata=self._metadata)
        run = self.stage(topic, progress=progress)
        hits = run[topic.id]
        current = replace(current, automatic=hits.topic.text)
        answer = cited_answer(hits.topic)
        if answer and answer["sentences"] and not current.answer:
            current = replace(current, answer=answer["text"], answer_id=answer["sentences"][0]["citations"][0]["document"])
        elif len(hits) and not current.answer:
            current = replace(current, answer=self._answer_of(hits, run.documents), answer_id=hits[0].id)
        self._turns = (*self._turns, current)
        self._last = (topic, hits)
        return hits

    def answered(self, answer: str, answer_id: str = "") -> None:
        """Replace the answer to the last turn, such as by one generated from the hits; raises InputError without turns."""
        if not self._turns:
            raise InputError("nothing was asked yet, so there is nothing to answer")
        self._turns = (*self._turns[:-1], replace(self._turns[-1], answer=answer, answer_id=answer_id))

    def explain(self, hit: int | str = 1) -> Explanation:
        """Explain the score of a hit of the last turn, by its rank, from 1, or of any document by its id."""
        if self._last is None:
            raise InputError("nothing was asked yet, so there is nothing to explain")
        topic, hits = self._last
        if isinstance(hit, int):
            if not 1 <= hit <= len(hits):
                ranks = f"hits 1 to {len(hits)}" if len(hits) else "no hits"
                raise InputError(f"there is no hit {hit}; the last turn has {ranks}")
            hit = hits[hit - 1].id
        return self.stage.explain(topic, hit)

    def topics(self) -> Topics:
        """The turns as topics, each with the conversation so far, as `read_topics` reads TREC CAsT's files."""
        turns = self._turns
        return Topics(
            Topic(f"{self.id}_{n}", turn.text, turns=turns[:n], metadata=self._metadata) for n, turn in enumerate(turns, 1)
        )

    def save(self, path: str | Path) -> None:
        """Write all turns to a file for `read_topics`, in the JSON of TREC CAsT; .jsonl or .jsonl.gz has one topic per line."""
        if not self._turns:
            raise InputError("nothing was asked yet, so there is nothing to save")
        write_topics(self.topics(), path, format="jsonl" if plain_name(path).endswith(".jsonl") else "cast")

    def reset(self) -> None:
        """Forget all turns."""
        self._turns = ()
        self._last = None

    def _answer_of(self, hits: Ranking, documents: Documents | None) -> str:
        if self._answer is not None:
            return self._answer(hits)
        return "" if documents is None else documents.docs([hits[0].id])[0].text

    def __repr__(self) -> str:
        turns = f"{len(self._turns)} turn{'' if len(self._turns) == 1 else 's'}"
        return f"Conversation({self.id!r}, {turns}, {self.stage!r})"
