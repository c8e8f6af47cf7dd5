import type { Document } from 'mongodb';
import type { StorageNames } from '../storage/storage-names.js';
import type { Variables } from './expression-to-storage.js';
import type { RowScope } from './row-scope.js';

export interface MappedPipeline {
  readonly stages: readonly Document[];
  /** The names of the resulting documents. */
  readonly scope: RowScope;
}

/** What a stage may ask for beyond its own text: other classes, and the pipelines inside it. */
export interface StageContext {
  readonly rewriteLookups: boolean;
  readonly variables: Variables;
  namesOf(className: string): StorageNames;
  /** A pipeline over another class; its internal columns are dropped at the source. */
  joinedPipeline(
    stages: readonly Readonly<Record<string, unknown>>[],
    names: StorageNames,
    variables: Variables,
  ): MappedPipeline;
  /** A branch that reads the same rows. */
  branch(stages: readonly Readonly<Record<string, unknown>>[], scope: RowScope): MappedPipeline;
}
