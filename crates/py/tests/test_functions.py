"""Codecs and closed forms."""

import struct

import pytest
import tack


def test_airtime_of_known_frames():
    # 802.11a at 54 Mbit/s: 20 us, and 1,536 bytes with service and tail bits in symbols of 216 bits.
    assert tack.airtime(1536, "802.11a", "54Mbps") == pytest.approx(20e-6 + 57 * 4e-6)
    # 802.11b at 11 Mbit/s behind the long preamble of 192 us.
    assert tack.airtime(1100, "802.11b", "11Mbps") == pytest.approx(192e-6 + 800e-6)
    # In 2.4 GHz an OFDM frame is followed by 6 us of silence.
    assert tack.airtime(1536, "802.11g", "54Mbps") == pytest.approx(26e-6 + 57 * 4e-6)
    n = tack.airtime(65_535, "802.11n", mcs=7, channel_width_mhz=40, guard_interval_ns=400)
    assert n == pytest.approx(tack.airtime(65_535, "802.11n", "150Mbps"))
    with pytest.raises(ValueError, match="no mode"):
        tack.airtime(100, "802.11a", "53Mbps")
    with pytest.raises(ValueError, match="a standard"):
        tack.airtime(100, "802.11z")


def test_equation_3_is_what_a_run_counts():
    scenario = tack.Scenario(
        duration="6s",
        warmup="2s",
        wired={"rate": "50Mbps", "delay": "20ms"},
        flow=[{"congestion": "bbr", "ack": "tack"}],
    )
    flow = tack.simulate(scenario).flows[0]
    expected = tack.ack_frequency(flow.goodput_bps, 0.04)
    assert flow.acks / 4 == pytest.approx(expected, rel=0.05)
    assert tack.ack_frequency(1e6, 0.001) == pytest.approx(1e6 / 8 / 2920)
    with pytest.raises(ValueError, match="rtt_min_s"):
        tack.ack_frequency(1e6, 0)


def test_bianchi_is_what_a_run_measures():
    """802.11b, ten stations that always send: the formula's collisions are those of the model."""
    n, payload = 10, 1472
    frame = tack.airtime(payload + 28 + 36, "802.11b", "11Mbps")
    ack = tack.airtime(14, "802.11b", "2Mbps")
    sifs, difs, slot = 10e-6, 50e-6, 20e-6
    both = frame + sifs + ack + difs
    closed = tack.bianchi(
        n, payload=payload, slot_s=slot, success_s=both, collision_s=both, cw_min=31, cw_max=1023
    )
    scenario = tack.Scenario(
        duration="10s",
        warmup="1s",
        wlan={"standard": "802.11b", "rate": "11Mbps", "stations": n, "beacon_interval": "off"},
        flow=[{"from": "each", "to": "server", "transport": "udp"}],
    )
    run = tack.simulate(scenario)
    measured = sum(flow.goodput_bps for flow in run.flows)
    assert run.wlan.collision_probability == pytest.approx(closed.collision_probability, abs=0.03)
    assert measured == pytest.approx(closed.throughput_bps, rel=0.05)
    alone = tack.bianchi(1, payload=payload, slot_s=slot, success_s=both, collision_s=both, cw_min=31)
    assert alone.collision_probability == pytest.approx(0, abs=1e-6)


def segment(ack: int, window: int = 512, options: bytes = b"") -> bytes:
    """A pure acknowledgement over IPv4."""
    offset = (20 + len(options)) // 4
    tcp = struct.pack(">HHIIBBHHH", 5001, 40000, 1, ack, offset << 4, 0x10, window, 0, 0) + options
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0, bytes(4), bytes([10, 0, 0, 1]))
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    return ip[:10] + struct.pack(">H", ~total & 0xFFFF) + ip[12:] + tcp


@pytest.mark.parametrize("mode", ["rfc", "lean"])
def test_acknowledgements_survive_compression(mode):
    compressor, decompressor = tack.RohcCompressor(mode, robustness=1), tack.RohcDecompressor(mode)
    for end in (compressor, decompressor):
        end.handle_native(segment(1000))
    sizes = []
    for index in range(1, 30):
        original = segment(1000 + 2920 * index)
        compressed = compressor.compress(original)
        assert decompressor.decompress(compressed) == original
        sizes.append(len(compressed))
    assert sizes[-1] < 10
    with pytest.raises(ValueError):
        compressor.compress(b"no packet")
    with pytest.raises(ValueError, match="expected"):
        tack.RohcCompressor("zip")


def test_tacks_option_and_lists():
    """The examples of docs/wire-format.md."""
    assert tack.parse_tack_option(bytes.fromhex("fd077ac4020204")) == {"shape": "syn", "l": 2, "beta": 4}
    data = tack.parse_tack_option(bytes.fromhex("fd0c7ac400000007000f4240"))
    assert data == {"shape": "data", "number": 7, "departure_us": 1_000_000}
    sync = tack.parse_tack_option(bytes.fromhex("fd147ac409010148" "00000001" "00009c40" "0000c350"))
    assert (sync["shape"], sync["startup"], sync["rtt_min_us"]) == ("sync", True, 40_000)
    assert tack.parse_tack_option(b"\x08\x0a12345678") is None
    assert tack.parse_tack_option(b"") is None
    field = bytes.fromhex("00010001a00bc0160201")
    assert tack.parse_tack_lists(field) == ([(1440, 4320)], [(2, 1)])
    assert tack.emit_tack_lists([(1440, 4320)], [(2, 1)]) == field
    for broken in (b"", bytes.fromhex("000100"), bytes.fromhex("0001000000")):
        with pytest.raises(ValueError):
            tack.parse_tack_lists(broken)
    for blocks, gaps in [([(0, 1)], []), ([(5, 6), (5, 9)], []), ([], [(1, 2)]), ([(1, 2**40)], [])]:
        with pytest.raises(ValueError, match="expected"):
            tack.emit_tack_lists(blocks, gaps)


@pytest.mark.parametrize(
    "fields",
    [
        {"shape": "syn", "l": 2, "beta": 4},
        {"shape": "data", "number": 7, "departure_us": 1_000_000},
        {"shape": "sync", "startup": True, "ack_loss_rate": 0.005, "number": 1, "rtt_min_us": 40_000, "rtt_us": 50_000},
        {"shape": "loss", "lists": True, "loss_rate": 0.25, "number": 3, "largest": 9, "largest_delay_us": 250, "above": 1440,
         "before_gap": 5, "after_gap": 8},
        {"shape": "report", "kind": "frequency", "lists": True, "repeated": True, "sync_echo": 9, "loss_rate": 1 / 65536, "number": 3,
         "largest": 7, "largest_delay_us": 11, "echo_departure_us": 99, "echo_delay_us": 2, "delivery_rate_bps": 128_000_000,
         "above": 0, "period_us": 10_000},
        {"shape": "report", "kind": "tack", "number": 2**32 - 1, "delivery_rate_bps": None},
    ],
    ids=lambda fields: fields["shape"],
)
def test_tacks_option_is_written_as_it_is_read(fields):
    option = tack.emit_tack_option(fields)
    assert len(option) == option[1] == {"syn": 7, "data": 12, "sync": 20, "loss": 32, "report": 40}[fields["shape"]]
    read = tack.parse_tack_option(option)
    assert {name: read[name] for name in fields} == pytest.approx(fields, abs=1 / 65536)
    assert tack.emit_tack_option(read) == option


def test_the_options_of_the_document():
    assert tack.emit_tack_option({"shape": "syn", "l": 2, "beta": 4}).hex() == "fd077ac4020204"
    assert tack.emit_tack_option({"shape": "data", "number": 7, "departure_us": 1_000_000}).hex() == "fd0c7ac400000007000f4240"
    sync = {"shape": "sync", "startup": True, "ack_loss_rate": 0x148 / 65536, "number": 1, "rtt_min_us": 40_000, "rtt_us": 50_000}
    assert tack.emit_tack_option(sync).hex() == "fd147ac409010148" "00000001" "00009c40" "0000c350"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, 'shape: expected "syn", .*it is missing'),
        ({"shape": "sin"}, "shape: expected .*got 'sin'"),
        ({"shape": "syn", "l": 2}, "beta: expected a whole number from 2 to 255; it is missing"),
        ({"shape": "syn", "l": 0, "beta": 4}, "l: expected a whole number from 1 to 255; got 0"),
        ({"shape": "data", "nmber": 7}, "nmber: unknown field; this shape has shape, number, departure_us"),
        ({"shape": "data", "number": 2**32}, "number: expected a whole number from 0 to 4294967295"),
        ({"shape": "data", "number": -1}, "number: expected a whole number"),
        ({"shape": "sync", "ack_loss_rate": 1.5}, "ack_loss_rate: expected a rate from 0 to 1; got 1.5"),
        ({"shape": "sync", "startup": "yes"}, "startup: expected True or False"),
        ({"shape": "report"}, 'kind: expected "tack"'),
    ],
)
def test_an_option_that_cannot_be_written(fields, why):
    with pytest.raises(ValueError, match=why):
        tack.emit_tack_option(fields)
