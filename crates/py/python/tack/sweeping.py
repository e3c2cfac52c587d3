"""Sweeps: a plan of scenarios and seeds into a Parquet data set, on this machine or on many."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from typing import Any

from ._core import Columns, SweepState, plan_text, sweep_embedded
from .executors import do_tasks, pool_of
from .progress import Bar
from .storage import is_url, storage_at

TASK_S = 1.0
"""About how long a task takes, seconds."""


class SweepResult:
    """What a sweep has come to."""

    __slots__ = ("plan", "path", "rows", "counts", "failures", "damaged")

    def __init__(
        self,
        plan: str,
        path: str,
        rows: Columns,
        counts: dict[str, int],
        failures: list[str],
        damaged: list[tuple[str, str]],
    ):
        self.plan = plan
        """The name of the plan."""
        self.path = path
        """The plan's part of the data set: a folder, or a URL."""
        self.rows = rows
        """A row for each run of the plan, in its order; docs/sweep.md has the columns and their units."""
        self.counts = counts
        """``points``, ``runs``, ``done``, ``reused`` (rows that were there before), ``copied`` (of these, rows of other
        plans), ``failed``."""
        self.failures = failures
        """Each run that failed in this call: its settings, and what happened."""
        self.damaged = damaged
        """Files that could not be read, and why. Their runs were done again."""

    @property
    def complete(self) -> bool:
        """Whether each run of the plan has a row."""
        return self.counts["done"] == self.counts["runs"] and not self.counts["failed"]

    def __repr__(self) -> str:
        return f"<tack.SweepResult {self.path!r}: {len(self.rows)} rows>"


def sweep(
    plan: str | PathLike[str] | Mapping[str, Any],
    out: str | PathLike[str] = "sweep-results",
    *,
    set: Iterable[str] = (),
    jobs: int | None = None,
    progress: bool | Callable[[int, int], None] = False,
    client: Any = None,
    task_s: float = TASK_S,
) -> SweepResult:
    """Runs a plan, and keeps its rows in a Parquet data set. Runs that are there already are not repeated.

    Ctrl-C ends the sweep; finished runs are kept, and the next call goes on.

    :param plan: a plan file, or its keys as a dictionary (docs/sweep.md).
    :param out: the folder of the data set, or a URL that fsspec knows, such as ``s3://…``.
    :param set: keys to change in every scenario, such as ``"duration=1s"``.
    :param jobs: how many runs go on at a time on this machine; one for each processor by default.
    :param progress: True draws a bar on standard error; a function is called with how many of how many runs are done.
    :param client: who does the runs instead of this process: a client of Dask, an executor of ``concurrent.futures``, the
        module ``ray``, or an object with ``workers``, ``submit``, ``wait`` and ``cancel`` (:class:`tack.executors.Pool`).
    :param task_s: with ``client``, about how long a task takes, seconds.
    :raises ScenarioError: where anything is not exactly a plan, or a point of it not exactly a scenario.
    :raises WorkerLost: if the workers of one task were lost again and again; finished runs are kept.
    """
    file, text = _read(plan)
    report = Bar() if progress is True else progress or None
    overrides, where = list(set), os.fspath(out)
    if client is None and is_url(where):
        if jobs is not None and jobs < 1:
            raise ValueError(f"expected jobs of 1 or more, got {jobs}")
        state = SweepState(file, text, overrides, task_s)
        # Threads do: a task holds no lock of Python.
        with ThreadPoolExecutor(jobs or _processors()) as executor:
            return _on_workers(state, where, pool_of(executor), report)
    if client is None:
        where = where.removeprefix("file://")
        path, counts, rows, failures, damaged = sweep_embedded(file, text, overrides, where, jobs, report)
        # The part is plan=NAME-HASH.
        name = path.name.removeprefix("plan=").rpartition("-")[0]
        return SweepResult(name, str(path), rows, counts, failures, [(str(path), why) for path, why in damaged])
    if jobs is not None:
        raise ValueError("jobs is for this machine; the client decides how many workers there are")
    return _on_workers(SweepState(file, text, overrides, task_s), str(where), pool_of(client), report)


def _processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read(plan) -> tuple[str, str]:
    if isinstance(plan, Mapping):
        return "plan.toml", plan_text(dict(plan))
    path = os.fspath(plan)
    if "\n" in path:
        raise TypeError("expected the path of a plan, or a dictionary of its keys; got the text of a plan")
    with open(path, encoding="utf-8") as file:
        return path, file.read()


def _on_workers(state: SweepState, out: str, pool, report) -> SweepResult:
    storage = storage_at(out)
    part = state.part
    kept, own_damaged, damaged = [], [], []
    for name, content in storage.files(part):
        why = state.add_file(name, content, True)
        if why is None:
            kept.append(name)
        else:
            own_damaged.append(name)
            damaged.append((f"{storage.path(part)}/{name}", why))
    for other in storage.parts():
        if other != part and state.waiting:
            for name, content in storage.files(other):
                why = state.add_file(name, content, False)
                if why is not None:
                    damaged.append((f"{storage.path(other)}/{name}", why))
    storage.set_aside(part, own_damaged)

    failures: list[str] = []

    def accept(result: bytes) -> None:
        file, failed = state.accept(result)
        failures.extend(failed)
        if file is not None:
            storage.put(part, *file)
            kept.append(file[0])

    do_tasks(state, pool, accept, report)
    merged = state.merged()
    if merged is not None and kept != [merged[0]]:
        storage.merge(part, *merged, kept)
    return SweepResult(state.name, storage.path(part), state.rows(), state.counts(), failures, damaged)
