//! Paths that the Pantheon calibrated on real ones, and its test links.

/// Name and settings of the paths.
pub(in crate::figures) const PATHS: [(&str, &[&str]); 18] = [
    (
        "0.57 Mbit/s Poisson, 28 ms, 4.77 % loss",
        &[
            "wired.trace.file=poisson-0.57.trace",
            "wired.delay=28ms",
            "wired.queue=14p",
            "wired.loss=0.0477",
        ],
    ),
    (
        "2.64 Mbit/s Poisson, 88 ms",
        &[
            "wired.trace.file=poisson-2.64.trace",
            "wired.delay=88ms",
            "wired.queue=130p",
        ],
    ),
    (
        "3.04 Mbit/s Poisson, 130 ms",
        &[
            "wired.trace.file=poisson-3.04.trace",
            "wired.delay=130ms",
            "wired.queue=426p",
        ],
    ),
    (
        "100.42 Mbit/s, 27 ms",
        &[
            "wired.rate=100.42Mbps",
            "wired.delay=27ms",
            "wired.queue=173p",
        ],
    ),
    (
        "77.72 Mbit/s, 51 ms, 0.06 % loss",
        &[
            "wired.rate=77.72Mbps",
            "wired.delay=51ms",
            "wired.queue=94p",
            "wired.loss=0.0006",
        ],
    ),
    (
        "114.68 Mbit/s, 45 ms",
        &[
            "wired.rate=114.68Mbps",
            "wired.delay=45ms",
            "wired.queue=450p",
        ],
    ),
    (
        "policer 12 Mbit/s, RTT 20 ms",
        &[
            "wired.rate=12Mbps",
            "wired.delay=10ms",
            "wired.queue=1p",
            "wired.queue_reverse=1000p",
        ],
    ),
    (
        "policer 60 Mbit/s, RTT 20 ms",
        &[
            "wired.rate=60Mbps",
            "wired.delay=10ms",
            "wired.queue=1p",
            "wired.queue_reverse=1000p",
        ],
    ),
    (
        "policer 108 Mbit/s, RTT 20 ms",
        &[
            "wired.rate=108Mbps",
            "wired.delay=10ms",
            "wired.queue=1p",
            "wired.queue_reverse=1000p",
        ],
    ),
    (
        "policer 12 Mbit/s, RTT 100 ms",
        &[
            "wired.rate=12Mbps",
            "wired.delay=50ms",
            "wired.queue=1p",
            "wired.queue_reverse=1000p",
        ],
    ),
    (
        "policer 60 Mbit/s, RTT 100 ms",
        &[
            "wired.rate=60Mbps",
            "wired.delay=50ms",
            "wired.queue=1p",
            "wired.queue_reverse=1000p",
        ],
    ),
    (
        "policer 108 Mbit/s, RTT 100 ms",
        &[
            "wired.rate=108Mbps",
            "wired.delay=50ms",
            "wired.queue=1p",
            "wired.queue_reverse=1000p",
        ],
    ),
    (
        "ACKs delivered each 100 ms",
        &[
            "wired.rate=12Mbps",
            "wired.delay=10ms",
            "wired.trace_reverse.file=one-in-100ms.trace",
        ],
    ),
    (
        "ACKs delivered each 200 ms",
        &[
            "wired.rate=12Mbps",
            "wired.delay=10ms",
            "wired.trace_reverse.file=ten-in-200ms.trace",
        ],
    ),
    (
        "12 Mbit/s, 30 ms, buffer 1/10 bdp",
        &[
            "wired.rate=12Mbps",
            "wired.delay=30ms",
            "wired.queue=0.1bdp",
        ],
    ),
    (
        "12 Mbit/s, 30 ms, buffer 1/3 bdp",
        &[
            "wired.rate=12Mbps",
            "wired.delay=30ms",
            "wired.queue=0.333bdp",
        ],
    ),
    (
        "12 Mbit/s, 30 ms, buffer 1/2 bdp",
        &[
            "wired.rate=12Mbps",
            "wired.delay=30ms",
            "wired.queue=0.5bdp",
        ],
    ),
    (
        "12 Mbit/s, 30 ms, buffer 1 bdp",
        &[
            "wired.rate=12Mbps",
            "wired.delay=30ms",
            "wired.queue=1.0bdp",
        ],
    ),
];
