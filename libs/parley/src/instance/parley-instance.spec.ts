import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { processState } from '#state';
import { loadConfig } from '#config';
import { MongoConnection } from '#data-mongo';
import { ParleyInstance } from './parley-instance.js';

let destroyed = 0;

@Injectable()
class Counted implements OnModuleDestroy {
  onModuleDestroy(): void {
    destroyed += 1;
  }
}
@Module({ providers: [Counted] })
class FurtherModule {}

/** No server listens at its database address: these tests read no rows. */
function opened(): Promise<ParleyInstance> {
  destroyed = 0;
  return ParleyInstance.open(
    {
      loaded: loadConfig({}, '/nowhere'),
      environment: {},
      connection: new MongoConnection({ uri: 'mongodb://127.0.0.1:1', database: 'none', timeout: 100 }),
      shared: processState(),
      queue: 'process',
      serves: false,
    },
    (module) => NestFactory.createApplicationContext(module, { logger: false, abortOnError: false }),
  );
}

describe('the routes beside MCP', () => {
  it.each([
    ['drained', (instance: ParleyInstance) => instance.drain()],
    ['closed', () => Promise.resolve()],
  ])('close once, with their instance, where it is %s first', async (_, first) => {
    const instance = await opened();
    await instance.openRoutes([{ module: FurtherModule }]);
    await first(instance);
    await instance.close();
    expect(destroyed).toBe(1);
  });

  it('close where the start of their instance fails', async () => {
    const instance = await opened();
    await instance.openRoutes([{ module: FurtherModule }]);
    await instance.abandon();
    expect(destroyed).toBe(1);
    await instance.app.close();
  });
});
