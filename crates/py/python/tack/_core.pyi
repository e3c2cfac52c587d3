"""The native part. Import from ``tack`` instead."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, final

__version__: str

class ScenarioError(ValueError):
    """A scenario is wrong. The message names file, line and key, and what would be right."""

class SimulationError(RuntimeError):
    """The simulated stack broke an invariant: a bug in it, not in the scenario."""

class Controller(Protocol):
    """What a congestion controller of yours needs. Optional: ``ssthresh`` (bytes), ``pacing_rate_bps``, ``pacing_gain``,
    ``on_sent(sent) -> int | None``, ``on_recovered(now_s)``, ``on_spurious(now_s, cause)``, ``on_idle_restart(now_s, idle_s)``,
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
    def __new__(cls, text: str | None = None, *, file: str = "scenario.toml", **keys: Any) -> Scenario: ...
    def set(self, key: str, value: str | int | float | bool | list[Any] | dict[str, Any]) -> None:
        """Sets one key, such as ``"wired.rate"`` or ``"flow.0.ack"``.

        :raises ScenarioError: if the value is wrong; the scenario stays as it was.
        """
    def use_controller(self, flow: int, cls: Callable[[Init], Controller], name: str | None = None) -> None:
        """Has instances of ``cls`` control flow number ``flow``, from 0. Reports call them ``name``, or as the class."""
    def use_ack_policy(self, flow: int, cls: Callable[[], AckPolicy], name: str | None = None) -> None:
        """Has the receiver of flow number ``flow`` acknowledge as instances of ``cls`` decide."""
    def take_classes(self, other: Scenario) -> None:
        """Takes the controllers and policies of another scenario over."""
    @property
    def name(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def flow_count(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def overrides(self) -> list[str]: ...

@final
class Columns:
    """A table. polars, pyarrow and DuckDB take it as it is; ``to_dict`` and ``[name]`` give lists."""

    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> list[Any]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Reports:
    def __len__(self) -> int: ...
    def dict(self, index: int) -> dict[str, Any]: ...
    def flows(self) -> Columns: ...
    def stations(self) -> Columns: ...
    def runs(self) -> Columns: ...

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
    """RTT of the handshake, seconds."""

@final
class Ack:
    """An acknowledgement delivered data or revealed losses."""

    now_s: float
    acked: int
    """Bytes by which SND.UNA advanced."""
    delivered: int
    """Bytes newly delivered, cumulatively or selectively."""
    lost: int
    """Bytes newly marked lost."""
    prior_in_flight: int
    bytes_in_flight: int
    rtt_s: float | None
    srtt_s: float
    min_rtt_s: float
    delivery_rate_bps: float | None
    app_limited: bool
    """The delivery rate is limited by the application."""
    total_delivered: int
    total_lost: int
    in_recovery: bool
    cwnd_limited: bool
    """The congestion window limited the sender; otherwise it must not grow."""
    token: int
    """What ``on_sent`` returned for the newest segment delivered; 0 without it."""

@final
class Sent:
    """A segment left."""

    now_s: float
    bytes: int
    prior_in_flight: int
    retransmission: bool
    app_limited: bool

@final
class Congestion:
    """A congestion episode begins."""

    now_s: float
    cause: str
    """``"loss"``, ``"ecn"`` or ``"timeout"``."""
    prior_in_flight: int
    """FlightSize before losses were taken off, bytes."""
    cwnd_limited: bool
    consecutive_timeouts: int

@final
class DataArrival:
    """A data segment arrived."""

    now_s: float
    len: int
    in_order: bool
    push: bool
    fin: bool
    ce_changed: bool
    unacknowledged: int
    """Bytes received in order and not acknowledged, with this segment."""
    peer_mss: int
    window_left: int
    window: int

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
        """Takes a file of the data set, the plan's own or another's; says what is wrong with a damaged one."""
    def next_batch(self, workers: int) -> tuple[str, int, bytes] | None:
        """Name, number of runs and bytes of a task for :func:`run_batch`."""
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
) -> tuple[str, dict[str, int], Columns, list[str], list[tuple[str, str]]]: ...

@final
class LabState:
    """Runs of figures that a folder of results lacks."""

    def __new__(
        cls, figures: list[str], full: bool, seeds: int | None, traces: str | None, results: str, task_s: float
    ) -> LabState: ...
    @property
    def is_done(self) -> bool: ...
    def counts(self) -> dict[str, int]: ...
    def next_batch(self, workers: int) -> tuple[str, int, bytes] | None: ...
    def accept(self, result: bytes) -> list[str]: ...

def run_batch(task: bytes) -> bytes:
    """Does the runs of a task of a sweep or of the lab; gives its result."""

def lab_code_version() -> str:
    """The version of the code that results of the lab depend on."""

def plan_text(keys: dict[str, Any]) -> str: ...
def code_version() -> str:
    """The version of the code that rows of sweeps depend on."""

@final
class RohcCompressor:
    """The compressing end of one flow of pure acknowledgements (RFC 6846).

    :param mode: ``"rfc"``, ``"lean"`` or ``"lean-no-checksum"``.
    :param robustness: losses in a row that are survived, and one more; 1 to 11.
    """

    def __new__(cls, mode: str = "rfc", robustness: int = 4) -> RohcCompressor: ...
    def handle_native(self, packet: bytes) -> None: ...
    def compress(self, packet: bytes) -> bytes: ...

@final
class RohcDecompressor:
    """The decompressing end of one flow."""

    def __new__(cls, mode: str = "rfc") -> RohcDecompressor: ...
    def handle_native(self, packet: bytes) -> None: ...
    def decompress(self, bytes: bytes) -> bytes: ...

def simulate(
    scenario: Scenario,
    seed: int | None = None,
    series_s: float | None = None,
    events: bool = False,
    checks: bool = False,
    segments: bool = False,
) -> tuple[Reports, Columns | None, Columns | None]: ...
def simulate_many(
    scenarios: Sequence[Scenario],
    seeds: Sequence[int | None],
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Reports: ...
def airtime(
    psdu: int,
    standard: str,
    rate: str | None = None,
    mcs: int | None = None,
    spatial_streams: int | None = None,
    channel_width_mhz: int | None = None,
    guard_interval_ns: int | None = None,
) -> float:
    """Airtime of a PPDU in seconds, with preamble and signal extension (IEEE 802.11-2020; ax: 2021).

    :param psdu: bytes of the PSDU: MAC headers and FCS included, delimiters of an A-MPDU too.
    :param standard: ``"802.11b"``, ``"802.11a"``, ``"802.11g"``, ``"802.11n"``, ``"802.11ac"`` or ``"802.11ax"``.
    :param rate: PHY rate with its unit, such as ``"54Mbps"``. Where several modes fit: the fewest streams, then the narrowest
        channel, then the longest guard interval.
    """

def parse_tack_option(option: bytes) -> dict[str, Any] | None:
    """The fields of a TCP option, given with kind and length; None if it is not TACK's (docs/wire-format.md)."""

def parse_tack_lists(field: bytes) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Blocks ``(start, end)`` in bytes above the cumulative acknowledgement, and gaps ``(distance, count)`` below the largest
    packet number (docs/wire-format.md)."""

def emit_tack_lists(blocks: list[tuple[int, int]], gaps: list[tuple[int, int]]) -> bytes:
    """The data field of both lists: blocks from the highest down, gaps from the lowest number up."""
