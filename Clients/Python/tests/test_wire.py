# SPDX-License-Identifier: Apache-2.0
"""Messages that are split, run together, too long, or none; and an agent that is not there."""

import asyncio
import json
import os
import pathlib
import pickle
import random
import socket
import threading
import typing

import pytest

from dialtone_client import (
    AccessDenied, Busy, Cause, Client, Connection, DialtoneError, EventKind, Interrupted, InvalidTarget, NameTaken,
    NotReady, NotRunning, ProtocolViolation, Refused, State, TimedOut, Unreachable, _wire)
from dialtone_client.interface import Monitor
from stand_in import CONNECTION, PATH, Conversation, StandIn, answers, run, sends


def listed(**more: object) -> bytes:
    """A list of one connection, as it is sent."""
    return json.dumps({"parameters": {"connections": [{**CONNECTION, **more}]}}).encode() + b"\0"


def test_an_answer_that_comes_byte_by_byte_is_put_together(tmp_path: pathlib.Path) -> None:
    def handle(conversation: Conversation) -> None:
        assert conversation.call() == {"method": "org.dialtone.Connections.List", "parameters": {}}
        for byte in listed():
            conversation.send(bytes([byte]))

    with StandIn(tmp_path, handle) as agent:
        found = run(Client(agent.path).list())
    assert [connection.name for connection in found] == ["van"]


def test_replies_that_run_together_are_told_apart(tmp_path: pathlib.Path) -> None:
    replies = [
        {"parameters": {"sequence": number, "kind": "gap", "connections": []}, "continues": number < 3}
        for number in (1, 2, 3)
    ]

    async def body(client: Client) -> typing.List[int]:
        return [reply.sequence async for reply in client.stream(Monitor())]

    with StandIn(tmp_path, sends(b"".join(json.dumps(reply).encode() + b"\0" for reply in replies))) as agent:
        assert run(body(Client(agent.path))) == [1, 2, 3]


def test_an_answer_of_megabytes_is_read_and_one_over_the_limit_is_refused_before_its_end(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "x" * 3_000_000
    with StandIn(tmp_path, answers(parameters={"connections": [{**CONNECTION, "reason": text}]})) as agent:
        assert run(Client(agent.path).list())[0].reason == text

    def endless(conversation: Conversation) -> None:
        conversation.call()
        with pytest.raises(ConnectionError):
            while True:
                conversation.send(b" " * 65536)

    monkeypatch.setattr(_wire, "MESSAGE_LIMIT", 1_000_000)
    with StandIn(tmp_path, endless) as agent:
        with pytest.raises(ProtocolViolation, match="longer than 1000000 bytes"):
            run(Client(agent.path).list())


MALFORMED = {
    "no JSON": b"hello\0",
    "no UTF-8": b'{"parameters":{"connections":[],"x":"\xff"}}\0',
    "no object": b"[]\0",
    "parameters that are none": b'{"parameters":[]}\0',
    "a field that is missing": b"{}\0",
    "a null for a field": b'{"parameters":{"connections":null}}\0',
    "a text for a number": listed(epoch="3"),
    "a flag for a number": listed(epoch=True),
    "a number for a flag": listed(wakeFailed=1),
    "a number with a fraction": listed(epoch=3.5),
    "a number of 65 bits": listed(epoch=2**64),
    "a number of 5,000 digits": b'{"parameters":{"connections":' + b"9" * 5000 + b"}}\0",
    "a duration of no length that Python has": listed(keepaliveIntervalMilliseconds=2**62),
    "a state that there is not": listed(state="dozing"),
    "a time that is none": listed(since="yesterday"),
    "a time without its zone": listed(since="2026-05-01T12:00:00.250"),
    "infinity": b'{"parameters":{"connections":[]},"x":Infinity}\0',
    "brackets without end": b"[" * 200_000 + b"\0",
    "an error that has no text": b'{"error":7}\0',
    "more replies than one": listed()[:-2] + b',"continues":true}\0',
    "a word for continues": listed()[:-2] + b',"continues":"yes"}\0',
}


@pytest.mark.parametrize("message", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_answer_is_a_violation(message: bytes, tmp_path: pathlib.Path) -> None:
    with StandIn(tmp_path, sends(message)) as agent:
        with pytest.raises(ProtocolViolation) as caught:
            run(Client(agent.path).list())
    assert not caught.value.is_passing
    assert "List" in str(caught.value)


def test_whatever_bytes_come_a_call_ends_with_an_answer_or_with_an_error_of_the_library(tmp_path: pathlib.Path) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    whole = listed(cause="refused", keepaliveIntervalMilliseconds=1500)
    words = [b"null", b"true", b"[]", b"{}", b"-1", b"1e400", b"9" * 30, b'"\\ud800"', b"\xff", b"\0", b",", b":", b'"']

    def handle(conversation: Conversation) -> None:
        conversation.call()
        message = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(message) + 1)
            message[place:place + chance.randrange(20)] = chance.choice(words)
        conversation.send(bytes(message))

    async def body(client: Client) -> int:
        answered = 0
        for _ in range(500):
            try:
                await client.list()
                answered += 1
            except DialtoneError as error:
                assert str(error), f"seed {seed}"
            except Exception as error:
                raise AssertionError(f"seed {seed}: {error!r}") from error
        return answered

    with StandIn(tmp_path, handle) as agent:
        assert run(body(Client(agent.path))) < 500, f"seed {seed}"


@pytest.mark.parametrize("message", [b"", b'{"parameters":'], ids=["nothing", "half"])
def test_an_agent_that_hangs_up_is_told_from_one_that_answers_nonsense(message: bytes, tmp_path: pathlib.Path) -> None:
    with StandIn(tmp_path, sends(message)) as agent:
        with pytest.raises(Interrupted) as caught:
            run(Client(agent.path).list())
    assert caught.value.is_passing and type(caught.value) is Interrupted


def test_what_a_later_agent_adds_is_passed_on_or_left_out(tmp_path: pathlib.Path) -> None:
    with StandIn(tmp_path, sends(listed(cause="sunspots", brightness=7, lastFailureCause="refused"))) as agent:
        van = run(Client(agent.path).list())[0]
    assert van.cause == Cause("sunspots") == "sunspots" and not Cause("sunspots").is_known
    assert van.last_failure_cause is Cause.REFUSED and Cause.REFUSED.is_known
    assert [f"{van.cause}", str(van.state), f"{EventKind.SESSION_OPENED}"] == ["sunspots", "ready", "sessionOpened"]
    assert van.state is State.READY and len({Cause("sunspots"), Cause("sunspots")}) == 1
    assert pickle.loads(pickle.dumps(van)) == van
    with pytest.raises(ValueError):
        State("dozing")


def test_values_are_those_of_python(tmp_path: pathlib.Path) -> None:
    with StandIn(tmp_path, sends(listed(keepaliveIntervalMilliseconds=1500))) as agent:
        van = run(Client(agent.path).list())[0]
    assert isinstance(van, Connection)
    assert van.since.isoformat() == "2026-05-01T12:00:00.250000+00:00"
    assert van.keepalive_interval is not None and van.keepalive_interval.total_seconds() == 1.5
    assert van.next_attempt_at is None
    assert repr(van).startswith("Connection(name='van', remote=")


def test_each_error_has_its_class_its_parameters_and_its_code(tmp_path: pathlib.Path) -> None:
    def caught(error: str, **parameters: object) -> Refused:
        with StandIn(tmp_path, answers(error=error, parameters=parameters)) as agent:
            with pytest.raises(Refused) as caught:
                run(Client(agent.path).close("van"))
        return caught.value

    error = caught("org.dialtone.Connections.NotReady", name="van", state="backingOff", later=1)
    assert isinstance(error, NotReady) and (error.name, error.state) == ("van", State.BACKING_OFF)
    assert error.code == "NotReady" and error.error_name == "org.dialtone.Connections.NotReady"
    assert str(error) == (
        "The agent refused Close: NotReady. The connection has no socket for that: "
        'name "van", state "backingOff", later 1.')
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, NotReady) and str(again) == str(error) and again.state is State.BACKING_OFF
    # Of a later agent: its name and what it says remain.
    unknown = caught("org.dialtone.Connections.TooLoud", volume=11)
    assert type(unknown) is Refused and unknown.code == "TooLoud" and unknown.parameters == {"volume": 11}
    # Not as declared: it is still an answer, and tells its name.
    odd = caught("org.dialtone.Connections.NameTaken", name=7)
    assert not isinstance(odd, NameTaken) and odd.code == "NameTaken"
    assert isinstance(caught("org.dialtone.Network.InvalidTarget", reason="it is empty"), InvalidTarget)


def test_parameters_of_the_wrong_type_are_found_before_anything_is_sent(tmp_path: pathlib.Path) -> None:
    client = Client(tmp_path / "nobody")
    for call in (
        client.close(typing.cast(str, 7)), client.open(typing.cast(str, None)),
        client.redial("van", after=typing.cast(typing.Any, 5)), client.path(typing.cast(typing.Any, 7)),
        client.monitor(typing.cast(typing.Any, "van")).__anext__(),
    ):
        with pytest.raises(TypeError):
            run(call)


def test_an_opening_is_not_shown() -> None:
    from dialtone_client import OpeningAnswer, OpeningStep, Settings

    settings = Settings(opening=[OpeningStep(send="swordfish", expect=OpeningAnswer(bytes="swordfish"))])
    assert "swordfish" not in f"{settings} {settings!r} {OpeningAnswer(bytes='swordfish')}"


# An agent that is not there, or does not answer.


def test_nobody_listens(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "agent.sock")
    with pytest.raises(NotRunning, match=path) as caught:
        run(Client(path).list())
    assert caught.value.is_passing
    # A socket whose server has gone.
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(path)
    with pytest.raises(NotRunning):
        run(Client(path).list())


def test_a_path_that_no_socket_has() -> None:
    with pytest.raises(Unreachable) as caught:
        run(Client("/" + "x" * 200).list())
    assert not caught.value.is_passing
    with pytest.raises(Unreachable):
        run(Client("/dev/null/agent.sock").list())


def test_a_socket_that_is_not_open_to_the_user(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with StandIn(tmp_path, answers()) as agent:
        os.chmod(agent.path, 0)
        if os.geteuid() == 0:
            # The kernel lets root connect to every socket.
            monkeypatch.setattr(socket.socket, "connect", denied)
        with pytest.raises(AccessDenied, match="dialtone"):
            run(Client(agent.path).list())


def test_a_busy_agent_is_waited_for_and_then_given_up(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "agent.sock")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(path)
        listener.listen(0)
        first.connect(path)
        monkeypatch.setattr(_wire, "_RETRIES", 3)
        with pytest.raises(Busy) as caught:
            run(Client(path).list())
        assert caught.value.is_passing and caught.value.path == path

        monkeypatch.setattr(_wire, "_RETRIES", 1000)

        async def body() -> typing.Sequence[Connection]:
            call = asyncio.ensure_future(Client(path).list())
            await asyncio.sleep(0.05)
            assert not call.done()
            threading.Thread(target=serve).start()
            return await call

        def serve() -> None:
            listener.accept()[0].close()
            with listener.accept()[0] as end:
                conversation = Conversation(end)
                conversation.call()
                conversation.send(listed())

        assert len(run(body())) == 1


def test_an_answer_that_does_not_come_is_waited_for_no_longer_than_the_limit(tmp_path: pathlib.Path) -> None:
    with StandIn(tmp_path, Conversation.wait_for_end) as agent:
        with pytest.raises(TimedOut) as caught:
            run(Client(agent.path, timeout=0.05).list())
    assert caught.value.is_passing


def test_an_agent_that_refuses_before_it_reads_is_heard(tmp_path: pathlib.Path) -> None:
    def refuse(conversation: Conversation) -> None:
        conversation.reply(error="org.dialtone.Connections.OutOfResources", parameters={"reason": "no memory"})
        conversation.end.shutdown(socket.SHUT_RD)
        refused.set()

    refused = threading.Event()
    original = _wire.Exchange._send

    async def late(self: typing.Any, message: bytes, descriptors: typing.Sequence[int]) -> None:
        # The call is sent when the agent does not read any more.
        assert await asyncio.get_running_loop().run_in_executor(None, refused.wait, 60)
        await original(self, message, descriptors)

    with StandIn(tmp_path, refuse) as agent, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_wire.Exchange, "_send", late)
        with pytest.raises(Refused, match="OutOfResources"):
            run(Client(agent.path).list())


def test_the_socket_is_looked_for_where_the_documents_say(monkeypatch: pytest.MonkeyPatch) -> None:
    system = "/run/dialtone/dialtone.sock"
    for named, runtime, user, paths in (
        ("/x/y.sock", "/run/user/7", 7, ("/x/y.sock",)), ("/x/y.sock", "", 0, ("/x/y.sock",)),
        ("", "/run/user/7", 7, ("/run/user/7/dialtone/dialtone.sock", system)), ("", "", 7, (system,)),
        ("", "/run/user/0", 0, (system,)),
    ):
        monkeypatch.setenv("DIALTONE_SOCKET", named)
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        monkeypatch.setattr(os, "geteuid", lambda: user)
        assert Client().paths == paths


def test_a_child_after_fork_asks_by_itself(tmp_path: pathlib.Path) -> None:
    with StandIn(tmp_path, answers(parameters={"path": PATH})) as agent:
        client = Client(agent.path)
        assert run(client.path("sip.example.com")).supports_dns
        child = os.fork()
        if child == 0:
            os._exit(0 if run(client.path()).generation == 7 else 1)
        assert os.waitpid(child, 0)[1] == 0
