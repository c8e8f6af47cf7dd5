import { isDeepStrictEqual } from 'node:util';
import type { CallTrace, LimitOrigin } from '#core';
import {
  type AggregateQuery,
  type CountQuery,
  type Facet,
  type FacetQuery,
  type FindQuery,
  type Handlers,
  type NewClass,
  type ParseRow,
  type Reads,
  type ReadStore,
  type RelatedQuery,
  SchemaWriter,
  type Searches,
  type SearchStore,
  type TextSearchQuery,
  type VectorSearchQuery,
  type Writes,
  type WriteStore,
} from '#data';
import type { Where } from '#policy';

/** One command that would be sent to a database. */
export type StoreCommand = SentCommand & {
  /** Name of the database beside the first one that would receive it. */
  readonly database?: string;
};

type SentCommand =
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

/** The commands that a simulated call would send. */
export class RecordingStore {
  private commands: StoreCommand[] = [];

  /** @param findDatabase the name of the database that holds a class; default: all are those of the first one */
  constructor(private readonly findDatabase: (className: string) => string | null | undefined = () => null) {}

  /** The commands since the last call, in order. */
  take(): readonly StoreCommand[] {
    const taken = this.commands;
    this.commands = [];
    return taken;
  }

  /** Records a command. @returns its answer */
  answer<T>(command: SentCommand, value: T): Promise<T> {
    const database = this.findDatabase(command.query.className) ?? null;
    this.commands.push({ ...command, ...(database !== null && { database }) });
    return Promise.resolve(value);
  }
}

/** Replaces the database: records what is read and answers as if the database were empty. */
export function recordedReads(store: RecordingStore): ReadStore {
  const reads: Handlers<Reads> = {
    find: ({ kind: command, ...query }) => store.answer({ command, query }, []),
    findShown: ({ kind: _kind, atMost: _most, ...query }) =>
      store.answer({ command: 'find', query }, { count: 0, rows: [] }),
    // One, so that the query behind an existence check is recorded too.
    count: ({ kind: command, ...query }) => store.answer({ command, query }, 1),
    aggregate: ({ kind: command, ...query }) =>
      store.answer({ command, query }, { rows: [], route: 'mongo_direct' }),
    related: ({ kind: command, ...query }) => store.answer({ command, query }, []),
    explain: ({ kind: command, ...query }) => store.answer({ command, query }, {}),
  };
  return { run: (operation, context, caller) => reads[operation.kind](operation, context, caller) };
}

/** As `recordedReads`, for searches. @param database whether that of the service can; default: not known, as without a connection */
export function recordedSearches(
  store: RecordingStore,
  database?: Pick<SearchStore, 'canSearch'>,
): SearchStore {
  const searches: Handlers<Searches> = {
    text: ({ kind: _kind, ...query }) => store.answer({ command: 'search', query }, []),
    facets: ({ kind: command, ...query }) =>
      store.answer(
        { command, query: { ...query, facets: Object.fromEntries(query.facets) } },
        { total: 0, facets: new Map() },
      ),
    // The hundreds of numbers of a vector are left out.
    nearest: ({ kind: _kind, vector: _vector, ...query }) =>
      store.answer({ command: 'vector search', query }, []),
  };
  return {
    canSearch: () => database?.canSearch() ?? null,
    run: (operation, context, caller) => searches[operation.kind](operation, context, caller),
  };
}

/** As `recordedReads`, for writes, as if they had been done. */
export function recordedWrites(store: RecordingStore): WriteStore {
  const writes: Handlers<Writes> = {
    create: ({ kind: command, className, fields }) =>
      store.answer({ command, query: { className, fields } }, fields),
    update: ({ kind: command, className, objectId, where, fields }) =>
      store.answer({ command, query: { className, objectId, where, fields } }, { objectId }),
    delete: ({ kind: command, className, objectId, where }) =>
      store.answer({ command, query: { className, objectId, where } }, true),
  };
  return {
    takesObjectIds: false,
    judgesRows: false,
    idFor: (_className, text) => Promise.resolve(text),
    run: (operation, context, caller) => writes[operation.kind](operation, context, caller),
  };
}

/** Records what is written of classes only. */
export class RecordingSchemaWriter extends SchemaWriter {
  constructor(private readonly store: RecordingStore) {
    super();
  }

  createClass({ className, fields }: NewClass): Promise<void> {
    return this.store.answer(
      { command: 'create class', query: { className, fields: Object.fromEntries(fields) } },
      undefined,
    );
  }

  deleteClass(className: string): Promise<'deleted'> {
    return this.store.answer({ command: 'delete class', query: { className } }, 'deleted');
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

  notePassed(gate: string, subject?: string): void {
    if (this.gates.some((known) => known.gate === gate && known.subject === subject)) return;
    this.gates.push({ gate, ...(subject !== undefined && { subject }) });
  }

  noteLimit(className: string, origin: LimitOrigin, where: Readonly<Record<string, unknown>>): void {
    const limit = { className, origin, where };
    if (!this.limits.some((known) => isDeepStrictEqual(known, limit))) this.limits.push(limit);
  }

  noteMasks(className: string, fields: ReadonlyMap<string, string>): void {
    for (const [field, mask] of fields) {
      if (this.masks.some((known) => known.className === className && known.field === field)) continue;
      this.masks.push({ className, field, mask });
    }
  }
}
