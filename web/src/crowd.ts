// What is drawn otherwise than as a line through every reading.

import type uPlot from "uplot";

/** Width of what is drawn as one, CSS pixels. */
const BUCKET = 2;

/** The mean of the readings in every two pixels as a line, and a band from the least of them to the most. */
export function crowd(u: uPlot, index: number, first: number, last: number): uPlot.Series.Paths {
  const x = u.data[0];
  const y = u.data[index] ?? [];
  const stroke = new Path2D();
  const fill = new Path2D();
  const { min = 0, max = 1 } = u.scales["x"] ?? {};
  const { left, width } = u.bbox;
  const step = BUCKET * (devicePixelRatio || 1);
  const height = (value: number) => u.valToPos(value, "y", true);
  let run: { x: number; least: number; most: number }[] = [];
  const close = () => {
    run.forEach((b, i) => (i === 0 ? fill.moveTo(b.x, height(b.most)) : fill.lineTo(b.x, height(b.most))));
    for (const b of run.reverse()) fill.lineTo(b.x, height(b.least));
    if (run.length > 0) fill.closePath();
    run = [];
  };
  let i = first;
  while (i <= last) {
    const bucket = Math.floor((((x[i] as number) - (min as number)) / ((max as number) - (min as number))) * (width / step));
    const end = (min as number) + ((bucket + 1) * step * ((max as number) - (min as number))) / width;
    let [least, most, sum, count] = [Infinity, -Infinity, 0, 0];
    do {
      const value = y[i];
      if (value !== null && value !== undefined) {
        least = Math.min(least, value);
        most = Math.max(most, value);
        sum += value;
        count += 1;
      }
      i += 1;
    } while (i <= last && (x[i] as number) < end);
    if (count === 0) {
      close();
      continue;
    }
    const at = left + (bucket + 0.5) * step;
    if (run.length === 0) stroke.moveTo(at, height(sum / count));
    else stroke.lineTo(at, height(sum / count));
    run.push({ x: at, least, most });
  }
  close();
  return { stroke, fill, flags: 0 };
}

/** Length of a tick, CSS pixels. */
const TICK = 9;

/** A tick at the top for every cell that counted something. */
export function tickMarks(u: uPlot, index: number, first: number, last: number): uPlot.Series.Paths {
  const x = u.data[0];
  const counts = u.data[index] ?? [];
  const stroke = new Path2D();
  const { left, width, top } = u.bbox;
  const bottom = top + TICK * (devicePixelRatio || 1);
  for (let i = first; i <= last; i++) {
    if (!counts[i] || x[i + 1] === undefined) continue;
    const at = u.valToPos(((x[i] as number) + (x[i + 1] as number)) / 2, "x", true);
    if (at < left || at > left + width) continue;
    stroke.moveTo(at, top);
    stroke.lineTo(at, bottom);
  }
  return { stroke, flags: 0 };
}
