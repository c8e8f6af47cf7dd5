import { describe, expect, it } from 'vitest';
import { unhurried } from '../contracts/operation.js';
import { RecordWriter } from '../record-adapters.js';
import { StoreError, type StoreOperation, type Writes } from '../record-store.js';
import { forgettingWrites } from './principal-directory.js';

class SmallWriter extends RecordWriter {
  create = async () => ({ objectId: 'x' });
  update = async () => null;
  delete = (): Promise<boolean> => Promise.reject(new StoreError('timeout'));
}

describe('a writer beside remembered identities', () => {
  it('lets them be forgotten after every write, also after one that failed', async () => {
    const forgotten: string[] = [];
    const directory = { forgetClass: (className: string) => void forgotten.push(className) };
    const store = forgettingWrites(new SmallWriter(), directory);
    const run = (write: StoreOperation<Writes>) => store.run(write, unhurried(), 'operator');
    expect(await run({ kind: 'create', className: '_Role', fields: {} })).toEqual({ objectId: 'x' });
    expect(
      await run({ kind: 'update', className: '_User', objectId: 'u', fields: {}, where: {} }),
    ).toBeNull();
    const removed = run({ kind: 'delete', className: '_Session', objectId: 's', where: {} });
    await expect(removed).rejects.toMatchObject({ code: 'timeout' });
    expect(forgotten).toEqual(['_Role', '_User', '_Session']);
  });
});
