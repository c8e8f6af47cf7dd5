import { type Document, getField, isDocument } from '../bson/document.js';
import { badValue, searchFault } from '../errors.js';
import { toDouble } from '../bson/number.js';
const SIMILARITIES = ['cosine', 'dotProduct', 'euclidean'] as const;
export type Similarity = (typeof SIMILARITIES)[number];

/** What a vector index says of one path. */
export interface VectorField {
  readonly path: string;
  readonly dimensions: number;
  readonly similarity: Similarity;
}

/** A search index as it was declared. Nothing is built: every search reads the whole collection. */
export interface SearchIndex {
  readonly id: string;
  readonly name: string;
  readonly type: 'search' | 'vectorSearch';
  readonly definition: Document;
  readonly vectors: readonly VectorField[];
  /** Paths that a vector search may filter by. */
  readonly filters: readonly unknown[];
}

/** Errors: 2 for a definition that could not be one of MongoDB's. */
export function readSearchIndex(spec: Document, id: string): SearchIndex {
  const type = getField(spec, 'type') ?? 'search';
  if (type !== 'search' && type !== 'vectorSearch')
    throw badValue('the type of a search index is search or vectorSearch');
  const name = getField(spec, 'name') ?? 'default';
  if (typeof name !== 'string' || name === '') throw badValue('the name of a search index is a string');
  const definition = getField(spec, 'definition');
  if (!isDocument(definition)) throw badValue('a search index needs a definition');
  const fields = type === 'vectorSearch' ? fieldsOf(definition) : [];
  const filters = fields.filter((field) => getField(field, 'type') === 'filter');
  return {
    id,
    name,
    type,
    definition,
    vectors: vectorFields(fields),
    filters: filters.map(({ path }) => path),
  };
}

function fieldsOf(definition: Document): Document[] {
  const fields = getField(definition, 'fields');
  if (!Array.isArray(fields) || !fields.every(isDocument))
    throw badValue('a vector index needs a list of fields');
  if (getField(definition, 'storedSource') === true)
    throw searchFault('the stored source of a vector index names what it includes or excludes');
  return fields;
}

function vectorFields(fields: readonly Document[]): VectorField[] {
  return fields
    .filter((field) => getField(field, 'type') !== 'filter')
    .map((field) => {
      const path = getField(field, 'path');
      const dimensions = toDouble(getField(field, 'numDimensions'));
      const similarity = SIMILARITIES.find((known) => known === getField(field, 'similarity'));
      if (getField(field, 'type') !== 'vector' || typeof path !== 'string' || !similarity)
        throw badValue(`a vector field needs type, path and similarity: ${SIMILARITIES.join(', ')}`);
      if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > 8192)
        throw badValue('numDimensions must be between 1 and 8192');
      return { path, dimensions, similarity };
    });
}
