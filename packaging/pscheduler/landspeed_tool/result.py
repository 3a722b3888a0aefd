"""From landspeed's document to pScheduler's result, and the results of all participants in one."""

import bisect
from typing import Any, Dict, List, Optional, Tuple

from landspeed_tool.entry import Json, MethodError, shorten
from landspeed_tool.options import interval_seconds

MAX_DIAGS = 48_000
MAX_ERROR = 2_000

_KEPT = ("startup", "omitted", "steady")


def failure(error: str, diags: str = "") -> Json:
    """Return the result of a run that measured nothing."""
    return {
        "schema": 1,
        "succeeded": False,
        "error": shorten(error, MAX_ERROR) or "unknown error",
        "diags": shorten(diags, MAX_DIAGS),
        "intervals": [],
        "summary": {"streams": [], "summary": {}},
    }


def document_error(document: Optional[Json], status: Optional[int], errors: str) -> str:
    """Return why a run failed, in one text: what failed, and what to do."""
    lines: List[str] = []
    for entry in (document or {}).get("errors") or []:
        advice = entry.get("advice")
        lines.append(entry["message"] + ("; {}".format(advice) if advice else ""))
    if not lines:
        lines.append(errors.strip() or "landspeed ended with status {}".format(status))
    return "\n".join(lines)


def throughput(document: Json, spec: Json, diags: str) -> Json:
    """Return the result of a throughput test. Rates are the receiver's, in bits/s."""
    download = document["requested"]["direction"] == "download"
    sender_end = "server" if download else "client"
    streams = [_Stream(stream) for stream in document["streams"]]
    bins = _bins(document["phases"], interval_seconds(spec))
    omitting = any(omitted for _, _, omitted in bins)
    intervals: List[Json] = []
    kept: Dict[Any, List[Json]] = {stream.identifier: [] for stream in streams}
    for position, (begin, end, omitted) in enumerate(bins):
        first = position == 0
        last = position + 1 == len(bins) and not omitting
        records = []
        for stream in streams:
            record = stream.record(begin, end, omitted, first, last)
            if record is not None:
                records.append(record)
                if not omitted:
                    kept[stream.identifier].append(record)
        if records:
            intervals.append({"streams": records, "summary": _sum(records, omitted)})
    totals = [stream.total(kept[stream.identifier]) for stream in streams if kept[stream.identifier]]
    summary = _sum(totals, False) if totals else {}
    goodput = document["summary"]["goodput_bps"]
    summary["throughput-bits"] = summary["receiver-throughput-bits"] = goodput
    if document["requested"]["protocol"] == "udp":
        counts = document["udp"] or {}
        for name, value in (("sent", counts.get("sent_packets")), ("lost", counts.get("lost_packets"))):
            if value is not None:
                summary[name] = value
        if counts.get("jitter_ns") is not None:
            summary["jitter"] = counts["jitter_ns"] / 1e6
    elif "retransmits" not in summary and not omitting and document["summary"]["retransmits"] is not None:
        summary["retransmits"] = document["summary"]["retransmits"]
    result = {
        "schema": 1,
        "succeeded": True,
        "diags": shorten(_rates(document, bins, streams, sender_end) + diags, MAX_DIAGS),
        "intervals": intervals,
        "summary": {"streams": totals, "summary": summary},
    }
    mss = [stream.mss for stream in streams if stream.mss is not None]
    if mss:
        result["mss"] = min(mss)
    if "window-size" in spec:
        result["requested-tcp-window-size"] = spec["window-size"]
    return result


def mtu(document: Json, diags: str) -> Json:
    """Return the participant's result of an MTU test: the path MTU from source to dest."""
    for direction in (document.get("path") or {}).get("mtu") or []:
        if direction["direction"] == "upload" and direction["path_mtu_bytes"]:
            answer = {"schema": 1, "succeeded": True, "mtu": direction["path_mtu_bytes"]}
            return {"succeeded": True, "diags": shorten(diags, MAX_DIAGS), "error": None, "result": answer}
    return mtu_failure("the probes for the path MTU got no answer", diags)


def mtu_failure(error: str, diags: str = "") -> Json:
    """Return the participant's result of an MTU test that failed."""
    whole = failure(error, diags)
    return {"succeeded": False, "diags": whole["diags"], "error": whole["error"], "result": None}


def merge(question: Json) -> Json:
    """Answer pScheduler's `merged-results`: the source's figures, the errors and diagnostics of all."""
    try:
        test, results = question["test"], question["results"]
        kind, spec = test["type"], test["spec"]
        alone = bool(spec.get("single-ended") or spec.get("loopback")) or kind == "mtu"
    except (KeyError, TypeError, AttributeError) as why:
        raise MethodError("missing in the input of merged-results: {!r}".format(why)) from None
    if not isinstance(results, list) or len(results) != (1 if alone else 2):
        count = len(results) if isinstance(results, list) else "no list"
        raise MethodError("expected {} in merged-results, got {}".format("1 result" if alone else "2 results", count))
    parts = [result if isinstance(result, dict) else None for result in results]
    hosts = [_host(spec, "source"), _host(spec, "dest")]
    errors, diags = [], []
    for number, (part, host) in enumerate(zip(parts, hosts)):
        label = "Participant {} ({})".format(number, host)
        if part is None:
            errors.append("{}: no result".format(label))
            continue
        if part.get("succeeded") is not True:
            errors.append("{}: {}".format(label, shorten(str(part.get("error") or "unknown error"), MAX_ERROR)))
        if part.get("error") or part.get("diags"):
            text = "\n".join(str(part[name]) for name in ("error", "diags") if part.get(name))
            diags.append("{}:\n{}".format(label, shorten(text, MAX_DIAGS)))
    first = parts[0] or {}
    if kind == "mtu":
        merged = dict(first.get("result") or {"schema": 1, "succeeded": False, "mtu": None})
        merged["succeeded"] = first.get("succeeded") is True
        if not merged["succeeded"]:
            merged.pop("mtu", None)
    elif first.get("succeeded") is True:
        merged = dict(first)
    else:
        merged = failure("")
    merged.pop("error", None)
    if merged["succeeded"] is not True:
        merged["error"] = "\n".join(errors)
    # The schema of the test mtu has no place for diagnostics; pScheduler shows those of the participant.
    if kind == "throughput" or merged["succeeded"] is not True:
        merged["diags"] = "\n\n".join(diags)
    return merged


def _host(spec: Json, role: str) -> str:
    name = spec.get(role)
    return "{} {}".format(role, name) if isinstance(name, str) else role


class _Stream:
    """One stream of the document."""

    def __init__(self, stream: Json) -> None:
        self.identifier = stream["id"]
        self.intervals = [interval for interval in stream["intervals"] if interval["phase"] in _KEPT]
        self.middles = [(interval["start_ns"] + interval["end_ns"]) / 2 for interval in self.intervals]
        sender, receiver = stream["sender"] or {}, stream["receiver"] or {}
        samples = sender.get("samples") or []
        self.samples = _Samples(samples)
        self.tcp = _Samples([sample for sample in samples if sample.get("tcp")])
        self.retransmits = sender.get("retransmits")
        self.mss: Optional[int] = sender.get("mss_bytes") or receiver.get("mss_bytes")
        self.sent = (sender.get("udp") or {}).get("sent_packets")
        received = receiver.get("udp") or {}
        self.received, self.jitter_ns = received.get("delivered_packets"), received.get("jitter_ns")

    def record(self, begin: float, end: float, omitted: bool, first: bool, last: bool) -> Optional[Json]:
        """Return what arrived from `begin` to `end`, ns; None if nothing was sampled."""
        low, high = (bisect.bisect_left(self.middles, edge) for edge in (begin, end))
        parts = self.intervals[low:high]
        if not parts:
            return None
        start_ns, end_ns = parts[0]["start_ns"], parts[-1]["end_ns"]
        if end_ns <= start_ns:
            return None
        record = _rate(self.identifier, start_ns, end_ns, sum(part["bytes"] for part in parts), omitted)
        if self.tcp.samples:
            before, after = self.tcp.nearest(start_ns), self.tcp.nearest(end_ns)
            until = self.retransmits if last and self.retransmits is not None else after["tcp"]["total_retrans"]
            record["retransmits"] = max(0, until - (0 if first else before["tcp"]["total_retrans"]))
            record["tcp-window-size"] = after["tcp"]["snd_cwnd"] * after["tcp"]["snd_mss_bytes"]
            record["rtt"] = after["tcp"]["rtt_us"]
        return record

    def total(self, records: List[Json]) -> Json:
        """Return the sum of the stream's intervals."""
        begin, end = records[0]["start"] * 1e9, records[-1]["end"] * 1e9
        total = _rate(self.identifier, begin, end, sum(record["throughput-bytes"] for record in records), False)
        if self.tcp.samples:
            total["retransmits"] = sum(record["retransmits"] for record in records)
            total["rtt"] = sum(record["rtt"] for record in records) / len(records)
        if self.sent is not None:
            total["sent"] = self.sent
            if self.received is not None:
                total["lost"] = max(0, self.sent - self.received)
        if self.jitter_ns is not None:
            total["jitter"] = self.jitter_ns / 1e6
        return total

    def sent_bps(self, begin: float, end: float) -> Optional[float]:
        """Return the rate of the bytes that the sender's kernel accepted."""
        if not self.samples.samples:
            return None
        before, after = self.samples.nearest(begin), self.samples.nearest(end)
        span = after["t_ns"] - before["t_ns"]
        return (after["bytes"] - before["bytes"]) * 8e9 / span if span > 0 else None


class _Samples:
    """Samples of a socket, in the order of time."""

    def __init__(self, samples: List[Json]) -> None:
        self.samples = samples
        self.times = [sample["t_ns"] for sample in samples]

    def nearest(self, moment: float) -> Json:
        """Return the sample that is nearest to `moment`, ns."""
        after = min(bisect.bisect_left(self.times, moment), len(self.times) - 1)
        before = max(0, after - 1)
        nearer = before if moment - self.times[before] < self.times[after] - moment else after
        return self.samples[nearer]


def _rate(identifier: Any, begin: float, end: float, count: int, omitted: bool) -> Json:
    return {
        "stream-id": identifier,
        "start": begin / 1e9,
        "end": end / 1e9,
        "throughput-bytes": count,
        "throughput-bits": count * 8e9 / (end - begin),
        "omitted": omitted,
    }


def _sum(records: List[Json], omitted: bool) -> Json:
    total = {
        "start": min(record["start"] for record in records),
        "end": max(record["end"] for record in records),
        "throughput-bytes": sum(record["throughput-bytes"] for record in records),
        "throughput-bits": sum(record["throughput-bits"] for record in records),
        "omitted": omitted,
    }
    if all("retransmits" in record for record in records):
        total["retransmits"] = sum(record["retransmits"] for record in records)
    return total


def _bins(phases: List[Json], step_s: float) -> List[Tuple[float, float, bool]]:
    """Return the intervals of the result: begin and end, ns, and whether they are left out of the summary."""
    step = step_s * 1e9
    bins: List[Tuple[float, float, bool]] = []
    steady = [phase for phase in phases if phase["name"] == "steady"]
    if not steady:
        return bins
    begin, end = steady[0]["start_ns"], steady[-1]["end_ns"]
    if any(phase["name"] == "omitted" for phase in phases):
        bins += [(low, high, True) for low, high in _steps(0.0, begin, step)]
    return bins + [(low, high, False) for low, high in _steps(begin, end, step)]


def _steps(begin: float, end: float, step: float) -> List[Tuple[float, float]]:
    # A rest of less than half an interval belongs to the last one.
    count = max(1, int((end - begin) / step + 0.5))
    edges = [begin + position * step for position in range(count)] + [end]
    return list(zip(edges, edges[1:]))


def _rates(document: Json, bins: List[Tuple[float, float, bool]], streams: List[_Stream], sender_end: str) -> str:
    receiver_end = "client" if sender_end == "server" else "server"
    text = "receiver ({}): {:.0f} bit/s, the throughput of this result\n".format(
        receiver_end, document["summary"]["goodput_bps"]
    )
    kept = [(low, high) for low, high, omitted in bins if not omitted]
    rates = [stream.sent_bps(kept[0][0], kept[-1][1]) if kept else None for stream in streams]
    if rates and None not in rates:
        text += "sender ({}): {:.0f} bit/s into the sockets\n".format(sender_end, sum(rate or 0 for rate in rates))
    if any(omitted for _, _, omitted in bins) and document["requested"]["protocol"] == "udp":
        text += "sent, lost and jitter count the omitted seconds, too\n"
    return text + "\n"
