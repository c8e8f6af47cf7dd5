import { type Agent, type AgentDefinition, DEFAULT_FILTER, type FilterConstraint } from '#core';
import { ClassSchemas, SchemaCatalogue } from '#data';
import {
  ALWAYS_KEEP,
  type ClassSchema,
  type DeclaredClass,
  FieldNames,
  type FieldSchema,
  type IndexSchema,
  listMissingColumns,
  type Policy,
  takeRoot,
  type SchemaSnapshot,
} from '#policy';
import {
  type AgentSurface,
  describeSurface,
  surfaceChanges,
  type SurfaceChange,
  type SurfaceDependencies,
} from './policy-surface.js';

/** What a configuration says of agents and their data. */
interface Compared {
  readonly policy: Policy;
  readonly agents: ReadonlyMap<string, AgentDefinition>;
}

/** A simulation of a configuration. */
interface OpenedSimulation extends SurfaceDependencies {
  readonly agents: ReadonlyMap<string, Agent>;
  close(): Promise<void>;
}

/** What changed between two configurations, and how many classes were compared. */
export interface ComparedSurfaces {
  readonly changes: readonly SurfaceChange[];
  /** Classes of the database and of both policies that were left out. */
  readonly classesLeftOut: number;
}

/**
 * Compares what agents may do under two configurations, as the gates of each decide.
 * @param open opens a simulation of one of them over these classes
 * @param most agents times classes; declared classes come first. Default: all
 */
export async function compareSurfaces<Loaded extends Compared>(
  pair: readonly [Loaded, Loaded],
  open: (loaded: Loaded, schemas: (read: SchemaCatalogue) => SchemaCatalogue) => Promise<OpenedSimulation>,
  most = Infinity,
): Promise<ComparedSurfaces> {
  const surfaces: Map<string, AgentSurface>[] = [];
  let classesLeftOut = 0;
  const agents = new Set(pair.flatMap((one) => [...one.agents.keys()]));
  for (const loaded of pair) {
    let schemas: DeclaredSchemas | undefined;
    const simulation = await open(
      loaded,
      (read) => (schemas = new DeclaredSchemas(read, pair, loaded.policy)),
    );
    try {
      const all = (await schemas?.snapshot())?.classNames() ?? [];
      const classNames = sortDeclaredFirst(all, pair).slice(0, Math.max(1, Math.floor(most / agents.size)));
      classesLeftOut = all.length - classNames.length;
      const own = new Map<string, AgentSurface>();
      for (const [name, agent] of simulation.agents)
        own.set(name, await describeSurface(simulation, agent, classNames));
      surfaces.push(own);
    } finally {
      await simulation.close();
    }
  }
  const [old = new Map(), now = new Map()] = surfaces;
  return { changes: surfaceChanges(old, now), classesLeftOut };
}

function sortDeclaredFirst(classNames: readonly string[], pair: readonly Compared[]): string[] {
  const declared = new Set(pair.flatMap(({ policy }) => [...policy.classes.keys()]));
  return [...classNames].sort((a, b) => Number(declared.has(b)) - Number(declared.has(a)));
}

/** The classes and fields of the database and of the configurations, so that missing ones are compared too. */
class DeclaredSchemas extends SchemaCatalogue {
  private merged: Promise<SchemaSnapshot> | undefined;

  constructor(
    private readonly read: SchemaCatalogue,
    private readonly compared: readonly Compared[],
    /** The one that says which database holds a class. */
    private readonly policy: Policy,
  ) {
    super();
  }

  snapshot(): Promise<SchemaSnapshot> {
    return (this.merged ??= this.merge());
  }

  async listIndexes({ className, indexes }: ClassSchema): Promise<readonly IndexSchema[]> {
    const known = (await this.read.snapshot()).get(className);
    return known ? this.read.listIndexes(known) : indexes;
  }

  invalidate(): void {
    this.merged = undefined;
    this.read.invalidate();
  }

  private async merge(): Promise<SchemaSnapshot> {
    const known = await this.read.snapshot();
    const declared = this.compared.flatMap(({ policy }) => [...policy.classes.values()]);
    const filtered = this.compared.flatMap(({ agents }) => [...agents.values()].flatMap(listFilters));
    const plain = new Set(declared.flatMap((one) => (one.plain ? [one.className] : [])));
    const names = new Set([...known.classNames(), ...declared.map(({ className }) => className)]);
    const fields = new Map(
      [...names].map((className) => {
        const columns = new Map<string, FieldSchema>(known.get(className)?.fields);
        for (const name of ALWAYS_KEEP) findAdded(name, columns);
        for (const policy of declared)
          if (policy.className === className)
            for (const name of listNames(policy)) findAdded(name, columns, policy.aliases);
        return [className, columns] as const;
      }),
    );
    for (const { policy } of this.compared) {
      const { classes } = policy;
      const schemas = createSchemas(fields, known, plain, this.policy);
      const own = [...classes.values()].flatMap(({ className, canonicalFilter, filters }) =>
        [canonicalFilter, filters].flatMap((constraint) =>
          constraint ? [[className, constraint] as const] : [],
        ),
      );
      for (const [className, constraint] of [...own, ...filtered]) {
        const targets = className === DEFAULT_FILTER ? [...names] : [className];
        for (const target of targets)
          for (const missing of listMissingColumns(constraint, target, { classes, schemas }).missing)
            findAdded(
              missing.written,
              fields.get(missing.className),
              classes.get(missing.className)?.aliases,
            );
      }
    }
    return createSchemas(fields, known, plain, this.policy);
  }
}

type Columns = Map<string, FieldSchema>;

/** Adds a class under its likely name, unless it exists under another. */
function findAdded(
  written: string,
  columns: Columns | undefined,
  aliases?: ReadonlyMap<string, string>,
): void {
  const root = takeRoot(written);
  if (columns && new FieldNames(aliases, columns).column(root) === null)
    columns.set(new FieldNames(aliases).wireName(root), { type: 'String' });
}

/** @param plain the classes that are declared as plain, for those that the database does not have */
function createSchemas(
  fields: ReadonlyMap<string, Columns>,
  known: SchemaSnapshot,
  plain: ReadonlySet<string>,
  { classes }: Policy,
): SchemaSnapshot {
  const findDatabase = (className: string) => classes.get(className)?.database ?? undefined;
  const findStorage = (className: string) =>
    known.get(className) ? known.get(className)?.storage : plain.has(className) ? 'plain' : undefined;
  return new ClassSchemas(
    [...fields].map(([className, columns]) => ({
      className,
      ...(findStorage(className) === 'plain' && { storage: 'plain' as const }),
      ...(findDatabase(className) !== undefined && { database: findDatabase(className) as string }),
      indexes: known.get(className)?.indexes ?? [],
      classLevelPermissions: known.get(className)?.classLevelPermissions ?? null,
      fields: columns,
    })),
  );
}

function listNames({
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

function listFilters({ filters }: AgentDefinition): (readonly [string, FilterConstraint])[] {
  return [...filters].flatMap(([className, entry]) =>
    typeof entry === 'function' ? [] : [[className, entry] as const],
  );
}
