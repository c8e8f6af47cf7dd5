import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { ApprovalCase } from '#state';
import { SIGNATURE_HEADER } from '#audit';
import { ApprovalWebhook } from './approval-webhook.js';

const opened: ApprovalCase = {
  id: 'case-1',
  requester: { principal: 'key:1', agent: 'writer', tenant: 'acme' },
  tool: 'update_object',
  permission: 'write',
  subject: 's',
  holdsFor: 'h',
  preview: { change: { after: { title: 'PRIVATE' } } },
  requestedAt: 0,
  expiresAt: 1,
  status: 'pending',
};

const servers: Server[] = [];
const warnings: string[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.closeAllConnections();
  warnings.length = 0;
});

async function hook(statuses: readonly (number | null)[]) {
  const heard: { request: IncomingMessage; body: string }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const status = statuses[heard.push({ request, body }) - 1];
      if (status) response.writeHead(status, { Location: '/elsewhere' }).end();
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?key=SECRET-IN-URL`;
  const log = { warn: (line: string) => void warnings.push(line) };
  return {
    heard,
    webhook: new ApprovalWebhook({ url, secret: 'of the operator', delay: 1, timeout: 2_000, log }),
  };
}

describe('the webhook of approvals', () => {
  it('names who asks, for what and until when, signed, without a value', async () => {
    const { heard, webhook } = await hook([204]);
    webhook.announce(opened);
    await expect.poll(() => heard.length).toBe(1);
    const { request, body } = heard[0] as (typeof heard)[number];
    expect(JSON.parse(body)).toEqual({
      type: 'approval.requested',
      id: 'case-1',
      tool: 'update_object',
      permission: 'write',
      agent: 'writer',
      tenant: 'acme',
      requested_at: '1970-01-01T00:00:00.000Z',
      expires_at: '1970-01-01T00:00:00.001Z',
    });
    const [, seconds, signature] =
      /^t=(\d+),v1=(\w+)$/.exec(String(request.headers[SIGNATURE_HEADER.toLowerCase()])) ?? [];
    expect(createHmac('sha256', 'of the operator').update(`${seconds}.${body}`).digest('hex')).toBe(
      signature,
    );
    await webhook.close();
    expect(warnings).toEqual([]);
  });

  it('is tried three times, follows no redirect, and then says so without its address', async () => {
    const { heard, webhook } = await hook([500, 302, 307, 204]);
    webhook.announce(opened);
    await expect.poll(() => warnings.length).toBe(1);
    expect(heard.map(({ request }) => request.url)).toEqual(Array(3).fill('/hook?key=SECRET-IN-URL'));
    expect(warnings[0]).toContain('case-1');
    expect(warnings[0]).toContain('answered 307');
    expect(warnings[0]).not.toContain('SECRET');
  });

  it('says so where nothing listens', async () => {
    const { webhook } = await hook([]);
    await new Promise((resolve) => servers.pop()?.close(resolve));
    webhook.announce(opened);
    await expect.poll(() => warnings.length).toBe(1);
    expect(warnings[0]).toContain('ECONNREFUSED');
    expect(warnings[0]).not.toContain('SECRET');
  });

  it('is given up when the service ends', async () => {
    const { heard, webhook } = await hook([null]);
    webhook.announce(opened);
    await expect.poll(() => heard.length).toBe(1);
    await webhook.close();
    expect(warnings).toEqual([]);
  });

  it('drops what is too much at once, of one requester before it can be too much of all', async () => {
    const { webhook } = await hook([]);
    const announce = (principal: string, id: string) =>
      webhook.announce({ ...opened, id, requester: { ...opened.requester, principal } });
    for (let count = 0; count < 100; count++) announce('key:1', `own-${count}`);
    expect(warnings).toHaveLength(75);
    for (const principal of ['key:2', 'key:3', 'key:4'])
      for (let count = 0; count < 25; count++) announce(principal, `${principal}-${count}`);
    expect(warnings).toHaveLength(75);
    announce('key:5', 'last');
    expect(warnings.at(-1)).toContain('last is not announced: too many');
    await webhook.close();
  });
});
