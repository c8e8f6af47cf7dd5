import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decideApproval } from '../../support/decide-approval.js';
import { callTool } from '../../support/service.js';
import { type Example, startExample } from './example-process.js';

const as = (agent: string) => ({ 'X-MCP-API-Key': `${agent}-in-development` });
const PATIENT = { timeout: 60_000, interval: 50 };

describe('the example custom-tools with the desk for approvals', () => {
  let example: Example;
  beforeAll(async () => {
    example = await startExample('custom-tools', {
      APPROVALS: 'desk',
      PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
    });
  });
  afterAll(() => example.stop());
  const mcp = () => ({ url: `${example.origin}/mcp` });
  const desk = () => `${example.origin}/mcp/approvals`;
  const decide = (agent: string, id: string, verdict: Parameters<typeof decideApproval>[2]) =>
    decideApproval(`${desk()}/${id}`, as(agent), verdict);
  const listed = async () => (await fetch(desk(), { headers: as('chief') })).text();
  const writeOff = (item: string) =>
    callTool(mcp(), 'write_off', { item, pieces: 1, reason: 'broken' }, as('keeper'));
  const theCase = async () => {
    let id = '';
    await expect
      .poll(async () => (id = /"id":"([^"]+)"/.exec(await listed())?.[1] ?? ''), PATIENT)
      .not.toBe('');
    return id;
  };

  it('lets a call wait until the chief says yes, and nobody else', async () => {
    const waiting = writeOff('glass');
    const id = await theCase();
    for (const agent of ['keeper', 'visitor'])
      expect((await decide(agent, id, { decision: 'approve' })).status).toBe(403);
    expect((await decide('chief', id, { decision: 'approve' })).status).toBe(200);
    expect(JSON.parse((await waiting).text)).toEqual({ item: 'glass', stock: 6 });
  });

  it('changes nothing when the chief denies, and returns the reason', async () => {
    const waiting = writeOff('nut');
    const id = await theCase();
    await decide('chief', id, { decision: 'deny', reason: 'count first' });
    expect(await waiting).toMatchObject({ code: 'approval_denied', isError: true });
    expect((await waiting).text).toContain('count first');
  });
});
