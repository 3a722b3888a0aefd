"""Saved results as data frames."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import pyarrow as pa
import pyarrow.parquet as pq

from landspeed._program import call

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Source: TypeAlias = str | PathLike[str]

CAPTURES = (".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz", ".pcap.zst", ".pcapng.zst")
"""Files whose packets `landspeed trace` reads."""

_QUEUE_FIELDS: list[pa.Field[Any]] = [
    *(pa.field(name, pa.string()) for name in ("id", "queue", "role", "kind")),
    *(pa.field(name, pa.uint64()) for name in ("limit_bytes", "rate_bps", "t_ns", "backlog_bytes_max", "drops", "bytes")),
]
QUEUE_COLUMNS = pa.schema(_QUEUE_FIELDS)
"""The columns of `Results.queues`."""


class Results:
    """Documents, as tables of runs, intervals, packets and queues.

    Each method returns a `pyarrow.Table`, or with `frame="polars"` or `frame="pandas"` a data frame of that library.
    """

    def __init__(self, directory: tempfile.TemporaryDirectory[str], query: str | None, packets: list[Path]) -> None:
        """Use `load`; without a query the documents are in an archive in `directory`."""
        self._directory = directory
        self._archived = query is not None
        self._query = query or ""
        self._packets = packets
        self._tables: dict[str, pa.Table] = {}

    @overload
    def runs(self, frame: Literal["arrow"] = ...) -> pa.Table: ...
    @overload
    def runs(self, frame: Literal["polars"]) -> pl.DataFrame: ...
    @overload
    def runs(self, frame: Literal["pandas"]) -> pd.DataFrame: ...
    def runs(self, frame: str = "arrow") -> Any:
        """Return one row for each flow of each document: settings (`setting.streams`), cause, figures (`goodput_bps`)."""
        return _as(frame, self._table("runs", self._read_runs))

    @overload
    def intervals(self, frame: Literal["arrow"] = ...) -> pa.Table: ...
    @overload
    def intervals(self, frame: Literal["polars"]) -> pl.DataFrame: ...
    @overload
    def intervals(self, frame: Literal["pandas"]) -> pd.DataFrame: ...
    def intervals(self, frame: str = "arrow") -> Any:
        """Return one row for each interval of each stream: bytes that arrived, and TCP's state at its end."""
        return _as(frame, self._table("intervals", self._read_intervals))

    @overload
    def queues(self, frame: Literal["arrow"] = ...) -> pa.Table: ...
    @overload
    def queues(self, frame: Literal["polars"]) -> pl.DataFrame: ...
    @overload
    def queues(self, frame: Literal["pandas"]) -> pd.DataFrame: ...
    def queues(self, frame: str = "arrow") -> Any:
        """Return one row for each point in time of each queue of a lab's run (`QUEUE_COLUMNS`)."""
        return _as(frame, self._table("queues", self._read_queues))

    @overload
    def packets(self, frame: Literal["arrow"] = ...) -> pa.Table: ...
    @overload
    def packets(self, frame: Literal["polars"]) -> pl.DataFrame: ...
    @overload
    def packets(self, frame: Literal["pandas"]) -> pd.DataFrame: ...
    def packets(self, frame: str = "arrow") -> Any:
        """Return one row for each packet of the loaded captures, as `landspeed trace --packets` writes them."""
        return _as(frame, self._table("packets", self._read_packets))

    def documents(self) -> list[dict[str, Any]]:
        """Return every document as JSON, oldest first; results that are not JSON (nuttcp) are left out."""
        documents = []
        for one in self._call("find", *self._selection(), "--ids").decode().split():
            try:
                documents.append(json.loads(self._call("show", one, "--json=-")))
            except ValueError:
                continue
        return documents

    def _table(self, name: str, read: Any) -> pa.Table:
        if name not in self._tables:
            self._tables[name] = read()
        return self._tables[name]

    def _selection(self) -> list[str]:
        return [self._query] if self._query else []

    def _call(self, command: str, *words: str) -> bytes:
        environment = None if self._archived else {"LANDSPEED_ARCHIVE": str(self._place / "archive")}
        return call(["archive", command, *words], environment=environment, warn=True)

    @property
    def _place(self) -> Path:
        return Path(self._directory.name)

    def _read_runs(self) -> pa.Table:
        file = self._place / "runs.parquet"
        self._call("export", *self._selection(), "--format=parquet", f"--output={file}")
        return _with_settings(pq.read_table(file))

    def _read_intervals(self) -> pa.Table:
        directory = self._place / "series"
        self._call("export", *self._selection(), f"--series={directory}")
        tables = []
        for file in sorted(directory.glob("*.parquet")):
            table = pq.read_table(file)
            tables.append(table.add_column(0, "id", pa.array([file.stem] * len(table), pa.string())))
        return pa.concat_tables(tables) if tables else pa.table({"id": pa.array([], pa.string())})

    def _read_queues(self) -> pa.Table:
        columns: dict[str, list[Any]] = {name: [] for name in QUEUE_COLUMNS.names}
        for document in self.documents():
            # Results of other programs have no schema, and may be a list.
            of_lab = isinstance(document, dict) and str(document.get("schema")).startswith("landspeed.lab/")
            for queue in document.get("queues", []) if of_lab else []:
                series = queue["series"]
                points = len(series["backlog_bytes_max"])
                columns["id"] += [document.get("digest")] * points
                for name in ("role", "kind", "limit_bytes", "rate_bps"):
                    columns[name] += [queue[name]] * points
                columns["queue"] += [queue["name"]] * points
                columns["t_ns"] += [number * series["interval_ns"] for number in range(points)]
                for name in ("backlog_bytes_max", "drops", "bytes"):
                    columns[name] += series[name]
        return pa.table(columns, schema=QUEUE_COLUMNS)

    def _read_packets(self) -> pa.Table:
        tables = []
        for number, capture in enumerate(self._packets):
            file = capture
            if capture.suffix != ".parquet":
                file = self._place / f"packets{number}.parquet"
                call(["trace", str(capture), f"--packets={file}"])
            table = pq.read_table(file)
            tables.append(table.append_column("capture", pa.array([capture.name] * len(table), pa.string())))
        if not tables:
            return pa.table({"capture": pa.array([], pa.string())})
        return pa.concat_tables(tables, promote_options="default")


def load(source: Source | Sequence[Source]) -> Results:
    """Load saved results.

    Args:
        source: an archive query (`archive:tag=before,last=30d`; `archive:` is all of it), or one or several files and
            directories: documents of landspeed, results of iperf3, nuttcp, flent and perfSONAR, captures, packets as
            Parquet.

    Raises:
        FileNotFoundError: a file is not there.
        CommandError: a file cannot be read as a result, or the query is wrong.

    """
    if isinstance(source, str) and source.startswith("archive:"):
        return Results(tempfile.TemporaryDirectory(prefix="landspeed-"), source.removeprefix("archive:"), [])
    files = _files([source] if isinstance(source, (str, PathLike)) else source)
    packets = [file for file in files if file.suffix == ".parquet" or file.name.endswith(CAPTURES)]
    documents = [file for file in files if file not in packets]
    directory = tempfile.TemporaryDirectory(prefix="landspeed-")
    results = Results(directory, None, packets)
    if documents:
        try:
            results._call("import", *map(str, documents))
        except BaseException:
            shutil.rmtree(directory.name, ignore_errors=True)
            raise
    return results


def _files(sources: Sequence[Source]) -> list[Path]:
    files: list[Path] = []
    for source in sources:
        path = Path(fspath(source))
        if path.is_dir():
            files += sorted(file for file in path.rglob("*") if file.is_file())
        elif path.exists():
            files.append(path)
        else:
            raise FileNotFoundError(f"cannot load {path}: there is no such file")
    return files


def _with_settings(table: pa.Table) -> pa.Table:
    """Add a column `setting.NAME` for each setting; `settings` has all of them as JSON."""
    settings = [json.loads(text or "{}") for text in table.column("settings").to_pylist()]
    for name in sorted({name for one in settings for name in one}):
        table = table.append_column(f"setting.{name}", pa.array([one.get(name) for one in settings], pa.string()))
    return table


def _as(frame: str, table: pa.Table) -> Any:
    if frame == "arrow":
        return table
    if frame == "polars":
        import polars as pl

        return pl.from_arrow(table)
    if frame == "pandas":
        return table.to_pandas()
    raise ValueError(f"cannot make a {frame!r} frame: choose arrow, polars or pandas")
