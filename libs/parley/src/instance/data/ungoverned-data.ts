import { Inject, Injectable } from '@nestjs/common';
import { refuse } from '#core';
import { AuditSink } from '#audit';
import { type OperationContext, type ParseRow, ReadStore, type SortKey, WriteStore } from '#data';
import { assertOptions, type OptionNames, type Where } from '#policy';

/** Milliseconds that one operation may take. */
const DEFAULT_TIMEOUT = 30_000;

/** Selects rows and their fields. */
export interface UngovernedQuery {
  /** Parse constraint. Default: every row. */
  readonly where?: Where;
  /** Default: the order of the store. */
  readonly order?: readonly SortKey[];
  /** Wire names to return. Default: all. */
  readonly keys?: readonly string[];
  /** Rows at most. Default 100. */
  readonly limit?: number;
}

const COUNT = { where: true } as const;
const QUERY = { ...COUNT, order: true, keys: true, limit: true } satisfies OptionNames<UngovernedQuery>;

/** Stored rows without policy, rights, tenant or mask. Each operation leaves a record. */
export interface UngovernedRecords {
  /** Rows of a class. @throws StoreError, and Refused (`audit_unavailable`) while no record can be kept */
  find(className: string, query?: UngovernedQuery): Promise<ParseRow[]>;
  /** Counts rows. @throws as `find` */
  count(className: string, query?: Pick<UngovernedQuery, 'where'>): Promise<number>;
  /** Stores a new row. @returns the stored row. @throws as `find` */
  create(className: string, fields: ParseRow): Promise<ParseRow>;
  /** Changes a row. @returns the stored row; null: it does not exist. @throws as `find` */
  update(className: string, objectId: string, fields: ParseRow): Promise<ParseRow | null>;
  /** Removes a row. @returns false: it does not exist. @throws as `find` */
  delete(className: string, objectId: string): Promise<boolean>;
}

/** Injection token of the names that the operator permits. */
export const UNGOVERNED_NAMES = Symbol('names of ungoverned access');

/**
 * The only named access without a policy: the operator lists it in `ungoverned`, and the record and `doctor` report it.
 */
@Injectable()
export class UngovernedData {
  /** @internal Made by the module. */
  constructor(
    @Inject(UNGOVERNED_NAMES) private readonly names: readonly string[],
    private readonly rows: ReadStore,
    private readonly writes: WriteStore,
    private readonly audit: AuditSink,
  ) {}

  /** Its records contain `name`. @throws TypeError for a name that the operator did not list */
  as(name: string): UngovernedRecords {
    if (!this.names.includes(name))
      throw new TypeError(`'${name}' is not among the names that 'ungoverned' permits`);
    const { rows, writes } = this;
    const run = <T>(verb: string, className: string, work: (operation: OperationContext) => Promise<T>) =>
      this.runRecorded(name, `${verb} ${className}`, work);
    return {
      find: async (className, query = {}) => {
        assertOptions('ungoverned.find', query, QUERY);
        const { where = {}, order, keys, limit = 100 } = query;
        return run('find', className, (operation) =>
          rows.run(
            { kind: 'find', className, where, limit, ...(order && { order }), ...(keys && { keys }) },
            operation,
            'operator',
          ),
        );
      },
      count: async (className, query = {}) => {
        assertOptions('ungoverned.count', query, COUNT);
        const { where = {} } = query;
        return run('count', className, (operation) =>
          rows.run({ kind: 'count', className, where }, operation, 'operator'),
        );
      },
      create: (className, fields) =>
        run('create', className, (operation) =>
          writes.run({ kind: 'create', className, fields }, operation, 'operator'),
        ),
      update: (className, objectId, fields) =>
        run('update', className, (operation) =>
          writes.run({ kind: 'update', className, objectId, fields, where: {} }, operation, 'operator'),
        ),
      delete: (className, objectId) =>
        run('delete', className, (operation) =>
          writes.run({ kind: 'delete', className, objectId, where: {} }, operation, 'operator'),
        ),
    };
  }

  /** An operation that cannot be recorded is not run. */
  private async runRecorded<T>(
    name: string,
    target: string,
    work: (operation: OperationContext) => Promise<T>,
  ): Promise<T> {
    const retryAfter = this.audit.admit();
    if (retryAfter !== null) throw refuse.auditUnavailable(retryAfter);
    let success = false;
    try {
      const result = await work({
        maxTimeMS: DEFAULT_TIMEOUT,
        comment: `parley:ungoverned:${name}`,
        signal: AbortSignal.timeout(DEFAULT_TIMEOUT),
      });
      success = true;
      return result;
    } finally {
      const at = new Date().toISOString();
      this.audit.recordEvent({
        type: 'operator_action',
        at,
        success,
        action: 'ungoverned_access',
        target: `${name}: ${target}`,
      });
    }
  }
}
