import { Double } from 'bson';
import type { Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { badValue, notImplemented } from '../errors.js';
import type { CommandContext, CommandHandler } from '../server/server-state.js';
import { draftInserted } from '../storage/change.js';
import { encodeDocument } from '../wire/encode.js';
import { readRawDocument } from '../wire/raw-bson.js';
import { checkTypes, documentArray, flag, requireFields, splitNamespace } from './arguments.js';
import { DEFAULT_BATCH, listReply } from './cursor-commands.js';
import { runDelete, runUpdate } from './update-statement.js';
import { deleteStatement, updateStatement } from './write-commands.js';
import { acknowledge, checkBatchSize, documentCheck, insertTarget, runBatch } from './write-target.js';

const commandTypes = { ordered: 'bool', errorsOnly: 'bool', bypassDocumentValidation: 'flag', let: 'object' };
const operationTypes = {
  insert: 'number',
  update: 'number',
  delete: 'number',
  document: 'object',
  filter: 'object',
  updateMods: 'object or array',
  multi: 'bool',
  upsert: 'bool',
  sort: 'object',
  hint: 'string or object',
  constants: 'object',
  collation: 'object',
  arrayFilters: 'array',
};

/** Errors: 14, 40414. */
function checkOperation(operation: Document): void {
  checkTypes(operation, operationTypes);
  const required = operation['insert'] === undefined ? ['filter'] : ['document'];
  if (operation['update'] !== undefined) required.push('updateMods');
  requireFields(operation, 'bulkWrite.ops', required);
}

/** One command with writes to several collections, as `client.bulkWrite` of newer drivers sends it. */
export const bulkWrite: CommandHandler = async (command, ctx) => {
  const operations = documentArray(command, 'ops');
  const raw = ctx.rawDocuments('ops') ?? [];
  const namespaces = documentArray(command, 'nsInfo').map(({ ns, collectionUUID }) => {
    if (collectionUUID !== undefined) throw notImplemented('collectionUUID of a bulkWrite');
    return splitNamespace(ns);
  });
  checkBatchSize(operations);
  checkTypes(command, commandTypes);
  operations.forEach(checkOperation);
  const run = new BulkRun(ctx, command, namespaces);
  for (const one of operations) run.namespace(one['insert'] ?? one['update'] ?? one['delete']);
  const errors = await runBatch(ctx, operations, flag(command, 'ordered', true), (operation, index) =>
    run.apply(operation, index, raw[index]),
  );
  for (const { index, ...error } of errors)
    run.results.push({ ok: new Double(0), idx: index, n: 0, ...error });
  run.results.sort((a, b) => Number(a['idx']) - Number(b['idx']));
  const shown = flag(command, 'errorsOnly')
    ? run.results.filter((result) => result['code'] !== undefined)
    : run.results;
  const reply = await listReply(ctx, 'admin.$cmd.bulkWrite', shown, command, DEFAULT_BATCH);
  return acknowledge(ctx, command, { ...reply, nErrors: errors.length, ...run.totals });
};

class BulkRun {
  readonly results: Document[] = [];
  readonly totals = { nInserted: 0, nMatched: 0, nModified: 0, nUpserted: 0, nDeleted: 0 };

  constructor(
    private ctx: CommandContext,
    private readonly command: Document,
    private readonly namespaces: readonly { db: string; coll: string }[],
  ) {}

  async apply(operation: Document, idx: number, raw: Buffer | undefined): Promise<void> {
    // Unlike the statements of other commands, every operation has a time of its own.
    if (this.ctx.clusterTime) this.ctx = { ...this.ctx, clusterTime: this.ctx.server.store.log.time };
    if (operation['insert'] !== undefined) return this.insert(operation, idx, raw);
    if (operation['update'] !== undefined) return this.update(operation, idx);
    return this.delete(operation, idx);
  }

  private insert(operation: Document, idx: number, raw: Buffer | undefined): void {
    const { ctx } = this;
    const { db, coll } = this.namespace(operation['insert']);
    const bytes = raw && readRawDocument(raw, 'document');
    const collection = insertTarget(ctx, db, coll);
    const draft = draftInserted(bytes ?? encodeDocument(operation['document'] as Document));
    documentCheck(ctx, collection, flag(this.command, 'bypassDocumentValidation'))(draft.document);
    ctx.workspace.insert(collection, draft);
    this.totals.nInserted += 1;
    this.results.push({ ok: new Double(1), idx, n: 1 });
  }

  private async update(operation: Document, idx: number): Promise<void> {
    const { db, coll } = this.namespace(operation['update']);
    const { filter: q, updateMods: u, constants: c } = operation;
    const statement = updateStatement({ ...operation, q, u, c }, this.command);
    const { matched, modified, upserted } = await runUpdate(this.ctx, db, coll, statement);
    this.totals.nMatched += matched;
    this.totals.nModified += modified;
    if (upserted) this.totals.nUpserted += 1;
    this.results.push({
      ok: new Double(1),
      idx,
      n: matched + (upserted ? 1 : 0),
      nModified: modified,
      ...(upserted ? { upserted: { _id: upserted.document['_id'] } } : {}),
    });
  }

  private async delete(operation: Document, idx: number): Promise<void> {
    const { db, coll } = this.namespace(operation['delete']);
    const { filter: q, constants: c } = operation;
    const limit = flag(operation, 'multi') ? 0 : 1;
    const statement = deleteStatement({ ...operation, q, c, limit }, this.command);
    const { deleted } = await runDelete(this.ctx, db, coll, statement);
    this.totals.nDeleted += deleted;
    this.results.push({ ok: new Double(1), idx, n: deleted });
  }

  /** Errors: 2 for a namespace that is not in the list. */
  namespace(index: unknown): { db: string; coll: string } {
    const namespace = numberKind(index) === undefined ? undefined : this.namespaces[toDouble(index)];
    if (!namespace) throw badValue('a bulkWrite operation names a namespace that is not in nsInfo');
    return namespace;
  }
}
