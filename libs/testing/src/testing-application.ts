import type { INestApplicationContext, Type } from '@nestjs/common';
import {
  type AgentShapeOptions,
  CachedPrincipalDirectory,
  type Parley,
  SchemaCatalogue,
} from '@parley/server';
import { type AccessRow, tableOf } from './access-table.js';
import { AuditBook } from './audit-book.js';
import { Caller } from './caller.js';
import { Rehearsals } from './rehearsals.js';
import type { TestingDatabase } from './testing-database.js';
import { ThrownErrors } from './thrown-errors.js';
import { UngovernedRows } from './ungoverned-rows.js';

/** Who is behind an agent. At most one of `user`, `role` and `session`; without any the agent reads as the policy has it. */
export interface As {
  /** Object id of the user with whose rights it reads. */
  readonly user?: string;
  /** Name of the role with whose rights it reads. */
  readonly role?: string;
  /** Session token with whose rights it reads. */
  readonly session?: string;
  /** Default: that of the agent. */
  readonly tenantId?: string | number;
  /** Key of rate limits and budgets. Default: another one for each caller, and after each `reset`. */
  readonly principal?: string;
}

export interface ApplicationParts {
  readonly context: INestApplicationContext;
  readonly parley: Parley;
  /** Null: the rows are somebody else's, and cannot be put back. */
  readonly database: TestingDatabase | null;
  /** Classes that the policy speaks of. */
  readonly classes: readonly string[];
  readonly close: () => Promise<void>;
}

/** An application with Parley in it, as tests see it. Several may run side by side in one process. */
export class TestingApplication {
  /** The instance itself: its registries, its runner, its kernel. */
  readonly parley: Parley;
  /** What was written down since the start or the last `reset`. */
  readonly audit: AuditBook;
  /** The stored rows, past every rule: what an assertion needs and no agent may see. */
  readonly ungoverned: UngovernedRows;
  private readonly rehearsals: Rehearsals;
  private readonly thrown: ThrownErrors;
  private readonly callers = new Set<WeakRef<Caller>>();
  private count = 0;
  private resets = 0;
  private closing: Promise<void> | undefined;

  /** @internal Made by `createTestingApplication` and `testingOver`. */
  constructor(private readonly parts: ApplicationParts) {
    this.parley = parts.parley;
    this.audit = new AuditBook(this.parley);
    this.ungoverned = new UngovernedRows(parts.database);
    this.rehearsals = new Rehearsals(this.parley);
    this.thrown = new ThrownErrors(this.parley);
  }

  /**
   * An agent of the configuration by its name, or one within limits of its own, which by default reads with the master key.
   * @throws TypeError for an agent or identity that cannot be
   */
  as(agent: string | AgentShapeOptions, { user, role, session, tenantId, principal }: As = {}): Caller {
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
    // What cannot be is told here, and not by the first call.
    admit();
    return this.callerOf(name, admit);
  }

  /**
   * Who may do what with which class, for a snapshot: found out as `parley policy diff` does, by asking the gates.
   * Takes a rehearsal for each agent, class and tool.
   */
  matrix(): Promise<readonly AccessRow[]> {
    return this.rehearsals.in(async (room) => {
      const catalogue = this.parley.get<SchemaCatalogue>(SchemaCatalogue);
      const classNames = (await catalogue.snapshot()).classNames();
      const rows: AccessRow[] = [];
      for (const [name, agent] of [...room.agents].sort(([one], [other]) => (one < other ? -1 : 1)))
        rows.push(...tableOf(name, await room.surfaceOf(agent, classNames)));
      return rows;
    });
  }

  /** Whether rows can be put back. */
  get isResettable(): boolean {
    return this.parts.database !== null;
  }

  /**
   * For use between tests: puts the rows of the seed back, forgets what was remembered of others, begins the audit anew, and
   * takes back what was promised on behalf of people. No call may be running.
   * @throws Error where the database is not the kit's
   */
  async reset(): Promise<void> {
    const { database } = this.parts;
    if (!database) throw new Error('reset: give the TestingDatabase of the application along');
    await database.reset();
    this.parley.get<SchemaCatalogue>(SchemaCatalogue).invalidate();
    const directory = this.parley.get(CachedPrincipalDirectory);
    for (const className of ['_User', '_Role']) directory.forgetClass(className);
    await this.rehearsals.close();
    await this.audit.forget();
    for (const caller of this.callers) caller.deref()?.leave();
    this.resets += 1;
  }

  /** A provider of the application. */
  get<T>(token: Type<T> | (abstract new (...args: never[]) => T) | string | symbol): T {
    return this.parts.context.get<T>(token as Type<T>, { strict: false });
  }

  /** Ends the application and its database. May be called more than once. */
  close(): Promise<void> {
    this.closing ??= this.rehearsals.close().then(() => this.parts.close());
    return this.closing;
  }

  /** As `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private callerOf(name: string, admit: () => ReturnType<Parley['agentFor']>): Caller {
    const { parley, audit, rehearsals, thrown } = this;
    const { classes } = this.parts;
    const caller = new Caller({ name, parley, audit, rehearsals, thrown, admit, classes });
    this.callers.add(new WeakRef(caller));
    return caller;
  }
}
