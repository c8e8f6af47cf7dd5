import { describe, expect, it } from 'vitest';
import { compileAgentDefinition, refusals } from '#core';
import { judgeCase, type PolicyCase, readPolicyCases, createSimulatedFor } from './policy-case.js';
import { type SimulatedCall, createSimulatedAgent } from './simulation.js';

const ENTRY = {
  agent: 'a',
  tool: 'query_class',
  arguments: { class_name: 'User' },
  expect: { allowed: true },
};

function read(more: object): PolicyCase {
  const { cases, errors } = readPolicyCases([{ ...ENTRY, ...more }]);
  expect(errors).toEqual([]);
  return cases[0] as PolicyCase;
}

const ALLOWED: SimulatedCall = {
  agent: 'a',
  tool: 'query_class',
  allowed: true,
  asksApproval: false,
  passed: [],
  injected: [
    { className: '_User', origin: 'tenant', where: { orgId: 'acme' } },
    { className: '_User', origin: 'agent filter', where: { $and: [{ a: 1 }, { b: { $ne: 2 } }] } },
    { className: 'Post', origin: 'tenant', where: { shop: 'acme' } },
  ],
  masked: [{ className: '_User', field: 'email', mask: 'hash' }],
  commands: [],
};
const REFUSED: SimulatedCall = {
  ...ALLOWED,
  allowed: false,
  refusal: refusals.fieldDenied('where', 'ssn', 'ssn', ['name']),
};

describe('the caller of a case', () => {
  const agent = createSimulatedAgent(compileAgentDefinition('a', { tenantId: 'acme' }));

  it('has the user, the tenant and the claims of the case, and else those of the agent', () => {
    const caller = { user: 'ada', tenant: 'globex', claims: { region: 'eu' } };
    expect(createSimulatedFor(agent, read({ caller }).caller)).toMatchObject({
      user: 'ada',
      tenantId: 'globex',
      claims: { region: 'eu' },
    });
    expect(createSimulatedFor(agent, read({}).caller)).toMatchObject({
      user: null,
      tenantId: 'acme',
      claims: {},
    });
  });

  it.each([[{ user: 7 }], [{ tenant: {} }], [{ claims: 'x' }], [{ role: 'x' }], ['ada']])(
    'is not %j',
    (caller) => {
      expect(readPolicyCases([{ ...ENTRY, caller }]).errors).toEqual([
        expect.stringContaining('caller holds'),
      ]);
    },
  );
});

describe('a policy case', () => {
  it.each<[string, object]>([
    ['allowed', {}],
    ['allowed, with a predicate in it', { injected: { orgId: 'acme' } }],
    ['allowed, with a predicate inside $and', { injected: { b: { $ne: 2 } } }],
    ['allowed, with a field masked and another one not', { masked: { email: 'hash', username: 'none' } }],
    ['allowed, with a predicate in another class', { injectedInto: { Post: { shop: 'acme' } } }],
  ])('holds for a call that is %s', (_, more) => {
    expect(judgeCase(read(more), ALLOWED)).toEqual([]);
  });

  it.each<[string, object]>([
    ['was to be refused', { expect: { refused: 'access_denied' } }],
    ['masks by another form', { masked: { email: 'drop' } }],
    ['does not mask at all', { masked: { phone: 'mask' } }],
    ['carries another value', { injected: { orgId: 'globex' } }],
    ['carries the predicate in another class alone', { injected: { shop: 'acme' } }],
    ['carries the predicate nowhere', { injectedInto: { Post: { hidden: false } } }],
  ])('fails for an allowed call that %s', (_, more) => {
    expect(judgeCase(read(more), ALLOWED)).toHaveLength(1);
  });

  it('compares code, gate, kind and field of a refusal, as far as it names them', () => {
    const whole = { refused: 'access_denied', gate: 'fields', kind: 'field_denied', field: 'ssn' };
    expect(judgeCase(read({ expect: whole }), REFUSED)).toEqual([]);
    expect(judgeCase(read({ expect: { refused: 'access_denied' } }), REFUSED)).toEqual([]);
    const others = { refused: 'tool_filtered', gate: 'class', kind: 'hidden_class', field: 'bio' };
    for (const [key, value] of Object.entries(others)) {
      expect(judgeCase(read({ expect: { ...whole, [key]: value } }), REFUSED)).toHaveLength(1);
    }
    expect(judgeCase(read({}), REFUSED)).toHaveLength(1);
  });

  it.each<[string, unknown, RegExp]>([
    ['no list', {}, /is a list/],
    ['no cases', [], /at least one/],
    ['a misspelt key', [{ ...ENTRY, expects: {} }], /unknown key 'expects'/],
    ['no expectation', [{ ...ENTRY, expect: undefined }], /expect must be/],
    ['an expectation that cannot fail', [{ ...ENTRY, expect: {} }], /expect\.refused/],
    ['an unknown code', [{ ...ENTRY, expect: { refused: 'denied' } }], /expect\.refused must be one of/],
    ['an unknown kind', [{ ...ENTRY, expect: { refused: 'access_denied', kind: 'x' } }], /expect\.kind/],
    ['allowed and refused', [{ ...ENTRY, expect: { allowed: true, refused: 'timeout' } }], /stands alone/],
    ['allowed: false', [{ ...ENTRY, expect: { allowed: false } }], /can only be true/],
    ['a predicate without a class', [{ ...ENTRY, arguments: {}, injected: { a: 1 } }], /class_name/],
  ])('is not read with %s', (_, data, error) => {
    const { cases, errors } = readPolicyCases(data);
    expect([cases, errors.length]).toEqual([[], 1]);
    expect(errors[0]).toMatch(error);
  });
});
