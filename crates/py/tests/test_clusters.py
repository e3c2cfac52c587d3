"""Sweeps on Ray, into storage that speaks S3, and the job of a worker for Slurm, as docs/sweep.md has them."""

import os
import re
import subprocess
import sys
import time
import types
import urllib.request
from pathlib import Path

import pytest
import tack

KEYS = {
    "name": "delays",
    "seeds": 2,
    "scenario": {"duration": "200ms", "wired": {"rate": "20Mbps"}, "flow": [{}]},
    "axis": [{"key": "wired.delay", "values": ["2ms", "10ms", "40ms"]}],
}
PATIENCE_S = 120


def contents(path):
    return {file.name: file.read_bytes() for file in Path(path).iterdir()}


class InProcessRay(types.ModuleType):
    """The functions of ``ray`` that are used, in this process; every fifth task loses its worker."""

    class exceptions:
        class WorkerCrashedError(RuntimeError):
            pass

    def __init__(self):
        super().__init__("ray")
        self.given = 0

    def cluster_resources(self):
        return {"CPU": 2.0}

    def remote(self, function):
        return types.SimpleNamespace(remote=lambda task: self._submit(function, task))

    def _submit(self, function, task):
        self.given += 1
        crashes = self.given % 5 == 0
        return lambda: self._crash() if crashes else function(task)

    def _crash(self):
        raise self.exceptions.WorkerCrashedError("worker died")

    def wait(self, handles, *, num_returns, timeout):
        return handles[:num_returns], handles[num_returns:]

    def get(self, handle):
        return handle()

    def cancel(self, handle, *, force):
        pass


def test_rays_interface_makes_the_same_files(tmp_path):
    expected = contents(tack.sweep(KEYS, tmp_path / "here").path)
    ray = InProcessRay()
    result = tack.sweep(KEYS, tmp_path / "there", client=ray, task_s=0.01)
    assert ray.given > 5, "one at least was lost"
    assert result.complete and contents(result.path) == expected


def test_ray_makes_the_same_files(tmp_path):
    """Real Ray is large (`pip install ray`), so that it is only used where it is installed."""
    ray = pytest.importorskip("ray", reason="SKIPPED: ray is not installed")
    expected = contents(tack.sweep(KEYS, tmp_path / "here").path)
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", object_store_memory=100 << 20)
    try:
        result = tack.sweep(KEYS, tmp_path / "there", client=ray, task_s=0.01)
    finally:
        ray.shutdown()
    assert result.complete and contents(result.path) == expected


@pytest.fixture
def bucket(monkeypatch):
    """A server of S3 on the loopback interface, with a bucket; the storage options are in the environment."""
    pytest.importorskip("moto", reason="SKIPPED: moto is not installed")
    s3fs = pytest.importorskip("s3fs", reason="SKIPPED: s3fs is not installed")
    server = "from moto.server import ThreadedMotoServer as S; import time; s = S('127.0.0.1', 0, verbose=False); s.start(); "
    server += "print(s.get_host_and_port()[1], flush=True); time.sleep(600)"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    process = subprocess.Popen([sys.executable, "-c", server], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        address = f"http://127.0.0.1:{int(process.stdout.readline())}"
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        values = {"AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        system = s3fs.S3FileSystem()
        system.mkdir("bucket")
        yield system
    finally:
        process.kill()
        process.wait()
        s3fs.S3FileSystem.clear_instance_cache()


def test_s3_has_the_files_of_a_folder(bucket, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    expected = contents(tack.sweep(KEYS, tmp_path / "here").path)
    with ThreadPoolExecutor(2) as executor:
        result = tack.sweep(KEYS, "s3://bucket/sweeps", client=executor, task_s=0.01)
        bucket.invalidate_cache()
        found = {Path(name).name: bucket.cat(name) for name in bucket.ls(result.path.removeprefix("s3://"), detail=False)}
        assert result.complete and found == expected
        again = tack.sweep(KEYS, "s3://bucket/sweeps", client=executor)
    assert again.counts["reused"] == again.counts["runs"] == 6


def test_the_job_for_slurm_is_that_of_the_documentation():
    """No Slurm is needed to make the script of a job; ``sbatch`` would take it."""
    jobqueue = pytest.importorskip("dask_jobqueue", reason="SKIPPED: dask_jobqueue is not installed")
    document = Path(__file__).parents[3] / "docs" / "sweep.md"
    call = re.search(r"^cluster = SLURMCluster\((.*)\)$", document.read_text(), re.MULTILINE)
    assert call, "docs/sweep.md shows how"
    options = eval(f"dict({call[1]})", {"__builtins__": {}, "dict": dict})
    with jobqueue.SLURMCluster(**options, scheduler_options={"host": "127.0.0.1", "dashboard_address": None}) as cluster:
        script = cluster.job_script()
        address = cluster.scheduler_address
    lines = script.splitlines()
    for wanted in ("#SBATCH -n 1", "#SBATCH --cpus-per-task=1", "#SBATCH -t 04:00:00"):
        assert wanted in lines, script
    assert "distributed.cli.dask_worker" in lines[-1] or "dask worker" in lines[-1]
    assert address in lines[-1] and "--nthreads 1" in lines[-1]
