import { compareValues } from '../bson/compare.js';
import type { Document } from '../bson/document.js';
import { extractKeys, toKey } from '../bson/keys.js';
import { parsePath, someValue } from '../bson/path.js';
import { badValue, mongoError } from '../errors.js';
import { compileProjection } from '../projection/projection.js';
import { Reader } from '../server/cursors.js';
import type { CommandContext, CommandHandler } from '../server/server-state.js';
import { collect, drain, mapRows } from '../server/steps.js';
import { encodeDocument } from '../wire/encode.js';
import { MAX_DOCUMENT_BYTES } from '../wire/raw-bson.js';
import {
  collectionName,
  flag,
  optionalCount,
  optionalDocument,
  optionalText,
  requireFields,
} from './arguments.js';
import { cursorReply, encodeReplyDocument } from './cursor-commands.js';
import { PipelineRun } from './pipeline-run.js';
import { readSelection, Selection, selectionStages, toStages, findSpec, countSpec } from './selection.js';

export const find: CommandHandler = async (command, ctx) => {
  const name = collectionName(command, 'find');
  const namespace = `${ctx.db}.${name}`;
  const collection = ctx.workspace.find(ctx.db, name);
  const spec = findSpec(command, collection?.options);
  const projection = optionalDocument(command, 'projection');
  const options = {
    batchSize: optionalCount(command, 'batchSize'),
    single: flag(command, 'singleBatch'),
    noTimeout: flag(command, 'noCursorTimeout'),
  };
  const reader = new Reader(ctx.operation);
  if (collection?.view) {
    const stages = [...selectionStages(spec), ...toStages('$project', projection)];
    const rows = await new PipelineRun(ctx, name, command, reader).rows(stages);
    return cursorReply(ctx, namespace, rows.encoded, reader, options);
  }
  const selection = new Selection(ctx, collection, spec, reader);
  const project =
    projection && Object.keys(projection).length > 0
      ? compileProjection(projection, selection.queryContext, selection.filter)
      : undefined;
  const stored = await selection.rows();
  const rows = project
    ? mapRows(stored, ({ document }) => encodeReplyDocument(project(document)))
    : mapRows(stored, ({ raw }) => raw.bytes);
  return cursorReply(ctx, namespace, rows, reader, options);
};

export const count: CommandHandler = async (command, ctx) => {
  const name = collectionName(command, 'count');
  const collection = ctx.workspace.find(ctx.db, name);
  const spec = countSpec(command, collection?.options);
  if (collection?.view) {
    const [counted] = await viewRows(ctx, command, [...selectionStages(spec), { $count: 'n' }]);
    return { n: counted?.['n'] ?? 0 };
  }
  if (Object.keys(spec.filter).length === 0 && !spec.skip && !spec.limit && spec.hint === undefined)
    return { n: collection?.count ?? 0 };
  let n = 0;
  await drain(ctx.operation, await new Selection(ctx, collection, spec).rows(), () => void (n += 1));
  return { n };
};

/** What a view shows to a command that answers without a cursor. */
async function viewRows(ctx: CommandContext, command: Document, stages: Document[]): Promise<Document[]> {
  const name = collectionName(command, ctx.name);
  const rows = await new PipelineRun(ctx, name, command, new Reader(ctx.operation)).rows(stages);
  return collect(ctx.operation, rows.documents);
}
export const distinct: CommandHandler = async (command, ctx) => {
  const name = collectionName(command, 'distinct');
  const collection = ctx.workspace.find(ctx.db, name);
  const spec = readSelection(command, 'query', collection?.options);
  requireFields(command, 'distinct', ['key']);
  const key = optionalText(command, 'key') ?? '';
  if (key === '') throw badValue('the key of distinct must not be empty');
  const path = parsePath(key);
  const values = new Map<string, unknown>();
  let bytes = 0;
  const visit = (document: Document): void => {
    for (const [value] of extractKeys(document, [path.parts]).keys) {
      // The key of a missing field is null as well.
      const isMissing = value === null && !someValue(document, path, 0, 'elements', (one) => one === null);
      if (value === undefined || isMissing) continue;
      const id = toKey(value, spec.collation);
      if (values.has(id)) continue;
      values.set(id, value);
      bytes += encodeDocument({ v: value }).length;
      if (bytes > MAX_DOCUMENT_BYTES) throw mongoError(17217, 'distinct too big, 16mb cap');
    }
  };
  if (collection?.view) {
    (await viewRows(ctx, command, selectionStages(spec))).forEach(visit);
  } else {
    const rows = await new Selection(ctx, collection, spec).rows();
    await drain(ctx.operation, rows, ({ document }) => visit(document));
  }
  return { values: [...values.values()].sort((a, b) => compareValues(a, b, spec.collation)) };
};
