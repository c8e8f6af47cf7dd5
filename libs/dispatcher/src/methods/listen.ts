import { concat, EMPTY, filter, map, mergeMap, NEVER, type Observable, of } from 'rxjs';
import { SUBSCRIPTION_ID_KEY } from '../envelope-keys.js';
import { isJsonObject, type JsonObject, member } from '../json-object.js';
import { type Notification, StreamedResult } from '../kernel-reply.js';
import { LIST_KINDS, type ListChanges, type ListKind } from '../list-changes.js';
import { invalidParams } from '../protocol-fault.js';
import type { ListenEvent, ResourceSubscriptions } from '../resource-subscriptions.js';
import type { MethodRequest } from './method.js';

export interface ListenParts {
  readonly subscriptions: ResourceSubscriptions | undefined;
  readonly listChanges: ListChanges | undefined;
}

const WANTED: Readonly<Record<ListKind, string>> = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
};

/** Stays open: the client ends it. */
const NOTHING_WATCHED: Observable<ListenEvent> = concat(of({ watched: [] }), NEVER);

function addressesOf(wanted: JsonObject): readonly string[] {
  const listed = member(wanted, 'resourceSubscriptions');
  if (listed === undefined) return [];
  if (!Array.isArray(listed) || !listed.every((uri): uri is string => typeof uri === 'string')) {
    throw invalidParams('Invalid params: resourceSubscriptions must be a list of addresses');
  }
  return [...new Set(listed)];
}

/**
 * `subscriptions/listen`: a stream that begins with what of the wish is honoured and goes on with the events it asked for,
 * all tagged with the id of the request.
 */
export function listen(
  { subscriptions, listChanges }: ListenParts,
  { params, context }: MethodRequest,
): StreamedResult {
  const wanted = member(params, 'notifications');
  if (!isJsonObject(wanted)) throw invalidParams('Invalid params: notifications must be an object');
  const kinds = LIST_KINDS.filter(
    (kind) => listChanges?.kinds.has(kind) === true && member(wanted, WANTED[kind]) === true,
  );
  const addresses = addressesOf(wanted);
  const _meta = Object.freeze({ [SUBSCRIPTION_ID_KEY]: context.requestId });
  const tagged = (method: string, told: JsonObject = {}): Notification => ({
    method: `notifications/${method}`,
    params: { ...told, _meta },
  });
  const toNotification = (event: ListenEvent): Notification =>
    'updated' in event
      ? tagged('resources/updated', { uri: event.updated })
      : tagged('subscriptions/acknowledged', { notifications: honoured(kinds, event.watched) });

  const lists = (): Observable<Notification> =>
    (kinds.length > 0 && listChanges ? listChanges.changes : EMPTY).pipe(
      filter((kind) => kinds.includes(kind)),
      map((kind) => tagged(`${kind}/list_changed`)),
    );
  const resources =
    addresses.length > 0 && subscriptions?.supported
      ? subscriptions.listen(addresses, context)
      : NOTHING_WATCHED;
  // Lists are told from the acknowledgement on: nothing may come before it.
  const messages = resources.pipe(
    map(toNotification),
    mergeMap((told, index) => (index === 0 ? concat(of(told), lists()) : of(told))),
  );
  return new StreamedResult(messages, () => ({ resultType: 'complete', _meta }));
}

function honoured(kinds: readonly ListKind[], watched: readonly string[]): JsonObject {
  return {
    ...Object.fromEntries(kinds.map((kind) => [WANTED[kind], true])),
    ...(watched.length > 0 && { resourceSubscriptions: watched }),
  };
}
