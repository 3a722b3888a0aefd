// Checks packaging/grafana/landspeed.json against the schema that Grafana publishes as types (@grafana/schema).
//
//   node dashboard.mjs     (`npm run check` does it too)
//
// The dashboard becomes a TypeScript literal, so that the compiler rejects a missing, misspelled or excess property and a
// value outside an enumeration. Panels are checked with the options of their type.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** TypeScript source that compiles if the dashboard follows the schema. */
function source(dashboard) {
  const text = JSON.stringify(dashboard);
  return `
import type { Dashboard, Panel, RowPanel } from "${here("node_modules/@grafana/schema/dist/types/raw/dashboard/x/types.gen")}";
import type * as timeseries from "${here("node_modules/@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen")}";
import type * as stat from "${here("node_modules/@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen")}";

/** JSON of a type: enumerations as their values. */
type Json<T> = T extends string ? \`\${T}\`
  : T extends number ? (\`\${T}\` extends \`\${infer N extends number}\` ? N : number)
  : T extends readonly (infer E)[] ? Json<E>[]
  : T extends object ? { [K in keyof T]: Json<T[K]> }
  : T;

type Target = { refId: string; datasource: { type: "prometheus"; uid: string }; expr: string; legendFormat: string; editorMode: "code"; range: true };
type Defaults<Custom> = Omit<Json<NonNullable<Panel["fieldConfig"]>["defaults"]>, "custom"> & (Custom extends null ? unknown : { custom: Custom });
type Of<Type extends string, Options, Custom> = Omit<Json<Panel>, "type" | "options" | "targets" | "fieldConfig"> & {
  type: Type; options: Options; targets: Target[]; fieldConfig: { defaults: Defaults<Custom>; overrides: [] };
};
type Typed = Json<RowPanel> | Of<"timeseries", Json<timeseries.Options>, Json<timeseries.FieldConfig>> | Of<"stat", Json<stat.Options>, null>;

export const dashboard: Omit<Json<Dashboard>, "panels"> & { panels: Typed[] } = ${text};
`;
}

/** Messages of the compiler; empty if there are none. */
function errors(dashboard) {
  const directory = here("node_modules/.cache/dashboard");
  mkdirSync(directory, { recursive: true });
  try {
    writeFileSync(`${directory}/dashboard.ts`, source(dashboard));
    const options = { strict: true, noEmit: true, skipLibCheck: true, module: "ESNext", moduleResolution: "bundler", target: "ES2022", types: [] };
    writeFileSync(`${directory}/tsconfig.json`, JSON.stringify({ compilerOptions: options, files: ["dashboard.ts"] }));
    execFileSync(here("node_modules/.bin/tsc"), ["-p", directory], { encoding: "utf8" });
    return "";
  } catch (failed) {
    return failed.stdout || String(failed);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function check(holds, message) {
  if (!holds) {
    console.error(`dashboard: ${message}`);
    process.exit(1);
  }
}

const read = () => JSON.parse(readFileSync(here("../packaging/grafana/landspeed.json"), "utf8"));
const found = errors(read());
check(found === "", found);

// The check must reject deliberate mistakes.
const mistakes = [
  ["a misspelled property", (dashboard) => (dashboard.panels[1].titel = "x")],
  ["an unknown value", (dashboard) => (dashboard.panels.find((panel) => panel.type === "timeseries").options.legend.placement = "left")],
  ["a missing property", (dashboard) => delete dashboard.schemaVersion],
];
for (const [what, make] of mistakes) {
  const wrong = read();
  make(wrong);
  check(errors(wrong) !== "", `the schema does not reject ${what}`);
}

const { panels } = read();
check(new Set(panels.map((panel) => panel.id)).size === panels.length, "two panels have one id");
for (const panel of panels) {
  const { x, y, w, h } = panel.gridPos;
  check(x + w <= 24, `${panel.title} is wider than the grid`);
  const covers = (other) => other !== panel && other.gridPos.x < x + w && x < other.gridPos.x + other.gridPos.w && other.gridPos.y < y + h && y < other.gridPos.y + other.gridPos.h;
  check(!panels.some(covers), `${panel.title} covers another panel`);
}
console.log(`dashboard: ${panels.length} panels follow the schema`);
