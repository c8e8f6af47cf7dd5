import { isDeepStrictEqual } from 'node:util';
import type { Agent } from '#core';
import type { VersionChange } from './config-versions.js';

/**
 * Whose streams a new version of the configuration ends: what is declared of the agent, or of how callers are recognised, is not what they were
 * admitted by. Their clients come back and are authenticated anew. A policy alone ends nobody's: rights are asked again.
 */
export function mustReturn({ before, now }: VersionChange): (agent: Agent) => boolean {
  if (!isDeepStrictEqual(before.config.auth, now.config.auth)) return () => true;
  const changed = new Set(
    Object.keys(before.config.agents).filter(
      (name) => !isDeepStrictEqual(before.config.agents[name], now.config.agents[name]),
    ),
  );
  return ({ shape }) => changed.has(shape.name);
}
