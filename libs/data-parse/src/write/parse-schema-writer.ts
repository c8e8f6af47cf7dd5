import {
  type NewClass,
  NO_PERMISSIONS,
  type OperationContext,
  type SchemaCatalogue,
  SchemaWriter,
  StoreError,
} from '#data';
import type { FieldSchema } from '#policy';
import { classPath } from '../connection/checked-path.js';
import type { ParseAnswer, ParseConnection } from '../connection/parse-connection.js';
import { MASTER_KEY } from '../connection/parse-credentials.js';
import { CLASS_NOT_EMPTY, ParseFault } from '../connection/parse-faults.js';

/**
 * Changes classes through Parse Server, whose own memory of them would be out of date otherwise. Needs the master key. A
 * change that was sent is finished: its signal only keeps it from starting.
 */
export class ParseSchemaWriter extends SchemaWriter {
  constructor(
    private readonly connection: ParseConnection,
    private readonly catalogue: SchemaCatalogue,
  ) {
    super();
  }

  async createClass({ className, fields }: NewClass, operation: OperationContext): Promise<void> {
    if (await this.exists(className)) throw new StoreError('duplicate', { store: 'Parse Server' });
    const body = { className, fields: Object.fromEntries(fields), classLevelPermissions: NO_PERMISSIONS };
    await this.send('POST', className, operation, body);
  }

  async addFields(
    className: string,
    fields: ReadonlyMap<string, FieldSchema>,
    operation: OperationContext,
  ): Promise<void> {
    this.catalogue.invalidate();
    const known = (await this.catalogue.snapshot()).get(className)?.fields;
    const added = [...fields].filter(([name]) => !known?.has(name));
    if (added.length === 0) return;
    await this.send(known ? 'PUT' : 'POST', className, operation, {
      className,
      fields: Object.fromEntries(added),
    });
  }

  async deleteClass(
    className: string,
    operation: OperationContext,
  ): Promise<'deleted' | 'not_empty' | 'absent'> {
    if (!(await this.exists(className))) return 'absent';
    try {
      await this.send('DELETE', className, operation);
      return 'deleted';
    } catch (error) {
      if (error instanceof ParseFault && error.parseCode === CLASS_NOT_EMPTY) return 'not_empty';
      throw error;
    }
  }

  /** Asked anew: the answer decides about a change. */
  private async exists(className: string): Promise<boolean> {
    this.catalogue.invalidate();
    return (await this.catalogue.snapshot()).get(className) !== undefined;
  }

  private async send(
    method: 'POST' | 'PUT' | 'DELETE',
    className: string,
    { signal, maxTimeMS }: OperationContext,
    body?: Readonly<Record<string, unknown>>,
  ): Promise<ParseAnswer> {
    if (signal.aborted) throw new StoreError('cancelled', { store: 'Parse Server', cause: signal.reason });
    const path = classPath(className, '/schemas');
    try {
      return await this.connection.send(
        { credentials: MASTER_KEY, method, path, ...(body && { body }) },
        { maxTimeMS, signal: new AbortController().signal },
      );
    } finally {
      this.catalogue.invalidate();
    }
  }
}
