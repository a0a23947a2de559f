"""Tables and plots of what lexical.py has measured.

python bench/search_report.py RESULTS.json [FOLDER]    (plots into FOLDER, where matplotlib is)
"""

from __future__ import annotations

import json
import statistics
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness import table

ENGINES = {"fontes": "Fontes", "pisa": "PISA", "bm25s": "bm25s", "tantivy": "tantivy", "pyserini": "Pyserini"}
DEPTHS = (10, 100, 1000)


def report(results: dict[str, Any]) -> None:
    print(results["machine"], "runs:", results["runs"])
    rows = []
    for one in results["collections"].values():
        for name in one["checked"]:
            c = one["checked"][name]
            rows.append([f"{one['documents']:,}", ENGINES[name], f"{c['documents']:.4%}", f"{c['scores']:.1e}"])
    table("Agreement", ["documents", "", "top 1,000 in common or tied", "largest relative difference of a score"], rows)
    rows = []
    for one in results["collections"].values():
        for name, built in one["builds"].items():
            held = one["memory"][name]
            cells = [f"{built['seconds']:.1f}", f"{built['peak']:,.0f}", f"{built['size']:,.0f}"]
            cells += [f"{held['RssAnon']:,.0f}", f"{held['RssFile']:,.0f}"]
            rows.append([f"{one['documents']:,}", ENGINES[name], *cells])
    header = ["documents", "", "build, s", "peak, MiB", "on disk, MB", "searching: own memory, MiB", "pages of files, MiB"]
    table("Builds on one core, and memory", header, rows)
    rows = []
    for one in results["collections"].values():
        for part in ("titles", "sentences"):
            means = {name: 1000 * statistics.mean(seconds) for name, seconds in one["times"].get(f"{part} once", {}).items()}
            for name, mean in means.items():
                rows.append([f"{one['documents']:,}", part, ENGINES[name], f"{mean:.3f}", f"{means['fontes'] / mean:.2f}"])
    table("Asked once, k = 10", ["documents", "", "", "ms a query", "Fontes / it"], rows)
    for collection in results["collections"].values():
        for part in ("titles", "sentences"):
            rows = []
            for k in DEPTHS:
                some = {way: collection["times"].get(f"{part} {k} {way}") for way in ("one 1", "batch 1", "batch 2")}
                ours = statistics.mean(some["one 1"]["fontes"])
                for name, seconds in some["one 1"].items():
                    values = sorted(1000 * s for s in seconds)
                    at = [values[min(len(values) - 1, int(share * len(values)))] for share in (0.5, 0.95, 0.99)]
                    cells = [statistics.mean(values), *at]
                    row = [str(k), ENGINES[name], *(f"{c:.2f}" for c in cells), f"{ours * 1000 / cells[0]:.2f}"]
                    for way in ("batch 1", "batch 2"):
                        if some[way]:
                            t = some[way]
                            row += [f"{1000 * t[name]:.2f}", f"{t['fontes'] / t[name]:.2f}"]
                    rows.append(row)
            header = ["k", "", "one: mean", "p50", "p95", "p99", "Fontes / it", "batch, 1 thread", "Fontes / it"]
            header += ["batch, 2 threads", "Fontes / it"]
            width = len(rows[0])
            table(f"{collection['documents']:,} documents, {part}: ms a query", header[:width], rows)


STYLES = {  # colours of Okabe and Ito
    "fontes": ("#0072B2", "o", "-"),
    "pisa": ("#D55E00", "s", "--"),
    "bm25s": ("#009E73", "^", ":"),
    "tantivy": ("#CC79A7", "v", "-."),
    "pyserini": ("#000000", "x", (0, (1, 3))),
}


def plot(results: dict[str, Any], folder: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot, ticker

    mpl.rcParams.update({"svg.hashsalt": "fontes", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3})
    collections = list(results["collections"].items())
    last = collections[-1][0].partition(":")[0]
    slices = sorted((one["documents"], one) for name, one in collections if name.partition(":")[0] == last)
    largest = slices[-1][1]

    def draw(file: str, label: str, panels: dict[str, Any], ticks: Any = None, log: bool = True) -> None:
        figure, axes = pyplot.subplots(1, len(panels), figsize=(8, 3.2), sharex=True, squeeze=False, layout="constrained")
        for axis, (title, lines) in zip(axes[0], panels.items(), strict=True):
            for name, points in lines.items():
                x, y = zip(*((a, b) for a, b in zip(*points, strict=True) if b is not None), strict=True)
                color, marker, line = STYLES[name]
                axis.plot(x, y, color=color, marker=marker, linestyle=line, label=ENGINES[name], markersize=5)
            axis.set_title(title)
            axis.set_xlabel(label)
            axis.set_ylabel("ms a query")
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_locator(ticker.NullLocator())
            if log:
                axis.set_xscale("log")
            if ticks:
                axis.set_xticks(ticks, [str(t) for t in ticks])
                axis.xaxis.set_minor_locator(ticker.NullLocator())
        lines, names = axes[0][0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside upper center", ncols=len(names), frameon=False)
        figure.savefig(folder / file, metadata={"Date": None})
        pyplot.close(figure)

    def mean(one: Any, part: str, k: int, name: str) -> float | None:
        found = one["times"][f"{part} {k} one 1"]
        return 1000 * statistics.mean(found[name]) if name in found else None

    parts = {"titles": "titles", "sentences": "sentences of about 30 words"}
    names = [name for name in ENGINES if any(name in one["times"]["titles 10 one 1"] for _, one in slices)]
    by_size = {part: {name: [mean(one, part, 10, name) for _, one in slices] for name in names} for part in parts}
    sizes = [documents for documents, _ in slices]
    panels = {f"{parts[part]}, k = 10": {name: (sizes, y) for name, y in lines.items()} for part, lines in by_size.items()}
    draw("search-size.svg", "documents", panels)
    here = [name for name in ENGINES if name in largest["times"]["titles 10 one 1"]]
    by_depth = {part: {name: [mean(largest, part, k, name) for k in DEPTHS] for name in here} for part in parts}
    panels = {parts[part]: {name: (DEPTHS, y) for name, y in lines.items()} for part, lines in by_depth.items()}
    draw("search-k.svg", "k", panels, DEPTHS)
    edges = pairwise((1, 2, 3, 4, 6, 9, 12, 15, 18, 40))
    groups = [[i for i, n in enumerate(largest["terms"]) if low <= n < high] for low, high in edges]
    groups = [group for group in groups if len(group) >= 5]
    terms = [statistics.mean(largest["terms"][i] for i in group) for group in groups]
    panels = {}
    for k in (10, 1000):
        seconds = {name: [s for part in parts for s in largest["times"][f"{part} {k} one 1"][name]] for name in here}
        panels[f"k = {k}"] = {
            name: (terms, [1000 * statistics.mean(some[i] for i in group) for group in groups])
            for name, some in seconds.items()
        }
    draw("search-terms.svg", "distinct terms of the topic", panels, log=False)


def main() -> None:
    results = json.loads(Path(sys.argv[1]).read_text())
    report(results)
    if len(sys.argv) > 2:
        plot(results, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
