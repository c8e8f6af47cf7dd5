import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Identity, MASTER } from '#core';
import { CachedPrincipalDirectory, GovernedRecordsSource, PrincipalResolver, type RecordReader } from '#data';
import {
  ExtendedJsonPipelines,
  MongoPrincipalDirectory,
  MongoRecordReader,
  MongoSchemaCatalogue,
} from '#data-mongo';
import {
  MASTER_KEY,
  type ParseCredentials,
  ParsePrincipalDirectory,
  ParseRecordReader,
  RoutedRecordReader,
  SessionRecheck,
} from '#data-parse';
import { AgentScopes, Policies, compilePolicy } from '#policy';
import { SeededRandom } from '../../support/oracle/seeded-random.js';
import { type Answer, askParley, sessionOf } from '../../support/oracle/rights-answers.js';
import { askSomething, type Question } from '../../support/oracle/rights-questions.js';
import { makeWorld, type World } from '../../support/oracle/rights-world.js';
import { ParseUnderTest } from '../../support/parse-under-test.js';

const CASES = Number(process.env['ROUTE_CASES'] ?? 80);
const SEED = Number(process.env['ORACLE_SEED'] ?? Math.floor(Math.random() * 1_000_000_000));

const random = new SeededRandom(SEED);
let parse: ParseUnderTest;
let world: World;
let direct: GovernedRecordsSource;
let routed: GovernedRecordsSource;
/** Requests that went to Parse Server, by whose rights they carried. */
const asked = { master: 0, session: 0 };

/** The same reader, counted. */
function counted(reader: RecordReader, { kind }: ParseCredentials): RecordReader {
  return new Proxy(reader, {
    get(target, name, receiver) {
      if (name === 'find' || name === 'count') asked[kind] += 1;
      return Reflect.get(target, name, receiver) as unknown;
    },
  });
}

beforeAll(async () => {
  parse = await ParseUnderTest.start();
  world = makeWorld(random, 12);
  await parse.fill(JSON.parse(JSON.stringify(world.seed)));
  const connection = parse.connection();
  const catalogue = new MongoSchemaCatalogue(parse.database);
  const mongo = new MongoRecordReader(parse.database, catalogue);
  const pipelines = new ExtendedJsonPipelines(catalogue);
  const rest = (credentials: ParseCredentials) =>
    counted(new ParseRecordReader({ connection, credentials, catalogue, pipelines }), credentials);
  const asks = new ParsePrincipalDirectory(connection);
  const directory = new CachedPrincipalDirectory(asks);
  const sessions = new SessionRecheck(asks, directory);
  const scopes = new AgentScopes(new Policies(compilePolicy({}).policy));
  direct = new GovernedRecordsSource(
    scopes,
    mongo,
    catalogue,
    new PrincipalResolver(new MongoPrincipalDirectory(parse.database)),
  );
  routed = new GovernedRecordsSource(
    scopes,
    new RoutedRecordReader({ direct: mongo, restMaster: rest(MASTER_KEY), rest, sessions }),
    catalogue,
    new PrincipalResolver(directory),
  );
}, 120_000);
afterAll(() => parse?.stop());

const byId = (rows: readonly Record<string, unknown>[]) =>
  [...rows].sort((left, right) => (String(left['objectId']) < String(right['objectId']) ? -1 : 1));

/** Order counts only where one was asked for that no two rows share; how a refusal is worded never does. */
function comparable(answer: Answer, question: Question): unknown {
  if (answer.kind === 'refused') return 'refused';
  if (answer.kind !== 'rows') return answer;
  const total = question.kind === 'find' && /^-?(objectId|rank)$/.test(question.order ?? '');
  return total ? answer : byId(answer.rows);
}

async function compare(identity: Identity, user: string): Promise<Answer['kind']> {
  const question = askSomething(random, world);
  const context = JSON.stringify({ seed: SEED, user, question });
  const ours = await askParley(direct, identity, question);
  const theirs = await askParley(routed, identity, question);
  expect({ context, answer: comparable(theirs, question) }).toEqual({
    context,
    answer: comparable(ours, question),
  });
  return ours.kind;
}

describe(`both routes (seed ${SEED})`, () => {
  it('show a session the same rows and fields', { timeout: 60_000 + CASES * 300 }, async () => {
    const seen = new Set<string>();
    for (let index = 0; index < CASES; index += 1) {
      const user = random.pick(world.users);
      seen.add(await compare(sessionOf(user.session), user.id));
    }
    // A world in which nothing happens, or one way is never taken, would prove nothing.
    expect([...seen].sort()).toEqual(expect.arrayContaining(['refused', 'rows']));
    expect(asked.session).toBeGreaterThan(CASES / 8);
  });

  it('show the master key the same rows and fields', { timeout: 60_000 + CASES * 300 }, async () => {
    const before = asked.master;
    for (let index = 0; index < CASES / 2; index += 1) await compare(MASTER, 'master');
    expect(asked.master - before).toBeGreaterThanOrEqual(CASES / 2);
  });
});
