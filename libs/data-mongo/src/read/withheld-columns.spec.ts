import type { Document } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, McpRequest, Refused } from '#core';
import { CachedPrincipalDirectory, GovernedRecordsSource, PrincipalResolver } from '#data';
import { PATIENT } from '#data/contracts';
import { AgentScopes, type ClassConfig, compilePolicy, Policies } from '#policy';
import { MongoPrincipalDirectory } from '../identity/mongo-principal-directory.js';
import { TestDatabase } from '../test-database.contract.js';

class NotedRequest extends McpRequest {
  readonly notes: string[] = [];

  override get note() {
    return (text: string) => void this.notes.push(text);
  }
}

/** What the rows that are withheld hold in each of two worlds, beside what both have. */
const WITHHELD: readonly Document[] = [
  { merger: 5, due: new Date(5), address: { plan: 5 }, kept: { a: 1 } },
  { merger: 'x', offer: ['y'] },
];
const VISIBLE: readonly Document[] = [
  { shop: 'acme', name: 'a', rank: 3, address: { city: 'C' } },
  { shop: 'acme', name: 'b', rank: 4, due: '2024-01-01' },
];

const NOTE: ClassConfig = { storage: 'plain', collection: 'notes', id: 'number', timestamps: null };

/** Rules that limit the rows of one class. */
const RULES: Readonly<Record<string, ClassConfig>> = {
  tenantScope: { tenantScope: { field: 'shop' } },
  filters: { filters: { shop: { $ne: 'other' } } },
};

const CONDITIONS: readonly Record<string, unknown>[] = [
  { merger: 'x' },
  { merger: 5 },
  { merger: '2024-01-01' },
  { due: 'x' },
  { due: { $gte: '2024-01-01' } },
  { 'address.plan': 'x' },
  { offer: 'y' },
  { kept: { a: 2 } },
];

describe('columns that only withheld rows have', PATIENT, () => {
  let database: TestDatabase;
  let stores: ReturnType<TestDatabase['openDeclared']>[];
  beforeAll(async () => {
    database = await TestDatabase.start();
    stores = WITHHELD.map(() =>
      database.openDeclared({
        parse: new Set(),
        plain: [
          { className: 'Note', collection: 'notes', id: 'number', timestamps: null, properties: new Map() },
        ],
      }),
    );
    for (const [at, { connection }] of stores.entries()) {
      const rows = [...VISIBLE, { shop: 'other', ...WITHHELD[at] }].map((row, _id) => ({ _id, ...row }));
      await connection.db.collection<{ _id: number }>('notes').insertMany(rows);
    }
  });
  afterAll(async () => {
    for (const store of stores) await store.close();
    await database.stop();
  });

  async function answer(store: (typeof stores)[number], rules: ClassConfig, ask: (typeof ASKED)[number]) {
    const records = new GovernedRecordsSource(
      new AgentScopes(new Policies(compilePolicy({ classes: { Note: { ...NOTE, ...rules } } }).policy)),
      store.reader,
      store.catalogue,
      new PrincipalResolver(new CachedPrincipalDirectory(new MongoPrincipalDirectory(store.connection))),
    );
    const definition = compileAgentDefinition('asker', {});
    const request = new NotedRequest(new Agent({ definition, principal: 'ada', tenantId: 'acme' }));
    try {
      return [await ask(records.for(request)), request.notes];
    } catch (error) {
      if (error instanceof Refused) return error.refusal.message;
      throw error;
    }
  }

  const ASKED = [
    async (records: ReturnType<GovernedRecordsSource['for']>) => {
      const { fields, schema } = await records.describe('Note');
      return [fields, [...schema.fields]];
    },
    ...CONDITIONS.flatMap((where) => [
      (records: ReturnType<GovernedRecordsSource['for']>) =>
        records.page('Note', { where, order: 'objectId' }) as Promise<unknown>,
      (records: ReturnType<GovernedRecordsSource['for']>) =>
        records.aggregate('Note', [{ $match: where }, { $sort: { _id: 1 } }]) as Promise<unknown>,
    ]),
    ...['merger', 'due', 'offer'].map(
      (name) => (records: ReturnType<GovernedRecordsSource['for']>) =>
        records.aggregate('Note', [
          { $match: { $expr: { $eq: [`$${name}`, 'x'] } } },
          { $group: { _id: null, n: { $sum: `$${name}` } } },
        ]) as Promise<unknown>,
    ),
  ];

  it.each(Object.keys(RULES))('change no answer where %s limits the rows', async (rule) => {
    const [one, other] = stores as [(typeof stores)[number], (typeof stores)[number]];
    for (const ask of ASKED)
      expect(await answer(one, RULES[rule] ?? {}, ask)).toEqual(await answer(other, RULES[rule] ?? {}, ask));
  });

  it('are listed for an agent that reads every row', async () => {
    const [one] = stores as [(typeof stores)[number]];
    const described = await answer(one, {}, ASKED[0] as (typeof ASKED)[number]);
    expect(JSON.stringify(described)).toContain('merger');
  });
});
