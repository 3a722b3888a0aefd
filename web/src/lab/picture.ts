// The network as a picture: hosts, switches, links with what they do, and how full the queue at each port got.

import type { LabDocument, LabQueue, TopologyLink, TopologyNode } from "../document";
import { h, section, svg, type Child } from "../dom";
import { byName, bytes, integer, isNumber, nanos, percent, rate } from "../format";
import { arrow, fullness } from "./flows";
import { layout, type Layout, type Placed, type Wired } from "./layout";

const BOX = 148;
const GAP = 200;
const EDGE = 12;
const LINE = 14;
/** Length of the straight piece at a switch's port, which holds its queue. */
const PORT = 58;
const TANK = { width: 40, height: 12 };
/** Most lines of impairments under a link, and of flows in a host. */
const MOST = 3;

/** The section. */
export function topologySection(lab: LabDocument): HTMLElement | null {
  if (lab.topology.nodes.length === 0) return null;
  const plan = layout(lab.topology, lab.flows);
  const under = Math.max(1, ...lab.topology.links.map((l) => Math.min(MOST, wordsOf(l).length) + 1));
  const inside = Math.max(0, ...lab.topology.nodes.map((n) => Math.min(MOST, flowsOf(lab, n.name).length)));
  const row = Math.max(LINE * (under + 2) + 10, 46 + LINE * inside + 14);
  const width = plan.columns * BOX + (plan.columns - 1) * GAP + 2 * EDGE;
  const height = plan.rows * row + 2 * EDGE;
  const picture = svg(
    "svg.topology",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": inWords(lab) },
    ...plan.wires.map((w) => wire(lab, plan, w, row)),
    ...[...plan.nodes.values()].map((p) => node(lab, p, row)),
  );
  return section(
    "topology",
    "Topology",
    h("div.scroll", { tabindex: 0, role: "region", "aria-label": "picture of the topology" }, picture),
    h(
      "p.help",
      null,
      "At each port of a switch its queue, filled to the peak of what waited as a share of its limit, red where it dropped. " +
        "Figures under a link: the share of its rate that was used, the busier direction. The tables below have them all.",
    ),
  );
}

const x = (column: number) => EDGE + column * (BOX + GAP);
const y = (row: number, height: number) => EDGE + row * height;

function node(lab: LabDocument, placed: Placed, row: number): SVGElement {
  const of = lab.topology.nodes.find((n) => n.name === placed.name) as TopologyNode;
  const flows = flowsOf(lab, placed.name);
  const shown = flows.length > MOST ? [...flows.slice(0, MOST - 1), { text: `and ${flows.length - MOST + 1} more`, color: "muted" }] : flows;
  const settings = of.settings.join(", ") || (of.role === "switch" ? "switch" : "");
  const tall = of.role === "switch" ? Math.max(48, placed.rows * row - 34) : 30 + (settings ? LINE : 0) + LINE * shown.length;
  const [left, middle] = [x(placed.column), y(placed.row, row)];
  const top = middle - tall / 2;
  const centred = of.role === "switch";
  const textLeft = centred ? left + BOX / 2 : left + 10;
  const anchor = centred ? "middle" : null;
  const first = centred ? middle - (settings ? 2 : -4) : top + 20;
  return svg(
    "g",
    null,
    svg("title", null, [`${of.role} ${of.name}`, ...of.settings, ...flows.map((f) => f.text)].join("\n")),
    svg("rect", { class: of.role === "switch" ? "node switch" : "node", x: left, y: top, width: BOX, height: tall, rx: of.role === "switch" ? 2 : 8 }),
    svg("text.name", { x: textLeft, y: first, "text-anchor": anchor }, clip(of.name, 18)),
    settings ? svg("text.muted", { x: textLeft, y: first + LINE, "text-anchor": anchor }, clip(settings, 23)) : null,
    ...shown.map((f, i) => svg(`text.${f.color}` as "text", { x: textLeft, y: first + LINE * (i + (settings ? 2 : 1)) }, clip(f.text, 23))),
  );
}

function flowsOf(lab: LabDocument, name: string): { text: string; color: string }[] {
  return lab.flows.flatMap((f, i) => {
    const got = isNumber(f.goodput_bps) ? ` ${rate(f.goodput_bps)}` : "";
    const color = `f${i % 8}`;
    if (f.from === name) return [{ text: `▸ ${f.name}${got}`, color }];
    return f.to === name ? [{ text: `◂ ${f.name}`, color }] : [];
  });
}

function wire(lab: LabDocument, plan: Layout, w: Wired, row: number): SVGElement {
  const [a, b] = [plan.nodes.get(w.left) as Placed, plan.nodes.get(w.right) as Placed];
  const isSwitch = (name: string) => lab.topology.nodes.find((n) => n.name === name)?.role === "switch";
  const [y1, y2] = [y(w.leftRow, row), y(w.rightRow, row)];
  const same = a.column === b.column;
  const [x1, x2] = [x(a.column) + BOX, same ? x(b.column) + BOX : x(b.column)];
  const [from, to] = [isSwitch(w.left) ? x1 + PORT : x1 + 8, isSwitch(w.right) && !same ? x2 - PORT : x2 + (same ? PORT : -8)];
  // Straight where the label is: beside the host, or in the middle between two switches.
  const bend = same ? x1 + PORT : isSwitch(w.left) ? from + 14 : to - 14;
  const path = same
    ? `M${x1} ${y1}H${bend}V${y2}H${x2}`
    : isSwitch(w.left) && !isSwitch(w.right)
      ? `M${x1} ${y1}H${from}L${bend} ${y2}H${x2}`
      : `M${x1} ${y1}H${bend}L${to} ${y2}H${x2}`;
  const straight = isSwitch(w.left) && !isSwitch(w.right) ? y2 : y1;
  const middle = same ? bend + 74 : (from + to) / 2;
  const level = same ? (y1 + y2) / 2 : straight;
  const lines = under(lab, w.link);
  return svg(
    "g",
    null,
    svg("title", null, [`${w.link.between.join(" – ")}`, over(w.link), ...lines.map((l) => l.text)].join("\n")),
    svg("path.wire", { d: path }),
    svg("text", { x: middle, y: level - 9, "text-anchor": "middle" }, clip(over(w.link), 24)),
    ...lines.slice(0, MOST + 1).map((l, i) =>
      svg(`text.${l.bad ? "bad" : "muted"}` as "text", { x: middle, y: level + LINE * (i + 1) + 4, "text-anchor": "middle" }, clip(l.text, isSwitch(w.left) && isSwitch(w.right) ? 32 : 24)),
    ),
    isSwitch(w.left) ? tank(lab, w.left, w.right, x1 + 9, y1) : null,
    isSwitch(w.right) ? tank(lab, w.right, w.left, same ? x2 + 9 : x2 - TANK.width - 9, y2) : null,
  );
}

/** The queue of a port. */
function tank(lab: LabDocument, name: string, neighbour: string, left: number, middle: number): SVGElement | null {
  const queue = lab.queues.find((q) => q.role === "switch" && q.name === `${name}->${neighbour}`);
  if (!queue) return null;
  const share = fullness(queue) ?? (queue.peak_bytes > 0 ? 0.5 : 0);
  const top = middle - TANK.height / 2;
  return svg(
    "g.tank",
    null,
    svg("title", null, queueInWords(queue)),
    svg("rect.hold", { x: left, y: top, width: TANK.width, height: TANK.height }),
    svg("rect", {
      class: queue.drops > 0 ? "full bad" : "full",
      x: left,
      y: top,
      width: share === 0 ? 0 : Math.max(1.5, TANK.width * Math.min(1, share)),
      height: TANK.height,
    }),
    svg("rect.rim", { x: left, y: top, width: TANK.width, height: TANK.height }),
    queue.drops > 0
      ? svg("text.bad", { x: left + TANK.width / 2, y: top - 4, "text-anchor": "middle" }, `−${integer(queue.drops)}`)
      : null,
  );
}

function queueInWords(q: LabQueue): string {
  const limit = isNumber(q.limit_bytes)
    ? `limit ${bytes(q.limit_bytes)}, peak ${bytes(q.peak_bytes)} (${percent(fullness(q))})`
    : `${isNumber(q.limit_packets) ? `limit ${integer(q.limit_packets)} packets, ` : ""}peak ${bytes(q.peak_bytes)}`;
  return `${arrow(q.name)}: ${q.kind}, ${limit}, ${integer(q.drops)} dropped${q.marks > 0 ? `, ${integer(q.marks)} marked` : ""}`;
}

function over(link: TopologyLink): string {
  const rates = link.rate_bps === link.reverse_rate_bps ? rate(link.rate_bps) : `${rate(link.rate_bps)} / ${rate(link.reverse_rate_bps)}`;
  const delays = link.delay_ns === link.reverse_delay_ns ? nanos(link.delay_ns) : `${nanos(link.delay_ns)} / ${nanos(link.reverse_delay_ns)}`;
  return link.delay_ns + link.reverse_delay_ns > 0 ? `${rates} · ${delays}` : rates;
}

function under(lab: LabDocument, link: TopologyLink): { text: string; bad?: boolean }[] {
  const [a, b] = link.between;
  const ways = lab.links.filter((l) => l.name === `${a}->${b}` || l.name === `${b}->${a}`);
  const used = Math.max(...ways.map((l) => l.utilisation));
  const lost = ways.reduce((sum, l) => sum + l.lost, 0);
  return [
    { text: `MTU ${link.mtu_bytes}${Number.isFinite(used) ? ` · ${percent(used)} used` : ""}` },
    ...wordsOf(link).map((text) => ({ text })),
    ...(lost > 0 ? [{ text: `${integer(lost)} lost`, bad: true }] : []),
  ];
}

const wordsOf = (link: TopologyLink): string[] => link.impairments;

/** Text no longer than so many letters; what is hovered over says it all. */
function clip(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function inWords(lab: LabDocument): string {
  const { nodes, links } = lab.topology;
  const list = (role: string) => nodes.filter((n) => n.role === role).map((n) => n.name).join(", ");
  const parts: Child[] = [
    `Hosts ${list("host")}`,
    list("switch") ? `switches ${list("switch")}` : null,
    ...links.map((l) => `${l.between.join(" to ")}: ${over(l)}, ${byName("mtu_bytes", l.mtu_bytes)}`),
    ...lab.queues.filter((q) => q.role === "switch" && q.drops > 0).map(queueInWords),
  ];
  return `${parts.filter(Boolean).join("; ")}.`;
}
