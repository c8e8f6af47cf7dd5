import type { ToolRunner } from '#tools';
import type { InputRounds } from './client-requests/input-rounds.js';
import type { RecordsSource } from './reads/read-accounts.js';
import { CallTool } from './methods/call-tool.js';
import { Handshake, setLogLevel } from './methods/handshake.js';
import { ListTools, ToolCatalogue } from './methods/list-tools.js';
import type { Method } from './methods/method.js';
import { Complete, GetPrompt, listPrompts } from './methods/prompt-methods.js';
import { ListResources, listTemplates, ProvidedResources, ReadResource } from './methods/resource-methods.js';
import {
  type ListChanges,
  listen,
  resourceSubscriptionMethods,
  type ResourceSubscriptions,
} from './methods/subscription-methods.js';
import type { PromptRegistry } from './prompts/prompt-registry.js';
import type { ReadAccounts } from './reads/read-accounts.js';
import type { ResourceRegistry } from './resources/resource-registry.js';
import { type TaskStore, TaskMethods } from './tasks/task-store.js';
import type { CacheHint, ResultEnvelope, ServerInfo } from './json-rpc.js';

export interface MethodDependencies {
  readonly tools: ToolRunner;
  readonly records: RecordsSource;
  readonly prompts: PromptRegistry;
  readonly reads?: Pick<ReadAccounts, 'run'>;
  readonly resources: ResourceRegistry;
  readonly rounds?: InputRounds;
  readonly serverInfo: ServerInfo;
  readonly instructions?: string;
  readonly envelope: ResultEnvelope;
  readonly subscriptions?: ResourceSubscriptions;
  readonly listChanges?: ListChanges;
  readonly tasks?: TaskStore;
}

/** Depends on the agent: agents never share the answer, and rights may change at any time. */
const OF_AGENT: CacheHint = Object.freeze({ ttlMs: 0, cacheScope: 'private' });
/** The same for every agent while the process runs. */
const OF_SERVER: CacheHint = Object.freeze({ ttlMs: 300_000, cacheScope: 'public' });

const ALL_LEGACY = '2024-11-05';

/** All methods and the revisions that have them. Any other method is not found. */
export function methodTable(given: MethodDependencies): ReadonlyMap<string, Method> {
  const { tools, records, prompts, envelope, subscriptions, listChanges } = given;
  const handshake = new Handshake(given);
  const resources = resourceSubscriptionMethods(subscriptions);
  const tasks = new TaskMethods(given.tasks);
  const catalogue = new ToolCatalogue(tools);
  const listTools = new ListTools(catalogue, envelope, OF_AGENT);
  const callTool = new CallTool(tools, catalogue, given.tasks);
  const reads: Pick<ReadAccounts, 'run'> = given.reads ?? {
    run: ({ context }, work) => work(records.for(context)),
  };
  const provided = new ProvidedResources(given.resources, reads);
  const listResources = new ListResources(tools, catalogue, records, provided);
  const readResource = new ReadResource(tools, provided);
  const getPrompt = new GetPrompt(prompts, reads);
  const complete = new Complete(prompts, records);

  /** The methods whose answer may be a client request. */
  const asking = (method: string, named: string, handle: Method['handle']): Method['handle'] =>
    given.rounds?.asking(method, (params) => params[named], handle) ?? handle;
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

  const statelessOnly = (handle: Method['handle']): Method => ({ legacySince: null, modern: true, handle });

  return new Map<string, Method>([
    ['initialize', legacyOnly((request) => handshake.initialize(request.params))],
    ['ping', legacyOnly(() => ({}))],
    [
      'server/discover',
      { legacySince: null, modern: true, cache: OF_SERVER, handle: () => handshake.discover() },
    ],
    ['tools/list', everywhere((request) => listTools.handle(request), OF_AGENT)],
    ['tools/call', everywhere(asking('tools/call', 'name', (request) => callTool.handle(request)))],
    ['resources/list', everywhere((request) => listResources.handle(request), OF_AGENT)],
    [
      'resources/templates/list',
      everywhere((request) => listTemplates(provided.templates, request), OF_SERVER),
    ],
    [
      'resources/read',
      everywhere(
        asking('resources/read', 'uri', (request) => readResource.handle(request)),
        OF_AGENT,
      ),
    ],
    ['resources/subscribe', legacyOnly(resources.subscribe)],
    ['resources/unsubscribe', legacyOnly(resources.unsubscribe)],
    ['subscriptions/listen', statelessOnly((request) => listen({ subscriptions, listChanges }, request))],
    ['tasks/get', statelessOnly((request) => tasks.get(request))],
    ['tasks/update', statelessOnly((request) => tasks.update(request))],
    ['tasks/cancel', statelessOnly((request) => tasks.cancel(request))],
    ['prompts/list', everywhere((request) => listPrompts(prompts, request), OF_AGENT)],
    ['prompts/get', everywhere(asking('prompts/get', 'name', (request) => getPrompt.handle(request)))],
    [
      'completion/complete',
      { legacySince: '2025-11-25', modern: true, handle: (request) => complete.handle(request) },
    ],
    ['logging/setLevel', { legacySince: '2025-11-25', modern: false, handle: setLogLevel }],
  ]);
}
