"""Results of iperf3 as columns."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

# iperf3's name, ours. Ours have the unit, as everywhere in this package.
_INTERVAL = [
    ("start", "start_s"),
    ("end", "end_s"),
    ("bytes", "bytes"),
    ("bits_per_second", "goodput_bps"),
    ("retransmits", "retransmits"),
    ("snd_cwnd", "cwnd"),
    ("snd_wnd", "window"),
    ("rtt", "rtt_us"),
    ("rttvar", "rttvar_us"),
    ("pmtu", "pmtu"),
    ("jitter_ms", "jitter_ms"),
    ("packets", "packets"),
    ("lost_packets", "lost_packets"),
    ("omitted", "omitted"),
]
_SUM = [
    ("start", "start_s"),
    ("end", "end_s"),
    ("bytes", "bytes"),
    ("bits_per_second", "goodput_bps"),
    ("retransmits", "retransmits"),
    ("jitter_ms", "jitter_ms"),
    ("packets", "packets"),
    ("lost_packets", "lost_packets"),
]
_FORMAT = "expected the output of iperf3 --json or --json-stream"


@dataclass(frozen=True)
class Iperf3:
    """One test of iperf3. Each table is a dictionary of columns, for ``polars.DataFrame`` or ``pandas.DataFrame``.

    Units: ``_s`` seconds, ``_ms`` milliseconds, ``_us`` microseconds, ``_bps`` bits per second, ``cwnd``, ``window`` and
    ``pmtu`` bytes. What iperf3 did not report is None. ``sender`` is true where the side that wrote the file sent the data.
    """

    protocol: str
    """``"TCP"``, ``"UDP"`` or ``"SCTP"``."""
    congestion: str | None
    """Congestion control of the sender, of TCP."""
    streams: dict[str, list[Any]]
    """A row for each stream in each interval: ``stream`` (socket number), ``sender``, ``start_s``, ``end_s``, ``bytes``,
    ``goodput_bps``, ``retransmits``, ``cwnd``, ``window``, ``rtt_us``, ``rttvar_us``, ``pmtu``, ``jitter_ms``,
    ``packets``, ``lost_packets``, ``omitted``."""
    intervals: dict[str, list[Any]]
    """A row for each interval and direction: the sum of the streams, with the columns of ``streams`` except ``stream``."""
    sums: dict[str, list[Any]]
    """A row for each sum of the whole test: ``name`` (``sum_sent``, ``sum_received``, …), ``start_s``, ``end_s``,
    ``bytes``, ``goodput_bps``, ``retransmits``, ``jitter_ms``, ``packets``, ``lost_packets``."""
    raw: dict[str, Any]
    """Everything that iperf3 wrote."""


def read_iperf3(path: str | os.PathLike[str]) -> Iperf3:
    """Reads what ``iperf3 --json`` or ``iperf3 --json-stream`` (3.17) wrote.

    ``polars.DataFrame(tack.read_iperf3("test.json").intervals)`` has goodput and retransmissions over time.

    :raises ValueError: where the file is not such a result, or contains the error that ended the test.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        test = _parse(file.read(), path)
    if test.get("error"):
        raise ValueError(f"{path}: the test failed: {test['error']}")
    try:
        return _tables(test)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: {_FORMAT}; a field is missing or of another kind: {error}") from error


def _parse(text: str, path: object) -> dict[str, Any]:
    try:
        test = json.loads(text)
    except json.JSONDecodeError as error:
        test = _stream(text)
        if test is None:
            raise ValueError(f"{path}: {_FORMAT} of one test, got no JSON: {error}") from error
    except RecursionError as error:
        raise ValueError(f"{path}: {_FORMAT}, got JSON of too many levels") from error
    if not isinstance(test, dict) or not ("intervals" in test or "error" in test):
        raise ValueError(f"{path}: {_FORMAT}, got JSON without intervals")
    return test


def _stream(text: str) -> dict[str, Any] | None:
    """The test in lines of ``{"event": …, "data": …}``; None if the text is something else."""
    test: dict[str, Any] = {"start": {}, "intervals": [], "end": {}}
    for line in filter(str.strip, text.splitlines()):
        try:
            event, data = (one := json.loads(line))["event"], one["data"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if event == "interval":
            test["intervals"].append(data)
        elif event in ("start", "end", "error"):
            test[event] = data
    return test if test["intervals"] or "error" in test else None


def _tables(test: dict[str, Any]) -> Iperf3:
    streams = [stream for interval in test["intervals"] for stream in interval["streams"]]
    intervals = [
        interval[name] for interval in test["intervals"] for name in ("sum", "sum_bidir_reverse") if name in interval
    ]
    end = test.get("end", {})
    sums = {name: value for name, value in end.items() if name.startswith("sum") and isinstance(value, dict)}
    start = test.get("start", {}).get("test_start", {})
    return Iperf3(
        protocol=str(start.get("protocol", "TCP")),
        congestion=end.get("sender_tcp_congestion"),
        streams={
            "stream": [int(stream["socket"]) for stream in streams],
            "sender": [bool(stream.get("sender", True)) for stream in streams],
            **_columns(streams, _INTERVAL),
        },
        intervals={
            "sender": [bool(one.get("sender", True)) for one in intervals],
            **_columns(intervals, _INTERVAL),
        },
        sums={"name": list(sums), **_columns(sums.values(), _SUM)},
        raw=test,
    )


def _columns(rows: Any, names: list[tuple[str, str]]) -> dict[str, list[Any]]:
    columns = {ours: [row.get(theirs) for row in rows] for theirs, ours in names}
    # iperf3 writes whole seconds without a point; a column has one type.
    for name in ("start_s", "end_s", "goodput_bps", "jitter_ms"):
        if name in columns:
            columns[name] = [None if value is None else float(value) for value in columns[name]]
    return columns
