"""An acknowledgement policy in Python beside those of the simulator: ACKs and goodput of a download over 802.11n.

    python crates/py/examples/ack_policy.py
"""

import tack


class EveryFourth:
    """An ACK for four full-sized segments, for what waits 20 ms, and at once for a gap or the end of a message."""

    max_delay_s, max_segments = 0.02, 4

    def on_data(self, arrival: tack.DataArrival) -> float | str | None:
        if not arrival.in_order:
            return "loss"
        if arrival.push or arrival.fin:
            return "event"
        return "threshold" if arrival.unacknowledged >= 4 * arrival.peer_mss else self.max_delay_s

    def on_timer(self, now_s: float) -> float | str | None:
        return "timer"


def main() -> None:
    for name in ("every", "delayed:2", "EveryFourth", "tack"):
        scenario = tack.Scenario(
            duration="3s",
            wlan={"preset": "tack-n"},
            wired={"delay": "20ms"},
            flow=[{"ack": "delayed:2" if name == "EveryFourth" else name}],
        )
        if name == "EveryFourth":
            scenario.use_ack_policy(0, EveryFourth)
        flow = tack.simulate(scenario, seed=1).flows[0]
        print(f"{flow.ack:12} {flow.acks:6} ACKs, {flow.goodput_bps / 1e6:6.1f} Mbit/s")


if __name__ == "__main__":
    main()
