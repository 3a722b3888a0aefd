"""Specifications become options of landspeed, or are refused with a reason; nothing is ignored."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pscheduler_bed import entry, find_program, options, result

BASE = {"schema": 7, "dest": "127.0.0.1"}

# Every property of the throughput test's schema 7, and what becomes of it.
ACCEPTED: list[tuple[dict[str, Any], list[str]]] = [
    ({"source": "a.example", "source-node": "a.example:8443", "dest-node": "b.example"}, []),
    ({"duration": "PT2.5S"}, ["--time=2500ms"]),
    ({"duration": "P1DT1M"}, ["--time=86460000ms", "--interval=1000ms"]),
    ({"interval": "PT1S"}, []),
    ({"interval": "PT0.05S"}, ["--interval=50ms"]),
    ({"interval": "PT10S", "duration": "PT60S"}, ["--time=60000ms"]),
    ({"interval": "PT10S", "duration": "PT61S"}, ["--time=61000ms", "--interval=1000ms"]),
    ({"link-rtt": "PT0.05S"}, []),
    ({"parallel": 4}, ["--parallel=4"]),
    ({"udp": True}, ["--udp"]),
    ({"udp": False}, []),
    ({"bandwidth": 10**9}, ["--rate=1000000000"]),
    ({"bandwidth": 10**9, "bandwidth-strict": True}, ["--pace=1000000000"]),
    ({"bandwidth": 10**9, "bandwidth-strict": False}, ["--rate=1000000000"]),
    ({"udp": True, "bandwidth": 10**9, "burst-size": 10}, ["--burst=10", "--udp", "--rate=1000000000"]),
    ({"fq-rate": 10**9}, ["--pace=1000000000"]),
    ({"fq-rate": 10**9, "bandwidth": 10**8}, ["--pace=1000000000", "--rate=100000000"]),
    ({"window-size": 1 << 20}, ["--window=1048576"]),
    ({"mss": 1400}, ["--mss=1400"]),
    ({"buffer-length": 131072}, ["--len=131072"]),
    ({"ip-tos": 184}, ["--dscp=46"]),
    ({"ip-version": 4}, ["-4"]),
    ({"ip-version": 6, "dest": "::1"}, ["-6"]),
    ({"local-address": "127.0.0.1"}, []),
    ({"omit": "PT2S"}, ["--omit=2000ms"]),
    ({"omit": "PT0S"}, []),
    ({"no-delay": True}, ["--nodelay"]),
    ({"congestion": "cubic"}, ["--congestion=cubic"]),
    ({"zero-copy": True}, ["--zerocopy"]),
    ({"zero-copy": False}, []),
    ({"client-cpu-affinity": 0}, ["--cpus=0"]),
    ({"server-cpu-affinity": 0}, ["--peer-cpus=0"]),
    ({"single-ended": True, "single-ended-port": 5210}, []),
    ({"reverse": True}, ["--reverse"]),
    ({"reverse-connections": False}, []),
    ({"loopback": True}, []),
]

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"flow-label": 5}, "flow-label: "),
    ({"reverse-connections": True}, "reverse-connections: "),
    ({"bandwidth-strict": True}, "needs bandwidth"),
    ({"bandwidth-strict": True, "bandwidth": 10**6, "udp": True}, "125 %"),
    ({"bandwidth-strict": True, "bandwidth": 10**6, "fq-rate": 10**6}, "both set"),
    ({"burst-size": 10}, "UDP only"),
    ({"udp": True, "fq-rate": 10**9}, "fq-rate: applies to TCP only"),
    ({"udp": True, "mss": 1400}, "mss: applies to TCP only"),
    ({"udp": True, "congestion": "cubic"}, "congestion: applies to TCP only"),
    ({"udp": True, "no-delay": True}, "no-delay: applies to TCP only"),
    ({"udp": True, "zero-copy": True}, "zero-copy: applies to TCP only"),
    ({"udp": True, "buffer-length": 70000}, "buffer-length: must be 24 to 65507"),
    ({"buffer-length": 0}, "buffer-length: must be"),
    ({"duration": "PT0S"}, "duration: must be 0.001"),
    ({"duration": "P1Y"}, "duration: not an ISO 8601"),
    ({"duration": "P"}, "duration: not an ISO 8601"),
    ({"duration": 10}, "duration: not an ISO 8601"),
    ({"duration": "PT1.1.1S"}, "duration: "),
    ({"duration": "PT" + "9" * 400 + "S"}, "duration: not an ISO 8601"),
    ({"interval": "PT0S"}, "interval: must be"),
    ({"omit": "PT2H"}, "omit: must be"),
    ({"parallel": 0}, "parallel: must be 1 to 1024"),
    ({"parallel": 10**6}, "parallel: must be 1 to 1024"),
    ({"parallel": True}, "parallel: must be"),
    ({"parallel": 1.5}, "parallel: must be"),
    ({"parallel": None}, "parallel: must be"),
    ({"udp": "yes"}, "udp: must be true or false"),
    ({"ip-tos": 185}, "ECN"),
    ({"ip-tos": 256}, "ip-tos: must be"),
    ({"ip-version": 5}, "ip-version: must be 4 or 6"),
    ({"ip-version": "4"}, "ip-version: must be 4 or 6"),
    ({"congestion": "--json=/etc/passwd"}, "congestion: "),
    ({"congestion": "x" * 16}, "congestion: "),
    ({"congestion": ""}, "congestion: "),
    ({"dest": "--help"}, "dest: not a host name"),
    ({"dest": ""}, "dest: not a host name"),
    ({"dest": "a b"}, "dest: not a host name"),
    ({"dest": "a\0b"}, "dest: not a host name"),
    ({"dest": ["a"]}, "dest: not a host name"),
    ({"dest": "\ud800"}, "dest: not a host name"),
    ({"local-address": "-B"}, "local-address: not a host name"),
    ({"single-ended": False}, "even if it is false"),
    ({"loopback": False}, "even if it is false"),
    ({"single-ended": True, "loopback": True}, "exclude each other"),
    ({"single-ended-port": 5201}, "needs single-ended"),
    ({"single-ended": True, "single-ended-port": 0}, "single-ended-port: must be"),
    ({"client-cpu-affinity": -1}, "client-cpu-affinity: must be"),
    ({"bandwidth": 1e9}, "bandwidth: must be"),
    ({"window-size": 10}, "window-size: must be"),
    ({"mss": 20}, "mss: must be"),
    ({"quantum": 1}, "'quantum': landspeed has no such option"),
    ({"schema": 8}, "schema: "),
    ({"schema": 0}, "schema: "),
    ({"schema": "1"}, "schema: "),
]


@pytest.mark.parametrize(("spec", "wanted"), ACCEPTED)
def test_every_option_is_passed_on(spec: dict[str, Any], wanted: list[str]) -> None:
    assert options.throughput_options({**BASE, **spec}) == (wanted, [])


@pytest.mark.parametrize(("spec", "reason"), REFUSED)
def test_what_landspeed_lacks_is_refused_with_the_reason(spec: dict[str, Any], reason: str) -> None:
    reasons = options.refusals({"type": "throughput", "spec": {**BASE, **spec}})
    assert any(reason in text for text in reasons), reasons


def test_every_property_is_in_the_tables() -> None:
    seen = {name for spec, *_ in ACCEPTED + REFUSED for name in spec}
    assert set(options._THROUGHPUT) - seen == set()


def test_landspeed_accepts_the_options_it_is_given(tmp_path: Path) -> None:
    program = find_program()
    udp = {"udp": True, "bandwidth": 10**6, "burst-size": 2, "buffer-length": 24}
    tcp: dict[str, Any] = {}
    for spec, _ in ACCEPTED:
        tcp.update(spec if not spec.get("udp") and "ip-version" not in spec and "bandwidth-strict" not in spec else {})
    most = {
        "parallel": 1,
        "window-size": (1 << 30) - 1,
        "mss": 65495,
        "buffer-length": 64 << 20,
        "omit": "PT1H",
        "ip-tos": 252,
    }
    least = {"duration": "PT0.001S", "interval": "PT0.001S", "window-size": 1 << 10, "mss": 88, "buffer-length": 1}
    strict = {"bandwidth": 8, "bandwidth-strict": True}
    for spec in (tcp, udp, {**udp, "buffer-length": 65507, "reverse": True}, most, least, strict, {"ip-version": 6}):
        whole = {**BASE, "dest": "::1" if "ip-version" in spec else "127.0.0.1", **spec}
        translated, reasons = options.throughput_options({**whole, "dest": "127.0.0.1"} if spec is tcp else whole)
        assert reasons == ["single-ended and loopback exclude each other"] * (spec is tcp)
        for mode in ([], ["--iperf3"]):
            document = tmp_path / "run.json"
            # Nobody listens on port 1: options are judged, nothing is measured.
            command = [program, "run", *translated, *mode, "--json", str(document), "--verbose"]
            target = "[::1]:1" if "ip-version" in spec else "127.0.0.1:1"
            done = subprocess.run([*command, "--", target], capture_output=True)
            assert document.exists(), (spec, mode, done.stderr)
            errors = json.loads(document.read_text())["errors"]
            assert len(errors) == 1, (spec, mode, errors)
            assert errors[0]["message"].startswith("cannot connect to "), (spec, mode, errors)
            document.unlink()


def test_the_duration_covers_setup_omit_and_results() -> None:
    def seconds(**spec: Any) -> float:
        answer = options.duration({"type": "throughput", "spec": {**BASE, **spec}})
        return entry.parse_duration(answer["duration"])

    assert seconds() == 24
    assert seconds(duration="PT30S", omit="PT5S") == 49
    assert seconds(duration="PT0.5S", **{"link-rtt": "PT1S"}) == 31
    with pytest.raises(entry.MethodError, match="duration: must be"):
        seconds(duration="PT0S")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:10Z", 10),
        ("1970-01-01T01:00:10.25+01:00", 10.25),
        ("19700101T000010Z", 10),
        ("1969-12-31T19:00:10-0500", 10),
        ("1970-01-01T02:00:00+02", 0),
    ],
)
def test_times_of_pscheduler_are_read(text: str, seconds: float) -> None:
    assert entry.parse_time(text) == seconds


def test_mtu_tests_name_a_server() -> None:
    assert options.refusals({"type": "mtu", "spec": {"schema": 2, "dest": "b.example", "port": 5210, "ip-version": 6}}) == []
    assert options.refusals({"type": "mtu", "spec": {"schema": 1, "dest": "b.example", "port": 0}}) != []
    assert options.refusals({"type": "rtt", "spec": {"schema": 1, "dest": "b.example"}}) == ["unsupported test type"]
    assert options.refusals({"spec": BASE}) == ["missing test type"]
    assert options.refusals({"type": "throughput"}) == ["missing test specification"]


def test_long_texts_keep_their_beginning_and_end() -> None:
    text = entry.shorten("first" + "x" * 10**6 + "last", 100)
    assert text.startswith("first")
    assert text.endswith("last")
    assert len(text) < 200
    assert "999909 characters left out" in text


def test_an_hour_of_samples_becomes_exact_intervals() -> None:
    second, hour = 10**9, 3600
    tcp = {"snd_cwnd": 10, "snd_mss_bytes": 1000, "rtt_us": 5}
    samples = [{"t_ns": t * second + 1, "bytes": t * 100, "tcp": {**tcp, "total_retrans": t}} for t in range(hour + 1)]
    parts = [
        {"start_ns": t * second, "end_ns": (t + 1) * second, "phase": "omitted" if t < 10 else "steady", "bytes": 100}
        for t in range(hour)
    ]
    drain = {"start_ns": hour * second, "end_ns": hour * second + 5, "phase": "drain", "bytes": 7}
    sender = {"samples": samples, "retransmits": hour, "mss_bytes": 1000}
    streams = [{"id": number, "intervals": [*parts, drain], "sender": sender, "receiver": {}} for number in range(8)]
    document = {
        "requested": {"direction": "upload", "protocol": "tcp"},
        "summary": {"goodput_bps": 6400.0, "retransmits": 8 * hour},
        "phases": [
            {"name": "omitted", "start_ns": 0, "end_ns": 10 * second},
            {"name": "steady", "start_ns": 10 * second, "end_ns": hour * second},
        ],
        "streams": streams,
    }
    answer = result.throughput(document, {"interval": "PT1S", "duration": "PT59M50S", "omit": "PT10S"}, "")
    assert len(answer["intervals"]) == hour
    kept = [interval for interval in answer["intervals"] if not interval["summary"]["omitted"]]
    assert len(kept) == hour - 10
    assert all(interval["summary"]["throughput-bits"] == pytest.approx(6400) for interval in kept)
    assert all(interval["summary"]["retransmits"] == 8 for interval in kept)
    summary = answer["summary"]["summary"]
    assert (summary["throughput-bytes"], summary["retransmits"]) == (8 * 100 * (hour - 10), 8 * (hour - 10))
    assert (summary["start"], summary["end"]) == (10, hour)
