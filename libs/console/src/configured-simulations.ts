import type { OnModuleDestroy } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { AgentIdentity } from '#auth';
import type { Agent, AgentDefinition, Identity } from '#core';
import {
  type SimulatedCall,
  createSimulatedAgent,
  judgeCases,
  type JudgedCase,
  type PolicyCase,
  readPolicyCases,
  type SurfaceChange,
  type SurfaceDependencies,
  widens,
} from '#dispatcher';
import { ConfigError, type ConfigIssue, readYaml } from '#config';
import type { Policy } from '#policy';
import {
  type ShownAgentSurface,
  type ListedClasses,
  type ListPart,
  type PolicyChanges,
  type SimulatedTool,
  type SimulationCatalogue,
  type SimulationRequest,
  SimulationsBusy,
  SimulationService,
} from './controllers/explain.controller.js';
import { listChangedCalls, type PolicyTrial, type TrialOrder } from './policy-trial.js';
import { listGovernedClasses, type PolicyViewDependencies, showChange, showSurface } from './policy-view.js';

/** Maximum requests that wait for the running one. */
const MOST_WAITING = 16;
/** Milliseconds without a request after which a simulation is closed. */
const IDLE_TIME = 5 * 60_000;

/** Milliseconds that a status waits for a comparison; after them it says that it is not known yet. */
const COMPARED_WITHIN = 1_000;

/** Versions of the configuration that are kept for comparison. */
const MOST_VERSIONS = 5;
/** Comparisons that are kept: of every version with every later one. */
const MOST_PAIRS = (MOST_VERSIONS * (MOST_VERSIONS - 1)) / 2;
/** Changes of one answer. */
const MOST_CHANGES = 500;

/** What changed between two versions, and how many classes were compared. */
interface ComparedVersions {
  readonly changes: readonly SurfaceChange[];
  readonly classesLeftOut: number;
}

/** A simulation, and the classes of its database. */
export interface ClassSimulation extends SurfaceDependencies {
  /** Every agent of the configuration, by name. */
  readonly agents: ReadonlyMap<string, Agent>;
  classNames(): Promise<readonly string[]>;
  close(): Promise<void>;
}

interface Opened<Loaded> {
  readonly loaded: Loaded;
  readonly simulation: Promise<ClassSimulation>;
}

/** A version of the configuration, as far as simulations show it. */
export interface Versioned {
  readonly number: number;
  readonly loadedAt: Date;
  readonly policy: Pick<Policy, 'version' | 'classes'>;
  readonly agents: ReadonlyMap<string, AgentDefinition>;
  readonly identities: ReadonlyMap<string, AgentIdentity>;
  readonly config: { readonly console: { readonly operators: readonly string[] | null } };
}

export interface SimulationsOptions<Loaded extends Versioned> {
  readonly versions: { readonly changes: Observable<unknown>; readonly current: Loaded };
  readonly open: (loaded: Loaded) => Promise<ClassSimulation>;
  readonly compare: (before: Loaded, after: Loaded) => Promise<ComparedVersions>;
  /** What was served before the start; null: it is not known. */
  readonly findEarlier: (first: Loaded) => Promise<Loaded | null>;
  /** Reads what is tried in the place of the served configuration. Null: it is not in a file. @throws ConfigError */
  readonly rehearse: ((text: string) => Omit<Loaded, 'number' | 'loadedAt'>) | null;
  /** The identity of a named agent when this user calls it. */
  readonly identityOf: (identity: AgentIdentity | undefined, user: string) => Identity | undefined;
  /** The declared methods, and the gates of the environment. */
  readonly methods: Pick<PolicyViewDependencies, 'methods' | 'environment'>;
}

/**
 * Simulated calls beside a running instance: the simulation opens with the first request and runs one call at a time.
 */
export class ConfiguredSimulations<Loaded extends Versioned>
  extends SimulationService
  implements OnModuleDestroy
{
  private opened: Opened<Loaded> | null = null;
  private turn: Promise<unknown> = Promise.resolve();
  private waiting = 0;
  private idle: NodeJS.Timeout | null = null;

  /** The version before the start, once it is found, and those that this process has served, the latest last. */
  private kept: readonly Loaded[];
  private readonly first: Loaded;
  private lookingBack: Promise<void> | null = null;
  private readonly compared = new Map<string, Promise<ComparedVersions>>();
  private readonly following: { unsubscribe(): void };
  private isTrying = false;

  constructor(private readonly options: SimulationsOptions<Loaded>) {
    super();
    const { versions } = options;
    this.first = versions.current;
    this.kept = [this.first];
    this.following = versions.changes.subscribe(() => {
      this.kept = [...this.kept, versions.current].slice(-MOST_VERSIONS);
    });
  }

  catalogue(): Promise<SimulationCatalogue> {
    return this.inTurn(async (simulation, loaded) => {
      const { config, identities } = loaded;
      const tools = new Map<string, SimulatedTool>();
      const agents = [...simulation.agents].map(([name, agent]) => {
        const permitted = simulation.runner.list({ agent });
        for (const { name: tool, description, inputSchema } of permitted)
          tools.set(tool, {
            name: tool,
            description,
            input_schema: inputSchema as SimulatedTool['input_schema'],
          });
        return {
          name,
          permissions: agent.permissions,
          tenant_id: agent.tenantId,
          asks_user: identities.get(name) === 'callerSession',
          operator: config.console.operators?.includes(name) ?? false,
          tools: permitted.map((tool) => tool.name),
        };
      });
      return {
        policy: versionOf(loaded),
        agents: agents.sort(byName),
        tools: [...tools.values()].sort(byName),
      };
    });
  }

  simulate({ agent: name, tool, args, user }: SimulationRequest): Promise<SimulatedCall | undefined> {
    return this.inTurn(async (simulation, { agents, identities }) => {
      const known = simulation.agents.get(name);
      const definition = agents.get(name);
      if (!known || !definition) return undefined;
      const identity = user === undefined ? undefined : this.options.identityOf(identities.get(name), user);
      const agent = identity ? createSimulatedAgent(definition, { identity }) : known;
      return simulation.simulator.simulate(agent, tool, args);
    });
  }

  surface(name: string, { after, limit }: ListPart): Promise<ShownAgentSurface | undefined> {
    return this.inTurn(async (simulation, loaded) => {
      const agent = simulation.agents.get(name);
      if (!agent) return undefined;
      const all = new Set([...(await simulation.classNames()), ...loaded.policy.classes.keys()]);
      const left = [...all].filter((one) => one > after).sort();
      const page = left.slice(0, limit);
      return {
        ...versionOf(loaded),
        agent: name,
        permissions: agent.permissions,
        tenant_id: agent.tenantId,
        asks_user: loaded.identities.get(name) === 'callerSession',
        total: all.size,
        ...(await showSurface({ ...simulation, ...this.options.methods }, agent, page)),
        next: page.length < left.length ? (page.at(-1) ?? null) : null,
      };
    });
  }

  listClasses(name: string, { after, limit }: ListPart): Promise<ListedClasses | undefined> {
    return this.inTurn(async (simulation) => {
      const agent = simulation.agents.get(name);
      if (!agent) return undefined;
      const all = await listGovernedClasses(simulation.records, agent);
      const left = all.filter(({ className }) => className > after);
      const page = left.slice(0, limit);
      return {
        agent: name,
        classes: page.map(({ className, policy }) => ({ name: className, description: policy.description })),
        total: all.length,
        next: page.length < left.length ? (page.at(-1)?.className ?? null) : null,
      };
    });
  }

  async changes(from: number | undefined, to: number | undefined): Promise<PolicyChanges | undefined> {
    await this.lookBack();
    const { kept } = this;
    const at = to === undefined ? kept.length - 1 : kept.findIndex(({ number }) => number === to);
    const now = kept[at];
    const before = from === undefined ? kept[at - 1] : kept.find(({ number }) => number === from);
    if (!now || (from !== undefined && !before)) return undefined;
    if (before && before.number > now.number) return undefined;
    const isCompared = before !== undefined && before !== now;
    const versions = kept
      .toReversed()
      .map((one) => ({ ...versionOf(one), loaded_at: one.loadedAt.toISOString() }));
    const { changes, classesLeftOut } = isCompared ? await this.comparison(before, now) : NO_CHANGES;
    const shown = changes.slice(0, MOST_CHANGES).map(showChange);
    return {
      versions,
      from: before?.number ?? null,
      to: now.number,
      widens: changes.some(widens),
      changes: shown,
      cut: changes.length - shown.length,
      classes_left_out: classesLeftOut,
      scope: 'replica',
    };
  }

  get canTry(): boolean {
    return this.options.rehearse !== null;
  }

  async tryPolicy({ file, tests, collectCalls }: TrialOrder, signal: AbortSignal): Promise<PolicyTrial> {
    const { rehearse, versions, compare, open } = this.options;
    if (this.isTrying) throw new SimulationsBusy();
    this.isTrying = true;
    try {
      const { cases, faults } = readTriedCases(tests);
      const tried = rehearse?.(file);
      if (!tried || faults.length > 0) return { ...NO_TRIAL, faults };
      const { current } = versions;
      const loaded = { ...tried, number: current.number + 1, loadedAt: new Date() } as unknown as Loaded;
      return await this.inTurn(async () => {
        const { calls, ...searched } = await collectCalls();
        const { changes, classesLeftOut } = await compare(current, loaded);
        signal.throwIfAborted();
        const shown = changes.slice(0, MOST_CHANGES).map(showChange);
        return {
          faults,
          widens: changes.some(widens),
          changes: shown,
          cut: changes.length - shown.length,
          classes_left_out: classesLeftOut,
          cases: cases.length === 0 ? [] : await this.judgeUnder(await open(loaded), cases, signal),
          calls: listChangedCalls(calls, changes),
          searched,
        };
      });
    } catch (error) {
      if (error instanceof ConfigError) return { ...NO_TRIAL, faults: error.issues };
      throw error;
    } finally {
      this.isTrying = false;
    }
  }

  private async judgeUnder(
    simulation: ClassSimulation,
    cases: readonly PolicyCase[],
    signal: AbortSignal,
  ): Promise<readonly JudgedCase[]> {
    try {
      return await judgeCases(cases, simulation, signal);
    } finally {
      await simulation.close();
    }
  }

  async widened(): Promise<boolean | null> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => (timer = setTimeout(resolve, COMPARED_WITHIN, null)));
    return Promise.race([this.findWidened(), late]).finally(() => clearTimeout(timer));
  }

  private async findWidened(): Promise<boolean | null> {
    await this.lookBack();
    const [before, now] = this.kept.slice(-2);
    if (!before || !now) return null;
    const compared = await this.comparison(before, now).catch(() => null);
    return compared && compared.changes.some(widens);
  }

  /** Once, and never rejects: where nothing tells what was served before the start, nothing is compared with it. */
  private lookBack(): Promise<void> {
    this.lookingBack ??= this.options.findEarlier(this.first).then(
      (earlier) => {
        if (earlier && this.kept[0] === this.first) this.kept = [earlier, ...this.kept].slice(-MOST_VERSIONS);
      },
      () => undefined,
    );
    return this.lookingBack;
  }

  /** Each pair is compared once: a version never changes. */
  private comparison(before: Loaded, now: Loaded): Promise<ComparedVersions> {
    const key = `${before.number} ${now.number}`;
    const known = this.compared.get(key);
    if (known) return known;
    const compared = this.inTurn(() => this.options.compare(before, now));
    this.compared.set(key, compared);
    compared.catch(() => this.compared.delete(key));
    const [oldest] = this.compared.keys();
    if (this.compared.size > MOST_PAIRS && oldest !== undefined) this.compared.delete(oldest);
    return compared;
  }

  onModuleDestroy(): Promise<void> {
    this.following.unsubscribe();
    return this.close();
  }

  async close(): Promise<void> {
    if (this.idle !== null) clearTimeout(this.idle);
    const { opened } = this;
    this.opened = null;
    await (await opened?.simulation.catch(() => null))?.close();
  }

  /** @throws SimulationsBusy */
  private async inTurn<T>(work: (simulation: ClassSimulation, loaded: Loaded) => Promise<T>): Promise<T> {
    if (this.waiting >= MOST_WAITING) throw new SimulationsBusy();
    this.waiting += 1;
    const mine = this.turn.then(async () => {
      const { simulation, loaded } = await this.currentSimulation();
      return work(await simulation, loaded);
    });
    this.turn = mine.catch(() => undefined);
    try {
      return await mine;
    } finally {
      this.waiting -= 1;
      this.closeWhenIdle();
    }
  }

  private async currentSimulation(): Promise<Opened<Loaded>> {
    const loaded = this.options.versions.current;
    if (this.opened?.loaded !== loaded) {
      await this.close();
      this.opened = { loaded, simulation: this.options.open(loaded) };
    }
    const { opened } = this;
    try {
      await opened?.simulation;
    } catch (error) {
      this.opened = null;
      throw error;
    }
    return opened as Opened<Loaded>;
  }

  private closeWhenIdle(): void {
    if (this.idle !== null) clearTimeout(this.idle);
    this.idle = setTimeout(() => {
      this.turn = this.turn.then(() => this.close()).catch(() => undefined);
    }, IDLE_TIME);
    this.idle.unref();
  }
}

const NO_TRIAL: PolicyTrial = {
  faults: [],
  widens: false,
  changes: [],
  cut: 0,
  classes_left_out: 0,
  cases: [],
  calls: [],
  searched: { records: 0, back_to: null },
};

/** Cases of one trial. */
const MOST_CASES = 500;

function readTriedCases(text: string): {
  readonly cases: readonly PolicyCase[];
  readonly faults: readonly ConfigIssue[];
} {
  if (text.trim() === '') return { cases: [], faults: [] };
  const { value, errors: broken } = readYaml(text, 'tests');
  if (broken.length > 0) return { cases: [], faults: broken };
  const { cases, errors } = readPolicyCases(value);
  const all = cases.length > MOST_CASES ? [...errors, `more than ${MOST_CASES} cases`] : errors;
  return { cases, faults: all.map((message) => ({ path: '', at: 'tests', message })) };
}

const NO_CHANGES: ComparedVersions = { changes: [], classesLeftOut: 0 };

function versionOf({ policy, number }: Versioned): { readonly version: string; readonly number: number } {
  return { version: policy.version, number };
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1;
}
