import { type CallContext, Refused } from '#agent';
import type { GovernedRecords } from '#data';
import type { EmbeddedResource } from '#tools';
import type { JsonObject } from '../json-object.js';
import type { ReadAccounts } from '../reads/read-accounts.js';
import type { ResourceCall, ResourceTemplate } from '../resources/resource-provider.js';
import type { ResourceRegistry } from '../resources/resource-registry.js';

/** The resources of all providers, as far as one caller may see them. */
export class ProvidedResources {
  constructor(
    private readonly registry: ResourceRegistry,
    private readonly reads: Pick<ReadAccounts, 'run'>,
  ) {}

  get templates(): readonly ResourceTemplate[] {
    return this.registry.templates;
  }

  /** What a provider refuses to list, this caller does not have. */
  async list(context: CallContext): Promise<JsonObject[]> {
    const listed = await Promise.all(
      this.registry.all().map(async (provider) => {
        try {
          const run = { name: `resource:${provider.scheme}`, args: {}, context };
          return await this.reads.run(run, async (records) => provider.list(callOf(context, records)));
        } catch (fault) {
          if (fault instanceof Refused) return [];
          throw fault;
        }
      }),
    );
    return listed.flat().map((resource) => ({ ...resource }));
  }

  has(uri: string): boolean {
    return this.registry.providerOf(uri) !== undefined;
  }

  /** @returns `undefined` when this caller has no such resource. @throws Refused */
  async read(uri: string, context: CallContext): Promise<readonly EmbeddedResource[] | undefined> {
    const provider = this.registry.providerOf(uri);
    const run = { name: `resource:${provider?.scheme}`, args: { uri }, context };
    return provider && this.reads.run(run, async (records) => provider.read(uri, callOf(context, records)));
  }
}

function callOf(context: CallContext, records: GovernedRecords): ResourceCall {
  return {
    ...context,
    // Own members, also where the context is an object with accessors.
    signal: context.signal,
    progress: (update) => context.progress(update),
    records,
  };
}
