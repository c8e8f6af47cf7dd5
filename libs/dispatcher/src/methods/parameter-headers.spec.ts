import { describe, expect, it } from 'vitest';
import { kernelUnderTest, MODERN, readResult, smallAgent } from '../contracts/kernel-under-test.js';

const { ask } = kernelUnderTest();
const error = (code: number, message: string, status = 200) => ({ error: { code, message }, status });

describe('parameters mirrored in headers', () => {
  const call = (args: unknown, headers: Record<string, string>) =>
    ask(
      'tools/call',
      { name: 'regional', arguments: args },
      { ...MODERN, parameterHeader: (name) => headers[name] },
    );
  const mismatch = (name: string) =>
    error(-32020, `Header mismatch: Mcp-Param-${name} does not mirror the body`, 400);

  it.each([
    [{ region: 'eu' }, { Region: 'eu' }],
    [{ region: 'æ' }, { Region: '=?base64?w6Y=?=' }],
    [
      { region: 'eu', size: 42 },
      { Region: ' eu ', Size: '42.0' },
    ],
    [{ region: null }, {}],
    [{}, { Region: 'ignored' }],
  ])('accepts %j with %j', async (args, headers) => {
    expect(await call(args, headers)).toHaveProperty('result');
  });

  it.each([
    [{ region: 'eu' }, {}, 'Region'],
    [{ region: 'eu' }, { Region: 'EU' }, 'Region'],
    [{ region: 'eu' }, { Region: '=?base64?ZXU?=' }, 'Region'],
    [{ size: 42 }, { Size: '43' }, 'Size'],
    [{ size: 42 }, { Size: '0x2a' }, 'Size'],
    [{ size: 2 ** 53 }, { Size: '9007199254740993' }, 'Size'],
  ])('refuses %j with %j', async (args, headers, name) => {
    expect(await call(args, headers)).toEqual(mismatch(name));
  });

  it('expects none where the transport has no headers', async () => {
    const params = { name: 'regional', arguments: { region: 'eu' } };
    expect(await ask('tools/call', params, MODERN)).toHaveProperty('result');
  });

  it('does not show the headers of a tool to an agent that may not call it', async () => {
    const reply = await ask(
      'tools/call',
      { name: 'regional', arguments: { region: 'eu' } },
      { ...MODERN, agent: smallAgent({ tools: ['scan'] }), parameterHeader: () => undefined },
    );
    expect(readResult(reply)._meta).toMatchObject({ 'parse.error_code': 'tool_filtered' });
  });
});
