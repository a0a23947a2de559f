"""Model card and learning curves of a trained model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import MissingExtraError
from ...plots.plot import Plot, draw_plot, line_style
from .settings import LOSS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .running import Training

CARD = "README.md"
CURVES = "curves.svg"
LICENCE = re.compile(r"^license:\s*(\S.*?)\s*$", re.MULTILINE)
USES = {
    "cross-encoder": 'run % 100 >> cross_encoder("{model}")',
    "bi-encoder": 'index.encode(sentence_encoder("{model}"))',
    "ColBERT model": 'encode_late(index, colbert("{model}"))',
    "SPLADE model": 'index.encode(splade_encoder("{model}"))',
    "T5 reranker": 'run % 100 >> mono_t5("{model}")',
    "T5 rewriter": 'canard_t5("{model}") >> bm25()',
    "term classifier": 'quretec("{model}") >> bm25()',
}
TASKS = {
    "cross-encoder": "text-ranking",
    "bi-encoder": "sentence-similarity",
    "ColBERT model": "sentence-similarity",
    "SPLADE model": "feature-extraction",
    "T5 reranker": "text-ranking",
    "T5 rewriter": "text2text-generation",
    "term classifier": "token-classification",
}


def licence_of(folder: Path) -> str:
    """Return the licence in a model's README.md or config.json, or "not stated"."""
    readme, config = folder / CARD, folder / "config.json"
    if readme.is_file():
        _, _, front_matter = readme.read_text(encoding="utf-8", errors="replace").partition("---\n")
        if match := LICENCE.search(front_matter.partition("\n---")[0]):
            return match[1]
    if config.is_file():
        named = json.loads(config.read_text(encoding="utf-8")).get("license")
        if isinstance(named, str):
            return named
    return "not stated"


def describe(training: Training, folder: Path, target: Path) -> None:
    """Write the card and, if matplotlib is installed, the curves to a folder, which will move to `target`."""
    try:
        learning_curves(training.losses, training.evaluations, training.best).save(folder / CURVES)
        curves = f"![The learning curves]({CURVES})\n"
    except MissingExtraError:
        curves = ""
    (folder / CARD).write_text(_card(training, target, curves), encoding="utf-8")


def _card(training: Training, target: Path, curves: str) -> str:
    is_plain = training.kind in ("T5 reranker", "T5 rewriter", "term classifier")
    library = "transformers" if is_plain else "sentence-transformers"
    head = {"library_name": library, "pipeline_tag": TASKS.get(training.kind, "")}
    if not Path(training.base).exists():
        head["base_model"] = training.base
    if training.licence != "not stated":
        head["license"] = training.licence
    front = "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items())
    use = USES.get(training.kind, "").format(model=target.name)
    figures = [(f"validation {name}", f"{value:.4f}") for name, value in training.figures.items()]
    facts = [(name.replace("_", " "), value) for name, value in training.facts.items()]
    parts = [
        f"---\n{front}\n---\n",
        f"# {target.name}\n",
        f"A {training.kind}, trained from {training.base}. In Fontes: `{use}`.\n",
        "## Figures\n",
        _table([*figures, ("step of the best state", f"{training.best:,} of {training.steps:,}")]),
        curves,
        "## Data\n",
        _table([("rows learned from", training.rows), ("rows validated on", training.validated), *facts]),
        _table((f"SHA-256 of the {name}", f"`{value}`") for name, value in training.hashes.items()),
        "## Training\n",
        _table((name, "as the base says" if value is None else value) for name, value in training.settings.items()),
        _table(
            [
                ("precision", training.precision),
                ("device", training.device),
                ("minutes", f"{training.seconds / 60:.1f}"),
                ("fingerprint of the start", f"`{training.base_fingerprint}`"),
                ("fingerprint of the model", f"`{training.fingerprint}`"),
                ("licence of the start", training.licence),
                ("versions", ", ".join(f"{name} {number}" for name, number in training.versions.items())),
            ]
        ),
    ]
    return "\n".join(filter(None, parts))


def _table(rows: Iterable[tuple[str, object]]) -> str:
    lines = [f"| {name} | {str(value).replace('|', chr(92) + '|')} |" for name, value in rows]
    return "\n".join(["| | |", "|---|---|", *lines]) + "\n"


POINTS = 100  # maximum number of points of the training loss


def learning_curves(losses: Sequence[float], evaluations: Sequence[Mapping[str, float]], best: int) -> Plot:
    """Plot the training loss and the validation figures, with the chosen step marked.

    Args:
        losses: Loss of each step, drawn as means of up to a hundred parts.
        evaluations: Evaluations: "step", "loss", and a measure by its name.
        best: Chosen step.
    """
    names = list(dict.fromkeys(name for row in evaluations for name in row if name not in ("step", LOSS)))
    parts = np.array_split(np.arange(1, len(losses) + 1), min(POINTS, len(losses)))
    steps = [float(part[-1]) for part in parts]
    means = [float(np.mean([losses[i - 1] for i in part])) for part in parts]

    def draw(figure: Figure) -> str:
        all_axes = np.atleast_1d(figure.subplots(1, 1 + len(names), sharex=True))
        all_axes[0].plot(steps, means, label="training", **line_style(0))
        for number, (axes, name) in enumerate(zip(all_axes, [LOSS, *names], strict=True), 1):
            rows = [row for row in evaluations if name in row]
            if rows:
                values = [row[name] for row in rows]
                axes.plot(
                    [row["step"] for row in rows], values, marker="o", markersize=3, label="validation", **line_style(number)
                )
                axes.axvline(best, color="#7F7F7F", linewidth=0.8)
            axes.set(xlabel="step", ylabel=name)
            axes.xaxis.get_major_locator().set_params(integer=True)  # steps are whole numbers
            axes.legend(frameon=False)
        measured = " and ".join([LOSS, *names])
        return f"the {measured} while training; the line marks step {best:,}, which was chosen"

    return draw_plot(draw)
