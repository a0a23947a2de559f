"""Each socket with its own package, in an environment that is made once for a requirement and kept in the user's cache."""

import hashlib
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import platformdirs
import pytest
from support.each import each

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENVIRONMENTS = platformdirs.user_cache_path("fontes-tests") / "environments"
COMPILING = ("numba", "numpy", "scipy")  # the versions of these tests, whose compiled code then serves all
SOCKETS = ("langchain", "llamaindex", "haystack", "pyterrier", "dspy", "ranx", "ir-measures", "tirex")
INSTALL = 900  # seconds to install a package before its test is skipped


@pytest.mark.slow
@each("extra", SOCKETS)
def test_a_socket_works_with_its_package(extra: str) -> None:
    python = environment(extra)
    file = {"tirex": ROOT / "tests" / "experiments" / "test_tirex.py"}.get(extra, HERE / f"test_{extra.replace('-', '_')}.py")
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "is not installed" not in done.stdout
    assert "[100%]" in done.stdout


def environment(extra: str) -> Path:
    """Return the Python of an environment with an extra of Fontes, made if needed; skips the test where that fails."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = [f"{name}=={version(name)}" for name in COMPILING]
    wanted = [*pinned, "pytest>=8", "hypothesis>=6.100", "pandas>=2.2", "-e", f"{ROOT}[{extra}]"]
    key = repr((wanted, sys.version, project["dependencies"], project["optional-dependencies"][extra]))
    folder = ENVIRONMENTS / f"{extra}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        for old in ENVIRONMENTS.glob(f"{extra}-*"):
            shutil.rmtree(old, ignore_errors=True)
        uv = shutil.which("uv")  # links the files of packages in place of copying them
        make = [uv, "venv", "-q", "--python", sys.executable] if uv else [sys.executable, "-m", "venv"]
        install = [uv, "pip", "install", "-q", "--python", python] if uv else [python, "-m", "pip", "install", "-q"]
        for command in ([*make, folder], [*install, *wanted]):
            try:
                subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=INSTALL)
            except (OSError, subprocess.SubprocessError) as error:
                shutil.rmtree(folder, ignore_errors=True)
                said = getattr(error, "stderr", None) or str(error)
                pytest.skip(f"{', '.join(project['optional-dependencies'][extra])} cannot be installed: {str(said)[-300:]}")
        (folder / "complete").touch()
    return python
