import { openSharedState } from '../open-shared-state.js';
import type { SharedState } from '../ports/shared-state.js';
import { startRedis } from './redis-server.js';

export interface UnconfirmedState {
  readonly state: SharedState;
  /** Over the same Redis, which has no replica: nothing that goes through it is confirmed, though Redis has run it. */
  readonly strict: SharedState;
  close(): Promise<void>;
}

export async function openUnconfirmedState(): Promise<UnconfirmedState> {
  const redis = await startRedis();
  const options = { url: redis.url, log: { warn: () => undefined } };
  const state = await openSharedState(options);
  const strict = await openSharedState({ ...options, waitForReplicas: 1 });
  return {
    state,
    strict,
    async close() {
      await Promise.all([state.close(), strict.close()]);
      await redis.stop();
    },
  };
}
