import { describe, expect, it } from 'vitest';
import { compileAgentDefinition, MASTER, sessionIdentity } from '#core';
import { compilePolicy, type PolicyConfig } from '#policy';
import type { AgentIdentity } from '#auth';
import type { AuthRuleConfig } from './sections/auth.js';
import { logSecurityWarnings } from './security-warnings.js';

type Said = Parameters<typeof logSecurityWarnings>[2];

function warningsOf(
  identities: Readonly<Record<string, AgentIdentity>>,
  policy: PolicyConfig = {},
  said: Said = new Set(),
  permissions: 'readonly' | 'write' = 'readonly',
  ungoverned: readonly string[] = [],
  auth: readonly AuthRuleConfig[] = [],
): string[] {
  const lines: string[] = [];
  const names = Object.keys(identities);
  logSecurityWarnings(
    {
      config: { ungoverned, auth },
      agents: new Map(names.map((name) => [name, compileAgentDefinition(name, { permissions })])),
      identities: new Map(Object.entries(identities)),
      policy: compilePolicy(policy).policy,
    },
    { warn: (line: unknown) => lines.push(String(line)) },
    said,
  );
  return lines;
}

describe('a start warns', () => {
  it('of keys that ended and of those that end within 14 days, by their names', () => {
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
    const keys = { gone: -1, soon: 13, later: 15 };
    const auth = Object.entries(keys).map(([name, days]) => ({
      apiKey: `secret-of-${name}`,
      agent: 'analyst',
      name,
      expires: inDays(days),
    }));
    const [line, ...others] = warningsOf(
      {},
      {},
      new Set(),
      'readonly',
      [],
      [...auth, { apiKey: 'secret', agent: 'b' }],
    );
    expect(line).toMatch(
      /the key gone of 'analyst' expired at .*: its callers are refused, the key soon of 'analyst' expires at /,
    );
    expect(line).not.toMatch(/later|secret/);
    expect(others).toEqual([]);
  });

  it('of code that goes past the policy, by the names that were permitted', () => {
    expect(warningsOf({}, {}, new Set(), 'readonly', ['nightly', 'import'])).toEqual([
      expect.stringMatching(/past the policy.*nightly, import/),
    ]);
  });

  it('of agents without an identity in one line, and of them alone', () => {
    const [line, ...others] = warningsOf({
      operator: MASTER,
      user: { kind: 'aclUser', userId: 'u' },
      role: { kind: 'aclRole', role: 'r' },
      caller: 'callerSession',
      unresolved: sessionIdentity('r:nobody'),
      ordered: { kind: 'impersonate', userId: 'u', mint: false },
    });
    expect(line).toMatch(/^\[SECURITY\] agents\.operator: .*\(operator\)/);
    expect(others).toEqual([]);
  });

  it('not where every class is a plain one, whose rows have no rights of their own', () => {
    const plain = { storage: 'plain' } as const;
    const master = (policy: PolicyConfig) =>
      warningsOf({ a: MASTER }, policy).filter((line) => line.includes('master posture'));
    expect(master({ classes: { Order: plain } })).toEqual([]);
    expect(master({ unlistedClasses: 'allow', classes: { Order: plain } })).toHaveLength(1);
    expect(master({ classes: { Order: plain, Post: {} } })).toHaveLength(1);
    expect(master({})).toHaveLength(1);
  });

  it('once per process, whatever is started later', () => {
    const said: Said = new Set();
    expect(warningsOf({ a: MASTER }, {}, said)).toHaveLength(1);
    expect(warningsOf({ b: MASTER }, {}, said)).toEqual([]);
  });

  it('not when the switch silences it, which spends nothing', () => {
    const said: Said = new Set();
    expect(warningsOf({ a: MASTER }, { suppressMasterKeyWarning: true }, said)).toEqual([]);
    expect(warningsOf({ a: MASTER }, {}, said)).toHaveLength(1);
  });

  it('of agents that write unasked, the switch notwithstanding', () => {
    const quiet = { suppressMasterKeyWarning: true };
    expect(warningsOf({ a: MASTER }, quiet, new Set(), 'write')).toEqual([
      expect.stringContaining('requireApprovalFor'),
    ]);
    expect(
      warningsOf({ a: MASTER }, { ...quiet, requireApprovalFor: ['write'] }, new Set(), 'write'),
    ).toEqual([]);
  });

  it('of classes that were exposed without a tenant, where others have one', () => {
    const scoped = { tenantScope: { field: 'orgId' } };
    const exposed = { Open: { visible: true }, Post: { visible: true, ...scoped }, Plain: {} };
    expect(warningsOf({ a: 'callerSession' }, { classes: exposed })).toEqual([
      expect.stringMatching(/^\[SECURITY\] policy\.classes\.Open: every tenant .*: Open$/),
    ]);
    const alone = { Open: { visible: true } };
    expect(warningsOf({ a: 'callerSession' }, { classes: alone })).toEqual([]);
  });

  it('of classes of the server that were opened, and not of those left hidden', () => {
    const classes = { Session: { hidden: false }, _Product: {}, Post: { hidden: false } };
    expect(warningsOf({ a: 'callerSession' }, { classes })).toEqual([expect.stringMatching(/: _Session$/)]);
  });
});
