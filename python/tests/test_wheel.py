"""The wheel, installed where nothing else of landspeed is."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pyarrow as pa

import landspeed

PACKAGE = Path(__file__).resolve().parent.parent


def test_the_wheel_carries_the_program(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(PACKAGE)]
    variables = {**os.environ, "LANDSPEED_BINARY": str(landspeed.find_program())}
    subprocess.run(build, check=True, env=variables, stdout=subprocess.DEVNULL)
    (wheel,) = tmp_path.glob("landspeed-*.whl")
    assert "manylinux" in wheel.name
    place = tmp_path / "environment"
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)]
    subprocess.run(pip, check=True)
    ask = "import landspeed; print(landspeed.find_program()); print(landspeed.__file__)"
    # Arrow is this environment's; the package and its program are the wheel's.
    variables = {"PATH": "", "PYTHONPATH": str(Path(pa.__file__).parent.parent)}
    said = subprocess.run([str(python), "-c", ask], check=True, env=variables, capture_output=True, text=True).stdout
    program, module = said.split()
    assert Path(program) == place / "bin" / "landspeed"
    assert Path(module).is_relative_to(place)
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    assert version.split()[1] == wheel.name.split("-")[1]
