"""``python -m tack.dask_lab``: what ``tack lab run --dask`` starts. It adds to the journal of the results what is missing; the
program then reads it. Exit codes are those of the program."""

from __future__ import annotations

import argparse
import sys

from ._core import LabState
from .dask_runner import FAILED, USAGE, with_client
from .executors import do_tasks, pool_of


def main(arguments: list[str] | None = None) -> int:
    """Does the runs of figures on the workers of a scheduler; returns the exit code."""
    parser = argparse.ArgumentParser(prog="tack.dask_lab")
    parser.add_argument("figures", nargs="+")
    parser.add_argument("--dask", required=True, metavar="ADDRESS")
    parser.add_argument("--results", default="lab-results")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--traces")
    parser.add_argument("--task-s", type=float, default=5.0)
    args = parser.parse_args(arguments)
    try:
        state = LabState(args.figures, args.full, args.seeds, args.traces, args.results, args.task_s)
    except (OSError, ValueError) as error:
        print(f"tack: {error}", file=sys.stderr)
        return USAGE

    def accept(result: bytes) -> None:
        for failure in state.accept(result):
            print(f"tack: {failure}", file=sys.stderr)

    def work(client, progress):
        do_tasks(state, pool_of(client), accept, progress)
        return FAILED if state.counts()["failed"] else 0

    # Without a missing run no scheduler is needed.
    return 0 if state.is_done else with_client(args.dask, "lab", work)


if __name__ == "__main__":
    sys.exit(main())
