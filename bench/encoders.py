"""Time and memory of one text against its length, by architecture at one size: what is quadratic, and what linear.

    python bench/encoders.py --plot docs/assets/encoders-length.svg

Random weights, 4 layers, width 512, 8 heads, feed-forward width 2,048, as BERT-small; float32, one thread, its seconds of
processor.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import machine, table

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
SIZES = {"vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048}
FEATURES = 256
WINDOW, STRIDE = 256, 128  # tokens, special ones included
KINDS = {
    "BERT, attention written out": 4096,  # up to this length: its matrices take gigabytes
    "BERT, attention in blocks": 8192,
    "Longformer, windows of 512": 8192,
    "Reformer, chunks of 64": 8192,
    "Nyströmformer, 64 landmarks": 8192,
    "Performer, 256 features": 8192,
    "BERT over windows of 256, stride 128": 8192,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path, help="an SVG file to draw")
    parser.add_argument("--longest", type=int, default=8192, help="the longest text, in tokens (default: %(default)s)")
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.kind:
        print(json.dumps(measured(given.kind, given.longest)))
        return
    print(machine())
    results = {kind: child(kind, given.longest) for kind in KINDS}
    lengths = [length for length in LENGTHS if length <= given.longest]
    header = ["tokens", *(f"{length:,}" for length in lengths)]
    for part, unit in (("seconds", "Seconds of processor"), ("memory", "Peak memory above that of the model, MiB")):
        rows = [[kind, *(shown(found[part].get(str(length))) for length in lengths)] for kind, found in results.items()]
        table(unit, header, rows)
    if given.plot:
        draw(results, given.plot)


def child(kind: str, longest: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--kind", kind, "--longest", str(longest)]
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    if done.returncode:
        raise SystemExit(f"{kind}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(kind: str, longest: int) -> dict[str, dict[int, float]]:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    encode = model(kind)
    with torch.inference_mode():
        encode(torch.randint(5, 1000, (1, 256)))
        seconds, memory = {}, {}
        for length in LENGTHS:
            if length <= min(longest, KINDS[kind]):
                ids = torch.randint(5, 1000, (1, length))
                times, peaks = zip(*(once(encode, ids) for _ in range(3 if length <= 2048 else 1)), strict=True)
                seconds[length], memory[length] = min(times), max(peaks)
    return {"seconds": seconds, "memory": memory}


def once(encode: Callable[[Any], Any], ids: Any) -> tuple[float, float]:
    """Seconds of processor, and MiB of peak memory above what is held before."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before, start = held("VmRSS"), time.process_time()
    encode(ids)
    return time.process_time() - start, (held("VmHWM") - before) / 1024


def held(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def model(kind: str) -> Callable[[Any], Any]:
    """Encodes token ids, (1, length)."""
    import torch
    import transformers

    from fontes.neural.encoders.architectures import install_attention

    positions = max(LENGTHS) + 8
    attention = "favor+" if kind.startswith("Performer") else "model"
    configuration: Any
    if kind.startswith("Longformer"):
        configuration = transformers.LongformerConfig(
            **SIZES, max_position_embeddings=positions, attention_window=512, pad_token_id=1
        )
    elif kind.startswith("Nyström"):
        configuration = transformers.NystromformerConfig(**SIZES, max_position_embeddings=positions, num_landmarks=64)
    elif kind.startswith("Reformer"):
        configuration = transformers.ReformerConfig(
            vocab_size=1000,
            hidden_size=512,
            num_attention_heads=8,
            attention_head_size=64,
            feed_forward_size=2048,
            attn_layers=["local", "lsh"] * 2,
            axial_pos_shape=(64, max(LENGTHS) // 64),
            axial_pos_embds_dim=(128, 384),
            max_position_embeddings=max(LENGTHS),
        )
    else:
        configuration = transformers.BertConfig(**SIZES, max_position_embeddings=positions)
        configuration._attn_implementation = "eager" if "written out" in kind else "sdpa"
    module = transformers.AutoModel.from_config(configuration).eval()
    install_attention(module, attention, FEATURES)

    def whole(ids: Any) -> Any:
        return module(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state

    def windows(ids: Any) -> Any:
        count = 1 + math.ceil(max(0, ids.shape[1] - WINDOW) / STRIDE)
        for start in range(0, count, 8):  # batches of 2,048 tokens, as Fontes has them for each thread
            whole(torch.cat([ids[:, i * STRIDE : i * STRIDE + WINDOW] for i in range(start, min(start + 8, count))]))

    return windows if "over windows" in kind else whole


def shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def draw(results: dict[str, Any], file: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "fontes"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for axis, part, label in zip(axes, ("seconds", "memory"), ("seconds of processor", "peak memory, MiB"), strict=True):
        for number, (kind, found) in enumerate(results.items()):
            lengths = [int(length) for length in found[part]]
            axis.plot(lengths, list(found[part].values()), marker="osv^Dx+"[number], markersize=4, linewidth=1.4, label=kind)
        axis.set(xscale="log", yscale="log", xlabel="tokens of the text", ylabel=label)
        axis.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    figure.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    main()
