"""Start the app: ``python3 -m app``. Further arguments go to ``streamlit run``."""

import os
import sys

from .setup import ROOT, environment

if __name__ == "__main__":
    python = environment(ROOT / "requirements.txt")
    os.chdir(ROOT)  # where .streamlit/config.toml is read from
    os.execv(python, [python, "-m", "streamlit", "run", "app/main.py", *sys.argv[1:]])
