import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../config-error.js';
import { readConfig } from '../load-config.js';
import { auditConfig } from './audit.js';
import { processCount, startErrors } from '../checks/server-checks.js';

const { config } = readConfig({});
const errorsOf = (
  { redis = 'redis://127.0.0.1:1', sinks = [] as object[] }: { redis?: string | null; sinks?: object[] },
  kind: 'http' | 'stdio' = 'http',
) =>
  startErrors(
    {
      ...config,
      server: { ...config.server, processes: 2 },
      redis: { ...config.redis, url: redis },
      audit: auditConfig({ sinks: sinks as never }, '/', {}),
    },
    {},
    kind,
  ).map(({ path }) => path);

describe('the number of processes', () => {
  it('is one without an option, and that of the cores with `cores`', () => {
    expect(processCount(config.server)).toBe(1);
    expect(processCount({ processes: 'cores' })).toBe(availableParallelism());
  });

  it('above one needs Redis, and sinks that several processes can write to', () => {
    expect(errorsOf({})).toEqual([]);
    expect(errorsOf({ redis: null })).toEqual(['server.processes']);
    const sinks = [{ kind: 'mongodb' }, { kind: 'file', path: './records.jsonl' }];
    expect(errorsOf({ sinks })).toEqual(['audit.sinks.1.kind']);
  });

  it('is not asked for on stdio, which one client uses', () => {
    expect(errorsOf({ redis: null }, 'stdio')).toEqual([]);
  });

  it('is not an option of an application, which starts its own processes', () => {
    expect(() => readConfig({ server: { processes: 2 }, redis: { url: 'redis://127.0.0.1:1' } })).toThrow(
      ConfigError,
    );
    expect(() => readConfig({ server: { processes: 'cores' } })).toThrow(/an application starts its own/);
    expect(readConfig({ server: { processes: 1 } }).config.server.processes).toBe(1);
  });
});

describe('the audit of one of several processes', () => {
  it('has a buffer and a name of its own, the same ones after a restart', () => {
    const one = (number: string) =>
      auditConfig({ replica: 'east', bufferFolder: 'buffer' }, '/srv', { PARLEY_PROCESS: number });
    expect(one('2')).toMatchObject({ replica: 'east-2', bufferFolder: '/srv/buffer/process-2' });
    expect(one('1')).toMatchObject({ replica: 'east-1', bufferFolder: '/srv/buffer/process-1' });
    expect(auditConfig({ replica: 'east' }, '/srv', {})).toMatchObject({ replica: 'east' });
  });
});
