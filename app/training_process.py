"""The process of one training, and the folder under which all of them write."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Protocol

from app.setup import ROOT


class Process(Protocol):
    """What the pool needs of a subprocess."""

    def poll(self) -> int | None: ...

    def kill(self) -> None: ...


def launched(folder: Path) -> Process:
    """A worker for a folder: one thread, whose waiting costs nothing; what it complains of goes to the folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    with (folder / "stderr").open("w") as complaints:
        return subprocess.Popen(
            [sys.executable, "-m", "transformer.train.worker", str(folder)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
        )


def own_folder() -> Path:
    """A folder for temporary files that is this user's alone."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    path = Path(tempfile.gettempdir()) / f"transformer-workbench-{user}"
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == user and (os.name == "nt" or not found.st_mode & 0o077):
        return path
    return Path(tempfile.mkdtemp(prefix="transformer-workbench-"))  # someone else made that one
