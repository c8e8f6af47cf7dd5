import type { Document } from '../bson/document.js';
import type { CommandContext } from '../server/command.js';
import { drain } from '../server/drain.js';
import type { StoredDocument } from '../storage/stored-document.js';
import { readCollation } from './arguments.js';
import { Selection } from './selection.js';
import { writeTarget } from './write-target.js';
import { mongoError } from '../errors.js';

/** One delete as delete, findAndModify and bulkWrite have it. */
export interface DeleteStatement {
  readonly filter: Document;
  readonly multi: boolean;
  readonly sort?: Document | undefined;
  readonly hint?: unknown;
  /** Where the statement's own collation stands, if it has one. */
  readonly place: Document;
  readonly variables?: Document | undefined;
}

const MAX_ATTEMPTS = 100;

/** Deletes and gives the number of deleted documents and the last of them. */
export async function runDelete(
  ctx: CommandContext,
  db: string,
  coll: string,
  statement: DeleteStatement,
): Promise<{ deleted: number; last?: StoredDocument }> {
  const collection = writeTarget(ctx, db, coll, 'change');
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const selection = new Selection(ctx, collection, {
      filter: statement.filter,
      sort: statement.sort,
      hint: statement.hint,
      limit: statement.multi ? 0 : 1,
      collation: readCollation(statement.place, collection?.options),
      variables: statement.variables,
    });
    if (!collection) return { deleted: 0 };
    let deleted = 0;
    let last: StoredDocument | undefined;
    let outdated = false;
    await drain(ctx.operation, await selection.rows(), (found) => {
      const current = collection.record(found.recordId);
      if (!current || (current !== found && !selection.filter.matches(current.document))) {
        outdated = true;
        return;
      }
      ctx.workspace.remove(collection, current);
      deleted += 1;
      last = current;
    });
    if (outdated && !statement.multi) continue;
    return last ? { deleted, last } : { deleted };
  }
  throw mongoError(112, 'the documents of this write kept changing; please retry it');
}
