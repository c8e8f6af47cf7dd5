import fc from 'fast-check';
import { APPROVALS, OPERATIONS, type Request } from './asked-service.js';
import { MARKED_LATER, ordinary, POOL } from './cell-values.js';
import { MINE, OTHERS } from './named-sets.js';
import { AgentSight } from './sight.js';
import { type Column, COLUMNS, OWN_CLASSES, rowId, ROWS } from './vocabulary.js';
import type { OwnClass, World } from './world.js';

/** A write by number among the classes, rows and columns that a world leaves for it. */
const write = fc.record({
  operation: fc.constantFrom('update', 'update', 'update', 'create', 'delete'),
  /** Whatever the agent may see of it. */
  wild: fc.integer({ min: 0, max: 4 }).map((roll) => roll === 0),
  class: fc.nat(1000),
  row: fc.nat(1000),
  columns: fc.array(fc.nat(1000), { minLength: 1, maxLength: 3 }),
  value: fc.nat(POOL - 1),
  counts: fc.boolean(),
  key: fc.option(fc.uuid(), { nil: undefined, freq: 2 }),
});
type Write = typeof write extends fc.Arbitrary<infer T> ? T : never;

const writes = fc.array(write, { minLength: 2, maxLength: 4 });

/** What becomes of one set of the agent, and of one of another. */
const episode = fc.record({
  own: writes,
  /** Of the row of the first write, before it is submitted. */
  meanwhile: fc.option(write, { nil: null, freq: 4 }),
  others: writes,
  /** Of a row of the other set once it is applied. */
  later: fc.option(write, { nil: null, freq: 4 }),
  skips: fc.boolean(),
});
type Episode = typeof episode extends fc.Arbitrary<infer T> ? T : never;

const call = (name: string, args: object): Request => ({
  method: 'tools/call',
  params: { name, arguments: args },
});

/** Sets that the agent proposes, reads, submits and takes back, and those of another agent that it decides about and takes back. */
export const changeRequests = (world: World): fc.Arbitrary<readonly Request[]> =>
  episode.map((one) => new SetRequests(world).all(one));

class SetRequests {
  private readonly sight: AgentSight;

  constructor(private readonly world: World) {
    this.sight = new AgentSight(world);
  }

  all(one: Episode): readonly Request[] {
    return [...this.own(one), ...this.others(one), ...this.allRows()];
  }

  private own({ own, meanwhile, skips }: Episode): readonly Request[] {
    const mine = { change_set: MINE };
    const submit = call('submit_changes', { title: 'a set', reason: 'it is needed' });
    const undo = (skip: boolean) => call('undo_changes', { ...mine, ...(skip && { skip_conflicts: true }) });
    const show = call('show_changes', mine);
    return [
      ...own.map((one) => this.proposed(one)),
      show,
      call('list_changes', { limit: 4 }),
      { method: 'resources/list', params: {} },
      { method: 'resources/read', params: { uri: `parse://changes/${MINE}` } },
      ...(meanwhile ? [this.meanwhile({ ...meanwhile, ...placeOf(own) }), show] : []),
      ...this.decided(submit),
      call('refresh_changes', mine),
      ...this.decided(call('submit_changes', { ...mine, title: 'a set', reason: 'it is needed' })),
      show,
      ...(meanwhile ? [this.meanwhile({ ...meanwhile, ...placeOf(own.toReversed()) }), show] : []),
      ...this.decided(undo(false)),
      ...(skips ? this.decided(undo(true)) : []),
      show,
      // Another set.
      ...own.map((one) => this.proposed({ ...one, key: undefined })),
      call('discard_changes', mine),
    ];
  }

  private decided(request: Request): readonly Request[] {
    return [
      { ...request, waits: true },
      { method: OPERATIONS.approve, params: {} },
    ];
  }

  private others({ others, later, skips }: Episode): readonly Request[] {
    const by = 'proposer' as const;
    const set = { change_set: OTHERS };
    const shown = [
      { method: OPERATIONS.list, params: {} },
      { method: OPERATIONS.show, params: set },
      { method: OPERATIONS.preview, params: set },
    ];
    return [
      ...others.map((one) => ({ ...this.ofOthers(one), by })),
      { ...call('submit_changes', { title: 'another set', reason: 'it is needed' }), by, waits: true },
      { method: APPROVALS, params: {} },
      { method: OPERATIONS.case, params: set },
      ...shown,
      { method: OPERATIONS.approve, params: {}, by },
      ...shown,
      ...(later ? [this.meanwhile({ ...later, ...placeOf(others) }), ...shown] : []),
      { method: OPERATIONS.preview, params: { agent: 'chief' } },
      { method: OPERATIONS.undo, params: { ...set, ...(skips && { skip_conflicts: true }) } },
      { method: OPERATIONS.list, params: {} },
      { method: OPERATIONS.show, params: set },
    ];
  }

  /** A write of the agent, mostly of what it may see. */
  private proposed(one: Write): Request {
    const open = OWN_CLASSES.filter((name) => this.sight.permits(name, 'get'));
    const name = pick(one.wild ? OWN_CLASSES : open, one.class) ?? 'Orchard';
    const seen = this.rowsOf(name).filter((index) => this.sight.sees(name, this.rowAt(name, index), index));
    const row = pick(one.wild ? this.rowsOf(name) : seen, one.row) ?? 0;
    const columns = this.columnsOf(name).filter(
      (column) => one.wild || (this.sight.mayName(name, column.name) && this.sight.mayAsk(name, column.name)),
    );
    return this.toCall(one, name, row, columns);
  }

  /** Of any row and column, as long as it is there in both worlds. */
  private ofOthers(one: Write): Request {
    const name = pick(OWN_CLASSES, one.class) ?? 'Orchard';
    return this.toCall(one, name, pick(this.rowsInBoth(name), one.row), this.columnsOf(name));
  }

  /** A change that is made at once, of another value in each world where the agent may not see the column. */
  private meanwhile(one: Write): Request {
    const name = pick(OWN_CLASSES, one.class) ?? 'Orchard';
    const row = pick(this.rowsInBoth(name), one.row);
    if (row === undefined) return { method: 'ping', params: {} };
    const withheld = this.columnsOf(name).filter(
      (column) =>
        column.kind === 'text' && this.sight.of(name, this.rowAt(name, row), row, column.name) === 'nothing',
    );
    const column = pick(withheld, one.columns[0] ?? 0);
    const made = this.toCall(
      { ...one, operation: 'update', counts: false },
      name,
      row,
      column ? [column] : this.columnsOf(name),
    );
    if (!column) return { ...made, by: 'chief' };
    // Neither is a value for which the write could be refused in one world alone.
    const writing = (text: string) => ({
      ...made.params,
      arguments: { ...(made.params['arguments'] as object), fields: { [column.name]: text } },
    });
    return { ...made, by: 'chief', params: writing('changed later'), marked: writing(MARKED_LATER) };
  }

  /** @param row undefined: there is none, and one is created */
  private toCall(one: Write, name: OwnClass, row: number | undefined, columns: readonly Column[]): Request {
    const chosen = one.columns.flatMap((number) => pick(columns, number) ?? []);
    const fields = Object.fromEntries(
      chosen.map((column) => [
        column.name,
        column.kind === 'number' && one.counts && one.operation === 'update'
          ? { __op: 'Increment', amount: 1 }
          : ordinary(column, one.value),
      ]),
    );
    const key = one.key === undefined ? {} : { idempotency_key: one.key };
    const about = { class_name: name, ...key };
    if (one.operation === 'create' || row === undefined) return call('create_object', { ...about, fields });
    const object_id = rowId(name, row);
    if (one.operation === 'delete') return call('delete_object', { ...about, object_id });
    return call('update_object', { ...about, object_id, fields });
  }

  /** What decides about no row, and of which no equality or part of a value is shown: rows may become alike in it. */
  private columnsOf(name: OwnClass): readonly Column[] {
    return COLUMNS[name].filter((column) => {
      const mask = this.world.classes[name].masks[column.name] ?? null;
      const isPartly = mask !== null && (mask.member !== null || /hash|ending/.test(mask.form));
      return WRITTEN.has(column.kind) && !isPartly && !this.sight.decides(name, column.name);
    });
  }

  private rowsInBoth(name: OwnClass): readonly number[] {
    return this.rowsOf(name).filter((index) => {
      const row = this.rowAt(name, index);
      return !row.absent || this.sight.sees(name, row, index);
    });
  }

  private rowAt(name: OwnClass, index: number) {
    const row = this.world.rows[name][index];
    if (!row) throw new Error(`there is no row ${index} of ${name}`);
    return row;
  }

  private readonly rowsOf = (name: OwnClass): readonly number[] => [...this.world.rows[name].keys()];

  /** What all of that has led to. */
  private allRows(): readonly Request[] {
    return OWN_CLASSES.map((name) =>
      call('get_objects', {
        class_name: name,
        ids: Array.from({ length: ROWS }, (_, index) => rowId(name, index)),
      }),
    );
  }
}

const WRITTEN: ReadonlySet<Column['kind']> = new Set(['text', 'number', 'date', 'flag', 'object', 'texts']);

const placeOf = ([first]: readonly Write[]) => ({ class: first?.class ?? 0, row: first?.row ?? 0 });

const pick = <T>(from: readonly T[], number: number): T | undefined => from[number % from.length];
