"""What the tests share: a server on loopback, results, an archive."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import landspeed

START_S = 20
"""Longest start of a server, seconds."""


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Run a server on loopback and return its address."""
    command = [str(landspeed.find_program()), "serve", "--listen", "127.0.0.1:0", "--no-iperf3"]
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = re.search(r"listening on (\S+)", line)
            assert found, line
            yield found[1]
        finally:
            process.terminate()
            process.wait(START_S)


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory for an archive."""
    return tmp_path_factory.mktemp("archive") / "results"
