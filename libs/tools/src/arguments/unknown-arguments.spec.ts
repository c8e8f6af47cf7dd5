import { describe, expect, it } from 'vitest';
import { Refused } from '#core';
import { BUILT_IN_TOOLS } from '../built-in-tools.js';
import { toolDeclarations } from '../declaration/tool.decorator.js';
import { unknownArguments } from './argument-class.js';

const TOOLS = BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype));

function refusalOf(tool: (typeof TOOLS)[number], args: unknown): string | null {
  try {
    unknownArguments(tool)(args);
    return null;
  } catch (error) {
    if (!(error instanceof Refused) || error.refusal.code !== 'invalid_argument') throw error;
    return error.refusal.message;
  }
}

describe.each(TOOLS.map((tool) => [tool.definition.name, tool] as const))(
  'the arguments of %s',
  (name, tool) => {
    const declared = Object.keys(tool.definition.inputSchema['properties'] as object);

    it('are closed in its schema', () => {
      expect(tool.definition.inputSchema['additionalProperties']).toBe(false);
    });

    it('are taken as declared', () => {
      expect(refusalOf(tool, Object.fromEntries(declared.map((argument) => [argument, null])))).toBeNull();
      for (const none of [undefined, null, {}]) expect(refusalOf(tool, none)).toBeNull();
    });

    it.each(['zzzzzz', 'constructor', '$where', 'x'.repeat(5000), ''])(
      'do not include %s, which is answered with all that are taken',
      (argument) => {
        const result = refusalOf(tool, { [argument]: 1 }) ?? '';
        expect(
          result.startsWith(`Invalid arguments: ${name} does not take '${argument.slice(0, 128)}'`),
        ).toBe(true);
        for (const taken of declared) expect(result).toContain(taken);
        expect(result.length).toBeLessThan(1000);
      },
    );

    it('are suggested for a slip of the pen', () => {
      const missed = declared
        .filter((argument) => argument.length > 3)
        .flatMap((argument) => {
          const slips = [argument.slice(0, -1), `${argument}s`, argument.toUpperCase()];
          return slips.filter(
            (slip) => !declared.includes(slip) && !refusalOf(tool, { [slip]: 1 })?.includes(`'${argument}'`),
          );
        });
      expect(missed).toEqual([]);
    });

    it.each([
      ...'session_token sessionToken SESSION_TOKEN _SessionToken session-token X-Parse-Session-Token'.split(
        ' ',
      ),
      ...'master Master master_key masterKey use_master_key useMasterKey'.split(' '),
      ...'acl_user aclUser acl_role aclRole tenant_id tenantId TENANT-ID'.split(' '),
    ])('leave %s unread, as an identity is never an argument', (argument) => {
      expect(refusalOf(tool, { [argument]: 'x' })).toBeNull();
    });
  },
);

describe('arguments beside the declared ones', () => {
  it.each([
    ['aggregate', 'mongo_direct'],
    ['aggregate', 'rewrite_lookups'],
    ['semantic_search', 'klass'],
    ['create_object', 'data'],
    ['update_object', 'data'],
  ])('%s takes %s', (name, argument) => {
    const tool = TOOLS.find((one) => one.definition.name === name);
    expect(tool && refusalOf(tool, { [argument]: {} })).toBeNull();
  });
});

describe('a word of an argument', () => {
  const messageOf = (name: string, argument: string) => {
    const tool = TOOLS.find((one) => one.definition.name === name);
    return (tool && refusalOf(tool, { [argument]: 1 })) ?? '';
  };

  it('is answered with the argument where that has two words', () => {
    expect(messageOf('get_object', 'id')).toContain("Did you mean 'object_id'?");
    expect(messageOf('count_objects', 'class')).toContain("Did you mean 'class_name'?");
  });

  it.each([
    ['count_objects', 'filter', 'where'],
    ['query_class', 'sort', 'order'],
    ['query_class', 'fields', 'keys'],
    ['query_class', 'populate', 'include'],
    ['get_objects', 'object_ids', 'ids'],
    ['get_sample_objects', 'top', 'limit'],
    ['group_by', 'group_by', 'field'],
    ['group_by_date', 'date_field', 'field'],
    ['group_by_date', 'granularity', 'interval'],
  ])('%s: %s is what other libraries call %s', (name, written, argument) => {
    expect(messageOf(name, written)).toContain(`Did you mean '${argument}'?`);
  });
});
