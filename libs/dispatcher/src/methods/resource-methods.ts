import { Inject, Injectable } from '@nestjs/common';
import {
  type McpRequest,
  type ErrorCode,
  isClassName,
  type Refusal,
  Refused,
  isJsonObject,
  type JsonObject,
  member,
} from '#core';
import type { GovernedClass, GovernedRecords } from '#data';
import type { ReadOperation } from '#policy';
import { type EmbeddedResource, ToolRunner } from '#tools';
import { type CatalogueEntry, RenderedLists } from './list-tools.js';
import { McpMethod, OF_AGENT, OF_SERVER, takePage } from './method.js';
import { type Dialect, invalidParams, ProtocolError, RPC, readDialect } from '../protocol.js';
import { ResultLimit } from '../calls/call-limits.js';
import { ReadAccounts, RecordsSource } from '../reads/read-accounts.js';
import { type ResourceCall, ResourceRegistry, type ListedTemplate } from '../resources/resource-registry.js';

const MIME_TYPE = 'application/json';

/** The tool that reads each kind of resource. */
const TOOL_OF_KIND: Readonly<Record<ResourceKind, string>> = {
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
    const description = member(entry, 'desc');
    const fallback = group === 'custom' ? 'Class of the application' : 'Class of Parse';
    return isClassName(name)
      ? [{ name, description: typeof description === 'string' ? description : fallback }]
      : [];
  });
}

/** The operation that each kind of resource needs on its class. */
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

/** Refusals that mean: this resource does not exist for the agent. */
const ABSENT: ReadonlySet<string> = new Set<ErrorCode>([
  'access_denied',
  'permission_denied',
  'tool_filtered',
  'invalid_argument',
]);

/** Whether a refusal means that there is nothing for the caller. Any other says nothing of what there is. */
export const meansAbsence = ({ opaque, code }: Refusal): boolean => opaque === true || ABSENT.has(code);

/** @throws ProtocolError for a refusal after which nobody knows what would be listed */
function assertAbsence(refusal: Refusal): void {
  if (!meansAbsence(refusal)) throw new ProtocolError(RPC.internalError, refusal.message);
}

/** The resources of all providers that one caller may read. */
@Injectable()
export class ProvidedResources {
  constructor(
    private readonly registry: ResourceRegistry,
    @Inject(ReadAccounts) private readonly reads: Pick<ReadAccounts, 'run'>,
  ) {}

  get templates(): readonly ListedTemplate[] {
    return this.registry.templates;
  }

  /** A provider that denies the caller its list has no resources for it. @throws ProtocolError for any other refusal */
  async list(context: McpRequest): Promise<JsonObject[]> {
    const listed = await Promise.all(
      this.registry.all().map(async (provider) => {
        try {
          const run = { name: `resource:${provider.scheme}`, args: {}, context };
          return await this.reads.run(run, async (records) => provider.list(createCall(context, records)));
        } catch (error) {
          if (!(error instanceof Refused)) throw error;
          assertAbsence(error.refusal);
          return [];
        }
      }),
    );
    return listed.flat().map((resource) => ({ ...resource }));
  }

  has(uri: string): boolean {
    return this.registry.findProvider(uri) !== undefined;
  }

  /** @returns `undefined` when this caller has no such resource. @throws Refused */
  async read(uri: string, context: McpRequest): Promise<readonly EmbeddedResource[] | undefined> {
    const provider = this.registry.findProvider(uri);
    const run = { name: `resource:${provider?.scheme}`, args: { uri }, context };
    return (
      provider && this.reads.run(run, async (records) => provider.read(uri, createCall(context, records)))
    );
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

/** Listed where `list_changes` is: what it shows, but not each write that happened at once. */
const CHANGE_SET_TEMPLATE: JsonObject = Object.freeze({
  uriTemplate: 'parse://changes/{change_set}',
  name: 'Change set',
  description: 'One of your change sets, row by row, with its state',
  mimeType: MIME_TYPE,
});

const LISTED_SETS = 100;

/**
 * `resources/list`: the classes that `get_all_schemas` returns to this agent, each with the kinds whose tool the agent
 * may call and whose operation its class permissions allow. An agent without access to the listing has no resources; a list
 * that is refused for another reason, such as a limit, is an error and never an empty one.
 */
@Injectable()
export class ListResources {
  constructor(
    private readonly runner: ToolRunner,
    private readonly catalogue: RenderedLists,
    private readonly records: RecordsSource,
    private readonly provided: ProvidedResources,
  ) {}

  @McpMethod('resources/list', { cache: OF_AGENT })
  async handle(params: JsonObject, request: McpRequest): Promise<JsonObject> {
    const classes = await this.listClasses(request);
    const kinds = this.kindsOpenTo(this.catalogue.for(request));
    const known = await this.findClasses(request);
    const ofClasses = classes.flatMap((listed) =>
      kinds
        .filter((kind) => {
          const operation = READS_FOR[kind];
          if (operation === null) return true;
          const found = known.get(listed.name);
          // A count of all rows is a scan of all of them.
          return found?.reads.has(operation) && (kind !== 'count' || found.scans);
        })
        .map((kind) => describe(listed, kind)),
    );
    const ofSets = await this.listChangeSets(request);
    const resources = [...ofClasses, ...ofSets, ...(await this.provided.list(request))];
    const { entries, nextCursor } = takePage('resources', resources, params, readDialect(request));
    return { resources: entries, ...(nextCursor !== undefined && { nextCursor }) };
  }

  /** All of them: an agent whose results are small gets the list in parts. */
  private async listClasses(request: McpRequest): Promise<readonly ListedClass[]> {
    const custom: ListedClass[] = [];
    const builtIn: ListedClass[] = [];
    for (let args: JsonObject | null = {}; args !== null;) {
      const outcome = await this.runner.run('get_all_schemas', args, request);
      if (!outcome.ok) assertAbsence(outcome.refusal);
      const data = outcome.ok ? outcome.data : null;
      custom.push(...classesIn(data, 'custom'));
      builtIn.push(...classesIn(data, 'built_in'));
      const next = member(member(data, 'next_call'), 'arguments');
      args = isJsonObject(next) ? next : null;
    }
    return [...custom, ...builtIn];
  }

  private async listChangeSets(request: McpRequest): Promise<readonly JsonObject[]> {
    if (!this.catalogue.for(request).find('list_changes')) return [];
    const outcome = await this.runner.run('list_changes', { limit: LISTED_SETS }, request);
    if (!outcome.ok) assertAbsence(outcome.refusal);
    const sets = outcome.ok ? member(outcome.data, 'change_sets') : null;
    if (!Array.isArray(sets)) return [];
    return (sets as JsonObject[]).flatMap(({ change_set: id, kind, state, title }) =>
      kind === 'direct'
        ? []
        : [
            {
              uri: `parse://changes/${String(id)}`,
              name: `change set ${String(id)}`,
              ...(typeof title === 'string' && { title }),
              description: `A change set that is ${String(state)}`,
              mimeType: MIME_TYPE,
            },
          ],
    );
  }

  /** The same for every agent, without an agent check. */
  @McpMethod('resources/templates/list', { cache: OF_SERVER })
  templates(params: JsonObject, request: McpRequest): JsonObject {
    const resourceTemplates = [...TEMPLATES, CHANGE_SET_TEMPLATE, ...this.provided.templates];
    const { entries, nextCursor } = takePage('templates', resourceTemplates, params, readDialect(request));
    return { resourceTemplates: entries, ...(nextCursor !== undefined && { nextCursor }) };
  }

  private async findClasses(context: McpRequest): Promise<ReadonlyMap<string, GovernedClass>> {
    const classes = await this.records.for(context).classes();
    return new Map(classes.map((known) => [known.className, known] as const));
  }

  private kindsOpenTo(tools: CatalogueEntry): readonly ResourceKind[] {
    return RESOURCE_KINDS.filter((kind) => tools.find(TOOL_OF_KIND[kind]) !== undefined);
  }
}

const SAMPLE_SIZE = 5;

function notFound(uri: string, { era }: Dialect, message = 'Resource not found'): ProtocolError {
  return new ProtocolError(era === 'modern' ? RPC.invalidParams : RPC.resourceNotFound, message, { uri });
}

/** An invalid address. The frozen revisions have a separate code for it. */
function invalidUri(uri: string, dialect: Dialect): ProtocolError {
  const message = `Invalid resource URI: ${uri}`;
  return dialect.additions ? notFound(uri, dialect, message) : invalidParams(message);
}

/**
 * The error of an address that is not served, in the code of the revision: -32002, and -32602 from 2026-07-28 on, for a
 * missing or withheld resource. Reading and subscribing return the same error.
 */
export function toRefusedResource(uri: string, dialect: Dialect, refusal: Refusal): ProtocolError {
  if (refusal.opaque) return invalidParams();
  // The resource can be read, but it has no change notifications.
  if (refusal.gate === 'subscription' && refusal.code === 'access_denied')
    return invalidParams(refusal.message);
  // It exists, and is listed: only what it holds cannot be sent.
  if (refusal.gate === 'result_size') return new ProtocolError(RPC.internalError, refusal.message);
  if (meansAbsence(refusal)) return notFound(uri, dialect);
  return new ProtocolError(RPC.internalError, refusal.message);
}

/** `resources/read`: the text of the tool behind the address, under that tool's gates and as large as its result. */
@Injectable()
export class ReadResource {
  constructor(
    private readonly runner: ToolRunner,
    private readonly provided: ProvidedResources,
    private readonly limit: ResultLimit,
  ) {}

  @McpMethod('resources/read', { cache: OF_AGENT, asksAbout: 'uri' })
  async handle({ uri }: JsonObject, request: McpRequest): Promise<JsonObject> {
    const dialect = readDialect(request);
    if (typeof uri !== 'string') throw invalidParams('Missing resource uri');
    if (this.provided.has(uri)) return this.readProvided(uri, request, dialect);
    const read = findToolCall(uri);
    if (!read) throw invalidUri(uri, dialect);
    const outcome = await this.runner.run(...read, request);
    if (!outcome.ok) throw toRefusedResource(uri, dialect, outcome.refusal);
    return { contents: [{ uri, mimeType: MIME_TYPE, text: outcome.text }] };
  }

  /** A change set is watched by whom it is shown to. @throws Refused as its tool */
  async assertShown(uri: string, request: McpRequest): Promise<void> {
    const read = readChangeSetUri(uri) === null ? null : findToolCall(uri);
    const outcome = read && (await this.runner.run(...read, request));
    if (outcome && !outcome.ok) throw new Refused(outcome.refusal);
  }

  private async readProvided(uri: string, context: McpRequest, dialect: Dialect): Promise<JsonObject> {
    let contents: readonly EmbeddedResource[] | undefined;
    try {
      contents = await this.provided.read(uri, context);
    } catch (error) {
      if (error instanceof Refused) throw toRefusedResource(uri, dialect, error.refusal);
      throw error;
    }
    if (!contents) throw notFound(uri, dialect);
    const texts = contents.map((part) => ('text' in part ? part.text : part.blob));
    const limit = this.limit.exceededBy(texts, context.agent);
    // The address is valid, and its content cannot be sent.
    if (limit !== null) throw new ProtocolError(RPC.internalError, `Resource exceeded ${limit} bytes.`);
    return { contents };
  }
}

const RESOURCE_KINDS = ['schema', 'count', 'samples'] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];

export interface ResourceAddress {
  readonly className: string;
  readonly kind: ResourceKind;
}

const RESOURCE_URI = /^parse:\/\/([A-Za-z_][A-Za-z0-9_]*)(?:\/(schema|count|samples))?$/;

/** Parses `parse://<Class>[/schema|/count|/samples]`; without a kind it is the schema. `null` for anything else. */
export function parseResourceUri(uri: string): ResourceAddress | null {
  const match = RESOURCE_URI.exec(uri);
  if (!match?.[1] || match[0].length !== uri.length) return null;
  return { className: match[1], kind: (match[2] as ResourceKind | undefined) ?? 'schema' };
}

const CHANGE_SET_URI = /^parse:\/\/changes\/([A-Za-z0-9_-]{20})$/;

/** The id in the address of a change set. `null` for anything else. */
export function readChangeSetUri(uri: string): string | null {
  return CHANGE_SET_URI.exec(uri)?.[1] ?? null;
}

/** The tool that reads an address, and its arguments. `null` for an address that is invalid. */
function findToolCall(uri: string): readonly [tool: string, args: JsonObject] | null {
  const set = readChangeSetUri(uri);
  if (set !== null) return ['show_changes', { change_set: set }];
  const address = parseResourceUri(uri);
  if (!address) return null;
  const { className, kind } = address;
  return [TOOL_OF_KIND[kind], { class_name: className, ...(kind === 'samples' && { limit: SAMPLE_SIZE }) }];
}

function resourceUri(className: string, kind: ResourceKind): string {
  return `parse://${className}/${kind}`;
}

function createCall(context: McpRequest, records: GovernedRecords): ResourceCall {
  return Object.assign(context.with({}), { records });
}
