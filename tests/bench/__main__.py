"""Print the benchmark's table: ``python3 -m tests.bench``. Sets up what it needs first."""

import os
import sys

from app.setup import ROOT, environment

if __name__ == "__main__":
    python = environment(ROOT / "requirements.txt")
    os.chdir(ROOT)
    os.execv(python, [python, "-W", "ignore", "-m", "tests.bench.speed", *sys.argv[1:]])
