"""Results of runs, with the fields of ``tack sim --json`` (docs/scenario.md).

Times have their unit in the name (``_s``, ``_us``), rates are bits per second (``_bps``), lengths are
bytes unless a field says packets, and shares are numbers from 0 to 1.
"""

from __future__ import annotations

import functools
import types
import typing
from dataclasses import dataclass, fields
from typing import Any


class _Record:
    """What all records have in common: from a dictionary and back."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, values: dict[str, Any]):
        """The record of a dictionary such as :meth:`to_dict` gives."""
        record = {}
        for name, (key, kind, many) in _shape(cls).items():
            if key not in values:
                continue  # A field that is left out has a default.
            value = values[key]
            if kind is not None and value is not None:
                value = [kind.from_dict(one) for one in value] if many else kind.from_dict(value)
            record[name] = value
        return cls(**record)

    def to_dict(self) -> dict[str, Any]:
        """Nested dictionaries with the names of the JSON output. Fields that do not apply
        to a run are left out."""
        values = {}
        for name, (key, kind, many) in _shape(type(self)).items():
            value = getattr(self, name)
            if value is None and _is_optional(type(self), name):
                continue
            if kind is not None and value is not None:
                value = [one.to_dict() for one in value] if many else value.to_dict()
            values[key] = value
        return values


@functools.cache
def _shape(cls: type) -> dict[str, tuple[str, type | None, bool]]:
    """For each field: its key in JSON, the kind of record that it holds, and whether it is a
    list of them."""
    hints = typing.get_type_hints(cls)
    shape = {}
    for field in fields(cls):
        hint, kind, many = hints[field.name], None, False
        for part in _parts(hint):
            origin = typing.get_origin(part)
            if origin is list:
                (inner,) = typing.get_args(part)
                many = isinstance(inner, type) and issubclass(inner, _Record)
                kind = inner if many else None
            elif isinstance(part, type) and issubclass(part, _Record):
                kind = part
        shape[field.name] = (field.name.rstrip("_"), kind, many)
    return shape


def _parts(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the one type."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


@functools.cache
def _is_optional(cls: type, name: str) -> bool:
    """Whether the JSON output leaves the field out where it does not apply: then it has a
    default."""
    return any(field.name == name and field.default is None for field in fields(cls))


@dataclass(frozen=True, slots=True, kw_only=True)
class Path(_Record):
    """What happened to the packets of one direction."""

    packets: int
    """Packets that entered."""
    bytes: int
    """Bytes of them."""
    delivered: int
    """Packets that arrived, copies included."""
    queue_drops: int
    """Dropped because the queue was full."""
    lost: int
    """Lost at random."""
    blacked_out: int
    """Lost in a blackout."""
    too_large: int
    """Lost because of their size."""
    corrupted: int
    """Damaged."""
    reordered: int
    """Delayed beyond packets behind them."""
    duplicated: int
    """Copies made."""
    marked: int
    """Marked congestion experienced."""
    stripped: int
    """Packets that lost options."""
    queue_max: int
    """Longest queue, packets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired(_Record):
    """Counters of both directions."""

    forward: Path
    """Server to client."""
    reverse: Path
    """Client to server."""
    checksum_drops: int
    """Damaged packets that the hosts' checksums caught."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcksByKind(_Record):
    """Acknowledgements by what made them leave."""

    tack: int
    """The periodic kind of TACK."""
    iack_loss: int
    """At once, on a sign of loss or disorder."""
    iack_window: int
    """At once, because of the window."""
    iack_sync: int
    """At once, to agree on the frequency."""
    iack_event: int
    """At once, on an event of the connection: handshake, FIN, duplicate, mark, challenge."""
    delayed: int
    """By count or timer of a per-packet or delayed policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedBy(_Record):
    """Shares of time, 0 to 1."""

    cwnd: float
    """The congestion window."""
    rwnd: float
    """The receiver's window."""
    pacing: float
    """The pacer."""
    app: float
    """Nothing to send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests(_Record):
    """Exchanges of a request app, from the first byte of the request written to the last byte
    of the response read."""

    completed: int
    """Exchanges completed."""
    latency_p50_us: int
    """Median latency, microseconds."""
    latency_p95_us: int
    """95th percentile."""
    latency_p99_us: int
    """99th percentile."""
    latency_max_us: int
    """The longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Video(_Record):
    """What the viewer of a video got. Over TCP the player waits for what is late; over UDP it
    shows what is there."""

    frames: int
    """Frames made by the source."""
    frames_late: int
    """Frames that were not complete when a player that never stops would have shown them."""
    startup_s: float | None
    """From the first frame made to the first frame shown, seconds of the whole flow; ``None``
    when none was shown."""
    rebufferings: int | None
    """How often the player stopped; ``None`` for UDP."""
    rebuffering_share: float | None
    """Share of the time since the first frame shown in which the player stood still, 1 when
    none was shown; ``None`` for UDP."""
    macroblocking_share: float | None
    """Share of the frames shown of which something was missing; ``None`` for TCP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow(_Record):
    """Figures of one flow."""

    id: int
    """Position in the scenario, from 0."""
    from_: str
    """Sending host."""
    to: str
    """Receiving host."""
    transport: str
    """``tcp`` or ``udp``."""
    congestion: str | None
    """Congestion control of the sender; ``None`` for UDP."""
    ack: str | None
    """Acknowledgement policy, for UDP as ``ack_every=2,ack_size=64``; ``None`` for UDP without
    acknowledgements."""
    goodput_bps: float
    """Payload delivered to the receiving application, bits per second of the measured time."""
    bytes_delivered: int
    """Payload bytes delivered to the receiving application."""
    data_segments: int
    """Segments with payload that the sender sent, retransmissions included."""
    retransmitted_segments: int
    """Segments that carried bytes sent before."""
    spurious_retransmissions: int
    """Retransmissions that turned out to be unnecessary."""
    acks: int
    """Pure acknowledgements that the receiver sent."""
    acks_by_kind: AcksByKind
    """Those that have a kind, by kind."""
    acks_by_timer: int
    """Of ``tack`` and ``delayed``, those that a timer released: the others waited for a count
    of segments."""
    invalid_reports: int
    """Reports of the receiver that the sender refused, because they say what cannot be."""
    ack_bytes: int
    """Bytes of the acknowledgements, transport header included."""
    syncs: int
    """What the sender tells a receiver that decides by itself when to acknowledge (TACK):
    RTTmin, losses of acknowledgements."""
    tlp_count: int
    """Tail loss probes that the sender sent."""
    rto_count: int
    """Retransmission timeouts."""
    min_rtt_us: int | None
    """Smallest round-trip time of the connection, microseconds."""
    srtt_us: int | None
    """Smoothed round-trip time at the end, microseconds."""
    owd_p50_us: int | None
    """Median one-way delay of data packets, host to host, microseconds."""
    owd_p95_us: int | None
    """95th percentile of it."""
    blocked_bytes_p50: int
    """Median of bytes held back at the receiver because something before them is missing,
    looked at whenever data comes."""
    blocked_bytes_p99: int
    """99th percentile of it."""
    completion_s: float | None
    """Time from the flow's start to the delivery of its last byte; ``None`` for a flow without
    an end, or not finished."""
    limited_by: LimitedBy
    """Shares of the measured time that something kept the sender from sending."""
    limited_by_overall: LimitedBy
    """The same of the whole connection, warm-up included: a window that was scarce while the
    flow began shows here."""
    stalls: int
    """How often a sender of the connection, at either end, did not get on although the path
    delivered, or did not send its oldest unacknowledged byte again in time. Of the whole run:
    none is ever right."""
    no_progress_max_s: float
    """Longest time that the oldest unacknowledged byte of either end stayed the same while the
    receiver read, whatever the reason, seconds of the whole run."""
    closed: tuple[str | None, str | None]
    """How the connection ended at ``from`` and at ``to``: ``graceful``, ``reset``, ``refused``,
    ``timed_out``, ``aborted``; ``None`` while it lasts, and for UDP."""
    requests: Requests | None = None
    """Figures of a request app; left out for others."""
    video: Video | None = None
    """Figures of a video; left out for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hack(_Record):
    """Counters of TCP/HACK. Acknowledgements count where they were made, unless said otherwise."""

    native_acks: int
    """Acknowledgements that were sent as they are."""
    compressed_acks: int
    """Acknowledgements that were compressed."""
    compressed_bytes: int
    """Bytes of them, as the codec made them."""
    original_bytes: int
    """Bytes of them before."""
    mean_compressed: float
    """Bytes of a compressed one, on average."""
    flushed: int
    """Compressed ones that were sent as they are in the end."""
    cleared: int
    """Compressed ones that a response carried, and that were cleared before it was confirmed."""
    carried: int
    """Compressed ones in responses, each repetition counted."""
    lengthened: int
    """Responses that carried something."""
    fitting: int
    """Those that AIFS of best effort (DIFS) protects."""
    fitting_share: float
    """Their share."""
    retained_max: int
    """Most compressed ones retained for one radio at once."""
    msn: int
    """Master sequence numbers given, warm-up included; on the air they have eight bits."""
    rebuilt: int
    """Acknowledgements rebuilt at this radio."""
    duplicates: int
    """Those discarded at this radio because they had come before."""
    crc_failures: int
    """Those that had a wrong CRC at this radio."""
    decode_failures: int
    """Those that had no context at this radio, or were malformed."""
    differing: int
    """Those rebuilt at this radio that differ from what was compressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Airtime(_Record):
    """Shares of the time, 0 to 1. Those up to `idle` add up to 1."""

    data: float
    """Data frames."""
    tcp_ack: float
    """Data frames with transport acknowledgements."""
    control: float
    """ACK, Block ACK and their requests, RTS, CTS, beacons."""
    collision: float
    """Transmissions that spoil each other."""
    access: float
    """Interframe spaces, backoff and timeouts of radios that have something to send."""
    idle: float
    """Nothing to send."""
    neighbour: float
    """What of ``data`` and ``control`` a neighbouring network sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Station(_Record):
    """Counters of one radio."""

    name: str
    """``ap``, ``sta0``, …, ``neighbour_ap``, ``contender0``, …"""
    ppdus: int
    """PPDUs sent, responses and beacons included."""
    attempts: int
    """PPDUs sent that wanted a response."""
    collisions: int
    """Those spoilt by another transmission."""
    accesses: int
    """Channel accesses: the first PPDU of each that wanted a response."""
    access_collisions: int
    """Those spoilt by another transmission."""
    unanswered: int
    """Those without response, for whatever reason."""
    mpdus: int
    """Data frames sent."""
    retries: int
    """Data frames sent again."""
    retry_drops: int
    """Data frames given up."""
    received: int
    """Data frames received, each counted once."""
    received_bytes: int
    """Bytes of the packets in them."""
    duplicates: int
    """Data frames received again, or after the reordering window had passed them."""
    reorder_timeouts: int
    """How often frames were released because a frame before them had not come in time."""
    queue_drops: int
    """Packets dropped because the queue was full."""
    acks_filtered: int
    """Transport acknowledgements that a filter took out of the queue for a newer one."""
    queue_p50: int
    """Median over time of the queue, packets."""
    queue_p99: int
    """99th percentile over time."""
    queue_max: int
    """The longest it was."""
    hack: Hack | None = None
    """TCP/HACK, where it is on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wlan(_Record):
    """Figures of the wireless network; the warm-up is left out."""

    ppdus: int
    """PPDUs on the air, of all radios."""
    collisions: int
    """PPDUs that wanted a response and were spoilt at their receiver by another transmission."""
    collision_probability: float
    """Those among all PPDUs that wanted a response."""
    access_collision_probability: float
    """The same for the first PPDU of each channel access that wanted a response: with RTS that
    is the RTS, while the data behind a CTS, which other radios leave alone, counts in
    ``collision_probability`` too."""
    unanswered_probability: float
    """PPDUs without response, for whatever reason, among all that wanted one."""
    airtime: Airtime
    """Shares of the time."""
    ap_queue_p50: int
    """Median over time of the access point's queue, packets."""
    ap_queue_max: int
    """The longest it was."""
    queue_drops: int
    """Packets dropped because a MAC queue was full, of all radios."""
    retries: int
    """Data frames sent again, of all radios."""
    retry_drops: int
    """Data frames given up after the last attempt, of all radios."""
    reorder_timeouts: int
    """How often receivers released frames because a frame before them had not come in time, of
    all radios."""
    mpdus_per_ppdu: float
    """Data frames in a PPDU, on average."""
    acks_filtered: int
    """Transport acknowledgements that a filter took out of a MAC queue for a newer one, of all
    radios."""
    acks_in_link_acks: int
    """Transport acknowledgements that travelled inside link acknowledgements and were rebuilt."""
    hack: Hack | None = None
    """TCP/HACK, where it is on: all radios together."""
    stations: list[Station]
    """Each radio: the access point, its stations, then those of a neighbouring network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(_Record):
    """The result of one run, without the warm-up. It depends on scenario and seed alone, except
    ``wall_seconds``."""

    name: str
    """The scenario's name."""
    seed: int
    """Seed of the run."""
    virtual_seconds: float
    """Virtual time the run lasted."""
    wall_seconds: float
    """Time the run took on a wall clock."""
    events: int
    """Events handled."""
    flows: list[Flow]
    """One entry a flow, in the scenario's order."""
    owd_p95_us: int | None
    """95th percentile of the one-way delay of the data packets of all flows together,
    microseconds."""
    wlan: Wlan | None
    """Figures of the 802.11 part; ``None`` on a wired path."""
    wired: Wired
    """What happened on the wired path, warm-up included."""
    trace_hash: str
    """Hash of everything that was sent and received: equal for equal runs."""
