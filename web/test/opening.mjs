// Measures how long a report takes to open: from the start of the navigation until its last figure is on the screen.
//
//   node web/test/opening.mjs REPORT.html [TIMES]
//
// CHROMIUM names the browser (default /usr/bin/chromium). The browser starts once; each opening is a new page.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [report, times = "5"] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const taken = [];
for (let i = 0; i < Number(times); i++) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(pathToFileURL(resolve(report)).href);
  // Drawn and painted: two frames after the script ended. `performance.now()` counts from the start of the navigation.
  taken.push(await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))));
  await page.close();
}
await browser.close();
taken.sort((a, b) => a - b);
const text = (ms) => `${(ms / 1000).toFixed(2)} s`;
console.log(`${report}: median ${text(taken[Math.floor(taken.length / 2)])}, ${text(taken[0])} to ${text(taken.at(-1))}, ${taken.length} openings`);
