import type { ClassAccess, ClassSchema, Where } from '#policy';
import { digestImage, type RowImage, type RowImages } from '../changes/row-transactions.js';
import { runMeasured } from '../metering/metered-stores.js';
import type { ParseRow } from '../record-store.js';
import type { GovernedCall } from './governed-call.js';
import {
  type AppliedChange,
  type ChangeConflict,
  type HeldChange,
  ROW_CHANGED,
  ROW_EXISTS,
} from './held-change.js';
import { atStore } from './store-refusals.js';

/** Rows that are asked for at the same moment, read as one: a set of changes is judged row by row, and its rows are not read one by one. */
class JoinedReads<Row> {
  private readonly waiting = new Map<
    string,
    { readonly ids: Set<string>; readonly rows: Promise<ReadonlyMap<string, Row>> }
  >();

  /**
   * @param kind reads of one kind are joined. @param readAll reads the rows of some ids
   * @returns null: `readAll` found no such row
   */
  async read(
    kind: string,
    id: string,
    readAll: (ids: readonly string[]) => Promise<ReadonlyMap<string, Row>>,
  ): Promise<Row | null> {
    let read = this.waiting.get(kind);
    if (!read) {
      const ids = new Set<string>();
      read = { ids, rows: this.readLater(kind, () => readAll([...ids])) };
      this.waiting.set(kind, read);
    }
    read.ids.add(id);
    return (await read.rows).get(id) ?? null;
  }

  /** After everybody who is about to ask has asked. */
  private async readLater<T>(kind: string, readAll: () => Promise<T>): Promise<T> {
    await new Promise((resolve) => setImmediate(resolve));
    this.waiting.delete(kind);
    return readAll();
  }
}

/** Rows that changes are about, as they are stored now. */
export class StoredRows {
  private readonly reads = new JoinedReads<RowImage>();

  constructor(
    private readonly call: Pick<GovernedCall, 'operation' | 'metering' | 'scope'>,
    private readonly images: RowImages,
  ) {}

  /**
   * Whether a row is what it was: its time stamp, and the columns that the change writes. Of a row that is deleted those that the
   * caller may read, and of one that is put back every byte.
   */
  async isAsItWas(
    { className, operation, before, fields, restored, found }: HeldChange,
    now: RowImage | null,
    { access }: { readonly access: ClassAccess },
  ): Promise<boolean> {
    if (restored !== undefined) return (now && digestImage(now)) === found;
    if (now === null || before === null) return now === before;
    const { operation: context, scope } = this.call;
    const touched =
      operation === 'delete' ? listReadable(access, scope.schemas.get(className)) : Object.keys(fields ?? {});
    return atStore(context, () => this.images.areAlike(className, before, now, context, touched));
  }

  /** @param where what the row has to meet. @returns null: there is no such row */
  read(className: string, objectId: string, where: Where = {}): Promise<RowImage | null> {
    const { operation, metering } = this.call;
    return this.reads.read(JSON.stringify([className, where]), objectId, (ids) =>
      atStore(operation, () =>
        runMeasured(
          { name: 'find', className, rows: (found) => found.size },
          () => this.images.find(className, ids, where, operation),
          { context: operation, ...metering },
        ),
      ),
    );
  }

  toRow(className: string, image: RowImage): Promise<ParseRow> {
    const { operation } = this.call;
    return atStore(operation, () => this.images.toRow(className, image, operation));
  }

  /**
   * The changes that take applied ones back, the last row first. What they lead to is each row as it was before the first of them,
   * byte for byte.
   * @returns `changes` for rows that nobody else has changed since or in between, and the others as conflicts
   */
  async invert(
    applied: readonly AppliedChange[],
  ): Promise<{ readonly changes: readonly HeldChange[]; readonly conflicts: readonly ChangeConflict[] }> {
    const changes: HeldChange[] = [];
    const conflicts: ChangeConflict[] = [];
    const rows = groupByRow(applied.toReversed());
    for (const inverted of await Promise.all(rows.map((ofRow) => this.invertRow(ofRow)))) {
      if (inverted === null) continue;
      if ('reason' in inverted) conflicts.push(inverted);
      else changes.push(inverted);
    }
    return { changes, conflicts };
  }

  /**
   * Each change is found by the row that it left, which no clock has to tell.
   * @param applied of one row. @returns null where the row is already what it was
   */
  private async invertRow(
    applied: readonly [AppliedChange, ...AppliedChange[]],
  ): Promise<HeldChange | ChangeConflict | null> {
    const [{ className, objectId }] = applied;
    const now = await this.read(className, objectId);
    const found = now && digestImage(now);
    const left = new Set(applied);
    let restored = now;
    while (left.size > 0) {
      const digest = restored && digestImage(restored);
      const last = [...left].find(({ after }) => after === digest);
      if (!last) {
        const [{ operation, after }] = [...left] as [AppliedChange];
        const reason = now === null || after ? ROW_CHANGED : ROW_EXISTS;
        return { operation: inverse[operation], className, objectId, reason };
      }
      left.delete(last);
      restored = last.before;
    }
    if (now === restored) return null;
    const operation = now === null ? 'create' : restored === null ? 'delete' : 'update';
    const fields = operation === 'update' ? await this.formerFields(applied, restored) : null;
    return { operation, className, objectId, fields, before: null, found, restored };
  }

  /** The values that updates replaced. */
  private async formerFields(
    applied: readonly [AppliedChange, ...AppliedChange[]],
    restored: RowImage | null,
  ): Promise<ParseRow> {
    const row = restored === null ? {} : await this.toRow(applied[0].className, restored);
    const names = new Set(applied.flatMap(({ fields }) => Object.keys(fields ?? {})));
    return Object.fromEntries([...names].map((name) => [name, row[name] ?? { __op: 'Delete' }]));
  }
}

const inverse = { create: 'delete', update: 'update', delete: 'create' } as const;

/** The columns of a row that its reader may compare; undefined: they are not known, and all of them count. */
const listReadable = (
  { readable }: ClassAccess,
  schema: ClassSchema | undefined,
): readonly string[] | undefined => (readable ? [...readable] : schema && [...schema.fields.keys()]);

function groupByRow(changes: readonly AppliedChange[]): readonly [AppliedChange, ...AppliedChange[]][] {
  const rows = new Map<string, [AppliedChange, ...AppliedChange[]]>();
  for (const change of changes) {
    const row = JSON.stringify([change.className, change.objectId]);
    const known = rows.get(row);
    if (known) known.push(change);
    else rows.set(row, [change]);
  }
  return [...rows.values()];
}
