// Claims about the pages of a lab's run and of a set of its cells.

const PREDICTION = "network-limited prediction: the lab’s hosts have infinite CPU and no NIC";
const plain = (text) => text.replaceAll("`", "").replaceAll(/\s+/g, " ");
const hostile = (text) => text.includes("<");

export async function labPageClaims(page, lab, { claim, settled }) {
  const ids = await page.evaluate(() => [...document.querySelectorAll("section")].map((s) => s.id));
  const has = (id, why) => claim(`there is a section "${id}"`, !why || ids.includes(id), `found ${ids.join(", ")}`);
  const measured = lab.flows.some((f) => f.run);
  for (const id of ["headline", "topology", "scenario", "provenance"]) has(id, true);
  has("flows", lab.flows.length > 0);
  has("timeline", measured);
  has("queues", lab.queues.length > 0);
  has("links", lab.links.length > 0);
  const text = plain(await page.evaluate(() => document.body.innerText));
  claim("it says what kind of prediction it is", text.includes(PREDICTION));
  claim("the seed is there", text.includes(`seed ${lab.seed}`));
  if (lab.digest && !hostile(lab.digest)) claim("the digest is there", text.includes(lab.digest));
  await verdictOnTrust(page, lab, text, claim);
  if (lab.scenario.reference && !hostile(lab.scenario.reference.reported)) {
    claim("what was reported stands beside what came out", text.includes(lab.scenario.reference.reported) && (await page.locator("#reference dt").count()) >= 2);
  }
  claim("the scenario's text is there", (await page.locator("pre.scenario").textContent()).startsWith(lab.scenario.text.slice(0, 40)));
  await topologyClaims(page, lab, claim);
  if (measured) await timelineClaims(page, lab, claim);
  await flowClaims(page, lab, claim, settled);
  await figureClaims(page, lab, claim);
}

/** An invalid run says so first and in red. */
async function verdictOnTrust(page, lab, text, claim) {
  const first = page.locator(".notices .notice").first();
  if (lab.status !== "complete") {
    const words = { invalid: "Invalid: do not use these figures", partial: "Partial", failed: "Failed" }[lab.status];
    claim("it says first that its figures cannot be used", (await first.innerText()).startsWith(words));
    const [notice, figure] = await page.evaluate(() => [".notice.bad", "#goodput"].map((s) => document.querySelector(s).getBoundingClientRect().top));
    claim("and says it above every figure", notice < figure);
    const red = await page.evaluate(() => getComputedStyle(document.querySelector(".notice.bad b")).color.match(/\d+/g).map(Number));
    claim("and in red", red[0] > 1.5 * red[1] && red[0] > 1.5 * red[2], String(red));
  }
  for (const check of lab.checks.filter((c) => !c.passed)) claim("a failed check is explained", text.includes(plain(check.detail)));
  if (lab.checks.length > 0) claim("every check is listed", (await page.locator("#checks tbody tr").count()) === lab.checks.length);
}

async function topologyClaims(page, lab, claim) {
  claim("every node is drawn", (await page.locator("svg.topology rect.node").count()) === lab.topology.nodes.length);
  claim("every link is drawn", (await page.locator("svg.topology path.wire").count()) === lab.topology.links.length);
  const ports = lab.queues.filter((q) => q.role === "switch").length;
  claim("every port's queue is drawn", (await page.locator("svg.topology g.tank").count()) === ports, `not ${ports}`);
  const overlaps = await page.evaluate(() => {
    const boxes = [...document.querySelectorAll("svg.topology rect.node")].map((r) => r.getBoundingClientRect());
    return boxes.filter((a, i) => boxes.some((b, j) => j > i && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)).length;
  });
  claim("no node covers another", overlaps === 0, `${overlaps} do`);
}

/** Rates above, queues under them, on one axis; the drops drawn are those counted. */
async function timelineClaims(page, lab, claim) {
  const order = await page.evaluate(() => [...document.querySelectorAll("#timeline figure.panel")].map((f) => f.id));
  claim("throughput is on top", order[0] === "chart-throughput", order.join());
  const busy = lab.queues.filter((q) => q.role === "switch" && q.drops > 0);
  if (busy.length === 0) return;
  claim("the queues stand under it", order[1] === "chart-queue-0", order.join());
  const most = Math.max(...busy.map((q) => q.drops));
  const shown = await page.locator("#chart-queue-0 .legend .item", { hasText: "dropped" }).locator("b").innerText();
  claim("the drops over time add up to those counted", Number(shown.replaceAll("\u202f", "")) === most, `${shown} is not ${most}`);
  const lefts = await page.evaluate(() =>
    ["chart-throughput", "chart-queue-0"].map((id) => document.querySelector(`#${id} .u-over`).getBoundingClientRect()).map((b) => [b.left, b.width].join()),
  );
  claim("both on the same axis", lefts[0] === lefts[1], lefts.join(" | "));
}

/** Each flow opens to everything a run has, under unique names. */
async function flowClaims(page, lab, claim, settled) {
  for (const [i, flow] of lab.flows.entries()) {
    if (!flow.run) continue;
    const details = page.locator(`details#flow-${i}`);
    claim("a flow's run waits to be opened", (await details.locator(".body > *").count()) === 0);
    await details.locator("summary").first().click();
    await settled(page);
    const inside = await page.evaluate((n) => [...document.querySelectorAll(`#flow-${n} section`)].map((s) => s.id.replace(`flow-${n}-`, "")), i);
    for (const id of ["headline", "timeline", "ledger", "streams"]) claim(`flow ${i} has a section "${id}"`, inside.includes(id), inside.join());
    claim("no processor is shown in virtual time", !inside.includes("cost") && (await details.locator("[id*=chart-cpu]").count()) === 0);
  }
}

/** Reported figures: a row each, with signed deviation, unit and what was not run. */
async function figureClaims(page, lab, claim) {
  const figures = lab.reference_figures ?? [];
  const rows = page.locator("#figures tbody tr");
  claim("every reported figure has a row", (await rows.count()) === figures.length, `not ${figures.length}`);
  for (const [i, figure] of figures.entries()) {
    const cells = (await rows.nth(i).locator("td").allInnerTexts()).map(plain);
    const [reported, measured, deviation] = cells;
    if (!["ratio", "segments"].includes(figure.unit)) claim("a reported value has its unit", reported.endsWith(` ${figure.unit}`), reported);
    if (typeof figure.measured !== "number") {
      claim("a figure without a run says so", measured === "not run" && deviation === "–", cells.join(" | "));
    } else if (typeof figure.deviation === "number" && Math.abs(figure.deviation) >= 0.001) {
      claim("a deviation has its sign", deviation.startsWith(figure.deviation > 0 ? "+" : "−") && deviation.endsWith(" %"), deviation);
    }
    const good = typeof figure.deviation === "number" && Math.abs(figure.deviation) <= 0.1;
    if (typeof figure.measured === "number" && !good) claim("a large deviation has a reason, or says that none is known", cells[4].length > 0, cells.join(" | "));
  }
  const criteria = lab.criteria ?? [];
  const limits = page.locator("#criteria tbody tr");
  claim("every criterion has a row", (await limits.count()) === criteria.length, `not ${criteria.length}`);
  for (const [i, criterion] of criteria.entries()) {
    const cells = (await limits.nth(i).locator("td").allInnerTexts()).map(plain);
    if (criterion.met === false) claim("a missed criterion says so, with its reason", cells[2] === "not met" && cells[4].length > 0, cells.join(" | "));
  }
}
