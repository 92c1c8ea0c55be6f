# SPDX-License-Identifier: Apache-2.0
"""Talk to the Dialtone agent: ask for paths, open connections, take and park their sockets, follow what happens.

    from dialtone_client import Client

    client = Client()
    async for path in client.monitor_path("sip.example.com"):
        print(path.status, path.changes)

``Client`` has the calls. ``dialtone_client.interface`` has the types, methods and errors of the agent's interfaces, all
of which can be imported from here, too; ``dialtone-varlink(7)`` describes them.
"""

from . import interface
from .client import Client, Stream
from .errors import (
    AccessDenied, Busy, DialtoneError, Interrupted, NotRunning, PartialMessage, ProtocolViolation, Refused, TimedOut,
    Unreachable)
from .events import (
    AgentBack, AgentLost, Change, ConnectionEvents, Gap, MonitoredPath, MonitorEvent, PathUpdates, Snapshot)
from .interface import *  # noqa: F403
from .taken import SocketReader, SocketWriter, TakenSocket, Taking
from .version import __version__

__all__ = [
    "AccessDenied", "AgentBack", "AgentLost", "Busy", "Change", "Client", "ConnectionEvents", "DialtoneError", "Gap",
    "Interrupted", "MonitorEvent", "MonitoredPath", "NotRunning", "PartialMessage", "PathUpdates", "ProtocolViolation",
    "Refused", "Snapshot", "SocketReader", "SocketWriter", "Stream", "TakenSocket", "Taking", "TimedOut", "Unreachable",
    "__version__",
]
__all__ += interface.__all__
