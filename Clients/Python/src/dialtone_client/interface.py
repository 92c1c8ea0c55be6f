# SPDX-License-Identifier: Apache-2.0
# Generated from the .varlink files; Clients/Python/generate makes it again.
"""The types, methods and errors of org.dialtone.Network, org.dialtone.Connections,
org.varlink.service.
"""

import dataclasses
import datetime
import typing

from . import _values as _v
from .errors import Refused as _Refused


class Status(_v.Enumeration):
    """Whether a route to a target is available; nothing is sent to it."""

    SATISFIED = "satisfied"
    UNSATISFIED = "unsatisfied"
    REQUIRES_CONNECTION = "requiresConnection"
    """Once a connection is brought up on demand."""
    UNKNOWN = "unknown"
    """The kernel cannot be asked; this is not the same as unreachable."""


class Reason(_v.Enumeration):
    """Why no route to a target is available."""

    NO_ROUTE = "noRoute"
    NO_CARRIER = "noCarrier"
    NO_ADDRESS = "noAddress"
    GATEWAY_UNREACHABLE = "gatewayUnreachable"
    PROHIBITED = "prohibited"
    BLACKHOLE = "blackhole"
    UNREACHABLE = "unreachable"
    NAME_UNRESOLVED = "nameUnresolved"


class InterfaceKind(_v.Enumeration):
    """What an interface leads to."""

    LOOPBACK = "loopback"
    WIRED = "wired"
    WIFI = "wifi"
    CELLULAR = "cellular"
    TUNNEL = "tunnel"
    BRIDGE = "bridge"
    VIRTUAL = "virtual"
    OTHER = "other"
    """The kernel does not say."""


class InterfaceCostSource(_v.Enumeration):
    """Where "expensive" comes from: the configuration, the user's profile in NetworkManager,
    NetworkManager's guess, or the kind of the interface (cellular). Left out: the cost is unknown.
    """

    CONFIGURATION = "configuration"
    NETWORK_MANAGER = "networkManager"
    GUESS = "guess"
    KIND = "kind"


@dataclasses.dataclass(frozen=True, repr=False)
class Interface(_v.Value):
    """A network interface."""

    index: int
    """The kernel's number of it. It stays when the name changes."""
    name: str
    """Its name, such as wlan0."""
    kind: InterfaceKind
    """What it leads to."""
    up: bool
    """Whether an administrator has it up."""
    carrier: bool
    """Whether the other end is there: a cable, an association."""
    addresses: typing.Sequence[str]
    """Its addresses with their prefix lengths, such as 192.0.2.7/24, in the kernel's order."""
    expensive: bool
    """Whether its traffic costs money by volume, as far as is known."""
    constrained: bool
    """Whether the user asked to use it sparingly."""
    deprecated: typing.Optional[typing.Sequence[str]] = None
    """Those of them that new connections do not use: a router or an administrator has deprecated them."""
    unusable: typing.Optional[typing.Sequence[str]] = None
    """Those of them that packets may not carry: the check for duplicates is not over, or another host
    has the address.
    """
    cost_source: typing.Optional[InterfaceCostSource] = None
    """Where "expensive" comes from: the configuration, the user's profile in NetworkManager,
    NetworkManager's guess, or the kind of the interface (cellular). Left out: the cost is unknown.
    """
    _wire = (
        _v.Field("index", "index", _v.INTEGER),
        _v.Field("name", "name", _v.TEXT),
        _v.Field("kind", "kind", _v.Choice(InterfaceKind)),
        _v.Field("up", "up", _v.FLAG),
        _v.Field("carrier", "carrier", _v.FLAG),
        _v.Field("addresses", "addresses", _v.Array(_v.TEXT)),
        _v.Field("deprecated", "deprecated", _v.Array(_v.TEXT), optional=True),
        _v.Field("unusable", "unusable", _v.Array(_v.TEXT), optional=True),
        _v.Field("expensive", "expensive", _v.FLAG),
        _v.Field("cost_source", "costSource", _v.Choice(InterfaceCostSource), optional=True),
        _v.Field("constrained", "constrained", _v.FLAG),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Path(_v.Value):
    """The route that packets take to a target now, or why there is none."""

    generation: int
    """Counts the changes of the network. Equal numbers: nothing changed in between."""
    status: Status
    """Whether a route to the target is available."""
    coherent: bool
    """False while the kernel's state is read again after an overrun: this is the last known verdict."""
    is_direct: bool
    """Whether the destination is on a network that this machine is attached to."""
    is_local_address: bool
    """Whether the destination is this machine."""
    supports_ipv4: bool
    """Whether IPv4 packets can leave."""
    supports_ipv6: bool
    """Whether IPv6 packets can leave."""
    supports_dns: bool
    """Whether a configured name server can be reached."""
    expensive: bool
    """Whether the interface's traffic costs money by volume."""
    constrained: bool
    """Whether the user asked to use the interface sparingly."""
    reason: typing.Optional[Reason] = None
    """Why it is not."""
    interface: typing.Optional[Interface] = None
    """The interface that packets leave by."""
    gateway: typing.Optional[str] = None
    """The next hop. Left out if the destination is on the link or on this machine."""
    source: typing.Optional[str] = None
    """The source address that packets carry."""
    destination: typing.Optional[str] = None
    """The address that the verdict is for. Left out where no target was given."""
    _wire = (
        _v.Field("generation", "generation", _v.INTEGER),
        _v.Field("status", "status", _v.Choice(Status)),
        _v.Field("reason", "reason", _v.Choice(Reason), optional=True),
        _v.Field("coherent", "coherent", _v.FLAG),
        _v.Field("interface", "interface", _v.Nested(Interface), optional=True),
        _v.Field("gateway", "gateway", _v.TEXT, optional=True),
        _v.Field("source", "source", _v.TEXT, optional=True),
        _v.Field("destination", "destination", _v.TEXT, optional=True),
        _v.Field("is_direct", "isDirect", _v.FLAG),
        _v.Field("is_local_address", "isLocalAddress", _v.FLAG),
        _v.Field("supports_ipv4", "supportsIPv4", _v.FLAG),
        _v.Field("supports_ipv6", "supportsIPv6", _v.FLAG),
        _v.Field("supports_dns", "supportsDNS", _v.FLAG),
        _v.Field("expensive", "expensive", _v.FLAG),
        _v.Field("constrained", "constrained", _v.FLAG),
    )


class TargetProtocol(_v.Enumeration):
    """The transport protocol, for rules that select by it."""

    TCP = "tcp"
    UDP = "udp"


@dataclasses.dataclass(frozen=True, repr=False)
class Target(_v.Value):
    """What a route is looked for to. The policy rules of the caller's user apply."""

    host: str
    """A name or an address."""
    port: typing.Optional[int] = None
    """The destination port, 1 to 65535, for rules that select by it."""
    protocol: typing.Optional[TargetProtocol] = None
    """The transport protocol, for rules that select by it."""
    mark: typing.Optional[int] = None
    """The firewall mark of the packets, 0 to 4294967295, for rules that select by it."""
    interface: typing.Optional[str] = None
    """The name of the interface that they must leave by."""
    source: typing.Optional[str] = None
    """The source address that they must carry."""
    _wire = (
        _v.Field("host", "host", _v.TEXT),
        _v.Field("port", "port", _v.INTEGER, optional=True),
        _v.Field("protocol", "protocol", _v.Choice(TargetProtocol), optional=True),
        _v.Field("mark", "mark", _v.INTEGER, optional=True),
        _v.Field("interface", "interface", _v.TEXT, optional=True),
        _v.Field("source", "source", _v.TEXT, optional=True),
    )


class StepSubject(_v.OpenEnumeration):
    """What was looked at. Others may be added. The name and its addresses, the policy rule, the tables
    that were searched in vain, the route, its next hops, the interface, the gateway (or the host on its
    own link), the source address: in this order, and without those of which there is nothing to say.
    """

    NAME = "name"
    RULE = "rule"
    TABLE = "table"
    ROUTE = "route"
    NEXTHOP = "nexthop"
    LINK = "link"
    NEIGHBOUR = "neighbour"
    SOURCE = "source"


@dataclasses.dataclass(frozen=True, repr=False)
class Step(_v.Value):
    """One thing that decides the route to a target."""

    subject: StepSubject
    """What was looked at. Others may be added. The name and its addresses, the policy rule, the tables
    that were searched in vain, the route, its next hops, the interface, the gateway (or the host on its
    own link), the source address: in this order, and without those of which there is nothing to say.
    """
    text: str
    """What was found, for a person. Its words may change."""
    decisive: bool
    """Whether this step is why there is no route. If there is none, that is true of one step; if there
    is one, of none.
    """
    _wire = (
        _v.Field("subject", "subject", _v.Choice(StepSubject)),
        _v.Field("text", "text", _v.TEXT),
        _v.Field("decisive", "decisive", _v.FLAG),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class GetPathReply(_v.Value):
    """What the agent answers to ``GetPath``."""

    path: Path
    """The path now, or as it would be."""
    _wire = (
        _v.Field("path", "path", _v.Nested(Path)),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class GetPath(_v.Method[GetPathReply]):
    """Returns the path to a target; without one, to the network as such. The rules of the caller's user
    apply to both. A name is resolved first.
    """

    target: typing.Optional[Target] = None
    """What is asked about. Left out: the network as such."""
    without: typing.Optional[str] = None
    """The name of an interface to ignore. The path is then the one that the kernel would choose if that
    interface were removed, with its addresses, its routes and the interfaces that stand on it.
    """
    _method = "org.dialtone.Network.GetPath"
    _reply = GetPathReply
    _wire = (
        _v.Field("target", "target", _v.Nested(Target), optional=True),
        _v.Field("without", "without", _v.TEXT, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class MonitorPathReply(_v.Value):
    """What the agent answers to ``MonitorPath``."""

    path: Path
    """The path now."""
    changes: typing.Sequence[str]
    """What differs from the reply before: status, reason, coherent, interface, addresses, gateway,
    source, destination, direct, ipv4, ipv6, dns, expensive, constrained. Empty in the first reply.
    """
    _wire = (
        _v.Field("path", "path", _v.Nested(Path)),
        _v.Field("changes", "changes", _v.Array(_v.TEXT)),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class MonitorPath(_v.StreamMethod[MonitorPathReply]):
    """The path to a target, or to the network as such: the present one at once, then each change. A
    subscriber that reads slowly gets the latest path, with every change since the one it got before.
    """

    target: typing.Optional[Target] = None
    """What is watched. Left out: the network as such."""
    _method = "org.dialtone.Network.MonitorPath"
    _reply = MonitorPathReply
    _wire = (
        _v.Field("target", "target", _v.Nested(Target), optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class ExplainReply(_v.Value):
    """What the agent answers to ``Explain``."""

    path: Path
    """The path now, or as it would be."""
    steps: typing.Sequence[Step]
    """What the path rests on, in order."""
    others: typing.Optional[typing.Sequence[Path]] = None
    """The paths to the other addresses of the target's name, each with its destination."""
    without: typing.Optional[typing.Sequence[str]] = None
    """The interfaces that were ignored: the one that was named, and those that would go with it."""
    _wire = (
        _v.Field("path", "path", _v.Nested(Path)),
        _v.Field("steps", "steps", _v.Array(_v.Nested(Step))),
        _v.Field("others", "others", _v.Array(_v.Nested(Path)), optional=True),
        _v.Field("without", "without", _v.Array(_v.TEXT), optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Explain(_v.Method[ExplainReply]):
    """Returns why the path to a target is as it is, step by step. The agent asks the kernel again, and
    reads rules and routes.
    """

    target: Target
    """What is asked about."""
    without: typing.Optional[str] = None
    """The name of an interface to ignore, as in GetPath."""
    _method = "org.dialtone.Network.Explain"
    _reply = ExplainReply
    _wire = (
        _v.Field("target", "target", _v.Nested(Target)),
        _v.Field("without", "without", _v.TEXT, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class ListInterfacesReply(_v.Value):
    """What the agent answers to ``ListInterfaces``."""

    interfaces: typing.Sequence[Interface]
    """The interfaces, those that are down included."""
    _wire = (
        _v.Field("interfaces", "interfaces", _v.Array(_v.Nested(Interface))),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class ListInterfaces(_v.Method[ListInterfacesReply]):
    """Returns the interfaces of this machine."""

    _method = "org.dialtone.Network.ListInterfaces"
    _reply = ListInterfacesReply


@dataclasses.dataclass(eq=False, repr=False)
class InvalidTarget(_Refused):
    """The target makes no sense, or there is no interface of the name to ignore."""

    reason: str
    """What is wrong with it, for a person."""
    _wire = (
        _v.Field("reason", "reason", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class ForeignNetwork(_Refused):
    """The target is a name, and the caller is in another network namespace than the agent. The agent
    asks name servers for such a caller only if its configuration admits the caller's user.
    """

    reason: str
    """Whom to admit, and how, for a person."""
    _wire = (
        _v.Field("reason", "reason", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class OutOfResources(_Refused):
    """The agent is near the limit of its memory or its descriptors, or the kernel says that memory is
    short. It begins nothing new.
    """

    reason: str
    """Which limit it is and how much is in use, for a person."""
    _wire = (
        _v.Field("reason", "reason", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class QuotaExceeded(_Refused):
    """The caller's user has as many subscriptions as one may have."""

    limit: int
    """How many that is."""
    _wire = (
        _v.Field("limit", "limit", _v.INTEGER),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Keepalive(_v.Value):
    """How a connection is kept alive while it is parked."""

    protocol: typing.Optional[str] = None
    """What is sent. "tcp": the kernel's own probes. "crlf": two CRLF (RFC 5626). "whitespace": a blank
    between stanzas (RFC 6120). "xmpp-ping": XEP-0199. "mqtt": PINGREQ. "websocket": a ping (RFC 6455).
    "custom": "send" and "expect" say. "client": the client sends it. While the connection is parked,
    Dialtone wakes the client for it with the reason keepAlive, and the client has ten seconds; the
    kernel probes as well. "none": nothing. Left out: what the remote's scheme has, "tcp" where it has
    none. The kernel's probes stand in for all but "none" where nothing may be sent: those of XMPP, MQTT
    and WebSocket wait for a session on the socket.
    """
    interval: typing.Optional[datetime.timedelta] = None
    """The longest time between two. For "client": the timeout of KeepAlive; left out: 600000."""
    tolerance: typing.Optional[datetime.timedelta] = None
    """How much earlier it may be sent to share a wake-up with others. It must be less than the
    interval.
    """
    adaptive: typing.Optional[bool] = None
    """Whether the interval follows what is learned of the network that the connection goes through, up
    to the one given. Left out: where none is given. The kernel's probes keep theirs.
    """
    send: typing.Optional[str] = None
    r"""What a custom one sends, up to 1024 bytes. Escapes: \r \n \t \0 \\ and \xNN, beside those of
    JSON.
    """
    expect: typing.Optional[str] = None
    """What exactly answers a custom one, up to 1024 bytes, with the same escapes. Left out: TCP's
    acknowledgement does.
    """
    wake_machine: typing.Optional[bool] = None
    """Whether to wake a sleeping machine for it. For root and the daemon's own user; PermissionDenied
    to others.
    """
    _wire = (
        _v.Field("protocol", "protocol", _v.TEXT, optional=True),
        _v.Field("interval", "intervalMilliseconds", _v.DURATION, optional=True),
        _v.Field("tolerance", "toleranceMilliseconds", _v.DURATION, optional=True),
        _v.Field("adaptive", "adaptive", _v.FLAG, optional=True),
        _v.Field("send", "send", _v.TEXT, optional=True),
        _v.Field("expect", "expect", _v.TEXT, optional=True),
        _v.Field("wake_machine", "wakeMachine", _v.FLAG, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class OpeningAnswer(_v.Value):
    """How an answer in an opening is recognized. It is "length" bytes long, or ends with "until", or is
    one "message" of a protocol; with none of these it is exactly "bytes". Up to 16 KiB. Escapes as in
    OpeningStep.
    """

    bytes: typing.Optional[str] = None
    r"""How it begins. Beside the escapes, \? stands for any byte and \x2? and \x?0 for any half of one."""
    length: typing.Optional[int] = None
    """How many bytes it has."""
    until: typing.Optional[str] = None
    """How it ends."""
    message: typing.Optional[str] = None
    """"mqtt": a control packet. "websocket": a frame."""
    contains: typing.Optional[str] = None
    """What it holds somewhere."""
    _wire = (
        _v.Field("bytes", "bytes", _v.TEXT, optional=True),
        _v.Field("length", "length", _v.INTEGER, optional=True),
        _v.Field("until", "until", _v.TEXT, optional=True),
        _v.Field("message", "message", _v.TEXT, optional=True),
        _v.Field("contains", "contains", _v.TEXT, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class OpeningStep(_v.Value):
    """One step of an opening: what Dialtone says to the server on each new socket, and how its answer
    is recognized, so that the client sleeps while sockets come and go. It is fixed beforehand, and
    suits logins that say the same each time (MQTT's CONNECT, a token over a WebSocket, SASL PLAIN over
    TLS). The session is open when every step was answered; what comes after the last answer stays
    unread for the client. Each answer may take 10 s, and all together 30 s. Up to 16 steps and 32 KiB.
    Dialtone keeps the opening in memory, and neither logs nor shows it.
    """

    send: typing.Optional[str] = None
    r"""What is sent; left out where the server speaks first. Escapes: \r \n \t \0 \\ and \xNN, beside
    those of JSON.
    """
    expect: typing.Optional[OpeningAnswer] = None
    """The answer; left out where there is none, and the next step follows at once. At least one step
    has one.
    """
    overtaken_by: typing.Optional[typing.Sequence[str]] = None
    r"""In the last step: how messages for the client begin that may come before the answer, written as
    "bytes" of an answer. When such a message comes, the session is open; the message and all that
    follows it, the answer included, is the client's. For MQTT, "\\x3?" and "\\x62" before the SUBACK: a
    PUBLISH, and a PUBREL.
    """
    _wire = (
        _v.Field("send", "send", _v.TEXT, optional=True),
        _v.Field("expect", "expect", _v.Nested(OpeningAnswer), optional=True),
        _v.Field("overtaken_by", "overtakenBy", _v.Array(_v.TEXT), optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class AnsweredMessage(_v.Value):
    """A message of the server's that Dialtone answers itself while the connection is parked, so that
    the client sleeps on. It is answered if it stands first of all that is unread and nobody else has
    the socket: with a session on it that the client parked, or that the opening logged in. Whatever
    else comes is left for the client in full, and wakes it. Up to 20 in a minute are answered; what
    comes beyond that wakes the client.
    """

    protocol: str
    """"websocket": a ping (RFC 6455), answered by a pong. "xmpp": a request for an acknowledgement
    (<r/>, XEP-0198), answered with "handled"; and blanks between stanzas, which are dropped. "custom":
    "receive" and "send" say.
    """
    receive: typing.Optional[str] = None
    """What a custom one is, from 1 to 1024 bytes, its end included. Escapes as in "bytes" of
    OpeningAnswer.
    """
    send: typing.Optional[str] = None
    """What answers a custom one, up to 1024 bytes, with the escapes of OpeningStep. Left out: nothing;
    it is dropped.
    """
    handled: typing.Optional[int] = None
    """For "xmpp": how many stanzas the client has handled on the socket that it parks or brings. It
    counts until the socket is taken, and on each new socket on which the opening resumes that stream;
    if the opening begins a stream, none was handled. Left out: a request on the parked socket wakes the
    client.
    """
    _wire = (
        _v.Field("protocol", "protocol", _v.TEXT),
        _v.Field("receive", "receive", _v.TEXT, optional=True),
        _v.Field("send", "send", _v.TEXT, optional=True),
        _v.Field("handled", "handled", _v.INTEGER, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Backoff(_v.Value):
    """How long to wait between attempts. What is left out is the default of the remote's protocol."""

    initial: typing.Optional[datetime.timedelta] = None
    """The wait after the first failure, before jitter."""
    maximum: typing.Optional[datetime.timedelta] = None
    """The longest wait, before jitter."""
    factor: typing.Optional[float] = None
    """What each wait is multiplied by to get the next."""
    stable_after: typing.Optional[datetime.timedelta] = None
    """How long a connection must stay up for the waits to start over."""
    _wire = (
        _v.Field("initial", "initialMilliseconds", _v.DURATION, optional=True),
        _v.Field("maximum", "maximumMilliseconds", _v.DURATION, optional=True),
        _v.Field("factor", "factor", _v.NUMBER, optional=True),
        _v.Field("stable_after", "stableAfterMilliseconds", _v.DURATION, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class TLS(_v.Value):
    """How a connection is secured, for a remote whose scheme has TLS. What is left out is the system's
    or the scheme's.
    """

    pins: typing.Optional[typing.Sequence[str]] = None
    """Digests of public keys, as "sha256/BASE64" (RFC 7469). The server's certificate, or one above it,
    has one of them.
    """
    verify: typing.Optional[bool] = None
    """Whether the server's certificate must be trusted and have its name. Left out: it must."""
    min_version: typing.Optional[str] = None
    """The oldest version to speak: "1.2" or "1.3". Left out: 1.2."""
    server_name: typing.Optional[str] = None
    """The name that the server is asked for and must have, where it is not the remote's host."""
    alpn: typing.Optional[typing.Sequence[str]] = None
    """What to offer by ALPN, the most wanted first."""
    ca: typing.Optional[str] = None
    """The absolute path of a PEM file: what is trusted in place of the system's authorities. The daemon
    reads this file and the three below with its own rights: for root and the daemon's own user.
    InvalidRemote to others, whose files the configuration can name.
    """
    certificate: typing.Optional[str] = None
    """The absolute path of a PEM file: the client's certificate."""
    key: typing.Optional[str] = None
    """The absolute path of a PEM file: the client's private key, where that is not in the certificate's
    file.
    """
    password_file: typing.Optional[str] = None
    """The absolute path of a file: the password of the private key."""
    _wire = (
        _v.Field("pins", "pins", _v.Array(_v.TEXT), optional=True),
        _v.Field("verify", "verify", _v.FLAG, optional=True),
        _v.Field("min_version", "minVersion", _v.TEXT, optional=True),
        _v.Field("server_name", "serverName", _v.TEXT, optional=True),
        _v.Field("alpn", "alpn", _v.Array(_v.TEXT), optional=True),
        _v.Field("ca", "ca", _v.TEXT, optional=True),
        _v.Field("certificate", "certificate", _v.TEXT, optional=True),
        _v.Field("key", "key", _v.TEXT, optional=True),
        _v.Field("password_file", "passwordFile", _v.TEXT, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class SocketSettings(_v.Value):
    """Options of a connection's sockets (tcp(7)). What is left out is the kernel's default."""

    maximum_segment: typing.Optional[int] = None
    """The longest segment in bytes, 88 to 32767 (TCP_MAXSEG): for a network that drops longer packets
    and does not say so.
    """
    receive_buffer: typing.Optional[int] = None
    """How many bytes the kernel keeps for the client that have not been read, 4096 to 4194304
    (SO_RCVBUF); no more than net.core.rmem_max. For a server that says much while the client sleeps, or
    a machine with many connections.
    """
    _wire = (
        _v.Field("maximum_segment", "maximumSegment", _v.INTEGER, optional=True),
        _v.Field("receive_buffer", "receiveBuffer", _v.INTEGER, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Settings(_v.Value):
    """How a connection is kept. What is left out is the default of the remote's scheme."""

    keepalive: typing.Optional[Keepalive] = None
    """How it is kept alive. Left out: as the remote's scheme has it. Keepalives of MQTT are as frequent
    as the CONNECT of the opening promises.
    """
    opening: typing.Optional[typing.Sequence[OpeningStep]] = None
    """What is said on each new socket to log in for the client. Left out: nothing, and the client is
    woken to do it.
    """
    answers: typing.Optional[typing.Sequence[AnsweredMessage]] = None
    """What Dialtone answers while the connection is parked, up to 8. Left out: nothing, and each
    message wakes the client.
    """
    backoff: typing.Optional[Backoff] = None
    """How long to wait between attempts."""
    tls: typing.Optional[TLS] = None
    """How it is secured."""
    connect_timeout: typing.Optional[datetime.timedelta] = None
    """How long an attempt to connect may take, 1000 to 120000. Left out: 10000."""
    user_timeout: typing.Optional[datetime.timedelta] = None
    """How long bytes may stay without acknowledgement until the connection counts as lost."""
    grace: typing.Optional[datetime.timedelta] = None
    """How long a socket is kept after its local address or its route is gone, in case that comes back,
    0 to 60000. In the meantime the connection is verifying, and another socket is dialled if there is a
    route. Left out: 5000.
    """
    keep_abandoned: typing.Optional[bool] = None
    """Whether the agent keeps a socket if its client ends without parking it. The next client then
    reads on where that one stopped, which may be in the middle of a message. Left out: the agent closes
    the socket and dials again. If the client has neither read nor written before it ended, nothing is
    lost either way.
    """
    make_before_break: typing.Optional[bool] = None
    """Whether the connection moves to a better path while the old one still works: the agent dials over
    the better path, and then closes the old socket. Left out: true.
    """
    other_uplinks: typing.Optional[bool] = None
    """Whether the agent also dials over another uplink if the server does not answer over the kernel's
    route. Left out: true. It does not if that route is a tunnel, or with a mark.
    """
    traffic_class: typing.Optional[str] = None
    """How its packets are marked for the network: a code point of Differentiated Services, by name
    ("cs5", "ef", "af41", "none") or number. Left out: "cs5", which is signaling (RFC 4594).
    """
    priority: typing.Optional[int] = None
    """In which order its packets leave this machine (SO_PRIORITY), 0 to 6. Left out: 6, interactive."""
    mark: typing.Optional[int] = None
    """The firewall mark of its packets, 1 to 4294967295. Left out: none. For root and the daemon's own
    user; PermissionDenied to others.
    """
    socket: typing.Optional[SocketSettings] = None
    """Options of its sockets. Left out: none."""
    _wire = (
        _v.Field("keepalive", "keepalive", _v.Nested(Keepalive), optional=True),
        _v.Field("opening", "opening", _v.Array(_v.Nested(OpeningStep)), optional=True),
        _v.Field("answers", "answers", _v.Array(_v.Nested(AnsweredMessage)), optional=True),
        _v.Field("backoff", "backoff", _v.Nested(Backoff), optional=True),
        _v.Field("tls", "tls", _v.Nested(TLS), optional=True),
        _v.Field("connect_timeout", "connectTimeoutMilliseconds", _v.DURATION, optional=True),
        _v.Field("user_timeout", "userTimeoutMilliseconds", _v.DURATION, optional=True),
        _v.Field("grace", "graceMilliseconds", _v.DURATION, optional=True),
        _v.Field("keep_abandoned", "keepAbandoned", _v.FLAG, optional=True),
        _v.Field("make_before_break", "makeBeforeBreak", _v.FLAG, optional=True),
        _v.Field("other_uplinks", "otherUplinks", _v.FLAG, optional=True),
        _v.Field("traffic_class", "trafficClass", _v.TEXT, optional=True),
        _v.Field("priority", "priority", _v.INTEGER, optional=True),
        _v.Field("mark", "mark", _v.INTEGER, optional=True),
        _v.Field("socket", "socket", _v.Nested(SocketSettings), optional=True),
    )


class SecurityAssurance(_v.Enumeration):

    VERIFIED = "verified"
    """The certificate is trusted and has the server's name."""
    PINNED = "pinned"
    """Its key is a pinned one, and nothing else was asked."""
    UNVERIFIED = "unverified"
    """The verification is off, and somebody in between can pass for the server."""


@dataclasses.dataclass(frozen=True, repr=False)
class Security(_v.Value):
    """What was agreed on with a server."""

    version: str
    """"1.2" or "1.3"."""
    cipher: str
    """The cipher suite."""
    assurance: SecurityAssurance
    """Verified: the certificate is trusted and has the server's name. pinned: its key is a pinned one,
    and nothing else was asked. unverified: the verification is off, and somebody in between can pass
    for the server.
    """
    is_resumed: bool
    """Whether an earlier session was resumed."""
    application_protocol: typing.Optional[str] = None
    """What the server chose by ALPN."""
    certificate_ends_at: typing.Optional[datetime.datetime] = None
    """When the first of the certificates expires: the server's, or this client's own (RFC 3339)."""
    is_own_certificate: typing.Optional[bool] = None
    """True where that is this client's own."""
    _wire = (
        _v.Field("version", "version", _v.TEXT),
        _v.Field("cipher", "cipher", _v.TEXT),
        _v.Field("assurance", "assurance", _v.Choice(SecurityAssurance)),
        _v.Field("is_resumed", "isResumed", _v.FLAG),
        _v.Field("application_protocol", "applicationProtocol", _v.TEXT, optional=True),
        _v.Field("certificate_ends_at", "certificateEndsAt", _v.TIME, optional=True),
        _v.Field("is_own_certificate", "isOwnCertificate", _v.FLAG, optional=True),
    )


class State(_v.Enumeration):
    """What a connection is doing."""

    WAITING = "waiting"
    """No network, nothing is tried."""
    RESOLVING = "resolving"
    """Its name is looked up."""
    CONNECTING = "connecting"
    """A socket is being connected."""
    SECURING = "securing"
    """The TLS handshake runs."""
    READY = "ready"
    """Usable."""
    VERIFYING = "verifying"
    """It may have been lost, and the server was asked."""
    BACKING_OFF = "backingOff"
    """The next attempt has a time."""
    FAILED = "failed"
    """A cause that time does not cure; tried rarely."""
    CLOSED = "closed"
    """Over."""


class Cause(_v.OpenEnumeration):
    """Why something happened, for programs: what "reason" says to a person. Others may be added: ignore
    unknown ones.
    """

    OPENED = "opened"
    """Supervision began."""
    REDIAL_REQUESTED = "redialRequested"
    """Somebody asked for a new socket."""
    SETTINGS_CHANGED = "settingsChanged"
    """It has other settings."""
    CLOSE_REQUESTED = "closeRequested"
    """Somebody closed it."""
    NAME_CONFIGURED = "nameConfigured"
    """A file now names a connection of its name and owner."""
    PATH_AVAILABLE = "pathAvailable"
    """The network is available."""
    PATH_MOVED = "pathMoved"
    """The route changed."""
    NO_PATH = "noPath"
    """There is no network to the remote."""
    NO_ROUTE = "noRoute"
    """There is no route."""
    NO_CARRIER = "noCarrier"
    """The cable or the association is gone."""
    NO_ADDRESS = "noAddress"
    """There is no source address."""
    GATEWAY_UNREACHABLE = "gatewayUnreachable"
    """The gateway does not answer."""
    PROHIBITED = "prohibited"
    """A route or rule forbids it."""
    BLACKHOLE = "blackhole"
    """A route or rule drops the packets."""
    UNREACHABLE = "unreachable"
    """A route says "unreachable"."""
    ADDRESS_LOST = "addressLost"
    """The socket's own address is gone from this machine."""
    RESUMED = "resumed"
    """The machine slept."""
    RETRY_DUE = "retryDue"
    """The wait is over."""
    HELD_BACK = "heldBack"
    """There were too many attempts at once."""
    SERVER_ASKED = "serverAsked"
    """The server asked for a pause."""
    NAME_NOT_FOUND = "nameNotFound"
    """The name does not exist, or has no address."""
    NAME_SERVER_FAILED = "nameServerFailed"
    """No name server answers."""
    NOT_OFFERED = "notOffered"
    """The domain says that it has no such service."""
    REFUSED = "refused"
    """Nothing listens on the port."""
    RESET = "reset"
    """The remote, or somebody in its name, reset the connection."""
    TIMED_OUT = "timedOut"
    """No answer in time."""
    HOST_UNREACHABLE = "hostUnreachable"
    """A router says so, or the neighbour does not answer."""
    FORBIDDEN = "forbidden"
    """This machine's firewall or rules forbid it."""
    CLOSED_BY_REMOTE = "closedByRemote"
    """The remote closed the socket in order."""
    KEEPALIVE_UNANSWERED = "keepaliveUnanswered"
    """The server did not answer a keepalive."""
    UNVERIFIED = "unverified"
    """After a change nothing showed that the server is still there."""
    SYSTEM_FAILURE = "systemFailure"
    """The kernel refused something."""
    UNTRUSTED = "untrusted"
    """No trusted authority issued the server's certificate, or the certificate is unusable in another
    way.
    """
    WRONG_NAME = "wrongName"
    """It is for another name."""
    EXPIRED = "expired"
    """It is not valid any more."""
    NOT_YET_VALID = "notYetValid"
    """It is not valid yet, by this machine's clock."""
    REVOKED = "revoked"
    """It was revoked, or that could not be found out."""
    PIN_MISMATCH = "pinMismatch"
    """It has none of the pinned keys."""
    CLIENT_CERTIFICATE = "clientCertificate"
    """The server wants one, or refuses it."""
    UNUSABLE_FILE = "unusableFile"
    """A file that the settings name cannot be used."""
    NOT_TLS = "notTLS"
    """The server does not speak TLS."""
    TLS_FAILED = "tlsFailed"
    """Any other failure of TLS."""
    SECURING_ENDED = "securingEnded"
    """The process that does TLS ended."""
    CERTIFICATE_ENDS = "certificateEnds"
    """A certificate expires soon."""
    CONNECTED = "connected"
    """A socket is connected."""
    REPLACED = "replaced"
    """A socket over a better path took its place."""
    DETOURED = "detoured"
    """It uses another uplink, since the server did not answer over the usual one."""
    VERIFIED = "verified"
    """The server is still there."""
    LOGGED_IN = "loggedIn"
    """The opening logged in."""
    LOGIN_REFUSED = "loginRefused"
    """The server said something else than the opening expects."""
    LOGIN_UNANSWERED = "loginUnanswered"
    """It said nothing, or hung up."""
    ADOPTED = "adopted"
    """A client brought the socket."""
    TAKEN = "taken"
    """A client took the socket."""
    PARKED = "parked"
    """Its client parked it."""
    ARRIVED = "arrived"
    """There is something to read."""
    CLIENT_GONE = "clientGone"
    """The client ended without parking."""
    RESTARTED = "restarted"
    """The agent was restarted."""
    AGENT_ENDED = "agentEnded"
    """The agent was stopped, and the connection ends with it."""


class ConnectionHolder(_v.Enumeration):
    """Who owns its socket, and so may read and write it."""

    DAEMON = "daemon"
    CLIENT = "client"


class ConnectionSession(_v.Enumeration):
    """Whether the protocol on it is logged in, as far as Dialtone knows."""

    NONE = "none"
    OPENING = "opening"
    OPEN = "open"
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, repr=False)
class Connection(_v.Value):
    """A supervised connection. It outlives its sockets."""

    name: str
    """Its name, among those of its owner."""
    remote: str
    """Where it leads, as a URL."""
    epoch: int
    """Counts its sockets. A new socket has a new number."""
    state: State
    """What it is doing."""
    holder: ConnectionHolder
    """Who owns its socket, and so may read and write it."""
    session: ConnectionSession
    """Whether the protocol on it is logged in, as far as Dialtone knows."""
    since: datetime.datetime
    """Since when it is in this state (RFC 3339; this and all other times in UTC, with milliseconds)."""
    attempt: int
    """Failed attempts since it was last stable."""
    owner: typing.Optional[int] = None
    """Whose it is: the user's number."""
    reason: typing.Optional[str] = None
    """Why it is in this state, for a person."""
    cause: typing.Optional[Cause] = None
    """The same, for programs."""
    local_address: typing.Optional[str] = None
    """The socket's own address and port."""
    remote_address: typing.Optional[str] = None
    """The address and port it is connected to."""
    interface: typing.Optional[str] = None
    """The name of the interface it goes over."""
    avoided_interface: typing.Optional[str] = None
    """The interface of the kernel's route, if the server did not answer over it and the connection uses
    another uplink. The agent tests that route from time to time.
    """
    security: typing.Optional[Security] = None
    """How it is secured, while it is ready; left out for one without TLS."""
    next_attempt_at: typing.Optional[datetime.datetime] = None
    """When the next attempt is due (RFC 3339)."""
    last_proof: typing.Optional[datetime.datetime] = None
    """When the agent last heard from the server: data, or an acknowledgement of something sent (RFC
    3339).
    """
    last_failure: typing.Optional[str] = None
    """Why the last attempt or socket failed, for a person. Left out once a socket is connected and, if
    Dialtone logs in, the remote has accepted the login.
    """
    last_failure_cause: typing.Optional[Cause] = None
    """The same, for programs."""
    unread_bytes: typing.Optional[int] = None
    """Bytes that arrived and that nobody has read."""
    keepalive_interval: typing.Optional[datetime.timedelta] = None
    """How often a keepalive of the protocol is sent on its socket at most; with an adaptive interval,
    what the agent has learned so far. Left out while it sends none, and in events.
    """
    wake: typing.Optional[int] = None
    """The number of the wake that stands: the client is being woken and has not acknowledged it."""
    wake_failed: typing.Optional[bool] = None
    """True if that wake was given up: nothing more is tried until there is another reason."""
    ends_with_agent: typing.Optional[bool] = None
    """True if its socket ends with the agent's process: the user has no place left in the service
    manager's store, in which sockets outlive a restart.
    """
    lacks_login: typing.Optional[bool] = None
    """True if the remote expects a login on its socket and nobody has logged in: many servers close
    such a socket. An opening logs in, or a client that takes the socket.
    """
    up_since: typing.Optional[datetime.datetime] = None
    """Since when it has had a socket that works, whichever one (RFC 3339); left out while it has none."""
    down_since: typing.Optional[datetime.datetime] = None
    """Since when it has had none, through all attempts since (RFC 3339); left out while it has one."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("owner", "owner", _v.INTEGER, optional=True),
        _v.Field("remote", "remote", _v.TEXT),
        _v.Field("epoch", "epoch", _v.INTEGER),
        _v.Field("state", "state", _v.Choice(State)),
        _v.Field("reason", "reason", _v.TEXT, optional=True),
        _v.Field("cause", "cause", _v.Choice(Cause), optional=True),
        _v.Field("holder", "holder", _v.Choice(ConnectionHolder)),
        _v.Field("session", "session", _v.Choice(ConnectionSession)),
        _v.Field("since", "since", _v.TIME),
        _v.Field("local_address", "localAddress", _v.TEXT, optional=True),
        _v.Field("remote_address", "remoteAddress", _v.TEXT, optional=True),
        _v.Field("interface", "interface", _v.TEXT, optional=True),
        _v.Field("avoided_interface", "avoidedInterface", _v.TEXT, optional=True),
        _v.Field("security", "security", _v.Nested(Security), optional=True),
        _v.Field("attempt", "attempt", _v.INTEGER),
        _v.Field("next_attempt_at", "nextAttemptAt", _v.TIME, optional=True),
        _v.Field("last_proof", "lastProof", _v.TIME, optional=True),
        _v.Field("last_failure", "lastFailure", _v.TEXT, optional=True),
        _v.Field("last_failure_cause", "lastFailureCause", _v.Choice(Cause), optional=True),
        _v.Field("unread_bytes", "unreadBytes", _v.INTEGER, optional=True),
        _v.Field("keepalive_interval", "keepaliveIntervalMilliseconds", _v.DURATION, optional=True),
        _v.Field("wake", "wake", _v.INTEGER, optional=True),
        _v.Field("wake_failed", "wakeFailed", _v.FLAG, optional=True),
        _v.Field("ends_with_agent", "endsWithAgent", _v.FLAG, optional=True),
        _v.Field("lacks_login", "lacksLogin", _v.FLAG, optional=True),
        _v.Field("up_since", "upSince", _v.TIME, optional=True),
        _v.Field("down_since", "downSince", _v.TIME, optional=True),
    )


class WakeReason(_v.OpenEnumeration):
    """Why a client is woken. Others may be added."""

    DATA = "data"
    """Bytes wait."""
    RECONNECTED = "reconnected"
    """A new socket is connected, and nobody is logged in on it."""
    KEEP_ALIVE = "keepAlive"
    """Its own keepalive is due."""
    OPENING_FAILED = "openingFailed"
    """The opening failed."""
    LOST = "lost"
    """The socket is gone."""
    CLIENT_DIED = "clientDied"
    """The client failed, or ended without parking."""
    START = "start"
    """The configuration says that it is launched at the start."""


class WakeMeans(_v.OpenEnumeration):
    """How a client is woken. Others may be added."""

    EVENT = "event"
    """One that it reads."""
    SIGNAL = "signal"
    """One that it is sent."""
    THAW = "thaw"
    """Its control group is thawed."""
    UNIT = "unit"
    """Its unit is started."""
    EXEC = "exec"
    """Its program is launched."""


class WakeStage(_v.OpenEnumeration):
    """Others may be added."""

    BEGAN = "began"
    """The client is to be woken."""
    JOINED = "joined"
    """There is one more reason."""
    ATTEMPTED = "attempted"
    """It is being woken by "means"."""
    ATTEMPT_FAILED = "attemptFailed"
    """That could not be done, "detail" says why."""
    ACKNOWLEDGED = "acknowledged"
    """By the client, by Acknowledge, Take or Park."""
    FAILED = "failed"
    """It is given up; another reason begins another wake."""
    PROGRAM_ENDED = "programEnded"
    """The program that was launched ended, "detail" says how."""
    OVERRAN = "overran"
    """The client has had the socket for longer than it may, and still has it."""


@dataclasses.dataclass(frozen=True, repr=False)
class Wake(_v.Value):
    """Something that happened to the wake of a connection's client. A wake stands until the client
    acknowledges it or takes the socket. The agent tries one means after the other, several times, and
    gives up in the end.
    """

    number: int
    """Its number, by which it is acknowledged."""
    stage: WakeStage
    """Others may be added. began: the client is to be woken. joined: there is one more reason.
    attempted: it is being woken by "means". attemptFailed: that could not be done, "detail" says why.
    acknowledged: by the client, by Acknowledge, Take or Park. failed: it is given up; another reason
    begins another wake. programEnded: the program that was launched ended, "detail" says how. overran:
    the client has had the socket for longer than it may, and still has it.
    """
    reasons: typing.Sequence[WakeReason]
    """Why the client is woken, the first reason first."""
    attempts: int
    """How many attempts were made."""
    means: typing.Optional[WakeMeans] = None
    """The means of the last attempt. Left out before the first attempt."""
    detail: typing.Optional[str] = None
    """What went wrong, or how the program ended, for a person."""
    after: typing.Optional[datetime.timedelta] = None
    """How long it took until it was acknowledged, or given up."""
    _wire = (
        _v.Field("number", "number", _v.INTEGER),
        _v.Field("stage", "stage", _v.Choice(WakeStage)),
        _v.Field("reasons", "reasons", _v.Array(_v.Choice(WakeReason))),
        _v.Field("means", "means", _v.Choice(WakeMeans), optional=True),
        _v.Field("attempts", "attempts", _v.INTEGER),
        _v.Field("detail", "detail", _v.TEXT, optional=True),
        _v.Field("after", "afterMilliseconds", _v.DURATION, optional=True),
    )


class EventKind(_v.OpenEnumeration):
    """What can happen to a connection. Others may be added: ignore unknown ones."""

    OPENED = "opened"
    """It is supervised from now on."""
    CONTINUED = "continued"
    """The agent was restarted and goes on with it, with its socket or without one."""
    STATE = "state"
    """It has entered the state that "connection" shows."""
    ADDRESS_FAILED = "addressFailed"
    """One of its remote's addresses failed, and the next one is tried."""
    ATTEMPT_BEGAN = "attemptBegan"
    """Another one is tried beside those that have not answered yet."""
    MOVE_FAILED = "moveFailed"
    """No socket could be connected over a better path, and the present one is kept."""
    CERTIFICATE_ENDS = "certificateEnds"
    """A certificate of its socket, the server's or the client's, expires within a week."""
    TAKEN = "taken"
    """A client has the socket."""
    PARKED = "parked"
    """The client gave it back."""
    ABANDONED = "abandoned"
    """The client ended without parking, and the socket was kept."""
    ARRIVED = "arrived"
    """Bytes for the client wait."""
    WAKE = "wake"
    """Something happened to the wake of its client, see "wake"."""
    SESSION_OPENED = "sessionOpened"
    """The agent logged in on a new socket, by the opening."""
    OPENING_FAILED = "openingFailed"
    """The server refused the opening, or repeatedly did not answer."""
    PATH_CHANGED = "pathChanged"
    """The route to its remote changed while its state did not."""
    RECONFIGURED = "reconfigured"
    """Its remote or settings changed."""
    CLOSED = "closed"
    """It is no longer supervised, by request or because a file now names a connection of its name and
    owner, as "reason" says.
    """


@dataclasses.dataclass(frozen=True, repr=False)
class Event(_v.Value):
    """Something that happened to a connection."""

    sequence: int
    """Numbers the events. With a service manager that keeps the agent's state, the numbers go on over
    restarts; otherwise a new run begins with a higher number than the last one ended with.
    """
    time: datetime.datetime
    """When it happened (RFC 3339)."""
    kind: EventKind
    """What happened."""
    connection: Connection
    """The connection after it."""
    reason: typing.Optional[str] = None
    """Why it happened, for a person."""
    cause: typing.Optional[Cause] = None
    """The same, for programs."""
    previous_state: typing.Optional[State] = None
    """The state before, the same where it did not change."""
    previous_duration: typing.Optional[datetime.timedelta] = None
    """How long the state before had lasted."""
    wake: typing.Optional[Wake] = None
    """What happened to the wake of its client."""
    _wire = (
        _v.Field("sequence", "sequence", _v.INTEGER),
        _v.Field("time", "time", _v.TIME),
        _v.Field("kind", "kind", _v.Choice(EventKind)),
        _v.Field("connection", "connection", _v.Nested(Connection)),
        _v.Field("reason", "reason", _v.TEXT, optional=True),
        _v.Field("cause", "cause", _v.Choice(Cause), optional=True),
        _v.Field("previous_state", "previousState", _v.Choice(State), optional=True),
        _v.Field("previous_duration", "previousDurationMilliseconds", _v.DURATION, optional=True),
        _v.Field("wake", "wake", _v.Nested(Wake), optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class NetworkChange(_v.Value):
    """A change of the path that packets take to the network as such."""

    time: datetime.datetime
    """When it happened (RFC 3339)."""
    changes: typing.Sequence[str]
    """The names of what changed, as in MonitorPath; empty where the agent began to watch."""
    status: Status
    """What it changed to. This and the fields up to "constrained" are those of a path of
    org.dialtone.Network.
    """
    supports_ipv4: bool
    """Whether IPv4 packets can leave."""
    supports_ipv6: bool
    """Whether IPv6 packets can leave."""
    supports_dns: bool
    """Whether a configured name server can be reached."""
    expensive: bool
    """Whether the interface's traffic costs money by volume."""
    constrained: bool
    """Whether the user asked to spare the interface."""
    reason: typing.Optional[Reason] = None
    """Why packets cannot leave."""
    interface: typing.Optional[str] = None
    """The name of the interface that packets leave by."""
    kind: typing.Optional[InterfaceKind] = None
    """What that interface leads to."""
    gateway: typing.Optional[str] = None
    """The next hop. Left out where there is none."""
    source: typing.Optional[str] = None
    """The source address that packets carry."""
    previous_status: typing.Optional[Status] = None
    """The status before, the same where it did not change."""
    previous_duration: typing.Optional[datetime.timedelta] = None
    """How long the status before had lasted."""
    _wire = (
        _v.Field("time", "time", _v.TIME),
        _v.Field("changes", "changes", _v.Array(_v.TEXT)),
        _v.Field("status", "status", _v.Choice(Status)),
        _v.Field("reason", "reason", _v.Choice(Reason), optional=True),
        _v.Field("interface", "interface", _v.TEXT, optional=True),
        _v.Field("kind", "kind", _v.Choice(InterfaceKind), optional=True),
        _v.Field("gateway", "gateway", _v.TEXT, optional=True),
        _v.Field("source", "source", _v.TEXT, optional=True),
        _v.Field("supports_ipv4", "supportsIPv4", _v.FLAG),
        _v.Field("supports_ipv6", "supportsIPv6", _v.FLAG),
        _v.Field("supports_dns", "supportsDNS", _v.FLAG),
        _v.Field("expensive", "expensive", _v.FLAG),
        _v.Field("constrained", "constrained", _v.FLAG),
        _v.Field("previous_status", "previousStatus", _v.Choice(Status), optional=True),
        _v.Field("previous_duration", "previousDurationMilliseconds", _v.DURATION, optional=True),
    )


class AgentChangeKind(_v.OpenEnumeration):
    """Others may be added."""

    STARTED = "started"
    """It began to work. After another "started" without an "ended" it had been killed, or had crashed."""
    ENDED = "ended"
    """It was told to end."""
    RESUMED = "resumed"
    """The machine woke from suspend."""


@dataclasses.dataclass(frozen=True, repr=False)
class AgentChange(_v.Value):
    """Something that happened to the agent itself."""

    time: datetime.datetime
    """When it happened (RFC 3339)."""
    kind: AgentChangeKind
    """Others may be added. started: it began to work. After another "started" without an "ended" it had
    been killed, or had crashed. ended: it was told to end. resumed: the machine woke from suspend.
    """
    slept: typing.Optional[datetime.timedelta] = None
    """How long the machine had slept."""
    _wire = (
        _v.Field("time", "time", _v.TIME),
        _v.Field("kind", "kind", _v.Choice(AgentChangeKind)),
        _v.Field("slept", "sleptMilliseconds", _v.DURATION, optional=True),
    )


class DroppedPart(_v.Enumeration):

    NETWORK = "network"
    """Of the network and the agent."""
    CONNECTIONS = "connections"
    """Of the connections of a user."""
    WAKES = "wakes"
    """Of the attempts to wake clients of that user, and of their acknowledgements; when a wake was
    given up is kept with the connections.
    """


@dataclasses.dataclass(frozen=True, repr=False)
class Dropped(_v.Value):
    """What of the history is no longer kept, for want of room."""

    part: DroppedPart
    """Network: of the network and the agent. connections: of the connections of a user. wakes: of the
    attempts to wake clients of that user, and of their acknowledgements; when a wake was given up is
    kept with the connections.
    """
    count: int
    """How much happened that is not kept."""
    until: datetime.datetime
    """When the oldest happened that is kept (RFC 3339)."""
    owner: typing.Optional[int] = None
    """The user."""
    _wire = (
        _v.Field("part", "part", _v.Choice(DroppedPart)),
        _v.Field("owner", "owner", _v.INTEGER, optional=True),
        _v.Field("count", "count", _v.INTEGER),
        _v.Field("until", "until", _v.TIME),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class OutageCount(_v.Value):
    """The outages of a connection up to some time. Metrics tells them by cause."""

    since: datetime.datetime
    """When the counting began (RFC 3339). Another time than before: the counts were reset."""
    count: int
    """How many, the one under way included."""
    down: datetime.timedelta
    """How long the connection was down in them."""
    is_under_way: bool
    """Whether one is under way."""
    _wire = (
        _v.Field("since", "since", _v.TIME),
        _v.Field("count", "count", _v.INTEGER),
        _v.Field("down", "downMilliseconds", _v.DURATION),
        _v.Field("is_under_way", "isUnderWay", _v.FLAG),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Histogram(_v.Value):
    """How long something took, each time that it happened. Empty where it never did."""

    counts: typing.Sequence[int]
    """How often, by bucket: the first one is up to the first bound that Metrics tells, the last one
    beyond the last bound.
    """
    sum_microseconds: int
    """All the times together."""
    _wire = (
        _v.Field("counts", "counts", _v.Array(_v.INTEGER)),
        _v.Field("sum_microseconds", "sumMicroseconds", _v.INTEGER),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class CauseCount(_v.Value):
    """How often something had a cause."""

    cause: Cause
    """The cause."""
    count: int
    """How often."""
    _wire = (
        _v.Field("cause", "cause", _v.Choice(Cause)),
        _v.Field("count", "count", _v.INTEGER),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class WakeCount(_v.Value):
    """The wakes that ended with one means."""

    acknowledged: Histogram
    """Those that the client acknowledged, and how long after they began."""
    failed: int
    """Those that were given up. One that is acknowledged after that is in both."""
    means: typing.Optional[WakeMeans] = None
    """The means of the last attempt. Left out: none was tried."""
    _wire = (
        _v.Field("means", "means", _v.Choice(WakeMeans), optional=True),
        _v.Field("acknowledged", "acknowledged", _v.Nested(Histogram)),
        _v.Field("failed", "failed", _v.INTEGER),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Counters(_v.Value):
    """What is counted of a connection. With a service manager that keeps the agent's state, the counts
    go on over restarts.
    """

    since: datetime.datetime
    """When the counting began (RFC 3339)."""
    outages: typing.Sequence[CauseCount]
    """How often it lost its socket and had no other one, or failed to get the first one, by the cause."""
    down: datetime.timedelta
    """How long it was down in these outages, the one under way included."""
    connected_dials: int
    """How many dials connected a socket, those over a better path included."""
    failed_dials: typing.Sequence[CauseCount]
    """How many dials failed, by the cause."""
    connect_time: Histogram
    """How long it took from the beginning of a dial to a socket that can be used, TLS included. Not of
    dials over a better path, during which the connection is up.
    """
    wakes: typing.Sequence[WakeCount]
    """The wakes of its client, by the means."""
    answered_messages: typing.Optional[int] = None
    """How many messages of its servers were answered, or dropped, while the client slept
    (AnsweredMessage).
    """
    _wire = (
        _v.Field("since", "since", _v.TIME),
        _v.Field("outages", "outages", _v.Array(_v.Nested(CauseCount))),
        _v.Field("down", "downMilliseconds", _v.DURATION),
        _v.Field("connected_dials", "connectedDials", _v.INTEGER),
        _v.Field("failed_dials", "failedDials", _v.Array(_v.Nested(CauseCount))),
        _v.Field("connect_time", "connectTime", _v.Nested(Histogram)),
        _v.Field("wakes", "wakes", _v.Array(_v.Nested(WakeCount))),
        _v.Field("answered_messages", "answeredMessages", _v.INTEGER, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class CountedConnection(_v.Value):
    """A connection and what is counted of it."""

    connection: Connection
    """The connection now."""
    counters: Counters
    """What is counted of it."""
    _wire = (
        _v.Field("connection", "connection", _v.Nested(Connection)),
        _v.Field("counters", "counters", _v.Nested(Counters)),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class ChangeCount(_v.Value):
    """How often something changed."""

    change: str
    """The name of what changed, as in MonitorPath of org.dialtone.Network."""
    count: int
    """How often."""
    _wire = (
        _v.Field("change", "change", _v.TEXT),
        _v.Field("count", "count", _v.INTEGER),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class CountedNetwork(_v.Value):
    """The network as such, now, and what is counted of it. The counts go on as those of connections do."""

    since: datetime.datetime
    """When the counting began (RFC 3339)."""
    status: Status
    """Whether packets can leave."""
    expensive: bool
    """Whether its traffic costs money by volume."""
    constrained: bool
    """Whether the user asked to spare it."""
    changes: typing.Sequence[ChangeCount]
    """How often the path changed, by the name of the change."""
    reason: typing.Optional[Reason] = None
    """Why they cannot."""
    kind: typing.Optional[InterfaceKind] = None
    """What the interface leads to that they leave by."""
    _wire = (
        _v.Field("since", "since", _v.TIME),
        _v.Field("status", "status", _v.Choice(Status)),
        _v.Field("reason", "reason", _v.Choice(Reason), optional=True),
        _v.Field("kind", "kind", _v.Choice(InterfaceKind), optional=True),
        _v.Field("expensive", "expensive", _v.FLAG),
        _v.Field("constrained", "constrained", _v.FLAG),
        _v.Field("changes", "changes", _v.Array(_v.Nested(ChangeCount))),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class AgentProcess(_v.Value):
    """The agent's process, now. What is counted begins with the process."""

    version: str
    """The version of the program."""
    started_at: datetime.datetime
    """When it began (RFC 3339)."""
    descriptor_limit: int
    """How many it may have open (RLIMIT_NOFILE)."""
    wake_ups: int
    """How often one of its threads gave up the processor to wait for something (ru_nvcsw,
    getrusage(2)).
    """
    overruns: int
    """How often the kernel dropped notices of the network, since they came faster than they were read."""
    resident_bytes: typing.Optional[int] = None
    """Its memory in bytes that is in RAM (VmRSS, proc_pid_status(5)). Left out: /proc cannot be read.
    This and the other fields that may be left out are asked of the kernel for this call.
    """
    descriptors: typing.Optional[int] = None
    """How many descriptors it has open."""
    _wire = (
        _v.Field("version", "version", _v.TEXT),
        _v.Field("started_at", "startedAt", _v.TIME),
        _v.Field("resident_bytes", "residentBytes", _v.INTEGER, optional=True),
        _v.Field("descriptors", "descriptors", _v.INTEGER, optional=True),
        _v.Field("descriptor_limit", "descriptorLimit", _v.INTEGER),
        _v.Field("wake_ups", "wakeUps", _v.INTEGER),
        _v.Field("overruns", "overruns", _v.INTEGER),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class ListReply(_v.Value):
    """What the agent answers to ``List``."""

    connections: typing.Sequence[Connection]
    """The connections."""
    _wire = (
        _v.Field("connections", "connections", _v.Array(_v.Nested(Connection))),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class List(_v.Method[ListReply]):
    """Returns the connections that the caller may see."""

    _method = "org.dialtone.Connections.List"
    _reply = ListReply


class MonitorKind(_v.Enumeration):

    SNAPSHOT = "snapshot"
    """All connections."""
    CHANGE = "change"
    """One event."""
    GAP = "gap"
    """Events were dropped because the subscriber read too slowly, or those after "after" are no longer
    there; all connections, as in a snapshot.
    """


@dataclasses.dataclass(frozen=True, repr=False)
class MonitorReply(_v.Value):
    """What the agent answers to ``Monitor``."""

    sequence: int
    """The sequence up to which this reply brings the subscriber; what to resume after."""
    kind: MonitorKind
    """Snapshot: all connections. change: one event. gap: events were dropped because the subscriber
    read too slowly, or those after "after" are no longer there; all connections, as in a snapshot.
    """
    connections: typing.Sequence[Connection]
    """All connections in a snapshot and a gap, the one concerned in a change."""
    event: typing.Optional[Event] = None
    """What happened, in a change."""
    _wire = (
        _v.Field("sequence", "sequence", _v.INTEGER),
        _v.Field("kind", "kind", _v.Choice(MonitorKind)),
        _v.Field("connections", "connections", _v.Array(_v.Nested(Connection))),
        _v.Field("event", "event", _v.Nested(Event), optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Monitor(_v.StreamMethod[MonitorReply]):
    """The connections and each change of them. The first reply is a snapshot of all; or, if "after" is
    the sequence of an earlier reply and nothing since was dropped, the first change after it.
    """

    names: typing.Optional[typing.Sequence[str]] = None
    """Only connections of these names. Left out: all that the caller may see."""
    owner: typing.Optional[int] = None
    """Only connections of this user."""
    after: typing.Optional[int] = None
    """Go on after the event of this sequence."""
    _method = "org.dialtone.Connections.Monitor"
    _reply = MonitorReply
    _wire = (
        _v.Field("names", "names", _v.Array(_v.TEXT), optional=True),
        _v.Field("owner", "owner", _v.INTEGER, optional=True),
        _v.Field("after", "after", _v.INTEGER, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class HistoryReply(_v.Value):
    """What the agent answers to ``History``."""

    event: typing.Optional[Event] = None
    """What happened to a connection."""
    network: typing.Optional[NetworkChange] = None
    """What happened to the network."""
    agent: typing.Optional[AgentChange] = None
    """What happened to the agent."""
    dropped: typing.Optional[Dropped] = None
    """What of that time is no longer kept; such replies come first."""
    uptime: typing.Optional[datetime.timedelta] = None
    """How long the machine had been up when it happened, its sleep included. From one start of the
    agent to its end it tells how much later one thing happened than another, also where the wall clock
    was set in between.
    """
    omitted: typing.Optional[int] = None
    """How many events of the same owner right before this one are left out, because there were too
    many.
    """
    outages: typing.Optional[OutageCount] = None
    """Of an event that is no wake: the outages of its connection up to then. The difference between two
    events tells the outages between them, also if the events between them are no longer kept.
    """
    _wire = (
        _v.Field("event", "event", _v.Nested(Event), optional=True),
        _v.Field("network", "network", _v.Nested(NetworkChange), optional=True),
        _v.Field("agent", "agent", _v.Nested(AgentChange), optional=True),
        _v.Field("dropped", "dropped", _v.Nested(Dropped), optional=True),
        _v.Field("uptime", "uptimeMilliseconds", _v.DURATION, optional=True),
        _v.Field("omitted", "omitted", _v.INTEGER, optional=True),
        _v.Field("outages", "outages", _v.Nested(OutageCount), optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class History(_v.StreamMethod[HistoryReply]):
    """What happened, the oldest first, as far back as it is kept: over restarts of the agent, in some
    megabytes. Each reply but the last has one of the four, and the last has none. Steps on the way to a
    socket (resolving, connecting, securing) and attempts beside others are left out.
    """

    names: typing.Optional[typing.Sequence[str]] = None
    """Only connections of these names, and nothing of the network. Left out: all that the caller may
    see, and the network.
    """
    owner: typing.Optional[int] = None
    """Only connections of this user."""
    since: typing.Optional[datetime.datetime] = None
    """Only what happened then or later (RFC 3339)."""
    _method = "org.dialtone.Connections.History"
    _reply = HistoryReply
    _wire = (
        _v.Field("names", "names", _v.Array(_v.TEXT), optional=True),
        _v.Field("owner", "owner", _v.INTEGER, optional=True),
        _v.Field("since", "since", _v.TIME, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class MetricsReply(_v.Value):
    """What the agent answers to ``Metrics``."""

    bounds_microseconds: typing.Sequence[int]
    """The upper bounds of the buckets of each Histogram, in microseconds, the lowest first. A later
    version may have others.
    """
    network: CountedNetwork
    """The network as such."""
    agent: AgentProcess
    """The agent's process."""
    connections: typing.Sequence[CountedConnection]
    """The connections."""
    _wire = (
        _v.Field("bounds_microseconds", "boundsMicroseconds", _v.Array(_v.INTEGER)),
        _v.Field("network", "network", _v.Nested(CountedNetwork)),
        _v.Field("agent", "agent", _v.Nested(AgentProcess)),
        _v.Field("connections", "connections", _v.Array(_v.Nested(CountedConnection))),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Metrics(_v.Method[MetricsReply]):
    """Returns what can be measured of the connections that the caller may see, of the network, and of
    the agent.
    """

    _method = "org.dialtone.Connections.Metrics"
    _reply = MetricsReply


@dataclasses.dataclass(frozen=True, repr=False)
class OpenReply(_v.Value):
    """What the agent answers to ``Open``."""

    name: str
    """The name it got."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Open(_v.Method[OpenReply]):
    """Supervises a connection from now on. It belongs to the caller's user."""

    remote: str
    """Where it leads: tcp://host:port, tls://host:port, or another scheme."""
    name: typing.Optional[str] = None
    """Its name, which none of the caller's connections has. Left out: one is made from the remote."""
    settings: typing.Optional[Settings] = None
    """How it is kept."""
    _method = "org.dialtone.Connections.Open"
    _reply = OpenReply
    _wire = (
        _v.Field("remote", "remote", _v.TEXT),
        _v.Field("name", "name", _v.TEXT, optional=True),
        _v.Field("settings", "settings", _v.Nested(Settings), optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Close(_v.Method[_v.Nothing]):
    """Closes a connection and supervises it no longer."""

    name: str
    """Its name, among those of its owner."""
    owner: typing.Optional[int] = None
    """Whose it is: the user's number."""
    _method = "org.dialtone.Connections.Close"
    _reply = _v.Nothing
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("owner", "owner", _v.INTEGER, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Redial(_v.Method[_v.Nothing]):
    """Drops the connection's socket, if there is one, and dials at once, whatever it was waiting for.
    With "afterMilliseconds" it waits that long, even if the network comes back in the meantime: for a
    client that the server told to come later (Retry-After). Longer than a day counts as a day.
    """

    name: str
    """Its name, among those of its owner."""
    owner: typing.Optional[int] = None
    """Whose it is: the user's number."""
    after: typing.Optional[datetime.timedelta] = None
    """How long to wait before it is dialled. Left out: not at all."""
    _method = "org.dialtone.Connections.Redial"
    _reply = _v.Nothing
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("owner", "owner", _v.INTEGER, optional=True),
        _v.Field("after", "afterMilliseconds", _v.DURATION, optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class TakeReply(_v.Value):
    """What the agent answers to ``Take``."""

    connection: Connection
    """The connection. What it says of a socket is about its newest one: this one, owned by the client,
    unless it is over.
    """
    file_descriptor: int
    """The place of the descriptor."""
    epoch: int
    """The number of the socket, to park it with."""
    is_over: bool
    """Whether the socket has ended: what it received before can still be read, and then the end. The
    next Take gives the socket that took its place. If nothing was read before, it gives this one once
    more, for a caller that lost it.
    """
    _wire = (
        _v.Field("connection", "connection", _v.Nested(Connection)),
        _v.Field("file_descriptor", "fileDescriptor", _v.INTEGER),
        _v.Field("epoch", "epoch", _v.INTEGER),
        _v.Field("is_over", "isOver", _v.FLAG),
    )


class TakeUntil(_v.Enumeration):
    """What to wait for. Left out: nothing."""

    FLOW = "flow"
    """A socket that can be taken."""
    DATA = "data"
    """Bytes that can be read, from the socket or from one that has ended."""


@dataclasses.dataclass(frozen=True, repr=False)
class Take(_v.Method[TakeReply]):
    """Gives the caller the connection's socket, to read and write it; NotReady while there is none, and
    HeldByClient while another process owns it. Until the socket is parked, Dialtone only watches for
    its end. Dialtone keeps a copy: a caller that ends before it has read or written anything loses no
    byte. The descriptor is a connected stream socket, blocking; with TLS it is one end of a pair of
    Unix sockets that carries the plaintext. O_NONBLOCK is shared by all copies: a client that sets it
    clears it before parking.

    With "until" the call waits instead of failing. A caller that waits counts as a client that watches
    the connection, as with Monitor.

    Descriptors ride on the first byte of their message (SCM_RIGHTS), and a message with descriptors is
    a sendmsg of its own. A field names each by its place among them, beginning with 0.
    """

    name: str
    """Its name, among those of its owner."""
    owner: typing.Optional[int] = None
    """Whose it is: the user's number."""
    until: typing.Optional[TakeUntil] = None
    """What to wait for. Left out: nothing. flow: a socket that can be taken. data: bytes that can be
    read, from the socket or from one that has ended.
    """
    _method = "org.dialtone.Connections.Take"
    _reply = TakeReply
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("owner", "owner", _v.INTEGER, optional=True),
        _v.Field("until", "until", _v.Choice(TakeUntil), optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Park(_v.Method[_v.Nothing]):
    """Gives the socket of this number back: the caller is logged in on it, is between two messages, and
    closes its own descriptors. Dialtone keeps it alive and wakes the client when something arrives.
    StaleEpoch if another socket has taken its place: the caller closes this one, and takes that one. A
    socket on which the server refused the opening and hung up can be parked with another opening, which
    is tried at once.
    """

    name: str
    """Its name, among those of its owner."""
    epoch: int
    """The number of the socket, as Take gave it."""
    owner: typing.Optional[int] = None
    """Whose it is: the user's number."""
    opening: typing.Optional[typing.Sequence[OpeningStep]] = None
    """What is said on each new socket from now on to log in for the client: in place of what Open or
    the configuration says, until another Park, or until the connection leads to another remote. Empty:
    nothing. Left out: as before.
    """
    answers: typing.Optional[typing.Sequence[AnsweredMessage]] = None
    """What Dialtone answers from now on while the connection is parked; likewise. "handled" is of this
    call alone.
    """
    _method = "org.dialtone.Connections.Park"
    _reply = _v.Nothing
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("owner", "owner", _v.INTEGER, optional=True),
        _v.Field("epoch", "epoch", _v.INTEGER),
        _v.Field("opening", "opening", _v.Array(_v.Nested(OpeningStep)), optional=True),
        _v.Field("answers", "answers", _v.Array(_v.Nested(AnsweredMessage)), optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class AdoptReply(_v.Value):
    """What the agent answers to ``Adopt``."""

    name: str
    """The name it got."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Adopt(_v.Method[AdoptReply]):
    """Supervises a socket that the caller opened: a connected TCP socket on which the caller is logged
    in. The connection belongs to the caller's user, and is parked.
    """

    name: str
    """Its name."""
    file_descriptor: int
    """The place of the socket among the descriptors that ride on the call, as in Take.
    InvalidDescriptor for one that is no connected TCP socket.
    """
    remote: typing.Optional[str] = None
    """Where to dial when the socket is lost. Left out: nowhere, and the connection ends with the
    socket.
    """
    settings: typing.Optional[Settings] = None
    """How it is kept. TLS and the opening count for the sockets that Dialtone dials."""
    _method = "org.dialtone.Connections.Adopt"
    _reply = AdoptReply
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("file_descriptor", "fileDescriptor", _v.INTEGER),
        _v.Field("remote", "remote", _v.TEXT, optional=True),
        _v.Field("settings", "settings", _v.Nested(Settings), optional=True),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Acknowledge(_v.Method[_v.Nothing]):
    """Says that the caller takes care of what it was woken for. The wake of this number is not
    repeated. It is no error if that wake is over.
    """

    name: str
    """Its name, among those of its owner."""
    wake: int
    """The number of the wake."""
    owner: typing.Optional[int] = None
    """Whose it is: the user's number."""
    _method = "org.dialtone.Connections.Acknowledge"
    _reply = _v.Nothing
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("owner", "owner", _v.INTEGER, optional=True),
        _v.Field("wake", "wake", _v.INTEGER),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class KeepAliveReply(_v.Value):
    """What the agent answers to ``KeepAlive``."""

    limit: datetime.timedelta
    """How long the caller may have the socket."""
    wake: typing.Optional[int] = None
    """The number of the wake that this call is. Left out in the first reply."""
    _wire = (
        _v.Field("wake", "wake", _v.INTEGER, optional=True),
        _v.Field("limit", "limitMilliseconds", _v.DURATION),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class KeepAlive(_v.StreamMethod[KeepAliveReply]):
    """Calls the caller when a keepalive is due, for a protocol that Dialtone does not know. The first
    reply says that it is agreed. Each further one is a call, which comes while the socket is parked:
    earlier than the timeout if it can share a wake-up with others, never later. A call is a wake: the
    caller acknowledges it, takes the socket, sends its keepalive and parks the socket. A caller that
    takes longer than it may is reported, and its connection stays watched. The calls end when the
    caller hangs up, and with a last reply without a wake when another KeepAlive takes the place of this
    one.
    """

    name: str
    """Its name, among those of its owner."""
    timeout: datetime.timedelta
    """How long the server waits to hear from the client. The client is called ten seconds before that,
    which is its time to send. To share a wake-up it is called earlier, by up to a quarter of the rest:
    every 15 to 20 s for 30 s. InvalidTimeout if it makes no sense for the connection.
    """
    owner: typing.Optional[int] = None
    """Whose it is: the user's number."""
    wake_machine: typing.Optional[bool] = None
    """Whether to wake a sleeping machine for it. For root and the daemon's own user; PermissionDenied
    to others.
    """
    _method = "org.dialtone.Connections.KeepAlive"
    _reply = KeepAliveReply
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("owner", "owner", _v.INTEGER, optional=True),
        _v.Field("timeout", "timeoutMilliseconds", _v.DURATION),
        _v.Field("wake_machine", "wakeMachine", _v.FLAG, optional=True),
    )


@dataclasses.dataclass(eq=False, repr=False)
class NoSuchConnection(_Refused):
    """There is no connection of this name, or it is not for the caller to see."""

    name: str
    """The name."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class AmbiguousName(_Refused):
    """Several users have a connection of this name, and the caller, who is root, did not say whose is
    meant by "owner".
    """

    name: str
    """The name."""
    owners: typing.Sequence[int]
    """The numbers of the users who have one."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("owners", "owners", _v.Array(_v.INTEGER)),
    )


@dataclasses.dataclass(eq=False, repr=False)
class NameTaken(_Refused):
    """The caller has a connection of this name already."""

    name: str
    """The name."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class NotOwner(_Refused):
    """The connection belongs to another user."""

    name: str
    """The connection's name."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class InvalidRemote(_Refused):
    """The remote cannot be dialled."""

    remote: str
    """What was given."""
    reason: str
    """What is wrong with it, for a person."""
    _wire = (
        _v.Field("remote", "remote", _v.TEXT),
        _v.Field("reason", "reason", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class InvalidOpening(_Refused):
    """The opening cannot be played."""

    reason: str
    """What is wrong with it, for a person."""
    _wire = (
        _v.Field("reason", "reason", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class Suspended(_Refused):
    """The agent refuses every call of the caller's user for a while: it crashed repeatedly while it
    answered that user.
    """

    reason: str
    """Why, for a person."""
    seconds: int
    """How much longer."""
    _wire = (
        _v.Field("reason", "reason", _v.TEXT),
        _v.Field("seconds", "seconds", _v.INTEGER),
    )


@dataclasses.dataclass(eq=False, repr=False)
class StaleEpoch(_Refused):
    """The socket of this number is over."""

    name: str
    """The connection's name."""
    epoch: int
    """The number of the newest socket."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("epoch", "epoch", _v.INTEGER),
    )


@dataclasses.dataclass(eq=False, repr=False)
class NotReady(_Refused):
    """The connection has no socket for that."""

    name: str
    """The connection's name."""
    state: State
    """What it is doing."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("state", "state", _v.Choice(State)),
    )


@dataclasses.dataclass(eq=False, repr=False)
class InvalidTimeout(_Refused):
    """Calls with this timeout would not keep the connection alive, or nobody would answer them."""

    name: str
    """The connection's name."""
    reason: str
    """What is wrong with it, for a person."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("reason", "reason", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class HeldByClient(_Refused):
    """Another process owns the connection's socket, and only that process may take it again."""

    name: str
    """The connection's name."""
    process: int
    """The number of the process; 0 if it is not known, or is in another PID namespace. It owns the
    socket until it parks it.
    """
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("process", "process", _v.INTEGER),
    )


@dataclasses.dataclass(eq=False, repr=False)
class NotTaken(_Refused):
    """Nobody has taken the socket that the caller wants to park."""

    name: str
    """The connection's name."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class InvalidDescriptor(_Refused):
    """What came with the call cannot be supervised."""

    name: str
    """The connection's name."""
    reason: str
    """What is wrong with it, for a person."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("reason", "reason", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class SystemFailure(_Refused):
    """The kernel refused something."""

    name: str
    """The connection's name."""
    reason: str
    """What was tried, and what came back."""
    _wire = (
        _v.Field("name", "name", _v.TEXT),
        _v.Field("reason", "reason", _v.TEXT),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class GetInfoReply(_v.Value):
    """What the agent answers to ``GetInfo``."""

    vendor: str
    """Who made it."""
    product: str
    """What it is."""
    version: str
    """Which release of it."""
    url: str
    """Where to read about it."""
    interfaces: typing.Sequence[str]
    """The names of the interfaces, this one among them."""
    _wire = (
        _v.Field("vendor", "vendor", _v.TEXT),
        _v.Field("product", "product", _v.TEXT),
        _v.Field("version", "version", _v.TEXT),
        _v.Field("url", "url", _v.TEXT),
        _v.Field("interfaces", "interfaces", _v.Array(_v.TEXT)),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class GetInfo(_v.Method[GetInfoReply]):
    """Returns who made the service, and which interfaces it has."""

    _method = "org.varlink.service.GetInfo"
    _reply = GetInfoReply


@dataclasses.dataclass(frozen=True, repr=False)
class GetInterfaceDescriptionReply(_v.Value):
    """What the agent answers to ``GetInterfaceDescription``."""

    description: str
    """The definition, in Varlink's language."""
    _wire = (
        _v.Field("description", "description", _v.TEXT),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class GetInterfaceDescription(_v.Method[GetInterfaceDescriptionReply]):
    """Returns the definition of an interface."""

    interface: str
    """The interface's name."""
    _method = "org.varlink.service.GetInterfaceDescription"
    _reply = GetInterfaceDescriptionReply
    _wire = (
        _v.Field("interface", "interface", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class InterfaceNotFound(_Refused):
    """There is no such interface."""

    interface: str
    """The one that was asked for."""
    _wire = (
        _v.Field("interface", "interface", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class MethodNotFound(_Refused):
    """The interface has no such method."""

    method: str
    """The method that was called, with its interface."""
    _wire = (
        _v.Field("method", "method", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class MethodNotImplemented(_Refused):
    """The interface has the method, this service does not implement it."""

    method: str
    """The method that was called, with its interface."""
    _wire = (
        _v.Field("method", "method", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class InvalidParameter(_Refused):
    """A parameter is unknown, missing, of the wrong type or of a value that is not allowed."""

    parameter: str
    """Which, as "outer.inner[2]"."""
    _wire = (
        _v.Field("parameter", "parameter", _v.TEXT),
    )


@dataclasses.dataclass(eq=False, repr=False)
class PermissionDenied(_Refused):
    """The caller may not do that."""



@dataclasses.dataclass(eq=False, repr=False)
class ExpectedMore(_Refused):
    """The method answers with a stream and must be called with "more"."""



ERRORS: typing.Dict[str, _v.KnownError] = {
    "org.dialtone.Network.InvalidTarget": (
        InvalidTarget,
        "The target makes no sense, or there is no interface of the name to ignore",
    ),
    "org.dialtone.Network.ForeignNetwork": (
        ForeignNetwork,
        "The target is a name, and the caller is in another network namespace than the agent",
    ),
    "org.dialtone.Network.OutOfResources": (
        OutOfResources,
        "The agent is near the limit of its memory or its descriptors, or the kernel says that memory is "
        "short",
    ),
    "org.dialtone.Network.QuotaExceeded": (
        QuotaExceeded,
        "The caller's user has as many subscriptions as one may have",
    ),
    "org.dialtone.Connections.NoSuchConnection": (
        NoSuchConnection,
        "There is no connection of this name, or it is not for the caller to see",
    ),
    "org.dialtone.Connections.AmbiguousName": (
        AmbiguousName,
        "Several users have a connection of this name, and the caller, who is root, did not say whose is "
        "meant by \"owner\"",
    ),
    "org.dialtone.Connections.NameTaken": (
        NameTaken,
        "The caller has a connection of this name already",
    ),
    "org.dialtone.Connections.NotOwner": (
        NotOwner,
        "The connection belongs to another user",
    ),
    "org.dialtone.Connections.InvalidRemote": (
        InvalidRemote,
        "The remote cannot be dialled",
    ),
    "org.dialtone.Connections.InvalidOpening": (
        InvalidOpening,
        "The opening cannot be played",
    ),
    "org.dialtone.Connections.QuotaExceeded": (
        QuotaExceeded,
        "The caller's user has as many connections, or subscriptions, as one may have",
    ),
    "org.dialtone.Connections.Suspended": (
        Suspended,
        "The agent refuses every call of the caller's user for a while: it crashed repeatedly while it "
        "answered that user",
    ),
    "org.dialtone.Connections.OutOfResources": (
        OutOfResources,
        "The agent is near the limit of its memory or its descriptors, or the kernel says that memory is "
        "short",
    ),
    "org.dialtone.Connections.StaleEpoch": (
        StaleEpoch,
        "The socket of this number is over",
    ),
    "org.dialtone.Connections.NotReady": (
        NotReady,
        "The connection has no socket for that",
    ),
    "org.dialtone.Connections.InvalidTimeout": (
        InvalidTimeout,
        "Calls with this timeout would not keep the connection alive, or nobody would answer them",
    ),
    "org.dialtone.Connections.HeldByClient": (
        HeldByClient,
        "Another process owns the connection's socket, and only that process may take it again",
    ),
    "org.dialtone.Connections.NotTaken": (
        NotTaken,
        "Nobody has taken the socket that the caller wants to park",
    ),
    "org.dialtone.Connections.InvalidDescriptor": (
        InvalidDescriptor,
        "What came with the call cannot be supervised",
    ),
    "org.dialtone.Connections.SystemFailure": (
        SystemFailure,
        "The kernel refused something",
    ),
    "org.dialtone.Connections.ForeignNetwork": (
        ForeignNetwork,
        "The caller is in another network namespace than the agent, whose connections it would get: Open, "
        "Adopt and Take are for callers in the agent's own, and for users whom its configuration admits",
    ),
    "org.varlink.service.InterfaceNotFound": (
        InterfaceNotFound,
        "There is no such interface",
    ),
    "org.varlink.service.MethodNotFound": (
        MethodNotFound,
        "The interface has no such method",
    ),
    "org.varlink.service.MethodNotImplemented": (
        MethodNotImplemented,
        "The interface has the method, this service does not implement it",
    ),
    "org.varlink.service.InvalidParameter": (
        InvalidParameter,
        "A parameter is unknown, missing, of the wrong type or of a value that is not allowed",
    ),
    "org.varlink.service.PermissionDenied": (
        PermissionDenied,
        "The caller may not do that",
    ),
    "org.varlink.service.ExpectedMore": (
        ExpectedMore,
        "The method answers with a stream and must be called with \"more\"",
    ),
}

__all__ = [
    "Acknowledge", "Adopt", "AdoptReply", "AgentChange", "AgentChangeKind", "AgentProcess",
    "AmbiguousName", "AnsweredMessage", "Backoff", "Cause", "CauseCount", "ChangeCount", "Close",
    "Connection", "ConnectionHolder", "ConnectionSession", "CountedConnection", "CountedNetwork",
    "Counters", "Dropped", "DroppedPart", "Event", "EventKind", "ExpectedMore", "Explain",
    "ExplainReply", "ForeignNetwork", "GetInfo", "GetInfoReply", "GetInterfaceDescription",
    "GetInterfaceDescriptionReply", "GetPath", "GetPathReply", "HeldByClient", "Histogram", "History",
    "HistoryReply", "Interface", "InterfaceCostSource", "InterfaceKind", "InterfaceNotFound",
    "InvalidDescriptor", "InvalidOpening", "InvalidParameter", "InvalidRemote", "InvalidTarget",
    "InvalidTimeout", "KeepAlive", "KeepAliveReply", "Keepalive", "List", "ListInterfaces",
    "ListInterfacesReply", "ListReply", "MethodNotFound", "MethodNotImplemented", "Metrics",
    "MetricsReply", "Monitor", "MonitorKind", "MonitorPath", "MonitorPathReply", "MonitorReply",
    "NameTaken", "NetworkChange", "NoSuchConnection", "NotOwner", "NotReady", "NotTaken", "Open",
    "OpenReply", "OpeningAnswer", "OpeningStep", "OutOfResources", "OutageCount", "Park", "Path",
    "PermissionDenied", "QuotaExceeded", "Reason", "Redial", "Security", "SecurityAssurance",
    "Settings", "SocketSettings", "StaleEpoch", "State", "Status", "Step", "StepSubject", "Suspended",
    "SystemFailure", "TLS", "Take", "TakeReply", "TakeUntil", "Target", "TargetProtocol", "Wake",
    "WakeCount", "WakeMeans", "WakeReason", "WakeStage",
]
