import 'reflect-metadata';
import { Inject, Injectable } from '@nestjs/common';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';

import { SubAgents } from '#dispatcher';
import { Tool, type ToolCall, ToolRunner } from '#tools';
import { loadConfig } from '#config';
import { openDatabase, type OpenDatabase } from '#parley/instance';
import { startHttpService } from '../../../src/http-service.js';
import { callModern } from '../../support/modern-call.js';
import { callTool } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

type Arguments = Readonly<Record<string, unknown>>;

/** Tools of an application that call tools and ask questions. */
@Injectable()
class Delegating {
  constructor(
    @Inject(ToolRunner) private readonly runner: ToolRunner,
    @Inject(SubAgents) private readonly agents: SubAgents,
  ) {}

  @Tool({ name: 'rename_by_sub_agent', description: 'd', input: { type: 'object' } })
  async rename({ title }: Arguments, call: ToolCall) {
    const inner = await this.agents.delegate(call, { permissions: 'write' });
    const args = { class_name: 'Post', object_id: 'p1', fields: { title } };
    const outcome = await this.runner.run('update_object', args, inner);
    return outcome.ok ? { renamed: true } : { renamed: false, why: outcome.refusal.message };
  }

  @Tool({
    name: 'rename_as_asked',
    description: 'd',
    permission: 'write',
    needs: ['rows'],
    input: { type: 'object' },
  })
  async ask(_: Arguments, call: ToolCall & { writes: { update(...args: unknown[]): Promise<unknown> } }) {
    const answer = await call.ask('title', {
      kind: 'form',
      message: 'Which title?',
      schema: { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] },
    });
    if (answer.action !== 'accept') return { renamed: false };
    await call.writes.update('Post', 'p2', { title: answer.content['title'] });
    return { renamed: true };
  }
}

let service: { url: string; close(): Promise<void> };
let database: OpenDatabase;
const folder = makeFolder('approvals');
beforeAll(async () => {
  const seed = {
    schemas: [{ className: 'Post', fields: { title: { type: 'String' } } }],
    objects: { Post: ['p1', 'p2'].map((objectId) => ({ objectId, title: 'old' })) },
  };
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(seed));
  const config = {
    server: { port: 0 },
    database: { uri: 'embedded', seed: './seed.json' },
    agents: { writer: { permissions: 'write', rateLimit: 1_000_000 } },
    policy: { unlistedClasses: 'allow', classes: { Post: {} }, requireApprovalFor: ['write'] },
  };
  writeFileSync(join(folder, 'parley.yaml'), stringify(config));
  const env = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' };
  const loaded = loadConfig(env, folder);
  database = await openDatabase(loaded.config);
  service = await startHttpService(loaded, database.connection, env, [Delegating]);
}, 60_000);
afterAll(async () => {
  await service.close();
  await database.close();
});

const titleOf = async (objectId: string) =>
  (await callTool(service, 'get_object', { class_name: 'Post', object_id: objectId })).data['object'] as {
    title: string;
  };
const yes = { action: 'accept', content: { approve: true } };

describe('approval of what a call runs in turn', () => {
  it('is requested for a sub-agent as for its parent, under a key of its own, and serves once', async () => {
    const args = { title: 'renamed' };
    const { result, requestState } = await callModern(service, 'rename_by_sub_agent', args);
    const keys = Object.keys((result?.['inputRequests'] ?? {}) as object);
    expect(keys).toEqual([expect.stringMatching(/^approve\.[\w-]{12}\.1$/)]);
    const own = await callModern(service, 'rename_by_sub_agent', args, {
      requestState,
      inputResponses: { approve: yes },
    });
    expect(own.result).toMatchObject({ resultType: 'input_required' });
    expect((await titleOf('p1')).title).toBe('old');
    const inputResponses = { [keys[0] as string]: yes };
    const done = await callModern(service, 'rename_by_sub_agent', args, { requestState, inputResponses });
    expect(done.text).toContain('\\"renamed\\":true');
    expect((await titleOf('p1')).title).toBe('renamed');
  });

  it('is refused to a sub-agent whose client cannot be asked', async () => {
    const answer = await callTool(service, 'rename_by_sub_agent', { title: 'never' });
    expect(answer.text).toContain('approval required but');
    expect((await titleOf('p1')).title).not.toBe('never');
  });

  it('holds while the approved call asks a question of its own, and the write happens once', async () => {
    const first = await callModern(service, 'rename_as_asked', {});
    expect(Object.keys((first.result?.['inputRequests'] ?? {}) as object)).toEqual(['approve']);
    const second = await callModern(
      service,
      'rename_as_asked',
      {},
      {
        requestState: first.requestState,
        inputResponses: { approve: yes },
      },
    );
    expect(Object.keys((second.result?.['inputRequests'] ?? {}) as object)).toEqual(['title']);
    const more = {
      requestState: second.requestState,
      inputResponses: { title: { action: 'accept', content: { title: 'as asked' } } },
    };
    expect((await callModern(service, 'rename_as_asked', {}, more)).result).toMatchObject({ isError: false });
    expect((await titleOf('p2')).title).toBe('as asked');
    const replayed = await callModern(service, 'rename_as_asked', {}, more);
    expect(replayed.body.error).toEqual({ code: -32602, message: 'Invalid or expired requestState' });
  });
});
