import type { Observable } from 'rxjs';
import type { CallContext } from '#agent';
import type { GovernedRecords } from '#data';
import type { EmbeddedResource } from '#tools';

/** A resource as it is listed (MCP 2025-11-25, server/resources). */
export interface ListedResource {
  /** Of the scheme of its provider. */
  readonly uri: string;
  /** For programs. */
  readonly name: string;
  /** For people. Default: the name. */
  readonly title?: string;
  /** What it holds. Default none. */
  readonly description?: string;
  /** Default: unknown. */
  readonly mimeType?: string;
  /** Bytes, when known. */
  readonly size?: number;
}

/** A family of addresses with `{variables}` (RFC 6570, level 1). */
export interface ResourceTemplate {
  /** RFC 6570, of the scheme of its provider. */
  readonly uriTemplate: string;
  /** For programs. */
  readonly name: string;
  /** For people. Default: the name. */
  readonly title?: string;
  /** What they hold. Default none. */
  readonly description?: string;
  /** Of all that fit it. Default: unknown. */
  readonly mimeType?: string;
}

/** What a provider may use: data only through the agent's own governed door. */
export interface ResourceCall extends CallContext {
  /** The data, as the calling agent may read it. */
  readonly records: GovernedRecords;
}

/**
 * Resources of one URI scheme. The provider decides what an agent may see, and by the same decision in both methods: what
 * it does not list for an agent it does not read to it either.
 */
export interface ResourceProvider {
  /** Lower case, without the colon. `parse` is taken. */
  readonly scheme: string;
  /** The same for every agent. Default none. */
  readonly templates?: readonly ResourceTemplate[];
  /** What this caller may see of them. */
  list(call: ResourceCall): Promise<readonly ListedResource[]> | readonly ListedResource[];
  /** `undefined`: for this agent there is no such resource. @throws Refused */
  read(
    uri: string,
    call: ResourceCall,
  ): Promise<readonly EmbeddedResource[] | undefined> | readonly EmbeddedResource[] | undefined;
  /**
   * Emits after each change of a resource, for as long as this caller may read it; completes when it may not any more.
   * `undefined`: it cannot be subscribed to, which is so for all where the provider leaves this out.
   */
  changes?(uri: string, call: ResourceCall): Observable<unknown> | undefined;
}
