"""Scenarios: how they are made, changed, copied, and what is said of wrong ones."""

import pickle
import re
from pathlib import Path

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


def test_an_error_has_its_place(tmp_path):
    path = tmp_path / "path.toml"
    path.write_text("duration = '1s'\n[wired]\ndely = '1ms'\n[[flow]]\n")
    with pytest.raises(tack.ScenarioError) as wrong:
        tack.Scenario.from_file(path)
    assert str(wrong.value).startswith(f'{path}:3: wired.dely: unknown key; did you mean "delay"?')
    assert (wrong.value.file, wrong.value.line, wrong.value.key) == (str(path), 3, "wired.dely")
    with pytest.raises(tack.ScenarioError) as wrong:
        tack.Scenario(wired={"dely": "1ms"}, flow=[{}])
    assert str(wrong.value).startswith('keyword arguments: wired.dely: unknown key; did you mean "delay"?')
    assert (wrong.value.file, wrong.value.line, wrong.value.key) == ("keyword arguments", None, "wired.dely")
    with pytest.raises(tack.ScenarioError) as wrong:
        tack.Scenario(TOML).set("wired.dely", "1ms")
    assert str(wrong.value).startswith('set: wired.dely: unknown key; did you mean "delay"?')


def test_values_of_numpy_and_paths(tmp_path):
    numpy = pytest.importorskip("numpy", reason="SKIPPED: numpy is not installed")
    scenario = tack.Scenario(TOML)
    scenario.set("wired.loss", numpy.float32(0.5))
    scenario.set("flow.0.mss", numpy.int64(1000))
    scenario.set("flow.0.sack", numpy.bool_(False))
    assert scenario.overrides == ["wired.loss=0.5", "flow.0.mss=1000", "flow.0.sack=false"]
    (tmp_path / "link.trace").write_text("1\n2\n3\n")
    keys = {"wired": {"trace": {"file": tmp_path / "link.trace"}}, "flow": ({"mss": numpy.int64(1000)},)}
    assert tack.simulate(tack.Scenario(duration="200ms", **keys)).flows[0].goodput_bps > 5e6


def documented():
    """The keys of docs/scenario.md: the first column of each table of keys, in its section."""
    prefixes = {"## The run": "", "## `[wired]`": "wired.", "## `[wlan]`": "wlan.", "## `[[flow]]`": "flow.0."}
    prefix, is_table = None, False
    for line in (Path(__file__).parents[3] / "docs" / "scenario.md").read_text().splitlines():
        if line.startswith("## "):
            prefix = next((prefix for start, prefix in prefixes.items() if line.startswith(start)), None)
        is_table = line.startswith("| key | default |") or is_table and line.startswith("|")
        if is_table and prefix is not None:
            names = re.findall(r"`([^`]+)`", line.split("|")[1])
            if names and names[0].startswith("["):
                yield ".".join([names[0].strip("[]"), *names[1:]])
            else:
                yield from (prefix + name for name in names)


def test_every_key_of_the_document_is_known():
    keys = list(documented())
    assert len(keys) > 90 and {"seed", "wired.trace.file", "wlan.hack_codec", "flow.0.ack_size"} <= set(keys)
    bases = ["[[flow]]", "[[flow]]\ntransport = 'udp'", "[wlan]\n[[flow]]"]
    for key in [*keys, "flow.0.no_such_key"]:
        texts = []
        for base in bases:
            try:
                tack.Scenario(base).set(key, "no such value")
                texts.append("")
            except tack.ScenarioError as error:
                texts.append(str(error))
        assert all("unknown key" in text for text in texts) == (key == "flow.0.no_such_key"), texts


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
