import type { Observable } from 'rxjs';
import type { McpRequest } from '#core';
import type { GovernedRecords } from '#data';
import { type EmbeddedResource, RegistryChanges } from '#tools';

/** A resource as it is listed (MCP 2025-11-25, server/resources). */
export interface ListedResource {
  /** In the scheme of its provider. */
  readonly uri: string;
  /** For programs. */
  readonly name: string;
  /** For people. Default: the name. */
  readonly title?: string;
  /** The content of the resource. Default none. */
  readonly description?: string;
  /** Default: unknown. */
  readonly mimeType?: string;
  /** Bytes, when known. */
  readonly size?: number;
}

/** A family of addresses with `{variables}` (RFC 6570, level 1). */
export interface ListedTemplate {
  /** RFC 6570, in the scheme of its provider. */
  readonly uriTemplate: string;
  /** For programs. */
  readonly name: string;
  /** For people. Default: the name. */
  readonly title?: string;
  /** The content of the resources. Default none. */
  readonly description?: string;
  /** Of all resources of the template. Default: unknown. */
  readonly mimeType?: string;
}

/** The input of a provider: it reads data only through the agent's own governed access. */
export interface ResourceCall extends McpRequest {
  /** The data, as the calling agent may read it. */
  readonly records: GovernedRecords;
}

/**
 * Resources of one URI scheme. The provider decides what an agent may see, by the same decision in both methods: it
 * never reads a resource to an agent that it does not list for that agent.
 */
export interface ResourceProvider {
  /** Lower case, without the colon. `parse` is reserved. */
  readonly scheme: string;
  /** The same for every agent. Default none. */
  readonly templates?: readonly ListedTemplate[];
  /** The resources that this caller may see. */
  list(call: ResourceCall): Promise<readonly ListedResource[]> | readonly ListedResource[];
  /** `undefined`: this resource does not exist for the agent. @throws Refused */
  read(
    uri: string,
    call: ResourceCall,
  ): Promise<readonly EmbeddedResource[] | undefined> | readonly EmbeddedResource[] | undefined;
  /**
   * Emits after each change of a resource, for as long as this caller may read it; completes when it may no longer.
   * `undefined`: the resource cannot be subscribed to. Without this method no resource of the provider can.
   */
  changes?(uri: string, call: ResourceCall): Observable<unknown> | undefined;
}

const SCHEME = /^[a-z][a-z0-9+.-]{0,31}$/;
const ADDRESS = /^([A-Za-z][A-Za-z0-9+.-]*):/;

/** The resources in addition to those of the classes, by URI scheme. */
export class ResourceRegistry {
  private readonly providers = new Map<string, ResourceProvider>();
  private readonly changed = new RegistryChanges('resources');

  /** Emits after every change. A subscriber that throws is logged; the others still receive the change. */
  readonly changes: Observable<void> = this.changed.changes;

  /** Adds a provider. @returns a function that removes it. @throws TypeError for a scheme that is taken or invalid */
  register(provider: ResourceProvider): () => void {
    const { scheme } = provider;
    if (!SCHEME.test(scheme)) throw new TypeError(`resources: '${scheme}' is not a URI scheme in lower case`);
    if (scheme === 'parse' || this.providers.has(scheme))
      throw new TypeError(`resources: the scheme '${scheme}' is taken`);
    this.providers.set(scheme, provider);
    this.changed.announce();
    return () => {
      if (this.providers.get(scheme) !== provider) return;
      this.providers.delete(scheme);
      this.changed.announce();
    };
  }

  /** In order of registration. */
  all(): readonly ResourceProvider[] {
    return [...this.providers.values()];
  }

  /** The templates of all providers. */
  get templates(): readonly ListedTemplate[] {
    return this.all().flatMap(({ templates = [] }) => templates);
  }

  /** The provider of an address; schemes compare without case (RFC 3986 §3.1). */
  findProvider(uri: string): ResourceProvider | undefined {
    const scheme = ADDRESS.exec(uri)?.[1];
    return scheme === undefined ? undefined : this.providers.get(scheme.toLowerCase());
  }
}
