# SPDX-License-Identifier: Apache-2.0
"""Why a call failed.

All errors are a ``DialtoneError``. An answer of the agent is a ``Refused``: each error of the interfaces has its class,
such as ``NoSuchConnection``, with its parameters as attributes.
"""

import json
import typing

from . import _values as _v


class DialtoneError(Exception):
    """A call failed. As text: what was tried, what came back, and what to do."""

    #: Whether waiting cures it: for an agent that is started or restarted, that has room again, or that serves this user
    #: again.
    is_passing: bool = False

    @property
    def code(self) -> str:
        """The error's name: the class's; for ``Refused`` the last part of the interface's name for it."""
        return type(self).__name__


class NotRunning(DialtoneError):
    """No agent listens on any of the paths."""

    is_passing = True

    def __init__(self, paths: typing.Sequence[str]) -> None:
        super().__init__(paths)
        self.paths = tuple(paths)

    def __str__(self) -> str:
        return (
            f"The agent is not running: nothing listens on {' or '.join(self.paths)}. Start it with "
            '"systemctl start dialtoned"; DIALTONE_SOCKET names another socket.')


class AccessDenied(DialtoneError):
    """This user may not connect to the agent's socket."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return (
            f"The agent's socket {self.path} is not open to this user. It is open to the group dialtone: "
            '"usermod -aG dialtone USER" lets a user in, from the next login on.')


class Busy(DialtoneError):
    """As many clients wait for the agent as the kernel allows, and it accepted none for a while."""

    is_passing = True

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f'The agent at {self.path} does not accept clients. See why with "systemctl status dialtoned".'


class Unreachable(DialtoneError):
    """The kernel refused to connect for another reason."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"The agent cannot be reached at {self.path}: {self.reason}."


class Interrupted(DialtoneError):
    """The connection to the agent ended before the answer. Whether the agent has carried out the call is not known."""

    is_passing = True

    def __init__(self, method: str, reason: str) -> None:
        super().__init__(method, reason)
        #: The method that was called, with its interface.
        self.method = method
        self.reason = reason

    def __str__(self) -> str:
        return f'The agent did not answer {self.method}: {self.reason}. See why with "journalctl -u dialtoned".'


class ProtocolViolation(Interrupted):
    """The answer is not as the interface declares it. Waiting does not help: the agent or this library is wrong."""

    is_passing = False


class TimedOut(DialtoneError):
    """The agent did not answer in time. Whether it carries out the call is not known."""

    is_passing = True

    def __init__(self, method: str, seconds: float) -> None:
        super().__init__(method, seconds)
        #: The method that was called, with its interface.
        self.method = method
        self.seconds = seconds

    def __str__(self) -> str:
        return (
            f"The agent did not answer {self.method} within {self.seconds:g} s. "
            'See what it is doing with "systemctl status dialtoned".')


class PartialMessage(DialtoneError):
    """The socket was not parked, since the reader holds the beginning of a message: a socket is parked between two
    messages. The socket was closed, and the connection stays taken by this process."""

    def __init__(self, name: str, count: int) -> None:
        super().__init__(name, count)
        #: The connection's name.
        self.name = name
        #: How many bytes the reader holds.
        self.count = count

    def __str__(self) -> str:
        return (
            f'The socket of "{self.name}" was not parked: the reader holds {self.count} bytes of an incomplete '
            "message. Read the whole message first, or redial the connection.")


class Refused(DialtoneError):
    """The agent answered with an error. An error that this library does not know is of this class itself."""

    _wire: typing.ClassVar[_v.Fields] = ()
    _name: str = ""
    _call: str = ""
    _sentence: str = ""
    _parameters: typing.Mapping[str, object] = {}

    @property
    def code(self) -> str:
        """The error's name without its interface, such as ``NoSuchConnection``."""
        return self._name.rpartition(".")[2] or type(self).__name__

    @property
    def error_name(self) -> str:
        """The error's name with its interface, such as ``org.dialtone.Connections.NoSuchConnection``."""
        return self._name

    @property
    def call(self) -> str:
        """The method that was called, with its interface."""
        return self._call

    @property
    def parameters(self) -> typing.Mapping[str, object]:
        """All parameters of the answer, also those that this library does not know."""
        return self._parameters

    def __str__(self) -> str:
        said = ", ".join(f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in self._parameters.items())
        text = f"The agent refused {self._call.rpartition('.')[2]}: {self.code}"
        return text + (f". {self._sentence}" if self._sentence else "") + (f": {said}." if said else ".")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._parameters.items())})"


# What the agent takes back by itself.
_FOR_A_WHILE = ("OutOfResources", "Suspended")


def refusal(
    name: str, parameters: object, call: str, known: typing.Mapping[str, _v.KnownError],
) -> Refused:
    """The error of a reply. If its parameters are not as declared, it is a plain ``Refused``."""
    kind, sentence = known.get(name, (Refused, ""))
    found = parameters if isinstance(parameters, dict) else {}
    error: Refused
    try:
        values = _v.read_fields(kind._wire, found, name)
        # By position, so that the exception can be copied and pickled.
        error = kind(*(values.get(field.name) for field in kind._wire))
    except _v.Malformed:
        error = Refused()
    error._name, error._call, error._sentence, error._parameters = name, call, sentence, found
    error.is_passing = error.code in _FOR_A_WHILE
    return error
