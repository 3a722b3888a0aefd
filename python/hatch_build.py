"""Puts the program into the wheel, and gives the wheel its platform tag."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parent / "target" / "dist" / "landspeed"
"""What `make dist` builds."""

# The program is static: it needs no C library, so the oldest tags of both families are true.
TAGS = {
    "x86_64": "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    "aarch64": "py3-none-manylinux_2_17_aarch64.musllinux_1_1_aarch64",
}
MACHINES = {62: "x86_64", 183: "aarch64"}
"""e_machine of the ELF header."""


def version() -> str:
    """Return the version of the workspace."""
    for manifest in (HERE.parent / "Cargo.toml", HERE / "Cargo.toml"):
        if manifest.exists():
            found = re.search(r'^version = "([^"]+)"', manifest.read_text(), re.MULTILINE)
            if found:
                return found[1]
    raise SystemExit("cannot find the version: the workspace's Cargo.toml is not there; build from a checkout")


def machine(program: Path) -> str:
    """Return the machine that a static program runs on."""
    head = program.read_bytes()[:20]
    name = MACHINES.get(int.from_bytes(head[18:20], "little")) if head[:4] == b"\x7fELF" else None
    if name is None:
        raise SystemExit(f"cannot pack {program}: not a program for x86-64 or aarch64 Linux")
    return name


class ProgramHook(BuildHookInterface[Any]):
    """The wheel has one program and no compiled modules."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the program and the platform."""
        if self.target_name != "wheel":
            return
        program = Path(os.environ.get("LANDSPEED_BINARY", PROGRAM)).resolve()
        if not program.exists():
            raise SystemExit(f"cannot pack {program}: no such file; run `make dist`, or name it in LANDSPEED_BINARY")
        build_data["pure_python"] = False
        build_data["tag"] = TAGS[machine(program)]
        build_data["shared_scripts"] = {str(program): "landspeed"}
