// Claims about the page of a capture, and of two side by side.

const hostile = (text) => text.includes("<");
const plain = (text) => text.replaceAll(/[\s\u202f]+/g, " ");

export async function tracePageClaims(page, trace, { claim, settled }) {
  const text = plain(await page.evaluate(() => document.body.innerText));
  for (const warning of trace.warnings) if (!hostile(warning.message)) claim("a warning is shown", text.includes(plain(warning.message)));
  claim("every station has a row", (await page.locator("#stations tbody tr").count()) === trace.stations.length);
  claim("every flow has a row", (await page.locator("#flows tbody tr").count()) === Math.min(100, trace.flows.length));
  for (const path of trace.path) claim("losses between the taps are there", text.includes(path.from) && (await page.locator("#paths").count()) === 1);
  const unknown = trace.path.flatMap((p) => [p.forward, p.reverse]).map((d) => String(d.undetermined ?? 0));
  const shown = await page.locator("#paths table").first().locator("tbody tr td:nth-child(6)").allInnerTexts().catch(() => []);
  if (trace.path.length > 0) claim("what only one tap could see is not lost", JSON.stringify(shown.map((t) => t.replaceAll(/\D/g, ""))) === JSON.stringify(unknown), `${shown} is not ${unknown}`);
  const gaps = trace.stations.slice(0, 6).filter((s) => s.gaps.length > 0).length;
  claim("every station's gaps are drawn", (await page.locator("[id^=chart-gaps-] svg path.mean").count()) >= gaps);
  if (!trace.graphs) {
    claim("it says how to get graphs", text.includes("--series"));
    return;
  }
  await graphClaims(page, [trace], { claim, settled });
}

export async function comparisonPageClaims(page, both, { claim, settled }) {
  claim("every figure has a row", (await page.locator("#figures tbody tr").count()) === both.figures.length);
  const verdicts = await page.locator("#figures tbody tr td:last-child").allInnerTexts();
  const said = both.figures.map((f) => (f.difference ? (f.difference.changed ? "changed" : "not significant") : "–"));
  claim("it says what changed beyond noise", JSON.stringify(verdicts) === JSON.stringify(said), `${verdicts} is not ${said}`);
  for (const id of ["gaps-data", "rtts"]) claim(`${id} has a line for each`, (await page.locator(`#chart-${id} path.mean`).count()) === 2);
  const [a, b] = await page.evaluate(() => ["a", "b"].map((s) => document.getElementById(`chart-sequence-${s}`).getBoundingClientRect()).map((r) => [r.left, r.top, r.width]));
  claim("the graphs stand side by side", a[1] === b[1] && a[0] + a[2] <= b[0] && Math.abs(a[2] - b[2]) < 2, `${a} | ${b}`);
  await graphClaims(page, [both.a, both.b], { claim, settled });
}

async function graphClaims(page, traces, { claim, settled }) {
  const suffix = traces.length > 1 ? "-a" : "";
  const range = () => page.evaluate(() => [document.getElementById("timeline").timeline.from, document.getElementById("timeline").timeline.to]);
  const says = (id) => page.evaluate((id) => document.querySelector(`#chart-${id} canvas`).getAttribute("aria-label"), `${id}${suffix}`);
  const whole = await range();
  const series = traces[0].graphs.series[0];
  const flow = traces[0].flows[series.flow];
  const direction = flow[series.direction === "forward" ? "forward" : "reverse"];
  const label = plain(await says("sequence"));
  const again = Number(/(\d+(?: \d+)*) retransmits/.exec(label)?.[1]?.replaceAll(" ", ""));
  const sent = Object.entries(direction.retransmits).filter(([k]) => !["bytes", "spurious"].includes(k)).reduce((n, [, v]) => n + v, 0);
  claim("the graph has as many retransmissions as were counted", again === sent, `${again} is not ${sent}: ${label}`);
  const segments = Number(/(\d+(?: \d+)*) segments of new data/.exec(label)?.[1]?.replaceAll(" ", ""));
  claim("no segment is left out", Math.abs(segments + again + direction.out_of_order + direction.duplicates - (direction.packets - direction.pure_acks)) <= 2, `${segments} of ${direction.packets - direction.pure_acks}`);

  await page.locator("#timeline").focus();
  if (sent > 0) {
    await page.keyboard.press("n");
    await settled(page);
    const [from, to] = await range();
    claim("n goes to a loss", to - from < (whole[1] - whole[0]) * 0.5 && /[1-9]\d* retransmits/.test(plain(await says("sequence"))), await says("sequence"));
    const marked = await colors(page, `chart-sequence${suffix}`);
    claim("and it is drawn in red", marked.red > 0, JSON.stringify(marked));
    claim("with what it is at the cursor", (await page.locator(`#chart-sequence${suffix} .reading`).innerText()).includes("retransmit"));
  }
  for (let i = 0; i < 14; i++) await page.keyboard.press("+");
  await settled(page);
  const near = await range();
  claim("it zooms to microseconds", near[1] - near[0] < 1e-4, String(near));
  await page.locator(".packets summary").click();
  await settled(page);
  claim("packets in view are listed", (await page.locator(".packets table").count()) === traces.length);
  await page.keyboard.press("0");
  await settled(page);
  claim("0 shows the whole flow", Math.abs((await range())[1] - whole[1]) < 1e-9);
  const rows = await page.locator(".packets tbody").first().locator("tr").count();
  claim("the list of packets has an end", rows > 0 && rows <= 200, String(rows));
  await page.locator(".packets summary").click();

  const canvas = page.locator(`#chart-sequence${suffix} canvas`);
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const inner = (share) => box.x + 64 + share * (box.width - 76);
  await page.mouse.move(inner(0.5), box.y + 60);
  await page.mouse.down();
  await page.mouse.move(inner(0.75), box.y + 64, { steps: 5 });
  await page.mouse.up();
  await settled(page);
  const dragged = await range();
  const length = whole[1] - whole[0];
  claim("dragging zooms to what was drawn", Math.abs(dragged[0] - (whole[0] + length * 0.5)) < length * 0.02 && Math.abs(dragged[1] - (whole[0] + length * 0.75)) < length * 0.02, String(dragged));
  const before = await range();
  await page.mouse.move(inner(0.3), box.y + 60);
  await page.keyboard.down("Shift");
  await page.mouse.wheel(0, -200);
  await page.keyboard.up("Shift");
  await settled(page);
  const wheeled = await range();
  claim("the wheel zooms around the pointer", wheeled[1] - wheeled[0] < (before[1] - before[0]) * 0.9, String(wheeled));
  if (series.kept < series.packets) {
    const spot = await page.evaluate(() => {
      const { timeline } = document.getElementById("timeline");
      const { records } = timeline.model;
      const gap = records.spans.map((s, i) => [s.to, records.spans[i + 1]?.from]).filter(([, b]) => b !== undefined).sort((a, b) => b[1] - b[0] - (a[1] - a[0]))[0];
      const [a, b] = gap.map((ns) => timeline.model.at(ns));
      timeline.setRange(a + (b - a) * 0.4, a + (b - a) * 0.42);
      return [a, b];
    });
    await settled(page);
    claim("where single packets were not kept it says so", (await page.locator("#chart-sequence .said").innerText()).includes("buckets"), String(spot));
  }
  await page.locator(`#chart-sequence${suffix} canvas`).dblclick({ position: { x: 200, y: 100 } });
  await settled(page);
  claim("a double click shows the whole flow", Math.abs((await range())[1] - whole[1]) < 1e-9);
  await page.mouse.move(2, 2);
}

/** How many pixels are clearly red. */
async function colors(page, id) {
  return page.evaluate((id) => {
    const canvas = document.querySelector(`#${id} canvas`);
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    let red = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && data[i] > 140 && data[i + 1] < 90 && data[i + 2] < 90) red += 1;
    return { red };
  }, id);
}
