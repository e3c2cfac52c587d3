"""Closed forms that results are compared with."""

from __future__ import annotations

from dataclasses import dataclass


def ack_frequency(rate_bps: float, rtt_min_s: float, *, l: int = 2, beta: int = 4, mss: int = 1460) -> float:
    """How many acknowledgements TACK sends per second: the lower of ``rate / (l * mss)`` and ``beta / rtt_min``.

    :param rate_bps: payload that arrives, bits per second.
    :param rtt_min_s: minimum round-trip time, seconds.
    :param l: full-sized segments for one acknowledgement, 1 to 255.
    :param beta: acknowledgements in each round trip, 2 to 255.
    :param mss: payload of a full-sized segment, bytes.

    Source: TACK (SIGCOMM 2020), equation (3).
    """
    if rate_bps < 0 or rtt_min_s <= 0 or l < 1 or beta < 1 or mss < 1:
        raise ValueError("expected rate_bps >= 0, rtt_min_s > 0, and l, beta and mss of 1 or more")
    return min(rate_bps / (8 * l * mss), beta / rtt_min_s)


@dataclass(frozen=True)
class Saturated:
    """A network in which each station always has a frame to send."""

    transmission_probability: float
    """Probability that a station transmits in a slot."""
    collision_probability: float
    """Probability that a transmission collides."""
    throughput_bps: float
    """Payload of all stations, bits per second."""


def bianchi(
    stations: int,
    *,
    payload: int,
    slot_s: float,
    success_s: float,
    collision_s: float,
    cw_min: int = 15,
    cw_max: int = 1023,
    retry_limit: int = 7,
) -> Saturated:
    """Saturated DCF with a retry limit, as a fixed point of transmission and collision probability.

    :param stations: how many, 1 or more.
    :param payload: bytes of payload in a frame.
    :param slot_s: a slot of backoff, seconds.
    :param success_s: from the start of a frame to the next slot when it succeeds, seconds.
    :param collision_s: the same when it collides, seconds.
    :param cw_min: smallest contention window, slots.
    :param cw_max: largest one.
    :param retry_limit: transmissions of a frame before it is dropped, 1 or more.

    Sources: Bianchi, IEEE JSAC 18(3), 2000; with a retry limit: Wu et al., INFOCOM 2002.
    """
    if stations < 1 or retry_limit < 1 or not 0 < cw_min <= cw_max:
        raise ValueError("expected stations and retry_limit of 1 or more, and 0 < cw_min <= cw_max")
    # Mean backoff before each transmission of a frame, slots.
    backoffs = [min((cw_min + 1) << attempt, cw_max + 1) / 2 - 0.5 for attempt in range(retry_limit)]

    def transmits(collides: float) -> float:
        sent = sum(collides**attempt for attempt in range(retry_limit))
        slots = sum(collides**attempt * (backoff + 1) for attempt, backoff in enumerate(backoffs))
        return sent / slots

    # More collisions make stations transmit less, and less sending makes fewer collisions: one crossing.
    low, high = 0.0, 1.0
    for _ in range(100):
        collides = (low + high) / 2
        if 1 - (1 - transmits(collides)) ** (stations - 1) > collides:
            low = collides
        else:
            high = collides
    collides = (low + high) / 2
    sends = transmits(collides)
    idle = (1 - sends) ** stations
    success = stations * sends * (1 - sends) ** (stations - 1)
    mean_slot = idle * slot_s + success * success_s + (1 - idle - success) * collision_s
    return Saturated(
        transmission_probability=sends,
        collision_probability=collides,
        throughput_bps=success * payload * 8 / mean_slot,
    )
