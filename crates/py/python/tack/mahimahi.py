"""Recorded links: traces of delivery opportunities, as mahimahi's ``mm-link`` reads them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BYTES = 1500
"""Bytes that one line of a trace can deliver."""
_LATEST_MS = (2**64 - 1) // 2_000_000_000


@dataclass(frozen=True)
class MahimahiTrace:
    """A recorded link, which begins again after its last line."""

    path: str
    """The file, as an absolute path."""
    times_ms: list[int]
    """Instants at which the link can deliver 1,500 bytes, milliseconds, ascending. Equal instants add up."""

    @property
    def duration_s(self) -> float:
        """Seconds after which the trace begins again."""
        return self.times_ms[-1] / 1e3

    @property
    def mean_rate_bps(self) -> float:
        """Mean rate, bits per second, with the headers of IP packets."""
        return len(self.times_ms) * BYTES * 8 / self.duration_s

    @property
    def wired(self) -> dict[str, Any]:
        """The key of a scenario that replays the trace: ``tack.Scenario(wired={**trace.wired, "delay": "20ms"})``."""
        return {"trace": {"file": self.path}}

    def rates(self, interval_s: float = 0.1) -> dict[str, list[float]]:
        """The rate over time, as columns ``time_s`` (the start of each interval) and ``rate_bps``.

        :param interval_s: length of the intervals, seconds, at least 0.001. The last one may be cut short by the trace's
            end; its rate is that of its own length.
        """
        step = round(interval_s * 1e3)
        if step < 1:
            raise ValueError(f"interval_s: expected at least 0.001, got {interval_s}")
        end = self.times_ms[-1]
        counts = [0] * -(-end // step)
        for at in self.times_ms:
            # An opportunity at the end of an interval belongs to it; one at zero, to the first.
            counts[max(at - 1, 0) // step] += 1
        starts = range(0, end, step)
        rates = [count * BYTES * 8e3 / min(step, end - start) for count, start in zip(counts, starts)]
        return {"time_s": [start / 1e3 for start in starts], "rate_bps": rates}


def read_mahimahi(path: str | os.PathLike[str]) -> MahimahiTrace:
    """Reads a trace in mahimahi's format: one whole number of milliseconds in each line, ascending.

    Each line is an opportunity to deliver 1,500 bytes. The rules are those of the simulator; source: mahimahi's
    ``mm-link`` (Netravali et al., USENIX ATC 2015).

    :raises ValueError: with file and line, where the text is not a trace.
    """
    times: list[int] = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if not text:
                continue
            if not (text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < _LATEST_MS):
                raise ValueError(f"{path}:{number}: expected a whole number of milliseconds, got {text[:40]!r}")
            if times and int(text) < times[-1]:
                raise ValueError(f"{path}:{number}: {text} is earlier than the line before it, {times[-1]}")
            times.append(int(text))
    if not times:
        raise ValueError(f"{path}: expected a whole number of milliseconds in each line, got an empty file")
    if times[-1] == 0:
        raise ValueError(f"{path}: the last line is the length of the trace and must be above zero, got 0")
    return MahimahiTrace(str(Path(path).resolve()), times)
