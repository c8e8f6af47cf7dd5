import { describe, expect, it } from 'vitest';
import { UseOfRecords } from './recorded-use.js';

describe('the use of an agent', () => {
  it('is counted for hundreds of thousands of principals', () => {
    const use = new UseOfRecords(['reader'], () => 3600);
    const record = { type: 'tool_call', tool: 'query_class', agent_name: 'reader', success: true };
    for (let index = 0; index < 200_000; index += 1)
      use.add({
        ...record,
        at: '2026-01-01T00:00:00.000Z',
        principal: `user-${index}`,
        rows: index === 7 ? 9 : 1,
        duration_ms: 1,
      });
    expect(use.result().agents.get('reader')).toMatchObject({ calls: 200_000, rows: 9 });
  });
});
