import {
  type OperationContext,
  type ParseRow,
  type RecordReader,
  RecordWriter,
  type SchemaCatalogue,
  StoreError,
} from '#data';
import type { Where } from '#policy';
import { classPath, rowPath } from '../connection/checked-path.js';
import type { ParseAnswer, ParseConnection } from '../connection/parse-connection.js';
import type { ParseCredentials } from '../connection/parse-credentials.js';
import { OBJECT_NOT_FOUND, ParseFault } from '../connection/parse-faults.js';
import { rowFromRest } from '../read/rest-row.js';
import { sendableFields } from './sendable-fields.js';

export interface WriterParts {
  readonly connection: ParseConnection;
  readonly credentials: ParseCredentials;
  readonly catalogue: SchemaCatalogue;
  /** Reads with nobody's rights but those a constraint names: the conditions of writes are asked here. */
  readonly conditions: RecordReader;
}

/**
 * Writes rows through Parse Server, so that its triggers run. REST knows no conditions on a write: they are asked right
 * before it, and only the row rights of a session are part of the write itself. A write that was sent is finished: its
 * signal only keeps it from starting. With a session the answer holds no more than id and time stamps, because whoever
 * may write a row need not be allowed to read it.
 */
export class ParseRecordWriter extends RecordWriter {
  constructor(private readonly parts: WriterParts) {
    super();
  }

  async create(className: string, fields: ParseRow, operation: OperationContext): Promise<ParseRow> {
    const path = classPath(className);
    const answer = await this.change(className, fields, () =>
      this.send({ method: 'POST', path, body: sendableFields(className, fields) }, operation),
    );
    const { objectId, createdAt } = answer;
    if (typeof objectId !== 'string') throw unknownOutcome();
    return this.stored(className, objectId, { objectId, createdAt, updatedAt: createdAt }, operation);
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
      return await this.stored(className, objectId, { objectId, updatedAt: answer['updatedAt'] }, operation);
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
      await this.send({ method: 'DELETE', path }, operation);
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
    const condition = { className, where: { $and: [{ objectId }, where] } };
    return (await this.parts.conditions.count(condition, operation)) > 0;
  }

  /** Parse Server adds columns, and the class, as it writes: also when the write itself then fails. */
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

  /** Time limits hold, cancelling does not: whether a write that was cut off happened is more than anyone could tell. */
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

  private async stored(
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
      // The write is done: that it cannot be shown is no failure of it.
      return known;
    }
  }
}

/** It answered, and not what was created. */
function unknownOutcome(): StoreError {
  const cause = new Error('no id in the answer to a creation');
  return new StoreError('failed', { store: 'Parse Server', cause, outcome: 'unknown' });
}

/** Parse Server says the same of a row that is not there and of one the session may not change. */
function isMissing(error: unknown): boolean {
  return error instanceof ParseFault && error.parseCode === OBJECT_NOT_FOUND;
}
