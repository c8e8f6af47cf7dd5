import { isJsonObject } from '#core';
import {
  type OperationContext,
  type ParseRow,
  type ReadStore,
  RecordWriter,
  type SchemaCatalogue,
  StoreError,
} from '#data';
import type { Where } from '#policy';
import type { ParseAnswer, ParseConnection, ParseCredentials } from '../connection/parse-connection.js';
import { classPath, ParseServerError, rowPath, unstorable } from '../connection/parse-errors.js';
import { rowFromRest } from '../read/rest-row.js';

interface WriterDependencies {
  readonly connection: ParseConnection;
  readonly credentials: ParseCredentials;
  readonly catalogue: SchemaCatalogue;
  /** Reads with the operator's authority, limited by the constraint: checks the conditions of writes. */
  readonly conditions: ReadStore;
}

/**
 * Writes rows through Parse Server, so that its triggers run. REST has no conditional writes: conditions are checked right
 * before the write, and only the row rights of a session are part of the write itself. A write that was sent is completed:
 * its signal only prevents the start. With a session the answer contains only id and time stamps, because a user who may
 * write a row may not be permitted to read it.
 */
export class ParseRecordWriter extends RecordWriter {
  constructor(private readonly parts: WriterDependencies) {
    super();
  }

  async create(className: string, fields: ParseRow, operation: OperationContext): Promise<ParseRow> {
    const path = classPath(className);
    const answer = await this.change(className, fields, () =>
      this.send({ method: 'POST', path, body: sendableFields(className, fields) }, operation),
    );
    const { objectId, createdAt } = answer;
    if (typeof objectId !== 'string' || objectId === '')
      throw unknownOutcome('no id in the answer to a creation');
    return this.findStored(className, objectId, { objectId, createdAt, updatedAt: createdAt }, operation);
  }

  async update(
    className: string,
    objectId: string,
    fields: ParseRow,
    where: Where,
    operation: OperationContext,
  ): Promise<ParseRow | null> {
    const path = rowPath(className, objectId);
    const body = sendableFields(className, fields);
    if (!(await this.admits(className, objectId, where, operation))) return null;
    try {
      const answer = await this.change(className, fields, () =>
        this.send({ method: 'PUT', path, body }, operation),
      );
      const { updatedAt } = answer;
      if (typeof updatedAt !== 'string') throw unknownOutcome('no time in the answer to an update');
      return await this.findStored(className, objectId, { objectId, updatedAt }, operation);
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async delete(
    className: string,
    objectId: string,
    where: Where,
    operation: OperationContext,
  ): Promise<boolean> {
    const path = rowPath(className, objectId);
    if (!(await this.admits(className, objectId, where, operation))) return false;
    try {
      const answer = await this.send({ method: 'DELETE', path }, operation);
      if (Object.keys(answer).length > 0) throw unknownOutcome('a deletion is answered with nothing');
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  private async admits(
    className: string,
    objectId: string,
    where: Where,
    operation: OperationContext,
  ): Promise<boolean> {
    const condition = { kind: 'count', className, where: { $and: [{ objectId }, where] } } as const;
    return (await this.parts.conditions.run(condition, operation, 'operator')) > 0;
  }

  /** Parse Server adds columns, and the class, during the write, even when the write itself then fails. */
  private async change(
    className: string,
    fields: ParseRow,
    write: () => Promise<ParseAnswer>,
  ): Promise<ParseAnswer> {
    const schema = (await this.parts.catalogue.snapshot()).get(className);
    const widens = !schema || Object.keys(fields).some((name) => !schema.fields.has(name));
    try {
      return await write();
    } finally {
      if (widens) this.parts.catalogue.invalidate();
    }
  }

  /** Time limits apply, cancellation does not: it would leave the outcome of the write unknown. */
  private send(
    request: {
      readonly method: 'POST' | 'PUT' | 'DELETE';
      readonly path: string;
      readonly body?: ParseRow;
    },
    { signal, maxTimeMS }: OperationContext,
  ): Promise<ParseAnswer> {
    const { connection, credentials } = this.parts;
    if (signal.aborted)
      return Promise.reject(new StoreError('cancelled', { store: 'Parse Server', cause: signal.reason }));
    return connection.send({ ...request, credentials }, { maxTimeMS, signal: new AbortController().signal });
  }

  private async findStored(
    className: string,
    objectId: string,
    known: ParseRow,
    operation: OperationContext,
  ): Promise<ParseRow> {
    if (this.parts.credentials.kind === 'session') return known;
    const { connection, credentials } = this.parts;
    const { maxTimeMS } = operation;
    try {
      const answer = await connection.send(
        { credentials, method: 'GET', path: rowPath(className, objectId) },
        { maxTimeMS, signal: new AbortController().signal },
      );
      return rowFromRest(answer, undefined);
    } catch {
      // The write was applied: a failed read of the row does not change that.
      return known;
    }
  }
}

/** What was answered with success is not the answer of Parse Server to this write. */
function unknownOutcome(reason: string): StoreError {
  const cause = new Error(reason);
  return new StoreError('failed', { store: 'Parse Server', cause, outcome: 'unknown' });
}

/** Parse Server returns the same answer for a missing row and for one that the session may not change. */
function isMissing(error: unknown): boolean {
  return error instanceof ParseServerError && error.isOfRow;
}

/** Names that Parse Server sets itself, or reads as an instruction of the request and not as a field. */
const NOT_FIELDS = new Set(['objectId', 'createdAt', 'updatedAt', 'className', 'authData', 'sessionToken']);

/** Names with a leading underscore (`_method`, `_SessionToken`) never match: they would change the request. */
const FIELD = /^[A-Za-z][A-Za-z0-9_]*$/;

const OPERATIONS = new Set(['Increment', 'Add', 'AddUnique', 'Remove', 'Delete']);

/**
 * The fields of a write, as they are sent.
 * @throws StoreError `invalid_query` for names and values that Parse Server would not read as the value of a field
 */
export function sendableFields(className: string, fields: ParseRow): ParseRow {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      const refused = NOT_FIELDS.has(name) || (name === 'password' && className !== '_User');
      if (refused || !FIELD.test(name)) throw unstorable('a name that no field may have');
      if (name !== 'ACL') return [name, sendableValue(value)];
      assertAcl(value);
      return [name, value];
    }),
  );
}

function sendableValue(value: unknown): unknown {
  if (!isJsonObject(value) || !('__op' in value)) {
    assertPlain(value);
    return value;
  }
  const { __op, amount, objects } = value;
  if (typeof __op !== 'string' || !OPERATIONS.has(__op)) throw unstorable('an unknown write operation');
  if (amount !== undefined && !Number.isFinite(amount)) throw unstorable('an amount that is no number');
  assertPlain(objects);
  // On a new row Parse Server would store both values of a field that is named twice.
  return __op === 'AddUnique' && Array.isArray(objects) ? { ...value, objects: distinct(objects) } : value;
}

/** Values are JSON, so equal text means equal values. */
function distinct(values: readonly unknown[]): unknown[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

/** A value may contain no operator and no path. */
function assertPlain(value: unknown): void {
  if (Array.isArray(value)) return value.forEach(assertPlain);
  if (!isJsonObject(value)) return;
  for (const [key, member] of Object.entries(value)) {
    if (key === '__op' || key.includes('$') || key.includes('.')) throw unstorable('an operator in a value');
    assertPlain(member);
  }
}

function assertAcl(value: unknown): void {
  if (isJsonObject(value) && value['__op'] === 'Delete') return;
  const rights = isJsonObject(value) ? Object.values(value) : null;
  const sound = rights?.every(
    (right) =>
      isJsonObject(right) &&
      Object.entries(right).every(([name, held]) => /^(read|write)$/.test(name) && typeof held === 'boolean'),
  );
  if (!sound) throw unstorable('an ACL of another shape');
}
