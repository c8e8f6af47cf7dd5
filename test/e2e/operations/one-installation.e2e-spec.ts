import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_CONFIG, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

describe('installations on one Redis with the same prefix', () => {
  let redis: RedisServer;
  let database: Database;
  const services: Service[] = [];
  beforeAll(async () => {
    [redis, database] = await Promise.all([startRedis(), startDatabase(POSTS_SEED)]);
  });
  afterAll(async () => {
    await Promise.all(services.map((service) => service.stop()));
    await database.stop();
    await redis.stop();
  });

  async function start(name: string, prefix?: string): Promise<Service> {
    const service = await startService({
      config: {
        ...POSTS_CONFIG,
        database: { uri: database.uri, name },
        redis: { url: redis.url, ...(prefix !== undefined && { prefix }) },
      },
    });
    services.push(service);
    return service;
  }

  it('are one where they have one database, and a stranger is refused with what to write', async () => {
    await start('parley');
    const replica = await start('parley');
    expect((await callTool(replica, 'count_objects', { class_name: 'Post' })).isError).not.toBe(true);
    await expect(start('other')).rejects.toThrow(
      /redis\.prefix: 'parley': an installation with another database has these keys: write another redis\.prefix/,
    );
    await expect(start('other', 'other')).resolves.toBeDefined();
  });

  it('name no server and no database in the refusal', async () => {
    const error = await start('secret-name').catch(String);
    expect(error).not.toMatch(/secret-name|mongodb:/);
  });
});
