import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import { type Service, type ServiceOptions, startService } from './service.js';
import { makeFolder } from './started.js';

const PRELOAD = new URL('./shifted-clock.mjs', import.meta.url).href;

/** Environment of a process on a machine whose clock is wrong. @param ahead milliseconds */
export const shifted = (ahead: number) => ({
  NODE_OPTIONS: `--import=${PRELOAD}`,
  CLOCK_AHEAD: String(ahead),
});

/** A service on a machine whose clock is wrong, and can be set. */
export interface ShiftedReplica extends Service {
  /** Milliseconds that its clock is ahead. */
  ahead(): number;
  /** Sets its clock, forward or back. */
  setClock(ahead: number): Promise<void>;
  /** Lets time pass for it, on all of its clocks, in which nothing happens. */
  pass(milliseconds: number): Promise<void>;
}

export async function startShifted(ahead: number, options: ServiceOptions): Promise<ShiftedReplica> {
  const folder = makeFolder('clock');
  const file = join(folder, 'ahead');
  const service = await startService({
    ...options,
    env: { ...options.env, ...shifted(ahead), CLOCK_FILE: file },
  });
  let current = ahead;
  let passed = 0;
  let set = 0;
  const apply = async () => {
    set += 1;
    writeFileSync(file, `${current} ${passed}`);
    service.signal('SIGUSR2');
    const times = () => service.output().stderr.split('the clock is set to').length - 1;
    await vi.waitFor(() => {
      if (times() < set) throw new Error('the clock is not set yet');
    }, 5_000);
  };
  return {
    ...service,
    ahead: () => current,
    setClock: (next) => {
      current = next;
      return apply();
    },
    pass: (milliseconds) => {
      passed += milliseconds;
      return apply();
    },
  };
}
