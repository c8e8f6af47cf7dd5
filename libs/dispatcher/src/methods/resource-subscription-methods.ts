import { Refused } from '#agent';
import { invalidParams, ProtocolFault, RPC } from '../protocol-fault.js';
import { refusedResource } from './read-resource.js';
import type { ResourceSubscriptions } from '../resource-subscriptions.js';
import type { Method, MethodRequest } from './method.js';

const STREAM_GONE =
  'resources/subscribe: the session no longer has an open listening stream; reopen the GET stream and retry';

function addressOf({ params }: MethodRequest): string {
  const { uri } = params;
  return typeof uri === 'string' ? uri : (JSON.stringify(uri) ?? '');
}

/** `resources/subscribe` and `resources/unsubscribe` of the revisions with sessions. */
export function resourceSubscriptionMethods(
  subscriptions: ResourceSubscriptions | undefined,
): Readonly<Record<'subscribe' | 'unsubscribe', Method['handle']>> {
  const served = (): ResourceSubscriptions => {
    if (subscriptions?.supported) return subscriptions;
    throw new ProtocolFault(
      RPC.methodNotFound,
      'Resource subscriptions are not supported by this server',
      undefined,
      404,
    );
  };
  return {
    subscribe: async (request) => {
      const uri = addressOf(request);
      let subscribed: boolean;
      try {
        subscribed = await served().subscribe(uri, request.context);
      } catch (fault) {
        // As a read of the same address says it.
        if (fault instanceof Refused) throw refusedResource(uri, request.dialect, fault.refusal);
        throw fault;
      }
      if (subscribed) return {};
      throw invalidParams(STREAM_GONE);
    },
    unsubscribe: async (request) => {
      await served().unsubscribe(addressOf(request), request.context);
      return {};
    },
  };
}
