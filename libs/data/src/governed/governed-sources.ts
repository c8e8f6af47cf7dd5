import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { type Agent, type Principals, Refused, McpRequest, findRootAgent } from '#core';
import {
  type AgentScope,
  AgentScopes,
  mergeFilters,
  haveSameColumns,
  isRefusal,
  type SchemaSnapshot,
  type Where,
} from '#policy';
import { type RowView, RowViews, type WatchedOperation } from '../change-feed.js';
import type {
  GovernedClassWrites,
  GovernedMethods,
  GovernedRecords,
  GovernedSearch,
  GovernedWrites,
} from '../governed-access.js';
import { PrincipalResolver } from '../identity/principal-resolver.js';
import {
  DatabaseTurns,
  runMetered,
  type MeteredCall,
  READ_MEASURES,
  SEARCH_MEASURES,
  WRITE_MEASURES,
} from '../metering/metered-stores.js';
import { SearchStore } from '../record-search.js';
import { type Caller, type OperationContext, ReadStore, WriteStore } from '../record-store.js';
import { SchemaCatalogue, SchemaWriter } from '../schema-store.js';
import { WriteKeys } from '../write-keys.js';
import { type BoundStores, RowTransactions } from '../changes/row-transactions.js';
import {
  DeferredClassWrites,
  DeferredMethods,
  DeferredRecords,
  DeferredSearch,
  DeferredWrites,
} from './deferred-access.js';
import { ParleyClassWrites } from './parley-class-writes.js';
import { ParleyChanges } from './parley-changes.js';
import { ParleyMethods } from './parley-methods.js';
import { ParleyRecords } from './parley-records.js';
import { ParleySearch } from './parley-search.js';
import { ParleyWrites } from './parley-writes.js';
import type { GovernedWriteCall } from './write-rules.js';
import type { GovernedCall } from './governed-call.js';
import { RowRules } from './row-rules.js';
import { atStore, refusing } from './store-refusals.js';

/** The limits of a call at the database, and its comment there. */
export interface CallBudget {
  readonly tool: string;
  /** Seconds that the tool may take in total. */
  readonly timeout: number;
}

/** What a store sees of a call. It ends with the call. */
export class CallOperation implements OperationContext {
  /**
   * The database times out before the tool does, so that a slow query is reported as such: five seconds earlier, at least one
   * second; short tools keep a fifth.
   */
  readonly maxTimeMS: number;
  /**
   * `parley:TOOL:CORRELATION`, and `:TRACE` where there is one; none of the three contains a colon, so that of the name of a
   * route is a dot (docs/operations/observability.md).
   */
  readonly comment: string;
  readonly principal: string;
  readonly tenant: string | number | null;

  constructor(
    private readonly call: McpRequest,
    { tool, timeout }: CallBudget,
  ) {
    const { agent, correlationId, telemetry } = call;
    const comment = `parley:${tool.replace(':', '.')}:${correlationId ?? agent.agentId}`;
    this.maxTimeMS = timeout <= 6 ? Math.round(timeout * 800) : Math.max(1000, (timeout - 5) * 1000);
    this.comment = telemetry?.traceId === undefined ? comment : `${comment}:${telemetry.traceId}`;
    this.principal = agent.principal;
    this.tenant = agent.tenantId;
  }

  get signal(): AbortSignal {
    return this.call.signal;
  }

  get aborted(): boolean {
    return this.call.aborted;
  }

  onAbort(listener: () => void): () => void {
    return this.call.onAbort(listener);
  }
}

/** What a governed access is made of. */
interface OpenedParts {
  readonly operation: OperationContext;
  readonly principals: Principals;
  readonly schemas: SchemaSnapshot;
  /** Where rows are read. */
  readonly store: ReadStore;
}

/** Requests outside a tool: completion, listings. */
const PROTOCOL_BUDGET: CallBudget = { tool: 'protocol', timeout: 15 };

/** Creates the governed records of a call. Only this class holds references to the store. */
@Injectable()
export class GovernedRecordsSource {
  constructor(
    private readonly scopes: AgentScopes,
    private readonly store: ReadStore,
    readonly catalogue: SchemaCatalogue,
    private readonly identities: PrincipalResolver,
    private readonly turns: DatabaseTurns = new DatabaseTurns(),
  ) {}

  /** The store is not read until the first use: a call that needs no data needs no database. */
  for(context: McpRequest, budget: CallBudget = PROTOCOL_BUDGET): GovernedRecords {
    return new DeferredRecords(() => {
      const call = this.open(context, budget);
      return call instanceof Promise ? call.then(createRecords) : createRecords(call);
    });
  }

  /** The classes and fields that an agent may use, without a way to read any of them: for introspection. */
  findScope(agent: Agent): AgentScope | Promise<AgentScope> {
    const call = this.open(new McpRequest(agent), PROTOCOL_BUDGET);
    return call instanceof Promise ? call.then(({ scope }) => scope) : call.scope;
  }

  /**
   * Creates the common base of every governed access of a call, at once where neither roles nor classes have to be read. Only
   * governed access may use it: it holds the ungoverned reader.
   */
  open(
    context: McpRequest,
    budget: CallBudget,
    store: ReadStore = this.store,
  ): GovernedCall | Promise<GovernedCall> {
    const operation = new CallOperation(context, budget);
    const principals = this.identities.resolveNow(context.agent);
    const schemas = principals && this.catalogue.forTenant(operation.tenant).snapshotNow();
    if (principals && schemas)
      return this.openRequest(context, budget, { operation, principals, schemas, store });
    return this.openCall(context, budget, operation, store);
  }

  private async openCall(
    context: McpRequest,
    budget: CallBudget,
    operation: OperationContext,
    store: ReadStore,
  ): Promise<GovernedCall> {
    // The caller's principals are resolved before anything is read on its behalf.
    const principals = await atStore(operation, () => this.identities.resolveAgent(context.agent));
    const schemas = await atStore(operation, () => this.catalogue.forTenant(operation.tenant).snapshot());
    return this.openRequest(context, budget, { operation, principals, schemas, store });
  }

  private openRequest(
    { agent, trace, meter, note }: McpRequest,
    budget: CallBudget,
    { operation, principals, schemas, store }: OpenedParts,
  ): GovernedCall {
    const scope = this.scopes.of(schemas, agent, principals);
    const catalogue = this.catalogue.forTenant(operation.tenant);
    const turns = { of: this.turns, principal: findRootAgent(agent).principal };
    const metering = { meter, turns, schemas };
    const call = { agent, scope, tool: budget.tool };
    const readAs = (caller: Caller) =>
      refusing(operation, runMetered(store, READ_MEASURES, { caller, context: operation, ...metering }));
    return {
      ...call,
      operation,
      read: readAs(call),
      readAsOperator: readAs('operator'),
      // The store knows the class of its own snapshot.
      listIndexes: (schema) => catalogue.listIndexes(schemas.get(schema.className) ?? schema),
      lookAgain: () =>
        atStore(operation, async () => {
          const now = await catalogue.lookAgain(schemas);
          return now !== schemas && !haveSameColumns(now, schemas);
        }),
      trace,
      note,
      metering,
    };
  }
}

const createRecords = (call: GovernedCall) => ({ access: new ParleyRecords(call), call });

/** How another port runs operations of the call. A store sees these members of it, without its ways to rows. */
function meteredCall({ agent, scope, tool, operation, metering }: GovernedCall): MeteredCall {
  return { caller: { agent, scope, tool }, context: operation, ...metering };
}

@Injectable()
export class GovernedSearchSource {
  constructor(
    private readonly records: GovernedRecordsSource,
    private readonly store: SearchStore,
  ) {}

  /** The store is not read until the first use. */
  for(context: McpRequest, budget: CallBudget): GovernedSearch {
    return new DeferredSearch(async () => {
      const call = await this.records.open(context, budget);
      const run = runMetered(this.store, SEARCH_MEASURES, meteredCall(call));
      return { access: new ParleySearch(call, refusing(call.operation, run)), call };
    });
  }
}

/** Creates the governed access that changes data. Only this class holds references to the writers. */
@Injectable()
export class GovernedWritesSource {
  constructor(
    private readonly records: GovernedRecordsSource,
    private readonly store: WriteStore,
    private readonly schemaWriter: SchemaWriter,
    @Inject(WriteKeys) private readonly keys: WriteKeys | null = null,
  ) {}

  rows(context: McpRequest, budget: CallBudget): GovernedWrites {
    return new DeferredWrites(async () => {
      const call = await this.records.open(context, budget);
      const write = runMetered(this.store, WRITE_MEASURES, meteredCall(call));
      return { access: new ParleyWrites({ ...call, write, ids: this.store, keys: this.keys }), call };
    });
  }

  classes(context: McpRequest, budget: CallBudget): GovernedClassWrites {
    const { schemaWriter, records } = this;
    return new DeferredClassWrites(async () => {
      const call = await this.records.open(context, budget);
      return { access: new ParleyClassWrites({ ...call, schemaWriter, catalogue: records.catalogue }), call };
    });
  }

  methods(context: McpRequest, budget: CallBudget): GovernedMethods {
    const deferred = new DeferredMethods(async () => {
      const call = await this.records.open(context, budget);
      return { access: new ParleyMethods(call), call };
    });
    return Object.assign(deferred, { writes: () => this.rows(context, budget) });
  }
}

/** Creates the governed access to sets of changes. It alone holds transactions. */
@Injectable()
export class GovernedChangesSource {
  constructor(
    private readonly records: GovernedRecordsSource,
    private readonly store: WriteStore,
    private readonly transactions: RowTransactions,
  ) {}

  async open(context: McpRequest, budget: CallBudget): Promise<ParleyChanges> {
    return new ParleyChanges(await this.openCall(context, budget), this.transactions, (stores) =>
      this.openCall(context, budget, stores),
    );
  }

  private async openCall(
    context: McpRequest,
    budget: CallBudget,
    stores?: Pick<BoundStores, 'reads' | 'writes'>,
  ): Promise<GovernedWriteCall> {
    const call = await this.records.open(context, budget, stores?.reads);
    const { writes = this.store } = stores ?? {};
    const write = runMetered(writes, WRITE_MEASURES, meteredCall(call));
    return { ...call, write, ids: this.store, keys: null };
  }
}

const WATCHING: CallBudget = { tool: 'subscription', timeout: 15 };

/** The governed access of subscriptions: the same gates and the same predicate as a read of the class. */
export class GovernedViews extends RowViews {
  constructor(private readonly records: GovernedRecordsSource) {
    super();
  }

  async open(context: McpRequest, className: string, operation: WatchedOperation): Promise<RowView> {
    const call = await this.records.open(context, WATCHING);
    const before = call.scope.missing.count;
    const entered = call.scope.enter(call.agent, className, operation);
    if (isRefusal(entered)) {
      if (call.scope.missing.count === before || !(await call.lookAgain())) throw new Refused(entered);
      return this.open(context, className, operation);
    }
    const { declared, where, asked } = await new RowRules(call).predicate(entered.className, {
      canonical: true,
      operation,
    });
    return {
      className: entered.className,
      schema: entered.schema,
      key: digest(`${operation} ${JSON.stringify(where)}`),
      everything: Object.keys(where).length === 0,
      declared: asked ? null : declared,
      ownersOnly: isOwnersOnly(call.scope, entered.className, operation),
      ...questions(call, entered.className, where),
    };
  }
}

function questions(
  { read }: GovernedCall,
  className: string,
  where: Where,
): Pick<RowView, 'holdsAny' | 'size'> {
  return {
    holdsAny: async (objectIds) => {
      if (objectIds.length === 0) return false;
      const mine = mergeFilters({ objectId: { $in: objectIds } }, where);
      return (await read({ kind: 'find', className, where: mine, keys: ['objectId'], limit: 1 })).length > 0;
    },
    size: () => read({ kind: 'count', className, where }),
  };
}

function isOwnersOnly({ rights }: AgentScope, className: string, operation: WatchedOperation): boolean {
  if (rights.unlimited) return false;
  const verdict = rights.verdict(className, operation);
  return className === '_Session' || (verdict.outcome === 'allowed' && verdict.via === 'pointer');
}

/** A digest, because predicates can be long and each subscription has one. */
function digest(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('base64');
}
