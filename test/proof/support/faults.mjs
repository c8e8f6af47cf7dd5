// What is done to a service in production, on purpose: each fault comes at its time, and the next one waits for it.
import { Redis } from 'ioredis';
import { setTimeout as pause } from 'node:timers/promises';

/** What a primary answers that is one no more. */
const NOT_PRIMARY = { errorCode: 10107, errorLabels: ['RetryableWriteError'] };
const OPERATIONS = ['insert', 'update', 'delete', 'findAndModify', 'find', 'aggregate', 'count', 'getMore'];

/**
 * A step-down as clients see it: operations are refused, connections are cut, and then the database serves again.
 * @param admin a connection that faults do not meet
 */
export async function stepDown(admin, milliseconds) {
  const fail = (mode, data) =>
    admin.command({ configureFailPoint: 'failCommand', mode, ...(data && { data }) });
  await fail('alwaysOn', { failCommands: OPERATIONS, ...NOT_PRIMARY });
  await pause(milliseconds / 2);
  await fail('alwaysOn', { failCommands: OPERATIONS, closeConnection: true });
  await pause(milliseconds / 2);
  await fail('off');
}

/**
 * Kills the primary that Sentinels watch and, when all of them name another one, starts it again as a replica. Before that it would be an
 * empty primary, which an operator must never start.
 * @param killed which of the two servers is the primary now
 * @returns seconds until every Sentinel named the other server
 */
export async function failOver({ settings, servers, kill, revive }, killed) {
  const began = performance.now();
  const address = await kill(killed);
  const sentinels = settings.sentinels.map((one) => {
    const [host, port] = one.split(':');
    return new Redis({ host, port: Number(port) });
  });
  const named = (sentinel) => sentinel.call('sentinel', 'get-master-addr-by-name', settings.name);
  while ((await Promise.all(sentinels.map(named))).some((one) => one.join(':') === address)) await pause(50);
  const seconds = (performance.now() - began) / 1000;
  await pause(500);
  await revive(killed);
  // Until then what waits for a replica fails, and another fail-over would have nobody to turn to.
  while (!(await servers[1 - killed].info('replication').catch(() => '')).includes('state=online'))
    await pause(100);
  for (const sentinel of sentinels) sentinel.disconnect();
  return seconds;
}

/**
 * Does something every so many seconds until it is over.
 * @param first seconds until the first time
 * @returns how often it was done
 */
export async function repeatedly({ first, every, going }, act) {
  let count = 0;
  let next = performance.now() + first * 1000;
  while (going()) {
    if (performance.now() < next) {
      await pause(50);
      continue;
    }
    next = performance.now() + every * 1000;
    await act(count);
    count += 1;
  }
  return count;
}
