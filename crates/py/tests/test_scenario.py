"""Scenarios: how they are made, changed, copied, and what is said of wrong ones."""

import pickle

import pytest
import tack

TOML = """
duration = "1s"
[wired]
rate = "10Mbps"
[[flow]]
ack = "tack"
"""


def test_text_and_keywords_are_the_same():
    keywords = tack.Scenario(duration="1s", wired={"rate": "10Mbps"}, flow=[{"ack": "tack"}])
    assert tack.simulate(keywords).trace_hash == tack.simulate(tack.Scenario(TOML)).trace_hash


def test_a_file(tmp_path):
    path = tmp_path / "path.toml"
    path.write_text(TOML)
    assert tack.Scenario.from_file(path).name == "path"


def test_set_changes_one_key_and_keeps_the_scenario_where_it_is_wrong():
    scenario = tack.Scenario(TOML)
    scenario.set("wired.rate", "20Mbps")
    scenario.set("flow.0.sack", False)
    scenario.set("flow.0.mss", 1000)
    with pytest.raises(tack.ScenarioError, match="rate") as wrong:
        scenario.set("wired.rate", "20Mb")
    assert isinstance(wrong.value, ValueError)
    flow = tack.simulate(scenario).flows[0]
    assert 15e6 < flow.goodput_bps < 20e6


def test_a_mistyped_key_gets_the_right_one():
    with pytest.raises(tack.ScenarioError, match="delay"):
        tack.Scenario("[wired]\ndely = '1ms'\n[[flow]]")
    with pytest.raises(TypeError, match="got nothing"):
        tack.Scenario()
    with pytest.raises(TypeError, match="got both"):
        tack.Scenario(TOML, duration="1s")


def test_a_copy_changes_by_itself():
    first = tack.Scenario(TOML)
    second = first.copy()
    second.set("duration", "2s")
    assert (first.duration_s, second.duration_s) == (1.0, 2.0)


def test_it_can_be_pickled():
    scenario = tack.Scenario(TOML)
    scenario.set("wired.loss", 0.01)
    other = pickle.loads(pickle.dumps(scenario))
    assert type(other) is tack.Scenario
    assert tack.simulate(other, 3).trace_hash == tack.simulate(scenario, 3).trace_hash


def test_flows_that_cannot_have_a_controller():
    scenario = tack.Scenario(TOML + "[[flow]]\ntransport = 'udp'\nrate = '1Mbps'")
    with pytest.raises(IndexError, match="from 0 to 1"):
        scenario.use_controller(2, object)
    with pytest.raises(TypeError, match="not a TCP flow"):
        scenario.use_controller(1, object)
    with pytest.raises(TypeError, match="a class"):
        scenario.use_ack_policy(0, 7)
