"""``python -m tack.dask_runner``: what ``tack sweep --dask`` starts. Exit codes and output are those of the program."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from ._core import ScenarioError, code_version
from .executors import WorkerLost
from .progress import Bar
from .sweeping import sweep

FAILED, USAGE, NETWORK, INTERRUPTED, TERMINATED = 1, 2, 3, 130, 143


class _Terminated(Exception):
    pass


def _terminate(_signal, _frame):
    raise _Terminated


def with_client(address: str, what: str, work: Callable[[Any, Bar | None], Any]) -> Any:
    """What ``work`` gives for a client of the scheduler and a progress bar, or the exit code if it ends otherwise."""
    signal.signal(signal.SIGTERM, _terminate)

    from distributed import Client

    try:
        client = Client(address, timeout=20, set_as_default=False)
    except (OSError, ValueError) as error:
        print(f"tack: no scheduler of Dask at {address}: {error}", file=sys.stderr)
        return NETWORK
    progress = Bar() if sys.stderr.isatty() else None
    try:
        with client:
            if not client.nthreads():
                print(f"tack: the scheduler at {address} has no workers yet; waiting for the first", file=sys.stderr)
                client.wait_for_workers(1)
            return work(client, progress)
    except (ScenarioError, FileNotFoundError, ModuleNotFoundError) as error:
        print(f"tack: {error}", file=sys.stderr)
        return USAGE
    except (WorkerLost, OSError, RuntimeError) as error:
        print(f"tack: the {what} ended: {error}; finished runs are kept", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except _Terminated:
        return TERMINATED


def main(arguments: list[str] | None = None) -> int:
    """Runs a plan on the workers of a scheduler; returns the exit code."""
    parser = argparse.ArgumentParser(prog="tack.dask_runner")
    parser.add_argument("plan")
    parser.add_argument("--dask", required=True, metavar="ADDRESS")
    parser.add_argument("--out", default="sweep-results")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--task-s", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(arguments)
    began = time.monotonic()

    def work(client, progress):
        return sweep(args.plan, args.out, set=args.set, client=client, task_s=args.task_s, progress=progress or False)

    result = with_client(args.dask, "sweep", work)
    if isinstance(result, int):
        return result
    seconds = time.monotonic() - began
    for name, why in result.damaged:
        print(f"tack: {name}: {why}; its runs were repeated where needed", file=sys.stderr)
    for failure in result.failures:
        print(f"tack: {failure}", file=sys.stderr)
    counts = result.counts
    new = counts["done"] - counts["failed"] - counts["reused"]
    if args.json:
        summary = {
            "plan": result.plan,
            "code": code_version(),
            "folder": result.path,
            "points": counts["points"],
            "runs": counts["runs"],
            "rows": len(result.rows),
            "new": new,
            "reused": counts["reused"],
            "copied": counts["copied"],
            "failed": counts["failed"],
            "failures": result.failures,
            "damaged": [name for name, _ in result.damaged],
            "complete": result.complete,
            "seconds": seconds,
        }
        print(json.dumps(summary))
    else:
        print(
            f"{result.plan}: {counts['points']} points, {len(result.rows)} of {counts['runs']} runs: {new} new in {seconds:.1f} s, "
            f"{counts['reused']} from before\n{result.path}"
        )
    if counts["failed"]:
        print(f"tack: {counts['failed']} of {counts['runs']} runs failed", file=sys.stderr)
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
