// Building elements. Text only ever enters the page through text nodes and attributes set here, never as markup.

export type Child = Node | string | number | null | undefined | false;

type Attributes = Record<string, string | number | boolean | null | undefined>;

/** An element: `h("td.num", { title: "…" }, "42")`. The name may carry classes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K | `${K}.${string}`,
  attributes?: Attributes | null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [tag, ...classes] = name.split(".") as [K, ...string[]];
  const element = document.createElement(tag);
  if (classes.length > 0) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(key, value === true ? "" : clean(scope === "" ? String(value) : inScope(key, String(value))));
  }
  append(element, children);
  return element;
}

/** An element of a picture: `svg("line", { x1: 0 })`. The name may carry classes. */
export function svg<K extends keyof SVGElementTagNameMap>(
  name: K | `${K}.${string}`,
  attributes?: Attributes | null,
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const [tag, ...classes] = name.split(".") as [K, ...string[]];
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (classes.length > 0) element.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(key, clean(typeof value === "number" ? String(Math.round(value * 100) / 100) : String(value)));
  }
  append(element, children);
  return element;
}

let scope = "";

/** Gives the elements that `make` builds unique identifiers and links: several runs share one page. */
export function scoped<T>(prefix: string, make: () => T): T {
  const before = scope;
  scope = prefix;
  try {
    return make();
  } finally {
    scope = before;
  }
}

function inScope(key: string, value: string): string {
  if (key === "id" || key === "aria-labelledby" || key === "aria-describedby") return scope + value;
  return key === "href" && value.startsWith("#") ? `#${scope}${value.slice(1)}` : value;
}

/** The identifiers of what is in some elements, as they are called within their scope. */
export function identifiers(parts: readonly (Element | null)[]): Set<string> {
  const all = parts.flatMap((part) => [...(part?.querySelectorAll("[id]") ?? [])].map((e) => e.id));
  return new Set(all.map((id) => (id.startsWith(scope) ? id.slice(scope.length) : id)));
}

/** Does what a button, or a link, is for. */
export function button(label: Child, title: string | null, action: (event: MouseEvent) => void): HTMLButtonElement {
  const element = h("button", { type: "button", title }, label);
  element.addEventListener("click", action);
  return element;
}

/** Adds children, leaving out the absent ones. */
export function append(element: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : clean(String(child)));
  }
}

/** Control characters and direction overrides made visible: a document must not be able to reorder the page's text. */
export function clean(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Running text in which `words between backticks` stand as code. */
export function prose(text: string): Child[] {
  return text.split(/`([^`]+)`/).map((part, i) => (i % 2 === 1 ? h("code", { class: part.length < 40 ? "short" : null }, part) : part));
}

/** A document path as code that may break after its dots. */
export function path(text: string): HTMLElement {
  const parts = text.split(/(?<=\.)/);
  return h("code", null, ...parts.flatMap((part, i) => (i === 0 ? [part] : [h("wbr"), part])));
}

/** A section with a heading that can be linked to. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return h("section", { id, "aria-labelledby": `${id}-h` }, h("h2", { id: `${id}-h` }, title), ...children);
}

/** A table with a header row; it scrolls by itself when the page is narrow. */
export function table(
  head: readonly Child[],
  rows: readonly (HTMLTableRowElement | readonly Child[])[],
  options: { class?: string; caption?: string } = {},
): HTMLElement {
  const body = h("tbody");
  for (const row of rows) {
    body.append(row instanceof HTMLTableRowElement ? row : h("tr", null, ...row.map(cell)));
  }
  return h(
    "div.scroll",
    { tabindex: 0, role: "region", "aria-label": options.caption ?? "table" },
    h(
      "table",
      { class: options.class },
      options.caption ? h("caption", null, options.caption) : null,
      head.length > 0 ? h("thead", null, h("tr", null, ...head.map((c) => headCell(c)))) : null,
      body,
    ),
  );
}

/** A cell aligned right, in tabular figures. */
export function num(text: Child, title?: string): HTMLTableCellElement {
  return h("td.num", { title }, text);
}

function cell(child: Child): HTMLTableCellElement {
  return child instanceof HTMLTableCellElement ? child : h("td", null, child);
}

function headCell(child: Child): HTMLTableCellElement {
  return child instanceof HTMLTableCellElement ? child : h("th", { scope: "col" }, child);
}
