"""``simulate_many`` against the program, on the same scenario and seeds, and the overhead of one call.

    python crates/py/benches/throughput.py target/release/tack --runs 10000

Both take turns, batch by batch, in an order that changes, so that other load on the machine hits both. A ratio above 1 means
that Python is faster. Processor time leaves out what other programs did meanwhile.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tack

SCENARIO = 'duration = "1s"\n[wired]\nrate = "100Mbps"\ndelay = "10ms"\n[[flow]]\nack = "tack"\n'


def processor_s(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def in_python(scenario: tack.Scenario, seeds: range, jobs: int) -> tuple[float, float, list[str]]:
    began, used = time.perf_counter(), processor_s(resource.RUSAGE_SELF)
    runs = tack.simulate_many(scenario, seeds, jobs=jobs)
    took = time.perf_counter() - began, processor_s(resource.RUSAGE_SELF) - used
    return *took, [run.to_dict()["trace_hash"] for run in runs]


def in_program(program: str, file: Path, seeds: range, jobs: int) -> tuple[float, float, list[str]]:
    command = [program, "sim", str(file), "--seeds", f"{seeds[0]}..{seeds[-1]}", "--jobs", str(jobs), "--json"]
    began, used = time.perf_counter(), processor_s(resource.RUSAGE_CHILDREN)
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    took = time.perf_counter() - began, processor_s(resource.RUSAGE_CHILDREN) - used
    return *took, [json.loads(line)["trace_hash"] for line in printed.splitlines()]


def overhead_ms(calls: int) -> list[float]:
    """What a call takes besides its run, milliseconds."""
    scenario = tack.Scenario(SCENARIO)
    scenario.set("duration", "1ms")
    took = []
    for _ in range(calls):
        began = time.perf_counter()
        run = tack.simulate(scenario)
        took.append((time.perf_counter() - began - run.wall_seconds) * 1e3)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the release build of tack")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=250, help="runs before the other one's turn")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    scenario = tack.Scenario(SCENARIO)
    wall, processor = {"python": [], "program": []}, {"python": 0.0, "program": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scenario.toml"
        file.write_text(SCENARIO)
        sides = {
            "python": lambda seeds: in_python(scenario, seeds, args.jobs),
            "program": lambda seeds: in_program(args.program, file, seeds, args.jobs),
        }
        for number, first in enumerate(range(1, args.runs + 1, args.batch)):
            seeds = range(first, min(first + args.batch, args.runs + 1))
            hashes = {}
            for side in sorted(sides, reverse=number % 2 == 1):
                took, used, hashes[side] = sides[side](seeds)
                wall[side].append(took)
                processor[side] += used
            assert hashes["python"] == hashes["program"], f"other results from seed {first} on"
            ratio = processor["program"] / processor["python"]
            print(f"{seeds[-1]} of {args.runs} runs, ratio by processor time {ratio:.3f}", file=sys.stderr, flush=True)
    for side in sides:
        total = sum(wall[side])
        print(f"{side:<8} {args.runs} runs in {total:.1f} s, {args.runs / total:.1f} a second, {processor[side]:.1f} s of processors")
    pairs = [other / own for other, own in zip(wall["program"], wall["python"])]
    ratio, by_processor = sum(wall["program"]) / sum(wall["python"]), processor["program"] / processor["python"]
    print(f"ratio    {ratio:.3f} by the clock (median of {len(pairs)} pairs {statistics.median(pairs):.3f}), {by_processor:.3f} by processor time")
    took = sorted(overhead_ms(500))
    print(f"overhead of a call: median {statistics.median(took):.3f} ms, 95 % below {took[len(took) * 95 // 100]:.3f} ms")


if __name__ == "__main__":
    main()
