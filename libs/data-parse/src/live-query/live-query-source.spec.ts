import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { WebSocketServer } from 'ws';
import { Agent, compileAgentDefinition, sessionIdentity } from '#core';
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

describe('a connection to LiveQuery', () => {
  it('carries the master key for agents that have it alone, and a session without it', async () => {
    const frames: Record<string, unknown>[] = [];
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(server, 'listening');
    server.on('connection', (socket) =>
      socket.on('message', (data: Buffer) => frames.push(JSON.parse(data.toString()) as (typeof frames)[0])),
    );
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const source = new LiveQuerySource(
      { url, applicationId: 'app', restApiKey: 'rest', masterKey: 'the key' },
      { warn: () => undefined },
    );
    const definition = compileAgentDefinition('x', {});
    const view = { className: 'Order', declared: {} } as unknown as RowView;
    for (const identity of [undefined, sessionIdentity('r:mine')]) {
      const agent = new Agent({ definition, principal: 'p', ...(identity && { identity }) });
      source.news(agent, view).subscribe({ error: () => undefined });
    }
    await vi.waitFor(() => expect(frames).toHaveLength(2), { timeout: 20_000, interval: 10 });
    source.close();
    for (const socket of server.clients) socket.terminate();
    server.close();
    const greeting = { op: 'connect', applicationId: 'app', restAPIKey: 'rest' };
    expect(frames).toHaveLength(2);
    expect(frames).toEqual(expect.arrayContaining([greeting, { ...greeting, masterKey: 'the key' }]));
  });
});
