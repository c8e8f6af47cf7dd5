import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Caller, createTestingApplication, type TestingApplication } from '@parley/testing';
import { POSTS_SEED, POSTS_POLICY } from '../../fixtures/posts.fixture.js';

const [post, ...others] = POSTS_SEED.schemas;
const indexed = [{ ...post, indexes: { by_status: { orgId: 1, status: 1 } } }, ...others];
const { classes } = POSTS_POLICY;
const agents = { analyst: { tenantId: 'acme' } };

let app: TestingApplication;
let unscoped: TestingApplication;
/** Only `Post` may be read whole. */
let joining: TestingApplication;
let analyst: Caller;
beforeAll(async () => {
  app = await createTestingApplication({
    seed: { ...POSTS_SEED, schemas: indexed },
    agents,
    policy: {
      unlistedClasses: 'allow',
      refuseCollscan: true,
      exposeExplain: true,
      classes: { ...classes, Author: { ...classes.Author, allowCollscan: true } },
    },
  });
  unscoped = await createTestingApplication({
    seed: POSTS_SEED,
    agents,
    policy: { unlistedClasses: 'allow', refuseCollscan: true },
  });
  joining = await createTestingApplication({
    seed: POSTS_SEED,
    agents,
    policy: { unlistedClasses: 'allow', refuseCollscan: true, classes: { Post: { allowCollscan: true } } },
  });
  analyst = unscoped.as('analyst');
});
afterAll(async () => {
  await app.close();
  await unscoped.close();
  await joining.close();
});

const where = { likes: { $gt: 3 } };

describe('with refuseCollscan', () => {
  it.each([
    ['a query that an index serves', { class_name: 'Post', where: { status: 'live' } }],
    ['a class that is exempt', { class_name: 'Author', where: { name: 'Ann' } }],
  ])('%s runs', async (_, args) => {
    expect((await app.as('analyst').call('query_class', args)).record.success).toBe(true);
  });

  it.each<[string, object]>([
    ['query_class', { where }],
    ['query_class', { where, order: 'objectId' }],
    ['query_class', { format: 'csv' }],
    ['query_class', {}],
    ['count_objects', { where }],
    ['count_objects', {}],
    ['export_data', { where }],
    ['export_data', {}],
    ['export_data', { where, delivery: 'resource' }],
    ['export_data', { delivery: 'resource' }],
    ['export_data', { pipeline: [{ $match: where }] }],
    ['export_data', { pipeline: [{ $project: { title: 1 } }] }],
    ['group_by', { field: 'status' }],
    ['aggregate', { pipeline: [{ $match: where }, { $limit: 1 }] }],
    ['group_by', { field: 'status', where }],
    ['group_by_date', { field: 'createdAt', interval: 'day', where }],
    ['distinct', { field: 'status', where }],
  ])('%s that reads the whole collection is refused, and says how to ask better: %j', async (tool, args) => {
    const call = { class_name: 'Post', ...args };
    const refusal = await analyst.expectRefused('security_blocked', 'collscan', tool, call);
    const body = JSON.parse(refusal.text) as Record<string, unknown>;
    expect(body).toMatchObject({
      success: false,
      error_code: 'security_blocked',
      refused: true,
      reason: 'COLLSCAN on Post',
    });
    expect(body['suggestion']).toMatch(/index/);
    expect(body).not.toHaveProperty('winning_plan');
  });

  const author = { from: 'Author', as: 'joined' };
  it.each<[string, object]>([
    ['aggregate', { pipeline: [{ $unionWith: { coll: 'Author' } }] }],
    ['aggregate', { pipeline: [{ $lookup: { ...author, pipeline: [{ $group: { _id: '$name' } }] } }] }],
    ['aggregate', { pipeline: [{ $lookup: { ...author, localField: 'title', foreignField: 'name' } }] }],
    [
      'aggregate',
      {
        pipeline: [
          { $facet: { one: [{ $lookup: { ...author, localField: 'title', foreignField: 'name' } }] } },
        ],
      },
    ],
    [
      'aggregate',
      {
        pipeline: [
          {
            $graphLookup: {
              ...author,
              startWith: '$title',
              connectFromField: 'name',
              connectToField: 'name',
            },
          },
        ],
      },
    ],
    ['query_class', { where: { author: { $inQuery: { className: 'Author', where: { bio: 'x' } } } } }],
  ])('%s that reads the whole collection of another class is refused: %j', async (tool, args) => {
    const call = { class_name: 'Post', ...args };
    const refusal = await joining.as('analyst').expectRefused('security_blocked', 'collscan', tool, call);
    expect(refusal.text).toContain('COLLSCAN on Author');
  });

  it.each<[string, object]>([
    ['aggregate', { pipeline: [{ $lookup: { ...author, localField: 'author', foreignField: 'objectId' } }] }],
    [
      'aggregate',
      { pipeline: [{ $unionWith: { coll: 'Author', pipeline: [{ $match: { objectId: 'a1' } }] } }] },
    ],
    ['query_class', { where: { author: { $inQuery: { className: 'Author', where: { objectId: 'a1' } } } } }],
    ['query_class', { include: ['author'] }],
  ])('%s that reads another class along an index runs: %j', async (tool, args) => {
    const { record } = await joining.as('analyst').call(tool, { class_name: 'Post', ...args });
    expect(record.success).toBe(true);
  });

  it.each<[string, object]>([
    ['query_class', { order: 'objectId' }],
    ['group_by', { field: 'status', where, dry_run: true }],
    ['get_sample_objects', {}],
    ['get_object', { object_id: 'p01' }],
    ['explain_query', { where }],
  ])('%s that reads along an index, few rows, or none, runs: %j', async (tool, args) => {
    expect((await analyst.call(tool, { class_name: 'Post', ...args })).record.success).toBe(true);
  });
});
