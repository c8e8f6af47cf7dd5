import { type AgentDefinition, DEFAULT_FILTER, type FilterConstraint } from '#core';
import { oneLine } from '#audit';
import type { LoadedConfig } from '#config';
import { ClassSchemas, SchemaCatalogue } from '#data';
import {
  type AgentSurface,
  EVERY_FIELD,
  type SurfaceChange,
  surfaceChanges,
  surfaceOf,
  widens,
} from '#dispatcher';
import { type LoadedService, loadWithPlugins } from '#instance';
import {
  ALWAYS_KEEP,
  type ClassSchema,
  type DeclaredClass,
  FieldNames,
  type FieldSchema,
  type IndexSchema,
  missingColumns,
  rootOf,
  type SchemaSnapshot,
} from '#policy';
import { withConfig } from './command-options.js';
import { openConfiguredSimulation } from './simulation.js';

export interface DiffOptions {
  readonly json?: boolean;
  readonly failOnWidening?: boolean;
}

/** Shows which agents gain and lose which permissions between two configurations. The gates of both decide. */
export async function runPolicyDiff(before: string, after: string, options: DiffOptions): Promise<void> {
  const configs: { file: string; loaded: LoadedService }[] = [];
  for (const file of [before, after]) configs.push({ file, loaded: await loadWithPlugins(withConfig(file)) });
  const surfaces: ReadonlyMap<string, AgentSurface>[] = [];
  for (const { file, loaded } of configs) {
    surfaces.push(
      await surfacesOf(
        loaded,
        file,
        configs.map((config) => config.loaded),
      ),
    );
  }
  const [old = new Map(), now = new Map()] = surfaces;
  const changes: SurfaceChange[] = surfaceChanges(old, now);
  const widening = changes.some(widens);
  process.stdout.write(
    options.json ? `${JSON.stringify({ widens: widening, changes }, null, 2)}\n` : describeChanges(changes),
  );
  if (options.failOnWidening && widening) process.exitCode = 1;
}

async function surfacesOf(
  loaded: LoadedService,
  file: string,
  compared: readonly LoadedService[],
): Promise<Map<string, AgentSurface>> {
  let schemas: DeclaredSchemas | undefined;
  const simulation = await openConfiguredSimulation(loaded, withConfig(file), {
    schemas: (read) => {
      schemas = new DeclaredSchemas(read, compared);
      return schemas;
    },
  });
  try {
    const classNames = (await schemas?.snapshot())?.classNames() ?? [];
    const surfaces = new Map<string, AgentSurface>();
    for (const [name, agent] of simulation.agents)
      surfaces.set(name, await surfaceOf(simulation, agent, classNames));
    return surfaces;
  } finally {
    await simulation.close();
  }
}

const MARKS = { gained: '+', lost: '-', changed: '~' } as const;
const PLURALS = {
  tool: 'tools',
  operation: 'operations',
  field: 'fields',
  approval: 'without approval',
} as const;

/** Changes for people, grouped by agent and class; `+` and `~` may let an agent do or read more. */
function describeChanges(changes: readonly SurfaceChange[]): string {
  const lines: string[] = [];
  for (const [agent, own] of groupBy(changes, (change) => change.agent)) {
    lines.push(agent);
    for (const [className, ofClass] of groupBy(own, (change) => change.className ?? '')) {
      if (className !== '') lines.push(`  ${className}`);
      const indent = className === '' ? '  ' : '    ';
      lines.push(...ofGroup(ofClass).map((line) => indent + line));
    }
  }
  const widening = changes.filter(widens).length;
  lines.push(`${widening} gained or changed, ${changes.length - widening} lost`);
  return lines.map((line) => `${oneLine(line)}\n`).join('');
}

function ofGroup(changes: readonly SurfaceChange[]): string[] {
  return [...groupBy(changes, ({ what, effect }) => `${what} ${effect}`).values()].flatMap((alike) => {
    const [first] = alike;
    if (!first) return [];
    const mark = MARKS[first.effect];
    switch (first.what) {
      case 'class':
        return [`${mark} the class`];
      case 'reach':
        return [`${mark} ${first.name}`];
      case 'limit':
        return alike.map(
          ({ name, before = 'none', after = 'none' }) => `${mark} rows by ${name}: ${before} -> ${after}`,
        );
      case 'mask':
        return alike.map(({ name, before = '', after = '' }) => `${mark} ${name}: ${before} -> ${after}`);
      case 'tool':
      case 'operation':
      case 'field':
      case 'approval':
        return [
          `${mark} ${PLURALS[first.what]}: ${alike.map(({ name }) => (name === EVERY_FIELD ? 'any other field' : name)).join(', ')}`,
        ];
    }
  });
}

function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  return groups;
}

/** The classes and fields of the database and of the configurations, so that missing ones are compared too. */
class DeclaredSchemas extends SchemaCatalogue {
  private merged: Promise<SchemaSnapshot> | undefined;

  constructor(
    private readonly read: SchemaCatalogue,
    private readonly compared: readonly Pick<LoadedConfig, 'policy' | 'agents'>[],
  ) {
    super();
  }

  snapshot(): Promise<SchemaSnapshot> {
    return (this.merged ??= this.merge());
  }

  async indexesOf({ className, indexes }: ClassSchema): Promise<readonly IndexSchema[]> {
    const known = (await this.read.snapshot()).get(className);
    return known ? this.read.indexesOf(known) : indexes;
  }

  invalidate(): void {
    this.merged = undefined;
    this.read.invalidate();
  }

  private async merge(): Promise<SchemaSnapshot> {
    const known = await this.read.snapshot();
    const declared = this.compared.flatMap(({ policy }) => [...policy.classes.values()]);
    const filtered = this.compared.flatMap(({ agents }) => [...agents.values()].flatMap(filtersOf));
    const plain = new Set(declared.flatMap((one) => (one.plain ? [one.className] : [])));
    const names = new Set([...known.classNames(), ...declared.map(({ className }) => className)]);
    const fields = new Map(
      [...names].map((className) => {
        const columns = new Map<string, FieldSchema>(known.get(className)?.fields);
        for (const name of ALWAYS_KEEP) added(name, columns);
        for (const policy of declared)
          if (policy.className === className)
            for (const name of namesOf(policy)) added(name, columns, policy.aliases);
        return [className, columns] as const;
      }),
    );
    for (const { policy } of this.compared) {
      const { classes } = policy;
      const schemas = schemasOf(fields, known, plain);
      const own = [...classes.values()].flatMap(({ className, canonicalFilter, filters }) =>
        [canonicalFilter, filters].flatMap((constraint) =>
          constraint ? [[className, constraint] as const] : [],
        ),
      );
      for (const [className, constraint] of [...own, ...filtered]) {
        const targets = className === DEFAULT_FILTER ? [...names] : [className];
        for (const target of targets)
          for (const missing of missingColumns(constraint, target, { classes, schemas }).missing)
            added(missing.written, fields.get(missing.className), classes.get(missing.className)?.aliases);
      }
    }
    return schemasOf(fields, known, plain);
  }
}

type Columns = Map<string, FieldSchema>;

/** Adds a class under its likely name, unless it exists under another. */
function added(written: string, columns: Columns | undefined, aliases?: ReadonlyMap<string, string>): void {
  const root = rootOf(written);
  if (columns && new FieldNames(aliases, columns).column(root) === null)
    columns.set(new FieldNames(aliases).wireName(root), { type: 'String' });
}

/** @param plain the classes that are declared as plain, for those that the database does not have */
function schemasOf(
  fields: ReadonlyMap<string, Columns>,
  known: SchemaSnapshot,
  plain: ReadonlySet<string>,
): SchemaSnapshot {
  const storageOf = (className: string) =>
    known.get(className) ? known.get(className)?.storage : plain.has(className) ? 'plain' : undefined;
  return new ClassSchemas(
    [...fields].map(([className, columns]) => ({
      className,
      ...(storageOf(className) === 'plain' && { storage: 'plain' as const }),
      indexes: known.get(className)?.indexes ?? [],
      classLevelPermissions: known.get(className)?.classLevelPermissions ?? null,
      fields: columns,
    })),
  );
}

function namesOf({
  fields,
  joinFields,
  largeFields,
  masks,
  tenantScope,
  searchable,
  properties,
}: DeclaredClass): string[] {
  return [
    ...(fields ?? []),
    ...(joinFields ?? []),
    ...largeFields,
    ...masks.keys(),
    ...(tenantScope ? [tenantScope.field] : []),
    ...(searchable ? [searchable.field, ...searchable.filterFields, ...(searchable.textFields ?? [])] : []),
    ...properties.keys(),
  ];
}

function filtersOf({ filters }: AgentDefinition): (readonly [string, FilterConstraint])[] {
  return [...filters].flatMap(([className, entry]) =>
    typeof entry === 'function' ? [] : [[className, entry] as const],
  );
}
