"""pScheduler's own code judges the plugin, and its iperf3 tool runs landspeed's drop-in.

Skipped without a source tree of perfsonar/pscheduler in LANDSPEED_PSCHEDULER.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pscheduler_bed import METHODS, Plugin, finish, free_port, install, options

LIBRARY = "python-pscheduler/pscheduler"
BASE = {"schema": 1, "source": "127.0.0.1", "dest": "127.0.0.1"}
# The library imports them; nothing here filters with jq.
STUBS = {"pyjq": "", "_pyjq": "ScriptRuntimeError = Exception\n"}

RUN_SCRIPT = """
import runpy, sys
directory, script, configuration = sys.argv[1:]
sys.path.insert(0, directory)
import iperf3_defaults
iperf3_defaults.CONFIG_FILE = configuration
sys.argv = [script]
runpy.run_path(directory + "/" + script, run_name="__main__")
"""


@pytest.fixture(scope="session")
def tree() -> Path:
    """Return the source tree of pScheduler."""
    given = os.environ.get("LANDSPEED_PSCHEDULER")
    if not given:
        pytest.skip("LANDSPEED_PSCHEDULER is not set: no source tree of perfsonar/pscheduler")
    return Path(given)


@pytest.fixture(scope="session")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with empty modules for those that are not installed."""
    directory = tmp_path_factory.mktemp("stubs")
    for name, text in STUBS.items():
        if importlib.util.find_spec(name) is None:
            (directory / f"{name}.py").write_text(text)
    return directory


@pytest.fixture(scope="session")
def classes(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of classes as pScheduler has it: the tools, and the tests that judge them."""
    root = tmp_path_factory.mktemp("classes")
    found = root / "classes"
    for kind in ("tool", "test"):
        (found / kind).mkdir(parents=True)
    (found / "tool/landspeed").symlink_to(install(root / "root"))
    (found / "tool/iperf3").symlink_to(tree / "pscheduler-tool-iperf3/iperf3")
    for name in ("throughput", "mtu"):
        (found / "test" / name).symlink_to(tree / f"pscheduler-test-{name}" / name)
    return found


@pytest.fixture(scope="session")
def pscheduler(tree: Path, stubs: Path, classes: Path) -> types.ModuleType:
    """Return pScheduler's library, with the directory of classes that its build fills in."""
    sys.path[:0] = [str(tree / LIBRARY), str(stubs)]
    try:
        module = importlib.import_module("pscheduler")
    except ImportError as why:
        pytest.skip(f"pScheduler's library needs more: {why}")
    vars(module.plugins)["__CLASSES"] = str(classes)
    return module


@pytest.fixture
def plugin(classes: Path, tmp_path: Path) -> Plugin:
    """Return the installed plugin."""
    return Plugin(classes / "tool/landspeed", tmp_path)


@pytest.fixture
def environment(plugin: Plugin, tree: Path, stubs: Path) -> dict[str, str]:
    """Return the environment of pScheduler's scripts: its library, and landspeed under the name iperf3."""
    programs = plugin.place / "bin"
    programs.mkdir()
    (programs / "iperf3").symlink_to(Path(plugin.program).resolve())
    own = plugin.environment()
    return {**own, "PATH": f"{programs}:{own['PATH']}", "PYTHONPATH": f"{tree / LIBRARY}:{stubs}"}


@dataclass
class Iperf3Tool:
    """pScheduler's iperf3 tool, with a configuration file of the test."""

    directory: Path
    configuration: Path
    environment: dict[str, str]

    def begin(self, method: str, question: Any) -> subprocess.Popen[bytes]:
        """Start a method."""
        command = [sys.executable, "-c", RUN_SCRIPT, str(self.directory), method, str(self.configuration)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=self.environment)
        assert process.stdin is not None
        process.stdin.write(json.dumps(question).encode())
        process.stdin.close()
        process.stdin = None
        return process

    def call(self, method: str, question: Any) -> Any:
        """Return the answer of a method."""
        status, out, err = finish(self.begin(method, question))
        assert status == 0, err
        return json.loads(out)


def judge(module: types.ModuleType, method: str, question: Any, environment: dict[str, str], kind: str, *more: str) -> str:
    """Return what a method of a test class answers."""
    status, out, err = module.plugin_invoke("test", kind, method, [*more], stdin=json.dumps(question), env=environment)
    assert status == 0, err
    return str(out)


def load(path: Path, name: str) -> types.ModuleType:
    """Import a module of the tree that is in no package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_throughput(
    module: types.ModuleType, classes: Path, spec: Any, merged: Any, environment: dict[str, str], *wanted: str
) -> None:
    """Let the test class judge specification and result, and print the result."""
    assert json.loads(judge(module, "spec-is-valid", spec, environment, "throughput")) == {"valid": True}
    validate = load(classes / "test/throughput/validate.py", "validate_throughput")
    assert validate.result_is_valid(merged) == (True, "OK")
    assert merged["succeeded"] is True
    text = judge(module, "result-format", {"spec": spec, "result": merged}, environment, "throughput", "text/plain")
    for expected in ("Summary", "bps", "Receiver Throughput", *wanted):
        assert expected in text, text


def test_the_enumeration_is_valid(pscheduler: types.ModuleType, plugin: Plugin) -> None:
    answer = plugin.call("enumerate", {})
    assert pscheduler.json_validate(answer, {"$ref": "#/pScheduler/PluginEnumeration/Tool"}) == (True, "OK")
    path = plugin.tool.parents[1] / "tool/landspeed"
    for method in METHODS:
        assert pscheduler.plugin_method_path("tool", "landspeed", method) == str(path / method)


def test_every_property_of_the_schema_is_known(pscheduler: types.ModuleType, classes: Path) -> None:
    validate = load(classes / "test/throughput/validate.py", "validate_throughput")
    assert options.MAX_SCHEMA["throughput"] == validate.MAX_SCHEMA
    newest = validate.SPEC_SCHEMA["local"][f"throughput_v{validate.MAX_SCHEMA}"]["properties"]
    assert set(newest) == set(options._THROUGHPUT)


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"parallel": 2, "interval": "PT0.5S", "omit": "PT0.3S"}, ["Stream ID 1", "Retransmits", "(omitted)"]),
        ({"udp": True, "bandwidth": 10**7, "reverse": True}, ["Lost / Sent", "Jitter"]),
    ],
)
def test_pscheduler_runs_and_judges_a_throughput_test(
    pscheduler: types.ModuleType,
    classes: Path,
    plugin: Plugin,
    environment: dict[str, str],
    more: dict[str, Any],
    wanted: list[str],
) -> None:
    spec = {**BASE, "duration": "PT1S", **more}
    participants = json.loads(judge(pscheduler, "participants", spec, environment, "throughput"))["participants"]
    merged = plugin.measure(spec, participants=len(participants))
    check_throughput(pscheduler, classes, spec, merged, environment, *wanted)
    command = json.loads(judge(pscheduler, "spec-to-cli", spec, environment, "throughput"))
    assert json.loads(judge(pscheduler, "cli-to-spec", command, environment, "throughput"))["dest"] == "127.0.0.1"


def test_failures_keep_to_the_schema(pscheduler: types.ModuleType, classes: Path, plugin: Plugin) -> None:
    merged = plugin.measure({"schema": 2, "dest": "127.0.0.1", "single-ended": True, "single-ended-port": 1})
    validate = load(classes / "test/throughput/validate.py", "validate_throughput")
    assert validate.result_is_valid(merged) == (True, "OK")
    assert merged["succeeded"] is False


def test_pscheduler_judges_an_mtu_test(
    pscheduler: types.ModuleType, classes: Path, plugin: Plugin, environment: dict[str, str]
) -> None:
    spec = {"schema": 2, "source": "127.0.0.1", "dest": "127.0.0.1", "port": plugin.port}
    assert json.loads(judge(pscheduler, "spec-is-valid", spec, environment, "mtu"))["valid"] is True
    serve = [plugin.program, "serve", "--listen", f"127.0.0.1:{plugin.port}", "--no-iperf3"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        assert server.stdout is not None
        server.stdout.readline()
        merged = plugin.measure(spec, "mtu")
        server.terminate()
    assert load(classes / "test/mtu/validate.py", "validate_mtu").result_is_valid(merged) == (True, "OK")
    text = judge(pscheduler, "result-format", {"spec": spec, "result": merged}, environment, "mtu", "text/plain")
    assert str(merged["mtu"]) in text


def test_the_runner_s_time_limit_leaves_no_process(pscheduler: types.ModuleType, plugin: Plugin) -> None:
    spec = {"schema": 5, "dest": "127.0.0.1", "duration": "PT20S", "loopback": True}
    test = {"type": "throughput", "spec": spec}
    question = json.dumps(plugin.question(test, 0, plugin.data(test, 1)))
    lines: list[str] = []
    keep = lambda line: lines.append(line)  # noqa: E731 (pScheduler takes nothing but a lambda)
    status, _, err = pscheduler.plugin_invoke(
        "tool", "landspeed", "run", stdin=question, env=plugin.environment(), timeout=2, line_call=keep
    )
    assert (status, lines) == (2, [])
    assert "too long" in err
    plugin.is_clean()


def test_pscheduler_s_iperf3_tool_takes_the_drop_in(
    pscheduler: types.ModuleType, classes: Path, plugin: Plugin, environment: dict[str, str]
) -> None:
    # The tool's server waits for its client as long as the test lasts, and the client waits three seconds.
    base = {**BASE, "duration": "PT5S", "bandwidth": 10**8}
    variants: list[dict[str, Any]] = [{"parallel": 2}, {"udp": True, "bandwidth": 10**7}, {"reverse": True}]
    running = []
    for number, more in enumerate(variants):
        configuration = plugin.place / f"iperf3-{number}.conf"
        program = plugin.place / "bin/iperf3"
        configuration.write_text(f"[iperf3]\niperf3_cmd = {program}\nserver_port = {free_port()}\n")
        tool = Iperf3Tool(classes / "tool/iperf3", configuration, environment)
        test = {"type": "throughput", "spec": {**base, **more}}
        assert tool.call("can-run", test) == {"can-run": True}
        data = [tool.call("participant-data", {"participant": end, "test": test}) for end in range(2)]
        assert data[0]["iperf3-version"].startswith("3.")
        length = tool.call("duration", test)["duration"]
        processes = [tool.begin("run", plugin.question(test, end, data, length)) for end in range(2)]
        running.append((tool, test, processes))
    for tool, test, processes in running:
        results = [json.loads(finish(process)[1]) for process in processes]
        assert [result["succeeded"] for result in results] == [True, True], results
        merged = tool.call("merged-results", {"test": test, "results": results})
        check_throughput(pscheduler, classes, test["spec"], merged, environment)
        summary = merged["summary"]["summary"]
        assert len(merged["intervals"]) == 5
        assert summary["receiver-throughput-bits"] == pytest.approx(summary["throughput-bits"], rel=0.2)
        if "udp" in test["spec"]:
            assert summary["sent"] > 0
            assert summary["lost"] >= 0
