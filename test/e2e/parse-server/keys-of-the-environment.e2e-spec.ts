import { beforeAll, describe, expect, it } from 'vitest';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, type Service, startService } from '../../support/service.js';

const SEED = {
  schemas: [{ className: 'Note', fields: { title: { type: 'String' } } }],
  users: [{ objectId: 'ada', username: 'ada' }],
  sessions: [{ sessionToken: 'r:session-of-ada', user: 'ada', expiresAt: '2099-01-01T00:00:00.000Z' }],
  objects: { Note: [{ objectId: 'n1', title: 'One' }] },
};

let parse: ParseUnderTest;
beforeAll(async () => {
  parse = await ParseUnderTest.start();
  await parse.fill(SEED);
}, 120_000);

/** Without a database of its own everything that a session reads is asked of the server. */
async function titlesSeenWith(env: Record<string, string>): Promise<readonly unknown[]> {
  const { url, appId, masterKey } = parse.server;
  const service: Service = await startService({
    config: {
      database: { uri: null },
      agents: { caller: { identity: { session: 'caller' } } },
      auth: [{ parseSession: true, agent: 'caller' }],
      policy: { unlistedClasses: 'allow' },
    },
    env: { PARSE_SERVER_URL: url, PARSE_APP_ID: appId, PARSE_MASTER_KEY: masterKey, ...env },
  });
  try {
    const session = { 'X-Parse-Session-Token': 'r:session-of-ada' };
    const { data, code } = await callTool(service, 'query_class', { class_name: 'Note' }, session);
    const rows = data['results'] as { title: string }[] | undefined;
    return rows?.map(({ title }) => title) ?? [code];
  } finally {
    await service.stop();
  }
}

describe('a Parse Server that requires a REST key', () => {
  it.each(['PARSE_REST_API_KEY', 'PARSE_API_KEY'])('gets it from %s', async (name) => {
    expect(await titlesSeenWith({ [name]: parse.server.restAPIKey })).toEqual(['One']);
  });

  it('gets the one of PARSE_REST_API_KEY where both are given', async () => {
    const { restAPIKey } = parse.server;
    const both = { PARSE_API_KEY: 'a-wrong-key', PARSE_REST_API_KEY: restAPIKey };
    expect(await titlesSeenWith(both)).toEqual(['One']);
  });

  it.each<Record<string, string>>([{}, { PARSE_API_KEY: 'a-wrong-key' }])(
    'shows nothing to a service with %j',
    async (env) => {
      expect(await titlesSeenWith(env)).not.toContain('One');
    },
  );
});
