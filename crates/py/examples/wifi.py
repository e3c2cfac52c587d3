"""Goodput of one download over Wi-Fi by round-trip time, with delayed ACKs and with TACK: the plot in README.md.

    pip install ./crates/py matplotlib
    python crates/py/examples/wifi.py docs/wifi.svg
"""

import sys

import matplotlib.pyplot as plt
import tack

ROUND_TRIPS_MS = [5, 10, 20, 40, 80, 160]
POLICIES = {"tack": "TACK", "delayed:2": "delayed ACK", "every": "ACK for every segment"}


def goodputs() -> dict[str, list[float]]:
    """Goodput over 802.11n in Mbit/s, for each policy and round trip."""
    base = tack.Scenario(
        duration="8s",
        warmup="3s",
        wired={"queue": "10000p"},
        wlan={"preset": "tack-n", "ap_queue": "10000p"},
        flow=[{"receive_buffer": "16MiB", "send_buffer": "16MiB"}],
    )
    scenarios = []
    for policy in POLICIES:
        for round_trip in ROUND_TRIPS_MS:
            scenario = base.copy()
            scenario.set("flow.0.ack", policy)
            scenario.set("wired.delay", f"{round_trip / 2}ms")
            scenarios.append(scenario)
    rates = [run.flows[0].goodput_bps / 1e6 for run in tack.simulate_many(scenarios)]
    count = len(ROUND_TRIPS_MS)
    return {policy: rates[at * count : (at + 1) * count] for at, policy in enumerate(POLICIES)}


def plot(results: dict[str, list[float]], path: str) -> None:
    plt.style.use("tack.print")
    figure, axes = plt.subplots(figsize=(5, 2.6))
    for policy, rates in results.items():
        axes.plot(ROUND_TRIPS_MS, rates, label=POLICIES[policy])
    axes.set(xscale="log", xlabel="round-trip time, ms", ylabel="goodput, Mbit/s", ylim=(0, 225))
    axes.set_xticks(ROUND_TRIPS_MS, map(str, ROUND_TRIPS_MS), minor=False)
    axes.minorticks_off()
    axes.legend(loc="lower left")
    # Readers with a dark page need a background, and the same results must give the same file. The numbers go
    # with the plot.
    numbers = "; ".join(f"{policy}: {' '.join(f'{rate:.1f}' for rate in rates)}" for policy, rates in results.items())
    figure.savefig(path, facecolor="white", metadata={"Date": None, "Description": numbers})


if __name__ == "__main__":
    plot(goodputs(), sys.argv[1] if len(sys.argv) > 1 else "wifi.svg")
