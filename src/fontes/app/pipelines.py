"""Pipelines of commands: expressions, and options for simple ones."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import Topic, Topics, Turn
from ..core.errors import ParameterError
from ..core.hints import nearest
from ..core.part import fix_precision, stages, walk
from ..core.registry import provided
from ..core.searches import filtered
from ..core.stage import Ranker, steps
from ..core.work import cluster, work
from ..index.factory import stage_method
from .flags import LEXICAL, MODELS, ray_of

if TYPE_CHECKING:
    from ..core import Qrels, Run, Stage, Topics
    from ..index import Index
    from ..lexical.language import ParsedQuery

DENSE = ("dense", "hybrid")
SHOWN_REMARKS = 5  # maximum remarks on topics in the query language
READ_AHEAD = 100  # number of topics that are searched for remarks


def read_judged(
    topics: str, qrels: str, split: str | None, settings: Mapping[str, Any], plot: Path | None
) -> tuple[Topics | None, Qrels | None]:
    """Read topics and judgments for the measure in `settings`, after a check of the plot's format.

    Raises:
        BadParameter: Both come from standard input.
        FontesError: They cannot be read, or the plot has no format.
    """
    from ..datasets import judged_topics
    from ..measures import DEFAULT
    from ..measures.names import need_groups
    from .options import check_one_stdin

    check_one_stdin(topics=topics, qrels=qrels)
    if plot is not None:
        from ..plots.plot import format_of

        format_of(plot)
    return judged_topics(topics, qrels, split, need_groups(settings.get("measure", DEFAULT)))


def retriever(
    index: Index,
    pipeline: str | None = None,
    model: str | None = None,
    encoder: str | None = None,
    where: str | None = None,
    **options: Any,
) -> Stage[Topics, Run]:
    """Build the stage from topics to a run that the options of a command specify.

    Args:
        index: The index to search.
        pipeline: An expression; the other options must be None then.
        model: bm25, tfidf, ql, dense or hybrid; bm25 by default.
        encoder: Model of the encoder, for dense and hybrid.
        where: Filter for every retriever, in addition to its own.
        **options: Parameters of the model.

    Raises:
        ParameterError: The expression is invalid, options conflict, or the model is unknown.
        PipelineError: The expression is not a stage from topics to a run.
    """
    if pipeline is not None:
        from ..core import Run, Topics, expression

        conflicting = [
            f"--{name}" for name, value in (("model", model), ("encoder", encoder), *options.items()) if value is not None
        ]
        if conflicting:
            raise ParameterError(f"--pipeline says all; leave {' and '.join(conflicting)} out, or --pipeline")
        stage = expression.pipeline(pipeline, index)
        stage.require(Topics, Run, "--pipeline")
        for part in walk(stage):
            part.check_needs()  # before a long first step
        return filtered(stage, where)
    model = (model or "bm25").lower()
    if model not in MODELS:
        raise ParameterError(f"there is no model '{model}'; {nearest(model, MODELS)}")
    if encoder is not None and model not in DENSE:
        raise ParameterError(f"--encoder is of dense and hybrid, not of {model}")
    if model in LEXICAL:
        retrievers: Any = stages
        return filtered(stage_method(retrievers[model])(index, **options), where)
    if options:
        raise ParameterError(f"--{next(iter(options))} is no option of {model}")
    return filtered(_dense(index, model, encoder), where)


def in_query_language(stage: Stage[Topics, Run], index: Index, texts: Sequence[str]) -> Stage[Topics, Run]:
    """Return a stage that reads topics in the query language, and report on standard error how they were understood.

    Args:
        stage: A stage from topics to a run.
        index: The index that is searched.
        texts: The texts of the topics. For several topics, only the first remarks are shown.
    """
    from ..lexical.language import QueryLanguage

    language = QueryLanguage(index)
    if len(texts) == 1:
        parsed = language.parse(texts[0])
        lines = [f"understood as {parsed.canonical or 'nothing'}", *_remarks(parsed)]
    else:
        remarks = (
            f"topic {number} of {len(texts):,}: {remark}"
            for number, text in enumerate(texts[:READ_AHEAD], 1)
            for remark in _remarks(language.parse(text))
        )
        lines = list(islice(remarks, SHOWN_REMARKS))
    for line in lines:
        print(f"fontes: {line}", file=sys.stderr)
    return language >> stage


def _remarks(parsed: ParsedQuery) -> list[str]:
    """Return the remarks on a query except those of which the stage warns once for all queries."""
    from ..lexical.language import NO_POSITIONS

    return [remark for remark in parsed.remarks if not remark.startswith(NO_POSITIONS)]


def hint_query_language(stage: Stage[Topics, Run], index: Index, texts: Sequence[str]) -> None:
    """Report on standard error operators of the query language, if a tenth of the texts has some and no stage reads them."""
    from ..lexical.hints import has_operators, reads_language

    if reads_language(stage):
        return
    count = sum(has_operators(text, index.state) for text in texts)
    if count and count * 10 >= len(texts):
        subject = "the query has" if len(texts) == 1 else f"{count:,} of {len(texts):,} topics have"
        print(
            f"fontes: {subject} operators of the query language, read as plain text here; --query reads them", file=sys.stderr
        )


def rewriter(text: str, index: Index | None, doing: str) -> Stage[Topics, Topics]:
    """Build a stage from topics to topics; `doing` names it in messages. Raises as `retriever` does."""
    from ..core import Topics, expression

    stage = expression.pipeline(text, index)
    stage.require(Topics, Topics, doing)
    return stage


def rewriter_for(stage: Stage[Topics, Run]) -> str | None:
    """Default rewriter of turns for a stage, as text; None if the stage begins with one, or is calibrated without one."""
    from ..lexical import Lexical

    if steps(stage)[0].gives is Topics or any(getattr(part, "reads_system", False) for part in walk(stage)):
        return None
    return "weighted_turns()" if any(isinstance(part, Lexical) for part in walk(stage)) else "last_turns(1)"


def ends_lists(stage: Stage[Topics, Run]) -> bool:
    """Whether the last stage ends lists by a promise, which a further limit of documents would break."""
    return getattr(steps(stage)[-1], "ends_by_promise", False)


def warm(stage: Stage[Topics, Run]) -> None:
    """Load models and compile kernels, so that missing parts are reported before the first question."""
    turns = Turn("water"), Turn("why")
    stage([Topic("1", "why", turns=turns), Topic("2", "water", turns=turns[:1])])


def reranker(text: str, index: Index, doing: str = "fontes rerank") -> Stage[Run, Run]:
    """Build a stage from run to run; `doing` names it in messages. Raises as `retriever` does."""
    from ..core import Run, expression

    stage = expression.pipeline(text, index)
    stage.require(Run, Run, doing)
    return stage


def applied(stage: Ranker, value: object, ray: str | None) -> Run:
    """Apply a stage, on a cluster if the option `Ray` is given, in the default precision of models."""
    with work(ray=ray_of(ray)):
        actors = cluster()
        if actors is None:
            return stage(value)
        run: Run = actors.apply(fix_precision(stage), value)
        return run


def open_index(
    index: str | Path, analyzer: str | None = None, verify: bool = False, partial: bool = False, ray: bool | str | None = None
) -> Index:
    """Open the index at a path.

    Args:
        index: The path.
        analyzer: Analyzer as typed; a function "module:function" is imported.
        verify: Read every file first.
        partial: Leave out shards that cannot be read, with a message on standard error.
        ray: Where actors search the shards; see `Index.open`.

    Raises:
        InputError: There is no such index, but one with a similar name.
        IndexFormatError: There is no index, or it cannot be read.
        ParameterError: The index was built with another analyzer.
    """
    from ..index import Index
    from ..text.analyzer import typed_analyzer
    from .usage import refuse_misspelt

    refuse_misspelt(index)
    function = None if analyzer is None else typed_analyzer(analyzer)
    opened = Index.open(index, analyzer=function, verify=verify, partial=partial)
    if ray and "shards" in opened.state.manifest:
        opened = Index.open(index, analyzer=function, partial=partial, ray=ray)
    say_missing(index, opened.state.missing)
    return opened


def say_missing(index: str | Path, missing: Sequence[Mapping[str, Any]]) -> None:
    """Report on standard error the shards that an answer lacks."""
    from .output import counted

    for shard in missing:
        description = f"shard {shard['shard']} with {counted(shard['documents'], 'document')} is missing"
        print(f"fontes: {index}: {description}: {shard['problem']}", file=sys.stderr)


def _dense(index: Index, model: str, encoder: str | None) -> Stage[Topics, Run]:
    """Dense retrieval, or for "hybrid" its sum with BM25 in equal parts."""
    from ..fusion import fuse

    retrievers: Any = stages
    dense: Stage[Topics, Run] = retrievers["dense"](index, provided("encoder_or_name")(index, encoder))
    return dense if model == "dense" else fuse(retrievers["bm25"](index), dense, method="wsum", weights=(0.5, 0.5))
