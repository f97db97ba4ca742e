"""The project's own virtual environment, made and filled when needed. Standard library only."""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_VENV = ROOT / ".venv"
_OLDEST = (3, 11)


def environment(requirements: Path) -> str:
    """The path of a Python that has what a requirements file names; installs it on the first call.

    Installs again when the file, or requirements.txt, has changed. Ends the program with a message when
    Python is too old or the installation fails.
    """
    if sys.version_info < _OLDEST:
        sys.exit(f"Python {sys.version.split()[0]} is too old: Transformer Workbench needs 3.11 or newer.")
    python = _VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    contents = requirements.read_bytes() + (ROOT / "requirements.txt").read_bytes()
    stamp = _VENV / f"installed-{hashlib.sha256(contents).hexdigest()[:16]}"
    if not (python.exists() and stamp.exists()):
        print(f"Installing {requirements.relative_to(ROOT)} into {_VENV.name} (once, a minute or more) ...", flush=True)
        if not python.exists():
            venv.create(_VENV, with_pip=True)
        install = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
            str(requirements),
        ]
        if status := subprocess.run(install, check=False).returncode:
            sys.exit(f"pip could not install {requirements.relative_to(ROOT)} (status {status}); its message is above.")
        stamp.touch()
    return str(python)
