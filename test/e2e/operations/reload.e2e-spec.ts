import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client as ClassicClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as ClassicTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import {
  callTool,
  type Database,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const SOON = { timeout: 60_000, interval: 25 };
const POSTS = 'parse://Post/count';
const SEED = {
  schemas: [
    { className: 'Post', fields: { title: { type: 'String' }, draft: { type: 'String' } } },
    { className: 'Note', fields: { text: { type: 'String' } } },
  ],
  objects: { Post: [{ objectId: 'first', title: 'first', draft: 'S3CRET' }] },
};
const key = (name: string) => ({ 'X-MCP-API-Key': name });
const reader = key('reader');

interface Changes {
  readonly fields?: readonly string[];
  readonly hidden?: boolean;
  readonly tools?: object;
  readonly guest?: boolean;
  readonly more?: object;
}

let database: Database;
let service: Service;

/** What the tests put in the place of each other, from the widest. */
const configOf = ({ fields, hidden, tools, guest = true, more = {} }: Changes = {}) => ({
  database: { uri: database.uri, name: 'parley' },
  reload: { interval: 0.1 },
  subscriptions: { debounce: 0.05 },
  agents: {
    writer: { permissions: 'admin', rateLimit: 1_000_000 },
    reader: { rateLimit: 1_000_000, ...(tools && { tools }) },
    ...(guest && { guest: {} }),
  },
  auth: [
    { apiKey: 'writer', agent: 'writer' },
    { apiKey: 'reader', agent: 'reader' },
    ...(guest ? [{ apiKey: 'guest', agent: 'guest' }] : []),
  ],
  policy: {
    unlistedClasses: 'allow',
    classes: { Post: { ...(fields && { fields }), ...(hidden && { hidden }) } },
  },
  console: { operators: ['reader'] },
  ...more,
});

const fieldsSeen = async () => {
  const { data } = await callTool(service, 'get_object', { class_name: 'Post', object_id: 'first' }, reader);
  return Object.keys((data['object'] ?? {}) as object);
};
const toolsOf = async (headers: Record<string, string>) => {
  const { body } = await rpc(service, 'tools/list', {}, headers);
  return (body as { result: { tools: { name: string }[] } }).result.tools.map(({ name }) => name);
};
const log = () => service.output().stderr;
const linesAbout = (text: string) => log().split(text).length - 1;

/** Puts a file in place and waits until it is served. */
async function served(changes: Changes = {}): Promise<void> {
  const before = linesAbout('is served, policy version');
  service.reconfigure(configOf(changes));
  await vi.waitFor(() => expect(linesAbout('is served, policy version')).toBe(before + 1), SOON);
}

/** Does something to the file and waits until it was refused, and until all of that was said. */
async function refused(spoil: () => void, ...said: readonly string[]): Promise<void> {
  const before = linesAbout('configuration is refused');
  spoil();
  await vi.waitFor(() => {
    expect(linesAbout('configuration is refused')).toBeGreaterThan(before);
    for (const line of said) expect(log()).toContain(line);
  }, SOON);
}

beforeAll(async () => {
  database = await startDatabase(SEED);
  service = await startService({
    config: configOf(),
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
});

describe('a configuration that changes while it is served', () => {
  it('takes a field away from the next call on', async () => {
    expect(await fieldsSeen()).toContain('draft');
    await served({ fields: ['title'] });
    const fields = await fieldsSeen();
    expect(fields).toContain('title');
    expect(fields).not.toContain('draft');
    await served();
    expect(await fieldsSeen()).toContain('draft');
  });

  it('changes the list of tools, and notifies clients of both eras', async () => {
    const classic = new ClassicClient({ name: 'classic', version: '1' });
    const modern = new ModernClient(
      { name: 'modern', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    const received: string[] = [];
    classic.setNotificationHandler(ToolListChangedNotificationSchema, () => void received.push('classic'));
    modern.setNotificationHandler('notifications/tools/list_changed', () => void received.push('modern'));
    const requestInit = { headers: key('writer') };
    await classic.connect(new ClassicTransport(new URL(service.url), { requestInit }) as never);
    await modern.connect(new ModernTransport(new URL(service.url), { requestInit }));
    await modern.listen({ toolsListChanged: true });
    expect(await toolsOf(reader)).toContain('query_class');
    // The listening stream of the classic client opens by itself, at some time: until then nothing reaches it.
    let without = false;
    await vi.waitFor(async () => {
      without = !without;
      await served(without ? { tools: { except: ['query_class'] } } : {});
      expect(new Set(received)).toEqual(new Set(['classic', 'modern']));
    }, SOON);
    expect((await toolsOf(reader)).includes('query_class')).toBe(!without);
    if (without) await served();
    await Promise.all([classic.close(), modern.close()]);
  });

  it('reports every error of a file, and stays as it was', async () => {
    await refused(
      () =>
        service.reconfigure(
          configOf({
            fields: ['title'],
            more: { policy: { unlistedClasses: 'allow', classes: { Post: { feilds: [] } }, typo: true } },
          }),
        ),
      'policy.classes.Post.feilds: unknown key',
      'policy.typo: unknown key',
    );
    expect(await fieldsSeen()).toContain('draft');
    const ready = await fetch(`${service.origin}/ready`);
    expect(ready.status).toBe(200);
    // What was repaired to what is served already is no new version.
    service.reconfigure(configOf());
  });

  it('takes over nothing of a file in which something needs a restart, and does not show the values', async () => {
    await refused(
      () =>
        service.reconfigure(
          configOf({
            fields: ['title'],
            more: { server: { heartbeatInterval: 7 }, approvals: { expiry: 17 }, plugins: [] },
          }),
        ),
      'server.heartbeatInterval: has changed, which needs a restart',
      'approvals.expiry: has changed, which needs a restart',
    );
    expect(await fieldsSeen()).toContain('draft');
    service.reconfigure(configOf());
  });

  it('makes other agents operators of the console that there is', async () => {
    const status = async (key: string) => {
      const headers = { 'X-MCP-API-Key': key };
      return (await fetch(`${service.origin}/console/api/status`, { headers })).status;
    };
    expect([await status('writer'), await status('reader')]).toEqual([403, 200]);
    await served({ more: { console: { operators: ['writer'] } } });
    expect([await status('writer'), await status('reader')]).toEqual([200, 403]);
    await served();
  });

  it('does not fall back to the defaults when its file is emptied or gone', async () => {
    await refused(
      () => writeFileSync(service.file, '# nothing\n'),
      `${basename(service.file)}: is empty: write into it what agents may read`,
    );
    await refused(() => rmSync(service.file), `${basename(service.file)}: no such file`);
    expect((await rpc(service, 'tools/list')).status).toBe(401);
    expect(await fieldsSeen()).toContain('draft');
    await served({ fields: ['title'] });
    await served();
  });

  it('does not let callers in without credentials who were not let in before', async () => {
    const config = configOf();
    await refused(
      () => service.reconfigure({ ...config, auth: [...config.auth, { anonymous: true, agent: 'writer' }] }),
      'auth: whether there is an anonymous rule has changed, which needs a restart',
    );
    expect((await rpc(service, 'tools/list')).status).toBe(401);
    service.reconfigure(configOf());
  });

  it('knows an agent no more that is gone, and ends its streams', async () => {
    const guest = key('guest');
    const opened = await rpc(service, 'initialize', INITIALIZE, guest);
    const session = { 'Mcp-Session-Id': opened.headers.get('mcp-session-id') ?? '' };
    const stream = await fetch(service.url, {
      headers: { ...guest, ...session, Accept: 'text/event-stream' },
    });
    expect(stream.status).toBe(200);
    await served({ guest: false });
    // Ends only when the server ends it.
    await stream.text();
    expect((await rpc(service, 'tools/list', {}, { ...guest, ...session })).status).toBe(401);
    await served();
    expect((await rpc(service, 'tools/list', {}, { ...guest, ...session })).status).toBe(200);
  });

  it('sends a subscription nothing of what the new policy hides', async () => {
    const client = new ClassicClient({ name: 'watching', version: '1' });
    const notified: string[] = [];
    client.setNotificationHandler(
      ResourceUpdatedNotificationSchema,
      ({ params }) => void notified.push(params.uri),
    );
    await client.connect(
      new ClassicTransport(new URL(service.url), { requestInit: { headers: reader } }) as never,
    );
    const write = async (className: string) => {
      const fields = className === 'Post' ? { title: 'x' } : { text: 'x' };
      await callTool(service, 'create_object', { class_name: className, fields }, key('writer'));
    };
    await client.subscribeResource({ uri: POSTS });
    await client.subscribeResource({ uri: 'parse://Note/count' });
    await vi.waitFor(async () => {
      await write('Post');
      expect(notified).toContain(POSTS);
    }, SOON);
    await served({ hidden: true });
    notified.length = 0;
    await vi.waitFor(async () => {
      await write('Post');
      await write('Note');
      expect(notified.filter((uri) => uri !== POSTS).length).toBeGreaterThan(2);
    }, SOON);
    expect(notified).not.toContain(POSTS);
    await served();
    await client.close();
  });

  it('keeps its keys out of the log, and those of a file that is refused', async () => {
    const later = 'key-of-a-later-file';
    const withKey = (apiKey: string) => ({ auth: [...configOf().auth, { apiKey, agent: 'reader' }] });
    const ask = (name: string) =>
      callTool(service, 'count_objects', { class_name: 'Post' }, { ...key(name), 'X-Request-Id': later });
    await served({ more: withKey(later) });
    const before = linesAbout('[redacted]');
    expect((await ask(later)).isError).toBe(false);
    await vi.waitFor(() => expect(linesAbout('[redacted]')).toBe(before + 1), SOON);
    const files: [key: string, write: (apiKey: string) => void][] = [
      [
        'a-restart',
        (apiKey) =>
          service.reconfigure(configOf({ more: { ...withKey(apiKey), approvals: { expiry: 17 } } })),
      ],
      [
        'an-error',
        (apiKey) => service.reconfigure(configOf({ more: { ...withKey(apiKey), unknownSection: true } })),
      ],
      ['a-list', (apiKey) => writeFileSync(service.file, JSON.stringify([withKey(apiKey)]))],
      ['no-yaml', (apiKey) => writeFileSync(service.file, `${JSON.stringify(withKey(apiKey))} [`)],
    ];
    for (const [index, [reason, write]] of files.entries()) {
      const wrong = `key-of-a-file-refused-for-${reason}`;
      await refused(() => write(wrong));
      await callTool(service, 'count_objects', { class_name: 'Post' }, { ...reader, 'X-Request-Id': wrong });
      await vi.waitFor(
        () => expect([reason, linesAbout('[redacted]')]).toEqual([reason, before + 2 + index]),
        SOON,
      );
    }
    expect(log()).not.toMatch(/key-of-a/);
    await served();
  });

  it('is read at once when the process gets a SIGHUP', async () => {
    const before = linesAbout('configuration is refused');
    await refused(() => writeFileSync(service.file, 'agents: ['));
    service.signal('SIGHUP');
    await vi.waitFor(() => expect(linesAbout('configuration is refused')).toBe(before + 2), SOON);
    await served({ fields: ['title'] });
    expect(await fieldsSeen()).not.toContain('draft');
  });
});

it('a configuration that changes during the start is read again after a SIGHUP, once the service listens', async () => {
  const folder = makeFolder('start');
  const file = join(folder, 'starts');
  const more = {
    reload: { watch: false },
    plugins: [fileURLToPath(new URL('../../fixtures/plugins/starting-slowly.mjs', import.meta.url))],
  };
  const first = service;
  service = await startService({
    config: configOf({ more }),
    env: { STARTS_AFTER: file },
    starting: async (starting) => {
      await vi.waitFor(() => expect(existsSync(`${file}.begun`)).toBe(true), SOON);
      starting.reconfigure(configOf({ more, fields: ['title'] }));
      starting.signal('SIGHUP');
      writeFileSync(file, '');
    },
  });
  try {
    await vi.waitFor(async () => expect(await fieldsSeen()).not.toContain('draft'), SOON);
  } finally {
    await service.stop();
    service = first;
  }
});

const INITIALIZE = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'raw', version: '1' },
};

describe('audit records of the configuration', () => {
  it('tell each one that was served or refused, how it came, what changed and which policy is in force', async () => {
    const folder = makeFolder('reload');
    const path = join(folder, 'audit.jsonl');
    const more = { audit: { sinks: [{ kind: 'file', path }] } };
    const own = await startService({ config: configOf({ more }) });
    const records = () =>
      readFileSync(path, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter(({ type }) => type === 'configuration');
    try {
      await vi.waitFor(() => expect(records()).toHaveLength(1), SOON);
      own.reconfigure(configOf({ fields: ['title'], more }));
      await vi.waitFor(() => expect(records()).toHaveLength(2), SOON);
      own.reconfigure(configOf({ fields: ['title'], more: { ...more, server: { maxBodySize: 1000 } } }));
      await vi.waitFor(() => expect(records()).toHaveLength(3), SOON);
      const [started, changed, refusedOne] = records();
      expect(started).toMatchObject({ by: 'start', success: true, configuration_version: 1 });
      expect(started?.['policy']).toMatchObject({ unlistedClasses: 'allow' });
      expect(changed).toMatchObject({
        by: 'file',
        success: true,
        configuration_version: 2,
        previous_policy_version: started?.['policy_version'],
        changed: ['policy.classes.Post.fields'],
        policy: { classes: { Post: { fields: ['title'] } } },
      });
      expect(changed?.['file_digest']).toMatch(/^[0-9a-f]{64}$/);
      expect(changed?.['file_digest']).not.toBe(started?.['file_digest']);
      expect(refusedOne).toMatchObject({
        success: false,
        configuration_version: 2,
        policy_version: changed?.['policy_version'],
        issues: [expect.stringMatching(/:\d+:\d+ server\.maxBodySize: has changed, which needs a restart$/)],
      });
    } finally {
      await own.stop();
    }
  });
});
