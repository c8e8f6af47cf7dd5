import { Agent, type AgentShapeOptions, compileAgentShape, refusals } from '#agent';
import type { DispatchContext } from '../dispatch-context.js';
import { Kernel, type KernelOptions } from '../kernel.js';
import type { KernelReply } from '../kernel-reply.js';
import { PromptRegistry } from '../prompts/prompt-registry.js';
import { ResourceRegistry } from '../resources/resource-registry.js';
import { SmallRecords } from './small-records.js';
import { smallTool, SmallToolRunner, succeeded } from './small-tool-runner.js';

const objectSchema = { type: 'object' };

/** Tools of the kind a server has: one of each outcome, and those that resources are made of. */
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
    .add(smallTool('scan'), () => ({
      ok: false,
      refusal: {
        code: 'security_blocked',
        gate: 'collscan',
        message: 'Full scan refused',
        body: { refused: true, reason: 'COLLSCAN', suggestion: 'Filter on an indexed field' },
      },
    }))
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

export function smallAgent(options: AgentShapeOptions = {}, principal = 'ada'): Agent {
  return new Agent({ shape: compileAgentShape('test', options), principal });
}

export interface KernelUnderTest {
  readonly kernel: Kernel;
  readonly tools: SmallToolRunner;
  readonly prompts: PromptRegistry;
  readonly warnings: string[];
  readonly ask: (
    method: unknown,
    params?: unknown,
    context?: Partial<DispatchContext>,
  ) => Promise<KernelReply>;
}

export function kernelUnderTest(
  tools = smallCatalogue(),
  resources = new ResourceRegistry(),
  options: Partial<KernelOptions> = {},
): KernelUnderTest {
  const warnings: string[] = [];
  const prompts = new PromptRegistry();
  const kernel = new Kernel({
    tools,
    records: smallRecords(),
    prompts,
    resources,
    version: '1.2.3',
    instructions: 'Begin with get_all_schemas.',
    log: { warn: (line) => warnings.push(line) },
    ...options,
  });
  const agent = smallAgent();
  const ask: KernelUnderTest['ask'] = (method, params, context) =>
    kernel.dispatch(method as string, params, {
      agent,
      era: 'legacy',
      version: '2025-06-18',
      clientCapabilities: {},
      signal: new AbortController().signal,
      requestId: method === undefined ? undefined : 1,
      progress: () => undefined,
      ...context,
    });
  return { kernel, tools, prompts, warnings, ask };
}

export const MODERN = { era: 'modern', version: '2026-07-28' } as const;
export const NOVEMBER = { era: 'legacy', version: '2025-11-25' } as const;

export function resultOf(reply: KernelReply): Readonly<Record<string, unknown>> {
  if (!('result' in reply)) throw new Error(`no result: ${JSON.stringify(reply)}`);
  return reply.result;
}
