import type { ToolRunner } from '#tools';
import { CallTool } from './methods/call-tool.js';
import { Complete } from './methods/complete.js';
import { discover, initialize } from './methods/handshake.js';
import { ListResources, listTemplates } from './methods/list-resources.js';
import { ListTools } from './methods/list-tools.js';
import type { Method } from './methods/method.js';
import { GetPrompt, listPrompts } from './methods/prompt-methods.js';
import { ReadResource } from './methods/read-resource.js';
import { ToolCatalogue } from './methods/tool-catalogue.js';
import type { PromptRegistry } from './prompts/prompt-registry.js';
import { ProtocolFault, RPC } from './protocol-fault.js';
import type { RecordsSource } from './records-source.js';
import type { CacheHint, ResultEnvelope, ServerInfo } from './result-envelope.js';

export interface MethodDependencies {
  readonly tools: ToolRunner;
  readonly records: RecordsSource;
  readonly prompts: PromptRegistry;
  readonly serverInfo: ServerInfo;
  readonly instructions?: string;
  readonly envelope: ResultEnvelope;
}

/** Depends on the agent: one agent's answer must never serve another, and rights may change at any time. */
const OF_AGENT: CacheHint = Object.freeze({ ttlMs: 0, cacheScope: 'private' });
/** The same for everyone while the process lives. */
const OF_SERVER: CacheHint = Object.freeze({ ttlMs: 300_000, cacheScope: 'public' });

const ALL_LEGACY = '2024-11-05';

function subscriptionsNotServed(): never {
  throw new ProtocolFault(
    RPC.methodNotFound,
    'Resource subscriptions are not supported by this server',
    undefined,
    404,
  );
}

/** Every method there is, and the revisions it exists in. What is not here is not found. */
export function methodTable(given: MethodDependencies): ReadonlyMap<string, Method> {
  const { tools, records, prompts, serverInfo, instructions, envelope } = given;
  const catalogue = new ToolCatalogue(tools);
  const listTools = new ListTools(catalogue, envelope, OF_AGENT);
  const callTool = new CallTool(tools, catalogue);
  const listResources = new ListResources(tools, catalogue, records);
  const readResource = new ReadResource(tools);
  const getPrompt = new GetPrompt(prompts, records);
  const complete = new Complete(prompts, records);

  const legacyOnly = (handle: Method['handle']): Method => ({
    legacySince: ALL_LEGACY,
    modern: false,
    handle,
  });
  const everywhere = (handle: Method['handle'], cache?: CacheHint): Method => ({
    legacySince: ALL_LEGACY,
    modern: true,
    handle,
    ...(cache && { cache }),
  });

  return new Map<string, Method>([
    [
      'initialize',
      {
        ...legacyOnly((request) => initialize(request.params, serverInfo, instructions)),
        looseParams: true,
      },
    ],
    ['ping', legacyOnly(() => ({}))],
    [
      'server/discover',
      { legacySince: null, modern: true, cache: OF_SERVER, handle: () => discover(instructions) },
    ],
    ['tools/list', everywhere((request) => listTools.handle(request), OF_AGENT)],
    ['tools/call', everywhere((request) => callTool.handle(request))],
    ['resources/list', everywhere((request) => listResources.handle(request), OF_AGENT)],
    ['resources/templates/list', everywhere(listTemplates, OF_SERVER)],
    ['resources/read', everywhere((request) => readResource.handle(request), OF_AGENT)],
    ['resources/subscribe', legacyOnly(subscriptionsNotServed)],
    ['resources/unsubscribe', legacyOnly(subscriptionsNotServed)],
    ['prompts/list', everywhere((request) => listPrompts(prompts, request), OF_AGENT)],
    ['prompts/get', everywhere((request) => getPrompt.handle(request))],
    [
      'completion/complete',
      { legacySince: '2025-11-25', modern: true, handle: (request) => complete.handle(request) },
    ],
  ]);
}
