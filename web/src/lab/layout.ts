// Where the nodes and links of a topology stand in its picture. Pure arithmetic.

import type { Topology, TopologyLink } from "../document";

/** A node with its place: its column, and its centre and height in rows. */
export interface Placed {
  name: string;
  column: number;
  row: number;
  rows: number;
}

/** A link with the rows of its two ports. The left end is in the lower column. */
export interface Wired {
  link: TopologyLink;
  left: string;
  right: string;
  leftRow: number;
  rightRow: number;
}

export interface Layout {
  nodes: Map<string, Placed>;
  wires: Wired[];
  columns: number;
  rows: number;
}

/**
 * Columns by distance from the first flow's sender; hosts that only send stand before their switch, others behind it.
 * A node takes as many rows as it has ports on its busier side, so that hosts stand opposite their ports.
 */
export function layout(topology: Topology, flows: readonly { from: string; to: string }[]): Layout {
  const names = topology.nodes.map((n) => n.name);
  const known = new Set(names);
  const links = topology.links.filter(({ between: [a, b] }) => known.has(a) && known.has(b) && a !== b);
  const near = new Map<string, string[]>(names.map((n) => [n, []]));
  for (const { between: [a, b] } of links) {
    near.get(a)?.push(b);
    near.get(b)?.push(a);
  }
  const column = columns(names, near, flows);
  const columnCount = Math.max(0, ...column.values()) + 1;
  const side = (name: string, right: boolean) =>
    (near.get(name) ?? []).filter((n) => (right ? at(column, n) >= at(column, name) : at(column, n) < at(column, name))).length;
  const rowsOf = (name: string) => Math.max(1, side(name, false), side(name, true));
  const members = Array.from({ length: columnCount }, (_, c) => names.filter((n) => column.get(n) === c));
  const heights = members.map((list) => list.reduce((sum, n) => sum + rowsOf(n), 0));
  const rows = Math.max(1, ...heights);
  const nodes = new Map<string, Placed>();
  const place = (list: string[], c: number) => {
    let top = (rows - (heights[c] as number)) / 2;
    for (const name of list) {
      const height = rowsOf(name);
      nodes.set(name, { name, column: c, row: top + height / 2, rows: height });
      top += height;
    }
  };
  members.forEach(place);
  // Two sweeps order each column by where its neighbours stand.
  for (const sweep of [1, -1, 1]) {
    for (let i = 0; i < columnCount; i++) {
      const c = sweep > 0 ? i : columnCount - 1 - i;
      const weight = (name: string) => {
        const before = (near.get(name) ?? []).filter((n) => Math.sign(at(column, name) - at(column, n)) === sweep);
        if (before.length === 0) return nodes.get(name)?.row ?? 0;
        return before.reduce((sum, n) => sum + (nodes.get(n)?.row ?? 0), 0) / before.length;
      };
      const list = members[c] as string[];
      const weights = new Map(list.map((n) => [n, weight(n)]));
      list.sort((a, b) => (weights.get(a) as number) - (weights.get(b) as number));
      place(list, c);
    }
  }
  return { nodes, wires: wires(links, nodes), columns: columnCount, rows };
}

const at = (column: Map<string, number>, name: string) => column.get(name) ?? 0;

function columns(
  names: readonly string[],
  near: Map<string, string[]>,
  flows: readonly { from: string; to: string }[],
): Map<string, number> {
  const out = new Map<string, number>();
  const spread = (start: string) => {
    const queue: [string, number][] = [[start, 0]];
    while (queue.length > 0) {
      const [name, distance] = queue.shift() as [string, number];
      if (out.has(name)) continue;
      out.set(name, distance);
      for (const next of near.get(name) ?? []) queue.push([next, distance + 1]);
    }
  };
  const first = flows.find((f) => near.has(f.from))?.from ?? names[0];
  if (first !== undefined) spread(first);
  for (const name of names) spread(name);
  const sends = new Set(flows.map((f) => f.from));
  const receives = new Set(flows.map((f) => f.to));
  for (const name of names) {
    const [only, ...more] = near.get(name) ?? [];
    if (only === undefined || more.length > 0 || name === first || (near.get(only) ?? []).length < 2) continue;
    const before = sends.has(name) && !receives.has(name);
    out.set(name, Math.max(0, at(out, only) + (before ? -1 : 1)));
  }
  // A single switch between two hosts may have left a column empty.
  const used = [...new Set(out.values())].sort((a, b) => a - b);
  for (const [name, c] of out) out.set(name, used.indexOf(c));
  return out;
}

function wires(links: readonly TopologyLink[], nodes: Map<string, Placed>): Wired[] {
  const out = links.map((link) => {
    const [a, b] = link.between.map((n) => nodes.get(n) as Placed) as [Placed, Placed];
    const turned = a.column > b.column || (a.column === b.column && a.row > b.row);
    const [left, right] = turned ? [b, a] : [a, b];
    return { link, left: left.name, right: right.name, leftRow: left.row, rightRow: right.row };
  });
  // Ports of each side from top to bottom as their far ends are; links within a column are on the right.
  for (const node of nodes.values()) {
    for (const onRight of [true, false]) {
      const mine = out.flatMap((w) => {
        const within = nodes.get(w.left)?.column === nodes.get(w.right)?.column;
        const isLeft = w.left === node.name;
        if (!isLeft && w.right !== node.name) return [];
        return (within || isLeft) === onRight ? [{ w, isLeft, far: nodes.get(isLeft ? w.right : w.left)?.row ?? 0 }] : [];
      });
      mine.sort((a, b) => a.far - b.far);
      mine.forEach(({ w, isLeft }, i) => {
        const row = node.row + i - (mine.length - 1) / 2;
        if (isLeft) w.leftRow = row;
        else w.rightRow = row;
      });
    }
  }
  return out;
}
