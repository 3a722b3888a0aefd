"""The notebook runs, from an archive of small experiments with the names and factors of the gallery's."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import landspeed

HERE = Path(__file__).resolve().parent
NOTEBOOK = HERE.parent / "notebooks" / "decks.ipynb"
LIMIT_S = 300
"""Longest experiment, and longest cell of the notebook, seconds."""


def test_the_notebook_redraws_two_figures_from_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(Path(os.environ.get("LANDSPEED_KERNELS", tmp_path)).glob("*/vmlinux")):
        pytest.skip("SKIPPED: the lab's kernel is not built")
    monkeypatch.setenv("LANDSPEED_ARCHIVE", str(tmp_path / "archive"))
    for scenario in ("buffer.toml", "loss.toml"):
        landspeed.lab(HERE / scenario, timeout_s=LIMIT_S)
    notebook = nbformat.reads(NOTEBOOK.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=LIMIT_S, kernel_name="python3").execute()
    pictures = [
        output for cell in notebook.cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 2
    text = "".join(str(output.get("text", "")) for cell in notebook.cells for output in cell.get("outputs", []))
    assert "throughput rises with the buffer: yes" in text
    assert "loss costs more over distance: yes" in text
