import { isDocument, setField, type Document } from '../bson/document.js';
import { identical } from '../bson/identical.js';

/** What a change event says about an update. */
interface UpdateDescription {
  readonly updatedFields: Document;
  readonly removedFields: string[];
  readonly truncatedArrays: { field: string; newSize: number }[];
  /** The names and positions of paths that could be read in another way as well. */
  readonly disambiguatedPaths: Document;
}

/** Field names and positions in arrays. */
type Path = readonly (string | number)[];

/** The difference of two versions of a document, by dotted path. */
export function updateDescription(before: Document, after: Document): UpdateDescription {
  const difference: UpdateDescription = {
    updatedFields: {},
    removedFields: [],
    truncatedArrays: [],
    disambiguatedPaths: {},
  };
  compareDocuments(before, after, [], difference);
  return difference;
}

function compareDocuments(before: Document, after: Document, at: Path, difference: UpdateDescription): void {
  for (const key of Object.keys(before)) {
    if (!Object.hasOwn(after, key)) difference.removedFields.push(printPath([...at, key], difference));
  }
  for (const key of Object.keys(after)) {
    const path = [...at, key];
    if (Object.hasOwn(before, key)) compareAt(before[key], after[key], path, difference);
    else setField(difference.updatedFields, printPath(path, difference), after[key]);
  }
}

function compareAt(before: unknown, after: unknown, path: Path, difference: UpdateDescription): void {
  if (identical(before, after)) return;
  if (isDocument(before) && isDocument(after)) {
    if (sameOrder(before, after)) return compareDocuments(before, after, path, difference);
  } else if (Array.isArray(before) && Array.isArray(after) && after.length > 0) {
    return compareArrays(before, after, path, difference);
  }
  setField(difference.updatedFields, printPath(path, difference), after);
}

/** Fields that only moved cannot be described by path, so such a document is reported whole. */
function sameOrder(before: Document, after: Document): boolean {
  const kept = Object.keys(before).filter((key) => Object.hasOwn(after, key));
  const order = Object.keys(after);
  return kept.every((key, i) => order[i] === key);
}

function compareArrays(before: unknown[], after: unknown[], at: Path, difference: UpdateDescription): void {
  for (const [i, item] of after.entries()) {
    const path = [...at, i];
    if (i < before.length) compareAt(before[i], item, path, difference);
    else setField(difference.updatedFields, printPath(path, difference), item);
  }
  if (after.length < before.length)
    difference.truncatedArrays.push({ field: printPath(at, difference), newSize: after.length });
}

function printPath(path: Path, { disambiguatedPaths }: UpdateDescription): string {
  const text = path.join('.');
  const ambiguous = path.some(
    (part, i) => typeof part === 'string' && (part.includes('.') || (i > 0 && /^\d+$/.test(part))),
  );
  if (ambiguous) setField(disambiguatedPaths, text, path);
  return text;
}
