"""Runs: the same as the program's, their records and columns, many at a time, stopped by Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
import pytest
import tack

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

PROJECT = Path(__file__).parents[3]
# That of all mechanisms lacks a key without which it is no scenario.
SCENARIOS = sorted(path for path in (PROJECT / "scenarios").rglob("*.toml") if path.parent.name != "plans" and path.stem != "mechanisms")
SHORT = """
duration = "1s"
[wired]
rate = "50Mbps"
delay = "5ms"
loss = 0.001
[[flow]]
ack = "tack"
[[flow]]
transport = "udp"
rate = "1Mbps"
"""
WIRELESS = """
duration = "500ms"
[wlan]
standard = "802.11n"
stations = 2
hack = "more-data"
[[flow]]
to = "each"
ack = "delayed:2"
"""


def test_the_report_is_the_programs():
    """``TACK`` names the program; CI sets it."""
    program = os.environ.get("TACK")
    if program is None:
        pytest.skip("SKIPPED: TACK does not name the program to compare with")
    for text in (SHORT, WIRELESS):
        command = [program, "sim", "-", "--seeds", "2..2", "--json"]
        line = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
        expected, got = json.loads(line), tack.simulate(tack.Scenario(text, file="-"), 2).to_dict()
        got = json.loads(json.dumps(got))
        for report in (expected, got):
            del report["wall_seconds"]
            del report["name"]
        assert got == expected


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_each_scenario_of_the_project_is_the_programs(path):
    """From the file, from keyword arguments, and by the program: one report, bit for bit."""
    keys = tomllib.loads(path.read_text())
    late = [f"flow.{number}.{key}" for number, flow in enumerate(keys["flow"]) for key in ("start", "stagger") if key in flow]
    settings = dict.fromkeys(late, "0s")
    settings |= {"warmup": "0s", "duration": "300ms"}
    keys.setdefault("name", path.stem)
    reports = []
    for scenario in (tack.Scenario.from_file(path), tack.Scenario(**keys, file=str(path))):
        for key, value in settings.items():
            scenario.set(key, value)
        reports.append(json.loads(json.dumps(tack.simulate(scenario, 3).to_dict())))
    program = os.environ.get("TACK")
    if program is not None:
        changes = [argument for key, value in settings.items() for argument in ("--set", f"{key}={value}")]
        command = [program, "sim", str(path), *changes, "--seeds", "3..3", "--json"]
        reports.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    for report in reports:
        del report["wall_seconds"]
    assert all(report == reports[0] for report in reports)


@pytest.mark.parametrize("text", [SHORT, WIRELESS])
def test_records_have_every_field_and_give_it_back(text):
    run = tack.simulate(tack.Scenario(text), 1)
    assert run.report.to_dict() == run.to_dict()
    assert tack.Report.from_dict(run.to_dict()) == run.report


def test_records_of_videos_and_requests():
    text = 'duration = "2s"\n[[flow]]\napp = "request:1KiB,10KiB"\nstop = "1s"\n[[flow]]\napp = "video"\nstop = "1s"\n'
    run = tack.simulate(tack.Scenario(text))
    assert run.flows[0].requests.completed > 10
    assert run.flows[0].video is None
    assert run.flows[1].video.frames > 10
    assert run.report.to_dict() == run.to_dict()


def test_series_and_events():
    run = tack.simulate(tack.Scenario(SHORT), 1, series_s=0.1, events=True)
    series = polars.DataFrame(run.series)
    assert series["time_s"].max() == pytest.approx(1.0)
    assert set(series["flow"]) == {0, 1}
    events = polars.DataFrame(run.events)
    acks = events.filter(polars.col("name") == "tack:ack_sent")
    assert len(acks) == pytest.approx(run.flows[0].acks, abs=3)
    assert "data.reason" in events.columns
    plain = tack.simulate(tack.Scenario(SHORT), 1)
    assert (plain.series, plain.events) == (None, None)
    assert plain.trace_hash == run.trace_hash


def test_a_capture_has_the_frames_of_the_air(tmp_path):
    path = tmp_path / "run.pcapng"
    run = tack.simulate(tack.Scenario(WIRELESS), 1, pcap=path)
    content = path.read_bytes()
    assert content[:4] == b"\x0a\x0d\x0d\x0a", "the first block of pcapng"
    assert tack.simulate(tack.Scenario(WIRELESS), 1).trace_hash == run.trace_hash
    program = os.environ.get("TACK")
    if program is not None:
        other = tmp_path / "program.pcapng"
        command = [program, "sim", "-", "--seeds", "1..1", "--json", "--pcap", str(other)]
        subprocess.run(command, input=WIRELESS, capture_output=True, text=True, check=True)
        assert content == other.read_bytes()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        tack.simulate(tack.Scenario(WIRELESS), 1, pcap=tmp_path / "nowhere" / "run.pcapng")


def test_every_invariant_is_checked_on_request():
    assert tack.simulate(tack.Scenario(SHORT), 1, checks=True).flows[0].stalls == 0


def test_columns_in_other_libraries():
    runs = tack.simulate_many(tack.Scenario(SHORT), range(1, 4))
    table = pyarrow.table(runs.flows)
    assert table.num_rows == len(runs.flows) == 6
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["run.seed"]) == [1, 1, 2, 2, 3, 3]
    assert frame["goodput_bps"].iloc[0] == runs[0].flows[0].goodput_bps
    assert polars.DataFrame(runs.flows)["acks_by_kind.tack"].to_list() == runs.flows["acks_by_kind.tack"]
    assert runs.flows.to_dict()["transport"][:2] == ["tcp", "udp"]
    columns = runs.flows
    counted = duckdb.sql('select "run.seed" as seed, sum(acks) as acks from columns group by all order by all').fetchall()
    assert counted == [(run.seed, sum(flow.acks for flow in run.flows)) for run in runs]
    with pytest.raises(ValueError, match="no column"):
        runs.flows["goodput"]
    # A stream can be taken as often as one likes.
    assert pyarrow.table(runs.runs).equals(pyarrow.table(runs.runs))


def test_columns_are_taken_without_a_copy():
    series = tack.simulate(tack.Scenario(SHORT), 1, series_s=0.01).series
    first, second = pyarrow.table(series)["goodput_bps"], pyarrow.table(series)["goodput_bps"]
    (address,) = {column.chunk(0).buffers()[1].address for column in (first, second)}
    assert polars.DataFrame(series)["goodput_bps"].to_numpy(allow_copy=False).ctypes.data == address
    frame = pyarrow.table(series).select(["goodput_bps"]).to_pandas(zero_copy_only=True, split_blocks=True)
    assert frame["goodput_bps"].to_numpy().ctypes.data == address


def test_columns_of_radios():
    runs = tack.simulate_many([tack.Scenario(WIRELESS), tack.Scenario(SHORT)])
    assert runs.stations["name"] == ["ap", "sta0", "sta1"]
    everything = pyarrow.table(runs.runs).to_pandas()
    assert everything["wlan.ppdus"].notna().tolist() == [True, False]


def test_many_are_as_one_by_one_and_in_order():
    scenario = tack.Scenario(SHORT)
    other = scenario.copy()
    other.set("flow.0.ack", "delayed:2")
    told = []
    runs = tack.simulate_many([scenario, other], [5, 6], jobs=2, progress=lambda done, total: told.append((done, total)))
    expected = [tack.simulate(one, seed).trace_hash for one in (scenario, other) for seed in (5, 6)]
    assert [run.trace_hash for run in runs] == expected
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [run.seed for run in runs[1:3]] == [6, 5]
    assert runs[-1].seed == 6
    with pytest.raises(IndexError):
        runs[4]
    with pytest.raises(ValueError, match="jobs"):
        tack.simulate_many(scenario, jobs=0)


def test_other_threads_go_on():
    """Without the lock: a thread that counts is not stopped by a run."""
    counted, ended = [0], threading.Event()

    def count():
        while not ended.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    tack.simulate(tack.Scenario(SHORT), 1)
    progressed = counted[0] - before
    ended.set()
    thread.join()
    assert progressed > 0


@pytest.mark.parametrize("call", ["simulate(scenario)", "simulate_many(scenario, range(50), jobs=2)"])
def test_control_c_ends_runs(call):
    """A year of virtual time takes days; the interrupt arrives while it runs."""
    code = f"""
import tack
scenario = tack.Scenario("duration = '8000h'\\n[[flow]]")
try:
    print("running", flush=True)
    tack.{call}
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
    assert out == "interrupted\n"
