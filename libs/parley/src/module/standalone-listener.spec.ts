import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { processState } from '#state';
import { ConfigError, loadConfig } from '#config';
import { MongoConnection } from '#data-mongo';
import { InstanceModule, RoutesApplication } from '../instance/index.js';
import { readEnvironmentGates } from '#policy';
import { openListener } from './standalone-listener.js';

const loaded = loadConfig({}, '/nowhere');
let context: INestApplicationContext;

beforeEach(async () => {
  // No server listens at the database address: these tests read no rows.
  const module = InstanceModule.forRoot({
    loaded,
    connection: new MongoConnection({ uri: 'mongodb://127.0.0.1:1', database: 'none', timeout: 100 }),
    shared: processState(),
    gates: readEnvironmentGates({}),
  });
  context = await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await context.close();
});

const listener = (port: number) =>
  openListener(context, loaded.config, { PARSE_MCP_ENABLED: 'true' }, { standalone: true, port });

describe('a separate port of an instance', () => {
  it('closes its routes when it closes', async () => {
    const closeServer = vi.spyOn(RoutesApplication.prototype, 'close');
    const { url, close } = await listener(0);
    expect((await fetch(new URL('/health', url))).status).toBe(200);
    expect(closeServer).not.toHaveBeenCalled();
    await close();
    expect(closeServer).toHaveBeenCalledOnce();
  });

  it('closes its routes where the port is taken', async () => {
    const first = await listener(0);
    const closeServer = vi.spyOn(RoutesApplication.prototype, 'close');
    await expect(listener(Number(new URL(first.url).port))).rejects.toThrow(ConfigError);
    expect(closeServer).toHaveBeenCalledOnce();
    await first.close();
  });
});
