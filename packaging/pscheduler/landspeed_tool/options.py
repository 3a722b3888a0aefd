"""From the specification of a test to options of `landspeed run`, or the reasons why it is refused."""

import math
from typing import Any, Callable, Dict, List, Tuple

from landspeed_tool.entry import Configuration, Json, MethodError, parse_duration

MAX_SCHEMA = {"throughput": 7, "mtu": 2}

DURATION_S = 10.0
LINK_RTT_S = 0.2
"""The default of pScheduler's other throughput tools."""
CONNECT_S = 5.0
"""How long the client waits for the server of the other participant."""
FINISH_S = 5.0
"""For the results of both ends after the test."""
SETUP_RTTS = 20
MTU_S = 30
LONG_S = 60
"""Longer tests are sampled each second."""

LANDSPEED_PORT = 5210
"""A single-ended test against this port speaks landspeed's protocol, against any other iperf3's."""

Options = List[str]
_TCP_ONLY = ("mss", "congestion", "no-delay", "zero-copy", "fq-rate", "bandwidth-strict")
_PLACES = ("source", "source-node", "dest", "dest-node", "local-address")


def can_run(test: Json) -> Json:
    """Answer pScheduler's `can-run`."""
    reasons = refusals(test)
    try:
        configuration = Configuration()
        if configuration.find_program() is None:
            reasons.append("landspeed is not installed on this host ({})".format(configuration.program))
    except MethodError as why:
        reasons.append(str(why))
    return {"can-run": False, "reasons": reasons} if reasons else {"can-run": True}


def refusals(test: Json) -> List[str]:
    """Return the reasons why landspeed cannot run this test; none means that it can."""
    kind, spec = test.get("type"), test.get("spec")
    if not isinstance(kind, str) or kind not in MAX_SCHEMA:
        return ["unsupported test type" if kind is not None else "missing test type"]
    if not isinstance(spec, dict):
        return ["missing test specification"]
    schema = spec.get("schema", 1)
    if not _is_integer(schema) or not 1 <= schema <= MAX_SCHEMA[kind]:
        return ["schema: landspeed knows 1 to {} of the test {}".format(MAX_SCHEMA[kind], kind)]
    return throughput_options(spec)[1] if kind == "throughput" else mtu_options(spec)[1]


def duration(test: Json) -> Json:
    """Answer pScheduler's `duration`: how long a run takes with everything around it."""
    reasons = refusals(test)
    if reasons:
        raise MethodError("; ".join(reasons))
    if test["type"] == "mtu":
        return {"duration": "PT{}S".format(MTU_S)}
    spec = test["spec"]
    length = test_seconds(spec)
    rtt = parse_duration(spec["link-rtt"]) if "link-rtt" in spec else LINK_RTT_S
    whole = CONNECT_S + SETUP_RTTS * rtt + length + FINISH_S
    if Configuration().capture:
        # Captures are fetched and analysed after the test.
        whole += max(10.0, length)
    return {"duration": "PT{}S".format(math.ceil(whole))}


def test_seconds(spec: Json) -> float:
    """Return for how long data moves."""
    omitted = parse_duration(spec.get("omit", "PT0S"))
    return omitted + (parse_duration(spec["duration"]) if "duration" in spec else DURATION_S)


def interval_seconds(spec: Json) -> float:
    """Return the length of the intervals of the result."""
    return parse_duration(spec["interval"]) if "interval" in spec else 1.0


def is_single_ended(spec: Json) -> bool:
    """Return whether the server is none of pScheduler's."""
    return spec.get("single-ended") is True


def throughput_options(spec: Json) -> Tuple[Options, List[str]]:
    """Return the options of `landspeed run` for a throughput test, and the reasons to refuse it."""
    options, reasons = _translate(spec, _THROUGHPUT)
    udp = spec.get("udp") is True
    for name in _TCP_ONLY:
        if udp and spec.get(name) not in (None, False):
            reasons.append(_UDP_REASONS.get(name, "{}: applies to TCP only").format(name))
    if not udp and "burst-size" in spec:
        reasons.append("burst-size: applies to UDP only")
    if "buffer-length" in spec and _is_integer(spec["buffer-length"]):
        least, most = (24, 65507) if udp else (1, 64 << 20)
        if not least <= spec["buffer-length"] <= most:
            reasons.append("buffer-length: must be {} to {}".format(least, most))
    if spec.get("bandwidth-strict") is True:
        if "bandwidth" not in spec:
            reasons.append("bandwidth-strict: needs bandwidth")
        if "fq-rate" in spec:
            reasons.append("bandwidth-strict and fq-rate both set the pacing rate of the sockets")
    if "bandwidth" in spec and not reasons:
        # Pacing by the kernel never catches up; the rate of the application does.
        name = "--pace" if spec.get("bandwidth-strict") is True else "--rate"
        options.append("{}={}".format(name, spec["bandwidth"]))
    if not reasons:
        # The verdict needs samples; the intervals of the result are put together from them.
        usual, wanted = 0.1, 0.1 if test_seconds(spec) <= LONG_S else 1.0
        sampling = min(wanted, interval_seconds(spec))
        if sampling != usual:
            options.append("--interval={}ms".format(max(1, round(sampling * 1000))))
    for name in ("single-ended", "loopback"):
        if spec.get(name) is False:
            reasons.append("{}: pScheduler leaves out the second participant even if it is false".format(name))
    if is_single_ended(spec) and spec.get("loopback") is True:
        reasons.append("single-ended and loopback exclude each other")
    if "single-ended-port" in spec and not is_single_ended(spec):
        reasons.append("single-ended-port: needs single-ended")
    return options, reasons


def mtu_options(spec: Json) -> Tuple[Options, List[str]]:
    """Return the options of `landspeed run` for an MTU test, and the reasons to refuse it."""
    options, reasons = _translate(spec, _MTU)
    return [*options, "--probe-mtu", "--bytes=1K"], reasons


def _translate(spec: Json, table: Dict[str, Callable[[Any], Options]]) -> Tuple[Options, List[str]]:
    options: Options = []
    reasons = [] if "dest" in spec else ["dest: missing"]
    for name, value in sorted(spec.items()):
        if name not in table:
            reasons.append("{!a}: landspeed has no such option".format(name[:100]))
            continue
        try:
            options += table[name](value)
        except ValueError as why:
            reasons.append("{}: {}".format(name, why))
    return options, reasons


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _integer(least: int, most: int, option: str = "", unit: str = "") -> Callable[[Any], Options]:
    def translate(value: Any) -> Options:
        if not _is_integer(value) or not least <= value <= most:
            raise ValueError("must be {} to {}".format(least, most))
        return ["{}={}{}".format(option, value, unit)] if option else []

    return translate


def _flag(option: str = "") -> Callable[[Any], Options]:
    def translate(value: Any) -> Options:
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return [option] if value and option else []

    return translate


def _seconds(least: float, most: float, option: str = "") -> Callable[[Any], Options]:
    def translate(value: Any) -> Options:
        seconds = parse_duration(value)
        if not least <= seconds <= most:
            raise ValueError("must be {:g} to {:g} s".format(least, most))
        return ["{}={}ms".format(option, round(seconds * 1000))] if option and seconds else []

    return translate


def _place(value: Any) -> Options:
    plain = isinstance(value, str) and 0 < len(value) <= 255 and value.isprintable()
    if not plain or value.startswith("-") or " " in value:
        raise ValueError("not a host name or address")
    return []


def _nothing(_value: Any) -> Options:
    return []


def _version(value: Any) -> Options:
    if value not in (4, 6) or not _is_integer(value):
        raise ValueError("must be 4 or 6")
    return ["-{}".format(value)]


def _tos(value: Any) -> Options:
    if not _is_integer(value) or not 0 <= value <= 255:
        raise ValueError("must be 0 to 255")
    if value % 4:
        raise ValueError("the ECN bits (the lower two) belong to the kernel; use a multiple of 4")
    return ["--dscp={}".format(value // 4)]


def _congestion(value: Any) -> Options:
    plain = isinstance(value, str) and value.replace("_", "").replace("-", "").isalnum()
    if not plain or not value.isprintable() or len(value.encode("utf-8", "replace")) > 15:
        raise ValueError("must be a name of at most 15 letters")
    return ["--congestion={}".format(value)]


def _refuse_if_true(reason: str) -> Callable[[Any], Options]:
    def translate(value: Any) -> Options:
        if value is not False:
            raise ValueError(reason)
        return []

    return translate


def _flow_label(_value: Any) -> Options:
    raise ValueError("landspeed does not set the flow label")


_RATE = (8, 10**15)
_UDP_REASONS = {
    "bandwidth-strict": "{}: UDP senders catch up at 125 % of the rate after a stall",
}

_THROUGHPUT: Dict[str, Callable[[Any], Options]] = {
    "schema": _nothing,
    **{name: _place for name in _PLACES},
    "duration": _seconds(0.001, 30 * 86400, "--time"),
    "interval": _seconds(0.001, 86400),
    "link-rtt": _seconds(0, 600),
    "parallel": _integer(1, 1024, "--parallel"),
    "udp": _flag("--udp"),
    "bandwidth": _integer(*_RATE),
    "bandwidth-strict": _flag(),
    "burst-size": _integer(1, 65536, "--burst"),
    "fq-rate": _integer(*_RATE, "--pace"),
    "window-size": _integer(1 << 10, (1 << 30) - 1, "--window"),
    "mss": _integer(88, 65495, "--mss"),
    "buffer-length": _integer(1, 64 << 20, "--len"),
    "ip-tos": _tos,
    "ip-version": _version,
    "omit": _seconds(0, 3600, "--omit"),
    "no-delay": _flag("--nodelay"),
    "congestion": _congestion,
    "zero-copy": _flag("--zerocopy"),
    "flow-label": _flow_label,
    "client-cpu-affinity": _integer(0, 4095, "--cpus"),
    "server-cpu-affinity": _integer(0, 4095, "--peer-cpus"),
    "single-ended": _flag(),
    "single-ended-port": _integer(1, 65535),
    "reverse": _flag("--reverse"),
    "reverse-connections": _refuse_if_true("landspeed connects from source to dest only"),
    "loopback": _flag(),
}

_MTU: Dict[str, Callable[[Any], Options]] = {
    "schema": _nothing,
    "source": _place,
    "source-node": _place,
    "dest": _place,
    "ip-version": _version,
    "port": _integer(1, 65535),
}
