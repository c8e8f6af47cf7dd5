import { describe, expect, it } from 'vitest';
import { type AgentDefinitionOptions, compileAgentDefinition } from '#core';
import { checkFastReads, checkRights } from './check-stores.js';

describe('a user of the database who may only read', () => {
  const levelFor = (...agents: AgentDefinitionOptions[]) => {
    const definitions = agents.map((options, at) => compileAgentDefinition(`agent${at}`, options));
    const rights = { read: true, write: false };
    return checkRights({ rights }, 'shop', new Map(definitions.map((one) => [one.name, one])))[0]?.level;
  };

  it('is right where no agent writes', () => {
    expect(levelFor({}, { permissions: 'readonly' })).toBe('ok');
  });

  it.each([{ permissions: 'write' as const }, { permissions: 'admin' as const }])(
    'is warned of where one does: %j',
    (options) => {
      expect(levelFor({}, options)).toBe('warn');
    },
  );
});

describe('fast reads', () => {
  it('are possible, or warned of with the reason', () => {
    expect(checkFastReads({ fastReadsProblem: null }).level).toBe('ok');
    expect(checkFastReads({ fastReadsProblem: 'the connection string has compressors' })).toMatchObject({
      level: 'warn',
      check: 'mongodb.fast_reads',
      found: "every read is the driver's, because the connection string has compressors",
    });
  });
});
