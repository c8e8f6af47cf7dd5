import { processState } from '#cluster';
import type { WarningLog } from '#dispatcher';
import { Wire } from './wire.js';

/** A wire in this process's memory, which serves one replica only. */
export function processWire(log: WarningLog): Wire {
  return new Wire({ state: processState(), log });
}
