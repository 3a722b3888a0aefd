// Claims about the page of an audit.

const plain = (text) => text.replaceAll(/\s+/g, " ");
const hostile = (text) => text.includes("<");

export async function auditPageClaims(page, audit, { claim }) {
  const text = plain(await page.evaluate(() => document.body.textContent));
  const peer = audit.peer ?? null;
  const shown = await page.locator("article.finding").count();
  const all = audit.findings.length + (peer?.findings.length ?? 0);
  claim("every finding is shown", shown === all, `${shown} of ${all}`);
  const weighty = audit.findings.filter((f) => f.severity !== "note").length;
  claim("the figure on top counts what weighs", (await page.locator("#count").textContent()) === String(weighty));
  const order = await page.evaluate(() => [...document.querySelectorAll("#findings article")].map((a) => ["critical", "major", "minor", "note"].findIndex((w) => a.classList.contains(w))));
  claim("the worst stands first", order.every((w, i) => i === 0 || order[i - 1] <= w), order.join());
  for (const f of audit.findings) {
    if (hostile(f.observed)) continue;
    for (const part of [f.title, f.observed, f.recommended, f.why, f.effect, f.by_hand, f.source]) claim(`${f.code} says "${part}"`, text.includes(plain(part)));
  }
  const changes = await page.locator("#findings article .changes li").count();
  claim("every change is there", changes === audit.findings.reduce((n, f) => n + f.changes.length, 0), String(changes));
  const rows = await page.locator("#answers tbody tr").count();
  claim("every other answer is there", rows === audit.passed.length + audit.not_applicable.length + audit.unknown.length, String(rows));
  if (peer) claim("every difference is there", (await page.locator("#differences tbody tr").count()) === audit.differences.length);
  if (audit.findings.length === 0) claim("a clean host is reported as clean", text.includes("every setting that could be read is as it should be"));
}
