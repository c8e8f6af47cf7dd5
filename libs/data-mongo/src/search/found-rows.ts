import type { Document } from 'mongodb';
import type { Passage, SearchHit } from '#data';
import { projectionOf, wantedFields } from '../read/row-projection.js';
import { documentToRow } from '../storage/from-storage.js';
import { isPlainObject } from '../storage/own-property.js';
import type { StorageNames } from '../storage/storage-names.js';

/** Beside the columns of a found row; a leading underscore keeps them out of every answer. */
const SCORE = '_i_score';
const HIGHLIGHTS = '_i_highlights';

export interface FoundRequest {
  readonly keys?: readonly string[];
  readonly score: 'searchScore' | 'vectorSearchScore';
  /** Wire path of the passages to bring along. */
  readonly highlight?: string;
}

/** The stages after rows are chosen: what the search knows of each, then its columns. */
export function foundStages({ keys, score, highlight }: FoundRequest, names: StorageNames): Document[] {
  const metadata = {
    [SCORE]: { $meta: score },
    ...(highlight !== undefined && { [HIGHLIGHTS]: { $meta: 'searchHighlights' } }),
  };
  const projection = projectionOf(keys, names);
  const inclusion = projection && keys !== undefined;
  return [
    { $addFields: metadata },
    ...(projection
      ? [{ $project: inclusion ? { ...projection, [SCORE]: 1, [HIGHLIGHTS]: 1 } : projection }]
      : []),
  ];
}

export function foundRow(document: Document, request: FoundRequest, names: StorageNames): SearchHit {
  const { [SCORE]: score, [HIGHLIGHTS]: passages, ...columns } = document;
  return {
    row: documentToRow(columns, names, wantedFields(request.keys)),
    score: Number(score ?? 0),
    highlights: request.highlight === undefined ? [] : passagesOf(passages, request.highlight, names),
  };
}

/** Only of the path that was asked for, whatever came. */
function passagesOf(value: unknown, path: string, names: StorageNames): Passage[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isPlainObject).flatMap((passage) => {
    const { texts } = passage;
    if (passage['path'] !== names.path(path) || !Array.isArray(texts)) return [];
    return [
      {
        path,
        texts: texts.filter(isPlainObject).map((text) => ({
          value: String(text['value']),
          type: text['type'] === 'hit' ? ('hit' as const) : ('text' as const),
        })),
      },
    ];
  });
}
