"""Run all tests: ``python3 -m tests``. Sets up all that they need first; further arguments go to pytest."""

import os
import subprocess
import sys

from app.setup import ROOT, environment

if __name__ == "__main__":
    python = environment(ROOT / "tests" / "requirements.txt")
    os.chdir(ROOT)
    if subprocess.run([python, "-m", "tests.browser.chromium"], check=False).returncode:
        sys.exit(1)
    sys.exit(subprocess.run([python, "-m", "pytest", *sys.argv[1:]], check=False).returncode)
