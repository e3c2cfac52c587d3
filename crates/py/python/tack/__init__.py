"""Simulate TCP, TACK and 802.11 in virtual time.

    >>> import tack
    >>> scenario = tack.Scenario(duration="2s", wired={"rate": "20Mbps", "delay": "20ms"},
    ...                          flow=[{"congestion": "bbr", "ack": "tack"}])
    >>> run = tack.simulate(scenario, seed=1)
    >>> run.flows[0].acks < run.flows[0].data_segments / 10
    True

A scenario and a seed give the same result, bit for bit, on every machine and in the program ``tack``. All keys of
scenarios are described in docs/scenario.md of the project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any

from . import executors, results
from ._core import (
    Ack,
    Columns,
    Congestion,
    DataArrival,
    Init,
    RohcCompressor,
    RohcDecompressor,
    Scenario as _Scenario,
    ScenarioError,
    Sent,
    SimulationError,
    TaskMismatch,
    __version__,
    airtime,
    emit_tack_lists,
    emit_tack_option,
    parse_tack_lists,
    parse_tack_option,
    simulate as _simulate,
    simulate_many as _simulate_many,
)
from .executors import WorkerLost
from .formulas import ack_frequency, bianchi
from .iperf3 import Iperf3, read_iperf3
from .mahimahi import MahimahiTrace, read_mahimahi
from .progress import Bar
from .qlog import write_qlog
from .results import Report
from .sweeping import SweepResult, sweep

__all__ = [
    "Ack",
    "Columns",
    "Congestion",
    "DataArrival",
    "Init",
    "Iperf3",
    "MahimahiTrace",
    "Report",
    "RohcCompressor",
    "RohcDecompressor",
    "Run",
    "Runs",
    "Scenario",
    "ScenarioError",
    "Sent",
    "SimulationError",
    "SweepResult",
    "TaskMismatch",
    "WorkerLost",
    "__version__",
    "ack_frequency",
    "airtime",
    "bianchi",
    "emit_tack_lists",
    "emit_tack_option",
    "executors",
    "parse_tack_lists",
    "parse_tack_option",
    "read_iperf3",
    "read_mahimahi",
    "results",
    "simulate",
    "simulate_many",
    "sweep",
    "write_qlog",
]


class Scenario(_Scenario):
    """One experiment: a path, perhaps a wireless network, and flows.

    ``Scenario(text)`` reads TOML, ``Scenario.from_file(path)`` a file, and keyword arguments are the keys of a
    scenario file: ``Scenario(duration="1s", wired={"rate": "100Mbps"}, flow=[{"ack": "tack"}])``. Quantities are
    texts with their unit. docs/scenario.md has all keys.

    ``set(key, value)`` changes one key (``scenario.set("wlan.rate", "300Mbps")``, ``scenario.set("flow.0.ack",
    "tack")``); ``copy()`` gives one that changes by itself. ``use_controller(flow, cls)`` and
    ``use_ack_policy(flow, cls)`` have a class of yours decide.

    :raises ScenarioError: where anything is not exactly a scenario. The message names file, line and key, and the key that
        was perhaps meant; ``file``, ``line`` and ``key`` are attributes too.
    """

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Scenario:
        """Reads a scenario file. Traces that it names are looked for beside it."""
        with open(path, encoding="utf-8") as file:
            return cls(file.read(), file=str(path))

    @classmethod
    def _restore(cls, file: str, text: str, overrides: list[str]) -> Scenario:
        scenario = cls(text, file=file)
        for override in overrides:
            key, _, value = override.partition("=")
            scenario.set(key, value)
        return scenario

    def copy(self) -> Scenario:
        """A copy that changes by itself, with the same controllers and policies."""
        other = self._restore(self.file, self.text, self.overrides)
        other.take_classes(self)
        return other


class Run:
    """One finished run: its report, and what was recorded besides.

    ``run.flows``, ``run.wlan``, ``run.wired`` and the other fields of :class:`tack.results.Report` are attributes.
    """

    __slots__ = ("_reports", "_index", "_report", "series", "events")

    def __init__(self, reports, index: int = 0, series: Columns | None = None, events: Columns | None = None):
        self._reports, self._index, self._report = reports, index, None
        self.series = series
        """The state of each flow over time, if it was asked for: ``time_s``, ``flow``, ``goodput_bps``, ``cwnd``,
        ``bytes_in_flight``, ``srtt_us``, ``pacing_bps``, ``queue_packets``."""
        self.events = events
        """What the connections did and why, if it was asked for: ``time`` (milliseconds), ``name``, ``flow``, ``host``
        and ``data.…``; acknowledgements have the name ``tack:ack_sent``."""

    @property
    def report(self) -> Report:
        """The report as a record."""
        if self._report is None:
            self._report = Report.from_dict(self.to_dict())
        return self._report

    def to_dict(self) -> dict[str, Any]:
        """The report as ``tack sim --json`` prints it."""
        return self._reports.dict(self._index)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.report, name)

    def __repr__(self) -> str:
        goodput = sum(flow.goodput_bps for flow in self.report.flows) / 1e6
        return f"<tack.Run {self.report.name!r}, seed {self.report.seed}: {goodput:.2f} Mbit/s>"


class Runs(Sequence[Run]):
    """Finished runs, in the order in which they were asked for.

    ``flows``, ``stations`` and ``runs`` are tables that pandas, polars, DuckDB and pyarrow take without a copy:
    ``polars.DataFrame(runs.flows)``, ``pyarrow.table(runs.flows).to_pandas()``.
    """

    def __init__(self, reports):
        self._reports = reports

    def __len__(self) -> int:
        return len(self._reports)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"run {index} of {len(self)}")
        return Run(self._reports, number)

    def __iter__(self) -> Iterator[Run]:
        return (Run(self._reports, number) for number in range(len(self)))

    @property
    def flows(self) -> Columns:
        """A row for each flow of each run; ``run.name`` and ``run.seed`` say of which."""
        return self._reports.flows()

    @property
    def stations(self) -> Columns:
        """A row for each radio of each run."""
        return self._reports.stations()

    @property
    def runs(self) -> Columns:
        """A row for each run: the wireless network, the wired path, times."""
        return self._reports.runs()

    def __repr__(self) -> str:
        return f"<tack.Runs: {len(self)}>"


def simulate(
    scenario: Scenario,
    seed: int | None = None,
    *,
    series_s: float | None = None,
    events: bool = False,
    segments: bool = False,
    pcap: str | PathLike[str] | None = None,
    checks: bool = False,
) -> Run:
    """Runs a scenario in virtual time. Other threads of Python go on meanwhile; Ctrl-C ends the run.

    :param seed: the seed; the scenario's own by default.
    :param series_s: samples the state of every flow at this interval of virtual time, seconds.
    :param events: records what connections do and why.
    :param segments: with ``events``, also each data segment of TCP that leaves or arrives.
    :param pcap: writes all packets to this file (pcapng), with radiotap and 802.11 where there is a wireless network.
    :param checks: checks every invariant of the stack at every event; slow.
    :raises SimulationError: if the stack broke an invariant, which is a bug in it.
    """
    if segments and not events:
        raise ValueError("segments needs events=True")
    return Run(*_together(_simulate(scenario, seed, series_s, events, checks, segments, pcap)))


def _together(result):
    reports, series, events = result
    return reports, 0, series, events


def simulate_many(
    scenarios: Scenario | Iterable[Scenario],
    seeds: Iterable[int] | None = None,
    *,
    jobs: int | None = None,
    progress: bool | Callable[[int, int], None] = False,
) -> Runs:
    """Runs each scenario with each seed, side by side on all processors.

    :param seeds: the seeds; each scenario's own by default.
    :param jobs: how many runs go on at a time; one for each processor by default.
    :param progress: True draws a bar on standard error; a function is called with how many of how many are done.
    :returns: the runs, those of the first scenario first, in the order of the seeds.
    """
    if isinstance(scenarios, _Scenario):
        scenarios = [scenarios]
    seeds = [None] if seeds is None else list(seeds)
    wanted = [(scenario, seed) for scenario in scenarios for seed in seeds]
    report = Bar() if progress is True else progress or None
    return Runs(_simulate_many([one for one, _ in wanted], [seed for _, seed in wanted], jobs, report))
