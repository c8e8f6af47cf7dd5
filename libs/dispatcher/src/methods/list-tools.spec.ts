import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent, type McpRequest } from '#core';
import type { ToolDefinition } from '#tools';
import {
  type AskedRequest,
  kernelUnderTest,
  MODERN,
  readResult,
  smallAgent,
  smallTool,
  SmallToolRunner,
  succeeded,
} from '../contracts/kernel-under-test.js';

const { ask } = kernelUnderTest();
const error = (code: number, message: string, status = 200) => ({ error: { code, message }, status });

describe('tools/list', () => {
  it('lists what the agent may call, and nothing else', async () => {
    const names = async (context: AskedRequest) =>
      (readResult(await ask('tools/list', {}, context)).tools as { name: string }[]).map(({ name }) => name);
    expect(await names({})).not.toContain('delete_object');
    expect(await names({ agent: smallAgent({ permissions: 'admin' }) })).toContain('delete_object');
    expect(await names({ agent: smallAgent({ tools: ['scan'] }) })).toEqual(['scan']);
    expect(await names({ agent: smallAgent({ tools: [] }) })).toEqual([]);
  });

  it.each([
    ['2024-11-05', 'legacy', ['name', 'description', 'inputSchema', '_meta']],
    ['2025-03-26', 'legacy', ['name', 'description', 'inputSchema', 'annotations', '_meta']],
    ['2025-06-18', 'legacy', ['name', 'description', 'inputSchema', 'outputSchema', 'annotations', '_meta']],
    ['2026-07-28', 'modern', ['name', 'description', 'inputSchema', 'outputSchema', 'annotations', '_meta']],
  ] as const)('describes a tool to %s with the members it knows', async (version, era, members) => {
    const tools = readResult(await ask('tools/list', {}, { version, era })).tools as Record<
      string,
      unknown
    >[];
    const count = tools.find(({ name }) => name === 'count_objects');
    expect(Object.keys(count ?? {})).toEqual(members);
    expect(count?._meta).toEqual({ category: 'query' });
  });

  it('contains titles from 2025-06-18 on', async () => {
    const first = async (version: string) =>
      (readResult(await ask('tools/list', {}, { version })).tools as Record<string, unknown>[])[0];
    expect(await first('2025-06-18')).toHaveProperty('title', 'List classes');
    expect(await first('2025-03-26')).not.toHaveProperty('title');
  });

  it('filters by category whatever its case; an unknown one matches nothing', async () => {
    const { tools } = readResult(await ask('tools/list', { category: 'SCHEMA' })) as {
      tools: { name: string }[];
    };
    expect(tools.map(({ name }) => name)).toEqual(['get_all_schemas', 'get_schema']);
    expect(readResult(await ask('tools/list', { category: 'nope' })).tools).toEqual([]);
    expect(await ask('tools/list', { category: 5 })).toEqual(error(-32602, 'category must be a string'));
  });

  it('keeps what it rendered until the runner answers differently', async () => {
    const { ask: askOne, tools } = kernelUnderTest(
      new SmallToolRunner().add(smallTool('a'), () => succeeded({})),
    );
    const agent = smallAgent();
    const before = await askOne('tools/list', {}, { agent });
    expect(await askOne('tools/list', {}, { agent })).toBe(before);
    tools.add(smallTool('b'), () => succeeded({}));
    expect(readResult(await askOne('tools/list', {}, { agent })).tools).toHaveLength(2);
  });

  describe('for callers of one agent definition', () => {
    const NAMES = ['a', 'b', 'c', 'd', 'e'];
    /** Lists the tools whose names the principal consists of. */
    class ByPrincipal extends SmallToolRunner {
      override list(context: Pick<McpRequest, 'agent'>): readonly ToolDefinition[] {
        return super.list(context).filter(({ name }) => context.agent.principal.includes(name));
      }
    }
    const served = () => {
      const runner = new ByPrincipal();
      for (const name of NAMES) runner.add(smallTool(name), () => succeeded({}));
      const { definition } = smallAgent();
      const { ask: askOne } = kernelUnderTest(runner);
      return (principal: string) => askOne('tools/list', {}, { agent: new Agent({ definition, principal }) });
    };

    it('keeps what it rendered for each list of tools', async () => {
      const list = served();
      const [one, other] = [await list('ab'), await list('bc')];
      expect(await list('ab')).toBe(one);
      expect(await list('bc')).toBe(other);
    });

    it('never gives the list of another, however many lists there are', async () => {
      const principals = fc.subarray(NAMES).map((names) => names.join(''));
      await fc.assert(
        fc.asyncProperty(fc.array(principals, { maxLength: 60 }), async (callers) => {
          const list = served();
          for (const caller of callers) {
            const tools = readResult(await list(caller)).tools as { name: string }[];
            expect(tools.map(({ name }) => name).join('')).toBe(caller);
          }
        }),
        { numRuns: 30 },
      );
    });
  });

  it('sends the same bytes as the value it returns', async () => {
    const reply = await ask('tools/list', {}, MODERN);
    if (!('envelopeTail' in reply)) throw new Error('not rendered');
    const sent = JSON.parse(`{"id":1${String(reply.envelopeTail)}`) as object;
    expect(sent).toEqual({ id: 1, result: reply.result });
    expect(reply.result).toMatchObject({ resultType: 'complete', ttlMs: 0, cacheScope: 'private' });
  });

  describe('with more than 200 tools', () => {
    const runner = new SmallToolRunner();
    for (let at = 0; at < 450; at += 1) runner.add(smallTool(`tool_${at}`), () => succeeded({}));
    const many = kernelUnderTest(runner).ask;

    it('pages through all of them once', async () => {
      const seen: string[] = [];
      let cursor: unknown;
      do {
        const page = readResult(await many('tools/list', { cursor }, MODERN));
        seen.push(...(page.tools as { name: string }[]).map(({ name }) => name));
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      expect(seen).toEqual(Array.from({ length: 450 }, (_, at) => `tool_${at}`));
    });

    it('refuses a cursor it never issued', async () => {
      const { nextCursor } = readResult(await many('tools/list', {}, MODERN));
      for (const cursor of [
        '',
        'x',
        5,
        {},
        `${String(nextCursor)}=`,
        Buffer.from('tools 1').toString('base64url'),
      ]) {
        expect(await many('tools/list', { cursor }, MODERN)).toEqual(error(-32602, 'Invalid cursor'));
      }
      expect(await many('tools/list', { cursor: nextCursor, category: 'query' }, MODERN)).toEqual(
        error(-32602, 'Invalid cursor'),
      );
    });

    it('gives the frozen revisions everything at once, and refuses any cursor of theirs', async () => {
      const all = readResult(await many('tools/list', { cursor: null }));
      expect(all.tools).toHaveLength(450);
      expect(all).not.toHaveProperty('nextCursor');
      const { nextCursor } = readResult(await many('tools/list', {}, MODERN));
      for (const cursor of ['x', nextCursor, 1, false, {}])
        for (const list of ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'])
          expect(await many(list, { cursor })).toEqual(error(-32602, 'Invalid cursor'));
    });
  });
});
