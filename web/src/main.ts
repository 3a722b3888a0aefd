// Draws the document that stands in the page.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { auditPage } from "./audit/page";
import type { AuditDocument, FiguresDocument, LabDocument, RunDocument, TraceComparison, TraceDocument, WatchDocument } from "./document";
import { append, type Child } from "./dom";
import { figuresPage } from "./figures/page";
import { labPage } from "./lab/page";
import { runPage } from "./run";
import { saveJson } from "./save";
import { watchPrint, watchSystem } from "./theme";
import { comparisonPage, tracePage } from "./trace/page";
import { unpackDeep, unpackDocument, unpackLab } from "./unpack";
import { watchPage } from "./watch/page";

type Document = AuditDocument | FiguresDocument | RunDocument | LabDocument | TraceDocument | TraceComparison | WatchDocument;

function main(): void {
  const root = document.getElementById("report");
  const source = document.getElementById("document")?.textContent ?? "";
  if (!root) return;
  append(root, page(JSON.parse(source) as Document));
  watchSystem();
  watchPrint();
}

function page(read: Document): Child[] {
  if (isLab(read)) {
    const lab = unpackLab(read);
    return labPage(lab, () => saveJson(lab, lab.scenario.name));
  }
  if (isAudit(read)) return auditPage(read, () => saveJson(read, read.hostname));
  if (isWatch(read)) return watchPage(read, () => saveJson(read, read.hostname || "watch"));
  if (isFigures(read)) {
    const figures = unpackDeep(read) as FiguresDocument;
    return figuresPage(figures, () => saveJson(figures, figures.title));
  }
  if (isTrace(read)) {
    const trace = unpackDeep(read) as TraceDocument;
    return tracePage(trace, () => saveJson(trace, trace.capture.file.split("/").at(-1) ?? "trace"));
  }
  if (isComparison(read)) {
    const both = unpackDeep(read) as TraceComparison;
    return comparisonPage(both, () => saveJson(both, "trace-comparison"));
  }
  const run = unpackDocument(read);
  return runPage(run, () => saveJson(run, run.id));
}

const isAudit = (read: Document): read is AuditDocument => read.schema.startsWith("landspeed.audit/");
const isFigures = (read: Document): read is FiguresDocument => read.schema.startsWith("landspeed.figures/");
const isLab = (read: Document): read is LabDocument => read.schema.startsWith("landspeed.lab/");
const isWatch = (read: Document): read is WatchDocument => read.schema.startsWith("landspeed.watch/");
const isTrace = (read: Document): read is TraceDocument => read.schema.startsWith("landspeed.trace/");
const isComparison = (read: Document): read is TraceComparison => read.schema.startsWith("landspeed.tracecomparison/");

main();
