import type { INestApplicationContext, Type } from '@nestjs/common';
import {
  type AgentDefinitionOptions,
  CachedPrincipalDirectory,
  type Parley,
  SchemaCatalogue,
} from '@parley/server';
import type { AgentSurface, ClassSurface, ParseRow, RecordReader } from '@parley/server';
import { AuditRecords } from './audit-records.js';
import { ThrownErrors } from './call-results.js';
import { Caller } from './caller.js';
import { assertKeys } from './known-names.js';
import { SharedSimulation } from './shared-simulation.js';
import type { TestingDatabase } from './testing-database.js';

/**
 * The identity behind an agent. At most one of `user`, `role` and `session`; without any the agent reads according to
 * the policy.
 */
export interface As {
  /** Object id of the user with whose rights it reads. */
  readonly user?: string;
  /** Name of the role with whose rights it reads. */
  readonly role?: string;
  /** Session token with whose rights it reads. */
  readonly session?: string;
  /** Default: that of the agent. */
  readonly tenantId?: string | number;
  /** Key of rate limits and budgets. Default: a new one for each caller, and after each `reset`. */
  readonly principal?: string;
}

const WHO = ['user', 'role', 'session', 'tenantId', 'principal'] as const satisfies (keyof As)[];

export interface TestingDependencies {
  readonly context: INestApplicationContext;
  readonly parley: Parley;
  /** Null: the database is external and its rows cannot be restored. */
  readonly database: TestingDatabase | null;
  /** Classes that the policy names. */
  readonly classes: readonly string[];
  readonly close: () => Promise<void>;
}

/** An application with Parley in it, for tests. Several may run side by side in one process. */
export class TestingApplication {
  /** The instance itself: its registries, its runner, its kernel. */
  readonly parley: Parley;
  /** The audit records since the start or the last `reset`. */
  readonly audit: AuditRecords;
  /** The stored rows without any rule, for assertions. */
  readonly ungoverned: UngovernedRows;
  private readonly simulations: SharedSimulation;
  private readonly thrown: ThrownErrors;
  private readonly callers = new Set<WeakRef<Caller>>();
  private count = 0;
  private resets = 0;
  private closing: Promise<void> | undefined;

  /** @internal Made by `createTestingApplication` and `createTestingOver`. */
  constructor(private readonly dependencies: TestingDependencies) {
    this.parley = dependencies.parley;
    this.audit = new AuditRecords(this.parley);
    this.ungoverned = new UngovernedRows(
      dependencies.database,
      dependencies.parley.get<SchemaCatalogue>(SchemaCatalogue),
    );
    this.simulations = new SharedSimulation(this.parley);
    this.thrown = new ThrownErrors(this.parley);
  }

  /**
   * An agent of the configuration by its name, or one with its own limits, which by default reads with the master key.
   * @throws TypeError for an invalid agent or identity
   */
  as(agent: string | AgentDefinitionOptions, who: As = {}): Caller {
    assertKeys('as', who, WHO);
    const { user, role, session, tenantId, principal } = who;
    const identities = [user && { user }, role && { role }, session && { session }].filter((one) => !!one);
    if (identities.length > 1) throw new TypeError('user, role and session: only one of them can be given');
    const [identity] = identities;
    const number = (this.count += 1);
    const name = typeof agent === 'string' ? agent : 'ad hoc';
    const admit = () =>
      this.parley.agentFor({
        agent,
        principal: principal ?? `test:${name}:${number}.${this.resets}`,
        ...(identity && { identity }),
        ...(tenantId !== undefined && { tenantId }),
      });
    // An invalid agent fails here, not in the first call.
    admit();
    return this.createCaller(name, admit);
  }

  /**
   * The permissions of agents on classes, for a snapshot: computed by the gates, as in `parley policy diff`. Simulates
   * a call for each agent, class and tool.
   */
  matrix(): Promise<readonly AccessRow[]> {
    return this.simulations.in(async (simulation) => {
      const catalogue = this.parley.get<SchemaCatalogue>(SchemaCatalogue);
      const classNames = (await catalogue.snapshot()).classNames();
      const rows: AccessRow[] = [];
      for (const [name, agent] of [...simulation.agents].sort(([one], [other]) => (one < other ? -1 : 1)))
        rows.push(...toTable(name, await simulation.surfaceOf(agent, classNames)));
      return rows;
    });
  }

  /** Whether rows can be restored. */
  get isResettable(): boolean {
    return this.dependencies.database !== null;
  }

  /**
   * For use between tests: restores the seed, clears caches, audit records and scripted answers. No call may be
   * running.
   * @throws Error where the database is not that of the kit
   */
  async reset(): Promise<void> {
    const { database } = this.dependencies;
    if (!database) throw new Error('reset: give the TestingDatabase of the application along');
    await database.reset();
    this.parley.get<SchemaCatalogue>(SchemaCatalogue).invalidate();
    const directory = this.parley.get(CachedPrincipalDirectory);
    for (const className of ['_User', '_Role']) directory.forgetClass(className);
    await this.simulations.close();
    await this.audit.forget();
    for (const caller of this.callers) caller.deref()?.leave();
    this.resets += 1;
  }

  /** A provider of the application. */
  get<T>(token: Type<T> | (abstract new (...args: never[]) => T) | string | symbol): T {
    return this.dependencies.context.get<T>(token as Type<T>, { strict: false });
  }

  /** Ends the application and its database. May be called more than once. */
  close(): Promise<void> {
    this.closing ??= this.simulations.close().then(() => this.dependencies.close());
    return this.closing;
  }

  /** As `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private createCaller(name: string, admit: () => ReturnType<Parley['agentFor']>): Caller {
    const { parley, audit, simulations, thrown } = this;
    const { classes } = this.dependencies;
    const caller = new Caller({ name, parley, audit, simulation: simulations, thrown, admit, classes });
    this.callers.add(new WeakRef(caller));
    return caller;
  }
}

/**
 * The permissions of one agent on one class. Lists are sorted and separated by spaces, so that a snapshot diff is
 * readable.
 */
export interface AccessRow {
  /** Its name in the configuration. */
  readonly agent: string;
  /** `*`: tools without a particular class. */
  readonly class: string;
  /** Tools that no gate refuses; a trailing `?` marks a required approval. */
  readonly tools: string;
  /** `*`: every field, including future ones. */
  readonly fields: string;
  /** The masks of fields. */
  readonly masked: string;
  /** The row limits of the agent by origin, and the tools with different limits. */
  readonly rows: string;
  /** Listings name the class, and joins and includes may reach it. */
  readonly listed: boolean;
}

const joinNames = (names: Iterable<string>): string => [...names].sort().join(' ');

/** One row for each class that the agent may use in any way, and one for its other tools. */
function toTable(agent: string, { tools, classes }: AgentSurface): AccessRow[] {
  const markAsking = (name: string) => (tools.get(name) === 'asks approval' ? `${name}?` : name);
  const ofClasses = new Set([...classes.values()].flatMap((surface) => [...surface.tools.keys()]));
  const others = [...tools.keys()].filter((name) => !ofClasses.has(name));
  const byName = [...classes].sort(([one], [other]) => (one < other ? -1 : 1));
  return [
    {
      agent,
      class: '*',
      tools: joinNames(others.map(markAsking)),
      fields: '',
      masked: '',
      rows: '',
      listed: false,
    },
    ...byName.map(([className, surface]) => ({
      agent,
      class: className,
      tools: joinNames([...surface.tools.keys()].map(markAsking)),
      fields: joinNames(surface.fields),
      masked: joinNames([...surface.masks].map(([field, mask]) => `${field}: ${mask};`)),
      rows: toRows(surface.tools),
      listed: surface.listed,
    })),
  ];
}

/** The limits of most tools, followed by the exceptions. */
function toRows(tools: ClassSurface['tools']): string {
  const byLimits = new Map<string, string[]>();
  for (const [tool, limits] of tools) {
    const limitText = [...limits].map(([origin, where]) => `${origin} ${where}`).join(', ') || 'all';
    byLimits.set(limitText, [...(byLimits.get(limitText) ?? []), tool]);
  }
  const [most, ...others] = [...byLimits].sort(
    ([one, few], [other, many]) => many.length - few.length || (one < other ? -1 : 1),
  );
  return [most?.[0] ?? '', ...others.map(([text, names]) => `${text} for ${joinNames(names)}`)].join('; ');
}

const OPERATION = { maxTimeMS: 10_000, comment: 'parley testing' };
const MOST_ROWS = 10_000;

/** The stored rows without any policy: for assertions, never for an agent. */
export class UngovernedRows {
  /** @internal Created by the application. */
  constructor(
    private readonly database: TestingDatabase | null,
    private readonly catalogue: SchemaCatalogue,
  ) {}

  /** At most 10 000 rows, in the order of their ids. @param where a Parse constraint. Default: all */
  find(className: string, where: Readonly<Record<string, unknown>> = {}): Promise<ParseRow[]> {
    const order = [{ field: 'objectId', descending: false }];
    return this.read(className, (reader) =>
      reader.find({ className, where, order, limit: MOST_ROWS }, this.operation),
    );
  }

  /** Null: the row does not exist. */
  get(className: string, objectId: string): Promise<ParseRow | null> {
    return this.read(className, async (reader) => {
      const [row] = await reader.find({ className, where: { objectId }, limit: 1 }, this.operation);
      return row ?? null;
    });
  }

  /** Counts the rows. @param where as in `find` */
  count(className: string, where: Readonly<Record<string, unknown>> = {}): Promise<number> {
    return this.read(className, (reader) => reader.count({ className, where }, this.operation));
  }

  /** Only the application knows a class with plain storage. */
  private read<T>(className: string, look: (reader: RecordReader) => Promise<T>): Promise<T> {
    const { database, catalogue } = this;
    if (!database) throw new Error('ungoverned: give the TestingDatabase of the application along');
    return catalogue.snapshot().then((snapshot) => {
      const isPlain = snapshot.get(className)?.storage === 'plain';
      return look(database.rows(isPlain ? catalogue : undefined));
    });
  }

  private get operation() {
    return { ...OPERATION, signal: new AbortController().signal };
  }
}
