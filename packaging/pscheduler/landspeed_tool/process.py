"""Programs that end when the plugin ends."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Iterator, List, Optional

from landspeed_tool.entry import MethodError

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_STOP_S = 0.3
"""pScheduler kills a plugin half a second after SIGTERM."""
_POLL_S = 0.05


def exit_on_signals() -> None:
    """Unwind on the signals that end a program, so that no process and no file stays behind."""

    def leave(number: int, _frame: Optional[FrameType]) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, leave)


class Program:
    """A running program with its output in files."""

    def __init__(self, process: "subprocess.Popen[bytes]", out: Path, err: Path) -> None:
        """Take the process over."""
        self._process = process
        self._out, self._err = out, err

    def wait_until(self, deadline: float) -> Optional[int]:
        """Return the exit status, or None if it still runs at `deadline` (seconds since the epoch)."""
        while self._process.poll() is None:
            if time.time() >= deadline:
                return None
            time.sleep(_POLL_S)
        return self._process.returncode

    def stop(self, patience: float = _STOP_S) -> None:
        """End it: SIGTERM, and SIGKILL after `patience` seconds."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()

    def status(self) -> Optional[int]:
        """Return the exit status, or None while it runs."""
        return self._process.poll()

    def output(self) -> str:
        """Return what it has written to standard output."""
        return _read(self._out)

    def errors(self) -> str:
        """Return what it has written to standard error."""
        return _read(self._err)


@contextlib.contextmanager
def started(arguments: List[str], place: Path, name: str) -> Iterator[Program]:
    """Run a program with its output in files `name`.* in the directory `place`; it ends with the block."""
    plugin = os.getpid()

    def end_with_the_plugin() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != plugin:
            os._exit(1)

    environment = dict(os.environ, LANDSPEED_ARCHIVE="off", NO_COLOR="1")
    out, err = place / (name + ".out"), place / (name + ".err")
    with out.open("wb") as to_out, err.open("wb") as to_err:
        try:
            process = subprocess.Popen(
                [argument.encode("utf-8", "replace") for argument in arguments],
                stdin=subprocess.DEVNULL,
                stdout=to_out,
                stderr=to_err,
                env=environment,
                # The plugin has one thread.
                preexec_fn=end_with_the_plugin,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as why:
            raise MethodError("cannot run {}: {}".format(arguments[0], why)) from None
    program = Program(process, out, err)
    try:
        yield program
    finally:
        program.stop()


def _read(path: Path) -> str:
    # Longer output is shortened later; a runaway program does not fill memory.
    with path.open("rb") as file:
        return file.read(1 << 20).decode("utf-8", "replace")
