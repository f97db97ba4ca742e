"""Small answers leave at once."""

import socket
from pathlib import Path

from app.runtime import _send_at_once


def test_a_listening_socket_and_what_it_accepts_send_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert _send_at_once(listener.fileno())
        with socket.create_connection(listener.getsockname()) as client:
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert not _send_at_once(client.fileno())  # connected, not listening


def test_a_file_is_left_alone(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        assert not _send_at_once(file.fileno())
