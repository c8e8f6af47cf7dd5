import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, rpc } from '../../support/service.js';
import { type Example, followReadme, startExample } from './example-process.js';

describe.each(['express', 'fastify'])('the example existing-application on %s', (http) => {
  let example: Example;
  beforeAll(async () => {
    example = await startExample('existing-application', { HTTP: http });
  });
  afterAll(() => example.stop());

  const mcp = () => ({ url: `${example.origin}/api/v1/mcp` });
  const post = (path: string, body: object) =>
    fetch(`${example.origin}${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  const signIn = async (name: string) => {
    const answer = await post('/api/v1/session', { name, password: `${name}-in-development` });
    const { token } = (await answer.json()) as { token: string };
    return { Authorization: `Bearer ${token}` };
  };

  it('does what its README says', async () => {
    const shown = await followReadme('existing-application', { 'http://127.0.0.1:3000': example.origin });
    expect(shown.length).toBeGreaterThan(10);
    expect(shown.map(({ actual }) => actual)).toEqual(shown.map(({ documented }) => documented));
  });

  it('keeps guard, validation and headers of its own routes', async () => {
    const closed = await fetch(`${example.origin}/api/v1/quotes?hours=2`);
    expect(closed.status).toBe(401);
    expect(closed.headers.get('x-frame-options')).toBe('DENY');
    expect((await post('/api/v1/session', { name: '', password: 'x' })).status).toBe(400);
    const quotes = await fetch(`${example.origin}/api/v1/quotes?hours=2`, { headers: await signIn('bob') });
    expect(quotes.status).toBe(403);
  });

  it('lets no agent in without a session of the application, nor with one that somebody else signed', async () => {
    const unsigned = `${btoa('{"alg":"none"}')}.${btoa('{"sub":"ada"}')}.`.replaceAll('=', '');
    for (const headers of [{}, { Authorization: `Bearer ${unsigned}` }, { Authorization: 'Bearer ada' }])
      expect((await rpc(mcp(), 'tools/list', {}, headers as Record<string, string>)).status).toBe(401);
  });

  it('shows each employee the rows of their branch and rights, by every way in', async () => {
    const south = await signIn('cid');
    const ways = [
      ['query_class', { class_name: 'Repair' }],
      ['aggregate', { class_name: 'Repair', pipeline: [{ $match: { bicycle: { $exists: true } } }] }],
      ['export_data', { class_name: 'Repair' }],
    ] as const;
    for (const [tool, args] of ways) {
      const { wire, isError } = await callTool(mcp(), tool, args, south);
      expect([tool, isError, wire.includes('Folding')]).toEqual([tool, false, true]);
      expect(wire).not.toMatch(/Cargo|Touring|mayor|margin/);
    }
    const foreign = await callTool(
      mcp(),
      'query_class',
      { class_name: 'Repair', where: { branch: 'north' } },
      south,
    );
    expect(foreign).toMatchObject({ isError: true, code: 'access_denied' });
  });
});
