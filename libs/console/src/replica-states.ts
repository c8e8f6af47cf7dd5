import { randomUUID } from 'node:crypto';
import type { OnModuleDestroy } from '@nestjs/common';
import type { Subscription } from 'rxjs';
import { isJsonObject } from '#core';
import type { BusMessage, MessageBus } from '#state';
import type { ServiceReport, ServiceStatus } from './replica-status.js';

/** A replica as it told the others last. */
export interface ReplicaState extends ServiceReport {
  /** Of its host, or as it is configured. */
  readonly name: string;
  /** False: it did not answer in time, and this is what it said before. */
  readonly answered: boolean;
}

/** How all replicas are. */
export interface ServiceState {
  /** ISO 8601. */
  readonly at: string;
  /** The replica that answers. */
  readonly replica: string;
  /** `replicas`: of all that share their state. `replica`: of the one that answers. */
  readonly scope: 'replica' | 'replicas';
  /** The one that answers first. */
  readonly replicas: readonly ReplicaState[];
}

const ASKED_TOPIC = 'console.state.asked';
const ANSWERED_TOPIC = 'console.state.answered';
const LEFT_TOPIC = 'console.state.left';

const MAX_REPLICAS = 64;

interface StateSettings {
  /**
   * Milliseconds that replicas have to answer: to find that a dependency is silent takes them two seconds, and to compare a policy
   * that was just reloaded more, where their machine is busy.
   */
  readonly timeout: number;
  /** Milliseconds that replicas have which are not known yet. */
  readonly quiet: number;
  /** Milliseconds that an answer is given again. */
  readonly kept: number;
  /** Milliseconds after which a replica that did not answer is no longer known. */
  readonly forgotten: number;
}

const DEFAULTS: StateSettings = { timeout: 5_000, quiet: 300, kept: 2_000, forgotten: 600_000 };

export interface StatesOptions {
  readonly name: string;
  /** Id of this process. */
  readonly replica: string;
  readonly reach: 'process' | 'replicas';
  readonly settings?: Partial<StateSettings>;
}

/** Asks every replica over the bus how it is, when an operator looks. Nothing is sent while nobody does. */
export class ReplicaStates implements OnModuleDestroy {
  private readonly settings: StateSettings;
  private readonly listening: Subscription[];
  private readonly known = new Map<string, { readonly state: ReplicaState; readonly seen: number }>();
  private latest: { readonly at: number; readonly state: Promise<ServiceState> } | null = null;

  constructor(
    private readonly status: ServiceStatus,
    private readonly bus: MessageBus,
    private readonly options: StatesOptions,
  ) {
    this.settings = { ...DEFAULTS, ...options.settings };
    this.listening = [
      bus.messages(ASKED_TOPIC).subscribe((message) => void this.answer(message)),
      bus.messages(ANSWERED_TOPIC).subscribe((message) => this.see(message)),
      bus.messages(LEFT_TOPIC).subscribe(({ replica }) => void this.known.delete(String(replica))),
    ];
  }

  read(): Promise<ServiceState> {
    const now = performance.now();
    if (this.latest && now - this.latest.at < this.settings.kept) return this.latest.state;
    const state = this.gather();
    this.latest = { at: now, state };
    state.catch(() => (this.latest = null));
    return state;
  }

  onModuleDestroy(): void {
    for (const one of this.listening) one.unsubscribe();
    if (this.options.reach === 'replicas')
      void this.bus.publish(LEFT_TOPIC, { replica: this.options.replica }).catch(() => undefined);
  }

  private async gather(): Promise<ServiceState> {
    const { replica, reach } = this.options;
    const isShared = reach === 'replicas';
    const asked = performance.now();
    const [own, areAsked] = await Promise.all([this.readOwn(), isShared && this.askOthers()]);
    // An answer counts that was not waited for, and one to another replica.
    const others = [...this.known.values()].map(({ state, seen }) => ({
      ...state,
      // Where Redis is up, a question that was lost says nothing of them: this process was busy.
      answered: areAsked ? seen >= asked : own.dependencies['redis'] !== 'down',
    }));
    return {
      at: new Date().toISOString(),
      replica,
      scope: isShared ? 'replicas' : 'replica',
      replicas: [own, ...others.sort((a, b) => (a.name + a.replica < b.name + b.replica ? -1 : 1))],
    };
  }

  private async readOwn(): Promise<ReplicaState> {
    return { ...(await this.status.read()), name: this.options.name, answered: true };
  }

  /** Waits for every known one, as long as it may take. @returns false: they could not be asked */
  private askOthers(): Promise<boolean> {
    const id = randomUUID();
    const { forgotten, quiet, timeout } = this.settings;
    for (const [replica, { seen }] of this.known)
      if (performance.now() - seen > forgotten) this.known.delete(replica);
    const waiting = new Set(this.known.keys());
    return new Promise((resolve) => {
      let settled = false;
      const answers = this.bus.messages(ANSWERED_TOPIC).subscribe((message) => {
        if (message['id'] !== id) return;
        waiting.delete(String(message['replica']));
        if (waiting.size === 0 && settled) end();
      });
      const early = setTimeout(() => {
        settled = true;
        if (waiting.size === 0) end();
      }, quiet);
      const late = setTimeout(() => end(), timeout);
      const end = (areAsked = true) => {
        clearTimeout(early);
        clearTimeout(late);
        answers.unsubscribe();
        resolve(areAsked);
      };
      this.bus.publish(ASKED_TOPIC, { id, replica: this.options.replica }).catch(() => end(false));
    });
  }

  private async answer({ id, replica }: BusMessage): Promise<void> {
    if (typeof id !== 'string' || replica === this.options.replica) return;
    const state = await this.readOwn().catch(() => null);
    if (state) await this.bus.publish(ANSWERED_TOPIC, { ...state, id }).catch(() => undefined);
  }

  private see(message: BusMessage): void {
    const state = readState(message);
    if (!state || state.replica === this.options.replica) return;
    this.known.delete(state.replica);
    this.known.set(state.replica, { state, seen: performance.now() });
    const [oldest] = this.known.keys();
    if (this.known.size > MAX_REPLICAS && oldest !== undefined) this.known.delete(oldest);
  }
}

const TEXTS = ['replica', 'name', 'version', 'node', 'started_at'];
const MEMBERS = ['policy', 'dependencies', 'sinks', 'streams'];

/** An answer of another version of Parley may have another form and is ignored. */
function readState({ id: _id, ...message }: BusMessage): ReplicaState | undefined {
  const isWhole =
    TEXTS.every((name) => typeof message[name] === 'string') &&
    MEMBERS.every((name) => isJsonObject(message[name])) &&
    typeof (message['policy'] as Record<string, unknown>)['version'] === 'string';
  // Those of an earlier version name none.
  const [keys, suspended] = ['keys', 'suspended'].map((name): unknown =>
    Array.isArray(message[name]) ? message[name] : [],
  );
  const since = isJsonObject(message['down_since']) ? message['down_since'] : {};
  return isWhole
    ? ({ ...message, keys, suspended, down_since: since } as unknown as ReplicaState)
    : undefined;
}
