// Bundles src/ into dist/, which is committed so that `cargo build` needs no Node.
//
//   node build.mjs            write dist/
//   node build.mjs --check    build again in memory and fail if dist/ differs
//
// dist/*.csp              hashes of the script and the style sheet, for the content security policy
// dist/SOURCES.sha256     what dist/ was built from and what it is (checked by a Rust test, without Node)
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL(".", import.meta.url));
const check = process.argv.includes("--check");

const result = await build({
  absWorkingDir: root,
  entryPoints: [{ in: "src/main.ts", out: "report" }],
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  charset: "ascii",
  legalComments: "none",
  banner: { js: `/* Contains uPlot. ${licence("uplot")} */` },
  outdir: "dist",
  write: false,
  logLevel: "warning",
});

const files = new Map();
for (const file of result.outputFiles) files.set(file.path.replaceAll("\\", "/").split("/").at(-1), file.text);
const script = files.get("report.js");
if (/<\/script|<!--/i.test(script)) throw new Error("the bundle holds text that would end or bend its script element");
if (/<\/style/i.test(files.get("report.css"))) throw new Error("the style sheet holds text that would end its element");
for (const name of ["report.js", "report.css"]) {
  files.set(`${name}.csp`, `sha256-${createHash("sha256").update(files.get(name)).digest("base64")}\n`);
}

const sha256 = (data) => createHash("sha256").update(data).digest("hex");
const lines = sources().map((path) => `${sha256(readFileSync(join(root, path)))}  ${path}`);
for (const [name, text] of [...files].sort()) lines.push(`${sha256(text)}  dist/${name}`);
files.set("SOURCES.sha256", lines.join("\n") + "\n");

const stale = [];
if (check) {
  for (const [name, text] of files) {
    let found = "";
    try {
      found = readFileSync(join(root, "dist", name), "utf8");
    } catch {
      // Missing: reported as stale below.
    }
    if (found !== text) stale.push(`dist/${name} (npm run build)`);
  }
} else {
  mkdirSync(join(root, "dist"), { recursive: true });
  for (const [name, text] of files) writeFileSync(join(root, "dist", name), text);
}
if (stale.length > 0) {
  console.error(`out of date: ${stale.join(", ")}`);
  process.exit(1);
}

/** A package's licence, which asks to go wherever the code goes. */
function licence(name) {
  return readFileSync(join(root, "node_modules", name, "LICENSE"), "utf8").replaceAll(/\s+/g, " ").trim();
}

/** Everything the bundle depends on, in one order everywhere. */
function sources() {
  // Types only, from schema.json.
  const generated = "src/document.ts";
  const found = ["build.mjs", "package.json", "package-lock.json", "schema.json", "schema.mjs", "tsconfig.json"];
  const walk = (directory) => {
    for (const entry of readdirSync(join(root, directory), { withFileTypes: true })) {
      const path = `${directory}/${entry.name}`;
      if (entry.isDirectory()) walk(path);
      else if (path !== generated) found.push(path);
    }
  };
  walk("src");
  return found.sort();
}
