import { beforeAll, describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, MASTER, Refused, McpRequest } from '#core';
import { CachedPrincipalDirectory, GovernedRecordsSource, PrincipalResolver, type RecordReader } from '#data';
import {
  ExtendedJsonPipelines,
  MongoPrincipalDirectory,
  MongoRecordReader,
  MongoSchemaCatalogue,
} from '#data-mongo';
import { MASTER_KEY, ParseRecordReader } from '#data-parse';
import { AgentScopes, compilePolicy, Policies } from '#policy';
import { PIPELINE_ROWS, randomPipeline } from '../../support/oracle/pipeline-questions.js';
import { SeededRandom } from '../../support/oracle/seeded-random.js';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, startService } from '../../support/service.js';

const CASES = Number(process.env['ROUTE_CASES'] ?? 120);
const SEED = Number(process.env['ORACLE_SEED'] ?? Math.floor(Math.random() * 1_000_000_000));

const random = new SeededRandom(SEED);
let parse: ParseUnderTest;
let direct: GovernedRecordsSource;
let rest: GovernedRecordsSource;

beforeAll(async () => {
  parse = await ParseUnderTest.start();
  await parse.fill(PIPELINE_ROWS);
  const catalogue = new MongoSchemaCatalogue(parse.database);
  const scopes = new AgentScopes(new Policies(compilePolicy({ unlistedClasses: 'allow' }).policy));
  const directory = new CachedPrincipalDirectory(new MongoPrincipalDirectory(parse.database));
  const source = (reader: RecordReader) =>
    new GovernedRecordsSource(scopes, reader, catalogue, new PrincipalResolver(directory));
  const pipelines = new ExtendedJsonPipelines(catalogue);
  const connection = parse.connection();
  direct = source(new MongoRecordReader(parse.database, catalogue));
  rest = source(new ParseRecordReader({ connection, credentials: MASTER_KEY, catalogue, pipelines }));
}, 120_000);

const definition = compileAgentDefinition('oracle', { rateLimit: 1_000_000 });
const agent = new Agent({ definition, identity: MASTER, principal: 'oracle' });

async function answer(source: GovernedRecordsSource, pipeline: readonly object[]): Promise<unknown> {
  const { signal } = new AbortController();
  try {
    const { rows } = await source.for(new McpRequest(agent, { signal })).aggregate('Task', pipeline);
    const shown = rows.map((row) => JSON.stringify(row));
    return '$sort' in (pipeline.at(-1) ?? {}) ? shown : shown.sort();
  } catch (error) {
    if (error instanceof Refused) return 'refused';
    throw error;
  }
}

// Another try would ask other questions.
describe(`pipelines on both routes (seed ${SEED})`, { retry: 0 }, () => {
  it('find the same through Parse Server as in MongoDB', { timeout: 60_000 + CASES * 300 }, async () => {
    const made = { answered: 0, rows: 0, nullsBelowGroup: 0, datesBelowGroup: 0, patterns: 0 };
    for (let index = 0; index < CASES; index += 1) {
      const pipeline = randomPipeline(random);
      const asked = JSON.stringify(pipeline);
      const ours = await answer(direct, pipeline);
      expect({ asked, answer: await answer(rest, pipeline) }).toEqual({ asked, answer: ours });
      const group = JSON.stringify(pipeline.filter((stage) => '$group' in stage));
      if (ours !== 'refused') made.answered += 1;
      if (Array.isArray(ours)) made.rows += ours.length;
      if (group.includes('null')) made.nullsBelowGroup += 1;
      if (/"due"[^{]*"\d{4}-|"\$due",("|\{"__type":"Date)/.test(group)) made.datesBelowGroup += 1;
      if (asked.includes('$regex')) made.patterns += 1;
    }
    // A generator that makes none of them would prove nothing.
    expect(made.answered).toBeGreaterThan(CASES / 2);
    expect(made.rows).toBeGreaterThan(CASES);
    expect(made.nullsBelowGroup).toBeGreaterThan(CASES / 10);
    expect(made.datesBelowGroup).toBeGreaterThan(CASES / 10);
    expect(made.patterns).toBeGreaterThan(CASES / 10);
  });

  it('make dates of a column that some rows lack, and count the same in every tool', async () => {
    const service = await startService({
      config: {
        policy: { unlistedClasses: 'allow' },
        parse: parse.config,
        database: { uri: parse.databaseUri, name: parse.databaseName },
      },
    });
    try {
      const byMonth = { class_name: 'Task', field: 'due', interval: 'month' };
      const { data, isError } = await callTool(service, 'group_by_date', byMonth);
      expect(isError).toBe(false);
      expect(JSON.stringify(data)).toContain('2024-01');
      const isNull = (field: string) => ({ $sum: { $cond: [{ $eq: [`$${field}`, null] }, 1, 0] } });
      const late = { $sum: { $cond: [{ $gt: ['$due', '2024-03-15T00:00:00.000Z'] }, 1, 0] } };
      const args = {
        class_name: 'Task',
        pipeline: [{ $group: { _id: null, late, nulls: isNull('count') } }],
      };
      const direct = await callTool(service, 'aggregate', args);
      const throughParse = await callTool(service, 'export_data', args);
      const [{ late: dues, nulls } = {}] = direct.data['results'] as Record<string, unknown>[];
      expect(Number(dues)).toBeGreaterThan(0);
      expect(Number(nulls)).toBeGreaterThan(0);
      expect(throughParse.wire).toContain(`,${String(dues)},${String(nulls)}`);
    } finally {
      await service.stop();
    }
  });
});
