import { describe, expect, it } from 'vitest';
import { OTHER_NAMES } from './call-statistics.js';
import { findRefusals } from './refusals.js';

type Given = Parameters<typeof findRefusals>[0]['buckets'][number];

type Counts = readonly [calls: number, refused: number, denied?: number];

/** Calls of a minute, how many of them were refused, and how many of these by a person, by agent. */
function minute(agents: Readonly<Record<string, Counts>>): Given {
  const column = (at: 0 | 1 | 2) =>
    Object.fromEntries(Object.entries(agents).map(([name, counts]) => [name, counts[at] ?? 0]));
  const total = (at: 0 | 1 | 2) => Object.values(agents).reduce((sum, counts) => sum + (counts[at] ?? 0), 0);
  const [refused, denied] = [total(1), total(2)];
  return {
    at: '2026-01-01T12:00:00.000Z',
    calls: total(0),
    refused,
    gates: { rate_limit: refused - denied, approval: denied },
    agents: column(0),
    refused_agents: column(1),
    denied_agents: column(2),
  } as unknown as Given;
}
const find = (...buckets: Given[]) => findRefusals({ buckets, from: '' });

describe('refusals of the last minutes', () => {
  it('are none while most calls pass, of all and of each agent', () => {
    expect(find(minute({ writer: [20, 10], reader: [20, 0] }))).toMatchObject({ all: null, agents: [] });
  });

  it('name an agent that is mostly refused, also where the calls of others pass', () => {
    expect(find(minute({ writer: [20, 4], reader: [90, 0] }), minute({ writer: [20, 18] }))).toMatchObject({
      all: null,
      agents: [{ name: 'writer', calls: 40, refused: 22 }],
    });
  });

  it('are of all calls where most are refused, by the gate that refuses most', () => {
    expect(find(minute({ writer: [20, 20], reader: [10, 1] })).all).toEqual({
      calls: 30,
      refused: 21,
      gate: 'rate_limit',
    });
  });

  it('are none where a person denied the calls, and of the other gates where those refuse most', () => {
    expect(find(minute({ writer: [20, 20, 18], reader: [20, 2] }))).toMatchObject({ all: null, agents: [] });
    expect(find(minute({ writer: [20, 20, 9] }))).toMatchObject({
      all: { calls: 20, refused: 11, gate: 'rate_limit' },
      agents: [{ name: 'writer', calls: 20, refused: 11 }],
    });
  });

  it('are those of the last two minutes where it was well before', () => {
    const before = Array.from({ length: 8 }, () => minute({ writer: [20, 0] }));
    expect(find(...before, minute({ writer: [20, 15] }))).toMatchObject({ minutes: 10, all: null });
    expect(find(...before, minute({ writer: [20, 15] }), minute({ writer: [20, 20] }))).toMatchObject({
      minutes: 2,
      all: { calls: 40, refused: 35 },
    });
  });

  it('need more than a few calls, and are forgotten after ten minutes', () => {
    expect(find(minute({ writer: [4, 4] }))).toMatchObject({ all: null, agents: [] });
    const after = Array.from({ length: 10 }, () => minute({ writer: [1, 0] }));
    expect(find(minute({ writer: [50, 50] }), ...after)).toMatchObject({ all: null, agents: [] });
  });

  it('name no agent for those that are counted together', () => {
    expect(find(minute({ [OTHER_NAMES]: [9, 9] }))).toMatchObject({ all: { refused: 9 }, agents: [] });
  });
});
