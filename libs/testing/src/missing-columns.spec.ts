import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestingApplication } from './create-testing-application.js';
import type { TestingApplication } from './testing-application.js';

let app: TestingApplication;
beforeAll(async () => {
  app = await createTestingApplication({
    seed: {
      schemas: [
        {
          className: 'Song',
          fields: {
            title: { type: 'String' },
            plays: { type: 'Number' },
            band: { type: 'Pointer', targetClass: 'Band' },
          },
        },
        { className: 'Band', fields: { name: { type: 'String' }, debts: { type: 'Number' } } },
      ],
      objects: {
        Song: [
          {
            objectId: 's1',
            title: 'Tea',
            plays: 3,
            band: { __type: 'Pointer', className: 'Band', objectId: 'b1' },
          },
        ],
        Band: [{ objectId: 'b1', name: 'The Cups', debts: 5 }],
      },
    },
    policy: { unlistedClasses: 'allow', classes: { Band: { fields: ['name'] } } },
    agents: { clerk: {}, editor: { permissions: 'write' } },
    gates: 'open',
  });
});
afterAll(() => app.close());

const call = async (tool: string, args: object) =>
  (await app.as('clerk').call(tool, { class_name: 'Song', ...args })).data as {
    note?: string;
    output?: string;
  };
const ask = async (tool: string, args: object) => (await call(tool, args)).note;

describe('A write to a column that is not there', () => {
  const write = async (fields: object) => {
    const { data } = await app.as('editor').call('create_object', { class_name: 'Song', fields });
    return (data as { note?: string }).note;
  };

  it('says that it adds one, with the name that may have been meant, and once', async () => {
    expect(await write({ title: 'Milk' })).toBeUndefined();
    expect(await write({ titel: 'Milk' })).toBe(
      "class 'Song' had no field 'titel': the write adds it; did you mean 'title'?",
    );
    expect(await write({ titel: 'Sugar' })).toBeUndefined();
    await app.reset();
  });
});

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
    ['export_data', { columns: ['plays', { titel: 'Title' }] }],
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

  it.each<[string, object]>([
    ['query_class', { class_name: 'Band', keys: ['FIELD'] }],
    ['get_object', { class_name: 'Band', object_id: 'b1', keys: ['name', 'FIELD'] }],
    ['export_data', { class_name: 'Band', columns: ['FIELD', 'name'] }],
    ['query_class', { keys: ['title', 'band.FIELD'] }],
    ['query_class', { include: ['band'], keys: ['band.name', 'band.FIELD'] }],
    ['export_data', { columns: ['band.FIELD', 'band.name'] }],
  ])('is noted like a column that may not be read: %s %j', async (tool, args) => {
    const notes = await Promise.all(
      ['nmae', 'debts'].map(async (field) => {
        const note = await ask(tool, JSON.parse(JSON.stringify(args).replaceAll('FIELD', field)) as object);
        return note?.replaceAll(field, 'FIELD');
      }),
    );
    expect(notes[0]).toMatch(/^class 'Band' has no field 'FIELD' that you may read: get_schema lists them/);
    expect(notes[1]).toBe(notes[0]);
  });

  it.each(['titel', 'band.nmae', 'plays.titel'])(
    'beside a column of an export takes nothing from it: %s',
    async (wrong) => {
      const { output, note } = await call('export_data', { columns: ['title', 'band.name', wrong] });
      expect(output).toBe(`title,band.name,${wrong}\nTea,The Cups,""\n`);
      expect(note).toContain(`no row has a value for the columns '${wrong}'`);
    },
  );

  it('is noted where a pipeline makes no such column', async () => {
    const pipeline = [{ $group: { _id: '$title', n: { $sum: '$plays' } } }];
    expect(await ask('export_data', { pipeline, columns: ['n', 'total'] })).toBe(
      "no row has a value for the columns 'total'",
    );
  });
});

describe('The key of a group without a value', () => {
  it.each<[string, object]>([
    ['query_class', { where: { band: 'null' } }],
    ['count_objects', { where: { band: { $in: ['b1', 'null'] } } }],
    ['query_class', { where: { $or: [{ title: { $ne: 'null' } }] } }],
    ['aggregate', { pipeline: [{ $match: { band: 'null' } }] }],
    ['export_data', { where: { band: { $eq: 'null' } } }],
  ])('is noted where it comes back as a text: %s %j', async (tool, args) => {
    expect(await ask(tool, args)).toMatch(/is compared with the text "null": null without quotes finds rows/);
  });

  it('is found by null', async () => {
    const { data } = await app
      .as('clerk')
      .call('count_objects', { class_name: 'Song', where: { band: null } });
    expect(data).toEqual({ class_name: 'Song', count: 0, constraints: { band: null } });
  });
});
