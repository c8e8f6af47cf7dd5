import { isDocument, setField, type Document } from '../bson/document.js';
import { identical } from '../bson/identical.js';

/** What a change event says about an update. */
interface UpdateDescription {
  readonly updatedFields: Document;
  readonly removedFields: string[];
  readonly truncatedArrays: { field: string; newSize: number }[];
}

/** The difference of two versions of a document, by dotted path. */
export function updateDescription(before: Document, after: Document): UpdateDescription {
  const difference: UpdateDescription = { updatedFields: {}, removedFields: [], truncatedArrays: [] };
  compareDocuments(before, after, '', difference);
  return difference;
}

function compareDocuments(
  before: Document,
  after: Document,
  prefix: string,
  difference: UpdateDescription,
): void {
  for (const key of Object.keys(before)) {
    if (!Object.hasOwn(after, key)) difference.removedFields.push(prefix + key);
  }
  for (const key of Object.keys(after)) {
    if (!Object.hasOwn(before, key)) setField(difference.updatedFields, prefix + key, after[key]);
    else compareAt(before[key], after[key], prefix + key, difference);
  }
}

function compareAt(before: unknown, after: unknown, path: string, difference: UpdateDescription): void {
  if (identical(before, after)) return;
  if (isDocument(before) && isDocument(after)) {
    if (sameOrder(before, after)) return compareDocuments(before, after, `${path}.`, difference);
  } else if (Array.isArray(before) && Array.isArray(after) && after.length > 0) {
    return compareArrays(before, after, path, difference);
  }
  setField(difference.updatedFields, path, after);
}

/** Fields that only moved cannot be described by path, so such a document is reported whole. */
function sameOrder(before: Document, after: Document): boolean {
  const kept = Object.keys(before).filter((key) => Object.hasOwn(after, key));
  const order = Object.keys(after);
  return kept.every((key, i) => order[i] === key);
}

function compareArrays(
  before: unknown[],
  after: unknown[],
  path: string,
  difference: UpdateDescription,
): void {
  for (const [i, item] of after.entries()) {
    if (i >= before.length) setField(difference.updatedFields, `${path}.${i}`, item);
    else compareAt(before[i], item, `${path}.${i}`, difference);
  }
  if (after.length < before.length) difference.truncatedArrays.push({ field: path, newSize: after.length });
}
