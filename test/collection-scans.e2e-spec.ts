import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, type Service, startService } from './service.js';
import { NEWSROOM, NEWSROOM_CONFIG, NEWSROOM_POLICY } from './seeds.js';

let service: Service;
beforeAll(async () => {
  const [post, ...others] = NEWSROOM.schemas;
  service = await startService({
    seed: { ...NEWSROOM, schemas: [{ ...post, indexes: { by_status: { orgId: 1, status: 1 } } }, ...others] },
    config: {
      ...NEWSROOM_CONFIG,
      policy: {
        ...NEWSROOM_POLICY,
        refuseCollscan: true,
        exposeExplain: true,
        classes: {
          ...NEWSROOM_POLICY.classes,
          Author: { ...NEWSROOM_POLICY.classes.Author, allowCollscan: true },
        },
      },
    },
  });
});
afterAll(() => service.stop());

describe('with refuseCollscan', () => {
  it('a query that an index serves runs', async () => {
    const answer = await callTool(service, 'query_class', { class_name: 'Post', where: { status: 'live' } });
    expect(answer.isError).toBe(false);
  });

  it('a class that is exempt runs', async () => {
    expect(
      (await callTool(service, 'query_class', { class_name: 'Author', where: { name: 'Ann' } })).isError,
    ).toBe(false);
  });

  it('a query that reads the whole collection is refused, and says how to ask better', async () => {
    const unscoped = await startService({
      seed: NEWSROOM,
      config: {
        ...NEWSROOM_CONFIG,
        policy: { refuseCollscan: true },
      },
    });
    const where = { likes: { $gt: 3 } };
    for (const [tool, args] of [
      ['query_class', { where }],
      ['aggregate', { pipeline: [{ $match: where }, { $limit: 1 }] }],
      ['group_by', { field: 'status', where }],
      ['group_by_date', { field: 'createdAt', interval: 'day', where }],
      ['distinct', { field: 'status', where }],
    ] as const) {
      const answer = await callTool(unscoped, tool, { class_name: 'Post', ...args });
      expect(answer).toMatchObject({ isError: true, code: 'security_blocked' });
      const body = JSON.parse(answer.text);
      expect(body).toMatchObject({
        success: false,
        error_code: 'security_blocked',
        refused: true,
        reason: 'COLLSCAN on Post',
      });
      expect(body.suggestion).toMatch(/index/);
      expect(body).not.toHaveProperty('winning_plan');
    }
    // What asks nothing, is meant to read much, or reads nothing runs.
    for (const [tool, args] of [
      ['query_class', {}],
      ['count_objects', { where }],
      ['group_by', { field: 'status' }],
      ['group_by', { field: 'status', where, dry_run: true }],
      ['get_sample_objects', {}],
      ['export_data', { where }],
      ['export_data', { pipeline: [{ $match: where }] }],
      ['explain_query', { where }],
    ] as const) {
      expect((await callTool(unscoped, tool, { class_name: 'Post', ...args })).isError).toBe(false);
    }
    await unscoped.stop();
  });
});
