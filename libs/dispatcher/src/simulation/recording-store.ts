import { isDeepStrictEqual } from 'node:util';
import type { CallTrace, LimitOrigin } from '#core';
import {
  type AggregateQuery,
  type CountQuery,
  type Facet,
  type FacetCounts,
  type FacetQuery,
  type FindQuery,
  type NewClass,
  type ParseRow,
  type QueryPlan,
  RecordReader,
  RecordSearcher,
  RecordWriter,
  type RelatedQuery,
  SchemaWriter,
  type SearchHit,
  type TextSearchQuery,
  type VectorSearchQuery,
} from '#data';
import type { FieldSchema, Where } from '#policy';

/** One command that would be sent to the database. */
export type StoreCommand =
  | { readonly command: 'find'; readonly query: FindQuery }
  | { readonly command: 'count'; readonly query: CountQuery }
  | { readonly command: 'aggregate'; readonly query: AggregateQuery }
  | { readonly command: 'related'; readonly query: RelatedQuery }
  | { readonly command: 'explain'; readonly query: CountQuery }
  | { readonly command: 'search'; readonly query: TextSearchQuery }
  | { readonly command: 'facets'; readonly query: SimulatedFacets }
  | { readonly command: 'vector search'; readonly query: Omit<VectorSearchQuery, 'vector'> }
  | { readonly command: WriteCommand; readonly query: SimulatedWrite };

type WriteCommand = 'create' | 'update' | 'delete' | 'create class' | 'add fields' | 'delete class';

interface SimulatedFacets extends Omit<FacetQuery, 'facets'> {
  readonly facets: Readonly<Record<string, Facet>>;
}

interface SimulatedWrite {
  readonly className: string;
  readonly objectId?: string;
  readonly where?: Where;
  readonly fields?: ParseRow;
}

/** Replaces the database: records commands and answers as if the database were empty. */
export class RecordingStore extends RecordReader {
  private commands: StoreCommand[] = [];

  /** The commands since the last call, in order. */
  take(): readonly StoreCommand[] {
    const taken = this.commands;
    this.commands = [];
    return taken;
  }

  find(query: FindQuery): Promise<ParseRow[]> {
    return this.answer({ command: 'find', query }, []);
  }

  /** Returns one, so that the query behind an existence check is recorded too. */
  count(query: CountQuery): Promise<number> {
    return this.answer({ command: 'count', query }, 1);
  }

  aggregate(query: AggregateQuery): Promise<ParseRow[]> {
    return this.answer({ command: 'aggregate', query }, []);
  }

  related(query: RelatedQuery): Promise<string[]> {
    return this.answer({ command: 'related', query }, []);
  }

  explain(query: CountQuery): Promise<QueryPlan> {
    return this.answer({ command: 'explain', query }, {});
  }

  /** A search without results. */
  searched(
    command: Extract<StoreCommand, { command: 'search' | 'facets' | 'vector search' }>,
  ): Promise<void> {
    return this.answer(command, undefined);
  }

  /** A write that changed nothing. */
  write(command: WriteCommand, query: SimulatedWrite): Promise<void> {
    return this.answer({ command, query }, undefined);
  }

  private answer<T>(command: StoreCommand, value: T): Promise<T> {
    this.commands.push(command);
    return Promise.resolve(value);
  }
}

/** As `RecordingStore`, for searches. */
export class RecordingSearcher extends RecordSearcher {
  /** @param canSearch whether the database of the service can; default: not known, as without a connection */
  constructor(
    private readonly store: RecordingStore,
    private readonly database?: Pick<RecordSearcher, 'canSearch'>,
  ) {
    super();
  }

  override canSearch(): boolean | null | Promise<boolean | null> {
    return this.database?.canSearch() ?? super.canSearch();
  }

  async text(query: TextSearchQuery): Promise<SearchHit[]> {
    await this.store.searched({ command: 'search', query });
    return [];
  }

  async facets(query: FacetQuery): Promise<FacetCounts> {
    const facets = Object.fromEntries(query.facets);
    await this.store.searched({ command: 'facets', query: { ...query, facets } });
    return { total: 0, facets: new Map() };
  }

  /** The hundreds of numbers of a vector are left out. */
  async nearest(asked: VectorSearchQuery): Promise<SearchHit[]> {
    const { vector: _, ...query } = asked;
    await this.store.searched({ command: 'vector search', query });
    return [];
  }
}

/** Records commands only, and answers as if the writes had been done. */
export class RecordingWriter extends RecordWriter {
  constructor(private readonly store: RecordingStore) {
    super();
  }

  async create(className: string, fields: ParseRow): Promise<ParseRow> {
    await this.store.write('create', { className, fields });
    return fields;
  }

  async update(className: string, objectId: string, fields: ParseRow, where: Where): Promise<ParseRow> {
    await this.store.write('update', { className, objectId, where, fields });
    return { objectId };
  }

  async delete(className: string, objectId: string, where: Where): Promise<boolean> {
    await this.store.write('delete', { className, objectId, where });
    return true;
  }
}

/** As `RecordingWriter`, for classes. */
export class RecordingSchemaWriter extends SchemaWriter {
  constructor(private readonly store: RecordingStore) {
    super();
  }

  createClass({ className, fields }: NewClass): Promise<void> {
    return this.store.write('create class', { className, fields: Object.fromEntries(fields) });
  }

  addFields(className: string, fields: ReadonlyMap<string, FieldSchema>): Promise<void> {
    return this.store.write('add fields', { className, fields: Object.fromEntries(fields) });
  }

  async deleteClass(className: string): Promise<'deleted'> {
    await this.store.write('delete class', { className });
    return 'deleted';
  }
}

/** A gate that admitted the call, and the class that it checked. */
export interface PassedGate {
  readonly gate: string;
  readonly subject?: string;
}

/** A predicate that every row read of a class must meet, and the rule that requires it. */
export interface InjectedLimit {
  readonly className: string;
  readonly origin: LimitOrigin;
  readonly where: Readonly<Record<string, unknown>>;
}

/** A masked field and its mask. */
export interface MaskedField {
  readonly className: string;
  readonly field: string;
  readonly mask: string;
}

/** Records the decisions of the gates of one call. A repeated check of the same subject is recorded once. */
export class GateTrace implements CallTrace {
  private readonly gates: PassedGate[] = [];
  private readonly limits: InjectedLimit[] = [];
  private readonly masks: MaskedField[] = [];

  get maskedFields(): readonly MaskedField[] {
    return this.masks;
  }

  get passedGates(): readonly PassedGate[] {
    return this.gates;
  }

  get injected(): readonly InjectedLimit[] {
    return this.limits;
  }

  passed(gate: string, subject?: string): void {
    if (this.gates.some((known) => known.gate === gate && known.subject === subject)) return;
    this.gates.push({ gate, ...(subject !== undefined && { subject }) });
  }

  limited(className: string, origin: LimitOrigin, where: Readonly<Record<string, unknown>>): void {
    const limit = { className, origin, where };
    if (!this.limits.some((known) => isDeepStrictEqual(known, limit))) this.limits.push(limit);
  }

  masked(className: string, fields: ReadonlyMap<string, string>): void {
    for (const [field, mask] of fields) {
      if (this.masks.some((known) => known.className === className && known.field === field)) continue;
      this.masks.push({ className, field, mask });
    }
  }
}
