// What a page of figures promises.
import { readFileSync } from "node:fs";

/** Figures, their values under the pointer and the arrow keys, legends, files. */
export async function figuresPageClaims(page, document, { claim, settled }) {
  const text = plain(await page.evaluate(() => document.body.innerText));
  claim("the answer is the first sentence", plain(await page.locator("p.conclusion").innerText()) === plain(document.answer));
  for (const note of document.notes) claim("every note is there", text.includes(plain(note.text)), note.text);
  claim("every figure is drawn", (await page.locator("figure.figurepanel svg.figure").count()) === document.figures.length);
  for (const figure of document.figures) await figureClaims(page, figure, { claim, settled });
  const finite = await page.evaluate(() =>
    [...document.querySelectorAll("svg.figure *")].every((e) => ["x", "y", "cx", "cy", "x1", "y1", "width", "height", "d"].every((a) => !/NaN|Infinity|undefined/.test(e.getAttribute(a) ?? ""))),
  );
  claim("every mark has a place", finite);
  await files(page, document, claim);
}

async function figureClaims(page, figure, { claim, settled }) {
  const panel = page.locator(`#figure-${figure.id}`);
  claim(`${figure.id} states how many runs it is from`, figure.caption.includes("n = ") || /interval|No usable|No value/.test(figure.caption), figure.caption);
  const { chart, grid, rows } = figure.drawing;
  const shown = (selector) => panel.locator(selector).count();
  if (chart) {
    const lines = chart.panels.flatMap((p) => p.lines);
    const points = lines.filter((l) => l.x.length <= 60).flatMap((l) => l.y).filter((v) => typeof v === "number").length;
    claim(`${figure.id} has a point for each value`, (await shown("circle.at")) === points, `${await shown("circle.at")} is not ${points}`);
    const joined = lines.filter((l) => l.joined && l.y.some((v) => typeof v === "number")).length;
    claim(`${figure.id} has its lines`, (await shown("path.line")) === joined, `${await shown("path.line")} is not ${joined}`);
    const buttons = panel.locator(".legend button");
    if ((await buttons.count()) > 1) {
      await buttons.first().click();
      await settled(page);
      claim(`the legend of ${figure.id} hides a line`, (await shown("path.line")) + (await shown("circle.at")) < joined + points);
      await buttons.first().click();
      await settled(page);
      claim(`and shows it again (${figure.id})`, (await shown("circle.at")) === points);
    }
  }
  if (grid) {
    const cells = await panel.evaluate((e) => [...e.querySelectorAll("path.cellfill")].reduce((n, p) => n + p.getAttribute("d").split("M").length - 1, 0));
    const wanted = grid.cells.filter((v) => typeof v === "number").length + (grid.missing ?? []).length;
    claim(`${figure.id} has every cell, and none that is not part of the design`, cells === wanted, `${cells} is not ${wanted}`);
  }
  if (rows) {
    const marks = (await shown("rect.bar")) + (await shown("circle.at"));
    const wanted = rows.rows.filter((r) => typeof r.to === "number").length;
    claim(`${figure.id} has a mark for each row`, marks === wanted, `${marks} is not ${wanted}`);
    return;
  }
  const plot = panel.locator(".figureplot");
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  await settled(page);
  const first = await panel.locator(".tip").innerText();
  claim(`the arrow keys show a value of ${figure.id}`, first.trim().length > 3);
  await page.keyboard.press("Escape");
  claim(`Escape hides it (${figure.id})`, !(await panel.locator(".tip").isVisible()));
  const box = await plot.boundingBox();
  await plot.scrollIntoViewIfNeeded();
  const { x, y } = (await plot.boundingBox()) ?? box;
  const cell = grid ? await panel.locator("path.cellfill").first().boundingBox() : null;
  // Of a grid a cell: the first of its path, which is at the box's top or left.
  await (cell ? page.mouse.move(cell.x + 3, cell.y + 3) : page.mouse.move(x + box.width * 0.45, y + Math.min(box.height * 0.4, 120)));
  await settled(page);
  claim(`the pointer shows a value of ${figure.id}`, await panel.locator(".tip").isVisible());
  await page.mouse.move(2, 2);
}

/** A figure saves as SVG, PNG and CSV. */
async function files(page, document, claim) {
  const figure = document.figures[0];
  if (!figure) return;
  const save = async (what) => {
    const waiting = page.waitForEvent("download");
    await page.locator(`#figure-${figure.id} .files button`, { hasText: what }).click();
    const download = await waiting;
    claim(`the ${what} is named so`, download.suggestedFilename().endsWith(`.${what.toLowerCase()}`), download.suggestedFilename());
    return readFileSync(await download.path());
  };
  const svg = (await save("SVG")).toString();
  claim("the SVG is one file without scripts and references", svg.startsWith("<svg") && !/<script|href=|url\(|class="[^"]*on/.test(svg.replaceAll(/<title>[^<]*<\/title>|<text[^>]*>[^<]*<\/text>|aria-label="[^"]*"/g, "")));
  const parsed = await page.evaluate((text) => new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror") === null, svg);
  claim("the SVG is well-formed", parsed);
  const png = await save("PNG");
  claim("the PNG is a picture", png.length > 2000 && png.subarray(1, 4).toString() === "PNG", String(png.length));
  const csv = (await save("CSV")).toString();
  claim("the CSV has a header and values", csv.startsWith("panel,series,x,value,low,high,runs,unit\r\n") && csv.split("\r\n").length > 2);
}

/** A text without differences of spacing and line ends. */
function plain(text) {
  return text.replaceAll(/[\s\u202f]+/g, " ").replaceAll("\u2212", "-").trim();
}
