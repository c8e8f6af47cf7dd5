import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AuditEntry, RecentAuditTrail } from '#audit';
import { sumUsage, usageCsv } from './usage.js';

const MONTH = { from: '2026-01-01T00:00:00.000Z', to: '2026-02-01T00:00:00.000Z' };

function createTrail(records: readonly object[]): RecentAuditTrail {
  const trail = new RecentAuditTrail(20_000);
  const common = {
    type: 'tool_call',
    chain: 'c',
    at: '2026-01-01T10:00:00.000Z',
    success: true,
    agent_name: 'a',
  };
  for (const [seq, members] of records.entries())
    trail.remember({ ...common, seq, ...members } as unknown as AuditEntry);
  return trail;
}

describe('the use of a time', () => {
  it('is summed by day, agent and tenant, with tokens and costs of results and of embeddings', async () => {
    const trail = createTrail([
      { rows: 2, est_input_tokens: 100, est_cost_usd: 0.1, tenant_id: 'acme' },
      {
        rows: 1,
        est_input_tokens: 50,
        embed_tokens: 7,
        est_cost_usd: 0.2,
        embed_cost_usd: 0.01,
        tenant_id: 'acme',
      },
      { success: false, tenant_id: 'acme' },
      { type: 'export_read', rows: 40, tenant_id: 'acme' },
      { tenant_id: 7 },
      { at: '2026-01-02T00:00:00.000Z', agent_name: 'b' },
      { at: '2026-02-01T00:00:00.000Z' },
      { type: 'operator_action', action: 'console.sign_in' },
    ]);
    const { rows, cut } = await sumUsage(trail, MONTH);
    expect(cut).toBeNull();
    expect(rows).toEqual([
      { day: '2026-01-01', agent: 'a', tenant: '7', calls: 1, refused: 0, rows: 0, tokens: 0, cost: null },
      {
        day: '2026-01-01',
        agent: 'a',
        tenant: 'acme',
        calls: 3,
        refused: 1,
        rows: 43,
        tokens: 157,
        cost: 0.31,
      },
      { day: '2026-01-02', agent: 'b', tenant: '', calls: 1, refused: 0, rows: 0, tokens: 0, cost: null },
    ]);
  });

  it('counts every call once, however many pages they are on, and says where a limit ended it', async () => {
    const records = Array.from({ length: 1_234 }, (_, at) => ({
      at: new Date(Date.UTC(2026, 0, 1, 0, 0, at)).toISOString(),
    }));
    const trail = createTrail(records);
    expect((await sumUsage(trail, MONTH)).rows).toEqual([expect.objectContaining({ calls: 1_234 })]);
    const { rows, cut } = await sumUsage(trail, MONTH, { searches: 2, rows: 9 });
    expect([rows[0]?.calls, cut]).toEqual([400, records.at(-400)?.at]);
    expect(usageCsv({ rows, cut })).toContain(`cut,nothing before ${cut} was read`);
  });

  it('is CSV without a cell that a spreadsheet runs, whatever agents and tenants are called', async () => {
    const start = fc.constantFrom('=', '+', '-', '@', '\t', '\r', ' =', 'x;=', '＝');
    const text = fc.tuple(start, fc.string()).map(([first, rest]) => first + rest);
    await fc.assert(
      fc.asyncProperty(text, text, async (agent_name, tenant_id) => {
        const csv = usageCsv(await sumUsage(createTrail([{ agent_name, tenant_id }]), MONTH));
        // A separator within quotes separates nothing, in any locale.
        const cells = (csv.match(/"(?:[^"]|"")*"|[^,;\t\r\n]+/g) ?? []).map((cell) =>
          cell.replace(/^[\s"]+/, ''),
        );
        expect(cells.filter((cell) => /^[=+\-@＝＋－＠]/.test(cell))).toEqual([]);
      }),
    );
  });
});
