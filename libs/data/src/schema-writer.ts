import type { ClassLevelPermissions, FieldSchema } from '#policy';
import type { OperationContext } from './record-store.js';

/** With what a new class begins: every operation named and given to nobody. */
export const NO_PERMISSIONS: ClassLevelPermissions = Object.freeze({
  find: {},
  count: {},
  get: {},
  create: {},
  update: {},
  delete: {},
  addField: {},
  protectedFields: { '*': [] },
});

export interface NewClass {
  readonly className: string;
  /** Without the columns that every class has. */
  readonly fields: ReadonlyMap<string, FieldSchema>;
}

/**
 * Making, widening and removing classes, in Parse's words. It knows nothing of agents: only the governed doors may hold one.
 * @throws StoreError
 */
export abstract class SchemaWriter {
  /**
   * The class starts closed: nobody but the master key has any right to it until an operator grants one.
   * @throws StoreError `duplicate` when the class exists
   */
  abstract createClass(newClass: NewClass, operation: OperationContext): Promise<void>;
  /** A column that is already there keeps its type. */
  abstract addFields(
    className: string,
    fields: ReadonlyMap<string, FieldSchema>,
    operation: OperationContext,
  ): Promise<void>;
  /** Removes a class without rows, and nothing of one that has any. */
  abstract deleteClass(
    className: string,
    operation: OperationContext,
  ): Promise<'deleted' | 'not_empty' | 'absent'>;
}
