"""Two changes to the running server without which a drag cannot be followed."""

import contextlib
import gc
import os
import socket
from pathlib import Path

import streamlit as st

_DESCRIPTORS = Path("/proc/self/fd")


@st.cache_resource(show_spinner=False)
def prepare() -> int:
    """Once for each process: answers leave at once, and Python's garbage collections pass over all that is loaded.

    Streamlit's listening socket delays small packets (Nagle), 40 ms on each update; what it accepts inherits
    its options. Streamlit's own collection after each run, 0.1 s, is switched off in .streamlit/config.toml.
    Returns how many listening sockets were set; where descriptors cannot be listed, 0.
    """
    gc.collect()
    gc.freeze()
    return sum(_send_at_once(int(entry.name)) for entry in _entries())


def _entries() -> list[Path]:
    return list(_DESCRIPTORS.iterdir()) if _DESCRIPTORS.is_dir() else []


def _send_at_once(descriptor: int) -> bool:
    """Set TCP_NODELAY if the descriptor is a listening TCP socket."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as listener:
        internet = listener.family in (socket.AF_INET, socket.AF_INET6) and listener.type == socket.SOCK_STREAM
        if internet and listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return True
    return False
