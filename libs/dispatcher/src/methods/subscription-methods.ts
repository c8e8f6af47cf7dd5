import { Inject, Injectable } from '@nestjs/common';
import {
  concat,
  concatMap,
  EMPTY,
  filter,
  from,
  map,
  mergeMap,
  NEVER,
  type Observable,
  of,
  switchMap,
  takeUntil,
  toArray,
} from 'rxjs';
import { type Agent, Refused, type McpRequest, isJsonObject, type JsonObject, member } from '#core';
import { SuspendedAgents } from '#state';
import { McpMethod } from './method.js';
import { ReadResource, readChangeSetUri, toRefusedResource } from './resource-methods.js';
import {
  type Notification,
  StreamedResult,
  invalidParams,
  ProtocolError,
  RPC,
  SUBSCRIPTION_ID_KEY,
  readDialect,
} from '../protocol.js';

const LIST_CHANGES: Readonly<Record<ListKind, string>> = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
};

/** Stays open until the client ends it. */
const NOTHING_WATCHED: Observable<ListenEvent> = concat(of({ watched: [] }), NEVER);

function readAddresses(requested: JsonObject): readonly string[] {
  const listed = member(requested, 'resourceSubscriptions');
  if (listed === undefined) return [];
  if (!Array.isArray(listed) || !listed.every((uri): uri is string => typeof uri === 'string')) {
    throw invalidParams('Invalid params: resourceSubscriptions must be a list of addresses');
  }
  return [...new Set(listed)];
}

function listHonoured(kinds: readonly ListKind[], watched: readonly string[]): JsonObject {
  return {
    ...Object.fromEntries(kinds.map((kind) => [LIST_CHANGES[kind], true])),
    ...(watched.length > 0 && { resourceSubscriptions: watched }),
  };
}

const STREAM_GONE =
  'resources/subscribe: the session no longer has an open listening stream; reopen the GET stream and retry';

function readAddress({ uri }: JsonObject): string {
  return typeof uri === 'string' ? uri : (JSON.stringify(uri) ?? '');
}

const LIST_KINDS = ['tools', 'prompts', 'resources'] as const;
export type ListKind = (typeof LIST_KINDS)[number];

/** Tells when a list that a client may have read changed, on any replica. */
export abstract class ListChanges {
  /** The lists with change notifications, as announced in the capabilities. */
  abstract readonly kinds: ReadonlySet<ListKind>;
  /** Emits the lists that changed for clients of an agent. */
  abstract follow(agent: Agent): Observable<ListKind>;
}

/** Events of a stateless listener: first the watched resources, then each change of one of them. */
export type ListenEvent = { readonly watched: readonly string[] } | { readonly updated: string };

/** Subscriptions of clients to resource changes. A client receives the address, never the change. */
export abstract class ResourceSubscriptions {
  /** Whether subscriptions can be served now. */
  abstract readonly supported: boolean;
  /** Addresses that one listening request may watch. */
  abstract readonly maxListened: number;
  /**
   * Subscribes the session of the transport; updates go to that session's listening stream.
   * @returns false when the session ended meanwhile
   * @throws ProtocolError for an address that cannot be subscribed to, and when a limit is reached; Refused as reading
   * would
   */
  abstract subscribe(uri: string, context: McpRequest): Promise<boolean>;
  /** Succeeds for an address without a subscription as well. */
  abstract unsubscribe(uri: string, context: McpRequest): Promise<void>;
  /**
   * Cold: watches from subscription to unsubscription. Addresses that the agent may not watch, and those beyond the limit,
   * are missing from `watched`.
   */
  abstract listen(uris: readonly string[], context: McpRequest): Observable<ListenEvent>;
}

/** Subscriptions to changes of resources and lists, in both eras. */
@Injectable()
export class SubscriptionMethods {
  /** A parameter that is null: none is served. */
  constructor(
    @Inject(ResourceSubscriptions) private readonly subscriptions: ResourceSubscriptions | null,
    @Inject(ListChanges) private readonly listChanges: ListChanges | null,
    @Inject(SuspendedAgents) private readonly suspended: Pick<SuspendedAgents, 'endOf'>,
    @Inject(ReadResource) private readonly reading: Pick<ReadResource, 'assertShown'>,
  ) {}

  /** Of the revisions with sessions. */
  @McpMethod('resources/subscribe', { modern: false })
  async subscribe(params: JsonObject, request: McpRequest): Promise<JsonObject> {
    const uri = readAddress(params);
    let subscribed: boolean;
    try {
      const served = this.served();
      await this.reading.assertShown(uri, request);
      subscribed = await served.subscribe(uri, request);
    } catch (error) {
      // The same error as a read of the address.
      if (error instanceof Refused) throw toRefusedResource(uri, readDialect(request), error.refusal);
      throw error;
    }
    if (subscribed) return {};
    throw invalidParams(STREAM_GONE);
  }

  /** Of the revisions with sessions. */
  @McpMethod('resources/unsubscribe', { modern: false })
  async unsubscribe(params: JsonObject, request: McpRequest): Promise<JsonObject> {
    await this.served().unsubscribe(readAddress(params), request);
    return {};
  }

  /**
   * A stream that begins with the accepted part of the request and continues with its events, all tagged with the id of the
   * request.
   */
  @McpMethod('subscriptions/listen', { legacySince: null })
  listen({ notifications: requested }: JsonObject, request: McpRequest): StreamedResult {
    const { subscriptions, listChanges } = this;
    if (!isJsonObject(requested)) throw invalidParams('Invalid params: notifications must be an object');
    const kinds = LIST_KINDS.filter(
      (kind) => listChanges?.kinds.has(kind) === true && member(requested, LIST_CHANGES[kind]) === true,
    );
    const addresses = readAddresses(requested);
    const _meta = Object.freeze({ [SUBSCRIPTION_ID_KEY]: request.transport.requestId });
    const toNotification = (method: string, sent: JsonObject = {}): Notification => ({
      method: `notifications/${method}`,
      params: { ...sent, _meta },
    });
    const toListenNotification = (event: ListenEvent): Notification =>
      'updated' in event
        ? toNotification('resources/updated', { uri: event.updated })
        : toNotification('subscriptions/acknowledged', { notifications: listHonoured(kinds, event.watched) });

    const lists = (): Observable<Notification> =>
      (kinds.length > 0 && listChanges ? listChanges.follow(request.agent) : EMPTY).pipe(
        filter((kind) => kinds.includes(kind)),
        map((kind) => toNotification(`${kind}/list_changed`)),
      );
    const resources =
      addresses.length > 0 && subscriptions?.supported
        ? this.findShown(addresses.slice(0, subscriptions.maxListened), request).pipe(
            switchMap((shown) => subscriptions.listen(shown, request)),
          )
        : NOTHING_WATCHED;
    // List changes are sent only after the acknowledgement, which must be first.
    const messages = resources.pipe(
      map(toListenNotification),
      mergeMap((change, index) => (index === 0 ? concat(of(change), lists()) : of(change))),
      takeUntil(this.suspended.endOf(request.agent)),
    );
    return new StreamedResult(messages, () => ({ resultType: 'complete', _meta }));
  }

  /** Without the change sets that are not the caller's: each is asked for by a call, one after the other. */
  private findShown(uris: readonly string[], request: McpRequest): Observable<readonly string[]> {
    if (!uris.some((uri) => readChangeSetUri(uri) !== null)) return of(uris);
    const isShown = async (uri: string): Promise<boolean> => {
      try {
        await this.reading.assertShown(uri, request);
        return true;
      } catch (error) {
        if (error instanceof Refused) return false;
        throw error;
      }
    };
    return from(uris).pipe(
      concatMap(async (uri) => ((await isShown(uri)) ? [uri] : [])),
      concatMap((shown) => shown),
      toArray(),
    );
  }

  private served(): ResourceSubscriptions {
    if (this.subscriptions?.supported) return this.subscriptions;
    throw new ProtocolError(
      RPC.methodNotFound,
      'Resource subscriptions are not supported by this server',
      undefined,
      404,
    );
  }
}
