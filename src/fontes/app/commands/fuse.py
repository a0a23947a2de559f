"""`fontes fuse`: fuse runs, with given or learned weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...core import Qrels
from ...core.checks import real
from ...core.errors import ParameterError
from ...tuning import fit_weights
from ..options import Split, Tag, argument, option, options_of, reads_files
from ..output import print_json


@reads_files("id", of="topics")
@options_of({"--learn": fit_weights}, "measure", "folds", "seed", "step")
def fuse(
    settings: dict[str, Any],
    runs: Annotated[list[Path], argument("Two runs or more: TREC or MS MARCO.")],
    method: Annotated[
        str | None, option("rrf, combsum, combmnz, combmax, combmin, wsum, logodds, borda or isr.", "rrf; with --learn wsum")
    ] = None,
    normalize: Annotated[str, option("Scores: min-max, max, sum, z, rank or none.")] = "min-max",
    weights: Annotated[str | None, option("One a run, with commas: 0.3,0.7.", "1 for each run")] = None,
    rrf_k: Annotated[float, option("rrf: the constant k.")] = 60,
    missing: Annotated[
        str | None, option("Contribution of a run to missing documents: min, or a number.", "the method's rule")
    ] = None,
    k: Annotated[int | None, option("Documents a topic.", "all", "-k", min=1)] = None,
    output: Annotated[str, option("Run to write.", True, "-o", "--output")] = "-",
    tag: Tag = "fontes",
    learn: Annotated[str | None, option("Judgments to learn weights from by cross-validation.", False)] = None,
    split: Split = None,
    json: Annotated[bool, option("With --learn: print the weights as JSON.", True, "--json")] = False,
) -> None:
    """Fuse runs into one. With --learn the weights of each topic are learned on other topics."""
    from ...formats import read_run, write_run
    from ...fusion import fuse as fuse_runs
    from ...measures import DEFAULT
    from ...measures.names import need_groups

    if learn is not None and weights is not None:
        raise typer.BadParameter("give either --weights or --learn")
    if split is not None and learn is None:
        raise typer.BadParameter("--split goes with --learn")
    if json and (learn is None or output == "-"):
        raise typer.BadParameter("--json prints the weights of --learn; it needs --learn, and -o FILE for the run")
    if [*map(str, runs), learn].count("-") > 1:
        raise typer.BadParameter("standard input can be read only once")
    fusion: dict[str, Any] = {
        "method": method or ("rrf" if learn is None else "wsum"),
        "normalize": None if normalize == "none" else normalize,
        "k": rrf_k,
        "missing": missing if missing in (None, "min") else _parse_number(missing, "--missing"),
    }
    systems = [read_run(path) for path in runs]
    if learn is None:
        numbers = None if weights is None else [_parse_number(weight, "--weights") for weight in weights.split(",")]
        run = fuse_runs(*systems, weights=numbers, **fusion)
    else:
        judgments = Qrels.of(learn, split=split, groups=need_groups(settings.get("measure", DEFAULT)))
        learned = fit_weights(systems, judgments, **settings, **fusion)
        run = learned.run
        if json:
            print_json(learned.to_dict())
        else:
            typer.echo(str(learned), err=output == "-")
    write_run(run if k is None else run.top(k), output, tag=tag)


def _parse_number(text: str, option: str) -> float:
    try:
        return real(text.strip())
    except ValueError:
        raise ParameterError(f"{option}: '{text}' is not a number") from None
