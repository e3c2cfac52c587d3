"""A congestion controller in Python beside those of the simulator: goodput and delay of each on the same path.

    python crates/py/examples/controller.py
"""

import tack


class Additive:
    """One more segment in each round trip, half the window after a loss (AIMD, RFC 5681 without slow start)."""

    def __init__(self, init: tack.Init) -> None:
        self.mss = init.mss
        self.cwnd: float = init.initial_window

    def on_ack(self, ack: tack.Ack) -> None:
        if ack.cwnd_limited and not ack.in_recovery:
            self.cwnd += self.mss * ack.acked / self.cwnd

    def on_congestion(self, congestion: tack.Congestion) -> None:
        self.cwnd = self.mss if congestion.cause == "timeout" else max(self.cwnd / 2, 2 * self.mss)


def main() -> None:
    for name in ("bbr", "cubic", "Additive"):
        scenario = tack.Scenario(
            duration="10s",
            wired={"rate": "20Mbps", "delay": "10ms", "queue": "1bdp"},
            flow=[{"ack": "delayed:2", "congestion": "new_reno" if name == "Additive" else name}],
        )
        if name == "Additive":
            scenario.use_controller(0, Additive)
        flow = tack.simulate(scenario, seed=1).flows[0]
        delay_ms = (flow.owd_p50_us or 0) / 1e3
        print(f"{flow.congestion:8} {flow.goodput_bps / 1e6:5.2f} Mbit/s, median one-way delay {delay_ms:4.1f} ms")


if __name__ == "__main__":
    main()
