import { afterAll, describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition } from '#core';
import type { RowView } from '#data';
import type { ClassSchema } from '#policy';
import { LiveQuerySource } from './live-query-source.js';

const ORDER: ClassSchema = {
  className: 'Order',
  fields: new Map([['number', { type: 'String' }]]),
  indexes: [],
  classLevelPermissions: null,
};

describe('changes that Parse Server reports', () => {
  const log = { log: () => undefined, warn: () => undefined };
  const source = new LiveQuerySource(
    { url: 'ws://127.0.0.1:1', applicationId: 'app', restApiKey: null, masterKey: 'a key' },
    log as never,
  );
  afterAll(() => source.close());
  const agent = new Agent({ definition: compileAgentDefinition('x', {}), principal: 'p' });
  const channel = (schema: ClassSchema) =>
    source.channel(agent, {
      className: 'Order',
      ownersOnly: false,
      declared: {},
      schema,
    } as unknown as RowView);

  it('are those of its own classes, and never of another class with the same name', () => {
    expect(channel(ORDER)).toMatch(/^live /);
    expect(channel({ ...ORDER, storage: 'plain' })).toBeNull();
    expect(channel({ ...ORDER, database: 'crm' })).toBeNull();
  });
});
