import { describe, expect, it } from 'vitest';
import { Readiness } from './readiness.js';

type Parts = ConstructorParameters<typeof Readiness>;

/** What was found of each dependency, and when it was found down, whose next probes fail so many times. */
function readinessOf(failing: Record<string, number>) {
  const answer = (name: string) => {
    failing[name] = (failing[name] ?? 0) - 1;
    return failing[name] < 0;
  };
  const pinged = (name: string) => ({
    ping: () => (answer(name) ? Promise.resolve() : Promise.reject(new Error('away'))),
  });
  const isUp = (name: string) => () => Promise.resolve(answer(name));
  return new Readiness(
    { ...pinged('mongodb'), further: new Map([['logs', pinged('mongodb.logs')]]) } as unknown as Parts[0],
    pinged('parse') as unknown as Parts[1],
    { reach: 'replicas', isUp: isUp('redis') } as unknown as Parts[2],
    { isUp: isUp('queue') } as unknown as Parts[3],
    { isAccepting: true } as Parts[4],
    { states: new Map() } as unknown as Parts[5],
    { current: { config: { furtherDatabases: {} } } } as unknown as Parts[6],
  );
}

describe.each(['mongodb', 'mongodb.logs', 'parse', 'redis', 'queue'])('the dependency %s', (name) => {
  it('is up while every second probe answers', async () => {
    const failing = { [name]: 1 };
    const readiness = readinessOf(failing);
    for (let look = 0; look < 3; look += 1) {
      failing[name] = 1;
      expect(await readiness.look()).toMatchObject({ ready: true, downSince: {} });
    }
  });

  it('is down as soon as two probes in a row fail, and up with the next that answers', async () => {
    const readiness = readinessOf({ [name]: 2 });
    const { ready, status, dependencies, downSince } = await readiness.look();
    expect([ready, status, dependencies[name]]).toEqual([false, 'unavailable', 'down']);
    expect(Object.keys(downSince)).toEqual([name]);
    expect(await readiness.look()).toMatchObject({ ready: true, downSince: {} });
  });
});
