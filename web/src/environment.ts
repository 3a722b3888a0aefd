// The two hosts, the requested parameters, and the hosts' load during the test.

import type { HostSnapshot, Parameters, RunDocument } from "./document";
import { h, num, section, table, type Child } from "./dom";
import { byName, bytes, integer, isNumber, megahertz, nanos, NONE, rate, words } from "./format";

interface Pair {
  name: string;
  client: string;
  server: string;
  /** Names and addresses differ by nature; that is not a finding. */
  identity?: boolean;
}

/** Both hosts side by side. */
export function environmentSection(run: RunDocument): HTMLElement | null {
  const { client, server } = run.hosts;
  if (!client && !server) return null;
  const groups: [string, Pair[]][] = [
    ["Host", hostRows(client, server)],
    ["Interface", nicRows(client, server)],
    ["Offloads", mapRows(client?.nic?.offloads, server?.nic?.offloads, (v) => (v ? "on" : "off"))],
    ["Sysctls", mapRows(client?.sysctls, server?.sysctls, (v) => String(v).replaceAll(/\s+/g, " "))],
    ["Could not be read", mapRows(client?.unavailable, server?.unavailable, String)],
  ];
  const both = Boolean(client && server);
  const rows: HTMLTableRowElement[] = [];
  let differing = 0;
  for (const [title, pairs] of groups) {
    const shown = pairs.filter((p) => p.client !== NONE || p.server !== NONE);
    if (shown.length === 0) continue;
    rows.push(h("tr.group", null, h("th", { colspan: 4, scope: "rowgroup" }, title)));
    for (const pair of shown) {
      const differs = both && !pair.identity && pair.client !== pair.server;
      if (differs) differing++;
      rows.push(
        h(
          "tr",
          { class: differs ? "differs" : "same" },
          h("th", { scope: "row" }, pair.name),
          h("td", null, pair.client),
          h("td.mark-differs", null, differs ? h("span", { title: "differs" }, "≠") : ""),
          h("td", null, pair.server),
        ),
      );
    }
  }
  const body = table(
    ["", `client${client ? ` (${client.hostname})` : ": not seen"}`, h("th", { scope: "col", "aria-label": "differs" }), `server${server ? ` (${server.hostname})` : ": not seen"}`],
    rows,
    { class: "pair environment", caption: "The hosts at the start of the test" },
  );
  return section("environment", "Environment", both ? onlyDifferences(body, differing) : null, body);
}

function onlyDifferences(body: HTMLElement, count: number): HTMLElement {
  const box = h("input", { type: "checkbox" });
  box.addEventListener("change", () => body.classList.toggle("only-differences", box.checked));
  return h("p.controls", null, `${count} settings differ. `, h("label", null, box, " show only these"));
}

type Maybe = HostSnapshot | null | undefined;

function hostRows(client: Maybe, server: Maybe): Pair[] {
  const row = (name: string, pick: (h: HostSnapshot) => unknown, identity = false): Pair => ({
    name,
    client: text(client ? pick(client) : null),
    server: text(server ? pick(server) : null),
    identity,
  });
  return [
    row("Name", (x) => x.hostname, true),
    row("Operating system", (x) => x.os),
    row("Kernel", (x) => x.kernel_release),
    row("Kernel build", (x) => x.kernel_version),
    row("Machine", (x) => x.machine),
    row("CPU", (x) => x.cpu_model),
    row("Cores online", (x) => x.cores_online),
    row("NUMA nodes", (x) => x.numa.map((n) => `${n.id}: ${n.cpus}`)),
    row("SMT", (x) => x.smt),
    row("Frequency governor", (x) => (x.governor ? `${x.governor.governor} (${x.governor.driver})` : null)),
    row("Frequency range", (x) =>
      x.governor && (isNumber(x.governor.min_khz) || isNumber(x.governor.max_khz))
        ? `${megahertz((x.governor.min_khz ?? NaN) / 1e3)} – ${megahertz((x.governor.max_khz ?? NaN) / 1e3)}`
        : null,
    ),
    row("Virtualization", (x) => x.virtualization),
    row("Memory", (x) => bytes(x.memory_bytes)),
    row("Kernel tick", (x) => (isNumber(x.clock_ticks_per_s) ? `${x.clock_ticks_per_s} Hz` : null)),
    row("Congestion controls", (x) => x.congestion_available),
  ];
}

function nicRows(client: Maybe, server: Maybe): Pair[] {
  type Nic = NonNullable<HostSnapshot["nic"]>;
  const row = (name: string, pick: (n: Nic) => unknown, identity = false): Pair => ({
    name,
    client: text(client?.nic ? pick(client.nic) : null),
    server: text(server?.nic ? pick(server.nic) : null),
    identity,
  });
  const of = (pair: [number, number] | null | undefined) => (pair ? `${integer(pair[0])} of ${integer(pair[1])}` : null);
  return [
    row("Name", (n) => n.name, true),
    row("Driver", (n) => n.driver),
    row("Driver version", (n) => n.driver_version),
    row("Firmware", (n) => n.firmware),
    row("Bus address", (n) => n.bus, true),
    row("NUMA node", (n) => n.numa_node),
    row("Speed", (n) => (isNumber(n.speed_bps) ? rate(n.speed_bps) : null)),
    row("MTU", (n) => `${n.mtu_bytes} bytes`),
    row("Queueing disciplines", (n) => n.qdiscs),
    row("Transmit queue length", (n) => n.tx_queue_len),
    row("Receive ring", (n) => of(n.rx_ring)),
    row("Transmit ring", (n) => of(n.tx_ring)),
    row("Channels", (n) => of(n.channels)),
    row("GSO at most", (n) => (isNumber(n.gso_max_size_bytes) ? bytes(n.gso_max_size_bytes) : null)),
    row("GRO at most", (n) => (isNumber(n.gro_max_size_bytes) ? bytes(n.gro_max_size_bytes) : null)),
  ];
}

function mapRows<T>(
  client: Record<string, T> | null | undefined,
  server: Record<string, T> | null | undefined,
  show: (value: T) => string,
): Pair[] {
  const names = [...new Set([...Object.keys(client ?? {}), ...Object.keys(server ?? {})])].sort();
  const read = (map: Record<string, T> | null | undefined, name: string) =>
    map && Object.hasOwn(map, name) ? show(map[name] as T) : NONE;
  return names.map((name) => ({ name, client: read(client, name), server: read(server, name) }));
}

function text(value: unknown): string {
  if (value === null || value === undefined || value === "") return NONE;
  if (Array.isArray(value)) return value.length === 0 ? NONE : value.join(", ");
  return String(value);
}

// The order in which people think of them; what is not named here follows.
const ORDER = [
  "title", "protocol", "direction", "streams", "time_ns", "bytes", "omit_ns", "interval_ns", "host_interval_ns",
  "write_bytes", "window_bytes", "mss_bytes", "congestion", "nodelay", "dscp", "mptcp", "pace_bps", "pace_scope",
  "rate_bps", "send", "receive", "read_rate_bps", "client_cpus", "server_cpus", "client_numa", "server_numa", "family",
  "bind", "udp", "rr", "probe_rate_per_s", "probe_mtu",
];

function rank(name: string): number {
  const at = ORDER.indexOf(name);
  return at < 0 ? ORDER.length : at;
}

/** Requested and effective parameters side by side. */
export function parametersSection(run: RunDocument): HTMLElement {
  const { requested, effective } = run;
  const names = [...new Set([...Object.keys(requested), ...Object.keys(effective ?? {})])].sort((a, b) => rank(a) - rank(b));
  const show = (of: Parameters | null | undefined, name: string) =>
    of ? byName(name, (of as unknown as Record<string, unknown>)[name]) : NONE;
  const rows = names
    .map((name) => ({ name, asked: show(requested, name), got: show(effective, name) }))
    .filter((r) => r.asked !== NONE || r.got !== NONE)
    .map(({ name, asked, got }) => {
      const differs = Boolean(effective) && asked !== got;
      return h(
        "tr",
        { class: differs ? "differs" : "same" },
        h("th", { scope: "row", title: name }, words(name)),
        h("td", null, asked),
        h("td.mark-differs", null, differs ? h("span", { title: "differs" }, "≠") : ""),
        h("td", null, got),
      );
    });
  return section(
    "parameters",
    "Parameters",
    table(
      ["", "requested", h("th", { scope: "col", "aria-label": "differs" }), effective ? "in force" : "in force: never agreed"],
      rows,
      { class: "pair environment parameters", caption: "Options left unset at both are not listed" },
    ),
  );
}

/** Counters of both hosts that moved during the test. */
export function countersSection(run: RunDocument): HTMLElement | null {
  const { client, server } = run.host_series;
  if (!client && !server) return null;
  const parts: Child[] = [];
  const group = (caption: string, c: readonly { name: string; delta: number }[], s: readonly { name: string; delta: number }[]) => {
    const names = [...new Set([...c, ...s].map((x) => x.name))];
    if (names.length === 0) return;
    const find = (list: readonly { name: string; delta: number }[], name: string) => integer(list.find((x) => x.name === name)?.delta);
    parts.push(
      table(
        ["", h("th.num", { scope: "col" }, "client"), h("th.num", { scope: "col" }, "server")],
        names.map((name) => h("tr", { class: trouble(name) && [...c, ...s].some((x) => x.name === name && x.delta) ? "trouble" : null }, h("th", { scope: "row" }, name), num(find(c, name)), num(find(s, name)))),
        { class: "pair counters", caption },
      ),
    );
  };
  group("Protocol counters (SNMP)", client?.snmp ?? [], server?.snmp ?? []);
  group("Interface counters", client?.nic ?? [], server?.nic ?? []);
  const soft = (["processed", "dropped", "flow_limit", "time_squeeze", "received_rps"] as const).map((key) => ({ key, name: `softnet ${key}` }));
  group(
    "Backlog, all cores",
    soft.map(({ key, name }) => ({ name, delta: client?.softnet[key] ?? NaN })),
    soft.map(({ key, name }) => ({ name, delta: server?.softnet[key] ?? NaN })),
  );
  const qdiscs = (["client", "server"] as const).flatMap((side) =>
    (run.host_series[side]?.qdiscs ?? []).map((q) => [
      h("th", { scope: "row" }, `${side}: ${q.kind}`) as unknown as HTMLTableCellElement,
      h("td", null, q.handle),
      h("td", null, q.parent),
      ...[q.packets, q.bytes, q.drops, q.overlimits, q.requeues, q.backlog_bytes].map((v) => num(integer(v))),
    ]),
  );
  if (qdiscs.length > 0) {
    parts.push(
      table(
        ["", "Handle", "Parent", ...["Packets", "Bytes", "Drops", "Over limit", "Requeues", "Left, bytes"].map((t) => h("th.num", { scope: "col" }, t))],
        qdiscs,
        { class: "wide", caption: "Queueing disciplines" },
      ),
    );
  }
  const notes = (["client", "server"] as const).flatMap((side) => {
    const series = run.host_series[side];
    if (!series) return [];
    const pressure = series.pressure;
    return [
      `${side}: sampling used ${nanos(series.sampler_cpu_ns)} of CPU time` +
        (pressure ? `; tasks waited ${nanos(pressure.cpu_some_us * 1e3)} for a CPU, ${nanos(pressure.memory_some_us * 1e3)} for memory` : "") +
        (isNumber(series.tcp_mem_used_ratio) ? `; TCP memory at ${(series.tcp_mem_used_ratio * 100).toFixed(1)} % of its pressure threshold` : "") +
        ".",
      ...Object.entries(series.unavailable).map(([what, why]) => `${side}: ${what} not read: ${why}`),
    ];
  });
  if (notes.length > 0) parts.push(h("ul.notes", null, ...notes.map((n) => h("li", null, n))));
  return section("counters", "Counters that moved", h("div.columns", null, ...parts));
}

/** Names that mean something went wrong. */
function trouble(name: string): boolean {
  return /drop|error|discard|retrans|lost|timeout|fail|missed|crc|pause|overflow|squeeze|out_of_buffer/i.test(name);
}
