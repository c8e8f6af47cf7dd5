import { describe, expect, it } from 'vitest';
import {
  Agent,
  type AgentDefinitionOptions,
  compileAgentDefinition,
  deriveAgent,
  MASTER_PRINCIPALS,
  Refused,
} from '#core';
import { createSchema, createSchemas } from '../compile/bound-class.fixture.js';
import { compilePolicy } from '../compile/compile-policy.js';
import type { PolicyConfig } from '../compile/policy-config.js';
import { Policies } from '../model/policy.js';
import { isRefusal, type ReachSite } from '../model/class-access.js';
import type { SchemaSnapshot } from '../model/class-schema.js';
import { AgentScopes } from './agent-scope.js';

const note = createSchema('Note', 'title');
const NOTE = {
  ...note,
  fields: new Map([...note.fields, ['card', { type: 'Pointer' as const, targetClass: 'Card' }]]),
};
const WITH = createSchemas(createSchema('Card', 'title', 'social_no'), NOTE);
const WITHOUT = createSchemas(createSchema('Card', 'title', 'number'), NOTE);
const MASKED: PolicyConfig = { classes: { Card: { masks: { social_no: 'drop' } } } };

function findScope(config: PolicyConfig, options: AgentDefinitionOptions = {}) {
  const reported: string[][] = [];
  const policies = new Policies(compilePolicy({ unlistedClasses: 'allow', ...config }).policy);
  const scopes = new AgentScopes(policies, (issues) => reported.push(issues.map(({ path }) => path)));
  const agent = new Agent({ definition: compileAgentDefinition('x', options), principal: 'p' });
  const at = (schemas: SchemaSnapshot, who = agent) => scopes.of(schemas, who, MASTER_PRINCIPALS);
  return { agent, at, reported };
}

describe('a class whose rules name fields that it does not have', () => {
  it('is refused by name, in words that name none of them', () => {
    const { agent, at } = findScope(MASKED);
    const answer = at(WITHOUT).enter(agent, 'Card');
    expect(answer).toMatchObject({
      code: 'access_denied',
      gate: 'class',
      details: { kind: 'misconfigured_class' },
      cause: expect.stringContaining("'social_no'"),
    });
    const { cause: _, ...answered } = answer as { cause: string };
    expect(JSON.stringify(answered)).not.toContain('social');
  });

  it.each<ReachSite>(['include', 'pipeline', 'constraint', 'owner', 'pointer'])(
    'is reached by no %s',
    (site) => {
      const { agent, at } = findScope(MASKED);
      const answer = at(WITHOUT).reach(agent, 'Card', site);
      expect(isRefusal(answer) && answer.details?.kind).toBe('misconfigured_class');
    },
  );

  it('is listed nowhere, and what points to it is withheld', () => {
    const scope = findScope(MASKED).at(WITHOUT);
    expect([scope.isListed('Card'), scope.withholding.isWithheld('Card'), scope.suggestions('Crad')]).toEqual(
      [false, true, []],
    );
    expect(scope.access('Note').withheld?.get('card')?.refusal.details?.kind).toBe('misconfigured_class');
    expect([...(scope.access('Card').readable ?? [])]).toEqual(['objectId', 'createdAt', 'updatedAt']);
  });

  it('is refused like a hidden one where hidden ones are concealed', () => {
    const { agent, at } = findScope({ ...MASKED, concealHidden: true });
    expect(at(WITHOUT).enter(agent, 'Card')).toMatchObject({
      message: "Class 'Card' is not accessible to this agent",
      details: { kind: 'hidden_class' },
    });
  });

  it('is open again, once it has them', () => {
    const { agent, at, reported } = findScope(MASKED);
    expect(isRefusal(at(WITHOUT).enter(agent, 'Card'))).toBe(true);
    expect(isRefusal(at(WITH).enter(agent, 'Card'))).toBe(false);
    expect(reported).toEqual([['policy.classes.Card.masks.social_no'], []]);
  });

  it('is refused to the agents alone whose filters name them, and to those below', () => {
    const filtered = findScope({}, { filters: { Card: { social_no: 'x' } } });
    expect(filtered.at(WITHOUT).withholding.isWithheld('Card')).toBe(true);
    expect(filtered.at(WITH).withholding.isWithheld('Card')).toBe(false);
    const child = deriveAgent(filtered.agent);
    expect(filtered.at(WITHOUT, child).withholding.isWithheld('Card')).toBe(true);
    expect(findScope({}).at(WITHOUT).withholding.isWithheld('Card')).toBe(false);
  });

  it('is refused by a filter for every class, too, and no other class with it', () => {
    const scope = findScope({}, { filters: { default: { social_no: 'x' } } }).at(WITH);
    expect([scope.withholding.isWithheld('Card'), scope.withholding.isWithheld('Note')]).toEqual([
      false,
      true,
    ]);
  });
});

describe('a filter that is a function', () => {
  it.each([
    ['names a field that is not there', { socialNo: 'x' }],
    [
      'does so in a question to another class',
      { card: { $inQuery: { className: 'Card', where: { gone: 1 } } } },
    ],
  ])('refuses the call when it %s', async (_, constraint) => {
    const { agent, at } = findScope({}, { filters: { Note: () => constraint } });
    const error: unknown = await at(WITH)
      .agentFilter(agent, 'Note')
      .catch((reason: unknown) => reason);
    expect(error instanceof Refused && error.refusal.gate).toBe('agent_filter');
  });
});
