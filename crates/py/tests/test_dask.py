"""A sweep, and the lab, on a scheduler of Dask and two worker processes, one of which is killed mid-way."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
import tack

distributed = pytest.importorskip("distributed", reason="SKIPPED: distributed is not installed")

KEYS = {
    "name": "delays",
    "seeds": 6,
    "scenario": {"duration": "1s", "wired": {"rate": "50Mbps", "loss": 0.001}, "flow": [{}]},
    "axis": [
        {"key": "flow.0.ack", "values": ["tack", "delayed:2"]},
        {"key": "wired.delay", "from": "2ms", "to": "40ms", "count": 6},
    ],
}
PATIENCE_S = 120
# Few short runs; those of S1 need a file that no worker has.
FIGURES = ["S1", "17"]


@contextlib.contextmanager
def cluster(folder):
    """A scheduler and two workers on the loopback interface: the scheduler's address, and the workers' processes."""
    file = folder / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    # A worker without a nanny stays dead.
    worker = ["worker", "--scheduler-file", str(file), "--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1"]
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    with contextlib.ExitStack() as stack:
        with (folder / "log").open("w") as log:
            started = [subprocess.Popen(dask + scheduler, cwd=folder, stdout=log, stderr=log)]
            stack.callback(end, started)
            started += [subprocess.Popen(dask + worker, cwd=folder, stdout=log, stderr=log) for _ in range(2)]
        deadline = time.monotonic() + PATIENCE_S
        while (address := written(file)) is None:
            assert time.monotonic() < deadline and started[0].poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        yield address, started[1:]


def written(file):
    """The scheduler's address, once its file is there as a whole."""
    try:
        return json.loads(file.read_text())["address"]
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def end(processes):
    for process in processes:
        process.kill()
        process.wait()


def files(path):
    return {file.name: file.read_bytes() for file in Path(path).iterdir()}


class Watched(tack.executors.DaskPool):
    """Notes which tasks a worker began, and which results came."""

    def __init__(self, client, log):
        super().__init__(client)
        self._client, self._log, self._tasks = client, str(log), {}

    def note(self, what, task):
        with open(self._log, "a") as log:
            log.write(f"{what} {zlib.crc32(task)}\n")

    def submit(self, task):
        log = self._log

        # Workers lack this module: a function of a function travels by its code.
        def work(task):
            with open(log, "a") as file:
                file.write(f"began {__import__('zlib').crc32(task)}\n")
            return __import__("tack").executors.run_task(task)

        handle = self._client.submit(work, task, pure=False)
        self._tasks[handle.key] = task
        return handle

    def wait(self, handles, timeout_s):
        ended = super().wait(handles, timeout_s)
        for handle, result in ended:
            if isinstance(result, bytes):
                self.note("came", self._tasks[handle.key])
        return ended


def test_a_killed_worker_costs_only_what_it_was_doing(tmp_path):
    expected = tack.sweep(KEYS, tmp_path / "here")
    killed = []
    with cluster(tmp_path) as (address, workers), distributed.Client(address) as client:
        client.wait_for_workers(2, timeout=PATIENCE_S)
        pool = Watched(client, tmp_path / "tasks")

        def progress(done, total):
            if done >= total // 4 and not killed:
                workers[0].send_signal(signal.SIGKILL)
                killed.append(done)

        result = tack.sweep(KEYS, tmp_path / "there", client=pool, task_s=0.2, progress=progress)
        assert killed and killed[0] < result.counts["runs"], "the sweep went on with one worker"
        workers[0].wait()
        assert len(client.nthreads()) == 1
    assert result.complete
    assert files(result.path) == files(expected.path)
    lines = [line.split() for line in (tmp_path / "tasks").read_text().splitlines()]
    came = {}
    for at, (what, task) in enumerate(lines):
        if what == "came":
            came[task] = at
    again = [task for at, (what, task) in enumerate(lines) if what == "began" and came.get(task, at) < at]
    assert not again, "a task is done again although its result had come"
    began = [task for what, task in lines if what == "began"]
    # No more can be out at a time: two tasks for each worker.
    assert len(began) - len(set(began)) <= 4


def test_the_program_starts_it(tmp_path):
    """``TACK`` names the program; CI sets it."""
    program = os.environ.get("TACK")
    if program is None:
        pytest.skip("SKIPPED: TACK does not name the program")
    plan = tmp_path / "delays.toml"
    plan.write_text(tack._core.plan_text(KEYS))
    environment = os.environ | {"TACK_PYTHON": sys.executable}

    def run(*arguments, **changes):
        command = [program, "sweep", str(plan), "--json", *arguments]
        return subprocess.run(command, env=environment | changes, capture_output=True, text=True, timeout=PATIENCE_S)

    with cluster(tmp_path) as (address, _):
        ended = run("--dask", address, "--out", f"file://{tmp_path}/there")
        assert ended.returncode == 0, ended.stderr
        summary = json.loads(ended.stdout)
        assert summary["complete"] and summary["new"] == 72
        again = json.loads(run("--out", str(tmp_path / "there")).stdout)
        assert again["reused"] == 72 and files(again["folder"]) == files(summary["folder"])
        assert files(again["folder"]) == files(tack.sweep(KEYS, tmp_path / "here").path)
        wrong = run("--dask", address, "--set", "wired.dealy=5ms")
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert 'did you mean "delay"?' in wrong.stderr
    unreachable = run("--dask", "tcp://127.0.0.1:1")
    assert unreachable.returncode == 3 and "no scheduler of Dask at tcp://127.0.0.1:1" in unreachable.stderr
    no_python = run("--dask", "tcp://127.0.0.1:1", TACK_PYTHON="/nowhere/python")
    assert no_python.returncode == 2 and "/nowhere/python" in no_python.stderr


def test_the_lab_on_workers_is_the_lab_on_this_machine(tmp_path):
    """``TACK`` names the program; CI sets it."""
    program = os.environ.get("TACK")
    if program is None:
        pytest.skip("SKIPPED: TACK does not name the program")
    environment = os.environ | {"TACK_PYTHON": sys.executable}

    def lab(results, *arguments):
        command = [program, "lab", "run", *FIGURES, "--seeds", "1", "--results", str(tmp_path / results), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)

    here = lab("here")
    assert here.returncode == 0, here.stderr
    unreachable = lab("there", "--dask", "tcp://127.0.0.1:1")
    assert unreachable.returncode == 3 and "no scheduler of Dask at tcp://127.0.0.1:1" in unreachable.stderr
    with cluster(tmp_path) as (address, _):
        there = lab("there", "--dask", address)
    assert (there.returncode, there.stdout) == (0, here.stdout), there.stderr

    def journal(results):
        return sorted((tmp_path / results / "points.jsonl").read_text().splitlines())

    def tables(results):
        return [(tmp_path / results / name).read_bytes() for name in ("results.csv", "results.parquet")]

    assert journal("there") == journal("here")
    assert tables("there") == tables("here")
    again = lab("there", "--dask", "tcp://127.0.0.1:1")
    assert (again.returncode, again.stdout) == (0, here.stdout), "nothing is missing, so that no scheduler is needed"
