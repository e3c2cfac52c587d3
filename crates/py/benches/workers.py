"""Two worker processes of Dask against the runner of this process with two threads, on the same plan.

    python crates/py/benches/workers.py --pairs 6 --runs 400

Both take turns, in an order that changes, so that other load on the machine hits both. A ratio above 1 means that the
workers are faster. It ends with the figures that the length of a task follows from.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil  # of distributed
import tack
from distributed import Client, LocalCluster

DELAYS = ["2ms", "5ms", "10ms", "20ms", "40ms"]


def plan(runs: int) -> dict[str, Any]:
    return {
        "name": "bench",
        "scenario": {"duration": "1s", "wired": {"rate": "100Mbps"}, "flow": [{"ack": "tack"}]},
        "axis": [{"key": "wired.delay", "values": DELAYS}],
        "seeds": max(runs // len(DELAYS), 1),
    }


def processor_s() -> float:
    """Of this process with the scheduler, and of the workers."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def timed(keys: dict[str, Any], **how: Any) -> tuple[float, float, dict[str, bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        began, used = time.perf_counter(), processor_s()
        result = tack.sweep(keys, folder, **how)
        took, used = time.perf_counter() - began, processor_s() - used
        return took, used, {file.name: file.read_bytes() for file in Path(result.path).iterdir()}


def echo(task: bytes) -> bytes:
    return task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--task-s", type=float, default=1.0)
    args = parser.parse_args()
    keys = plan(args.runs)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        sides = {"embedded": {"jobs": 2}, "workers": {"client": client, "task_s": args.task_s}}
        timed(plan(20), **sides["workers"])  # the workers import the package
        took: dict[str, list[float]] = {side: [] for side in sides}
        processor = dict.fromkeys(sides, 0.0)
        for number in range(args.pairs):
            files = []
            for side in sorted(sides, reverse=number % 2 == 1):
                seconds, used, content = timed(keys, **sides[side])
                took[side].append(seconds)
                processor[side] += used
                files.append(content)
            assert files[0] == files[1], "the files differ"
        ratios = [here / there for here, there in zip(took["embedded"], took["workers"])]
        for side, all_s in took.items():
            print(f"{side:<9}" + " ".join(f"{one:6.1f}" for one in all_s) + " s")
        print(f"ratio    {sum(took['embedded']) / sum(took['workers']):.3f}, pairs {min(ratios):.2f} to {max(ratios):.2f}, "
              f"median {statistics.median(ratios):.2f}; by processor time {processor['embedded'] / processor['workers']:.3f}")
        # A task that does nothing, many of them out at a time: what the scheduler and both workers need for each.
        began = time.perf_counter()
        client.gather([client.submit(echo, bytes(4000), key=f"echo-{number}") for number in range(1000)])
        print(f"a task without work: {(time.perf_counter() - began):.2f} ms each, of 1000")
        state = tack._core.SweepState("plan.toml", tack._core.plan_text(keys), [], args.task_s)
        name, runs, task = state.next_batch(2)
        result = tack.executors.run_task(task)
        state.accept(result)
        print(f"a task of {runs} runs: {len(task)} bytes, its result {len(result)} bytes")
        name, runs, task = state.next_batch(2)
        result = tack.executors.run_task(task)
        began = time.perf_counter()
        state.accept(result)
        accepted_ms = (time.perf_counter() - began) * 1e3
        print(f"a task of {runs} runs: {len(task)} bytes, its result {len(result)} bytes, taken over in {accepted_ms:.1f} ms")


if __name__ == "__main__":
    main()
