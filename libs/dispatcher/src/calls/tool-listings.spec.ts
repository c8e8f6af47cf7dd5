import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, refusals, Refused, Unauthorized } from '#core';
import { type ClassUses, type ClassUsesSource, StoreError } from '#data';
import type { CallableMethods, ToolRegistry } from '#tools';
import { ToolListings } from './tool-listings.js';

const agent = new Agent({ definition: compileAgentDefinition('reader', {}), principal: 'ada' });

/** Lists for a database whose classes are read with this outcome. */
function listTools(read: () => ClassUses | Promise<ClassUses>) {
  const listings = new ToolListings(
    { version: 1, all: () => [] } as unknown as ToolRegistry,
    {} as never,
    { of: read } as unknown as ClassUsesSource,
    {} as CallableMethods,
    { of: () => ({ switches: { listAllTools: false } }) } as never,
  );
  return Promise.resolve().then(() => listings.listTools(agent));
}

describe('a list of tools', () => {
  it.each([
    ['a refusal', new Refused(refusals.invalidQuery('no'))],
    ['a caller who is not recognised', new Unauthorized()],
    ['a database that does not answer', new StoreError('unavailable')],
  ])('is that of all permitted tools at %s, which calls say', async (_title, error) => {
    expect(await listTools(() => Promise.reject(error))).toEqual([]);
    expect(
      await listTools(() => {
        throw error;
      }),
    ).toEqual([]);
  });

  it('hides no other error', async () => {
    const error = new TypeError('a mistake of ours');
    await expect(listTools(() => Promise.reject(error))).rejects.toBe(error);
    await expect(
      listTools(() => {
        throw error;
      }),
    ).rejects.toBe(error);
  });
});
