import { concat, defer, filter, finalize, map, type Observable, of, Subject } from 'rxjs';
import {
  Agent,
  type AgentDefinitionOptions,
  McpRequest,
  type RequestOptions,
  type RequestTransport,
  type ClassFilterSite,
  compileAgentDefinition,
  refusals,
  tierCovers,
  refuse,
} from '#core';
import type { GovernedClass, GovernedRecords, GovernedSearch } from '#data';
import { FieldNames, type FieldSchema, type ReadOperation } from '#policy';
import { processState, SuspendedAgents } from '#state';
import { type ToolDefinition, type ToolOutcome, ToolRunner } from '#tools';
import { sampleClass } from '#tools/contracts';
import { ResultLimit } from '../calls/call-limits.js';
import type { UnbegunCalls } from '../calls/unbegun-calls.js';
import { type ReadAccounts, RecordsSource } from '../reads/read-accounts.js';
import type { InputRounds } from '../client-requests/input-rounds.js';
import { createEnvelope, Kernel, MethodTable } from '../kernel.js';
import { CallTool } from '../methods/call-tool.js';
import { Handshake } from '../methods/handshake.js';
import { ListToolsMethod, RenderedLists } from '../methods/list-tools.js';
import { type KernelOptions } from '../methods/method.js';
import { Complete, PromptMethods } from '../methods/prompt-methods.js';
import { ListResources, ProvidedResources, ReadResource } from '../methods/resource-methods.js';
import {
  type ListChanges,
  type ListenEvent,
  ResourceSubscriptions,
  SubscriptionMethods,
} from '../methods/subscription-methods.js';
import { PromptRegistry } from '../prompts/prompt-registry.js';
import { ResourceRegistry } from '../resources/resource-registry.js';
import { TaskMethods } from '../tasks/task-store.js';
import { type KernelReply, invalidParams } from '../protocol.js';

export interface SmallClass {
  readonly fields: Readonly<Record<string, FieldSchema>>;
  /** Fields the agent may read; absent: all. */
  readonly readable?: readonly string[];
  readonly visible?: boolean;
  /** Absent: all three. */
  readonly reads?: readonly ReadOperation[];
}

function governed(className: string, small: SmallClass): GovernedClass {
  const { fields: written, readable = null, visible = false, reads = ['find', 'count', 'get'] } = small;
  const fields = new Map(Object.entries(written));
  const sample = sampleClass(
    className,
    {},
    { visible, fields: readable, names: new FieldNames(new Map(), fields) },
  );
  return {
    ...sample,
    schema: { ...sample.schema, fields },
    fields: readable ?? [...fields.keys()],
    reads: new Set(reads),
  };
}

const notSearched = () => Promise.reject(new Error('nothing is searched here'));

/** The search of calls that search nothing. */
export const NO_SEARCH: GovernedSearch = {
  text: notSearched,
  autocomplete: notSearched,
  facets: notSearched,
  likeness: notSearched,
};

const SITE: ClassFilterSite = 'Class';

/** What an agent may read of a few classes. Classes outside its filter are refused like by the class gate. */
export class SmallRecords extends RecordsSource {
  constructor(private readonly known: Readonly<Record<string, SmallClass>>) {
    super();
  }

  for({ agent }: McpRequest): GovernedRecords {
    const classes = Object.entries(this.known)
      .filter(([className]) => agent.definition.classes.permits(className))
      .map(([className, small]) => governed(className, small));
    const notServed = () => Promise.reject(new Error('rows are not served here'));
    return {
      find: notServed,
      page: notServed,
      count: notServed,
      get: notServed,
      getMany: notServed,
      samples: notServed,
      aggregate: notServed,
      checkAggregate: notServed,
      explain: notServed,
      admit: notServed,
      indexes: notServed,
      classes: () => Promise.resolve(classes),
      describe: (className) => {
        const found = classes.find((candidate) => candidate.className === className);
        if (found) return Promise.resolve(found);
        return Promise.reject(refuse.classFiltered(String(className), SITE));
      },
    };
  }
}

/** Subscriptions to addresses under `known://`, by session. Tests trigger the changes. */
export class SmallSubscriptions extends ResourceSubscriptions {
  supported = true;
  maxListened = 3;
  /** Number of streams that are open now. */
  listening = 0;
  readonly sessions = new Map<string, Set<string>>();
  private readonly changes = new Subject<string>();

  change(uri: string): void {
    this.changes.next(uri);
  }

  async subscribe(uri: string, { transport: { sessionId } }: McpRequest): Promise<boolean> {
    if (!uri.startsWith('known://')) throw invalidParams(`Invalid resource URI: ${uri}`);
    if (sessionId === undefined) return false;
    this.sessions.set(sessionId, (this.sessions.get(sessionId) ?? new Set()).add(uri));
    return true;
  }

  async unsubscribe(uri: string, { transport: { sessionId } }: McpRequest): Promise<void> {
    this.sessions.get(sessionId ?? '')?.delete(uri);
  }

  listen(uris: readonly string[]): Observable<ListenEvent> {
    const watched = uris.filter((uri) => uri.startsWith('known://'));
    return defer(() => {
      this.listening += 1;
      const updates = this.changes.pipe(
        filter((uri) => watched.includes(uri)),
        map((updated) => ({ updated })),
      );
      return concat(of({ watched }), updates).pipe(finalize(() => (this.listening -= 1)));
    });
  }
}

export type SmallHandler = (
  args: Readonly<Record<string, unknown>>,
  context: McpRequest,
) => ToolOutcome | Promise<ToolOutcome>;

export function succeeded(data: unknown, structured = true): ToolOutcome {
  return { ok: true, data, text: JSON.stringify(data), structured };
}

/** A tool with the members that every definition has, and those a test adds. */
export function smallTool(name: string, more: Partial<ToolDefinition> = {}): ToolDefinition {
  return {
    name,
    description: `Does ${name}`,
    category: 'query',
    permission: 'readonly',
    timeout: 30,
    clientSafe: false,
    inputSchema: { type: 'object', properties: {}, required: [] },
    ...more,
  };
}

/** A runner with the real contract and the two gates that a list depends on: tool filter and tier. */
export class SmallToolRunner extends ToolRunner {
  readonly calls: { name: string; args: unknown }[] = [];
  private readonly tools = new Map<string, { tool: ToolDefinition; handler: SmallHandler }>();

  add(tool: ToolDefinition, handler: SmallHandler): this {
    this.tools.set(tool.name, { tool, handler });
    return this;
  }

  list({ agent }: Pick<McpRequest, 'agent'>): readonly ToolDefinition[] {
    return [...this.tools.values()]
      .map(({ tool }) => tool)
      .filter(
        (tool) => agent.definition.tools.permits(tool.name) && tierCovers(agent.permissions, tool.permission),
      );
  }

  find(name: string): ToolDefinition | undefined {
    return this.tools.get(name)?.tool;
  }

  run(name: string, args: unknown, context: McpRequest): Promise<ToolOutcome> {
    this.calls.push({ name, args });
    const { agent } = context;
    const known = this.tools.get(name);
    if (!known) {
      const refusal = refusals.unknownTool(name, agent.permissions, []);
      return Promise.resolve({ ok: false, refusal });
    }
    if (!agent.definition.tools.permits(name)) {
      return Promise.resolve({ ok: false, refusal: refusals.toolFiltered(name) });
    }
    return Promise.resolve(known.handler(args as Readonly<Record<string, unknown>>, context));
  }
}

const objectSchema = { type: 'object' };

/** A tool for each outcome, and the tools that resources use. */
function smallCatalogue(): SmallToolRunner {
  const classArgument = {
    type: 'object',
    properties: { class_name: { type: 'string' } },
    required: ['class_name'],
  };
  return new SmallToolRunner()
    .add(
      smallTool('get_all_schemas', { title: 'List classes', category: 'schema', outputSchema: objectSchema }),
      () =>
        succeeded({
          total: 2,
          note: '',
          built_in: [{ name: '_User', fields: 2 }],
          custom: [{ name: 'Post', fields: 4, desc: '<schema_description>Articles</schema_description>' }],
        }),
    )
    .add(smallTool('get_schema', { category: 'schema', inputSchema: classArgument }), (args) =>
      args.class_name === 'Secret'
        ? { ok: false, refusal: refusals.hiddenClass('Secret') }
        : succeeded({ class_name: args.class_name, fields: [] }),
    )
    .add(
      smallTool('count_objects', {
        inputSchema: classArgument,
        outputSchema: objectSchema,
        annotations: { readOnlyHint: true },
      }),
      (args) => succeeded({ class_name: args.class_name, count: 3 }),
    )
    .add(smallTool('get_sample_objects', { inputSchema: classArgument }), (args) =>
      succeeded({ class_name: args.class_name, limit: args.limit }),
    )
    .add(smallTool('list_values', { outputSchema: { type: 'array' } }), () => succeeded([1, 2]))
    .add(smallTool('opaque'), () => ({ ok: false, refusal: refusals.securityBlocked('where', 'operator') }))
    .add(smallTool('limited'), () => ({ ok: false, refusal: refusals.rateLimited(60, 60, 12.345) }))
    .add(smallTool('field_denied'), () => ({
      ok: false,
      refusal: refusals.fieldDenied('where', 'secret', 'secret', ['title']),
    }))
    .add(smallTool('scan'), () => {
      const body = { refused: true, reason: 'COLLSCAN', suggestion: 'Filter on an indexed field' };
      const refusal = {
        code: 'security_blocked',
        gate: 'collscan',
        message: 'Full scan refused',
        body,
      } as const;
      const { code, message: error } = refusal;
      return {
        ok: false,
        refusal,
        text: JSON.stringify({ success: false, error, error_code: code, ...body }),
      };
    })
    .add(
      smallTool('regional', {
        inputSchema: {
          type: 'object',
          properties: {
            region: { type: 'string', 'x-mcp-header': 'Region' },
            size: { type: 'integer', 'x-mcp-header': 'Size' },
          },
          required: [],
        },
      }),
      (args) => succeeded(args, false),
    )
    .add(smallTool('delete_object', { permission: 'admin', category: 'mutation' }), () => succeeded({}));
}

function smallRecords(): SmallRecords {
  return new SmallRecords({
    Post: {
      fields: {
        title: { type: 'String' },
        author: { type: 'Pointer', targetClass: '_User' },
        tags: { type: 'Relation', targetClass: 'Tag' },
        reviewer: { type: 'Pointer', targetClass: '_User' },
        secret: { type: 'Pointer', targetClass: 'Hidden' },
      },
      readable: ['objectId', 'title', 'author', 'tags', 'secret'],
    },
    Tag: { fields: { name: { type: 'String' } } },
    _Role: { fields: { users: { type: 'Relation', targetClass: '_User' } } },
    _Session: { fields: { user: { type: 'Pointer', targetClass: '_User' } } },
    _User: { fields: { username: { type: 'String' } } },
  });
}

export function smallAgent(options: AgentDefinitionOptions = {}, principal = 'ada'): Agent {
  return new Agent({ definition: compileAgentDefinition('test', options), principal });
}

/** What a request has other than the usual ones. */
export type AskedRequest = Partial<RequestTransport> & RequestOptions & { readonly agent?: Agent };

export interface KernelUnderTest {
  readonly kernel: Kernel;
  readonly tools: SmallToolRunner;
  readonly prompts: PromptRegistry;
  readonly warnings: string[];
  readonly ask: (method: unknown, params?: unknown, request?: AskedRequest) => Promise<KernelReply>;
}

interface KernelFeatures {
  readonly records?: RecordsSource;
  readonly rounds?: InputRounds;
  readonly listChanges?: ListChanges;
  readonly subscriptions?: ResourceSubscriptions;
  readonly suspended?: SuspendedAgents;
  readonly unbegun?: Pick<UnbegunCalls, 'note'>;
}

const nobodySuspended = () => new SuspendedAgents(processState());

interface KernelDependencies extends KernelFeatures {
  readonly tools: ToolRunner;
  readonly records: RecordsSource;
  readonly prompts?: PromptRegistry;
  readonly resources?: ResourceRegistry;
}

/** A kernel without tasks and without a container. A feature that is left out is not served. */
export function kernelOf(
  options: KernelOptions,
  {
    tools,
    records,
    prompts = new PromptRegistry(),
    resources = new ResourceRegistry(),
    ...features
  }: KernelDependencies,
): Kernel {
  const { rounds = null, listChanges = null, subscriptions = null, suspended = nobodySuspended() } = features;
  const { unbegun = { note: () => Promise.resolve(null) } } = features;
  const envelope = createEnvelope(options.version);
  const catalogue = new RenderedLists(tools);
  const reads: Pick<ReadAccounts, 'run'> = { run: ({ context }, work) => work(records.for(context)) };
  const provided = new ProvidedResources(resources, reads);
  const limit = new ResultLimit(4_194_304);
  const reading = new ReadResource(tools, provided, limit);
  const handlers = [
    new Handshake(options, envelope, resources, subscriptions, listChanges, null),
    new ListToolsMethod(catalogue, envelope),
    new CallTool(tools, catalogue, null),
    new ListResources(tools, catalogue, records, provided),
    reading,
    new PromptMethods(prompts, reads, limit),
    new Complete(prompts, records, limit),
    new SubscriptionMethods(subscriptions, listChanges, suspended, reading),
    new TaskMethods(null),
  ];
  return new Kernel(new MethodTable(handlers, rounds), envelope, tools, suspended, unbegun, options);
}

export function kernelUnderTest(
  tools = smallCatalogue(),
  resources = new ResourceRegistry(),
  { records = smallRecords(), rounds, listChanges, subscriptions, suspended, unbegun }: KernelFeatures = {},
): KernelUnderTest {
  const warnings: string[] = [];
  const prompts = new PromptRegistry();
  const options = {
    version: '1.2.3',
    instructions: 'Begin with get_all_schemas.',
    log: { warn: (line: string) => warnings.push(line) },
  };
  const kernel = kernelOf(options, {
    tools,
    records,
    prompts,
    resources,
    rounds,
    listChanges,
    subscriptions,
    suspended,
    unbegun,
  });
  const known = smallAgent();
  const ask: KernelUnderTest['ask'] = (method, params, { agent = known, ...asked } = {}) => {
    const transport: RequestTransport = {
      era: 'legacy',
      version: '2025-06-18',
      clientCapabilities: {},
      signal: new AbortController().signal,
      requestId: method === undefined ? undefined : 1,
      ...asked,
    };
    return kernel.dispatch(method as string, params, new McpRequest(agent, transport, asked));
  };
  return { kernel, tools, prompts, warnings, ask };
}

export const MODERN = { era: 'modern', version: '2026-07-28' } as const;
export const NOVEMBER = { era: 'legacy', version: '2025-11-25' } as const;

export function readResult(reply: KernelReply): Readonly<Record<string, unknown>> {
  if (!('result' in reply)) throw new Error(`no result: ${JSON.stringify(reply)}`);
  return reply.result;
}
