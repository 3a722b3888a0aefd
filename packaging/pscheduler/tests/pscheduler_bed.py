"""What the tests share: the installed plugin, called as pScheduler calls it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE))

from landspeed_tool import entry, options, result, run  # noqa: E402 (it is not installed)

__all__ = ["entry", "options", "result", "run"]

METHODS = ("can-run", "duration", "enumerate", "merged-results", "participant-data", "run")
WAIT_S = 30


def find_program() -> str:
    """Return the program under test."""
    found = os.environ.get("LANDSPEED_BINARY") or shutil.which("landspeed")
    if not found:
        pytest.skip("there is no landspeed: set LANDSPEED_BINARY")
    return found


def free_port() -> int:
    """Return an unused port, TCP and UDP."""
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::", 0))
        return int(probe.getsockname()[1])


@dataclass
class Plugin:
    """The plugin in the directory `tool`; files of a test are in `place`."""

    tool: Path
    place: Path
    port: int = field(default_factory=free_port)
    program: str = field(default_factory=find_program)
    capture: bool = False

    def environment(self) -> dict[str, str]:
        """Return the environment of the methods, with a configuration and a directory for temporary files."""
        configuration = self.place / "landspeed.conf"
        settings = {"program": self.program, "server_port": self.port, "capture": "yes" if self.capture else "no"}
        lines = [f"{name} = {value}\n" for name, value in settings.items()]
        configuration.write_text("[landspeed]\n" + "".join(lines))
        temporary = self.place / "tmp"
        temporary.mkdir(exist_ok=True)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        own = {"LANDSPEED_PSCHEDULER_CONF": str(configuration), "TMPDIR": str(temporary), "PATH": path}
        return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **own}

    def begin(self, method: str, question: Any) -> subprocess.Popen[bytes]:
        """Start a method with its question on standard input."""
        process = subprocess.Popen(
            [self.tool / method],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(),
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(question if isinstance(question, bytes) else json.dumps(question).encode())
            process.stdin.close()
        process.stdin = None
        return process

    def raw(self, method: str, question: Any) -> tuple[int, str, str]:
        """Return exit status, standard output and standard error of a method."""
        return finish(self.begin(method, question))

    def call(self, method: str, question: Any) -> Any:
        """Return the answer of a method."""
        status, out, err = self.raw(method, question)
        assert status == 0, err
        assert err == ""
        return json.loads(out)

    def question(self, test: Any, participant: int, data: Any, length: str | None = None, ahead_s: float = 0.2) -> Any:
        """Return the input of `run`, as pScheduler's runner makes it."""
        start = datetime.now(timezone.utc) + timedelta(seconds=ahead_s)
        return {
            "schema": 1,
            "task-uuid": "2a8c5ac2-2b1f-4f9e-8d57-000000000000",
            "schedule": {
                "start": start.isoformat(timespec="milliseconds"),
                "duration": length or options.duration(test)["duration"],
            },
            "test": test,
            "participant": participant,
            "participant-data": data,
        }

    def data(self, test: Any, participants: int) -> list[Any]:
        """Return the participants' data."""
        questions = [{"participant": number, "test": test} for number in range(participants)]
        answers = [finish(process) for process in [self.begin("participant-data", question) for question in questions]]
        assert all(status == 0 for status, _, _ in answers), answers
        return [json.loads(out) for _, out, _ in answers]

    def begin_all(self, test: Any, participants: int) -> list[subprocess.Popen[bytes]]:
        """Start `run` of all participants."""
        data = self.data(test, participants)
        return [self.begin("run", self.question(test, number, data)) for number in range(participants)]

    def measure(self, spec: Any, kind: str = "throughput", participants: int | None = None) -> Any:
        """Run a test as pScheduler does, and return the merged result."""
        test = {"type": kind, "spec": spec}
        if participants is None:
            alone = kind == "mtu" or "single-ended" in spec or "loopback" in spec
            participants = 1 if alone else 2
        assert options.refusals(test) == []
        results = []
        for process in self.begin_all(test, participants):
            status, out, err = finish(process)
            assert (status, err) == (0, "")
            results.append(json.loads(out))
        self.is_clean()
        return self.call("merged-results", {"test": test, "results": results})

    def is_clean(self) -> None:
        """Assert that no file and no process is left."""
        assert list((self.place / "tmp").iterdir()) == []
        deadline = time.monotonic() + WAIT_S
        while left := self.programs():
            assert time.monotonic() < deadline, left
            time.sleep(0.02)

    def wait_for_server(self) -> None:
        """Wait until the server of the plugin's port listens."""
        deadline = time.monotonic() + WAIT_S
        listens = re.compile(rf":{self.port:04X} \S+ 0A ")
        while not listens.search(Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def programs(self) -> list[str]:
        """Return the command lines of landspeed that name this plugin's files."""
        found = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(self.place / "tmp") in line and self.program in line:
                    found.append(line)
        return found


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Wait for a method, and return exit status, standard output and standard error."""
    try:
        out, err = process.communicate(timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, out.decode(), err.decode()


def install(root: Path) -> Path:
    """Install the plugin below `root`, and return its directory."""
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    outside = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "PSCHEDULER")}
    settings = [f"DESTDIR={root}", "PSCHEDULER=/usr/libexec/pscheduler"]
    subprocess.run(
        ["make", "-C", SOURCE.parents[1], "install-pscheduler", *settings], check=True, env=outside, stdout=subprocess.PIPE
    )
    return root / "usr/libexec/pscheduler/classes/tool/landspeed"


@contextlib.contextmanager
def running(arguments: list[str], ready: str) -> Iterator[subprocess.Popen[str]]:
    """Run a server until the end of the block; it is ready when it prints `ready`."""
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if ready in line:
                    break
            yield process
        finally:
            process.terminate()
            process.wait(WAIT_S)
