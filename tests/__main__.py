"""Run all tests: ``python3 -m tests``. Sets up all that they need first; arguments, if any, go to pytest."""

import os
import subprocess
import sys
import tempfile

from app.setup import ROOT, environment


def run_all(pytest: list[str]) -> int:
    """The tests in a browser, and all others beside them, behind them in priority and with temporary files of their
    own: two servers' trainings do not meet. What the others print follows. Returns the exit status of the worse.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as printed:
        others = subprocess.Popen(
            [*pytest, "--ignore=tests/browser"],
            env=os.environ | {"TMPDIR": folder},
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
        if hasattr(os, "setpriority"):  # not everywhere
            os.setpriority(os.PRIO_PROCESS, others.pid, 10)
        status = subprocess.run([*pytest, "tests/browser"], check=False).returncode
        others.wait()
        printed.seek(0)
        sys.stdout.buffer.write(printed.read())
        sys.stdout.flush()
        return max(status, others.returncode, key=abs)


if __name__ == "__main__":
    python = environment(ROOT / "tests" / "requirements.txt")
    os.chdir(ROOT)
    if subprocess.run([python, "-m", "tests.browser.chromium"], check=False).returncode:
        sys.exit(1)
    pytest = [python, "-m", "pytest"]
    sys.exit(subprocess.run([*pytest, *sys.argv[1:]], check=False).returncode if sys.argv[1:] else run_all(pytest))
