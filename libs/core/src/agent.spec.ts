import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent } from './agent.js';
import { tierCovers, TIERS } from './identity.js';
import { compileAgentDefinition } from './agent-definition.js';
import { sanitizeCorrelationId } from './mcp-request.js';
import { canonicalClassName, isClassName, isObjectId } from './class-names.js';
import { readNameFilter } from './filters.js';
import { ProcessRateLimiter } from './limits.js';
import { fieldDenied } from './refusals/index.js';

describe('tiers', () => {
  it('each include the tools of the lower ones', () => {
    for (const [held, index] of TIERS.map((tier, position) => [tier, position] as const)) {
      for (const [needed, other] of TIERS.map((tier, position) => [tier, position] as const)) {
        expect(tierCovers(held, needed)).toBe(index >= other);
      }
    }
  });

  it('rank an unknown one as readonly', () => {
    expect(tierCovers('root' as never, 'readonly')).toBe(true);
    expect(tierCovers('root' as never, 'write')).toBe(false);
  });
});

describe('an agent definition', () => {
  it('is readonly, unfiltered and without tenant when nothing is said', () => {
    const definition = compileAgentDefinition('plain');
    expect(definition).toMatchObject({
      permissions: 'readonly',
      tenantId: null,
      allowMutations: true,
      clientMode: false,
    });
    expect(definition.tools.permits('anything')).toBe(true);
  });

  it('is not made of filters that are none, or two of one class', () => {
    for (const [options, text] of [
      [{ filters: [] }, /filters: expected an object/],
      [{ filters: null }, /filters: expected an object/],
      [{ filters: { Post: [] } }, /filters\.Post: expected a constraint object/],
      [{ filters: { User: {}, _User: {} } }, /filters\._User: filters the same class/],
    ] as const)
      expect(() => compileAgentDefinition('x', options as never)).toThrow(text);
  });

  it('allows no mutations in client mode unless told so', () => {
    expect(compileAgentDefinition('client', { clientMode: true }).allowMutations).toBe(false);
    expect(compileAgentDefinition('client', { clientMode: true, allowMutations: true }).allowMutations).toBe(
      true,
    );
  });

  it('reads the lean profile as exactly six tools', () => {
    const { tools } = compileAgentDefinition('lean', { tools: { profile: 'lean' } });
    expect([...(tools.only ?? [])].sort()).toEqual([
      'aggregate',
      'count_objects',
      'get_all_schemas',
      'get_object',
      'get_schema',
      'query_class',
    ]);
  });

  it('judges both spellings of a system class as one', () => {
    const { classes } = compileAgentDefinition('x', { classes: { except: ['User'] } });
    expect(classes.permits(canonicalClassName('User'))).toBe(false);
    expect(classes.permits(canonicalClassName('_User'))).toBe(false);
  });
});

describe('a name filter', () => {
  it('permits nothing when only is empty', () => {
    expect(readNameFilter([]).permits('list_tools')).toBe(false);
  });

  it('never permits a name that except holds, whatever only says', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd');
    fc.assert(
      fc.property(fc.array(name), fc.array(name), name, (only, except, asked) => {
        const filter = readNameFilter({ only, except });
        expect(filter.permits(asked)).toBe(only.includes(asked) && !except.includes(asked));
      }),
    );
  });
});

describe('an agent', () => {
  const definition = compileAgentDefinition('x', { tenantId: 'acme' });

  it('is frozen and has an id of its own', () => {
    const one = new Agent({ definition, principal: 'p' });
    expect(Object.isFrozen(one)).toBe(true);
    expect(one.agentId).not.toBe(new Agent({ definition, principal: 'p' }).agentId);
  });

  it('takes the tenant of its definition unless it has its own', () => {
    expect(new Agent({ definition, principal: 'p' }).tenantId).toBe('acme');
    expect(new Agent({ definition, principal: 'p', tenantId: 'other' }).tenantId).toBe('other');
  });

  it('has the master key only without client mode', () => {
    expect(new Agent({ definition, principal: 'p' }).usesMasterKey).toBe(true);
    const client = compileAgentDefinition('c', { clientMode: true });
    expect(new Agent({ definition: client, principal: 'p' }).usesMasterKey).toBe(false);
  });
});

describe('the rate limiter', () => {
  it('permits the limit per window, refuses the next, and does not count refusals', async () => {
    let now = 0;
    const limiter = new ProcessRateLimiter({ limit: 2, window: 10 }, () => now);
    expect(await limiter.check('a')).toBeNull();
    now = 4;
    expect(await limiter.check('a')).toBeNull();
    now = 5;
    expect(await limiter.check('a')).toEqual({ retryAfter: 5, limit: 2, window: 10 });
    expect(await limiter.check('a')).not.toBeNull();
    now = 10;
    expect(await limiter.check('a')).toBeNull();
  });

  it('reports the usage of a principal without spending, and forgets it on reset', async () => {
    let now = 0;
    const limiter = new ProcessRateLimiter({ limit: 2, window: 10 }, () => now);
    expect(await limiter.usage('a')).toEqual({
      limit: 2,
      window: 10,
      used: 0,
      remaining: 2,
      retryAfter: null,
    });
    await limiter.check('a');
    now = 4;
    await limiter.check('a');
    expect(await limiter.usage('a')).toMatchObject({ used: 2, remaining: 0, retryAfter: 6 });
    await limiter.reset('a');
    expect(await limiter.check('a')).toBeNull();
  });

  it('is refused when it has no check', () => {
    expect(() => compileAgentDefinition('x', { rateLimiter: {} as never })).toThrow('check');
  });

  it('counts each principal on its own', async () => {
    const limiter = new ProcessRateLimiter({ limit: 1, window: 10 }, () => 0);
    expect(await limiter.check('a')).toBeNull();
    expect(await limiter.check('b')).toBeNull();
    expect(await limiter.check('a')).not.toBeNull();
  });

  it('never permits more than the limit in any window', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 200 }), async (gaps) => {
        let now = 0;
        const permitted: number[] = [];
        const limiter = new ProcessRateLimiter({ limit: 3, window: 7 }, () => now);
        for (const gap of gaps) {
          now += gap;
          if ((await limiter.check('a')) === null) permitted.push(now);
        }
        for (const at of permitted) {
          expect(permitted.filter((other) => other > at - 7 && other <= at).length).toBeLessThanOrEqual(3);
        }
      }),
    );
  });

  it('remembers a bounded number of principals', async () => {
    const limiter = new ProcessRateLimiter({ limit: 1, window: 10 }, () => 0, 2);
    for (const key of ['a', 'b', 'c']) await limiter.check(key);
    expect(await limiter.check('c')).not.toBeNull();
    expect(await limiter.check('a')).toBeNull();
  });
});

describe('names', () => {
  it.each(['Post', '_User', 'a1_b', 'x'.repeat(128)])('accepts the class name %s', (name) => {
    expect(isClassName(name)).toBe(true);
  });

  it.each(['', '1a', 'a.b', 'a$b', 'a b', 'a\n', 'a\0', 'x'.repeat(129), 'ä', null, 7, ['Post']])(
    'refuses the class name %j',
    (name) => {
      expect(isClassName(name)).toBe(false);
    },
  );

  const uuid = '0f8fad5b-d9cb-469f-a165-70867728950e';
  it.each(['a', 'A-b_9', 'x'.repeat(32), uuid])('accepts the object id %s', (id) => {
    expect(isObjectId(id)).toBe(true);
  });

  it.each(['', 'x'.repeat(33), `${uuid}0`, uuid.toUpperCase(), 'a.b', 'a$b', 'a\n', { $ne: 1 }, null])(
    'refuses the object id %j',
    (id) => {
      expect(isObjectId(id)).toBe(false);
    },
  );

  it('drops a correlation id with other characters and cuts a long one', () => {
    expect(sanitizeCorrelationId('a b')).toBeUndefined();
    expect(sanitizeCorrelationId('x'.repeat(200))).toHaveLength(128);
  });
});

describe('the refusal of a field', () => {
  it('lists at most twenty allowed fields and says how many more there are', () => {
    const allowed = Array.from({ length: 23 }, (_, index) => `f${index}`);
    const refusal = fieldDenied('$match', '$ssn.x', 'ssn', allowed);
    expect(refusal.message).toContain('outside agent_fields allowlist');
    expect(refusal.message).toContain('(+3 more)');
    expect(refusal.details).toMatchObject({ kind: 'field_denied', denied_field: 'ssn' });
    expect(refusal.details?.allowed_fields).toHaveLength(20);
  });

  it('suggests the bare name for a storage column only when that name is readable', () => {
    expect(fieldDenied('$group', '$_p_author', '_p_author', ['author']).details).toMatchObject({
      kind: 'storage_form_field_ref',
      suggested_rewrite: '$author',
    });
    for (const key of ['where field', '$match key', '$sort key', '$project key']) {
      const { message, details } = fieldDenied(key, '_p_author', '_p_author', ['author']);
      expect(details).toMatchObject({ suggested_rewrite: 'author' });
      expect(message).toContain('write "author" instead');
    }
    expect(fieldDenied('pipeline reference', '_p_author', '_p_author', ['author']).details).toMatchObject({
      suggested_rewrite: '$author',
    });
    expect(fieldDenied('$group', '$_p_owner', '_p_owner', ['author']).details).not.toHaveProperty(
      'suggested_rewrite',
    );
  });
});
