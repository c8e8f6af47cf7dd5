import type { Document } from '../bson/document.js';
import { mongoError, notImplemented } from '../errors.js';
import type { QueryContext } from './context.js';

const FOUND = new Set(['textScore', 'searchScore', 'vectorSearchScore', 'searchHighlights']);
const NEAR = new Set(['geoNearDistance', 'geoNearPoint']);
const MISSING = new Set(['sortKey', 'indexKey', 'recordId', 'randVal']);

/** What `{$meta: name}` reads of a document. Errors: 40218 where no search gives it, 238 for what this server has not, else 31138. */
export function readMetadata(name: string, ctx: QueryContext): (doc: Document) => unknown {
  const read = name === 'textScore' ? ctx.textScore : ctx.found?.read(name);
  if (read) return read;
  if (NEAR.has(name)) return (doc) => ctx.metadata?.get(doc)?.[name];
  if (MISSING.has(name)) throw notImplemented(`the expression $meta: "${name}"`);
  throw FOUND.has(name)
    ? mongoError(40218, `query requires ${name} metadata, but it is not available`)
    : mongoError(31138, `Unsupported argument to $meta: ${name}`);
}
