import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ReplicaState } from '../src/replica-states.js';
import { formatTime } from './formats.js';
import { findTroubles } from './troubles.js';

const NOW = Date.parse('2026-01-01T12:00:00.000Z');

const replica = (id: string, members: Partial<ReplicaState> = {}): ReplicaState => ({
  replica: id,
  name: `host-${id}`,
  answered: true,
  version: '1',
  node: 'v20',
  started_at: '2026-01-01T10:00:00.000Z',
  shared_state: 'replicas',
  memory_bytes: 1,
  policy: {
    version: 'p1',
    classes: 1,
    agents: 1,
    number: 1,
    loaded_at: '2026-01-01T10:00:00.000Z',
    widened: null,
    last_refused: null,
  },
  dependencies: { mongodb: 'up', redis: 'up', queue: 'up', audit: 'up' },
  down_since: {},
  sinks: { file: 'up' },
  keys: [],
  suspended: [],
  draining: false,
  streams: { calls: 0, listening: 0, console: 0 },
  ...members,
});
const NONE = { minutes: 10, from: '2026-01-01T11:50:00.000Z', all: null, agents: [] };
const find = (...replicas: ReplicaState[]) => findTroubles({ replicas, refusals: NONE }, NOW);
const texts = (...replicas: ReplicaState[]) => find(...replicas).map(({ text }) => text);
const withPolicy = (id: string, policy: Partial<ReplicaState['policy']>) =>
  replica(id, { policy: { ...replica(id).policy, ...policy } });

describe('the state of the service', () => {
  it('has no trouble while every replica is ready and serves the same policy', () => {
    expect(find(replica('a'), replica('b'))).toEqual([]);
  });

  it('names a dependency that is down, and the replicas where it is not down for all', () => {
    const down = { dependencies: { mongodb: 'down', redis: 'up' } } as const;
    expect(texts(replica('a', down), replica('b'))[0]).toMatch(/^MongoDB does not answer.*\(host-a\)$/);
    expect(texts(replica('a', down), replica('b', down))[0]).not.toContain('host');
  });

  it('says since when a dependency is down, by the replica that found it first', () => {
    const since = (at: string) => ({
      dependencies: { mongodb: 'down' } as const,
      down_since: { mongodb: at },
    });
    const found = texts(
      replica('a', since('2026-01-01T11:59:00.000Z')),
      replica('b', since('2026-01-01T11:58:00.000Z')),
    );
    expect(found).toEqual([
      `MongoDB does not answer since ${formatTime('2026-01-01T11:58:00.000Z')}: calls that read or write rows fail`,
    ]);
  });

  it('names the section of the runbook for what is wrong', () => {
    const runbook = readFileSync(new URL('../../../docs/operations/runbook.md', import.meta.url), 'utf8');
    const wrong = replica('a', {
      dependencies: { mongodb: 'down', redis: 'up' },
      sinks: { file: 'down', mongo: 'buffering' },
      suspended: [{ agent: 'x', since: '2026-01-01T11:00:00.000Z', by: 'chief', reason: 'r' }],
      policy: { ...replica('a').policy, last_refused: { at: '2026-01-01T11:00:00.000Z', faults: ['f'] } },
    });
    const replicas = [wrong, withPolicy('b', { version: 'p2' }), replica('c', { answered: false })];
    const refusals = { ...NONE, all: { calls: 9, refused: 6, gate: null } };
    const found = findTroubles({ replicas, refusals }, NOW);
    const sections = found.map(({ runbook: section }) => section);
    expect(sections).toHaveLength(8);
    for (const section of sections) expect(runbook).toContain(`\n## ${section}\n`);
  });

  it('says nothing about other replicas while Redis is down, over which they are asked', () => {
    const found = texts(replica('a', { dependencies: { redis: 'down' } }), replica('b', { answered: false }));
    expect(found).toEqual([expect.stringMatching(/^Redis does not answer/)]);
  });

  it('names Redis alone where the queue in it is down as well, and a sink by its name', () => {
    const found = texts(
      replica('a', {
        dependencies: { redis: 'down', queue: 'down', audit: 'down' },
        sinks: { file: 'down' },
      }),
    );
    expect(found).toHaveLength(2);
    expect(found[1]).toContain('audit sink file takes no records');
  });

  it('names a suspended agent once, since when and by whom, however many replicas say so', () => {
    const suspended = [
      { agent: 'analyst', since: '2026-01-01T11:00:00.000Z', by: 'key:chief', reason: 'leaked' },
    ];
    const said = texts(replica('a', { suspended }), replica('b', { suspended }), replica('c'));
    expect(said).toEqual([expect.stringMatching(/^The agent analyst is suspended since .* by key:chief$/)]);
  });

  it('names a key that ended or ends soon once, however many replicas say so', () => {
    const key = (name: string, expires_at: string, expired: boolean) =>
      ({ name, kind: 'apiKey', agents: ['analyst'], expires_at, expired }) as const;
    const keys = [
      key('gone', '2026-01-01T11:00:00.000Z', true),
      key('soon', '2026-01-05T00:00:00.000Z', false),
    ];
    expect(texts(replica('a', { keys }), replica('b', { keys }))).toEqual([
      expect.stringMatching(/^The key gone of analyst expired at .*: its callers are refused$/),
      'The key soon of analyst expires in 3 days',
    ]);
  });

  it('says what buffers, what was refused, what differs, what widened and who does not answer', () => {
    const found = texts(
      replica('a', { sinks: { file: 'buffering' } }),
      withPolicy('b', { version: 'p2', widened: true }),
      withPolicy('c', { last_refused: { at: '2026-01-01T11:00:00.000Z', faults: ['agents: wrong'] } }),
      replica('d', { answered: false }),
    );
    expect(found.map((text) => text.replace(/ at \w+ \d+, \d+:\d+:\d+/, ''))).toEqual([
      'The replica host-d does not answer',
      'A configuration was refused: agents: wrong (host-c)',
      'Replicas serve different policies: p1 (host-a, host-c), p2 (host-b)',
      'The audit sink file does not answer: records wait on disk (host-a)',
      'The policy that was loaded widened access (host-b)',
    ]);
  });

  it('names the gate that refuses most calls, and the agents whose calls are mostly refused, with more of them', () => {
    const counted = { calls: 30, refused: 20 };
    const refusals = {
      ...NONE,
      all: { ...counted, gate: 'rate_limit' },
      agents: [{ name: 'writer', ...counted }],
    };
    expect(findTroubles({ replicas: [replica('a')], refusals }, NOW)).toMatchObject([
      {
        kind: 'bad',
        text: 'Most of all calls in the last 10 minutes were refused or failed, by the gate rate_limit above all',
        href: '#/audit?outcome=failure&from=2026-01-01T11%3A50%3A00.000Z',
      },
      {
        kind: 'busy',
        text: 'Most of the calls of the agent writer in the last 10 minutes were refused or failed',
        href: '#/agent?name=writer',
      },
    ]);
  });

  it('names no agent where the calls of several are refused with all others', () => {
    const counted = { calls: 30, refused: 20 };
    const agents = ['reader', 'writer'].map((name) => ({ name, ...counted }));
    const said = (all: (typeof counted & { gate: string }) | null) =>
      findTroubles({ replicas: [replica('a')], refusals: { ...NONE, all, agents } }, NOW);
    expect(said({ ...counted, gate: 'rate_limit' })).toHaveLength(1);
    expect(said(null)).toHaveLength(2);
  });

  it('points out for a day that a policy widened access', () => {
    expect(find(withPolicy('a', { widened: true, loaded_at: '2025-12-30T10:00:00.000Z' }))).toEqual([]);
  });
});
