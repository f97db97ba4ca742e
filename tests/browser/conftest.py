"""The running app and a real Chromium, both for the whole session; a fresh window for each test."""

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from app.setup import ROOT
from tests.browser import chromium

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
IDLE = """() => {
  const app = document.querySelector('[data-testid="stApp"]');
  return app && app.dataset.testScriptState === "notRunning" && app.dataset.testConnectionState === "CONNECTED"
    && !document.querySelector('[data-stale="true"], [data-testid="stSkeleton"], [data-testid="stAppSkeleton"]');
}"""


@pytest.fixture(scope="session")
def app_url() -> Iterator[str]:
    """The app as ``python3 -m app`` starts it, on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app/main.py",
        "--server.headless=true",
        f"--server.port={port}",
    ]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = []
    for line in server.stdout:  # it names its address once it listens
        said.append(line)
        if "URL:" in line:
            break
    else:
        pytest.fail("the app ended before it listened:\n" + "".join(said))
    yield f"http://127.0.0.1:{port}"
    server.terminate()
    server.communicate(timeout=30)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium.find(), args=list(FLAGS))
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser, app_url: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A window on the app. The test fails when the page logs an error or shows an exception.

    Parametrize indirectly with options of a browser context: viewport, color_scheme, ...
    """
    options = {"viewport": {"width": 1280, "height": 900}, "base_url": app_url, **getattr(request, "param", {})}
    context = browser.new_context(**options)
    window = context.new_page()
    errors: list[str] = []
    window.on("pageerror", lambda error: errors.append(str(error)))
    # A deep link asks for Streamlit's own endpoints under the wrong folder before it finds them.
    window.on(
        "console",
        lambda message: (
            errors.append(f"{message.text} {message.location.get('url', '')}")
            if message.type == "error" and "/_stcore/" not in message.location.get("url", "")
            else None
        ),
    )
    yield window
    assert not errors
    assert not window.get_by_test_id("stException").count()
    context.close()


def settle(page: Page) -> None:
    """Wait until Streamlit has answered and the player has drawn it."""
    page.wait_for_function(IDLE)
    page.wait_for_selector("canvas[data-v]")


def open_page(page: Page, path: str = "/") -> None:
    page.goto(path)
    settle(page)
