# SPDX-License-Identifier: Apache-2.0
"""The real agent and real servers, for the tests that need them. ``DIALTONED`` is the path of ``dialtoned``."""

import os
import pathlib
import signal
import socket
import subprocess
import threading
import typing

import pytest

from dialtone_client import Client
from stand_in import PATIENCE

#: For tests that need an agent.
needs_agent = pytest.mark.skipif("DIALTONED" not in os.environ, reason="DIALTONED does not say where dialtoned is")


class Program:
    """A program that runs for a test."""

    def __init__(self, command: typing.Sequence[str], ready: str) -> None:
        """Starts it, and returns when it has written ``ready`` to standard error."""
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace")
        #: The lines that it has written.
        self.lines: typing.List[str] = []
        self._changed = threading.Condition()
        self._has_ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.wait_for(ready)
        except AssertionError:
            self.end(signal.SIGKILL)
            raise

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._changed:
                self.lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def wait_for(self, words: str) -> None:
        """Returns when it has written a line with these words."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or self._has(words), PATIENCE)
            assert self._has(words), f"it did not write {words!r}:\n{''.join(self.lines)}"

    def _has(self, words: str) -> bool:
        return any(words in line for line in self.lines)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends it, and returns when it has ended."""
        self._process.send_signal(how)
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self._process.stderr is not None
        self._process.stderr.close()


class Agent:
    """An agent in a folder, which may be ended and started again."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        (folder / "dialtone.toml").touch(mode=0o600)
        self.client = Client(folder / "agent.sock")
        self._program: typing.Optional[Program] = None
        self.start()

    def start(self) -> None:
        """Starts it, and returns when it listens."""
        command = [os.environ["DIALTONED"], "--socket", str(self._folder / "agent.sock")]
        command += ["--state", str(self._folder / "state"), "--config", str(self._folder / "dialtone.toml")]
        self._program = Program(command, "listening")

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends it, if it runs."""
        if self._program is not None:
            self._program.end(how)
            self._program = None


class Server:
    """A server that a test plays: it listens on a loopback port."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.remote = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"

    def accept(self) -> socket.socket:
        """The server's end of the next socket."""
        end, _ = self._listener.accept()
        end.settimeout(PATIENCE)
        return end

    def close(self) -> None:
        """Listens no longer."""
        self._listener.close()
