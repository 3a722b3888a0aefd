import type { LabSetDocument } from "../document";
import type { Child } from "../dom";
export function setPage(_set: LabSetDocument, _save: () => void): Child[] { return []; }
