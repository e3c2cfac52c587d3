"""Sweeps: the same files as the program's, whoever does the runs."""

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars
import pyarrow
import pytest
import tack

PLAN = """
name = "acks"
seeds = 3
[scenario]
duration = "300ms"
[scenario.wired]
rate = "20Mbps"
loss = 0.001
[[scenario.flow]]
[[axis]]
key = "flow.0.ack"
values = ["tack", "delayed:2"]
[[axis]]
key = "wired.delay"
from = "2ms"
to = "20ms"
count = 3
[columns]
acks_per_segment = "acks / data_segments"
"""

KEYS = {
    "name": "acks",
    "seeds": 3,
    "scenario": {"duration": "300ms", "wired": {"rate": "20Mbps", "loss": 0.001}, "flow": [{}]},
    "axis": [
        {"key": "flow.0.ack", "values": ["tack", "delayed:2"]},
        {"key": "wired.delay", "from": "2ms", "to": "20ms", "count": 3},
    ],
    "columns": {"acks_per_segment": "acks / data_segments"},
}


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "acks.toml"
    path.write_text(PLAN)
    return path


def files(path):
    return {file.name: file.read_bytes() for file in Path(path).iterdir()}


def test_rows_are_those_of_simulate(plan, tmp_path):
    told = []
    result = tack.sweep(plan, tmp_path / "out", progress=lambda done, total: told.append((done, total)))
    assert result.complete and result.counts["runs"] == len(result.rows) == 18
    assert told[-1] == (18, 18)
    rows = pyarrow.table(result.rows).to_pylist()
    scenario = tack.Scenario(duration="300ms", wired={"rate": "20Mbps", "loss": 0.001, "delay": "20ms"}, flow=[{"ack": "delayed:2"}])
    run = tack.simulate(scenario, 3)
    assert rows[-1]["trace_hash"] == run.trace_hash
    assert rows[-1]["flows.0.goodput_bps"] == run.flows[0].goodput_bps
    assert rows[-1]["acks_per_segment"] == run.flows[0].acks / run.flows[0].data_segments
    assert rows[-1]["wired.delay_s"] == 0.02
    # What is on the disk is the same.
    assert polars.read_parquet(f"{result.path}/*.parquet").equals(polars.DataFrame(result.rows))
    again = tack.sweep(plan, tmp_path / "out")
    assert again.counts["reused"] == 18
    assert pyarrow.table(again.rows).equals(pyarrow.table(result.rows))


def test_the_files_are_the_programs(plan, tmp_path):
    """``TACK`` names the program; CI sets it."""
    program = os.environ.get("TACK")
    if program is None:
        pytest.skip("SKIPPED: TACK does not name the program to compare with")
    command = [program, "sweep", str(plan), "--out", str(tmp_path / "program"), "--json"]
    line = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    expected = files(json.loads(line)["folder"])
    assert files(tack.sweep(plan, tmp_path / "python").path) == expected
    assert files(tack.sweep(KEYS, tmp_path / "keys").path) == expected


def test_a_plan_may_be_a_dictionary_and_its_scenarios_changed(tmp_path):
    result = tack.sweep(KEYS, tmp_path, set=["duration=200ms"], jobs=1)
    assert len(result.rows) == 18
    assert max(result.rows["virtual_seconds"]) <= 0.2


def test_mistakes_name_their_place(tmp_path):
    with pytest.raises(tack.ScenarioError, match=r"plan.toml:\d+: wired.dealy: unknown key; did you mean \"delay\""):
        tack.sweep(KEYS | {"axis": [{"key": "wired.dealy", "values": ["1ms"]}]}, tmp_path)
    with pytest.raises(TypeError, match="the text of a plan"):
        tack.sweep(PLAN, tmp_path)
    with pytest.raises(FileNotFoundError):
        tack.sweep(tmp_path / "none.toml", tmp_path)
    with pytest.raises(TypeError, match="distributed.Client"):
        tack.sweep(KEYS, tmp_path, client=5)
    with pytest.raises(ValueError, match="jobs"):
        tack.sweep(KEYS, tmp_path, jobs=0)


@pytest.mark.parametrize("kind", [concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor])
def test_an_executor_makes_the_same_files(plan, tmp_path, kind):
    expected = files(tack.sweep(plan, tmp_path / "here").path)
    with kind(2) as executor:
        result = tack.sweep(plan, tmp_path / "there", client=executor, task_s=0.05)
    assert files(result.path) == expected


def test_control_c_keeps_what_is_done(tmp_path):
    code = f"""
import tack
keys = {KEYS | {"seeds": 5000}!r}
def progress(done, total):
    if done > 20:
        print("running", flush=True)
try:
    tack.sweep(keys, {str(tmp_path)!r}, jobs=2, progress=progress)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "running\n"
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert out.endswith("interrupted\n")
    assert tack.sweep(KEYS, tmp_path).counts["reused"] >= 6


class Unreliable:
    """Workers that are lost with every third task, and results that come twice."""

    def __init__(self):
        self.tasks, self.given = {}, 0

    def workers(self):
        return 2

    def submit(self, task):
        self.given += 1
        self.tasks[self.given] = task
        return self.given

    def wait(self, handles, timeout_s):
        handle = handles[-1]
        if handle % 3 == 0:
            return [(handle, tack.WorkerLost(f"worker of task {handle}"))]
        return [(handle, tack.executors.run_task(self.tasks[handle]))]

    def cancel(self, handles):
        pass


def test_lost_workers_do_no_harm(plan, tmp_path):
    expected = files(tack.sweep(plan, tmp_path / "here").path)
    pool = Unreliable()
    result = tack.sweep(plan, tmp_path / "there", client=pool, task_s=0.01)
    assert pool.given > 8
    assert result.complete and files(result.path) == expected


def test_a_task_that_kills_its_workers_ends_the_sweep(plan, tmp_path):
    class Deadly(Unreliable):
        def wait(self, handles, timeout_s):
            return [(handles[0], tack.WorkerLost("worker gone"))]

    with pytest.raises(tack.WorkerLost, match="lost 4 times"):
        tack.sweep(plan, tmp_path, client=Deadly())


def test_damaged_files_are_named_and_set_aside(plan, tmp_path):
    first = tack.sweep(plan, tmp_path / "out")
    (name, content), = files(first.path).items()
    Path(first.path, name).write_bytes(content[:-100])
    for client in (None, concurrent.futures.ThreadPoolExecutor(2)):
        again = tack.sweep(plan, tmp_path / "out", client=client)
        assert again.counts["reused"] == 0
        assert len(again.damaged) == 1 and name in again.damaged[0][0]
        assert files(again.path)[name] == content
        assert name + ".damaged" in files(again.path)
        Path(first.path, name).write_bytes(content[:-100])


def test_url_storage(plan, tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="SKIPPED: fsspec is not installed")
    expected = files(tack.sweep(plan, tmp_path / "here").path)
    system = fsspec.filesystem("memory")
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        result = tack.sweep(plan, "memory://bucket/sweeps", client=executor, task_s=0.05)
        assert result.path.startswith("memory://bucket/sweeps/plan=acks-")
        names = system.ls("/bucket/sweeps/" + result.path.rsplit("/", 1)[-1], detail=False)
        assert {name.rsplit("/", 1)[-1]: system.cat_file(name) for name in names} == expected
        again = tack.sweep(plan, "memory://bucket/sweeps", client=executor)
        assert again.counts["reused"] == 18


def test_this_machine_writes_to_urls_too(plan, tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="SKIPPED: fsspec is not installed")
    expected = files(tack.sweep(plan, f"file://{tmp_path}/here").path)
    assert (tmp_path / "here").is_dir()
    told = []
    result = tack.sweep(plan, "memory://alone/sweeps", jobs=2, progress=lambda done, total: told.append((done, total)))
    system = fsspec.filesystem("memory")
    names = system.ls(result.path.removeprefix("memory:/"), detail=False)
    assert {name.rsplit("/", 1)[-1]: system.cat_file(name) for name in names} == expected
    assert told[-1] == (18, 18)
    with pytest.raises(ValueError, match="jobs of 1 or more, got 0"):
        tack.sweep(plan, "memory://alone/sweeps", jobs=0)


class Vanishing:
    """Storage in which another program merges two files while they are read."""

    def __init__(self):
        self.lists = [["a.parquet", "b.parquet", "note.txt"], ["c.parquet"]]

    def names(self):
        return self.lists.pop(0)

    def read(self, name):
        if name == "b.parquet":
            raise FileNotFoundError(name)
        return name.encode()


def test_files_that_another_program_merges_are_not_missed():
    storage = Vanishing()
    assert dict(tack.storage._read(storage.names, storage.read)) == {"a.parquet": b"a.parquet", "c.parquet": b"c.parquet"}


def test_files_that_another_program_removed_first(tmp_path):
    pytest.importorskip("fsspec", reason="SKIPPED: fsspec is not installed")
    storage = tack.storage.storage_at("memory://removed")
    storage.merge("plan=x", "a.parquet", b"a", ["b.parquet"])
    storage.set_aside("plan=x", ["c.parquet"])
    assert dict(storage.files("plan=x")) == {"a.parquet": b"a"}


def test_damaged_files_of_other_plans_are_named(plan, tmp_path):
    first = tack.sweep(plan, tmp_path / "out")
    (name, content), = files(first.path).items()
    Path(first.path, name).write_bytes(content[:-100])
    other = KEYS | {"columns": {}}
    for client in (None, concurrent.futures.ThreadPoolExecutor(2)):
        result = tack.sweep(other | {"seeds": 4 if client else 3}, tmp_path / "out", client=client)
        assert [Path(path).name for path, _ in result.damaged] == [name] and "damaged" in result.damaged[0][1]
