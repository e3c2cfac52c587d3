"""The native part. Import from ``tack`` instead."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Protocol, final

__version__: str

class ScenarioError(ValueError):
    """A scenario is wrong. The message names file, line and key, and what would be right."""

    file: str | None
    """The file, as given; ``"keyword arguments"`` or ``"set"`` where there is none."""
    line: int | None
    """Its line, from 1; None for ``set``, keyword arguments, and a key that is missing."""
    key: str | None
    """The key with dots, such as ``"flow.0.ack"``."""

class SimulationError(RuntimeError):
    """The simulated stack broke an invariant: a bug in it, not in the scenario."""

class Controller(Protocol):
    """What a congestion controller of yours needs. Optional: ``ssthresh`` (bytes), ``pacing_rate_bps``, ``pacing_gain``,
    ``on_sent(sent) -> int | None``, ``on_recovered(now_s)``, ``on_spurious(now_s, cause)``, ``on_false_marks(now_s, window)``, ``on_idle_restart(now_s, idle_s)``,
    ``on_mss(mss)``."""

    cwnd: float
    """Congestion window, bytes. Read after each call."""
    def on_ack(self, ack: Ack) -> None: ...
    def on_congestion(self, congestion: Congestion) -> None: ...

class AckPolicy(Protocol):
    """What an acknowledgement policy of yours needs. An answer is ``None`` (nothing changes), a number (ask again after so many
    seconds), or a reason to acknowledge at once: ``"threshold"``, ``"timer"``, ``"loss"``, ``"window"``, ``"event"``."""

    max_delay_s: float
    """Longest time that data waits for its acknowledgement, 0 to 0.5 s. Read once."""
    max_segments: int
    """Most full-sized segments that wait for one acknowledgement. Read once."""
    def on_data(self, arrival: DataArrival) -> float | str | None: ...
    def on_timer(self, now_s: float) -> float | str | None: ...

class Scenario:
    """The native part of :class:`tack.Scenario`, which has the description."""
    def __new__(cls, text: str | None = None, *, file: str = "scenario.toml", **keys: Any) -> Scenario: ...
    def set(self, key: str, value: str | int | float | bool | list[Any] | dict[str, Any]) -> None:
        """Sets one key, such as ``"wired.rate"`` or ``"flow.0.ack"``.

        :raises ScenarioError: if the value is wrong; the scenario stays as it was.
        """
    def use_controller(self, flow: int, cls: Callable[[Init], Controller], name: str | None = None) -> None:
        """Has instances of ``cls`` control flow number ``flow``, from 0. Reports call them ``name``, or
        as the class."""
    def use_ack_policy(self, flow: int, cls: Callable[[], AckPolicy], name: str | None = None) -> None:
        """Has the receiver of flow number ``flow`` acknowledge as instances of ``cls`` decide."""
    def take_classes(self, other: Scenario) -> None:
        """Takes the controllers and policies of another scenario over."""
    @property
    def name(self) -> str:
        """Its name in reports."""
    @property
    def file(self) -> str:
        """The file it came from, or what was given for it."""
    @property
    def seed(self) -> int:
        """The seed, unless a run gives one."""
    @property
    def duration_s(self) -> float:
        """Virtual time of a run, seconds."""
    @property
    def flow_count(self) -> int:
        """Number of flows."""
    @property
    def text(self) -> str:
        """The text as it was given, without what ``set`` changed."""
    @property
    def overrides(self) -> list[str]:
        """The changes by ``set``, in order."""

@final
class Columns:
    """A table. polars, pyarrow and DuckDB take it as it is; ``to_dict`` and ``[name]`` give lists.

    It has the Arrow PyCapsule interface (``__arrow_c_stream__``): what takes it shares its memory.
    """

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> list[Any]: ...
    def to_dict(self) -> dict[str, list[Any]]:
        """Each column as a list of Python's own values."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Reports:
    """Finished runs; :class:`tack.Runs` shows them."""
    def __len__(self) -> int: ...
    def dict(self, index: int) -> dict[str, Any]:
        """A report as ``tack sim --json`` prints it."""
    def flows(self) -> Columns:
        """A row for each flow of each run."""
    def stations(self) -> Columns:
        """A row for each radio of each run with a wireless network."""
    def runs(self) -> Columns:
        """A row for each run: what is not of a flow or a radio."""

@final
class Init:
    """What a controller starts with."""

    now_s: float
    """Virtual time, seconds."""
    mss: int
    """Sender maximum segment size, bytes of payload."""
    initial_window: int
    """First congestion window, bytes."""
    rtt_s: float | None
    """RTT of the handshake, seconds, or None."""

@final
class Ack:
    """An acknowledgement delivered data or revealed losses."""

    now_s: float
    """Virtual time, seconds."""
    acked: int
    """Bytes by which SND.UNA advanced."""
    delivered: int
    """Bytes newly delivered, cumulatively or selectively."""
    lost: int
    """Bytes newly marked lost."""
    prior_in_flight: int
    """Bytes in flight before it was processed."""
    bytes_in_flight: int
    """Bytes in flight after it was processed."""
    rtt_s: float | None
    """RTT sample, seconds, or None."""
    srtt_s: float
    """Smoothed RTT, seconds."""
    min_rtt_s: float
    """Minimum RTT, seconds."""
    delivery_rate_bps: float | None
    """Delivery rate sample, bits per second, or None."""
    app_limited: bool
    """The delivery rate is limited by the application."""
    total_delivered: int
    """Bytes delivered on the connection."""
    total_lost: int
    """Bytes marked lost on the connection."""
    in_recovery: bool
    """A loss episode is open."""
    cwnd_limited: bool
    """The congestion window limited the sender; otherwise it must not grow."""
    token: int
    """What ``on_sent`` returned for the newest segment delivered; 0 without it."""

@final
class Sent:
    """A segment left."""

    now_s: float
    """Virtual time, seconds."""
    bytes: int
    """Bytes of payload."""
    prior_in_flight: int
    """Bytes in flight before it."""
    retransmission: bool
    """It carries bytes that were sent before."""
    app_limited: bool
    """The application had nothing more to send."""

@final
class Congestion:
    """A congestion episode begins."""

    now_s: float
    """Virtual time, seconds."""
    cause: str
    """``"loss"``, ``"ecn"`` or ``"timeout"``."""
    prior_in_flight: int
    """FlightSize before losses were taken off, bytes."""
    cwnd_limited: bool
    """The congestion window limited the sender."""
    consecutive_timeouts: int
    """Timeouts in a row, with this one; 0 for other causes."""

@final
class DataArrival:
    """A data segment arrived."""

    now_s: float
    """Virtual time, seconds."""
    len: int
    """Bytes of payload."""
    in_order: bool
    """It continues the stream; otherwise it is out of order, a duplicate, or fills a gap."""
    push: bool
    """It has the PSH flag."""
    fin: bool
    """It completes the stream."""
    ce_changed: bool
    """A congestion mark begins with it."""
    unacknowledged: int
    """Bytes received in order and not acknowledged, with this segment."""
    peer_mss: int
    """Payload of the peer's full-sized segments, bytes."""
    window_left: int
    """Bytes that the peer may still send."""
    window: int
    """Receive buffer, bytes."""

class TaskMismatch(RuntimeError):
    """A task, or a result of one, is damaged or of another version of tack."""

@final
class SweepState:
    """A sweep under way; ``tack.sweep`` drives it."""

    def __new__(cls, file: str, text: str, overrides: Sequence[str], task_s: float) -> SweepState: ...
    name: str
    part: str
    """The plan's part of a data set."""
    is_done: bool
    waiting: int
    """Runs that are in no task."""
    def counts(self) -> dict[str, int]: ...
    def add_file(self, name: str, content: bytes, own: bool) -> str | None:
        """Takes a file of the data set, the plan's own or another's; says what is wrong with a damaged
        one."""
    def next_batch(self, workers: int) -> tuple[str, int, bytes] | None:
        """Name, number of runs and bytes of a task for ``run_batch``; None if nothing is left."""
    def accept(self, result: bytes) -> tuple[tuple[str, bytes] | None, list[str]]:
        """Takes a result, in any order, also twice: the file to keep, and the runs that failed."""
    def lost(self, id: str) -> None:
        """The result of this task will not come: its runs are put into others."""
    def rows(self) -> Columns: ...
    def merged(self) -> tuple[str, bytes] | None:
        """One file of all rows."""

@final
class SweepFolder:
    """A data set in a folder of this machine."""

    def __new__(cls, root: str) -> SweepFolder: ...
    def parts(self) -> list[str]: ...
    def put(self, part: str, name: str, content: bytes) -> None: ...
    def set_aside(self, part: str, damaged: Sequence[str]) -> None: ...
    def merge(self, part: str, name: str, content: bytes, obsolete: Sequence[str]) -> None: ...

def sweep_embedded(
    file: str,
    text: str,
    overrides: Sequence[str],
    out: str,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[str, dict[str, int], Columns, list[str], list[tuple[str, str]]]:
    """A sweep on the processors of this machine; :func:`tack.sweep` calls it."""

@final
class LabState:
    """Runs of figures that a folder of results lacks; ``tack.dask_lab`` drives it."""

    def __new__(
        cls, figures: list[str], full: bool, seeds: int | None, traces: str | None, results: str, task_s: float
    ) -> LabState: ...
    @property
    def is_done(self) -> bool: ...
    def counts(self) -> dict[str, int]:
        """``runs``, ``done`` and ``failed``."""
    def next_batch(self, workers: int) -> tuple[str, int, bytes] | None:
        """Name, number of runs and bytes of a task for ``run_batch``; None if nothing is left."""
    def accept(self, result: bytes) -> list[str]:
        """Takes a result and keeps it; gives the runs that failed."""

def run_batch(task: bytes) -> bytes:
    """Does the runs of a task of a sweep or of the lab; gives its result. It holds no lock of Python
    meanwhile.

    :raises TaskMismatch: where the task is damaged or of another version.
    """

def lab_code_version() -> str:
    """The version of the code that results of the lab depend on."""

def plan_text(keys: dict[str, Any]) -> str:
    """Keys of a plan as TOML."""
def code_version() -> str:
    """The version of the code that rows of sweeps depend on."""

@final
class RohcCompressor:
    """The compressing end of one flow of pure TCP acknowledgements.

    :param mode: ``"rfc"``, or what TCP/HACK sends: ``"lean"``, ``"lean-no-checksum"``.
    :param robustness: losses in a row that are survived, and one more; 1 to 11.

    Sources: ROHC-TCP (RFC 6846); docs/hack.md for the lean modes.
    """

    def __new__(cls, mode: str = "rfc", robustness: int = 4) -> RohcCompressor: ...
    def handle_native(self, packet: bytes) -> None:
        """Takes note of a packet that the decompressor received as it is."""
    def compress(self, packet: bytes) -> bytes:
        """The bytes of a compressed acknowledgement."""

@final
class RohcDecompressor:
    """The decompressing end of one flow.

    :param mode: that of the compressor.
    """

    def __new__(cls, mode: str = "rfc") -> RohcDecompressor: ...
    def handle_native(self, packet: bytes) -> None:
        """Takes note of a packet that was received as it is."""
    def decompress(self, bytes: bytes) -> bytes:
        """The packet behind compressed bytes."""

def simulate(
    scenario: Scenario,
    seed: int | None = None,
    series_s: float | None = None,
    events: bool = False,
    checks: bool = False,
    segments: bool = False,
    pcap: str | PathLike[str] | None = None,
) -> tuple[Reports, Columns | None, Columns | None]:
    """One run; :func:`tack.simulate` calls it."""
def simulate_many(
    scenarios: Sequence[Scenario],
    seeds: Sequence[int | None],
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Reports:
    """Many runs side by side, in the order of ``scenarios``; :func:`tack.simulate_many` calls it."""
def airtime(
    psdu: int,
    standard: str,
    rate: str | None = None,
    mcs: int | None = None,
    spatial_streams: int | None = None,
    channel_width_mhz: int | None = None,
    guard_interval_ns: int | None = None,
) -> float:
    """Airtime of a PPDU in seconds, with preamble and signal extension.

    :param psdu: bytes of the PSDU: MAC headers and FCS included, delimiters of an A-MPDU too.
    :param standard: ``"802.11b"``, ``"802.11a"``, ``"802.11g"``, ``"802.11n"``, ``"802.11ac"`` or
        ``"802.11ax"``.
    :param rate: PHY rate with its unit, such as ``"54Mbps"``. Where several modes fit: the fewest
        streams, then the narrowest channel, then the longest guard interval.
    :param mcs: index of the modulation and coding scheme, of 802.11n, ac and ax.
    :param spatial_streams: spatial streams, 1 or more.
    :param channel_width_mhz: 20, 40, 80 or 160 MHz.
    :param guard_interval_ns: 400, 800, 1600 or 3200 ns.
    :raises ValueError: where the standard has no such mode.

    Sources: IEEE 802.11-2020, clauses 16 (b), 17 (a), 18 (g), 19 (n), 21 (ac); 802.11ax-2021.
    """

def parse_tack_option(option: bytes) -> dict[str, Any] | None:
    """The fields of a TCP option, given with kind and length; None if it is not TACK's
    (docs/wire-format.md).

    The key ``shape`` is ``"syn"``, ``"data"``, ``"report"``, ``"loss"`` or ``"sync"``. Units:
    ``_us`` microseconds, ``_bps`` bits per second, loss rates 0 to 1.
    """

def emit_tack_option(fields: dict[str, Any]) -> bytes:
    """The bytes of a TACK option, kind and length included (docs/wire-format.md).

    :param fields: as ``parse_tack_option`` gives them. What is left out is 0, False or None.
    :raises ValueError: where a field is unknown for the shape, missing, or out of its range.
    """

def parse_tack_lists(field: bytes) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Blocks ``(start, end)`` in bytes above the cumulative acknowledgement, and gaps ``(distance, count)`` below the largest
    packet number (docs/wire-format.md)."""

def emit_tack_lists(blocks: list[tuple[int, int]], gaps: list[tuple[int, int]]) -> bytes:
    """The data field of both lists: blocks from the highest down, gaps from the lowest number up."""
