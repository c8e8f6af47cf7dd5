import { describe, expect, it } from 'vitest';
import { unhurried } from '../contracts/operation.js';
import { RecordWriter, StoreError } from '../record-store.js';
import { InvalidatingWriter } from './principal-directory.js';

class SmallWriter extends RecordWriter {
  create = async () => ({ objectId: 'x' });
  update = async () => null;
  delete = (): Promise<boolean> => Promise.reject(new StoreError('timeout'));
}

describe('a writer beside remembered identities', () => {
  it('lets them be forgotten after every write, also after one that failed', async () => {
    const forgotten: string[] = [];
    const directory = { forgetClass: (className: string) => void forgotten.push(className) };
    const writer = new InvalidatingWriter(new SmallWriter(), directory);
    expect(await writer.create('_Role', {}, unhurried())).toEqual({ objectId: 'x' });
    expect(await writer.update('_User', 'u', {}, {}, unhurried())).toBeNull();
    await expect(writer.delete('_Session', 's', {}, unhurried())).rejects.toMatchObject({ code: 'timeout' });
    expect(forgotten).toEqual(['_Role', '_User', '_Session']);
  });
});
