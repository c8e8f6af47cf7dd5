import { cutText, type Agent, McpRequest } from '#core';
import {
  type ClassSurface,
  EVERY_FIELD,
  type RecordsSource,
  type SurfaceChange,
  type SurfaceDependencies,
  describeSurface,
  widens,
} from '#dispatcher';
import type { GovernedClass } from '#data';
import { callableMethods, type DeclaredMethods } from '#tools';

/** What an agent may do with one class, by the gates that decide its calls. Names only: no value of a filter. */
export interface ShownAgentClass {
  readonly name: string;
  readonly visible: boolean;
  /** `open`: every row and every field in clear. */
  readonly access: 'none' | 'limited' | 'open';
  readonly listed: boolean;
  readonly tools: readonly string[];
  readonly fields: readonly string[];
  /** Also fields that are added later. */
  readonly every_field: boolean;
  readonly masks: readonly { readonly field: string; readonly form: string }[];
  readonly limits: readonly {
    readonly origin: string;
    readonly fields: readonly string[];
    readonly tools: readonly string[];
  }[];
  readonly enums: Readonly<Record<string, readonly string[]>>;
  readonly methods: readonly { readonly name: string; readonly permission: string }[];
}

export interface ShownSurface {
  /** Tools that no gate of the agent refuses. */
  readonly tools: readonly { readonly name: string; readonly approval: boolean }[];
  readonly classes: readonly ShownAgentClass[];
}

export interface PolicyViewDependencies extends SurfaceDependencies {
  readonly methods: DeclaredMethods;
  readonly environment: Parameters<typeof callableMethods>[3];
}

const MOST_VALUES = 50;
const MAX_VALUE = 200;

/** Declared values of a field, as far as they are displayed. */
export const showValues = (values: Iterable<string>): string[] =>
  [...values].slice(0, MOST_VALUES).map((value) => cutText(value, MAX_VALUE));

/** Simulates every tool of the agent on every given class, and shows what the gates permit. */
export async function showSurface(
  parts: PolicyViewDependencies,
  agent: Agent,
  classNames: readonly string[],
): Promise<ShownSurface> {
  const surface = await describeSurface(parts, agent, classNames);
  const known = new Map((await listGovernedClasses(parts.records, agent)).map((one) => [one.className, one]));
  return {
    tools: [...surface.tools].map(([name, how]) => ({ name, approval: how === 'asks approval' })),
    classes: classNames.map((name) => {
      const own = surface.classes.get(name);
      return own ? showAgentClass(name, own, agent, known.get(name), parts) : noClass(name);
    }),
  };
}

/** The classes that an agent's own listing names. */
export function listGovernedClasses(records: RecordsSource, agent: Agent): Promise<readonly GovernedClass[]> {
  return records.for(new McpRequest(agent)).classes();
}

const noClass = (name: string): ShownAgentClass => ({
  name,
  visible: false,
  access: 'none',
  listed: false,
  tools: [],
  fields: [],
  every_field: false,
  masks: [],
  limits: [],
  enums: {},
  methods: [],
});

function showAgentClass(
  name: string,
  { tools, fields, masks, listed }: ClassSurface,
  agent: Agent,
  known: GovernedClass | undefined,
  { methods, environment }: PolicyViewDependencies,
): ShownAgentClass {
  const limits = collectLimits(tools);
  const every = fields.has(EVERY_FIELD);
  const readable = [...fields].filter((field) => field !== EVERY_FIELD).sort();
  const isOpen = every && masks.size === 0 && limits.length === 0 && agent.usesMasterKey && tools.size > 0;
  return {
    name,
    visible: true,
    access: isOpen && !withholds(known) ? 'open' : 'limited',
    listed,
    tools: [...tools.keys()].sort(),
    fields: readable,
    every_field: every,
    masks: [...masks].map(([field, form]) => ({ field, form })),
    limits,
    enums: known ? listEnums(known, new Set(readable)) : {},
    methods: known
      ? callableMethods(methods.of(name), known, agent, environment).map((one) => ({
          name: one.name,
          permission: one.permission,
        }))
      : [],
  };
}

/** Masks that the agent may not even know of are not among those of its surface. */
function withholds(known: GovernedClass | undefined): boolean {
  return known === undefined || known.policy.masks.size > 0 || known.policy.tenantScope !== null;
}

function listEnums({ policy }: GovernedClass, readable: ReadonlySet<string>): Record<string, string[]> {
  const declared = [...policy.properties].flatMap(([field, { enum: values }]) =>
    values && readable.has(field) ? [[field, showValues(values.keys())] as const] : [],
  );
  return Object.fromEntries(declared);
}

/** The fields of row limits by origin, and the tools that they apply to. */
function collectLimits(tools: ClassSurface['tools']): ShownAgentClass['limits'] {
  const found = new Map<string, { fields: Set<string>; tools: Set<string> }>();
  for (const [tool, limits] of tools)
    for (const [origin, where] of limits) {
      const known = found.get(origin) ?? { fields: new Set(), tools: new Set() };
      for (const field of fieldsIn(JSON.parse(where))) known.fields.add(field);
      known.tools.add(tool);
      found.set(origin, known);
    }
  return [...found].map(([origin, { fields, tools: names }]) => ({
    origin,
    fields: [...fields].sort(),
    tools: [...names].sort(),
  }));
}

/** Names of fields in a predicate, never a value: below a field nothing is read. */
function fieldsIn(where: unknown): string[] {
  if (Array.isArray(where)) return where.flatMap(fieldsIn);
  if (typeof where !== 'object' || where === null) return [];
  return Object.entries(where).flatMap(([name, below]) =>
    /^\$(?:and|or|nor)$/.test(name) ? fieldsIn(below) : name.startsWith('$') ? [] : [name],
  );
}

/** A change as an operator sees it; the predicates of limits hold values and are left out. */
export interface ShownChange extends Pick<
  SurfaceChange,
  'agent' | 'what' | 'name' | 'effect' | 'before' | 'after'
> {
  readonly class_name?: string;
  readonly widens: boolean;
}

export function showChange(change: SurfaceChange): ShownChange {
  const { agent, className, what, name, effect, before, after } = change;
  return {
    agent,
    ...(className !== undefined && { class_name: className }),
    what,
    name,
    effect,
    ...(what !== 'limit' && before !== undefined && { before }),
    ...(what !== 'limit' && after !== undefined && { after }),
    widens: widens(change),
  };
}
