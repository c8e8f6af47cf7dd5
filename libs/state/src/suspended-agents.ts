import { Inject, Injectable } from '@nestjs/common';
import { filter, type Observable, startWith, Subject, type Subscription } from 'rxjs';
import { type Agent, refuse } from '#core';
import { type MessageBus, SharedStateUnavailable, type VersionedStore } from './ports/stores.js';
import { SharedState } from './ports/shared-state.js';

/** An agent that an operator suspended. */
export interface Suspension {
  /** The name of its definition. */
  readonly agent: string;
  /** ISO 8601. */
  readonly since: string;
  /** The operator, as people know it. */
  readonly by: string;
  /** For operators and the audit records; never sent to the agent. */
  readonly reason: string;
}

/** Id of the record that holds all suspensions. It is never removed: where it is missing, the shared state was lost. */
const RECORD = 'suspended-agents';
const TOPIC = 'agents.suspended';
/** A hundred years: a suspension ends when an operator ends it. */
const RECORD_LIFETIME = 100 * 365 * 86_400_000;
/** Milliseconds between two reads: a message between replicas may be lost. */
const READ_INTERVAL = 5_000;
/** Attempts to change the record while others change it as well. */
const MOST_ATTEMPTS = 10;

/**
 * The agents that operators suspended, on all replicas: the only place that decides whether an agent may act. While the shared
 * state cannot be reached, what this process last knew counts; a process that never read it admits nobody. Without shared
 * state it is this process alone.
 */
@Injectable()
export class SuspendedAgents {
  /** `replicas`: a suspension counts on all replicas, and after a restart. */
  readonly reach: SharedState['reach'];
  /** Emits the names of agents that became suspended. */
  readonly changes: Observable<readonly string[]>;
  private readonly changing = new Subject<readonly string[]>();
  private readonly store: VersionedStore;
  private readonly bus: MessageBus;
  private readonly clock: () => number;
  private readonly listening: Subscription;
  private readonly timer: NodeJS.Timeout | undefined;
  /** By name; null: never read. */
  private known: ReadonlyMap<string, Suspension> | null;
  private first: Promise<void> | null = null;
  /** Reads and changes follow one another: an older answer never replaces a newer one. */
  private last: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  constructor(
    @Inject(SharedState)
    { reach, revocations, bus, clock }: Pick<SharedState, 'reach' | 'revocations' | 'bus' | 'clock'>,
  ) {
    this.reach = reach;
    this.store = revocations;
    this.bus = bus;
    this.clock = clock;
    this.changes = this.changing.asObservable();
    this.known = reach === 'process' ? new Map() : null;
    this.listening = bus.messages(TOPIC).subscribe(() => this.readSoon());
    if (reach === 'process') return;
    this.readSoon();
    this.timer = setInterval(() => this.waiting === 0 && this.readSoon(), READ_INTERVAL).unref();
  }

  /**
   * Admits an agent unless it, or one that made it, is suspended.
   * @returns a promise where nothing is known yet
   * @throws Refused. @throws SharedStateUnavailable when nothing is known and nothing can be read
   */
  assertActive(agent: Agent): Promise<void> | void {
    if (!this.known) {
      this.first ??= this.read().finally(() => (this.first = null));
      return this.first.then(() => this.assertActive(agent));
    }
    const name = this.findName(agent);
    if (name !== undefined) throw refuse.agentSuspended(name);
  }

  /** Whether it, or one that made it, is suspended. Before anything is known every agent is. */
  isSuspended(agent: Agent): boolean {
    return this.known === null || this.findName(agent) !== undefined;
  }

  /** Whether the agents of a definition are suspended. Before anything is known all are. */
  isNameSuspended(name: string): boolean {
    return this.known === null || this.known.has(name);
  }

  /** Emits when the agent, or one that made it, becomes suspended, and at once where it is. */
  endOf(agent: Agent): Observable<unknown> {
    return this.changes.pipe(
      startWith(null),
      filter(() => this.isSuspended(agent)),
    );
  }

  /** As this process last knew it, by name. */
  list(): readonly Suspension[] {
    return [...(this.known ?? new Map<string, Suspension>()).values()].sort((a, b) =>
      a.agent < b.agent ? -1 : 1,
    );
  }

  /**
   * Suspends an agent on all replicas. Who suspended it first stays.
   * @returns whether it was not suspended before. @throws SharedStateUnavailable
   */
  suspend({ agent, by, reason }: Omit<Suspension, 'since'>): Promise<boolean> {
    const since = new Date(this.clock()).toISOString();
    return this.change((suspended) => {
      if (suspended.has(agent)) return false;
      suspended.set(agent, { agent, since, by, reason });
      return true;
    });
  }

  /** @returns whether it was suspended. @throws SharedStateUnavailable */
  resume(agent: string): Promise<boolean> {
    return this.change((suspended) => suspended.delete(agent));
  }

  /** Reads no more. */
  close(): void {
    clearInterval(this.timer);
    this.listening.unsubscribe();
  }

  private findName(agent: Agent): string | undefined {
    if (!this.known || this.known.size === 0) return undefined;
    for (let one: Agent | null = agent; one; one = one.parent)
      if (this.known.has(one.definition.name)) return one.definition.name;
    return undefined;
  }

  /** A read that fails leaves what is known. */
  private readSoon(): void {
    this.read().catch(() => undefined);
  }

  private read(): Promise<void> {
    return this.inTurn(async () => {
      const found = await this.store.find(RECORD);
      const known = this.known ?? new Map<string, Suspension>();
      // The shared state was lost: what is known is written again, unless another replica did.
      if (!found && known.size > 0) await this.store.create(RECORD, toValue(known), RECORD_LIFETIME);
      else this.adopt(found ? readValue(found.value) : known);
    });
  }

  private change(edit: (suspended: Map<string, Suspension>) => boolean): Promise<boolean> {
    return this.inTurn(async () => {
      for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
        const found = await this.store.find(RECORD);
        const suspended = new Map(found ? readValue(found.value) : this.known);
        const isChanged = edit(suspended);
        const value = toValue(suspended);
        const isStored =
          !isChanged ||
          (found
            ? await this.store.replace(RECORD, found.revision, value, RECORD_LIFETIME)
            : await this.store.create(RECORD, value, RECORD_LIFETIME));
        if (!isStored) continue;
        this.adopt(suspended);
        // A replica that misses the message reads the record at its next turn.
        if (isChanged) await this.bus.publish(TOPIC, {}).catch(() => undefined);
        return isChanged;
      }
      throw new SharedStateUnavailable('the suspended agents are changed all the time');
    });
  }

  private adopt(suspended: ReadonlyMap<string, Suspension>): void {
    const fresh = [...suspended.keys()].filter((name) => !this.known?.has(name));
    this.known = suspended;
    if (fresh.length > 0) this.changing.next(fresh);
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.waiting += 1;
    const turn = this.last.then(work).finally(() => (this.waiting -= 1));
    this.last = turn.catch(() => undefined);
    return turn;
  }
}

const toValue = (suspended: ReadonlyMap<string, Suspension>) => ({ agents: [...suspended.values()] });

/** Whatever else an entry lacks, its agent is suspended. */
function readValue({ agents }: Readonly<Record<string, unknown>>): ReadonlyMap<string, Suspension> {
  const entries = (Array.isArray(agents) ? agents : []) as readonly Partial<Suspension>[];
  return new Map(
    entries.flatMap(({ agent, since = '', by = '', reason = '' }) =>
      typeof agent === 'string' ? [[agent, { agent, since, by, reason }] as const] : [],
    ),
  );
}
