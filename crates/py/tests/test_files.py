"""Files of other programs: mahimahi's traces, iperf3's results, and qlog for qvis."""

import json
import os
import subprocess
from pathlib import Path

import pandas
import polars
import pytest
import tack

DATA = Path(__file__).parent / "data"
LOSSY = """
duration = "2s"
[wired]
rate = "20Mbps"
delay = "20ms"
loss = 0.003
[[flow]]
ack = "tack"
[[flow]]
congestion = "cubic"
start = "500ms"
"""


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


# --- mahimahi ------------------------------------------------------------------------------------


def test_a_trace_and_the_link_that_replays_it(tmp_path):
    # 12 Mbit/s for a second, then 6 Mbit/s.
    times = [*range(1, 1001), *range(1002, 2001, 2)]
    trace = tack.read_mahimahi(written(tmp_path, "step.trace", "".join(f"{at}\n" for at in times)))
    assert trace.times_ms == times
    assert trace.duration_s == 2.0
    assert trace.mean_rate_bps == 9e6
    assert trace.rates(0.5) == {"time_s": [0.0, 0.5, 1.0, 1.5], "rate_bps": [12e6, 12e6, 6e6, 6e6]}
    run = tack.simulate(tack.Scenario(duration="4s", wired={**trace.wired, "delay": "5ms"}, flow=[{}]))
    assert 0.8 * 9e6 < run.flows[0].goodput_bps < 9e6


def test_rates_of_a_trace_whose_end_cuts_an_interval(tmp_path):
    trace = tack.read_mahimahi(written(tmp_path, "a", "0\n100\n100\n\n150\n"))
    assert trace.rates(0.1) == {"time_s": [0.0, 0.1], "rate_bps": [360e3, 240e3]}
    with pytest.raises(ValueError, match="at least 0.001"):
        trace.rates(0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty file"),
        ("1\n2.5\n", ":2: expected a whole number of milliseconds, got '2.5'"),
        ("-1\n", ":1: expected a whole number"),
        ("²\n", ":1: expected a whole number"),
        ("9" * 5000, ":1: expected a whole number"),
        ("5\n4\n", ":2: 4 is earlier than the line before it, 5"),
        ("0\n0\n", "must be above zero"),
    ],
)
def test_what_is_no_trace_is_refused_by_both(tmp_path, text, why):
    path = written(tmp_path, "bad.trace", text)
    with pytest.raises(ValueError, match=why):
        tack.read_mahimahi(path)
    with pytest.raises(tack.ScenarioError):
        tack.simulate(tack.Scenario(wired={"trace": {"file": str(path)}}, flow=[{}]))


# --- iperf3 --------------------------------------------------------------------------------------


def test_a_tcp_test_of_two_streams():
    test = tack.read_iperf3(DATA / "iperf3-tcp.json")
    assert (test.protocol, test.congestion) == ("TCP", "bbr")
    streams, intervals = polars.DataFrame(test.streams), polars.DataFrame(test.intervals)
    assert streams.shape[0] == 4
    assert streams["rtt_us"].to_list() == [36, 22, 51, 40]
    assert intervals["bytes"].to_list() == [786432, 524288]
    assert streams["bytes"].sum() == intervals["bytes"].sum()
    sums = pandas.DataFrame(test.sums).set_index("name")
    assert sums.loc["sum_received", "goodput_bps"] == pytest.approx(10129593.4)
    assert test.raw["start"]["version"] == "iperf 3.12"


def test_a_udp_test_and_both_directions():
    udp = tack.read_iperf3(DATA / "iperf3-udp.json")
    assert udp.protocol == "UDP"
    assert udp.intervals["packets"] == [4, 4]
    assert udp.intervals["sender"] == [False, False]
    assert udp.intervals["jitter_ms"][0] == pytest.approx(0.245, abs=1e-3)
    both = polars.DataFrame(tack.read_iperf3(DATA / "iperf3-bidir.json").intervals)
    assert both["sender"].to_list() == [True, False, True, False]
    assert both["start_s"].dtype == polars.Float64


def test_a_stream_of_json_is_the_same_test(tmp_path):
    whole = json.loads((DATA / "iperf3-tcp.json").read_text())
    events = [("start", whole["start"]), *(("interval", one) for one in whole["intervals"]), ("end", whole["end"])]
    lines = "".join(json.dumps({"event": event, "data": data}) + "\n" for event, data in events)
    assert tack.read_iperf3(written(tmp_path, "stream.json", lines)) == tack.read_iperf3(DATA / "iperf3-tcp.json")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "got no JSON"),
        ("{}", "without intervals"),
        ("[1]", "without intervals"),
        ("[" * 100_000, "iperf3 --json"),
        ('{"intervals":[],"end":{},"error":"unable to connect"}', "the test failed: unable to connect"),
        ('{"intervals":[{}],"end":{}}', "a field is missing"),
        ('{"intervals":[3],"end":{}}', "a field is missing"),
        ('{"event":"start","data":{}}\n{"no":1}\n', "got no JSON"),
    ],
)
def test_what_is_no_result_of_iperf3_is_refused(tmp_path, text, why):
    with pytest.raises(ValueError, match=why):
        tack.read_iperf3(written(tmp_path, "bad.json", text))


# --- qlog ----------------------------------------------------------------------------------------

# The events of draft-ietf-quic-qlog-quic-events (version 0.3) that are written, with the fields that they may have.
STANDARD = {
    "transport:packet_sent": {"header", "raw", "frames"},
    "transport:packet_received": {"header", "raw", "frames"},
    "recovery:packet_lost": {"header", "raw", "frames", "trigger"},
    "recovery:metrics_updated": {"congestion_window", "bytes_in_flight", "latest_rtt", "min_rtt", "pacing_rate"},
    "recovery:congestion_state_updated": {"old", "new"},
    "recovery:loss_timer_updated": {"event_type", "timer_type"},
}


@pytest.fixture(scope="module")
def lossy():
    return tack.simulate(tack.Scenario(LOSSY), events=True)


def assert_is_as_the_draft_has_it(log):
    for trace in log["traces"]:
        times = [event["time"] for event in trace["events"]]
        assert times == sorted(times)
        for event in trace["events"]:
            assert set(event) == {"time", "name", "data"}
            category, _, _ = event["name"].partition(":")
            assert event["name"] in STANDARD or category == "tack"
            if category != "tack":
                assert set(event["data"]) <= STANDARD[event["name"]] | {"tack"}


def test_a_qlog_file_is_as_the_draft_has_it(lossy, tmp_path):
    path = tmp_path / "run.qlog"
    tack.write_qlog(lossy.events, path, title="two flows")
    # qvis finds out by the first kilobyte what the file is.
    assert '"qlog_version":"0.3","qlog_format":"JSON"' in path.read_text()[:1024]
    log = json.loads(path.read_text())
    assert [trace["vantage_point"] for trace in log["traces"]] == [
        {"name": "server", "type": "server"},
        {"name": "client", "type": "client"},
    ] * 2
    assert_is_as_the_draft_has_it(log)


def test_a_qlog_file_has_the_bytes_of_the_run(lossy, tmp_path):
    tack.write_qlog(lossy.events, tmp_path / "run.qlog")
    log = json.loads((tmp_path / "run.qlog").read_text())
    for trace, flow in zip(log["traces"][::2], lossy.flows, strict=True):
        of = {name: [one["data"] for one in trace["events"] if one["name"] == name] for name in STANDARD}
        sent = sum(data["raw"]["length"] for data in of["transport:packet_sent"])
        # All but what left after the last acknowledgement; the first segments have no timestamp yet.
        assert sent == pytest.approx(flow.data_segments * 1448, rel=0.01)
        numbers = [data["header"]["packet_number"] for data in of["transport:packet_sent"]]
        assert numbers == list(range(len(numbers)))
        acked = [range(*span) for data in of["transport:packet_received"] for span in data["frames"][0].get("acked_ranges", [])]
        assert all(later.start == earlier.stop + 1 for earlier, later in zip(acked, acked[1:]))
        assert acked[-1].stop < len(numbers)
        last = of["recovery:metrics_updated"][-1]
        assert last["min_rtt"] == pytest.approx(flow.min_rtt_us / 1e3, rel=1e-3)
        states = [data["new"] for data in of["recovery:congestion_state_updated"]]
        assert "recovery" in states
        assert all(one != other for one, other in zip(states, states[1:]))


def test_segments_are_packets_with_numbers_of_transmissions(tmp_path):
    scenario = tack.Scenario(duration="2s", wired={"rate": "20Mbps", "loss": 0.01}, flow=[{}])
    run = tack.simulate(scenario, events=True, segments=True)
    tack.write_qlog(run.events, tmp_path / "run.qlog")
    sender, receiver = json.loads((tmp_path / "run.qlog").read_text())["traces"]
    of = {name: [one["data"] for one in sender["events"] if one["name"] == name] for name in STANDARD}
    packets = of["transport:packet_sent"]
    assert [one["header"]["packet_number"] for one in packets] == list(range(len(packets)))
    flow = run.flows[0]
    assert len(packets) == flow.data_segments
    offsets = [one["frames"][0]["offset"] for one in packets]
    assert len(offsets) - len(set(offsets)) == flow.retransmitted_segments > 0
    lost = {one["header"]["packet_number"] for one in of["recovery:packet_lost"]}
    # Each was sent again, but for those that still wait at the end.
    assert 0 <= len(lost) - flow.retransmitted_segments < 20
    arrived = [one["data"]["header"]["packet_number"] for one in receiver["events"] if one["name"] == "transport:packet_received"]
    assert not lost & set(arrived), "nothing reorders this path: no packet that was presumed lost arrived"
    ranges = [span for data in of["transport:packet_received"] for span in data["frames"][0].get("acked_ranges", [])]
    acked = [number for first, last in ranges for number in range(first, last + 1)]
    assert len(acked) == len(set(acked)) and set(acked) <= set(arrived)
    with pytest.raises(ValueError, match="segments needs events=True"):
        tack.simulate(scenario, segments=True)


def test_the_programs_events_give_the_same_file(lossy, tmp_path):
    columns = lossy.events.to_dict()
    lines = ['{"qlog_format":"NDJSON","title":"tack sim"}']
    for row in zip(*columns.values()):
        event = dict(zip(columns, row))
        data = {name[5:]: value for name, value in event.items() if name.startswith("data.") and value is not None}
        lines.append(json.dumps({name: event[name] for name in ("time", "name", "flow", "host")} | {"data": data}))
    tack.write_qlog(written(tmp_path, "events.ndjson", "\n".join(lines)), tmp_path / "a.qlog")
    tack.write_qlog(lossy.events, tmp_path / "b.qlog")
    assert (tmp_path / "a.qlog").read_bytes() == (tmp_path / "b.qlog").read_bytes()


def test_what_is_no_event_is_refused(tmp_path):
    with pytest.raises(ValueError, match="events=True"):
        tack.write_qlog([], tmp_path / "a.qlog")
    with pytest.raises(ValueError, match="time, name, flow, host and data"):
        tack.write_qlog([{"time": 1}], tmp_path / "a.qlog")
    event = {"time": 1, "name": "transport:ack_received", "flow": 0, "host": "server"}
    for wrong in ("x", None, float("nan")):
        with pytest.raises(ValueError, match="expected numbers in the data of this event"):
            tack.write_qlog([event | {"data": {"delivered": wrong}}], tmp_path / "a.qlog")
    with pytest.raises(ValueError, match="not JSON compliant"):
        tack.write_qlog([event | {"time": float("nan"), "data": {}}], tmp_path / "a.qlog")
    assert not (tmp_path / "a.qlog").exists()
    with pytest.raises(ValueError, match="bad.ndjson:1: expected an event as a JSON object"):
        tack.write_qlog(written(tmp_path, "bad.ndjson", "hello\n"), tmp_path / "a.qlog")


def test_traces_of_real_connections_are_qlog_files_as_well(tmp_path):
    """Without conversion. ``TACK`` names the program; CI sets it."""
    program = os.environ.get("TACK")
    if not program:
        pytest.skip("SKIPPED: TACK does not name the program")
    environment = os.environ | {"TACK_STATE_DIR": str(tmp_path / "state")}
    served = [program, "perf", "--server", "--listen", "127.0.0.1:0", "--one-off", "--json", "--qlog", str(tmp_path / "server")]
    with subprocess.Popen(served, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as server:
        try:
            address = json.loads(server.stdout.readline())["address"]
            measured = [program, "perf", address, "--bytes", "16MiB", "--json", "--qlog", str(tmp_path / "client")]
            subprocess.run(measured, check=True, capture_output=True, env=environment, timeout=120)
            server.wait(timeout=60)
        finally:
            server.kill()
    for side, wanted in (("client", "recovery:metrics_updated"), ("server", "tack:ack_sent")):
        # The larger one is that of the data. RFC 7464: a separator precedes each record.
        path = max((tmp_path / side).iterdir(), key=lambda path: path.stat().st_size)
        nothing, header, *events = path.read_text().split("\x1e")
        assert nothing == "" and path.suffix == ".sqlog"
        header = json.loads(header)
        assert (header["qlog_version"], header["qlog_format"]) == ("0.3", "JSON-SEQ")
        assert header["trace"]["vantage_point"] == {"name": side, "type": side}
        events = [json.loads(event) for event in events]
        assert_is_as_the_draft_has_it({"traces": [{"events": events}]})
        assert wanted in {event["name"] for event in events}
