"""Events of runs as qlog, for qvis and other tools that read it."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ._core import Columns


def write_qlog(
    events: Columns | str | os.PathLike[str] | Iterable[Mapping[str, Any]],
    path: str | os.PathLike[str],
    *,
    title: str = "tack",
) -> None:
    """Writes events as qlog 0.3 in JSON, with one trace for each flow and host; qvis opens it (its file: ``*.qlog``).

    The congestion graph of qvis shows the trace of the host that sends data. What becomes of the events:

    * ``transport:ack_received`` gives ``recovery:metrics_updated`` (bytes, bits per second, milliseconds),
      ``recovery:congestion_state_updated`` where the controller's phase changed, and ``transport:packet_received``.
    * Events of data segments (``tack.simulate(…, events=True, segments=True)``, ``tack sim --qlog FILE --segments``) give
      ``transport:packet_sent``, ``transport:packet_received`` and ``recovery:packet_lost``. A packet number is that of a
      transmission. A transmission counts as acknowledged when the cumulative acknowledgement covers it and no later one of
      the same bytes exists: the events do not have what was selectively acknowledged.
    * Without them, all that left between two acknowledgements becomes one ``transport:packet_sent`` at the time of the
      second, with its length. It counts as acknowledged when none of it is in flight any more, whether it was delivered
      or lost.
    * ``recovery:episode`` and ``recovery:timer_expired`` become ``recovery:congestion_state_updated`` and
      ``recovery:loss_timer_updated``.
    * The others keep their names, such as ``tack:ack_sent``; fields are those of docs/scenario.md.

    Sources: draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events, as of ``qlog_version`` 0.3, the newest
    that qvis reads (its revision 72c8c4b of October 2025).

    :param events: ``run.events``, a file that ``tack sim --qlog`` wrote, or the events as dictionaries.
    :raises ValueError: where there is no event, or one is not such an event; then no file is written.
    """
    traces: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for event in _events(events):
        try:
            traces.setdefault((int(event["flow"]), str(event["host"])), []).append(
                {"time": float(event["time"]), "name": str(event["name"]), "data": dict(event["data"])}
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"expected an event with time, name, flow, host and data, got {str(event)[:200]}") from error
    if not traces:
        raise ValueError("expected events, got none; tack.simulate(…, events=True) records them")
    document = {
        # qvis looks for these two in the first kilobyte.
        "qlog_version": "0.3",
        "qlog_format": "JSON",
        "title": title,
        # A tool shows the first trace first: that of the data's sender.
        "traces": [_trace(*key, traces[key]) for key in sorted(traces, key=lambda key: (key[0], not _sends(traces[key])))],
    }
    # First all of the text: a number that JSON does not have leaves no half of a file.
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _events(events: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(events, Columns):
        columns = events.to_dict()
        yield from (_nested(dict(zip(columns, row))) for row in zip(*columns.values()))
    elif isinstance(events, (str, os.PathLike)):
        yield from _lines(events)
    else:
        yield from events


def _nested(row: dict[str, Any]) -> dict[str, Any]:
    data = {name.removeprefix("data."): value for name, value in row.items() if name.startswith("data.") and value is not None}
    return {**{name: row[name] for name in ("time", "name", "flow", "host")}, "data": data}


def _lines(path: str | os.PathLike[str]) -> Iterator[Mapping[str, Any]]:
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            try:
                value = json.loads(line)
                if not isinstance(value, dict):
                    raise ValueError("not an object")
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path}:{number}: expected an event as a JSON object, got {line[:80]!r}") from error
            # The first line describes the file.
            if "qlog_format" not in value:
                yield value


def _trace(flow: int, host: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "title": f"flow {flow}, {host}",
        "vantage_point": {"name": host, "type": "server" if _sends(events) else "client"},
        "common_fields": {"protocol_type": ["TCP"], "time_format": "relative", "reference_time": 0, "group_id": str(flow)},
        "events": list(_Converter(any(event["name"] == "transport:packet_sent" for event in events)).convert(events)),
    }


def _sends(events: list[dict[str, Any]]) -> bool:
    """Whether the host sends the data: more of its bytes are delivered than it acknowledges. qlog calls it the server here.

    Both sides of an encrypted connection send something.
    """

    def numbers(name: str, key: str) -> Iterator[float]:
        values = (event["data"].get(key) for event in events if event["name"] == name)
        # What is not a number is refused later, with the event.
        return (value for value in values if isinstance(value, (int, float)) and value == value)

    return sum(numbers("transport:ack_received", "delivered")) > max(numbers("tack:ack_sent", "ack"), default=0)


class _Converter:
    def __init__(self, has_segments: bool) -> None:
        self.has_segments = has_segments
        self.unacknowledged: dict[int, tuple[int, int]] = {}  # of each segment, by where it begins: its end and last number
        self.phase: str | None = None  # of the controller
        self.state: str | None = None
        self.recovering = False
        self.sent = 0  # bytes, retransmissions included
        self.left_flight = 0  # bytes that were delivered or lost
        self.packets: deque[int] = deque()  # not acknowledged yet: end of each in sent bytes
        self.first = 0  # number of the first of them
        self.received = 0

    def convert(self, events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for event in events:
            convert = {
                "transport:ack_received": self.ack_received,
                "transport:packet_sent": self.packet_sent,
                "transport:packet_received": self.packet_received,
                "recovery:packet_lost": self.packet_lost,
                "recovery:episode": self.episode,
                "recovery:timer_expired": self.timer_expired,
            }.get(event["name"])
            if convert is None:
                yield event
            else:
                try:
                    converted = list(convert(event["data"]))
                except (KeyError, TypeError, ValueError) as error:
                    raise ValueError(f"expected numbers in the data of this event, got {str(event)[:200]}") from error
                yield from ({"time": event["time"], "name": name, "data": data} for name, data in converted)

    def ack_received(self, data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        acked = self.acked(int(data.get("ack", 0))) if self.has_segments else None
        delivered, lost, in_flight = (int(data.get(name, 0)) for name in ("delivered", "lost", "bytes_in_flight"))
        self.left_flight += delivered + lost
        length = max(self.left_flight + in_flight - self.sent, 0)
        if length and not self.has_segments:
            yield "transport:packet_sent", {
                "header": {"packet_type": "1RTT", "packet_number": self.first + len(self.packets)},
                "raw": {"length": length},
            }
            self.sent += length
            self.packets.append(self.sent)
        first = self.first
        while self.packets and self.packets[0] <= self.left_flight:
            self.packets.popleft()
            self.first += 1
        frame: dict[str, Any] = {"frame_type": "ack"}
        if acked is None and self.first > first:
            acked = [[first, self.first - 1]]
        if acked:
            frame["acked_ranges"] = acked
        yield "transport:packet_received", {
            "header": {"packet_type": "1RTT", "packet_number": self.received},
            "frames": [frame],
            "tack": {name: data[name] for name in ("ack", "delivered", "lost", "rate_bps", "bandwidth_bps") if name in data},
        }
        self.received += 1
        metrics = {
            "congestion_window": data.get("cwnd"),
            "bytes_in_flight": in_flight,
            "latest_rtt": _ms(data.get("rtt_us")),
            "min_rtt": _ms(data.get("min_rtt_us")),
            "pacing_rate": data.get("pacing_bps"),
        }
        yield "recovery:metrics_updated", {name: value for name, value in metrics.items() if value is not None}
        if data.get("phase") is not None:
            self.phase = str(data["phase"])
            if not self.recovering:
                yield from self.enter(self.phase)

    def packet_sent(self, data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        number, offset, length = (int(data[name]) for name in ("number", "offset", "length"))
        self.unacknowledged[offset] = (offset + length, number)
        yield "transport:packet_sent", _packet(number, offset, length)

    def packet_received(self, data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        yield "transport:packet_received", _packet(*(int(data[name]) for name in ("number", "offset", "length")))

    def packet_lost(self, data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        # Without the events of segments there are no packets that could be lost.
        if data.get("number") is not None:
            yield "recovery:packet_lost", _packet(*(int(data[name]) for name in ("number", "offset", "length")))

    def acked(self, position: int) -> list[list[int]]:
        """Ranges of the numbers of packets that an acknowledgement of everything below a position newly covers."""
        numbers = []
        # Segments leave in the order of their positions; only what was sent again later has another number.
        for offset, (end, number) in list(self.unacknowledged.items()):
            if end > position:
                break
            numbers.append(number)
            del self.unacknowledged[offset]
        ranges: list[list[int]] = []
        for number in sorted(numbers):
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        return ranges

    def episode(self, data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        state = str(data.get("state"))
        self.recovering = state == "begins"
        yield from self.enter("recovery" if self.recovering else self.phase or "recovered", {"tack": {"state": state}})

    def enter(self, state: str, more: Mapping[str, Any] = {}) -> Iterator[tuple[str, dict[str, Any]]]:
        if state != self.state:
            old = {"old": self.state} if self.state else {}
            yield "recovery:congestion_state_updated", {**old, "new": state, **more}
            self.state = state

    @staticmethod
    def timer_expired(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        timer = str(data.get("timer"))
        # qlog knows two timers: for probes (RFC 9002, section 6.2) and for the reordering window (6.1.2).
        kind = {"rto": "pto", "tlp": "pto", "reorder": "ack"}.get(timer)
        if kind is None:
            yield "tack:timer_expired", {"timer": timer}
        else:
            yield "recovery:loss_timer_updated", {"event_type": "expired", "timer_type": kind, "tack": {"timer": timer}}


def _packet(number: int, offset: int, length: int) -> dict[str, Any]:
    # A frame of QUIC's, because TCP has none: where the bytes are in the stream, from 0.
    frame = {"frame_type": "stream", "stream_id": 0, "offset": offset - 1, "length": length}
    return {"header": {"packet_type": "1RTT", "packet_number": number}, "raw": {"length": length}, "frames": [frame]}


def _ms(micros: Any) -> float | None:
    return None if micros is None else float(micros) / 1e3
