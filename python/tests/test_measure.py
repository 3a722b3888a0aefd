"""Measurements from Python, with the real program on loopback."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

import landspeed


def test_a_run_returns_figures_and_a_verdict(server: str) -> None:
    run = landspeed.run(server, time="300ms", parallel=2, nodelay=True, timeout_s=60)
    assert run.schema == "landspeed.run/1"
    assert run.status == "complete"
    assert run.goodput_bps is not None
    assert run.goodput_bps > 0
    assert run.retransmits is not None
    assert run.json["requested"]["streams"] == 2
    assert run.json["requested"]["nodelay"] is True
    assert run.cause
    assert run.verdict


def test_a_bad_option_raises_the_program_s_message(server: str) -> None:
    with pytest.raises(landspeed.CommandError) as failure:
        landspeed.run(server, congestoin="bbr")
    assert failure.value.status == 2
    assert "--congestoin" in str(failure.value)


def test_a_missing_server_raises_an_error() -> None:
    with pytest.raises(landspeed.CommandError, match="refused"):
        landspeed.run("127.0.0.1:1", time="1s", timeout_s=60)


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LANDSPEED_BINARY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path))
    with pytest.raises(landspeed.ProgramNotFoundError, match="LANDSPEED_BINARY"):
        landspeed.find_program()


def test_a_script_of_the_same_name_is_not_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "landspeed"
    script.write_text("#!/bin/sh\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.delenv("LANDSPEED_BINARY", raising=False)
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(landspeed.ProgramNotFoundError):
        landspeed.find_program()
