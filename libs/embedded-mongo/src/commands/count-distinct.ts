import { toKey } from '../bson/key-string.js';
import { compareValues } from '../bson/compare.js';
import { isDocument, type Document } from '../bson/document.js';
import type { CommandContext, CommandHandler } from '../server/command.js';
import { Reader } from '../server/cursors.js';
import { collect, drain } from '../server/drain.js';
import {
  readCollation,
  collectionName,
  documentOr,
  readHint,
  requireFields,
  optionalNumber,
  optionalText,
  optionalCount,
} from './arguments.js';
import { PipelineRun } from './pipeline-run.js';
import { Selection, type SelectionSpec } from './selection.js';
import { countStages, findStages } from './views.js';
import { extractKeys } from '../bson/index-keys.js';
import { badValue, mongoError } from '../errors.js';
import { MAX_DOCUMENT_BYTES } from '../wire/limits.js';
import { encodeDocument } from '../wire/encode.js';

/** The selection of a count command, also used by explain. */
export function countSpec(command: Document, collectionOptions: Document | undefined): SelectionSpec {
  return {
    filter: documentOr(command, 'query'),
    skip: optionalCount(command, 'skip'),
    // A negative limit means the same as a positive one.
    limit: Math.abs(Math.trunc(optionalNumber(command, 'limit') ?? 0)),
    hint: readHint(command),
    collation: readCollation(command, collectionOptions),
  };
}

export const count: CommandHandler = async (command, ctx) => {
  const name = collectionName(command, 'count');
  const collection = ctx.workspace.find(ctx.db, name);
  const spec = countSpec(command, collection?.options);
  if (collection?.view) {
    const [counted] = await viewRows(ctx, name, command, countStages(command));
    return { n: counted?.['n'] ?? 0 };
  }
  if (Object.keys(spec.filter).length === 0 && !spec.skip && !spec.limit && spec.hint === undefined)
    return { n: collection?.count ?? 0 };
  let n = 0;
  await drain(ctx.operation, await new Selection(ctx, collection, spec).rows(), () => void (n += 1));
  return { n };
};

/** What a view shows to a command that answers without a cursor. */
async function viewRows(
  ctx: CommandContext,
  name: string,
  command: Document,
  stages: Document[],
): Promise<Document[]> {
  const rows = await new PipelineRun(ctx, name, command, new Reader(ctx.operation)).rows(stages);
  return collect(ctx.operation, rows.documents);
}

/** The selection of a distinct command, also used by explain. */
export function distinctSpec(command: Document, collectionOptions: Document | undefined): SelectionSpec {
  return {
    filter: documentOr(command, 'query'),
    hint: readHint(command),
    collation: readCollation(command, collectionOptions),
  };
}

export const distinct: CommandHandler = async (command, ctx) => {
  const name = collectionName(command, 'distinct');
  const collection = ctx.workspace.find(ctx.db, name);
  const spec = distinctSpec(command, collection?.options);
  requireFields(command, 'distinct', ['key']);
  const key = optionalText(command, 'key') ?? '';
  if (key === '') throw badValue('the key of distinct must not be empty');
  const path = [key.split('.')];
  const values = new Map<string, unknown>();
  let bytes = 0;
  const visit = (document: Document): void => {
    for (const [value] of extractKeys(document, path).keys) {
      if (value === undefined || (value === null && !hasNull(document, path[0] ?? []))) continue;
      const id = toKey(value, spec.collation);
      if (values.has(id)) continue;
      values.set(id, value);
      bytes += encodeDocument({ v: value }).length;
      if (bytes > MAX_DOCUMENT_BYTES) throw mongoError(17217, 'distinct too big, 16mb cap');
    }
  };
  if (collection?.view) {
    (await viewRows(ctx, name, command, findStages({ filter: spec.filter }))).forEach(visit);
  } else {
    const rows = await new Selection(ctx, collection, spec).rows();
    await drain(ctx.operation, rows, ({ document }) => visit(document));
  }
  return { values: [...values.values()].sort((a, b) => compareValues(a, b, spec.collation)) };
};

/** An index key is null for a missing field as well; distinct lists only nulls that are really there. */
function hasNull(value: unknown, path: readonly string[]): boolean {
  const [name, ...rest] = path;
  if (Array.isArray(value)) {
    if (name === undefined) return value.includes(null);
    return value.some((item) => hasNull(item, path)) || hasNull(value[Number(name)], rest);
  }
  if (name === undefined) return value === null;
  return isDocument(value) && Object.hasOwn(value, name) && hasNull(value[name], rest);
}
