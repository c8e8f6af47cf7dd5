import { isDocument, type Document } from '../bson/document.js';
import { mongoError } from '../errors.js';
import { compileFilter } from '../query/filter.js';
import type { CommandContext } from '../server/command.js';
import type { Collection } from '../storage/collection.js';

/** A check of documents before they are stored. Errors of the check: 121. */
export type DocumentCheck = (document: Document) => void;

/** The collection's validator as a check; nothing to check when it has none or the client bypasses it. */
export function documentCheck(ctx: CommandContext, collection: Collection, bypass: boolean): DocumentCheck {
  const { validator, validationAction, validationLevel } = collection.options;
  if (bypass || !isDocument(validator)) return () => {};
  if (validationAction === 'warn' || validationLevel === 'off') return () => {};
  const filter = compileFilter(validator, { tick: ctx.operation.tick, now: ctx.now });
  return (document) => {
    if (filter.matches(document)) return;
    throw mongoError(121, 'Document failed validation', {
      errInfo: {
        failingDocumentId: document['_id'],
        details: { operatorName: Object.keys(validator)[0] ?? '' },
      },
    });
  };
}
