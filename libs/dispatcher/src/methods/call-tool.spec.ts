import { describe, expect, it } from 'vitest';
import {
  type AskedRequest,
  kernelUnderTest,
  MODERN,
  NOVEMBER,
  readResult,
} from '../contracts/kernel-under-test.js';

const { ask } = kernelUnderTest();
const error = (code: number, message: string, status = 200) => ({ error: { code, message }, status });

describe('tools/call', () => {
  it.each([[{}], [{ name: null }], [{ name: 5 }]])('needs a tool name: %j', async (params) => {
    expect(await ask('tools/call', params)).toEqual(error(-32602, 'Missing tool name'));
    expect(await ask('tools/call', params, MODERN)).toEqual(error(-32602, 'Missing tool name'));
  });

  it('answers text and structured content', async () => {
    const data = { class_name: 'Post', count: 3 };
    expect(await ask('tools/call', { name: 'count_objects', arguments: { class_name: 'Post' } })).toEqual({
      result: {
        content: [{ type: 'text', text: JSON.stringify(data) }],
        isError: false,
        structuredContent: data,
      },
    });
  });

  it('sends structured content only where the revision knows it, and an array only in the stateless era', async () => {
    const call = async (name: string, context: AskedRequest) =>
      readResult(await ask('tools/call', { name, arguments: {} }, context));
    expect(await call('count_objects', { version: '2025-03-26' })).not.toHaveProperty('structuredContent');
    expect(await call('list_values', NOVEMBER)).not.toHaveProperty('structuredContent');
    expect(await call('list_values', MODERN)).toHaveProperty('structuredContent', [1, 2]);
  });

  it('answers an unknown tool as a denied one up to 2025-06-18, then as unknown', async () => {
    expect(readResult(await ask('tools/call', { name: 'nope' }))).toEqual({
      content: [
        {
          type: 'text',
          text: "Permission denied: 'nope' requires unknown permissions. Current level: readonly. There is no tool of that name. list_tools names the tools that you may call",
        },
      ],
      isError: true,
      _meta: { 'parse.error_code': 'permission_denied' },
    });
    for (const era of [NOVEMBER, MODERN]) {
      expect(await ask('tools/call', { name: 'nope' }, era)).toEqual(error(-32602, 'Unknown tool: nope'));
      expect(await ask('tools/call', { name: 'count_object' }, era)).toEqual(
        error(-32602, "Unknown tool: count_object. Did you mean 'count_objects'?"),
      );
    }
  });

  it('refuses arguments that are no object', async () => {
    const params = { name: 'scan', arguments: [1] };
    expect(await ask('tools/call', params)).toEqual(error(-32602, 'Invalid params'));
    expect(readResult(await ask('tools/call', params, MODERN))).toMatchObject({
      isError: true,
      _meta: { 'parse.error_code': 'invalid_argument' },
    });
  });

  it('takes null arguments as none', async () => {
    const { ask: askOne, tools } = kernelUnderTest();
    await askOne('tools/call', { name: 'scan', arguments: null });
    expect(tools.calls).toEqual([{ name: 'scan', args: {} }]);
  });

  it('answers an opaque refusal with Invalid params and nothing else', async () => {
    expect(await ask('tools/call', { name: 'opaque' })).toEqual(error(-32602, 'Invalid params'));
    expect(await ask('tools/call', { name: 'opaque' }, MODERN)).toEqual(error(-32602, 'Invalid params'));
  });

  it('answers a refusal with its code, wait and details', async () => {
    expect(readResult(await ask('tools/call', { name: 'limited' }))._meta).toEqual({
      'parse.error_code': 'rate_limited',
      'parse.retry_after': 12.35,
    });
    expect(readResult(await ask('tools/call', { name: 'field_denied' }))._meta).toEqual({
      'parse.error_code': 'access_denied',
      'parse.details': { kind: 'field_denied', denied_field: 'secret', allowed_fields: ['title'] },
    });
  });

  it('words a refused scan as a failed result body, without structured content', async () => {
    const result = readResult(await ask('tools/call', { name: 'scan' }));
    const [content] = result.content as { text: string }[];
    expect(JSON.parse(content?.text ?? '')).toEqual({
      success: false,
      error: 'Full scan refused',
      error_code: 'security_blocked',
      refused: true,
      reason: 'COLLSCAN',
      suggestion: 'Filter on an indexed field',
    });
    expect(result).toMatchObject({ isError: true });
    expect(result).not.toHaveProperty('structuredContent');
  });

  it('discards the result of a call that was cancelled meanwhile', async () => {
    expect(await ask('tools/call', { name: 'count_objects' }, { signal: AbortSignal.abort() })).toEqual({
      result: { content: [{ type: 'text', text: 'Cancelled by client' }], isError: true, cancelled: true },
    });
  });

  it('says who answered in the stateless era', async () => {
    expect(readResult(await ask('tools/call', { name: 'limited' }, MODERN))).toMatchObject({
      resultType: 'complete',
      _meta: {
        'parse.error_code': 'rate_limited',
        'io.modelcontextprotocol/serverInfo': { name: 'parley', version: '1.2.3' },
      },
    });
  });
});
