// Takes a picture of a part of a capture's report, for the gallery.
//
//   node web/test/picture.mjs REPORT.html PICTURE.png SELECTOR [from=S] [to=S] [fit=all|data|acks] [on=LABEL] [off=LABEL] [width=PX]
//
// CHROMIUM names the browser (default /usr/bin/chromium).
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [report, picture, selector, ...options] = process.argv.slice(2);
const option = Object.fromEntries(options.map((o) => o.split(/=(.*)/s).slice(0, 2)));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage({ viewport: { width: Number(option.width ?? 1100), height: 900 }, colorScheme: "light" });
const trouble = [];
page.on("pageerror", (e) => trouble.push(e.message));
await page.goto(pathToFileURL(resolve(report)).href);
const settled = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100)))));
await settled();
if (option.from) await page.evaluate(([a, b]) => document.getElementById("timeline").timeline.setRange(a, b), [Number(option.from), Number(option.to)]);
if (option.fit) await page.locator(".toolbar select").selectOption(option.fit);
for (const state of ["on", "off"]) {
  if (!option[state]) continue;
  for (const item of await page.locator(`${selector} .legend button`, { hasText: option[state] }).all()) {
    if ((await item.getAttribute("aria-pressed")) !== String(state === "on")) await item.click();
  }
}
await page.mouse.move(2, 2);
await settled();
await page.locator(selector).first().screenshot({ path: picture });
await browser.close();
if (trouble.length > 0) {
  console.error(trouble.join("\n"));
  process.exit(1);
}
