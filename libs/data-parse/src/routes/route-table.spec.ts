import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, deriveAgent, type Identity, MASTER, sessionIdentity } from '#core';
import { findAuthMode, chooseRoute, pipelineOperation, ROUTE_TABLE, routesFor } from './route-table.js';

const MODES = ['master', 'session', 'assumed', 'client'] as const;
const OPERATIONS = Object.keys(ROUTE_TABLE) as (keyof typeof ROUTE_TABLE)[];

const agent = (identity: Identity, clientMode = false) =>
  new Agent({ definition: compileAgentDefinition('a', { clientMode }), identity, principal: 'p' });
const CALLERS = {
  master: agent(MASTER),
  session: agent(sessionIdentity('r:x')),
  assumed: agent({ kind: 'aclUser', userId: 'u' }),
  client: agent(sessionIdentity('r:x'), true),
};
const HOOKED = 'Patient';
const routeOf = (operation: (typeof OPERATIONS)[number], caller: Agent, hooked?: string) =>
  chooseRoute({
    operation,
    agent: caller,
    isOpen: () => true,
    listHookedClasses: () => (hooked === undefined ? [] : [hooked]),
  });

describe('the route table', () => {
  it.each([
    ['the master key', agent(MASTER), 'master'],
    ['a session', agent(sessionIdentity('r:x')), 'session'],
    ['an assumed user', agent({ kind: 'aclUser', userId: 'u' }), 'assumed'],
    ['an assumed role', agent({ kind: 'aclRole', role: 'r' }), 'assumed'],
    ['a session without a master key', agent(sessionIdentity('r:x'), true), 'client'],
  ] as const)('knows the mode of %s', (_title, caller, mode) => {
    expect(findAuthMode(caller)).toBe(mode);
  });

  it('never sends an assumed user or role to Parse Server on its own behalf', () => {
    for (const operation of OPERATIONS) {
      if (operation === 'operator' || operation === 'schemas') continue;
      expect(routesFor(operation, CALLERS.assumed)).not.toContain('rest');
    }
  });

  it('never writes past Parse Server', () => {
    for (const mode of MODES) {
      expect(routesFor('row_writes', CALLERS[mode])).not.toContain('direct');
      expect(routesFor('class_writes', CALLERS[mode])).not.toContain('direct');
    }
  });

  it('runs no pipeline of a session where nobody would apply its rights', () => {
    for (const mode of ['session', 'assumed', 'client'] as const) {
      for (const operation of ['pipelines', 'groupings', 'searches'] as const)
        expect(routesFor(operation, CALLERS[mode])).not.toContain('rest');
    }
  });

  it.each(['rows', 'pipelines', 'groupings', 'searches', 'plans'] as const)(
    'sends no session past Cloud Code that may decide what it reads: %s',
    (operation) => {
      for (const mode of ['session', 'client'] as const) {
        expect(routesFor(operation, CALLERS[mode])).not.toContain('direct');
        if (routesFor(operation, CALLERS[mode])[0] === 'direct without read hooks') {
          expect(() => routeOf(operation, CALLERS[mode], HOOKED)).toThrow(
            `classes.${HOOKED}.readHooks: none`,
          );
          expect(routeOf(operation, CALLERS[mode])).toBe('direct');
        }
      }
    },
  );

  it('keeps a sub-agent of a session, whoever it acts as, where Cloud Code binds the session', () => {
    const child = (parent: Agent, identity: Identity) => deriveAgent(parent, { identity });
    const asUser = { kind: 'aclUser', userId: 'u' } as const;
    const below = child(child(CALLERS.session, asUser), { kind: 'aclRole', role: 'r' });
    expect(() => routeOf('rows', below, HOOKED)).toThrow(`classes.${HOOKED}.readHooks: none`);
    expect(routeOf('rows', below)).toBe('direct');
    expect(routeOf('rows', child(CALLERS.master, asUser), HOOKED)).toBe('direct');
    expect(routeOf('operator', below, HOOKED)).toBe('direct');
  });

  it('takes a tool it does not know for one that runs pipelines of its own', () => {
    expect(pipelineOperation('overdue_invoices')).toBe('pipelines');
    expect(pipelineOperation('group_by')).toBe('groupings');
  });

  it('is the one in the documentation', () => {
    const cell = (routes: readonly string[]) => (routes.length === 0 ? 'refused' : routes.join(', else '));
    const page = readFileSync(new URL('../../../../docs/reference/routes.md', import.meta.url), 'utf8');
    const documented = page
      .split('\n')
      .filter((line) => line.startsWith('| '))
      .map((line) => line.split('|').map((text) => text.trim()))
      .map((cells) => cells.slice(1, 6).join(' | '));
    for (const operation of OPERATIONS) {
      const { serves, routes } = ROUTE_TABLE[operation];
      expect(documented).toContain([serves, ...MODES.map((mode) => cell(routes[mode]))].join(' | '));
    }
  });
});
