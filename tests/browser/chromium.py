"""A Chromium for the tests: the system's, else Playwright's own, else one installed now.

python -m tests.browser.chromium prints its path, installing one first where there is none.
"""

import os
import shutil
import subprocess
import sys

from playwright.sync_api import sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """The path of a Chromium that is here already, or None."""
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if os.path.exists(path) else None


def install() -> None:
    """Get one: Playwright's build, else, as root on a system with apt-get, the distribution's."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    playwright = [sys.executable, "-m", "playwright"]
    if subprocess.run([*playwright, "install", "chromium"], check=False).returncode == 0:
        if root:  # the libraries that it links against
            subprocess.run([*playwright, "install-deps", "chromium"], check=True)
    elif root and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "chromium"], check=True)


def main() -> int:
    if find() is None:
        print("No Chromium found: installing one for the browser tests ...", flush=True)
        install()
    path = find()
    if path is None:
        print("No Chromium could be installed. Install Chromium or Chrome so that it is on the PATH.", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
