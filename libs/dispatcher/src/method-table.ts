import { Inject, Injectable } from '@nestjs/common';
import { ToolRunner } from '#tools';
import { InputRounds } from './client-requests/input-rounds.js';
import { CallTool } from './methods/call-tool.js';
import { Handshake, setLogLevel } from './methods/handshake.js';
import { ListTools, ToolCatalogue } from './methods/list-tools.js';
import type { Method } from './methods/method.js';
import { Complete, GetPrompt, listPrompts } from './methods/prompt-methods.js';
import { ListResources, listTemplates, ProvidedResources, ReadResource } from './methods/resource-methods.js';
import {
  ListChanges,
  listen,
  resourceSubscriptionMethods,
  ResourceSubscriptions,
} from './methods/subscription-methods.js';
import { PromptRegistry } from './prompts/prompt-registry.js';
import { ReadAccounts, RecordsSource } from './reads/read-accounts.js';
import { ResourceRegistry } from './resources/resource-registry.js';
import { TaskMethods, TaskStore } from './tasks/task-store.js';
import { type CacheHint, ResultEnvelope, type WarningLog } from './protocol.js';

export interface KernelOptions {
  /** The product version, which clients receive. */
  readonly version: string;
  /** Sent to clients of revision 2025-11-25 and later. Default: none. */
  readonly instructions?: string;
  /** Logs the internal causes of internal errors. Default: the log of the process. */
  readonly log?: WarningLog;
}

/** Injection token of `KernelOptions`. */
export const KERNEL_OPTIONS = Symbol('KERNEL_OPTIONS');

/** Depends on the agent: agents never share the answer, and rights may change at any time. */
const OF_AGENT: CacheHint = Object.freeze({ ttlMs: 0, cacheScope: 'private' });
/** The same for every agent while the process runs. */
const OF_SERVER: CacheHint = Object.freeze({ ttlMs: 300_000, cacheScope: 'public' });

const ALL_LEGACY = '2024-11-05';

/** All methods and the revisions that have them. Any other method is not found. */
@Injectable()
export class MethodTable {
  /** The members that answers of the stateless revisions have in addition. */
  readonly envelope: ResultEnvelope;
  private readonly methods: ReadonlyMap<string, Method>;

  /**
   * @param reads the account that prompts and resources read rows under. Default: the rights of the agent alone
   * @param rounds sends client requests of running calls. Default: client requests are not supported
   * @param tasks stores calls that continue after their answer. Default: tasks are not supported
   * @param listChanges default: no list change notifications are announced
   * @param subscriptions default: subscriptions are not served
   */
  constructor(
    @Inject(KERNEL_OPTIONS) { version, instructions }: KernelOptions,
    private readonly tools: ToolRunner,
    private readonly records: RecordsSource,
    private readonly prompts: PromptRegistry,
    private readonly resources: ResourceRegistry,
    @Inject(ReadAccounts) reads?: Pick<ReadAccounts, 'run'>,
    private readonly rounds?: InputRounds,
    private readonly tasks?: TaskStore,
    private readonly listChanges?: ListChanges,
    private readonly subscriptions?: ResourceSubscriptions,
  ) {
    const serverInfo = Object.freeze({ name: 'parley', version });
    this.envelope = new ResultEnvelope(serverInfo);
    const handshake = new Handshake({
      serverInfo,
      instructions,
      resources,
      subscriptions,
      listChanges,
      tasks,
    });
    this.methods = this.tableOf(
      handshake,
      reads ?? { run: ({ context }, work) => work(records.for(context)) },
    );
  }

  /** @returns `undefined` for a name that no revision has */
  find(name: string): Method | undefined {
    return this.methods.get(name);
  }

  private tableOf(handshake: Handshake, reads: Pick<ReadAccounts, 'run'>): ReadonlyMap<string, Method> {
    const { tools, records, prompts, envelope, rounds, subscriptions, listChanges } = this;
    const resources = resourceSubscriptionMethods(subscriptions);
    const tasks = new TaskMethods(this.tasks);
    const catalogue = new ToolCatalogue(tools);
    const listTools = new ListTools(catalogue, envelope, OF_AGENT);
    const callTool = new CallTool(tools, catalogue, this.tasks);
    const provided = new ProvidedResources(this.resources, reads);
    const listResources = new ListResources(tools, catalogue, records, provided);
    const readResource = new ReadResource(tools, provided);
    const getPrompt = new GetPrompt(prompts, reads);
    const complete = new Complete(prompts, records);

    /** The methods whose answer may be a client request. */
    const asking = (method: string, named: string, handle: Method['handle']): Method['handle'] =>
      rounds?.asking(method, (params) => params[named], handle) ?? handle;
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
}
