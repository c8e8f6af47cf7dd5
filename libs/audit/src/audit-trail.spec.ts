import { describe, expect, it } from 'vitest';
import { type AuditEntry, type AuditQuery, AuditQueryError } from './audit-trail.js';
import { RecentAuditTrail } from './audit-recorder.js';

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();

const entry = (seq: number, parts: object = {}): AuditEntry =>
  ({
    type: 'tool_call',
    chain: 'c',
    seq,
    at: at(seq),
    tool: 'query_class',
    agent_name: 'analyst',
    principal: 'key:1',
    success: true,
    ...parts,
  }) as unknown as AuditEntry;

const ENTRIES = [
  entry(0, { tenant_id: 7 }),
  entry(1, { tenant_id: 'acme', success: false, gate: 'fields', error_code: 'access_denied' }),
  entry(2, { tool: 'aggregate', correlation_id: 'corr', trace_id: 'trace', object_digest: 'digest' }),
  entry(3, { agent_name: 'writer', principal: 'key:2', object_id: 'row' }),
  entry(4, { type: 'approval', approver: 'key:9', approver_key: 'of-ada' }),
];

async function searchTrail(query: AuditQuery): Promise<number[]> {
  const trail = new RecentAuditTrail();
  for (const one of ENTRIES) trail.remember(one);
  return (await trail.search(query)).entries.map(({ seq }) => seq);
}

describe('what is remembered of audit', () => {
  it.each<[AuditQuery, number[]]>([
    [{}, [4, 3, 2, 1, 0]],
    [{ from: at(2) }, [4, 3, 2]],
    [{ to: at(2) }, [1, 0]],
    [{ from: '2026-01-01T01:00:02+01:00', to: at(3) }, [2]],
    [{ type: 'approval' }, [4]],
    [{ approver: 'key:9' }, [4]],
    [{ approver: 'of-ada' }, [4]],
    [{ approver: 'of-ada', approverKey: 'of-bob' }, []],
    [{ agent: 'writer' }, [3]],
    [{ principal: 'key:2' }, [3]],
    [{ tool: 'aggregate' }, [2]],
    [{ tenant: '7' }, [0]],
    [{ tenant: 'acme' }, [1]],
    [{ tenant: '' }, []],
    [{ outcome: 'failure' }, [1]],
    [{ outcome: 'success', type: 'tool_call' }, [3, 2, 0]],
    [{ gate: 'fields' }, [1]],
    [{ code: 'access_denied' }, [1]],
    [{ objectId: 'row' }, [3]],
    [{ objectDigest: 'digest' }, [2]],
    [{ correlationId: 'corr' }, [2]],
    [{ traceId: 'trace' }, [2]],
    [{ tool: 'aggregate', agent: 'writer' }, []],
  ])('is found newest first by all that is asked: %j', async (query, expected) => {
    expect(await searchTrail(query)).toEqual(expected);
  });

  it('is paged without losing or repeating an entry, entries of the same moment included', async () => {
    const trail = new RecentAuditTrail();
    for (const chain of ['a', 'b'])
      for (let seq = 0; seq < 5; seq += 1) trail.remember(entry(seq, { chain, at: at(seq % 2) }));
    const seen: string[] = [];
    let cursor: string | null | undefined;
    do {
      const page = await trail.search({ limit: 3, ...(cursor && { cursor }) });
      expect(page.entries.length).toBeLessThanOrEqual(3);
      seen.push(...page.entries.map(({ chain, seq }) => `${chain}${seq}`));
      ({ cursor } = page);
    } while (cursor);
    expect(seen).toHaveLength(10);
    expect(new Set(seen).size).toBe(10);
  });

  it('is never more than its size: the oldest is forgotten first', async () => {
    const trail = new RecentAuditTrail(2);
    for (const one of ENTRIES) trail.remember(one);
    expect((await trail.search({})).entries.map(({ seq }) => seq)).toEqual([4, 3]);
  });

  it.each<AuditQuery>([
    { limit: 0 },
    { limit: 201 },
    { limit: 1.5 },
    { from: 'yesterday' },
    ...['1', '2026', '11/12/2026', 'Jan 2 2026', '2026-1-2', '2026-02-30', '2026-02-30T00:00:00Z'].map(
      (from) => ({ from }),
    ),
    { to: '' },
    { cursor: 'x' },
    { cursor: Buffer.from('[1,2,3]').toString('base64url') },
  ])('is not searched with %j', async (query) => {
    await expect(new RecentAuditTrail().search(query)).rejects.toThrow(AuditQueryError);
  });
});
