import { describe, expect, it } from 'vitest';
import { OverviewController } from './overview.controller.js';

type Parts = ConstructorParameters<typeof OverviewController>;

describe('the approvals that an overview counts', () => {
  const countNames = async (approvals: object) => {
    const none = { latest: () => Promise.resolve([]) };
    const controller = new OverviewController(
      { read: () => Promise.resolve({}) } as unknown as Parts[0],
      { list: () => Promise.resolve(approvals) } as unknown as Parts[1],
      none as unknown as Parts[2],
      none as unknown as Parts[3],
    );
    const operator = { agent: {} } as Parameters<typeof controller.read>[1];
    return (await controller.read({ window: '1h' }, operator)).waiting.approvals;
  };

  it('are those that the operator may decide, as in the navigation of the page', async () => {
    expect(
      await countNames({ ok: true, value: { approvals: [{ own: true }, { own: false }, { own: true }] } }),
    ).toBe(1);
    expect(await countNames({ ok: true, value: { approvals: [{ own: true }] } })).toBe(0);
  });

  it('are none for an operator that decides none', async () => {
    expect(await countNames({ ok: false, refusal: 'not_an_approver' })).toBeNull();
  });
});
