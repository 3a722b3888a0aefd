"""Saved results as frames: files, the archive, captures."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import landspeed

FIXTURES = Path(__file__).resolve().parent.parent.parent / "fixtures"


@pytest.fixture(scope="module")
def archived(server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an archive with two runs of one and of two streams."""
    directory = tmp_path_factory.mktemp("archive") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANDSPEED_ARCHIVE", str(directory))
        for streams in (1, 2):
            landspeed.run(server, time="300ms", parallel=streams, title=f"with {streams}", timeout_s=60)
    return directory


def test_a_query_gives_runs_with_figures_and_settings(archived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDSPEED_ARCHIVE", str(archived))
    runs = landspeed.load("archive:").runs()
    assert isinstance(runs, pa.Table)
    assert {row["setting.streams"] for row in runs.to_pylist()} == {"1", "2"}
    assert all(row["goodput_bps"] > 0 for row in runs.to_pylist())
    (one,) = landspeed.load("archive:setting=streams=2").runs().to_pylist()
    assert one["title"] == "with 2"
    with pytest.raises(landspeed.CommandError, match="unknown key"):
        landspeed.load("archive:colour=red").runs()


def test_intervals_add_up_to_the_document_s_bytes(archived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDSPEED_ARCHIVE", str(archived))
    results = landspeed.load("archive:title=with 2")
    (document,) = results.documents()
    intervals = results.intervals(frame="polars").filter(pl.col("source") == "interval")
    assert intervals["bytes"].sum() == document["summary"]["bytes_delivered"]
    assert intervals["stream"].n_unique() == 2


def test_every_frame_has_the_same_values(archived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDSPEED_ARCHIVE", str(archived))
    results = landspeed.load("archive:")
    polars, pandas = results.runs(frame="polars"), results.runs(frame="pandas")
    assert isinstance(polars, pl.DataFrame)
    assert isinstance(pandas, pd.DataFrame)
    assert polars["goodput_bps"].to_list() == pandas["goodput_bps"].tolist()
    with pytest.raises(ValueError, match="arrow, polars or pandas"):
        results.runs(frame="spark")  # type: ignore[call-overload]


def test_files_are_read_without_touching_the_archive(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDSPEED_ARCHIVE", str(tmp_path / "untouched"))
    file = tmp_path / "run.json"
    run = landspeed.run(server, time="200ms", timeout_s=60)
    file.write_text(json.dumps(run.json))
    kept = len(list((tmp_path / "untouched" / "documents").rglob("*.gz")))
    (iperf3, *_) = sorted(FIXTURES.glob("iperf3/*/*.json"))
    runs = landspeed.load([file, iperf3]).runs(frame="polars")
    assert set(runs["kind"]) == {"run", "iperf3"}
    assert run.goodput_bps in runs["goodput_bps"].to_list()
    assert len(list((tmp_path / "untouched" / "documents").rglob("*.gz"))) == kept


def test_results_of_other_programs_have_no_queues() -> None:
    results = landspeed.load([FIXTURES / "foreign" / "nuttcp-tcp.txt", FIXTURES / "iperf3" / "3.12" / "tcp.json"])
    assert len(results.runs()) == 2
    assert len(results.queues()) == 0
    (iperf3,) = results.documents()
    assert iperf3["start"]["version"] == "iperf 3.12"


def test_lists_of_files_are_compared() -> None:
    files = [FIXTURES / "iperf3" / version / "tcp.json" for version in ("3.12", "3.18", "3.22")]
    compared = landspeed.compare(files[:2], files[2:])
    assert [group["runs"] for group in compared.json["groups"]] == [2, 1]
    with pytest.raises(ValueError, match="empty list"):
        landspeed.compare([], files)


def test_a_damaged_file_is_named_and_the_others_are_read(server: str, tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(json.dumps(landspeed.run(server, time="200ms", timeout_s=60).json))
    (tmp_path / "damaged.json").write_text('{"schema": "landspeed.run/1", "summ')
    with pytest.warns(UserWarning, match=r"damaged\.json"):
        results = landspeed.load(tmp_path)
    assert len(results.runs()) == 1
    with pytest.raises(FileNotFoundError):
        landspeed.load(tmp_path / "missing.json")


def test_queues_of_a_lab_have_one_row_for_each_point() -> None:
    file = FIXTURES / "reports" / "lab.json"
    document = json.loads(file.read_text())
    queues = landspeed.load(file).queues(frame="polars")
    assert len(queues) == sum(len(queue["series"]["drops"]) for queue in document["queues"])
    for queue in document["queues"]:
        own = queues.filter(pl.col("queue") == queue["name"], pl.col("role") == queue["role"])
        assert own["drops"].sum() == sum(queue["series"]["drops"])


def test_packets_of_a_capture_have_their_analysis(tmp_path: Path) -> None:
    capture = tmp_path / "one.pcap"
    capture.write_bytes(pcap())
    packets = landspeed.load(capture).packets()
    assert len(packets) == 2
    assert set(packets.column("capture").to_pylist()) == {"one.pcap"}
    assert {"time", "flow"} <= set(packets.column_names)


def pcap() -> bytes:
    """Return a capture of two UDP datagrams of four bytes, 1 ms apart."""
    head = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
    frame = bytes.fromhex("0200000000020200000000010800450000200001000040110000c0000201c000020204d2162e000c000064617461")
    record = b"".join(
        (1700000000 + 0).to_bytes(4, "little")
        + (micros).to_bytes(4, "little")
        + 2 * len(frame).to_bytes(4, "little")
        + frame
        for micros in (0, 1000)
    )
    return head + record
