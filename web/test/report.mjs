// Opens rendered reports in headless Chromium and holds them to what a report promises.
//
//   LANDSPEED_REPORT=a.html[:b.html…] npm --prefix web test
//
// CHROMIUM names the browser (default /usr/bin/chromium). SCREENSHOTS names a directory for pictures of every page in both themes,
// at three widths and on paper, for people to look at: they take longer than all claims. Where a.json lies beside a.html, the
// document saved from the page is compared with it.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { auditPageClaims } from "./audit.mjs";
import { figuresPageClaims } from "./figures.mjs";
import { labPageClaims } from "./lab.mjs";
import { comparisonPageClaims, tracePageClaims } from "./trace.mjs";
import { watchPageClaims } from "./watch.mjs";

const skip = (why) => {
  console.log(`SKIPPED: the report was not tested in a browser: ${why}`);
  process.exit(0);
};

const reports = (process.env.LANDSPEED_REPORT ?? "").split(":").filter(Boolean).map((p) => resolve(process.env.INIT_CWD ?? ".", p));
if (reports.length === 0) skip("LANDSPEED_REPORT names no report");
const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";
if (!existsSync(chromium)) skip(`no browser at ${chromium}`);
let playwright;
try {
  playwright = await import("playwright-core");
} catch {
  skip("node_modules is missing: run `npm --prefix web ci`");
}
for (const report of reports) {
  if (!existsSync(report)) {
    console.error(`no such report: ${report}`);
    process.exit(2);
  }
}

const pictures = process.env.SCREENSHOTS;
if (pictures) mkdirSync(pictures, { recursive: true });
const profile = mkdtempSync(join(tmpdir(), "landspeed-chromium-"));
const browser = await playwright.chromium.launchPersistentContext(profile, {
  executablePath: chromium,
  headless: true,
  viewport: { width: 1280, height: 900 },
  acceptDownloads: true,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});

/** Kinds of document of which a page was operated and printed. */
const kinds = new Set();
let failures = 0;
let checks = 0;
let current = "";
function claim(what, holds, detail = "") {
  checks += 1;
  if (holds) return;
  failures += 1;
  console.log(`FAILED ${current}: ${what}${detail ? `: ${detail}` : ""}`);
}

try {
  for (const report of reports) {
    current = basename(report, ".html");
    await inspect(report);
  }
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
console.log(`${checks - failures} of ${checks} claims hold for ${reports.length} reports${pictures ? `; pictures in ${pictures}` : ""}`);
process.exit(failures > 0 ? 1 : 0);

async function inspect(report) {
  const page = await browser.newPage();
  const trouble = [];
  const requests = [];
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && trouble.push(m.text()));
  page.on("pageerror", (e) => trouble.push(e.message));
  page.on("dialog", (d) => {
    trouble.push(`dialog: ${d.message()}`);
    d.dismiss();
  });
  page.on("request", (r) => requests.push(r.url()));
  await page.emulateMedia({ colorScheme: "light" });
  const began = Date.now();
  await page.goto(pathToFileURL(report).href);
  await settled(page);
  const took = Date.now() - began;
  const original = existsSync(report.replace(/\.html$/, ".json"))
    ? withoutBlobs(JSON.parse(readFileSync(report.replace(/\.html$/, ".json"), "utf8")))
    : null;
  const run = await saved(page);
  if (original) claim("the saved document is the original", same(original, run), firstDifference(original, run));

  const kind = run.schema.split("/")[0];
  if (kind === "landspeed.lab") await labPageClaims(page, run, { claim, settled });
  else if (kind === "landspeed.audit") await auditPageClaims(page, run, { claim });
  else if (kind === "landspeed.trace") await tracePageClaims(page, run, { claim, settled });
  else if (kind === "landspeed.tracecomparison") await comparisonPageClaims(page, run, { claim, settled });
  else if (kind === "landspeed.watch") await watchPageClaims(page, run, { claim });
  else if (kind === "landspeed.figures") await figuresPageClaims(page, run, { claim, settled });
  else {
    await sections(page, run);
    await lossAddsUp(page, run);
  }
  await conclusion(page, run);
  await sound(page);
  for (const theme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: theme });
    await settled(page);
    await painted(page, theme);
    await readable(page, theme);
    await picture(page, theme, true);
  }
  // What a page does is the same code for all of a kind; pictures are taken of everything.
  const thorough = !kinds.has(kind) || Boolean(pictures);
  kinds.add(kind);
  if (thorough) {
    await toggled(page);
    await page.emulateMedia({ colorScheme: "light" });
    await settled(page);
    if (!kind.startsWith("landspeed.trace")) {
      await keyboard(page);
      await dragging(page, run);
    }
  }
  for (const width of [800, 400]) {
    await page.setViewportSize({ width, height: 900 });
    await settled(page);
    await fits(page, width);
    await picture(page, width, true);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  if (thorough) await printed(page);

  claim("no error on the console", trouble.length === 0, trouble.join(" | "));
  const network = requests.filter((url) => !/^(file|data|blob):/.test(url));
  claim("no network request", network.length === 0, network.join(" "));
  claim("one file is loaded", requests.filter((url) => url.startsWith("file:")).length === 1, requests.join(" "));
  claim("no hostile string ran", !(await page.title()).startsWith("owned"));
  console.log(`${current}: drawn in ${took} ms`);
  await page.close();
}

/** The page opens with one sentence; caveats stand below the first chart. */
async function conclusion(page, document) {
  const said = page.locator("p.conclusion");
  if (document.flows?.length === 0 && document.scenario) return;
  claim("it opens with a conclusion", (await said.count()) === 1 && (await said.innerText()).trim().length > 10, await said.allInnerTexts().then(String));
  const order = await page.evaluate(() =>
    ["p.conclusion", "figure.panel", ".notice.warn"].map((s) => document.querySelector(s)).map((e) => (e ? e.getBoundingClientRect().top : null)),
  );
  const [sentence, chart, caveat] = order;
  if (chart !== null) claim("the conclusion stands above the first chart", sentence < chart);
  if (chart !== null && caveat !== null) claim("caveats stand below the first chart", caveat > chart, order.join());
}

/** A picture for people, of the window or of the full page. */
async function picture(page, name, fullPage = false) {
  if (pictures) await page.screenshot({ path: join(pictures, `${current}-${name}.png`), fullPage });
}

/** Waits until frames asked for have been drawn. */
async function settled(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60)))));
}

async function saved(page) {
  const waiting = page.waitForEvent("download");
  await page.getByRole("button", { name: "save JSON" }).click();
  const download = await waiting;
  claim("the saved file is named JSON", download.suggestedFilename().endsWith(".json"));
  return JSON.parse(readFileSync(await download.path(), "utf8"));
}

async function sections(page, run) {
  const ids = await page.evaluate(() => [...document.querySelectorAll("section")].map((s) => s.id));
  const has = (id, why) => claim(`there is a section "${id}"`, !why || ids.includes(id), `found ${ids.join(", ")}`);
  has("headline", true);
  has("parameters", true);
  has("environment", run.hosts.client || run.hosts.server);
  has("ledger", run.status !== "failed" || run.conservation.offered > 0);
  has("evidence", run.verdict.evidence.length > 0);
  has("cost", run.cost.client || run.cost.server);
  has("timeline", run.streams.length > 0);
  has("latency", run.latency.length > 0 || run.latency_under_load);
  const text = await page.evaluate(() => document.body.innerText);
  claim("the verdict is there", text.includes(run.verdict.summary.replaceAll("`", "").slice(0, 30)));
  for (const error of run.errors) claim("errors are shown", text.includes(error.message));
  if (run.status !== "failed" && typeof run.summary.goodput_bps === "number") {
    const big = await page.locator("#goodput").innerText();
    claim("the goodput has a unit", /^[\d.\u202f]+ [kMGT]?b\/s$/.test(big.trim()), big);
  }
  const limited = [run.verdict, run.reverse_verdict].filter((verdict) => verdict?.epochs?.length > 0);
  const drawn = await page.evaluate(() =>
    [...document.querySelectorAll(".epochrow")].map((row) => [...row.querySelectorAll(".epoch")].filter((e) => e.getBoundingClientRect().width > 0).length),
  );
  if (run.streams.length > 0) {
    const strips = drawn.filter((spans) => spans > 0).length;
    claim("what limited the sender is drawn for each verdict that has it", strips === limited.length, `${strips} of ${limited.length}`);
  }
  const marked = run.verdict.evidence.filter((e) => /intervals|cwnd|rtt_us|retrans|host_series/.test(e.source)).length;
  if (marked > 0 && run.status === "complete" && run.streams.length > 0) {
    const marks = await page.locator(".lanes a.mark").count();
    claim("evidence is marked on the charts", marks > 0);
  }
}

/** What holds for every kind of page. */
async function sound(page) {
  const text = await page.evaluate(() => document.body.innerText);
  for (const word of ["undefined", "NaN", "[object", "Infinity"]) claim(`no "${word}" in the text`, !text.includes(word), around(text, word));
  const duplicates = await page.evaluate(() => {
    const all = [...document.querySelectorAll("[id]")].map((e) => e.id);
    return all.filter((id, i) => all.indexOf(id) !== i);
  });
  claim("identifiers are unique", duplicates.length === 0, duplicates.join(", "));
  const unnamed = await page.evaluate(() =>
    [...document.querySelectorAll("button, select, input, a, [role=img], section, canvas[role]")]
      .filter((e) => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim() || e.closest("label")))
      .map((e) => e.outerHTML.slice(0, 80)),
  );
  claim("everything to operate or see has a name", unnamed.length === 0, unnamed.join(" "));
  const dead = await page.evaluate(() =>
    [...document.querySelectorAll('a[href^="#"]')].filter((a) => !document.getElementById(a.getAttribute("href").slice(1))).length,
  );
  claim("every link has its target", dead === 0, `${dead} have none`);
}

/** The chart of missing packets adds up to what the totals say was lost. */
async function lossAddsUp(page, run) {
  const missing = page.locator("#chart-loss .legend .item", { hasText: "missing" }).locator("b");
  if (run.status !== "complete" || (await missing.count()) === 0) return;
  const shown = Number((await missing.innerText()).replaceAll("\u202f", "").replace("−", "-"));
  claim("the chart of missing packets adds up to those lost", shown === run.udp.lost_packets, `${shown} is not ${run.udp.lost_packets}`);
}

/** Every chart has pixels of several colours in its middle. */
async function painted(page, theme) {
  const charts = await page.evaluate(() =>
    [...document.querySelectorAll("figure.panel:has(canvas)")].map((figure) => {
      const canvas = figure.querySelector("canvas");
      const { width, height } = canvas;
      // Read from a copy: reading a page's own canvas back makes the browser warn, and draws differently from then on.
      const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const data = copy.getImageData(0, 0, width, height).data;
      const seen = new Set();
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] > 200) seen.add((data[i] >> 4) * 256 + (data[i + 1] >> 4) * 16 + (data[i + 2] >> 4));
      }
      return { id: figure.id, width, height, colors: seen.size };
    }),
  );
  for (const chart of charts) claim(`${chart.id} is drawn (${theme})`, chart.width > 200 && chart.height > 30 && chart.colors >= 3, JSON.stringify(chart));
}

/** Text stands out from what is behind it: 4.5 : 1 (WCAG 1.4.3). */
async function readable(page, theme) {
  const weak = await page.evaluate(() => {
    const parse = (color) => {
      const n = color.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
      return { r: n[0], g: n[1], b: n[2], a: n[3] ?? 1 };
    };
    const luminance = ({ r, g, b }) => {
      const f = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
      return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
    };
    const behind = (element) => {
      for (let e = element; e; e = e.parentElement) {
        const color = parse(getComputedStyle(e).backgroundColor);
        if (color.a > 0.99) return color;
      }
      return { r: 255, g: 255, b: 255 };
    };
    const out = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const element = walk.currentNode.parentElement;
      if (!walk.currentNode.data.trim() || !element.checkVisibility() || element.closest("script, option, noscript")) continue;
      const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(behind(element))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < 4.5) out.push(`${element.className || element.tagName} "${walk.currentNode.data.slice(0, 20)}" ${ratio.toFixed(2)}`);
    }
    return [...new Set(out)];
  });
  claim(`text is readable (${theme})`, weak.length === 0, weak.slice(0, 5).join("; "));
}

/** The button overrides the system's theme, on the page and on the canvases. */
async function toggled(page) {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await paper();
  const button = page.getByRole("button", { name: "light / dark" });
  await button.click();
  claim("the button changes the theme", (await paper()) !== before);
  await settled(page);
  await painted(page, "toggled");
  await button.click();
  claim("and changes it back", (await paper()) === before);
}

async function keyboard(page) {
  if ((await page.locator("#timeline").count()) === 0) return;
  const range = () => page.evaluate(() => [document.getElementById("timeline").timeline.from, document.getElementById("timeline").timeline.to]);
  const chartRange = () => page.evaluate(() => document.querySelector("output.range").textContent);
  const span = ([a, b]) => b - a;
  await page.locator("#timeline").focus();
  const whole = await range();
  const wholeText = await chartRange();
  await page.keyboard.press("+");
  await settled(page);
  const zoomed = await range();
  claim("+ zooms in", span(zoomed) < span(whole) * 0.6, `${whole} to ${zoomed}`);
  claim("the range shown follows", (await chartRange()) !== wholeText);
  await page.keyboard.press("ArrowRight");
  await settled(page);
  claim("the right arrow goes later", (await range())[0] > zoomed[0]);
  await page.keyboard.press("ArrowLeft");
  await settled(page);
  claim("the left arrow goes back", Math.abs((await range())[0] - zoomed[0]) < 1e-6);
  for (let i = 0; i < 20; i++) await page.keyboard.press("+");
  await settled(page);
  const step = await page.evaluate(() => document.getElementById("timeline").timeline.step);
  claim("zoom ends at a few readings", span(await range()) <= step * 6, String(await range()));
  await page.keyboard.press("]");
  await settled(page);
  claim("the legend shows values at the cursor", (await page.locator("#timeline figure.panel:has(canvas) .legend").first().innerText()).includes("at cursor"));
  await picture(page, "zoomed");
  await page.keyboard.press("Escape");
  await settled(page);
  claim("Escape shows the whole test again", Math.abs(span(await range()) - span(whole)) < 1e-9);
}

async function dragging(page, run) {
  const over = page.locator("#chart-throughput .u-over");
  if ((await over.count()) === 0) return;
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  const range = () => page.evaluate(() => [document.getElementById("timeline").timeline.from, document.getElementById("timeline").timeline.to]);
  const whole = await range();
  await page.mouse.move(box.x + box.width * 0.25, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, box.y + 40, { steps: 5 });
  await page.mouse.up();
  await settled(page);
  const [from, to] = await range();
  const length = whole[1] - whole[0];
  claim("dragging zooms to what was drawn", Math.abs(from - (whole[0] + length * 0.25)) < length * 0.01 && Math.abs(to - (whole[0] + length * 0.75)) < length * 0.01, `${from} ${to}`);
  const strip = page.locator("#chart-cpu-client canvas");
  const busy = run.host_series?.client?.samples.some((s) => s.cores.some((core) => core.softirq > 0));
  if (busy && (await strip.count()) > 0) {
    await strip.scrollIntoViewIfNeeded();
    const area = await strip.boundingBox();
    await page.mouse.move(area.x + area.width / 2, area.y + 20);
    await settled(page);
    claim("the CPU strip shows its values", (await page.locator("#chart-cpu-client .tip").innerText()).includes("softirq"));
    await picture(page, "tip");
  }
  await over.scrollIntoViewIfNeeded();
  const again = await over.boundingBox();
  await page.mouse.dblclick(again.x + again.width / 2, again.y + 40);
  await settled(page);
  claim("a double click shows the whole test", Math.abs((await range())[1] - whole[1]) < 1e-9);
  await page.mouse.move(2, 2);
}

async function fits(page, width) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  claim(`nothing sticks out at ${width} pixels`, wide <= width, `${wide} wide`);
}

async function printed(page) {
  await page.emulateMedia({ colorScheme: "dark" });
  await settled(page);
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await settled(page);
  const look = await page.evaluate(() => ({
    paper: getComputedStyle(document.documentElement).backgroundColor,
    buttons: [...document.querySelectorAll(".top button")].some((b) => b.checkVisibility()),
    widest: Math.max(0, ...[...document.querySelectorAll("figure canvas")].map((c) => c.getBoundingClientRect().width)),
  }));
  claim("paper is white", look.paper === "rgb(255, 255, 255)", look.paper);
  claim("no buttons on paper", !look.buttons);
  claim("charts fit the paper", look.widest <= 700, String(look.widest));
  await painted(page, "print");
  if (pictures) await page.pdf({ path: join(pictures, `${current}.pdf`), format: "A4", printBackground: false });
  await page.emulateMedia({ media: "screen", colorScheme: "light" });
  await settled(page);
  // Of charts side by side, both.
  const width = await page.evaluate(() => {
    const first = document.querySelector("figure canvas");
    return [...(first?.closest(".chartrow")?.querySelectorAll("canvas") ?? [first])].reduce((sum, c) => sum + (c?.getBoundingClientRect().width ?? 1200), 0);
  });
  claim("charts are wide again on the screen", width > 1000, String(width));
}

function withoutBlobs(document) {
  for (const run of document.flows ? document.flows.map((f) => f.run) : [document]) {
    if (run?.streams) withoutBlobsOf(run);
  }
  return document;
}

function withoutBlobsOf(run) {
  for (const stream of run.streams) {
    for (const end of [stream.sender, stream.receiver]) for (const sample of end?.samples ?? []) delete sample.tcp_info_raw;
  }
}

/** Equal but for fields that are null on one side and missing on the other, which mean the same. */
function same(a, b) {
  return firstDifference(a, b) === "";
}

function firstDifference(a, b, path = "") {
  if (a === b || (a ?? null) === (b ?? null)) return "";
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return `${path}: ${a} is ${b}`;
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const found = firstDifference(a[key], b[key], `${path}.${key}`);
    if (found) return found;
  }
  return "";
}

function around(text, word) {
  const at = text.indexOf(word);
  return at < 0 ? "" : JSON.stringify(text.slice(Math.max(0, at - 40), at + 40));
}
