import type { Collation } from '../bson/collation.js';
import { firstKey, getField, isDocument, type Document } from '../bson/document.js';
import { badValue, mongoError } from '../errors.js';
import { compileFilter, type Filter } from '../query/filter.js';
import { compileJsonSchema } from '../query/json-schema.js';
import type { CommandContext } from '../server/command.js';
import type { Collection } from '../storage/collection.js';
import { readCollation } from './arguments.js';

/**
 * A check of documents before they are stored, with the document that an update replaces. Errors of the check: 121, and 2 for
 * a measurement without its time.
 */
export type DocumentCheck = (document: Document, before?: Document) => void;

/** A filter of documents that belong to no collection, or to one whose indexes do not count. */
export function plainFilter(filter: Document, ctx: CommandContext, collation?: Collation): Filter {
  const { operation, now, clusterTime } = ctx;
  return compileFilter(filter, { tick: operation.tick, now, clusterTime, ...(collation && { collation }) });
}

/** The collection's validator as a check; nothing to check when it has none or the client bypasses it. */
export function documentCheck(ctx: CommandContext, collection: Collection, bypass: boolean): DocumentCheck {
  const { validator, validationAction, validationLevel, timeseries } = collection.options;
  if (isDocument(timeseries)) return (document) => requireTime(document, String(timeseries['timeField']));
  if (bypass || !isDocument(validator) || firstKey(validator) === undefined) return () => {};
  if (validationAction === 'warn' || validationLevel === 'off') return () => {};
  const collation = readCollation({}, collection.options);
  const filter = plainFilter(validator, ctx, collation);
  return (document, before) => {
    if (filter.matches(document)) return;
    // A document that was invalid before may stay so.
    if (validationLevel === 'moderate' && before && !filter.matches(before)) return;
    throw mongoError(121, 'Document failed validation', {
      errInfo: { failingDocumentId: document['_id'], details: failureDetails(validator, document) },
    });
  };
}

/** What the document does not satisfy: for a `$jsonSchema` rule by rule, otherwise the filter as a whole. */
function failureDetails(validator: Document, document: Document): Document {
  const operatorName = firstKey(validator) ?? '';
  const schema = getField(validator, '$jsonSchema');
  if (Object.keys(validator).length > 1 || !isDocument(schema)) {
    return { operatorName, specifiedAs: validator, reason: 'the document does not match the validator' };
  }
  const { title, description } = schema;
  return {
    operatorName,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    schemaRulesNotSatisfied: compileJsonSchema(schema).failures(document),
  };
}

function requireTime(document: Document, field: string): void {
  if (getField(document, field) instanceof Date) return;
  throw badValue(`'${field}' must be present and contain a valid BSON UTC datetime value`);
}
