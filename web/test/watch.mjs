// Claims about the page of a watch.

const plain = (text) => text.replaceAll(/\s+/g, " ");

export async function watchPageClaims(page, watch, { claim }) {
  const text = plain(await page.evaluate(() => document.body.textContent));
  const bars = await page.evaluate(() =>
    [...document.querySelectorAll(".sharebar")].map((bar) => [bar.getBoundingClientRect().width, [...bar.children].reduce((sum, e) => sum + e.getBoundingClientRect().width, 0)]),
  );
  claim("every flow has a bar", bars.length === watch.flows.length, `${bars.length} of ${watch.flows.length}`);
  for (const [whole, parts] of bars) claim("a bar's parts fill it", whole > 50 && Math.abs(whole - parts) < 1, `${parts} of ${whole}`);
  const rows = await page.locator("#flows tbody tr").count();
  claim("every flow is in the table", rows === watch.flows.length, `${rows} of ${watch.flows.length}`);
  const shown = await page.locator("details.flow").count();
  claim("every flow has its evidence", shown === watch.flows.length, String(shown));
  for (const f of watch.flows) {
    for (const part of [f.local, f.remote, ...f.evidence.map((e) => e.metric), ...f.missing]) {
      claim(`it says "${part}"`, text.includes(plain(part)));
    }
    const words = plain(f.next_step.replaceAll("`", ""));
    claim("the next step is there", text.includes(words), words);
  }
  const drawn = watch.flows.filter((f) => (f.series?.t_ns.length ?? 0) > 1).length;
  const lines = await page.locator("#chart-throughput .legend .item").count();
  claim("rates over time are drawn, and their sum", lines === Math.min(8, drawn) + (drawn > 1 ? 1 : 0), `${lines} of ${drawn}`);
  const heads = await page.evaluate(() => [...document.querySelectorAll("details.flow table")].map((t) => [t.tHead.rows[0].cells.length, t.tBodies[0].rows[0].cells.length]));
  claim("every column of the evidence has a heading", heads.every(([a, b]) => a === b), heads.join(" "));
  if (watch.flows.length === 0) claim("a watch without flows says so", text.includes("No flows moved data"));
}
