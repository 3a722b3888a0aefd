"""Find and call the program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

FAILURE = 2
"""Exit status of a command that failed; 1 means that it ran and found something."""


class ProgramNotFoundError(FileNotFoundError):
    """The program is not installed."""


class CommandError(RuntimeError):
    """A command failed.

    Attributes:
        command: the command line.
        status: its exit status; negative: the signal that ended it.
        message: what it printed on standard error.

    """

    def __init__(self, command: Sequence[str], status: int, message: str) -> None:
        """Keep what is known of the failure."""
        super().__init__(message.strip() or f"{' '.join(command)}: exit status {status}")
        self.command = list(command)
        self.status = status
        self.message = message


def find_program() -> Path:
    """Return the program: `$LANDSPEED_BINARY`, that of this package's wheel, or the first on `$PATH`.

    Raises:
        ProgramNotFoundError: there is none.

    """
    named = os.environ.get("LANDSPEED_BINARY")
    if named:
        return Path(named)
    for scheme in (None, "posix_user"):
        scripts = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        program = Path(scripts) / "landspeed"
        # The wheel's program is static ELF; anything else of that name is somebody else's script.
        if program.is_file() and program.read_bytes()[:4] == b"\x7fELF":
            return program
    found = shutil.which("landspeed")
    if found:
        return Path(found)
    raise ProgramNotFoundError(
        "cannot find the program landspeed: it is neither in this environment nor on PATH\n"
        "Install the wheel, or set LANDSPEED_BINARY to the program."
    )


def call(
    arguments: Sequence[str],
    *,
    timeout_s: float | None = None,
    environment: Mapping[str, str] | None = None,
    warn: bool = False,
) -> bytes:
    """Run a command and return its standard output.

    Args:
        arguments: the command line after `landspeed`.
        timeout_s: seconds after which the command is ended.
        environment: variables to add.
        warn: whether what it says with exit status 1 is a warning.

    Raises:
        CommandError: exit status 2, or a signal.
        subprocess.TimeoutExpired: it took longer than `timeout_s`.

    """
    command = [str(find_program()), *arguments]
    variables = {**os.environ, **environment} if environment else None
    done = subprocess.run(
        command, capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout_s, env=variables, check=False
    )
    if done.returncode < 0 or done.returncode >= FAILURE:
        raise CommandError(command, done.returncode, done.stderr.decode(errors="replace"))
    if warn and done.returncode:
        warnings.warn(done.stderr.decode(errors="replace").strip(), stacklevel=3)
    return done.stdout


def options(given: Mapping[str, object]) -> list[str]:
    """Return keyword arguments as options: `parallel=4` is `--parallel 4`, `reverse=True` is `--reverse`.

    `None` and `False` leave an option out; a list repeats it.
    """
    words: list[str] = []
    for name, value in given.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        values = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words.append(f"{option}={one}")
    return words
