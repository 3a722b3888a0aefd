// Claims about the page's arithmetic, which needs no browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = `export * as series from "./src/series"; export * as format from "./src/format"; export * as unpack from "./src/unpack";
export { chartOf } from "./src/evidence";`;
const bundle = await build({
  stdin: { contents: source, resolveDir: fileURLToPath(new URL("..", import.meta.url)) },
  bundle: true,
  format: "esm",
  write: false,
  platform: "neutral",
  mainFields: ["module", "main"],
});
const { series, format, unpack, chartOf } = await import(
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

test("ticks show the digits that tell them apart", () => {
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
