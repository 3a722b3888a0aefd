// Saving what the page holds as a file.

/** Saves a document. */
export function saveJson(document: unknown, name: string): void {
  saveAs(JSON.stringify(document), fileName(name, "json"), "application/json");
}

/** A file's name that is safe wherever it lands, whatever it is made from. */
export function fileName(name: string, extension: string): string {
  const plain = name.replaceAll(/[^\w-]+/g, "-").replaceAll(/^-+|-+$/g, "").slice(0, 40);
  return `landspeed-${plain || "report"}.${extension}`;
}

export function saveAs(text: string, name: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  saveUrl(url, name);
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function saveUrl(url: string, name: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
}
