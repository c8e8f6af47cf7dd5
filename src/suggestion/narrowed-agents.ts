import { type AgentDefinition, DEFAULT_BUDGET_WINDOW, type Tier, tierCovers, TIERS } from '#core';
import type { DeclaredClass, Policy } from '#policy';
import type { ToolDefinition } from '#tools';
import { type AgentUse, type RecordedUse, NO_NAME } from './recorded-use.js';
import { countOf } from '../cli/text-output.js';

/** One option of an agent that the records permit to be narrower. */
export interface Narrowing {
  readonly option: 'permissions' | 'tools' | 'classes' | 'allowMutations' | 'budget';
  /** As it is written in the configuration. */
  readonly value: unknown;
  /** What the records say, in one line. */
  readonly because: string;
}

export interface NarrowedAgent {
  readonly agent: string;
  readonly narrowings: readonly Narrowing[];
  /** What is left as it is, and why. */
  readonly left: readonly string[];
}

export interface NarrowingOptions {
  /** Every tool of the configuration, by name. */
  readonly tools: ReadonlyMap<string, Pick<ToolDefinition, 'permission' | 'inputSchema'>>;
  /** The built-in tools: what others reach is not known. */
  readonly builtIn: ReadonlySet<string>;
  /** Takes the classes that calls named or joined for all that they need. */
  readonly namedClasses: boolean;
  /** Agents that decide approvals or use the console: neither is a call. */
  readonly people: ReadonlySet<string>;
}

const RAW_WRITES = ['create_object', 'update_object', 'delete_object'];
/** Arguments in which a call may name further classes, or columns that point to them. */
const MAY_NAME_CLASSES = ['where', 'include', 'pipeline', 'filter', 'vector_filter', 'fields', 'arguments'];

/** The window of the budget of an agent, in seconds. */
export function budgetWindow({ budget }: AgentDefinition): number {
  return budget?.window ?? DEFAULT_BUDGET_WINDOW;
}

const NO_CALLS = 'no call was recorded: if nobody needs it, remove it';
const NO_CALLS_OF_PERSON =
  'no call was recorded: keep it, because it is named in approvals.approvers or console.operators';

/**
 * The narrowest options with which every recorded call of each agent would still pass, as far as the present options permit
 * it. Each is narrower than the present one, so that together they permit nothing new.
 */
export function narrowAgents(
  agents: ReadonlyMap<string, AgentDefinition>,
  policy: Policy,
  recorded: RecordedUse,
  options: NarrowingOptions,
): NarrowedAgent[] {
  return [...agents].map(([agent, definition]) => {
    const use = recorded.agents.get(agent);
    if (!use || use.calls === 0)
      return { agent, narrowings: [], left: [options.people.has(agent) ? NO_CALLS_OF_PERSON : NO_CALLS] };
    return { agent, ...new NarrowerAgent(definition, policy, use, options).narrower(recorded) };
  });
}

class NarrowerAgent {
  private readonly narrowings: Narrowing[] = [];
  private readonly left: string[] = [];
  /** Recorded tools that the present options permit. */
  private readonly used: readonly string[];

  constructor(
    private readonly definition: AgentDefinition,
    private readonly policy: Policy,
    private readonly use: AgentUse,
    private readonly options: NarrowingOptions,
  ) {
    this.used = [...use.tools.keys()].filter((name) => definition.tools.permits(name)).sort();
  }

  narrower(recorded: RecordedUse): { narrowings: readonly Narrowing[]; left: readonly string[] } {
    this.tools();
    const lowered = this.permissions(recorded);
    this.mutations(lowered);
    this.classes(recorded);
    this.rows();
    this.left.push('fields, methods, row filters and rateLimit: records do not tell what calls need of them');
    return { narrowings: this.narrowings, left: this.left };
  }

  private tools(): void {
    const { tools } = this.definition;
    const same =
      tools.only?.size === this.used.length &&
      !tools.except &&
      this.used.every((name) => tools.only?.has(name));
    if (same) return;
    this.narrowings.push({
      option: 'tools',
      value: this.used,
      because: `${countOf(this.use.calls, 'call')} used ${countOf(this.used.length, 'tool')}`,
    });
  }

  /** @returns the permissions that are suggested, or the present ones */
  private permissions({ delegated }: RecordedUse): Tier {
    const present = this.definition.permissions;
    if (present === 'readonly') return present;
    const keepPermissions = (why: string) => {
      this.left.push(`permissions: ${why}`);
      return present;
    };
    if (this.used.includes('call_method'))
      return keepPermissions('records do not tell the permissions of called methods');
    if (this.use.reads > 0 || delegated > 0)
      return keepPermissions('records do not tell those of prompts, resources and sub-agents');
    const unknown = this.used.find((name) => !this.options.tools.has(name));
    if (unknown !== undefined) return keepPermissions(`'${unknown}' is no tool of this configuration`);
    const needed = TIERS.find((tier) =>
      this.used.every((name) => tierCovers(tier, this.options.tools.get(name)?.permission ?? 'admin')),
    ) as Tier;
    if (needed === present || !tierCovers(present, needed)) return present;
    const dependent = [...this.policy.classes.values()].find((one) => differs(one, present, needed));
    if (dependent)
      return keepPermissions(`masks or the tenant scope of ${dependent.className} depend on them`);
    this.narrowings.push({ option: 'permissions', value: needed, because: `no call needed ${present}` });
    return needed;
  }

  private mutations(permissions: Tier): void {
    const { allowMutations } = this.definition;
    if (!allowMutations || permissions === 'readonly' || RAW_WRITES.some((name) => this.used.includes(name)))
      return;
    this.narrowings.push({
      option: 'allowMutations',
      value: false,
      because: 'no call used a raw write tool',
    });
  }

  private classes({ delegated }: RecordedUse): void {
    const { classes } = this.definition;
    const needed = [...this.use.classes].filter(([, tools]) => this.used.some((name) => tools.has(name)));
    const named = needed
      .flatMap(([name]) => (name !== NO_NAME && classes.permits(name) ? [name] : []))
      .sort();
    if (needed.some(([name]) => name === NO_NAME)) {
      this.left.push(
        'classes: records name none, because an earlier version wrote them, or not all that a call joined',
      );
      return;
    }
    const reaching = this.used.filter((name) => this.mayReachOthers(name));
    if (!this.options.namedClasses && (reaching.length > 0 || this.use.reads > 0 || delegated > 0)) {
      const who =
        reaching.length > 0 ? `calls of ${reaching.join(', ')}` : 'prompts, resources or sub-agents';
      this.left.push(
        `classes: ${who} may have used columns that point to classes that records do not name; ` +
          `--named-classes takes those that calls named or joined: ${named.join(', ') || 'none'}`,
      );
      return;
    }
    const same =
      classes.only?.size === named.length &&
      !classes.except &&
      named.every((name) => classes.only?.has(name));
    if (same) return;
    this.narrowings.push({
      option: 'classes',
      value: named,
      because: `calls named or joined ${countOf(named.length, 'class', 'classes')}`,
    });
    if (this.options.namedClasses && reaching.length > 0)
      this.left.push(
        `classes: calls that sorted by or searched columns that point to others will be refused, and joins in records of earlier versions, which do not name them (${reaching.join(', ')})`,
      );
  }

  private mayReachOthers(tool: string): boolean {
    const definition = this.options.builtIn.has(tool) ? this.options.tools.get(tool) : undefined;
    if (!definition) return true;
    const { properties = {} } = definition.inputSchema as { properties?: object };
    return Object.keys(properties).some((name) => MAY_NAME_CLASSES.includes(name));
  }

  private rows(): void {
    const { budget } = this.definition;
    const { rows } = this.use;
    if (rows === null || !Number.isSafeInteger(rows + 1)) {
      this.left.push('budget: records do not tell when rows were read (long calls, or too many callers)');
      return;
    }
    // A budget refuses once it is used up: one more than was ever used.
    const most = rows + 1;
    const present = budget?.limits.rows;
    if (present !== undefined && present <= most) return;
    const window = budgetWindow(this.definition);
    this.narrowings.push({
      option: 'budget',
      value: { ...budget?.limits, rows: most, window },
      because: `no caller read more than ${rows} rows within ${window} seconds`,
    });
  }
}

/** Whether a class treats two permission levels differently. Code that decides may. */
function differs({ masks, tenantScope }: DeclaredClass, one: Tier, other: Tier): boolean {
  if (tenantScope) {
    const { bypass, from } = tenantScope;
    if (typeof bypass === 'function' || typeof from === 'function') return true;
    if (bypass.includes(one) !== bypass.includes(other)) return true;
  }
  return [...masks.values()].some((tiers) => JSON.stringify(tiers[one]) !== JSON.stringify(tiers[other]));
}
