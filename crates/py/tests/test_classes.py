"""Congestion controllers and acknowledgement policies in Python."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import tack

PACKAGE = Path(__file__).parents[1]

SCENARIO = """
duration = "3s"
[wired]
rate = "20Mbps"
delay = "10ms"
[[flow]]
congestion = "new_reno"
ack = "delayed:2"
window_pacing = "off"
"""


class Reno:
    """RFC 5681: slow start, and one segment a round trip after it."""

    def __init__(self, init):
        self.mss = init.mss
        self.cwnd = init.initial_window
        self.ssthresh = 1 << 60

    def on_ack(self, ack):
        if ack.in_recovery or not ack.cwnd_limited:
            return
        if self.cwnd < self.ssthresh:
            self.cwnd += ack.acked
        else:
            self.cwnd += self.mss * ack.acked / self.cwnd

    def on_congestion(self, congestion):
        self.ssthresh = max(congestion.prior_in_flight / 2, 2 * self.mss)
        self.cwnd = self.mss if congestion.cause == "timeout" else self.ssthresh


class Paced:
    """A constant rate."""

    def __init__(self, init):
        self.cwnd = 1_000_000
        self.pacing_rate_bps = 5e6
        self.sent = 0

    def on_sent(self, sent):
        self.sent += sent.bytes
        return self.sent

    def on_ack(self, ack):
        assert 0 < ack.token <= self.sent

    def on_congestion(self, congestion):
        pass


class EveryEighth:
    max_delay_s = 0.01
    max_segments = 8

    def on_data(self, arrival):
        if not arrival.in_order:
            return "loss"
        if arrival.fin or arrival.push:
            return "event"
        if arrival.unacknowledged >= 8 * arrival.peer_mss:
            return "threshold"
        return self.max_delay_s

    def on_timer(self, now_s):
        return "timer"


def test_a_controller_fills_the_link_and_has_a_name():
    scenario = tack.Scenario(SCENARIO)
    scenario.use_controller(0, Reno)
    flow = tack.simulate(scenario, 1).flows[0]
    assert flow.congestion == "Reno"
    assert flow.goodput_bps > 0.8 * 20e6
    assert tack.simulate(scenario, 1).flows[0] == flow


def test_a_pacing_rate_is_kept_and_tokens_come_back():
    scenario = tack.Scenario(SCENARIO)
    scenario.use_controller(0, Paced, name="five")
    flow = tack.simulate(scenario, 1).flows[0]
    assert flow.congestion == "five"
    assert 4.5e6 < flow.goodput_bps < 5.2e6


def test_a_policy_thins_acknowledgements():
    scenario = tack.Scenario(SCENARIO)
    scenario.set("wired.queue", "10000p")  # Without losses, each of which is acknowledged at once.
    plain = tack.simulate(scenario, 1).flows[0]
    scenario.use_ack_policy(0, EveryEighth)
    flow = tack.simulate(scenario, 1).flows[0]
    assert flow.ack == "EveryEighth"
    assert flow.acks * 3 < plain.acks
    assert flow.goodput_bps > 0.8 * plain.goodput_bps


def test_many_runs_with_classes():
    scenario = tack.Scenario(SCENARIO)
    scenario.use_controller(0, Reno)
    runs = tack.simulate_many(scenario, [1, 2], jobs=2)
    assert [run.trace_hash for run in runs] == [tack.simulate(scenario, seed).trace_hash for seed in (1, 2)]
    with pytest.raises(TypeError, match="cannot be pickled"):
        import pickle

        pickle.dumps(scenario)


@pytest.mark.parametrize("method", ["__init__", "on_ack", "on_sent", "cwnd"])
def test_what_a_controller_raises_ends_the_run(method):
    class Broken(Reno):
        pass

    def fail(*_):
        raise RuntimeError("of mine")

    setattr(Broken, method, property(fail, lambda *_: None) if method == "cwnd" else fail)
    scenario = tack.Scenario(SCENARIO)
    scenario.use_controller(0, Broken)
    with pytest.raises(RuntimeError, match="of mine"):
        tack.simulate(scenario)
    with pytest.raises(RuntimeError, match="of mine"):
        tack.simulate_many(scenario, range(4))


@pytest.mark.parametrize("answer", ["soon", -1.0, object()])
def test_an_answer_that_a_policy_cannot_give(answer):
    class Wrong(EveryEighth):
        def on_data(self, arrival):
            return answer

    scenario = tack.Scenario(SCENARIO)
    scenario.use_ack_policy(0, Wrong)
    with pytest.raises((TypeError, ValueError), match="expected"):
        tack.simulate(scenario)


def test_a_policy_without_a_contract():
    scenario = tack.Scenario(SCENARIO)
    scenario.use_ack_policy(0, object)
    with pytest.raises(AttributeError, match="max_delay_s"):
        tack.simulate(scenario)


def test_the_examples_of_the_readme_run(capsys):
    """Its blocks, one after the other, as a reader would paste them."""
    blocks = re.findall(r"^ *```python\n(.*?)^ *```", (PACKAGE / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(textwrap.dedent(block), names)
    assert "goodput_bps" in capsys.readouterr().out
    flow = tack.simulate(names["scenario"], seed=1).flows[0]
    assert (flow.congestion, flow.ack) == ("Additive", "EveryFourth")
    assert flow.goodput_bps > 20e6 and 3 < flow.data_segments / flow.acks < 5


@pytest.mark.parametrize("name", ["controller", "ack_policy"])
def test_an_example_runs(name):
    script = PACKAGE / "examples" / f"{name}.py"
    lines = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout.splitlines()
    goodputs = {line.split()[0]: float(re.search(r"([\d.]+) Mbit/s", line)[1]) for line in lines}
    assert set(goodputs) > {"Additive"} if name == "controller" else {"EveryFourth"}
    assert min(goodputs.values()) > 0.7 * max(goodputs.values())
