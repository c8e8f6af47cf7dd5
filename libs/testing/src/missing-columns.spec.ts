import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestingApplication } from './create-testing-application.js';
import type { TestingApplication } from './testing-application.js';

let app: TestingApplication;
beforeAll(async () => {
  app = await createTestingApplication({
    seed: {
      schemas: [{ className: 'Song', fields: { title: { type: 'String' }, plays: { type: 'Number' } } }],
      objects: { Song: [{ objectId: 's1', title: 'Tea', plays: 3 }] },
    },
    policy: { unlistedClasses: 'allow' },
    agents: { clerk: {} },
  });
});
afterAll(() => app.close());

const ask = async (tool: string, args: object) => {
  const { data } = await app.as('clerk').call(tool, { class_name: 'Song', ...args });
  return (data as { note?: string }).note;
};

describe('A name that means no column', () => {
  it.each<[string, object]>([
    ['query_class', { where: { titel: 'Tea' } }],
    ['query_class', { where: { $or: [{ 'titel.x': 1 }, { plays: 3 }] } }],
    ['query_class', { order: '-titel' }],
    ['query_class', { keys: ['titel', 'plays'] }],
    ['get_object', { object_id: 's1', keys: ['titel'] }],
    ['count_objects', { where: { titel: { $exists: true } } }],
    ['group_by', { field: 'titel' }],
    ['group_by', { field: 'title', operation: 'sum', value_field: 'titel' }],
    ['group_by_date', { field: 'titel', interval: 'day' }],
    ['distinct', { field: 'titel' }],
    ['aggregate', { pipeline: [{ $group: { _id: '$titel' } }] }],
    ['aggregate', { pipeline: [{ $match: { plays: 3 } }, { $sort: { titel: 1 } }] }],
    ['export_data', { keys: ['titel', 'plays'] }],
  ])('is noted in the answer of %s %j', async (tool, args) => {
    expect(await ask(tool, args)).toMatch(/^class 'Song' has no field 'titel'/);
  });

  it.each<[string, object]>([
    ['query_class', { where: { title: 'Tea', objectId: 's1' }, order: '-createdAt,plays', keys: ['title'] }],
    ['aggregate', { pipeline: [{ $addFields: { titel: '$title' } }, { $match: { titel: 'Tea' } }] }],
    ['aggregate', { pipeline: [{ $match: { _created_at: { $gt: '2020-01-01' } } }, { $sort: { _id: 1 } }] }],
  ])('is none of those in %s %j', async (tool, args) => {
    expect(await ask(tool, args)).toBeUndefined();
  });
});
