import 'reflect-metadata';
import {
  All,
  Body,
  Controller,
  type INestApplication,
  Post,
  Req,
  UploadedFile,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { ExpressAdapter, FileInterceptor } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import type { IncomingMessage } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ParleyGuard, ParleyModule, type ParleyModuleOptions, RequirePermission } from '@parley/server';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { startDatabase } from '../../support/service.js';

const posts = await startDatabase(POSTS_SEED);

const OPTIONS: ParleyModuleOptions = {
  database: { uri: posts.uri },
  policy: { ...POSTS_POLICY, requireApprovalFor: ['write'] },
  approvals: { mode: 'desk', approvers: ['chief'] },
  agents: {
    writer: { permissions: 'write' },
    // It asks for the list of cases again and again.
    chief: { permissions: 'admin', rateLimit: 10_000 },
  },
  gates: {
    PARSE_AGENT_ALLOW_WRITE_TOOLS: true,
    PARSE_AGENT_ALLOW_SCHEMA_OPS: false,
    PARSE_AGENT_ALLOW_RAW_CRUD: false,
    PARSE_AGENT_ALLOW_RAW_SCHEMA: false,
  },
  auth: ['writer', 'chief'].map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
};
const as = (agent: string) => ({ 'X-MCP-API-Key': `key-of-${agent}` });

/** What the handlers of the routes received. */
let ran: string[];

@Controller('imports')
@UseGuards(ParleyGuard)
@RequirePermission('write')
class ImportsController {
  @Post('json')
  json(@Body() body: object) {
    ran.push(JSON.stringify(body));
  }

  /** One method of the controller, and several requests that differ in nothing that a parser reads. */
  @All(['items', 'all-items'])
  any(@Req() { method, url }: IncomingMessage) {
    ran.push(`${method} ${url}`);
  }

  @Post('stream')
  async stream(@Req() request: IncomingMessage & { raw?: IncomingMessage }) {
    let text = '';
    for await (const chunk of request.raw ?? request) text += String(chunk);
    ran.push(text);
  }
}

/** What `keepText` read. */
type Kept = IncomingMessage & { kept?: string };

/** Reads a body before any parser, and not into `body`. */
function keepText(request: Kept, _: unknown, next: () => void): void {
  request.kept = '';
  request.on('data', (chunk: Buffer) => (request.kept += String(chunk))).on('end', next);
}

@Controller('imports')
@UseGuards(ParleyGuard)
@RequirePermission('write')
class UploadsController {
  @Post('kept')
  kept(@Req() { kept }: Kept) {
    ran.push(String(kept));
  }

  @Post('file')
  @UseInterceptors(FileInterceptor('file'))
  file(@UploadedFile() file: { readonly buffer: Buffer }) {
    ran.push(String(file.buffer));
  }
}

function toForm(text: string): FormData {
  const form = new FormData();
  form.set('file', new Blob([text]), 'rows.csv');
  return form;
}

interface Sent {
  readonly method?: string;
  readonly body?: string | FormData;
  readonly headers?: Record<string, string>;
}
const FILE = ['file', 'multipart/form-data', (text: string): Sent => ({ body: toForm(text) })] as const;
const STREAM = [
  'stream',
  'application/x-ndjson',
  (text: string): Sent => ({ body: text, headers: { 'Content-Type': 'application/x-ndjson' } }),
] as const;

const KEPT = [
  'kept',
  'application/octet-stream',
  (text: string): Sent => ({ body: text, headers: { 'Content-Type': 'application/octet-stream' } }),
] as const;

function createExpress(): ExpressAdapter {
  const adapter = new ExpressAdapter();
  adapter.use('/imports/kept', keepText);
  return adapter;
}

function createFastify(): FastifyAdapter {
  const adapter = new FastifyAdapter();
  // As a plugin for uploads does: the handler reads.
  adapter
    .getInstance()
    .addContentTypeParser('application/x-ndjson', (_: unknown, __: unknown, done: (error: null) => void) =>
      done(null),
    );
  return adapter;
}

describe.each([
  ['Express', createExpress, [ImportsController, UploadsController], [FILE, STREAM, KEPT]],
  ['Fastify', createFastify, [ImportsController], [STREAM]],
] as const)('a route that needs an approval, on %s', (_, adapter, controllers, unread) => {
  let app: INestApplication;
  let origin: string;
  const waiting = new AbortController();
  beforeAll(async () => {
    const builder = Test.createTestingModule({
      imports: [ParleyModule.forRoot(OPTIONS)],
      controllers: [...controllers],
    });
    app = (await builder.compile()).createNestApplication(adapter() as never, { logger: false });
    await app.listen(0, '127.0.0.1');
    origin = await app.getUrl();
  });
  afterAll(async () => {
    waiting.abort();
    await app.close();
  });
  beforeEach(() => void (ran = []));
  afterEach(async () => {
    for (const id of await listPending()) await decide(id, 'deny');
  });

  const send = (path: string, { body, headers, method = 'POST' }: Sent, signal = waiting.signal) =>
    fetch(`${origin}/imports/${path}`, {
      method,
      headers: { ...as('writer'), ...headers },
      body,
      signal,
    }).then(
      ({ status }) => status,
      () => 'gone',
    );
  const ask = async (path = '', body?: object) => {
    const answer = await fetch(`${origin}/mcp/approvals${path}`, {
      headers: { ...as('chief'), 'Content-Type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    return (await answer.json()) as Record<string, unknown> & {
      readonly preview: { readonly args: { readonly unread_body?: object } };
    };
  };
  const listPending = async () => {
    const { approvals } = (await ask()) as unknown as { approvals: { id: string }[] };
    return approvals.map(({ id }) => id);
  };
  /** The only case that waits, once there is one. */
  const findCase = async () =>
    vi.waitFor(async () => {
      const [id, ...others] = await listPending();
      expect([typeof id, others]).toEqual(['string', []]);
      return String(id);
    });
  const decide = async (id: string, decision: 'approve' | 'deny') => {
    const { digest } = await ask(`/${id}`);
    expect(digest).toEqual(expect.any(String));
    return ask(`/${id}`, { decision, digest });
  };

  it('runs what was approved, and nothing else', async () => {
    const toSent = (title: string): Sent => ({
      body: JSON.stringify({ title }),
      headers: { 'Content-Type': 'application/json' },
    });
    const gone = new AbortController();
    const first = send('json', toSent('shown'), gone.signal);
    const shown = await findCase();
    expect((await ask(`/${shown}`)).preview.args).toEqual({
      request: 'POST /imports/json',
      body: { title: 'shown' },
    });
    gone.abort();
    await first;
    await decide(shown, 'approve');

    void send('json', toSent('another'));
    await findCase();
    expect(ran).toEqual([]);
    expect(await send('json', toSent('shown'))).toBe(201);
    expect(ran).toEqual(['{"title":"shown"}']);
  });

  it('runs it by the method and under the path that were shown', async () => {
    const gone = new AbortController();
    const first = send('items', { method: 'GET' }, gone.signal);
    const shown = await findCase();
    expect((await ask(`/${shown}`)).preview.args).toEqual({ request: 'GET /imports/items' });
    gone.abort();
    await first;
    await decide(shown, 'approve');
    for (const [method, path] of [
      ['DELETE', 'items'],
      ['GET', 'all-items'],
    ] as const) {
      void send(path, { method });
      await decide(await findCase(), 'deny');
    }
    expect(ran).toEqual([]);
    expect(await send('items', { method: 'GET' })).toBe(200);
    expect(ran).toEqual(['GET /imports/items']);
  });

  it.each(unread)(
    'says of a body that no parser read that it is not shown, and runs the approved request alone: %s',
    async (path, type, toSent) => {
      const gone = new AbortController();
      const first = send(path, toSent('harmless'), gone.signal);
      const shown = await findCase();
      expect((await ask(`/${shown}`)).preview.args.unread_body).toMatchObject({
        content_type: expect.stringContaining(type) as string,
      });
      gone.abort();
      await first;
      await decide(shown, 'approve');

      // Neither another body nor the same one has been approved.
      for (const text of ['another', 'harmless']) {
        const left = new AbortController();
        const again = send(path, toSent(text), left.signal);
        const other = await findCase();
        expect(other).not.toBe(shown);
        left.abort();
        await again;
        await decide(other, 'deny');
      }
      expect(ran).toEqual([]);

      const last = send(path, toSent('approved'));
      await decide(await findCase(), 'approve');
      expect(await last).toBe(201);
      expect(ran).toEqual(['approved']);
    },
  );
});
