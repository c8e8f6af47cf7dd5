import { CLOCK_DIFFERENCE, type SharedState, steadyClock } from '#cluster';
import { InputRounds, RequestStateSeal, type StateKeys } from '#dispatcher';
import type { ParleyConfig, ServerConfig } from '#config';

/** The operator's keys, or else one that the replicas have in common. */
export function stateKeys({ stateKey, previousStateKeys }: ServerConfig, shared: SharedState): StateKeys {
  if (stateKey === null) {
    return { secrets: async () => [await shared.secrets.secret('request-state')] };
  }
  const previous = previousStateKeys.map((key) => Buffer.from(key));
  const secrets: [Buffer, ...Buffer[]] = [Buffer.from(stateKey), ...previous];
  return { secrets: () => Promise.resolve(secrets) };
}

/** How running calls ask their client, the same on every replica. */
export function createInputRounds(
  { server, redis }: Pick<ParleyConfig, 'server' | 'redis'>,
  shared: SharedState,
): InputRounds {
  const timeout = server.approvalTimeout * 1000;
  // Without Redis one process seals and opens.
  const difference = redis.url === null ? 0 : CLOCK_DIFFERENCE;
  const seal = new RequestStateSeal(stateKeys(server, shared), timeout, steadyClock, difference);
  return new InputRounds({ seal, oneTime: shared.oneTime, timeout });
}
