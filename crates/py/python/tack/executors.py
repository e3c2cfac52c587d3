"""Who does the tasks of a sweep, or of the lab: a small interface, and it over Dask, ``concurrent.futures`` and Ray.

A task is a function of bytes to bytes, :func:`run_task`. Workers need this package and nothing else; they share no
files with the caller. A task may be done twice: its rows are the same, and count once.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, runtime_checkable

from ._core import LabState, SweepState, run_batch

ATTEMPTS = 4
"""How often a task is given to workers that are lost with it, before the caller gives up."""


class WorkerLost(RuntimeError):
    """A worker went away with its task."""


def run_task(task: bytes) -> bytes:
    """Does the runs of a task; it holds no lock of Python meanwhile."""
    return run_batch(task)


@runtime_checkable
class Pool(Protocol):
    """What a sweep needs of an executor."""

    def workers(self) -> int:
        """How many tasks can run at a time, now."""

    def submit(self, task: bytes) -> Hashable:
        """Has somebody call :func:`run_task` with the task; returns a handle."""

    def wait(self, handles: Sequence[Any], timeout_s: float) -> list[tuple[Any, bytes | BaseException]]:
        """Waits until a task is done, or for so many seconds. Returns the handles that are done, each with its result, or
        with what was raised: :class:`WorkerLost` has the task done again."""

    def cancel(self, handles: Sequence[Any]) -> None:
        """The results of these tasks are no longer needed."""


class DaskPool:
    """A client of Dask (``distributed.Client``)."""

    def __init__(self, client: Any):
        self._client = client

    def workers(self) -> int:
        return sum(self._client.nthreads().values())

    def submit(self, task: bytes):
        # Not pure: a task that is given again is not the one that was lost.
        return self._client.submit(run_task, task, pure=False, key=None)

    def wait(self, handles, timeout_s):
        from distributed import KilledWorker, wait

        try:
            # It would look for the one that is everybody's.
            with self._client.as_current():
                wait(handles, timeout=timeout_s, return_when="FIRST_COMPLETED")
        except TimeoutError:
            return []
        ended = []
        for handle in handles:
            if not handle.done():
                continue
            try:
                ended.append((handle, handle.result(timeout=60)))
                # Otherwise Dask does it again when the worker that keeps the result dies.
                handle.release()
            except KilledWorker as error:
                ended.append((handle, WorkerLost(str(error))))
            except (concurrent.futures.CancelledError, OSError, TimeoutError) as error:
                # The worker died after it had finished, with the result.
                ended.append((handle, WorkerLost(str(error) or type(error).__name__)))
            except Exception as error:
                # distributed's CancelledError is one of asyncio in some versions.
                lost = "Cancelled" in type(error).__name__
                ended.append((handle, WorkerLost(str(error)) if lost else error))
        return ended

    def cancel(self, handles):
        if handles:
            self._client.cancel(handles)


class FuturesPool:
    """An executor of ``concurrent.futures``. A pool of processes that has lost one cannot be used again: the sweep ends, and
    the next call goes on."""

    def __init__(self, executor: concurrent.futures.Executor):
        self._executor = executor

    def workers(self) -> int:
        return getattr(self._executor, "_max_workers", None) or 1

    def submit(self, task: bytes):
        return self._executor.submit(run_task, task)

    def wait(self, handles, timeout_s):
        done, _ = concurrent.futures.wait(handles, timeout_s, concurrent.futures.FIRST_COMPLETED)
        return [(one, one.exception() or one.result()) for one in done]

    def cancel(self, handles):
        for one in handles:
            one.cancel()


class RayPool:
    """The module ``ray``, after ``ray.init()``."""

    def __init__(self, ray: Any):
        self._ray = ray
        self._run = ray.remote(run_task)
        # A worker, its machine, or its result went away; not every version has each.
        names = ["WorkerCrashedError", "NodeDiedError", "LocalRayletDiedError", "ObjectLostError", "OutOfMemoryError"]
        self._lost = tuple(getattr(ray.exceptions, name) for name in names if hasattr(ray.exceptions, name))

    def workers(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 1))

    def submit(self, task: bytes):
        return self._run.remote(task)

    def wait(self, handles, timeout_s):
        done, _ = self._ray.wait(handles, num_returns=1, timeout=timeout_s)
        ended = []
        for one in done:
            try:
                ended.append((one, self._ray.get(one)))
            except self._lost as error:
                ended.append((one, WorkerLost(str(error))))
            except Exception as error:
                ended.append((one, error))
        return ended

    def cancel(self, handles):
        for one in handles:
            self._ray.cancel(one, force=True)


def pool_of(client: Any) -> Pool:
    """The interface over what the caller has."""
    if isinstance(client, concurrent.futures.Executor):
        return FuturesPool(client)
    if hasattr(client, "nthreads") and hasattr(client, "submit"):
        return DaskPool(client)
    if getattr(client, "__name__", "") == "ray":
        return RayPool(client)
    if isinstance(client, Pool):
        return client
    raise TypeError(
        "expected a distributed.Client, an executor of concurrent.futures, the module ray, or an object with workers, submit, "
        f"wait and cancel; got {type(client).__name__}"
    )


def do_tasks(state: SweepState | LabState, pool: Pool, accept: Callable[[bytes], None], report: Callable[[int, int], None] | None):
    """Has a pool do all tasks of ``state``. ``accept`` is called with each result, ``report`` with how many runs of how many
    are done.

    :raises WorkerLost: if the workers of one task were lost again and again.
    """
    under_way: dict[Any, tuple[str, bytes]] = {}
    attempts: dict[str, int] = {}

    def give(name: str, task: bytes) -> None:
        attempts[name] = attempts.get(name, 0) + 1
        under_way[pool.submit(task)] = (name, task)

    try:
        while not state.is_done:
            # One task that waits for each that runs: a worker that is ready has its next one already.
            workers = max(pool.workers(), 1)
            while len(under_way) < 2 * workers:
                batch = state.next_batch(workers)
                if batch is None:
                    break
                name, _, task = batch
                give(name, task)
            for handle, result in pool.wait(list(under_way), 0.5):
                name, task = under_way.pop(handle)
                if isinstance(result, WorkerLost):
                    # Its runs are in no file: the same task again, until it looks as if it were the reason.
                    if attempts[name] >= ATTEMPTS:
                        raise WorkerLost(f"{result}; the workers of this task were lost {attempts[name]} times")
                    give(name, task)
                    continue
                if isinstance(result, BaseException):
                    raise result
                accept(result)
            if report is not None:
                counts = state.counts()
                report(counts["done"], counts["runs"])
    finally:
        pool.cancel(list(under_way))
