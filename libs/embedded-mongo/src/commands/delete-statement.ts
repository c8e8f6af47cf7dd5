import type { CommandContext } from '../server/command.js';
import type { StoredDocument } from '../storage/stored-document.js';
import {
  writeTarget,
  visitWritten,
  MAX_ATTEMPTS,
  type WriteStatement,
  selectWritten,
  changedMeanwhile,
} from './write-target.js';

/** Deletes and gives the number of deleted documents and the last of them. */
export async function runDelete(
  ctx: CommandContext,
  db: string,
  coll: string,
  statement: WriteStatement,
): Promise<{ deleted: number; last?: StoredDocument }> {
  const collection = writeTarget(ctx, db, coll, 'change');
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const selection = selectWritten(ctx, collection, statement);
    if (!collection) return { deleted: 0 };
    let deleted = 0;
    let last: StoredDocument | undefined;
    const done = await visitWritten(ctx, selection, (current) => {
      ctx.workspace.remove(collection, current);
      deleted += 1;
      last = current;
    });
    if (done) return last ? { deleted, last } : { deleted };
  }
  throw changedMeanwhile();
}
