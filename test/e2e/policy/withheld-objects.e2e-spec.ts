import { MongoConnection } from '#data-mongo';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isRefused, type Question } from '../advisories/questions.js';
import { callTool, type Service, startService } from '../../support/service.js';
import {
  ASKERS,
  COMPARISONS,
  fillWithheld,
  LIST_WRITES,
  WITHHELD_CONFIG,
  WITHHELD_ID,
} from '../../fixtures/withheld-objects.fixture.js';

const env = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' };
let embedded: EmbeddedMongo;
let services: Service[] = [];
beforeAll(async () => {
  embedded = await EmbeddedMongo.start();
  const { uri } = embedded;
  services = await Promise.all(
    ([0, 1] as const).map(async (world) => {
      const name = `withheld_${world}`;
      const database = new MongoConnection({ uri, database: name, timeout: 60_000 });
      await fillWithheld(database, world);
      await database.close();
      return startService({ config: { ...WITHHELD_CONFIG, database: { uri, name } }, env });
    }),
  );
}, 120_000);
afterAll(async () => {
  await Promise.all(services.map((service) => service.stop()));
  await embedded?.close();
});

const WAYS = [...new Set(COMPARISONS.map(([way]) => way))];

async function asked([, tool, args]: Question, who: string) {
  const headers = { 'X-MCP-API-Key': `key-${who}` };
  const [one, other] = await Promise.all(services.map((service) => callTool(service, tool, args, headers)));
  if (!one || !other) throw new Error('two worlds are asked');
  return { one, other };
}

describe('two worlds whose rows hold other objects of withheld classes', { timeout: 240_000 }, () => {
  it('have rows, and show placeholders in them', async () => {
    for (const who of ASKERS) {
      const { one, other } = await asked(['', 'query_class', { class_name: 'Desk', order: 'name' }], who);
      expect(one.data['results']).toHaveLength(7);
      expect(one.text.match(/__redacted/g)?.length).toBeGreaterThan(10);
      expect(one.text).not.toMatch(WITHHELD_ID);
      expect(other.text).toBe(one.text);
    }
  });

  describe.each(ASKERS)('asked by %s', (who) => {
    it.each(WAYS)('answer alike: %s', async (way) => {
      // The caller's identity changes no comparison: one is asked everything, the others a part.
      const share = who === ASKERS[0] ? 1 : 7;
      const questions = COMPARISONS.filter(([name]) => name === way).filter(
        (_, index) => index % share === 0,
      );
      let answered = 0;
      for (const question of questions) {
        const { one, other } = await asked(question, who);
        const shown = [one.text, one.code, one.rpcError];
        expect([question, other.text, other.code, other.rpcError]).toEqual([question, ...shown]);
        if (!isRefused(one)) answered += 1;
      }
      if (share === 1) expect([way, answered > 0]).toEqual([way, true]);
    });

    it('change no list that would show what was in it', async () => {
      for (const question of LIST_WRITES) {
        const { one, other } = await asked(question, who);
        // A row inside a row is no value that can be written at all.
        expect([question, one.code]).toEqual([
          question,
          expect.stringMatching(/^(access_denied|invalid_argument)$/),
        ]);
        expect(other.text).toBe(one.text);
      }
    });
  });
});
