import { generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, rpc, WRITES_OPEN } from '../../support/service.js';
import { type Example, followReadme, startExample } from './example-process.js';

const AUDIENCE = 'https://invoices.example/mcp';
const BOTH = 'invoices:read invoices:write';
/** What stands in rows of globex and in no other. */
const FOREIGN = /9000|G-1|Secret customer/;

describe('the example multi-tenant', () => {
  let example: Example;
  let issuer: string;
  let acme: Record<string, string>;
  let globex: Record<string, string>;

  const mcp = () => ({ url: `${example.origin}/mcp` });
  const tokenOf = async (client: string, scope = BOTH, resource = AUDIENCE) => {
    const response = await fetch(`${issuer}/token`, {
      method: 'POST',
      headers: { Authorization: `Basic ${btoa(`${client}:${client}-in-development`)}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope, resource }),
    });
    const { access_token } = (await response.json()) as { access_token: string };
    return { Authorization: `Bearer ${access_token}` };
  };
  const statusFor = async (headers: Record<string, string>) =>
    (await rpc(mcp(), 'tools/list', {}, headers)).status;

  beforeAll(async () => {
    example = await startExample('multi-tenant', WRITES_OPEN);
    issuer = /Tokens from (\S+)/.exec(example.output())?.[1] ?? '';
    [acme, globex] = await Promise.all([tokenOf('acme-clerk'), tokenOf('globex-clerk')]);
  });
  afterAll(() => example.stop());

  it('does what its README says', async () => {
    const shown = await followReadme('multi-tenant', {
      'http://127.0.0.1:3000': example.origin,
      'http://127.0.0.1:3010': issuer,
    });
    expect(shown.length).toBeGreaterThan(10);
    expect(shown.map(({ actual }) => actual)).toEqual(shown.map(({ documented }) => documented));
  });

  it('shows a tenant no row of another, by filter, pipeline, pointer or join', async () => {
    const pointer = { __type: 'Pointer', className: 'Customer', objectId: 'cg' };
    const lookup = { from: 'Customer', localField: 'customer', foreignField: 'objectId', as: 'c' };
    const ways: [string, object][] = [
      ['query_class', { class_name: 'Invoice', include: ['customer'] }],
      ['query_class', { class_name: 'Invoice', where: { $or: [{ org: 'globex' }, { total: { $gt: 0 } }] } }],
      ['query_class', { class_name: 'Invoice', where: { org: { $in: ['acme', 'globex'] } } }],
      ['query_class', { class_name: 'Invoice', where: { customer: pointer }, include: ['customer'] }],
      [
        'query_class',
        {
          class_name: 'Invoice',
          where: { customer: { $inQuery: { className: 'Customer', where: { org: 'globex' } } } },
        },
      ],
      ['count_objects', { class_name: 'Invoice', where: { org: { $ne: 'acme' } } }],
      ['aggregate', { class_name: 'Invoice', pipeline: [{ $match: { org: 'globex' } }] }],
      ['aggregate', { class_name: 'Invoice', pipeline: [{ $lookup: lookup }] }],
      ['aggregate', { class_name: 'Invoice', pipeline: [{ $unionWith: { coll: 'Customer' } }] }],
      [
        'aggregate',
        { class_name: 'Invoice', pipeline: [{ $group: { _id: '$org', sum: { $sum: '$total' } } }] },
      ],
      ['get_object', { class_name: 'Customer', object_id: 'cg' }],
      ['get_objects', { class_name: 'Invoice', ids: ['a1', 'g1'] }],
      ['export_data', { class_name: 'Invoice', include: ['customer'] }],
      ['distinct', { class_name: 'Customer', field: 'name' }],
    ];
    const answered = [];
    for (const [tool, args] of ways) {
      const { wire, isError } = await callTool(mcp(), tool, args, acme);
      // The refusal of a call may repeat what the call itself said.
      expect([tool, args, FOREIGN.exec(wire)?.[0]]).toEqual([tool, args, undefined]);
      if (!isError) answered.push(tool);
    }
    // It is not that everything is refused.
    expect(answered).toEqual(expect.arrayContaining(['query_class', 'aggregate', 'export_data']));
    expect((await callTool(mcp(), 'query_class', { class_name: 'Invoice' }, globex)).wire).toMatch(FOREIGN);
  });

  it('lets a tenant change and move no row across', async () => {
    const attempts = [
      ['update_object', { class_name: 'Invoice', object_id: 'g1', fields: { total: 1 } }],
      ['update_object', { class_name: 'Invoice', object_id: 'a1', fields: { org: 'globex' } }],
      ['delete_object', { class_name: 'Invoice', object_id: 'g1' }],
    ] as const;
    for (const [tool, args] of attempts)
      expect([tool, (await callTool(mcp(), tool, args, acme)).isError]).toEqual([tool, true]);
    const { data } = await callTool(mcp(), 'get_object', { class_name: 'Invoice', object_id: 'g1' }, globex);
    expect(data).toMatchObject({ object: { total: 9000 } });
  });

  it('gives the file that one tenant ordered to no other', async () => {
    const order = { class_name: 'Invoice', delivery: 'resource', format: 'csv' };
    const { data } = await callTool(mcp(), 'export_data', order, globex);
    const file = (headers: Record<string, string>) =>
      fetch(`${example.origin}${String(data['path'])}`, { headers });
    expect(await (await file(globex)).text()).toMatch(FOREIGN);
    expect((await file(acme)).status).toBe(404);
    expect((await file({})).status).toBe(401);
    const { text } = await rpc(mcp(), 'resources/read', { uri: data['uri'] }, acme);
    expect(text).toContain('Resource not found');
  });

  it('believes no claim that it cannot check', async () => {
    const { privateKey } = await generateKeyPair('RS256');
    const [head = '', body = '', signature = ''] = (acme['Authorization'] ?? '')
      .replace('Bearer ', '')
      .split('.');
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as Record<string, unknown>;
    const coded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string };
    const moved = { ...claims, org: 'globex' };
    const ours = await new SignJWT(moved)
      .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid })
      .sign(privateKey);
    const forged = [
      `${head}.${coded(moved)}.${signature}`,
      `${coded({ alg: 'none', typ: 'at+jwt' })}.${coded(moved)}.`,
      ours,
    ];
    for (const token of forged) expect(await statusFor({ Authorization: `Bearer ${token}` })).toBe(401);
    expect(await statusFor(await tokenOf('globex-clerk', BOTH, 'https://another.example/mcp'))).toBe(401);
    expect(await statusFor({ ...acme, 'X-Tenant-Id': 'globex' })).toBe(200);
    expect(await statusFor(await tokenOf('nobodys'))).toBe(401);
    expect(await statusFor(await tokenOf('acme-clerk', 'invoices:write'))).toBe(403);
  });
});
