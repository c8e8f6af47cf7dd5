import { type CallContext, isClassName } from '#agent';
import type { GovernedClass } from '#data';
import type { ReadOperation } from '#policy';
import type { ToolRunner } from '#tools';
import { pageOf } from '../cursors.js';
import { type JsonObject, member } from '../json-object.js';
import type { RecordsSource } from '../records-source.js';
import type { ResourceTemplate } from '../resources/resource-provider.js';
import type { MethodRequest } from './method.js';
import type { ProvidedResources } from './provided-resources.js';
import { RESOURCE_KINDS, type ResourceKind, resourceUri } from './resource-uri.js';
import type { CatalogueEntry, ToolCatalogue } from './tool-catalogue.js';

export const MIME_TYPE = 'application/json';

/** The tool that answers for each kind of resource. */
export const TOOL_OF_KIND: Readonly<Record<ResourceKind, string>> = {
  schema: 'get_schema',
  count: 'count_objects',
  samples: 'get_sample_objects',
};

interface ListedClass {
  readonly name: string;
  readonly description: string;
}

function classesIn(data: unknown, group: 'custom' | 'built_in'): ListedClass[] {
  const listed = member(data, group);
  if (!Array.isArray(listed)) return [];
  return listed.flatMap((entry: unknown) => {
    const name = member(entry, 'name');
    const told = member(entry, 'desc');
    const fallback = `Parse class (${group === 'custom' ? 'custom' : 'built-in'})`;
    return isClassName(name) ? [{ name, description: typeof told === 'string' ? told : fallback }] : [];
  });
}

/** What reading a resource of a kind does with the rows of its class. */
const READS_FOR: Readonly<Record<ResourceKind, ReadOperation | null>> = {
  schema: null,
  count: 'count',
  samples: 'find',
};

const DESCRIPTIONS: Readonly<Record<ResourceKind, (listed: ListedClass) => string>> = {
  schema: ({ name, description }) => `Fields of ${name} and their types. ${description}`,
  count: ({ name }) => `Total number of ${name} objects`,
  samples: ({ name }) => `The five most recent ${name} objects`,
};

function describe(listed: ListedClass, kind: ResourceKind): JsonObject {
  return {
    uri: resourceUri(listed.name, kind),
    name: `${listed.name} ${kind}`,
    description: DESCRIPTIONS[kind](listed),
    mimeType: MIME_TYPE,
  };
}

/**
 * `resources/list`: the classes that `get_all_schemas` tells this agent, each as the kinds whose tool it may call and that its
 * permissions on the class leave it. An agent that is refused the listing has no resources.
 */
export class ListResources {
  constructor(
    private readonly runner: ToolRunner,
    private readonly catalogue: ToolCatalogue,
    private readonly records: RecordsSource,
    private readonly provided: ProvidedResources,
  ) {}

  async handle({ params, context, dialect }: MethodRequest): Promise<JsonObject> {
    const outcome = await this.runner.run('get_all_schemas', {}, context);
    const classes = outcome.ok
      ? [...classesIn(outcome.data, 'custom'), ...classesIn(outcome.data, 'built_in')]
      : [];
    const kinds = this.kindsOpenTo(this.catalogue.for(context));
    const reads = await this.readsOf(context);
    const ofClasses = classes.flatMap((listed) =>
      kinds
        .filter((kind) => {
          const operation = READS_FOR[kind];
          return operation === null || reads.get(listed.name)?.has(operation);
        })
        .map((kind) => describe(listed, kind)),
    );
    const resources = [...ofClasses, ...(await this.provided.list(context))];
    if (!dialect.additions) return { resources };
    const { entries, nextCursor } = pageOf('resources', resources, params.cursor);
    return { resources: entries, ...(nextCursor !== undefined && { nextCursor }) };
  }

  private async readsOf(context: CallContext): Promise<ReadonlyMap<string, GovernedClass['reads']>> {
    const classes = await this.records.for(context).classes();
    return new Map(classes.map(({ className, reads }) => [className, reads] as const));
  }

  private kindsOpenTo(tools: CatalogueEntry): readonly ResourceKind[] {
    return RESOURCE_KINDS.filter((kind) => tools.find(TOOL_OF_KIND[kind]) !== undefined);
  }
}

const TEMPLATES: readonly JsonObject[] = [
  { kind: 'schema', name: 'Parse class schema', description: 'Fields of a class and their types' },
  { kind: 'count', name: 'Parse class object count', description: 'Total number of objects of a class' },
  {
    kind: 'samples',
    name: 'Parse class sample objects',
    description: 'The five most recent objects of a class',
  },
].map(({ kind, name, description }) =>
  Object.freeze({ uriTemplate: `parse://{className}/${kind}`, name, description, mimeType: MIME_TYPE }),
);

/** `resources/templates/list`: the same for everyone, and never asks the agent. */
export function listTemplates(
  provided: readonly ResourceTemplate[],
  { params, dialect }: Pick<MethodRequest, 'params' | 'dialect'>,
): JsonObject {
  const resourceTemplates = [...TEMPLATES, ...provided];
  if (!dialect.additions) return { resourceTemplates };
  const { entries, nextCursor } = pageOf('templates', resourceTemplates, params.cursor);
  return { resourceTemplates: entries, ...(nextCursor !== undefined && { nextCursor }) };
}
