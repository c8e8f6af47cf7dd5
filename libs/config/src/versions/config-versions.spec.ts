import { describe, expect, it } from 'vitest';
import {
  Agent,
  type AgentDefinitionOptions,
  compileAgentDefinition,
  deriveAgent,
  MASTER,
  ProcessRateLimiters,
  sessionIdentity,
} from '#core';
import { compilePolicy, Policies } from '#policy';
import type { AgentConfig } from '../sections/agents.js';
import type { AuthRuleConfig } from '../sections/auth.js';
import type { ParleyConfig } from '../config.js';
import { loadConfig, readConfig } from '../load-config.js';
import { ConfigVersions, mustReturn, type VersionChange } from './config-versions.js';
import { listNeedingRestart } from './reloader.js';

const DEFAULTS = loadConfig({}, '/nowhere');

interface Given {
  readonly agents?: Record<string, AgentConfig>;
  readonly auth?: readonly AuthRuleConfig[];
  readonly hidden?: boolean;
}

/** A configuration without a file, compiled as one with it would be. */
function loaded({ agents = { reader: {}, writer: {} }, auth, hidden = false }: Given = {}) {
  const policy = { classes: { Post: { hidden } } };
  const config: ParleyConfig = {
    ...DEFAULTS.config,
    agents,
    policy,
    auth: auth ?? [{ apiKey: 'r', agent: 'reader' }],
  };
  return {
    config,
    policy: compilePolicy(policy).policy,
    agents: new Map(
      Object.entries(agents).map(([name, { tenantId, ...options }]) => [
        name,
        compileAgentDefinition(name, {
          ...options,
          tenantId: typeof tenantId === 'object' ? null : (tenantId ?? null),
        }),
      ]),
    ),
    identities: new Map(),
  };
}

function succession(before: Given, now: Given): VersionChange & { readonly versions: ConfigVersions } {
  const versions = new ConfigVersions(loaded(before), new ProcessRateLimiters());
  const first = versions.current;
  return { versions, before: first, now: versions.adopt(loaded(now)) };
}
const agentOf = ({ agents }: { agents: ReadonlyMap<string, Agent['definition']> }, name: string) =>
  new Agent({ definition: agents.get(name) as Agent['definition'], principal: 'p' });

describe('the policy of an agent', () => {
  it('is that of its own version, and for a sub-agent that of the agent at its root', () => {
    const { versions, before, now } = succession({}, { hidden: true });
    const [old, recent] = [agentOf(before, 'reader'), agentOf(now, 'reader')];
    expect(versions.policies.of(old)).toBe(before.policy);
    expect(versions.policies.of(deriveAgent(deriveAgent(old)))).toBe(before.policy);
    expect(versions.policies.of(recent)).toBe(now.policy);
    expect(versions.policies.current).toBe(now.policy);
  });

  it('is the one that an agent of no configuration met first', () => {
    const [one, two] = [loaded().policy, loaded({ hidden: true }).policy];
    const policies = new Policies(one);
    const definition = compileAgentDefinition('made by code');
    const early = new Agent({ definition, principal: 'p' });
    expect(policies.of(early)).toBe(one);
    policies.adopt(two, []);
    expect(policies.of(early)).toBe(one);
    expect(policies.of(new Agent({ definition, principal: 'p' }))).toBe(two);
  });
});

describe('limits of an agent', () => {
  it('go on counting when the configuration is reloaded', async () => {
    const agents = { reader: { rateLimit: 1, rateWindow: 3600 } };
    const { before, now } = succession({ agents }, { agents, hidden: true });
    expect(await agentOf(before, 'reader').definition.rateLimiter.check('p')).toBeNull();
    expect(await agentOf(now, 'reader').definition.rateLimiter.check('p')).not.toBeNull();
  });
});

describe('an agent that outlives a call', () => {
  it('is judged under what its name stands for now, with the identity it came with', () => {
    const { versions, before, now } = succession({}, { agents: { reader: { tools: { only: [] } } } });
    const identity = sessionIdentity('r:ada');
    const definition = before.agents.get('reader') as Agent['definition'];
    const renewed = versions.asNow(new Agent({ definition, identity, principal: 'ada' }));
    expect(renewed).toMatchObject({ identity, principal: 'ada' });
    expect(renewed?.definition).toBe(now.agents.get('reader'));
  });

  it('is nobody once its name is gone, even when another agent has its options', () => {
    const { versions, before } = succession({}, { agents: { other: {} }, auth: [] });
    expect(versions.asNow(agentOf(before, 'reader'))).toBeNull();
  });

  it('is itself while its version is served', () => {
    const { versions, now } = succession({}, { hidden: true });
    const agent = new Agent({
      definition: agentOf(now, 'reader').definition,
      identity: MASTER,
      principal: 'p',
    });
    expect(versions.asNow(agent)).toBe(agent);
  });
});

describe('an agent that waited for a person', () => {
  const reader: AgentConfig = { permissions: 'write' };
  const given: Given = { agents: { reader, writer: {} } };

  it.each<[string, boolean, Given]>([
    ['is as it was while only other agents changed', true, { agents: { reader, writer: { rateLimit: 1 } } }],
    ['is another one when the policy changed', false, { ...given, hidden: true }],
    ['is another one when its declaration changed', false, { agents: { reader: {}, writer: {} } }],
    ['is gone with its declaration', false, { agents: { writer: {} } }],
    ['has to come back when the rules of authentication changed', false, { ...given, auth: [] }],
  ])('%s, and so are its sub-agents', (_, isCurrent, now) => {
    const { versions, before } = succession(given, now);
    const agent = agentOf(before, 'reader');
    expect(versions.isCurrent(agent)).toBe(isCurrent);
    expect(versions.isCurrent(deriveAgent(deriveAgent(agent)))).toBe(isCurrent);
    expect(versions.isCurrent(agentOf(versions.current, 'writer'))).toBe(true);
  });

  it('is as it was when the configuration is what it was', () => {
    const { versions, before } = succession(given, { ...given, hidden: true });
    versions.adopt(loaded(given));
    expect(versions.isCurrent(agentOf(before, 'reader'))).toBe(true);
  });

  it.each<[string, boolean, Given]>([
    ['while the configuration is the same', true, given],
    ['while only other agents changed', true, { agents: { ...given.agents, writer: { rateLimit: 1 } } }],
    [
      'while its limits alone changed',
      true,
      { agents: { ...given.agents, reader: { ...given.agents?.reader, rateLimit: 1 } } },
    ],
    ['not when the policy changed', false, { ...given, hidden: true }],
    ['not when its options changed', false, { agents: { reader: { tenantId: 'other' }, writer: {} } }],
  ])('has the same digest of its rights in another process, %s', (_, isSame, now) => {
    const rightsIn = (configuration: Given) => {
      const versions = new ConfigVersions(loaded(configuration), new ProcessRateLimiters());
      return versions.digestRights(agentOf(versions.current, 'reader'));
    };
    expect(rightsIn(now) === rightsIn(given)).toBe(isSame);
  });

  it('has another digest with each limit of its rights, and with each filter that code gives it', () => {
    const versions = new ConfigVersions(loaded(given), new ProcessRateLimiters());
    const options: readonly AgentDefinitionOptions[] = [
      {},
      { permissions: 'write' },
      { tenantId: 'acme' },
      { tools: ['query_class'] },
      { tools: { except: ['query_class'] } },
      { methods: ['Post.publish'] },
      { classes: { only: ['Post'] } },
      { filters: { Post: { hidden: false } } },
      { filters: { Post: { hidden: { $ne: true } } } },
      { filters: { Post: { title: { $regex: /a/ } } } },
      { filters: { Post: { title: { $regex: /b/ } } } },
      { filters: { Post: ({ principal }) => ({ owner: principal }) } },
      { filters: { Post: ({ principal }) => ({ author: principal }) } },
      { allowMutations: false },
      { writes: 'proposed' },
      { clientMode: true },
      { masterAtlas: true },
    ];
    const digests = options.map((each) => {
      const definition = compileAgentDefinition('made by code', each);
      return versions.digestRights(new Agent({ definition, principal: 'p' }));
    });
    expect(new Set(digests).size).toBe(options.length);
  });

  it('is another one when the policy changed, for an agent of no configuration too', () => {
    const versions = new ConfigVersions(loaded(given), new ProcessRateLimiters());
    const agent = new Agent({ definition: compileAgentDefinition('made by code'), principal: 'p' });
    versions.policies.of(agent);
    versions.adopt(loaded({ agents: { writer: {} } }));
    expect(versions.isCurrent(agent)).toBe(true);
    versions.adopt(loaded({ ...given, hidden: true }));
    expect(versions.isCurrent(agent)).toBe(false);
  });
});

describe('whose streams end', () => {
  it.each<[string, Given, string[]]>([
    ['nobody’s, when the policy alone changed', { hidden: true }, []],
    ['those of an agent that changed', { agents: { reader: { tenantId: 'acme' }, writer: {} } }, ['reader']],
    ['those of an agent that is gone', { agents: { reader: {} } }, ['writer']],
    [
      'everybody’s, when callers are recognised by other rules',
      { auth: [{ apiKey: 'other', agent: 'reader' }] },
      ['reader', 'writer'],
    ],
  ])('%s', (_, now, ended) => {
    const both = succession({}, now);
    const returning = mustReturn(both);
    expect(['reader', 'writer'].filter((name) => returning(agentOf(both.before, name)))).toEqual(ended);
  });
});

describe('what needs a restart', () => {
  const running = loaded().config;

  it('is nothing of policy, agents and auth rules', () => {
    const read = loaded({ agents: { one: {} }, auth: [{ apiKey: 'x', agent: 'one' }], hidden: true }).config;
    expect(listNeedingRestart(running, read)).toEqual([]);
  });

  it('is the first database, by its name in the file, and no other', () => {
    const crm = { uri: 'mongodb://localhost/crm', storage: 'plain' } as const;
    const named = (databases: object, shop: object = {}) =>
      readConfig({ databases: { shop: { uri: 'mongodb://localhost/shop', ...shop }, ...databases } }).config;
    const paths = (read: ParleyConfig) => listNeedingRestart(named({ crm }), read).map(({ path }) => path);
    expect(paths(named({ crm }, { readOnly: true }))).toEqual(['databases.shop']);
    expect(paths(named({ crm: { ...crm, readOnly: true } }))).toEqual([]);
    expect(paths(named({}))).toEqual([]);
    expect(paths(named({ crm }))).toEqual([]);
  });

  it('is whether there is a console, and not who its operators are', () => {
    const open = (operators: string[] | null): ParleyConfig => ({
      ...running,
      console: { ...running.console, operators },
    });
    expect(listNeedingRestart(open(['one', 'two']), open(['one']))).toEqual([]);
    for (const [before, after] of [
      [null, ['one']],
      [['one'], null],
    ])
      expect(listNeedingRestart(open(before ?? null), open(after ?? null))).toMatchObject([
        { path: 'console.operators', message: 'has changed, which needs a restart' },
      ]);
  });

  it('is every other option, by its path and without its value', () => {
    const {
      policy: _,
      agents: __,
      auth: ___,
      databaseName: ____,
      furtherDatabases: _____,
      ...others
    } = running;
    for (const section of Object.keys(others) as (keyof typeof others)[]) {
      const read = { ...running, [section]: { secret: 'S3CRET' } } as unknown as ParleyConfig;
      const issues = listNeedingRestart(running, read);
      expect(issues.map(({ path }) => path.split('.')[0])).toContain(section);
      expect(JSON.stringify(issues)).not.toContain('S3CRET');
    }
  });

  it('is whether anybody is admitted without credentials, either way', () => {
    const open = loaded({ auth: [{ anonymous: true, agent: 'reader' }] }).config;
    const closed = loaded().config;
    for (const [before, after] of [
      [open, closed],
      [closed, open],
    ] as const)
      expect(listNeedingRestart(before, after)).toMatchObject([{ path: 'auth' }]);
  });
});
