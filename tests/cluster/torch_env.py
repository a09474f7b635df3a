"""An environment with PyTorch that jobs of all users may read: made once, then reused.

It is what pip's own configuration offers for the version, a CPU build included: about 0.9 GB.
"""

from __future__ import annotations

import os
import shutil
import subprocess

from tests.cluster.layout import CannotRun, Layout

TORCH = "torch==2.13.0"
#: A user of the cluster can read the system's interpreter, which holds for no other.
PYTHON = "/usr/bin/python3"
_DEADLINE_S = 900
_TRY = (
    "import torch, torch.distributed as d; assert d.is_gloo_available(); print(torch.__version__)"
)


def make_torch(layout: Layout) -> bool:
    """Make the environment where it lacks or is for something else; whether it was made."""
    folder, stamp = layout.torch, layout.torch / ".made-for"
    wanted = f"{TORCH} {_said(PYTHON, '--version')}\n"
    if stamp.is_file() and stamp.read_text() == wanted:
        return False
    # Half of one is of no use to pip: the names of its own files lead to the old interpreter.
    if folder.exists():
        shutil.rmtree(folder)
    _said(PYTHON, "-m", "venv", str(folder))
    pip = (str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check")
    _said(*pip, "install", "--quiet", "--no-cache-dir", TORCH)
    _said(str(folder / "bin/python"), "-W", "ignore", "-c", _TRY)
    stamp.write_text(wanted)
    return True


def _said(*argv: str) -> str:
    """What a command printed; with the umask of files that everybody may read."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        done = subprocess.run(
            argv,
            env=env,
            cwd="/",
            umask=0o022,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRun(f"no environment with {TORCH}: {error}") from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or [str(done.returncode)]
        raise CannotRun(f"no environment with {TORCH}: {' '.join(argv[1:5])}: {lines[-1]}")
    return done.stdout.strip()
