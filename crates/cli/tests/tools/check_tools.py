"""Checks with other people's programs what `tack perf` and `--metrics` print: the parser of the package iperf3, the two
parsers of prometheus_client, and flent.

    python check_tools.py TACK FLENT_FOLDER

TACK is the program, FLENT_FOLDER is contrib/flent. Everything stays on loopback.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import flent
import iperf3
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

program, contrib = sys.argv[1], Path(sys.argv[2]).resolve()
program = str(Path(program).resolve())
scratch = Path(tempfile.mkdtemp())
environment = os.environ | {"TACK_STATE_DIR": str(scratch / "state")}


def check_iperf3(address: str) -> None:
    for options in ([], ["-R"], ["--bidir"], ["-P", "3"], ["-O", "0.3"], ["-u", "-b", "5M"], ["-u", "-R", "-b", "5M"], ["--rr=load"]):
        command = [program, "perf", address, "--insecure", "--json=iperf3", "-t", "1", "-i", "0.5", *options]
        text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=60).stdout
        result = iperf3.TestResult(text)
        assert result.error is None, result.error
        assert result.type == "client" and result.reverse == ("-R" in options)
        if "-u" in options:
            assert result.protocol == "UDP" and result.packets > 0, text
        else:
            assert result.protocol == "TCP" and result.sent_bytes >= result.received_bytes > 0, text
            assert result.received_bps > 0 and result.retransmits is not None
        assert result.local_cpu_total > 0 and result.remote_cpu_total > 0
        assert f"{result.remote_host}:{result.remote_port}" == address
        print("iperf3", *options, "ok")


def check_metrics(url: str) -> None:
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        text = answer.read().decode()
    families = {family.name: family for family in openmetrics(text)}
    assert families["tack_acks_sent"].type == "counter" and families["tack_rtt_seconds"].type == "histogram"
    read = [sample.value for sample in families["tack_read_bytes"].samples]
    assert read[0] > 1 << 20, text
    names = {sample.name for family in prometheus(text) for sample in family.samples}
    assert "tack_acks_sent_total" in names and "tack_connections" in names
    print("prometheus_client ok:", len(families), "metrics")


def check_flent(address: str) -> None:
    tests = Path(flent.__file__).parent / "tests"
    shutil.copy(contrib / "tack_upload.conf", tests)
    # flent knows hosts, not ports.
    host, port = address.rsplit(":", 1)
    path = {"PATH": f"{contrib}{os.pathsep}{os.environ['PATH']}", "TACK": program, "TACK_PERF_OPTIONS": f"--insecure --port {port}"}
    command = [str(Path(sys.executable).parent / "flent"), "tack_upload", "-H", host, "-l", "3", "-s", "0.5", "-D", str(scratch)]
    subprocess.run(command, check=True, env=environment | path, timeout=120)
    (data,) = scratch.glob("*.flent.gz")
    result = json.loads(gzip.open(data).read())
    values = [value["val"] for value in result["raw_values"]["Upload"]]
    assert len(values) >= 3 and all(value > 0 for value in values), values
    assert result["metadata"]["SERIES_META"]["Upload"]["MEAN_VALUE"] > 0
    print("flent ok:", len(values), "values")


serving = [program, "perf", "--server", "--insecure", "--listen", "127.0.0.1:0", "--json", "--metrics", "0"]
server = subprocess.Popen(serving, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
try:
    url = server.stderr.readline().split()[-1]
    address = json.loads(server.stdout.readline())["address"]
    check_iperf3(address)
    check_metrics(url)
    check_flent(address)
finally:
    server.kill()
    shutil.rmtree(scratch, ignore_errors=True)
