// Claims about the page's arithmetic, which needs no browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = `export * as series from "./src/series"; export * as format from "./src/format"; export * as unpack from "./src/unpack";
export { chartOf } from "./src/evidence";
export * as flows from "./src/lab/flows"; export { layout } from "./src/lab/layout"; export { onto } from "./src/lab/timeline";
export * as watch from "./src/watch/series"; export * as reference from "./src/lab/reference"; export { fileName } from "./src/save";`;
const bundle = await build({
  stdin: { contents: source, resolveDir: fileURLToPath(new URL("..", import.meta.url)) },
  bundle: true,
  format: "esm",
  write: false,
  platform: "neutral",
  loader: { ".css": "empty" },
  mainFields: ["module", "main"],
});
const { series, format, unpack, chartOf, flows, layout, onto, reference, fileName, watch } = await import(
  `data:text/javascript;base64,${Buffer.from(bundle.outputFiles[0].text).toString("base64")}`
);

const interval = (start_ns, end_ns, bytes) => ({ start_ns, end_ns, bytes, phase: "steady" });

test("a rate is an interval's bytes over its length", () => {
  const list = [interval(0, 1e9, 125e6), interval(1e9, 1.5e9, 125e6)];
  assert.deepEqual(series.ratesOn(series.intervalEdges([list]), list), [1e9, 2e9, 2e9]);
});

test("laid on another stream's cells a stream keeps its total", () => {
  const fine = Array.from({ length: 97 }, (_, i) => interval(i * 1e6 + (i % 3) * 1e3, (i + 1) * 1e6 + ((i + 1) % 3) * 1e3, 1000 + i));
  const coarse = [interval(0, 40e6, 123_457), interval(40e6, 97e6, 7_654_321)];
  const edges = series.intervalEdges([coarse, fine]);
  const rates = series.ratesOn(edges, coarse);
  const total = edges.slice(1).reduce((sum, to, i) => sum + ((rates[i] ?? 0) * (to - edges[i])) / 8e9, 0);
  assert.ok(Math.abs(total - 7_777_778) < 1e-6 * 7_777_778 * 20, String(total));
});

test("where a stream has no interval there is no rate", () => {
  const short = [interval(1e9, 2e9, 1)];
  assert.deepEqual(series.ratesOn([0, 1e9, 2e9, 3e9], short), [null, 8, null, null]);
});

test("gains of a counter add up to the counter", () => {
  const gained = series.gains([0, 3, 3, null, 10]);
  assert.deepEqual(gained, [0, 3, 0, null, 7, 7]);
});

test("packets of a receiver without counts are not missing", () => {
  assert.deepEqual(series.missingPackets([10, 10, null], [9, 10, 1]), [1, 0, -1]);
  assert.deepEqual(series.missingPackets([10, 10, null], [null, null, null]), [null, null, null]);
  assert.deepEqual(series.missingPackets([null, null], [5, 5]), [null, null]);
});

test("samples are taken at the nearest reading, not from far away", () => {
  const samples = [{ t_ns: 10, bytes: 1 }, { t_ns: 21, bytes: 2 }, { t_ns: 30, bytes: 3 }];
  assert.deepEqual([...series.nearest([10, 20, 30, 40, 50], samples)], [0, 1, 2, -1, -1]);
});

test("a counter read now and then is spread over what lies between its readings", () => {
  const samples = [{ t_ns: 0, c: 50 }, { t_ns: 5 }, { t_ns: 10, c: 60 }, { t_ns: 15 }, { t_ns: 30, c: 60 }];
  const spans = series.counterSpans(samples, (s) => s.c);
  assert.deepEqual(spans, [{ start_ns: 0, end_ns: 10, amount: 10 }, { start_ns: 10, end_ns: 30, amount: 0 }]);
  assert.deepEqual(series.spread([0, 5, 10, 30, 40], spans), [1, 1, 0, null, null]);
});

test("what is read less often holds until it is read again", () => {
  assert.deepEqual(series.held([null, 4, null, 5, null]), [null, 4, 4, 5, 5]);
});

test("sums leave out what is absent and say so when all is", () => {
  assert.deepEqual(series.sum([[1, null, null], [2, 5, null]], 3), [3, 5, null]);
});

test("figures have three digits, a unit and no exponent", () => {
  assert.equal(format.rate(39_982_123_456), "40.0 Gb/s");
  assert.equal(format.rate(999_999_999), "1.00 Gb/s");
  assert.equal(format.rate(1e9), "1 Gb/s");
  assert.equal(format.bytes(8 << 20), "8 MiB");
  assert.equal(format.nanos(20_114_300), "20.1 ms");
  assert.equal(format.nanos(0), "0 s");
  assert.equal(format.integer(-1_234_567), "−1\u202f234\u202f567");
  assert.equal(format.percent(0.0000106), "0.00106 %");
  assert.equal(format.percent(0.999989), "99.9989 %");
  assert.equal(format.rate(null), "–");
  assert.equal(format.rate(Number.NaN), "–");
});

test("a share short of the whole never reads as the whole", () => {
  for (const share of [0.9999, 0.99999, 0.9999999, 0.999999999]) assert.notEqual(format.percent(share), "100 %");
});

test("ticks have enough digits to differ", () => {
  assert.deepEqual(format.ticks([0, 0.25e9, 0.5e9], 1e9), ["0", "0.25", "0.50"]);
  assert.deepEqual(format.ticks([0, 10e9, 20e9], 1e9), ["0", "10", "20"]);
});

test("columns unpack to rows", () => {
  const packed = { $n: 3, $o: { a: { $d: [5, 1, -2] }, b: { $c: "x" }, c: [1, null, 2], d: { $a: [{ $c: 1 }, { $d: [1, 1, 1] }] } }, $z: [1] };
  assert.deepEqual(unpack.unpack(packed, 3), [{ a: 5, b: "x", c: 1, d: [1, 1] }, null, { a: 4, b: "x", c: 2, d: [1, 3] }]);
});

test("evidence finds its chart by the path it was read from", () => {
  assert.equal(chartOf("streams[0].sender.samples[].tcp.rwnd_limited_us"), "queues");
  assert.equal(chartOf("streams[].intervals[].bytes"), "throughput");
  assert.equal(chartOf("streams[0].sender.samples[].tcp.min_rtt_us"), "rtt");
  assert.equal(chartOf("streams[0].sender.samples[].tcp.total_retrans"), "retransmits");
  assert.equal(chartOf("host_series.server.samples[].cores[9]"), "cpu-server");
  assert.equal(chartOf("streams[].sender.thread_cpu_ns"), "threads");
  assert.equal(chartOf("udp.loss_ratio"), "loss");
  assert.equal(chartOf("effective.pace_bps"), "throughput");
  assert.equal(chartOf("host_series.server.nic"), null);
  assert.equal(chartOf("summary.steady_ns"), null);
});

test("a nice step is 1, 2 or 5 of a decade", () => {
  assert.equal(format.niceStep(0.3), 0.5);
  assert.equal(format.niceStep(7), 10);
});

test("a lab's queue on finer cells keeps its drops and its peaks", () => {
  const queue = { series: { interval_ns: 10, backlog_bytes_max: [1, 9, 4], drops: [0, 7, 2], bytes: [] } };
  const edges = [0, 4, 8, 12, 16, 20, 24, 28, 32];
  const drops = onto(queue, edges, true);
  assert.equal(drops.slice(0, -1).reduce((a, b) => a + (b ?? 0), 0), 9);
  assert.deepEqual(onto(queue, edges, false).slice(0, -1), [1, 1, 9, 9, 9, 4, 4, null]);
});

test("a reading holds until the next, and not past the last", () => {
  const samples = [{ t_ns: 12, v: 5 }, { t_ns: 31, v: 6 }];
  assert.deepEqual(flows.heldAt([0, 10, 20, 30, 40, 50], samples, (s) => s.v), [null, 5, 5, 6, null, null]);
});

test("what a counter gained in the cells is what it counted", () => {
  const samples = [{ t_ns: 0, v: 0 }, { t_ns: 9, v: 3 }, { t_ns: 38, v: 4 }, { t_ns: 55, v: 10 }];
  const gained = flows.gainedIn([0, 10, 20, 30, 40], samples, (s) => s.v);
  assert.equal(gained.slice(0, -1).reduce((a, b) => a + b, 0), 10);
});

const node = (name, role = "host") => ({ name, role, settings: [] });
const wire = (a, b) => ({ between: [a, b] });

test("senders stand left, receivers right, and hosts opposite their ports", () => {
  const topology = {
    nodes: [..."abcxyz"].map((n) => node(n)).concat([node("west", "switch"), node("east", "switch")]),
    links: [wire("west", "east"), ...[..."abc"].map((n) => wire(n, "west")), ...[..."zyx"].map((n) => wire("east", n))],
  };
  const plan = layout(topology, [{ from: "a", to: "x" }, { from: "b", to: "y" }, { from: "c", to: "z" }]);
  const column = (n) => plan.nodes.get(n).column;
  assert.deepEqual([..."abcxyz"].map(column), [0, 0, 0, 3, 3, 3]);
  assert.deepEqual([column("west"), column("east")], [1, 2]);
  for (const w of plan.wires) assert.equal(w.leftRow, w.rightRow, w.link.between.join());
});

test("cross traffic that joins in the middle stands before the switch it joins at", () => {
  const topology = { nodes: ["a", "s", "t", "b", "c"].map((n) => node(n)), links: [wire("a", "s"), wire("s", "t"), wire("t", "b"), wire("c", "t")] };
  const plan = layout(topology, [{ from: "a", to: "b" }, { from: "c", to: "b" }]);
  assert.deepEqual(["a", "s", "c", "t", "b"].map((n) => plan.nodes.get(n).column), [0, 1, 1, 2, 3]);
});

test("no two links share a port", () => {
  const nodes = ["a", "s", "t", "u", "v", "b"].map((n) => node(n));
  const links = [wire("a", "s"), wire("s", "t"), wire("s", "u"), wire("t", "v"), wire("u", "v"), wire("t", "u"), wire("v", "b")];
  const plan = layout({ nodes, links }, [{ from: "a", to: "b" }]);
  const ports = plan.wires.flatMap((w) => {
    const within = plan.nodes.get(w.left).column === plan.nodes.get(w.right).column;
    return [`${w.left} right ${w.leftRow}`, `${w.right} ${within ? "right" : "left"} ${w.rightRow}`];
  });
  assert.equal(new Set(ports).size, ports.length, ports.join("; "));
});

test("a topology of any shape has a place for every node", () => {
  for (const links of [[], [wire("a", "b")], [wire("a", "b"), wire("b", "c"), wire("c", "a")], [wire("a", "a"), wire("a", "nowhere")]]) {
    const plan = layout({ nodes: ["a", "b", "c"].map((n) => node(n)), links }, [{ from: "nowhere", to: "c" }]);
    assert.equal(plan.nodes.size, 3);
    for (const n of plan.nodes.values()) assert.ok(Number.isFinite(n.row) && Number.isFinite(n.column));
  }
});

test("a file's name is safe whatever it is made from", () => {
  assert.equal(fileName("../../etc/passwd", "toml"), "landspeed-etc-passwd.toml");
  assert.equal(fileName("<script>", "json"), "landspeed-script.json");
  assert.equal(fileName("…", "json"), "landspeed-report.json");
});

test("a thread never waits longer than a span lasts, and the sum of its waits stays", () => {
  const spans = (...amounts) => amounts.map((amount, i) => ({ start_ns: i * 10, end_ns: (i + 1) * 10, amount }));
  const amounts = (...list) => series.backdated(spans(...list)).map((span) => span.amount);
  assert.deepEqual(amounts(1, 0, 25, 3), [6, 10, 10, 3]);
  assert.deepEqual(amounts(12, 0, 0), [10, 2, 0]);
  assert.deepEqual(amounts(1, 2, 3), [1, 2, 3]);
  assert.deepEqual(amounts(30, 30), [50, 10]);
  assert.deepEqual(series.backdated([]), []);
});

test("a requested size is shown as written", () => {
  const sizes = { 1000000: "1 MB", 16000000: "16 MB", 250000: "250 kB", 1500000: "1.5 MB", 115000000: "115 MB", 1500: "1\u202f500 B", 1000001: "977 KiB", 1048576: "1 MiB", 65536: "64 KiB", 9014: "9\u202f014 B", 0: "0 B" };
  for (const [bytes, text] of Object.entries(sizes)) assert.equal(format.bytes(Number(bytes)), text);
});

test("a watch's rates keep what a flow moved", () => {
  const series = { t_ns: [1e9, 2e9, 4e9], bytes: [0, 100, 500], retransmits: [0, 0, 2], rtt_us: [0, 30, 40], cwnd: [1, 2, 3] };
  const later = { ...series, t_ns: [3e9, 4e9, 5e9] };
  const edges = watch.cellEdges([series, later, { ...series, t_ns: [] }]);
  assert.deepEqual(edges, [1e9, 3e9, 5e9]);
  const rates = watch.ratesIn(edges, series.t_ns, series.bytes, 8);
  assert.ok(Math.abs((rates[0] + rates[1]) * 2 - 500 * 8) < 1e-6, String(rates));
  assert.deepEqual(watch.levelsAt([1e9, 2e9, 3.9e9, 5e9], series.t_ns, series.rtt_us), [null, 30, 40, null]);
  assert.deepEqual(watch.cellEdges([]), []);
});

test("a deviation has its sign, and none when it rounds to nothing", () => {
  assert.equal(reference.deviationText(-0.27), "−27 %");
  assert.equal(reference.deviationText(0.05), "+5.0 %");
  assert.equal(reference.deviationText(12.3), "+1\u202f230 %");
  assert.equal(reference.deviationText(-0.0002), "0 %");
  for (const half of [24.345, 24.345000000000002, 24.344999999999999]) assert.equal(reference.deviationText(half), "+2\u202f435 %");
  assert.equal(reference.deviationText(null), "–");
});

test("computed values and zeros are not counted as reported", () => {
  const figure = (reported, measured, basis) => ({ reported, measured, basis, deviation: reported === 0 ? null : measured === null ? null : measured / reported - 1 });
  const figures = [figure(1, 1.05), figure(1, 1.2), figure(1, null), figure(0, 0), figure(1, 1, "computed")];
  assert.equal(reference.countText(figures), "1 of 2 reported values within 10 %; 1 not run; 2 computed or zero");
  assert.equal(reference.countText([figure(1, 1, "computed")]), "1 computed or zero");
});

test("a criterion has its limits with their unit", () => {
  assert.equal(reference.limitsText({ at_least: 0.9, at_most: 1.1, unit: "ratio" }), "0.900 to 1.10");
  assert.equal(reference.limitsText({ at_least: null, at_most: 1900, unit: "ms" }), "≤ 1\u202f900 ms");
  assert.equal(reference.limitsText({ at_least: 1, at_most: null, unit: "segments" }), "≥ 1");
});

test("a figure counts as reproduced within ten per cent, and not when it was not run", () => {
  assert.equal(reference.reproduced({ measured: 1.1, deviation: 0.1 }), true);
  assert.equal(reference.reproduced({ measured: 1.2, deviation: 0.2 }), false);
  assert.equal(reference.reproduced({ measured: 5, deviation: null }), false);
  assert.equal(reference.reproduced({ measured: null, deviation: null }), null);
});

test("a value has its unit, and ratios and counts have none", () => {
  assert.equal(reference.valueText(2.83, "Gb/s"), "2.83 Gb/s");
  assert.equal(reference.valueText(404, "segments"), "404");
  assert.equal(reference.valueText(0.967, "ratio"), "0.967");
  assert.equal(reference.valueText(null, "MB"), "–");
});

