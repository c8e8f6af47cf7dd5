import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { type DatabaseView, viewDatabase } from '../../support/database-dump.js';
import {
  callTool,
  type Database,
  listLogged,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const SOON = { timeout: 30_000, interval: 25 };
const free = { rateLimit: 1_000_000 };
const writing = { ...free, permissions: 'write', tenantId: 'acme' };
const AGENTS = {
  writer: writing,
  proposer: { ...writing, writes: 'proposed' },
  chief: { ...free, permissions: 'admin', tenantId: 'acme' },
};
type AgentName = keyof typeof AGENTS;
const as = (agent: AgentName) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const { Post, ...others } = POSTS_POLICY.classes;

interface Changed {
  readonly agents?: object;
  readonly callers?: readonly string[];
  readonly post?: object;
}

const configOf = (mode: 'desk' | 'client', { agents, callers, post }: Changed = {}) => ({
  database: { uri: database.uri, name: 'parley' },
  server: { stateKey: 'a key of thirty-two characters, or more' },
  reload: { interval: 0.1 },
  approvals: { mode, approvers: ['chief'], expiry: 60 },
  agents: { ...AGENTS, ...agents },
  auth: (callers ?? Object.keys(AGENTS)).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
  policy: {
    ...POSTS_POLICY,
    classes: { ...others, Post: post ?? Post },
    requireApprovalFor: ['write', 'admin'],
  },
});

/** What an operator takes from both agents while a person is asked. */
const TAKEN: readonly (readonly [string, Changed])[] = [
  [
    'may only read by now',
    {
      agents: {
        writer: { ...free, tenantId: 'acme', allowMutations: false },
        proposer: { ...free, tenantId: 'acme' },
      },
    },
  ],
  [
    'belongs to another tenant by now',
    { agents: { writer: { ...writing, tenantId: 'globex' }, proposer: { ...writing, tenantId: 'globex' } } },
  ],
  ['may not see the column any more', { post: { ...Post, fields: ['status', 'likes'] } }],
  [
    'may not see the class any more',
    {
      agents: {
        writer: { ...writing, classes: { only: ['Author'] } },
        proposer: { ...writing, writes: 'proposed', classes: { only: ['Author'] } },
      },
    },
  ],
  ['has no key any more', { callers: ['chief'] }],
];

let database: Database;
let view: DatabaseView;
let desk: Service;
let atClient: Service;

beforeAll(async () => {
  database = await startDatabase(POSTS_SEED);
  view = viewDatabase(database.uri);
  const env = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' };
  [desk, atClient] = await Promise.all([
    startService({ config: configOf('desk'), env }),
    startService({ config: configOf('client'), env }),
  ]);
}, 90_000);

const served = new Map<Service, Changed | undefined>();

/** Puts a configuration in place, unless it is there, and waits until it counts. */
async function serve(service: Service, changed?: Changed): Promise<void> {
  if (served.get(service) === changed) return;
  served.set(service, changed);
  const versions = () => service.output().stderr.split('is served, policy version').length;
  const before = versions();
  service.reconfigure(configOf(service === desk ? 'desk' : 'client', changed));
  await vi.waitFor(() => expect(versions()).toBeGreaterThan(before), SOON);
}

const posts = () => view.client.db('parley').collection<{ _id: string; title: string }>('Post');
const titleOf = async (id: string) => (await posts().findOne({ _id: id }))?.title;
const change = (title: string) => ({ class_name: 'Post', object_id: 'p01', fields: { title } });

async function ask(path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${desk.origin}/approvals${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { ...as('chief'), 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Record<string, unknown>;
}

/** The case that waits, as soon as it does. */
const waiting = () =>
  vi.waitFor(async () => {
    const [first] = (await ask(''))['approvals'] as { readonly id: string }[];
    if (!first) throw new Error('no case is open yet');
    return first.id;
  }, SOON);

/** @returns what the approver sees of its decision */
async function approve(id: string): Promise<Record<string, unknown>> {
  const { digest } = await ask(`/${id}`);
  return ask(`/${id}`, { decision: 'approve', digest });
}

const LAPSED = {
  isError: true,
  code: 'approval_denied',
  text: expect.stringContaining(
    'approval no longer applies: the policy, or what this agent may do, has changed',
  ),
};

describe('what waited for an approval while the configuration changed', () => {
  let before: string | undefined;
  beforeAll(async () => {
    before = await titleOf('p01');
  });
  afterEach(async () => {
    await serve(desk);
    if ((await titleOf('p01')) !== before) throw new Error('the row was changed');
  });

  it.each(TAKEN)('is a call that does nothing, when its agent %s', async (_, changed) => {
    const call = callTool(desk, 'update_object', change(`Not ${_}`), as('writer'));
    const id = await waiting();
    await serve(desk, changed);
    await approve(id);
    expect(await call).toMatchObject(LAPSED);
  });

  it.each(TAKEN)('is a change set that is not applied, when its agent %s', async (_, changed) => {
    const proposed = await callTool(desk, 'update_object', change(`Not ${_}`), as('proposer'));
    expect(proposed.data).toMatchObject({ proposed: true });
    const about = { title: 'Rename', reason: _ };
    const call = callTool(desk, 'submit_changes', about, as('proposer'));
    const id = await waiting();
    await serve(desk, changed);
    await approve(id);
    expect(await call).toMatchObject(LAPSED);
    await serve(desk);
    const set = { change_set: proposed.data['change_set'] };
    expect((await callTool(desk, 'discard_changes', set, as('proposer'))).isError).toBe(false);
  });

  it.each(TAKEN)('is a question at the client, when its agent %s', async (_, changed) => {
    const client = new Client({ name: 'asked', version: '1' }, { capabilities: { elicitation: {} } });
    client.setRequestHandler(ElicitRequestSchema, async () => {
      await serve(atClient, changed);
      return { action: 'accept', content: { approve: true } };
    });
    try {
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${atClient.origin}/mcp`), {
          requestInit: { headers: as('writer') },
        }),
      );
      const asked = { name: 'update_object', arguments: change(`Not ${_}`) };
      const answer = client.callTool(asked, undefined, { timeout: SOON.timeout / 2 });
      // With its key, or as one of another tenant, the client has lost its session: nothing runs, and nobody is there to be told.
      await (/key|tenant/.test(_) ? answer.catch(() => undefined) : answer.then(expectLapsed));
      // Its record says what became of it: no approval counted.
      expect(listLogged(atClient, 'approval').filter(({ outcome }) => outcome === 'approve')).toEqual([]);
    } finally {
      await client.close();
      await serve(atClient);
    }
  });
});

function expectLapsed(answer: object): void {
  expect(answer).toMatchObject({ isError: true, content: [{ text: LAPSED.text }] });
}

it('runs after an approval while only other agents changed', async () => {
  const call = callTool(desk, 'update_object', change('Approved'), as('writer'));
  const id = await waiting();
  await serve(desk, { agents: { chief: { ...AGENTS.chief, rateLimit: 999_999 } } });
  await approve(id);
  expect((await call).isError).toBe(false);
  expect(await titleOf('p01')).toBe('Approved');
});
