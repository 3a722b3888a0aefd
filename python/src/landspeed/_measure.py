"""Commands that measure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, TypeAlias

from landspeed._program import call, options

Group: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]


@dataclass(frozen=True)
class Document:
    """A result as the program writes it; `landspeed schema NAME` describes it."""

    json: dict[str, Any]

    @property
    def schema(self) -> str:
        """The kind and version, such as `landspeed.run/1`."""
        return str(self.json["schema"])

    @property
    def status(self) -> str | None:
        """`complete`, `partial`, `invalid` or `failed`, where the kind has a status."""
        return self.json.get("status")

    @property
    def warnings(self) -> list[str]:
        """What to know before trusting a figure."""
        return [entry["message"] for entry in self.json.get("warnings", [])]


@dataclass(frozen=True)
class Run(Document):
    """One measurement between two hosts (`landspeed.run/1`)."""

    @property
    def goodput_bps(self) -> float | None:
        """Payload rate at the receivers in the steady phase, bits/s."""
        value: float | None = self.json["summary"]["goodput_bps"]
        return value

    @property
    def retransmits(self) -> int | None:
        """TCP segments retransmitted; `None` for UDP."""
        value: int | None = self.json["summary"]["retransmits"]
        return value

    @property
    def cause(self) -> str:
        """What limited it, such as `receiver-window`."""
        return str(self.json["verdict"]["cause"])

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return str(self.json["verdict"]["summary"])


def run(target: str, *, timeout_s: float | None = None, **given: object) -> Run:
    """Measure a path to `landspeed serve`.

    Args:
        target: the server, as `landspeed run` takes it.
        timeout_s: seconds after which the test is ended; the default is no limit beyond the program's own deadlines.
        **given: long options of `landspeed run`: `time="10s"`, `parallel=4`, `reverse=True`, `congestion="bbr"`.

    Raises:
        CommandError: a bad option, no server, nothing measured.

    """
    return Run(_document("run", target, given, timeout_s))


def lab(
    scenario: str | PathLike[str],
    *,
    set_: Mapping[str, object] | None = None,
    timeout_s: float | None = None,
    **given: object,
) -> Document:
    """Run a scenario in virtual time (`landspeed lab run`).

    Args:
        scenario: the scenario's file.
        set_: keys of the scenario and their values: `{"switch.west.queue.limit": "4MB"}`; a list makes one cell for each.
        timeout_s: as for `run`.
        **given: long options of `landspeed lab run`.

    """
    changes = [f"{key}={_level(value)}" for key, value in (set_ or {}).items()]
    return Document(_document("lab", "run", {"set": changes, **given}, timeout_s, fspath(scenario)))


def sweep(plan: str | PathLike[str], *, timeout_s: float | None = None, **given: object) -> Document:
    """Run an experiment (`landspeed sweep PLAN.toml`)."""
    return Document(_document("sweep", fspath(plan), given, timeout_s))


def compare(baseline: Group, *candidates: Group, timeout_s: float | None = None, **given: object) -> Document:
    """Compare groups of results (`landspeed compare A B`).

    Args:
        baseline: a file, a directory, a part of a sweep (`sweep.json:cc=bbr`), an `archive:` query, or a list of files.
        *candidates: groups that are compared with the baseline.
        timeout_s: as for `run`.
        **given: long options of `landspeed compare`.

    """
    return Document(_document("compare", _group(baseline), given, timeout_s, *map(_group, candidates)))


def _group(group: Group) -> str:
    if isinstance(group, (str, PathLike)):
        return fspath(group)
    files = [fspath(file) for file in group]
    if not files:
        raise ValueError("cannot compare an empty list of files")
    for file in files:
        if "," in file and len(files) > 1:
            raise ValueError(f"cannot compare {file} in a list: its name has a comma; put the files into a directory")
    return ",".join(files)


def _level(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _document(command: str, target: str, given: Mapping[str, object], timeout_s: float | None, *more: str) -> dict[str, Any]:
    words = [command, target, *more, *options(given), "--json=-"]
    document: dict[str, Any] = json.loads(call(words, timeout_s=timeout_s))
    return document
