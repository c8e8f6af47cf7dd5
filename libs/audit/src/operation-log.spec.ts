import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, deriveAgent, refusals, sessionIdentity } from '#core';
import { toAuditedAgent, resultCost } from './call-record.js';
import { OperationLog } from './operation-log.js';

const definition = compileAgentDefinition('analyst', {
  classes: { only: ['Post', 'Author'], except: ['User'] },
  tools: ['query_class'],
  filters: { Post: { b: 'secret', a: 1 }, default: { live: true } },
});
const agent = new Agent({ definition, principal: 'p' });

describe('the operation log', () => {
  it('keeps the latest calls, oldest first, and never more than its size', () => {
    const log = new OperationLog(3);
    for (const tool of ['a', 'b', 'c', 'd']) log.record({ tool, args: {}, agent });
    expect(log.all().map(({ tool }) => tool)).toEqual(['b', 'c', 'd']);
    log.clear();
    expect(log.all()).toEqual([]);
  });

  it('keeps a thousand by default', () => {
    const log = new OperationLog();
    for (let call = 0; call < 1005; call += 1) log.record({ tool: `t${call}`, args: {}, agent });
    expect(log.all()).toHaveLength(1000);
    expect(log.all()[0]?.tool).toBe('t5');
  });

  it('drops calls of the principal with the most entries, whichever principal calls', () => {
    const log = new OperationLog(10);
    const quiet = new Agent({ definition, principal: 'q' });
    for (let call = 0; call < 4; call += 1) log.record({ tool: `quiet ${call}`, args: {}, agent: quiet });
    for (let call = 0; call < 100; call += 1) log.record({ tool: `busy ${call}`, args: {}, agent });
    const tools = log.all().map(({ tool }) => tool);
    expect(tools).toEqual([
      ...[0, 1, 2, 3].map((call) => `quiet ${call}`),
      ...[94, 95, 96, 97, 98, 99].map((call) => `busy ${call}`),
    ]);
    log.resize(6);
    expect(log.all().map(({ tool }) => tool)).toEqual([
      'quiet 1',
      'quiet 2',
      'quiet 3',
      'busy 97',
      'busy 98',
      'busy 99',
    ]);
    for (let call = 0; call < 100; call += 1) log.record({ tool: `late ${call}`, args: {}, agent: quiet });
    expect(log.all().filter(({ tool }) => tool.startsWith('busy'))).toHaveLength(3);
  });

  it('never drops a call but the oldest of the principal with the most entries, and keeps the order', () => {
    const callers = ['p', 'q', 'r', 's'].map((principal) => new Agent({ definition, principal }));
    const calls = fc.array(fc.nat({ max: callers.length - 1 }), { maxLength: 60 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), calls, (size, order) => {
        const log = new OperationLog(size);
        let before: string[] = [];
        for (const [number, caller] of order.entries()) {
          log.record({ tool: `${caller} ${number}`, args: {}, agent: callers[caller] as Agent });
          const after = log.all().map(({ tool }) => tool);
          const coming = [...before, `${caller} ${number}`];
          const dropped = coming.filter((tool) => !after.includes(tool));
          expect(after).toEqual(coming.filter((tool) => !dropped.includes(tool)));
          expect(dropped).toHaveLength(coming.length > size ? 1 : 0);
          const ofOwner = (owner = '') => coming.filter((tool) => tool.startsWith(owner));
          for (const tool of dropped) {
            const owner = tool.slice(0, 2);
            expect(ofOwner(owner)[0]).toBe(tool);
            for (const other of callers.keys())
              expect(ofOwner(`${other} `).length).toBeLessThanOrEqual(ofOwner(owner).length);
          }
          before = after;
        }
      }),
    );
  });

  it.each([0, -1, 1.5, Number.NaN])('refuses the size %s', (size) => {
    expect(() => new OperationLog(size)).toThrow('maxLogSize');
  });

  it('shows arguments without the sensitive ones, and neither long text nor what lists and objects hold', () => {
    const log = new OperationLog();
    const args = {
      class_name: 'Post',
      limit: 3,
      where: { a: 'secret' },
      data: { a: 'secret' },
      rows: ['secret'],
    };
    log.record({ tool: 'x', args: { ...args, text: 'y'.repeat(1000) }, agent });
    const [entry] = log.all();
    expect(entry).toMatchObject({ success: true, auth_type: 'master_key', using_master_key: true });
    expect(entry).toHaveProperty('args', {
      class_name: 'Post',
      limit: 3,
      data: '(object of 1)',
      rows: '(list of 1)',
      text: `${'y'.repeat(256)}…`,
    });
    expect(JSON.stringify(entry)).not.toContain('secret');
  });

  it('shows a refusal by its code, and a security refusal with its private reason', () => {
    const log = new OperationLog();
    log.record({ tool: 'x', args: {}, agent, refusal: refusals.hiddenClass('Vault') });
    log.record({ tool: 'x', args: {}, agent, refusal: refusals.securityBlocked('where', 'code_execution') });
    expect(log.all()).toMatchObject([
      { success: false, error_code: 'access_denied', error: expect.stringContaining('Vault') },
      { type: 'security_violation', error_code: 'security_blocked', reason: 'code_execution' },
    ]);
  });

  it('names who was acted for, and never a session token', () => {
    const log = new OperationLog();
    const identities = [{ kind: 'aclUser', userId: 'ada' } as const, sessionIdentity('r:token')];
    for (const identity of identities)
      log.record({ tool: 'x', args: {}, agent: new Agent({ definition, identity, principal: 'user:ada' }) });
    expect(log.all()).toMatchObject([{ identity: 'ada' }, { identity: 'user:ada' }]);
    expect(JSON.stringify(log.all())).not.toContain('r:token');
  });
});

describe('what a record says of an agent', () => {
  it('are its filters by name, sorted, and no value of them', () => {
    const record = toAuditedAgent(agent);
    expect(record).toMatchObject({
      classes_only: ['Author', 'Post'],
      classes_except: ['_User'],
      tools_only: ['query_class'],
      filters: { Post: ['a', 'b'], default: ['live'] },
      agent_depth: 0,
    });
    expect(record).not.toHaveProperty('methods_only');
    expect(record).not.toHaveProperty('parent_agent_id');
    expect(JSON.stringify(record)).not.toContain('secret');
  });

  it('are those of its parents too when it is a sub-agent', () => {
    const child = deriveAgent(agent, { filters: { Post: { c: 1 }, Author: () => ({ d: 1 }) } });
    expect(toAuditedAgent(child)).toMatchObject({
      parent_agent_id: agent.agentId,
      agent_depth: 1,
      filters: { Author: ['(function)'], Post: ['a', 'b', 'c'], default: ['live'] },
    });
  });

  it('says what a result costs to read, in money only when a price is set', () => {
    expect(resultCost(4003, null)).toEqual({ result_size: 4003, est_input_tokens: 1000 });
    expect(resultCost(4003, 3)).toMatchObject({ est_cost_usd: 0.003 });
    expect(resultCost(7, 2.5)).toMatchObject({ est_input_tokens: 1, est_cost_usd: 0.000003 });
  });
});
