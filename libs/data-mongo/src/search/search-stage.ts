import type { Document } from 'mongodb';
import type { TextMatch } from '#data';
import type { StorageNames } from '../storage/storage-names.js';

/** The operator of a `$search`, in storage paths. */
export function searchOperator(match: TextMatch, names: StorageNames): Document {
  switch (match.kind) {
    case 'text':
      return { text: { query: match.query, path: match.paths.map((path) => names.path(path)) } };
    case 'autocomplete':
      return {
        autocomplete: {
          query: match.query,
          path: names.path(match.path),
          ...(match.fuzzy && { fuzzy: { maxEdits: 1 } }),
        },
      };
    case 'everything':
      return { exists: { path: '_id' } };
  }
}
