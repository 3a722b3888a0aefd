"""The plugin's methods, called with JSON on standard input, measure over loopback with the real program."""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pscheduler_bed import METHODS, Plugin, entry, finish, free_port, install, options, result, run, running

BASE = {"schema": 1, "source": "127.0.0.1", "dest": "127.0.0.1"}
CAUSE = "cause "


@pytest.fixture(scope="session")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the plugin once."""
    return install(tmp_path_factory.mktemp("root"))


@pytest.fixture
def plugin(tool: Path, tmp_path: Path) -> Plugin:
    """Return the plugin with a separate port."""
    return Plugin(tool, tmp_path)


def test_install_puts_every_method_where_pscheduler_looks(tool: Path) -> None:
    assert sorted(path.name for path in tool.iterdir() if path.is_file()) == sorted(METHODS)
    assert all((tool / method).stat().st_mode & 0o777 == 0o755 for method in METHODS)
    configuration = tool.parents[5] / "etc/pscheduler/tool/landspeed.conf"
    configuration.write_text("[landspeed]\nserver_port = 1\n")
    install(tool.parents[5])
    assert "server_port = 1" in configuration.read_text()


def test_a_test_of_two_participants_has_exact_figures_and_the_cause(plugin: Plugin) -> None:
    spec = {**BASE, "duration": "PT1S", "omit": "PT0.3S", "interval": "PT0.5S", "parallel": 2}
    merged = plugin.measure(spec)
    assert merged["succeeded"] is True
    assert "error" not in merged
    assert [interval["summary"]["omitted"] for interval in merged["intervals"]] == [True, False, False]
    kept = [interval for interval in merged["intervals"] if not interval["summary"]["omitted"]]
    summary = merged["summary"]["summary"]
    records = [*merged["summary"]["streams"], summary]
    for interval in merged["intervals"]:
        records += [*interval["streams"], interval["summary"]]
        assert len(interval["streams"]) == 2
        assert sum(stream["throughput-bytes"] for stream in interval["streams"]) == interval["summary"]["throughput-bytes"]
    for record in records:
        assert record["throughput-bits"] == pytest.approx(record["throughput-bytes"] * 8 / (record["end"] - record["start"]))
        assert record["retransmits"] >= 0
    assert all(stream["rtt"] > 0 and stream["tcp-window-size"] > 0 for interval in kept for stream in interval["streams"])
    for name in ("throughput-bytes", "retransmits"):
        assert sum(interval["summary"][name] for interval in kept) == summary[name]
        assert sum(stream[name] for stream in merged["summary"]["streams"]) == summary[name]
    assert summary["receiver-throughput-bits"] == summary["throughput-bits"]
    assert merged["mss"] > 0
    diags = merged["diags"]
    assert f"receiver (server): {summary['throughput-bits']:.0f} bit/s" in diags
    assert "sender (client): " in diags
    for wanted in ("Participant 0 (source 127.0.0.1):", "Participant 1 (dest 127.0.0.1):", CAUSE, "evidence", "accounting"):
        assert wanted in diags
    assert "end      complete: received" in diags
    assert "--key-file=" in diags
    assert re.search(r"\b[0-9a-f]{64}\b", json.dumps(merged)) is None


def test_keys_are_new_for_each_run(plugin: Plugin) -> None:
    questions = [{"participant": 1, "test": {"type": "throughput", "spec": BASE}}] * 2
    processes = [plugin.begin("participant-data", question) for question in questions]
    first, second = (json.loads(finish(process)[1]) for process in processes)
    assert first["port"] == plugin.port
    assert len(first["_key"]) == 64
    assert first["_key"] != second["_key"]


def test_udp_in_reverse_counts_packets(plugin: Plugin) -> None:
    merged = plugin.measure({**BASE, "duration": "PT0.5S", "udp": True, "bandwidth": 2 * 10**7, "reverse": True})
    summary = merged["summary"]["summary"]
    assert summary["sent"] > 0
    assert 0 <= summary["lost"] <= summary["sent"]
    assert summary["jitter"] >= 0
    assert "retransmits" not in summary
    assert "receiver (client): " in merged["diags"]
    [stream] = merged["summary"]["streams"]
    assert (stream["sent"], stream["lost"]) == (summary["sent"], summary["lost"])


def test_loopback_runs_both_ends_and_captures_them(plugin: Plugin) -> None:
    plugin.capture = True
    dest = "::1" if Path("/proc/net/if_inet6").exists() else "127.0.0.1"
    spec = {"schema": 5, "dest": dest, "duration": "PT0.3S", "loopback": True, "bandwidth": 10**8}
    merged = plugin.measure(spec)
    assert merged["succeeded"] is True
    assert "Server:\nlandspeed: listening on" in merged["diags"]
    # Without CAP_NET_RAW the test runs all the same.
    assert "lost between taps" in merged["diags"] or "cannot capture" in merged["diags"]


def test_a_plain_iperf3_server_is_enough(plugin: Plugin) -> None:
    iperf3 = shutil.which("iperf3")
    if iperf3 is None:
        pytest.skip("there is no iperf3")
    port = free_port()
    spec = {"schema": 2, "dest": "127.0.0.1", "duration": "PT0.5S", "single-ended": True, "single-ended-port": port}
    with running([iperf3, "-s", "-p", str(port), "--forceflush"], "Server listening"):
        for reverse in (False, True):
            merged = plugin.measure({**spec, "reverse": reverse})
            assert merged["succeeded"] is True, merged
            assert merged["summary"]["summary"]["throughput-bits"] > 0
            assert "the server's figures are" in " ".join(merged["diags"].split())
        client = [iperf3, "-c", "127.0.0.1", "-p", str(port), "-t", "9", "-b", "1M", "--forceflush"]
        with subprocess.Popen(client, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert any("connected to" in line for line in other.stdout)
            merged = plugin.measure(spec)
            other.terminate()
        assert merged["succeeded"] is False
        assert "busy" in merged["error"]


def test_a_landspeed_server_answers_single_ended_and_mtu_tests(plugin: Plugin) -> None:
    listen = f"127.0.0.1:{plugin.port}"
    with running([plugin.program, "serve", "--listen", listen, "--no-iperf3"], "listening"):
        merged = plugin.measure({"schema": 2, "source": "127.0.0.1", "dest": "127.0.0.1", "port": plugin.port}, "mtu")
    assert merged["succeeded"] is True
    assert 60000 < merged["mtu"] <= 65536
    merged = plugin.measure({"schema": 2, "dest": "127.0.0.1", "port": plugin.port}, "mtu")
    assert merged["succeeded"] is False
    assert "Connection refused" in merged["error"]


def test_both_ends_say_why_they_failed(plugin: Plugin) -> None:
    test = {"type": "throughput", "spec": {**BASE, "duration": "PT0.5S"}}
    data = plugin.data(test, 2)
    # The server of the destination has another key than the source uses, as after a restored database.
    wrong = [data[0], {**data[1], "_key": "0" * 64}]
    processes = [
        plugin.begin("run", plugin.question(test, number, part, "PT4S")) for number, part in enumerate((wrong, data))
    ]
    results = [json.loads(finish(process)[1]) for process in processes]
    merged = plugin.call("merged-results", {"test": test, "results": results})
    assert merged["succeeded"] is False
    assert "Participant 0 (source 127.0.0.1): " in merged["error"]
    assert "Participant 1 (dest 127.0.0.1): no test reached this server" in merged["error"]
    assert "refused" in merged["diags"].split("Participant 1")[1]
    plugin.is_clean()


def test_a_missing_peer_is_reported_by_either_end(plugin: Plugin) -> None:
    test = {"type": "throughput", "spec": {**BASE, "duration": "PT0.5S"}}
    data = plugin.data(test, 2)
    # Each alone, with a separate port.
    lonely = [data[0], {**data[1], "port": free_port()}]
    processes = [
        plugin.begin("run", plugin.question(test, number, part, "PT4S")) for number, part in ((0, lonely), (1, data))
    ]
    source, dest = (json.loads(finish(process)[1]) for process in processes)
    assert source["succeeded"] is False
    assert "Connection refused" in source["error"]
    assert "no test reached this server" in dest["error"]
    merged = plugin.call("merged-results", {"test": test, "results": [source, None]})
    assert "Participant 1 (dest 127.0.0.1): no result" in merged["error"]


def test_two_tests_at_once_do_not_mix(plugin: Plugin) -> None:
    test = {"type": "throughput", "spec": {**BASE, "duration": "PT2S"}}
    data = plugin.data(test, 2)
    first = [plugin.begin("run", plugin.question(test, number, data)) for number in range(2)]
    plugin.wait_for_server()
    second = plugin.begin("run", plugin.question(test, 1, data))
    late = json.loads(finish(second)[1])
    results = [json.loads(finish(process)[1]) for process in first]
    assert late["succeeded"] is False
    assert "in use" in late["error"], late["error"]
    assert plugin.call("merged-results", {"test": test, "results": results})["succeeded"] is True
    plugin.is_clean()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_no_process(plugin: Plugin, number: signal.Signals) -> None:
    processes = plugin.begin_all({"type": "throughput", "spec": {**BASE, "duration": "PT20S"}}, 2)
    while len(plugin.programs()) < 2:
        assert all(process.poll() is None for process in processes)
        time.sleep(0.02)
    for process in processes:
        process.send_signal(number)
    began = time.monotonic()
    for process in processes:
        status, out, _ = finish(process)
        assert status == (143 if number == signal.SIGTERM else -9)
        assert out == ""
    assert time.monotonic() - began < 10
    if number == signal.SIGTERM:
        plugin.is_clean()
    while plugin.programs():
        assert time.monotonic() - began < 10
        time.sleep(0.02)


JUNK = [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"type": "throughput"}', b'{"participant": 1e999}']


def test_junk_is_refused_in_one_line(plugin: Plugin) -> None:
    methods = ["can-run", "duration", "participant-data", "run", "merged-results"]
    processes = [plugin.begin(method, JUNK[2]) for method in methods]
    for status, out, err in [finish(process) for process in processes]:
        assert (status, out, err) == (1, "", "invalid JSON on standard input: not an object\n")


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("method", [options.duration, run.participant_data, run.run, result.merge])
def test_methods_refuse_junk(
    method: Callable[[Any], Any], junk: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "exit_on_signals", lambda: None)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(junk)))
    with pytest.raises(SystemExit, match="1"):
        entry.answer(method)
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"participant": 2},
        {"participant": True},
        {"participant": "0"},
        {"participant": [0]},
        {"participant-data": []},
        {"participant-data": None},
        {"participant-data": 5},
        {"schedule": {}},
        {"schedule": {"start": "tomorrow"}},
        {"schedule": {"start": "2026-13-45T99:99:99Z"}},
        {"schedule": {"start": "2020-01-01T00:00:00Z", "duration": 5}},
        {"test": None},
        {"test": {"type": "throughput", "spec": None}},
        {"test": {"type": ["throughput"], "spec": BASE}},
        {"test": {"type": "throughput", "spec": {"schema": 1, "dest": "127.0.0.1", "duration": "PT0S"}}},
        {"test": {"type": "throughput", "spec": {"schema": 1, "dest": "127.0.0.1", "flow-label": 1}}},
    ],
)
def test_a_run_refuses_what_it_cannot_use(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch, plugin: Plugin) -> None:
    monkeypatch.setattr(run, "exit_on_signals", lambda: None)
    test = {"type": "throughput", "spec": {**BASE, "duration": "PT0.5S"}}
    question = {**plugin.question(test, 0, [{}, {"port": 1, "_key": "0" * 64}], "PT3S"), **change}
    with pytest.raises(entry.MethodError):
        run.run(question)


@pytest.mark.parametrize("data", [[{}, {}], [None, None], [{}, {"server_port": 5201}], [{}, {"port": "x", "_key": ""}]])
def test_another_tool_s_participant_data_is_refused(data: Any, monkeypatch: pytest.MonkeyPatch, plugin: Plugin) -> None:
    monkeypatch.setattr(run, "exit_on_signals", lambda: None)
    test = {"type": "throughput", "spec": BASE}
    with pytest.raises(entry.MethodError, match="not landspeed's"):
        run.run(plugin.question(test, 0, data, "PT3S", ahead_s=0))


def test_unknown_and_non_ascii_names_are_errors_of_the_run(plugin: Plugin) -> None:
    for name in ("bücher.invalid", "例え.invalid", "no-such-host.invalid", "x." * 127):
        for more in ({"source": "127.0.0.1"}, {}):
            test = {"type": "throughput", "spec": {"schema": 1, **more, "dest": name, "duration": "PT0.5S"}}
            # Longer than a name server may need for its answer.
            question = plugin.question(test, 0, [{}, {"port": 1, "_key": "0" * 64}], "PT25S", ahead_s=0)
            status, out, err = plugin.raw("run", question)
            assert (status, err) == (0, "")
            assert out.isascii()
            answer = json.loads(out)
            assert answer["succeeded"] is False
            assert "resolve" in answer["error"], answer["error"]


def test_a_host_without_landspeed_refuses(plugin: Plugin) -> None:
    plugin.program = "/nonexistent/landspeed"
    test = {"type": "throughput", "spec": BASE}
    answer = plugin.call("can-run", test)
    assert answer == {"can-run": False, "reasons": ["landspeed is not installed on this host (/nonexistent/landspeed)"]}
    status, out, err = plugin.raw("participant-data", {"participant": 1, "test": test})
    assert (status, out) == (1, "")
    assert "not installed" in err


@pytest.mark.parametrize("text", ["[landspeed]\nserver_port = x\n", "junk", "[landspeed]\nserver_port = 70000\n", "\xff"])
def test_a_broken_configuration_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    path = tmp_path / "landspeed.conf"
    path.write_bytes(text.encode("latin-1"))
    monkeypatch.setenv("LANDSPEED_PSCHEDULER_CONF", str(path))
    with pytest.raises(entry.MethodError, match=r"cannot read .*landspeed\.conf"):
        entry.Configuration()
    assert options.can_run({"type": "throughput", "spec": BASE})["can-run"] is False


def test_results_of_any_shape_are_merged() -> None:
    test = {"type": "throughput", "spec": BASE}
    odd: list[Any] = [[None, None], [{}, {}], ["text", 5], [{"succeeded": "yes"}, {"succeeded": False, "error": {"a": 1}}]]
    for results in odd:
        merged = result.merge({"test": test, "results": results})
        assert merged["succeeded"] is False
        assert merged["error"]
        assert merged["intervals"] == []
    long = [{"succeeded": False, "error": "é" * 10**6, "diags": "x" * 10**7}, None]
    merged = result.merge({"test": test, "results": long})
    assert len(merged["error"]) < 5_000
    assert len(merged["diags"]) < 60_000
    bad: list[Any] = [[], [None], [None] * 3, None, "text"]
    for results in bad:
        with pytest.raises(entry.MethodError):
            result.merge({"test": test, "results": results})
    bad = [{"results": []}, {"test": None, "results": []}, {"test": {"type": "mtu", "spec": 5}, "results": [None]}]
    for question in bad:
        with pytest.raises(entry.MethodError):
            result.merge(question)
