"""The methods that run landspeed: `participant-data` and `run`."""

import json
import re
import shlex
import socket
import tempfile
import time
from pathlib import Path
from typing import ContextManager, Dict, List, Optional, Tuple

from landspeed_tool import options, result
from landspeed_tool.entry import Configuration, Json, MethodError, parse_duration, parse_time
from landspeed_tool.process import Program, exit_on_signals, started

_END = re.compile(r"^\S+Z  [0-9a-f]{8}  end +(.*)$", re.MULTILINE)
_MARGIN_S = 1.5
"""What pScheduler gives must not run out before the answer is written."""
_RETRY_S = 0.2


def participant_data(question: Json) -> Json:
    """Answer pScheduler's `participant-data`: what the other participant must know."""
    number = question.get("participant")
    if number not in (0, 1) or isinstance(number, bool):
        raise MethodError("invalid participant {!r}".format(number))
    configuration = Configuration()
    with tempfile.TemporaryDirectory(prefix="landspeed-") as directory:
        place = Path(directory)
        data = {"schema": 1, "version": _version(configuration, place), "capture": configuration.capture}
        if number == 1:
            data["port"] = configuration.server_port
            # pScheduler shows names with an underscore to the participants only.
            data["_key"] = _new_key(configuration, place).read_text().strip()
    return data


def run(question: Json) -> Json:
    """Answer pScheduler's `run`."""
    exit_on_signals()
    with tempfile.TemporaryDirectory(prefix="landspeed-") as directory:
        return _Run(question, Path(directory)).answer()


class _Run:
    """One run of one participant."""

    def __init__(self, question: Json, place: Path) -> None:
        self.place = place
        self.configuration = Configuration()
        try:
            self.number = question["participant"]
            self.kind = question["test"]["type"]
            self.spec = question["test"]["spec"]
            self.data = question["participant-data"] or []
            self.start = parse_time(question["schedule"]["start"])
            given = question["schedule"].get("duration")
            whole = parse_duration(given or options.duration(question["test"])["duration"])
        except (KeyError, TypeError, AttributeError) as why:
            raise MethodError("missing in the input of run: {!r}".format(why)) from None
        except ValueError as why:
            raise MethodError("schedule: {}".format(why)) from None
        self.deadline = self.start + max(whole - _MARGIN_S, whole / 2)
        reasons = options.refusals(question["test"])
        if reasons:
            raise MethodError("; ".join(reasons))
        self.alone = self.kind == "mtu" or options.is_single_ended(self.spec) or self.spec.get("loopback") is True
        if not isinstance(self.data, list) or len(self.data) != (1 if self.alone else 2):
            raise MethodError("the test needs participant data of {}".format("1 host" if self.alone else "2 hosts"))
        if self.number not in ((0,) if self.alone else (0, 1)) or isinstance(self.number, bool):
            raise MethodError("invalid participant {!r}".format(self.number))

    def answer(self) -> Json:
        """Run the test and return this participant's result."""
        _sleep_until(self.start)
        if self.kind == "mtu":
            return self._client(self.spec.get("port", options.LANDSPEED_PORT), [])
        if options.is_single_ended(self.spec):
            port = self.spec.get("single-ended-port", 5201)
            return self._client(port, [] if port == options.LANDSPEED_PORT else ["--iperf3"])
        if self.spec.get("loopback") is True:
            key = _new_key(self.configuration, self.place)
            port = self.configuration.server_port
            with self._server(port, key, self.configuration.capture) as server:
                answer = self._client(port, self._with_server(key, self.configuration.capture), server)
                server.stop(2.0)
                answer["diags"] += "\n\nServer:\n" + server.output() + server.errors()
                return answer
        port, key, capture = self._agreed()
        if self.number == 0:
            return self._client(port, self._with_server(key, capture))
        with self._server(port, key, capture) as server:
            return self._serve(server, port, capture)

    def _agreed(self) -> Tuple[int, Path, bool]:
        """Return port, key and capture, which the participants told each other when the run was scheduled."""
        here, there = self.data
        try:
            port, key = int(there["port"]), str(there["_key"])
            capture = here.get("capture") is True and there.get("capture") is True
        except (KeyError, TypeError, ValueError, AttributeError) as why:
            raise MethodError("the destination's participant data is not landspeed's: {!r}".format(why)) from None
        file = self.place / "key"
        file.touch(mode=0o600)
        file.write_text(key + "\n")
        return port, file, capture

    def _with_server(self, key: Path, capture: bool) -> List[str]:
        tap = ["--tap={}".format(self.place / "capture")] if capture else []
        return ["--key-file={}".format(key), *tap]

    def _server(self, port: int, key: Path, capture: bool) -> ContextManager[Program]:
        longest = int(options.test_seconds(self.spec)) + 60
        arguments = [_program(self.configuration), "serve", "--listen={}".format(port), "--no-iperf3"]
        arguments += ["--key-file={}".format(key), "--max-duration={}s".format(longest)]
        if capture:
            arguments.append("--allow-tap")
        return started(arguments, self.place, "server")

    def _serve(self, server: Program, port: int, capture: bool) -> Json:
        """Wait for the end of the test. A capture is fetched after it."""
        while time.time() < self.deadline and server.status() is None:
            if not capture and _END.search(server.output() + server.errors()):
                break
            time.sleep(0.1)
        failed = server.status()
        server.stop(1.0)
        log = server.output() + server.errors()
        diags = "landspeed serve, port {}:\n{}".format(port, log)
        ended = _END.findall(log)
        if ended and ended[-1].startswith("complete"):
            answer = result.failure("", diags)
            answer.pop("error")
            return dict(answer, succeeded=True)
        if ended:
            return result.failure("the test at this server ended: {}".format(ended[-1]), diags)
        if failed is not None:
            return result.failure("the server ended with status {}: {}".format(failed, log.strip()), diags)
        return result.failure("no test reached this server (port {}, TCP and UDP)".format(port), diags)

    def _client(self, port: int, more: List[str], server: Optional[Program] = None) -> Json:
        fail = result.mtu_failure if self.kind == "mtu" else result.failure
        translate = options.mtu_options if self.kind == "mtu" else options.throughput_options
        try:
            bind, note = _bind(self.spec)
        except OSError as why:
            return fail("cannot resolve the name of the source or the destination: {}".format(why))
        dest = self.spec["dest"]
        target = "[{}]:{}".format(dest, port) if ":" in dest else "{}:{}".format(dest, port)
        document = self.place / "run.json"
        arguments = [_program(self.configuration), "run", *translate(self.spec)[0], *more, *bind]
        arguments += ["--verbose", "--json={}".format(document), "--", target]
        waits = options.CONNECT_S if not self.alone or server is not None else 0
        needed = options.MTU_S if self.kind == "mtu" else options.test_seconds(self.spec)
        patience = min(time.time() + waits, self.deadline - needed)
        while True:
            if document.exists():
                document.unlink()
            with started(arguments, self.place, "client") as client:
                status = client.wait_until(self.deadline)
                client.stop(1.0)
                text, errors = client.output(), client.errors()
            answer = _load(document)
            codes = [entry.get("code") for entry in (answer or {}).get("errors") or []]
            taps = [argument for argument in arguments if argument.startswith("--tap=")]
            if codes == ["no-capability"] and taps:
                arguments.remove(taps[0])
                note += errors.strip() + "\n"
                continue
            # The server of the other participant may start a moment later.
            if codes != ["connection-refused"] or time.time() > patience or (server and server.status() is not None):
                break
            time.sleep(_RETRY_S)
        command = " ".join(shlex.quote(argument) for argument in arguments)
        diags = "\n".join(part for part in (command, note, text.rstrip(), errors.rstrip()) if part)
        if status is None:
            return fail("the test did not end in the scheduled time", diags)
        if answer is None or status != 0 or answer.get("status") != "complete":
            error = result.document_error(answer, status, errors)
            if server is not None and server.status() is not None:
                error += "\nserver: " + (server.output() + server.errors()).strip()
            return fail(error, diags)
        try:
            if self.kind == "mtu":
                return result.mtu(answer, diags)
            return result.throughput(answer, self.spec, diags)
        except (KeyError, TypeError, IndexError, ZeroDivisionError) as why:
            return fail("landspeed's document is not as expected: {!r}".format(why), diags)


def _bind(spec: Json) -> Tuple[List[str], str]:
    """Return the options for the local address, and a note if the source's address cannot be used."""
    if "local-address" in spec:
        return ["--bind={}".format(spec["local-address"])], ""
    if "source" not in spec:
        return [], ""
    families = [{4: socket.AF_INET, 6: socket.AF_INET6}[spec["ip-version"]]] if "ip-version" in spec else []
    source, dest = _addresses(spec["source"]), _addresses(spec["dest"])
    for family in families or [socket.AF_INET6, socket.AF_INET]:
        if family in source and family in dest:
            if _is_local(family, source[family]):
                return ["--bind={}".format(source[family])], ""
            return [], "source {} ({}) is no address of this host: not bound to it".format(spec["source"], source[family])
    raise OSError("{} and {} have no addresses of the same IP version".format(spec["source"], spec["dest"]))


def _addresses(host: str) -> Dict[int, str]:
    found: Dict[int, str] = {}
    try:
        answers = socket.getaddrinfo(host, None, 0, socket.SOCK_STREAM)
    except (UnicodeError, OSError) as why:
        raise OSError("{!a}: {}".format(host, why)) from None
    for family, _, _, _, address in answers:
        found.setdefault(family, str(address[0]))
    return found


def _is_local(family: int, address: str) -> bool:
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _program(configuration: Configuration) -> str:
    found = configuration.find_program()
    if found is None:
        raise MethodError("landspeed is not installed on this host ({})".format(configuration.program))
    return found


def _version(configuration: Configuration, place: Path) -> str:
    return _output([_program(configuration), "--version"], place).split()[-1]


def _new_key(configuration: Configuration, place: Path) -> Path:
    file = place / "key"
    _output([_program(configuration), "serve", "--new-key", str(file)], place)
    return file


def _output(arguments: List[str], place: Path) -> str:
    with started(arguments, place, "output") as program:
        status = program.wait_until(time.time() + 5)
        text, errors = program.output(), program.errors()
    if status != 0:
        raise MethodError("{} failed: {}".format(" ".join(arguments[:3]), errors.strip() or status))
    return text or "unknown"


def _load(document: Path) -> Optional[Json]:
    try:
        loaded = json.loads(document.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return loaded if isinstance(loaded, dict) else None


def _sleep_until(moment: float) -> None:
    while time.time() < moment:
        time.sleep(min(1.0, max(0.0, moment - time.time())))
