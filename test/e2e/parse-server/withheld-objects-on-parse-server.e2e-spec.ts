import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isRefused } from '../advisories/questions.js';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, type Service, startService } from '../../support/service.js';
import {
  COMPARISONS,
  fillWithheld,
  WITHHELD_CONFIG,
  WITHHELD_ID,
} from '../../fixtures/withheld-objects.fixture.js';

const servers: ParseUnderTest[] = [];
const services: Service[] = [];
beforeAll(async () => {
  for (const world of [0, 1] as const) {
    const parse = await ParseUnderTest.start();
    servers.push(parse);
    await fillWithheld(parse.database, world, (seed) => parse.fill(seed));
    const config = {
      ...WITHHELD_CONFIG,
      parse: parse.config,
      database: { uri: parse.databaseUri, name: parse.databaseName },
    };
    services.push(await startService({ config }));
  }
}, 180_000);
afterAll(async () => {
  await Promise.all(services.map((service) => service.stop()));
  for (const server of servers) await server.stop();
});

const MASTER = { 'X-MCP-API-Key': 'key-master' };
const ask = (tool: string, args: unknown) =>
  Promise.all(services.map((service) => callTool(service, tool, args, MASTER)));

/** Of each kind of question some: what is compared is decided before a route is chosen. */
const SHARE = 9;
const ways = [...new Set(COMPARISONS.map(([way]) => way))];
const asked = ways.flatMap((way) =>
  COMPARISONS.filter(([name]) => name === way).filter((_, index) => index % SHARE === 0),
);

describe('two worlds behind a Parse Server whose rows hold other objects of withheld classes', () => {
  it('show the same rows, with placeholders in them', async () => {
    const [one, other] = await ask('query_class', { class_name: 'Desk', order: 'name' });
    expect(one?.text.match(/__redacted/g)?.length).toBeGreaterThan(10);
    expect(one?.text).not.toMatch(WITHHELD_ID);
    expect(other?.text).toBe(one?.text);
  });

  it('answer every comparison alike', { timeout: 240_000 }, async () => {
    const answered = new Set<string>();
    for (const [way, tool, args] of asked) {
      const [one, other] = await ask(tool, args);
      expect([way, args, other?.text, other?.code, other?.rpcError]).toEqual([
        way,
        args,
        one?.text,
        one?.code,
        one?.rpcError,
      ]);
      if (one && !isRefused(one)) answered.add(way);
    }
    for (const way of [
      'where',
      'where, negated',
      'leading $match',
      '$select',
      '$lookup of a column',
      '$graphLookup',
    ])
      expect([way, answered.has(way)]).toEqual([way, true]);
  });
});
