import { beforeAll, describe, expect, it } from 'vitest';
import { type Identity, MASTER } from '#core';
import { CachedPrincipalDirectory, GovernedRecordsSource, PrincipalResolver, type ReadStore } from '#data';
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
  CachedSessionWatch,
  routedReads,
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
function counted(store: ReadStore, { kind }: ParseCredentials): ReadStore {
  return {
    run: (operation, context, caller) => {
      if (['find', 'findShown', 'count'].includes(operation.kind)) asked[kind] += 1;
      return store.run(operation, context, caller);
    },
  };
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
  const directory = new CachedPrincipalDirectory(new ParsePrincipalDirectory(connection));
  const sessions = new CachedSessionWatch(directory);
  const scopes = new AgentScopes(new Policies(compilePolicy({ unlistedClasses: 'allow' }).policy));
  direct = new GovernedRecordsSource(
    scopes,
    mongo,
    catalogue,
    new PrincipalResolver(new MongoPrincipalDirectory(parse.database)),
  );
  routed = new GovernedRecordsSource(
    scopes,
    routedReads({
      direct: mongo,
      restMaster: rest(MASTER_KEY),
      rest,
      sessions,
      readHooks: 'none',
    }),
    catalogue,
    new PrincipalResolver(directory),
  );
}, 120_000);

const byId = (rows: readonly Record<string, unknown>[]) =>
  [...rows].sort((left, right) => (String(left['objectId']) < String(right['objectId']) ? -1 : 1));

/** Order counts only where one was asked for that no two rows share; how a refusal is worded never does. */
function comparable(answer: Answer, question: Question): unknown {
  if (answer.kind === 'refused') return 'refused';
  if (answer.kind !== 'rows') return answer;
  const total = question.kind === 'find' && /^-?(objectId|rank)$/.test(question.order ?? '');
  return total ? answer : byId(answer.rows);
}

async function compare(
  identity: Identity,
  user: string,
  question = askSomething(random, world),
): Promise<Answer['kind']> {
  const context = JSON.stringify({ seed: SEED, user, question });
  const ours = await askParley(direct, identity, question);
  const theirs = await askParley(routed, identity, question);
  expect({ context, answer: comparable(theirs, question) }).toEqual({
    context,
    answer: comparable(ours, question),
  });
  return ours.kind;
}

/** The same question with further conditions, also on the column that pointer permissions use. */
function withMore(question: Question, user: string): Question {
  if (question.kind === 'get' || question.className === '_User') return question;
  const owned = (id: string) => ({ owner: { __type: 'Pointer', className: '_User', objectId: id } });
  const more = [
    owned(user),
    owned(random.pick(world.users).id),
    { $or: [owned(random.pick(world.users).id), { objectId: 'nothing' }] },
    { $or: [{ objectId: { $gte: 'folder2' } }, { objectId: 'nothing' }] },
    { $and: [{ objectId: { $exists: true } }, { objectId: { $ne: 'nothing' } }] },
  ];
  const some = Array.from({ length: 1 + Math.floor(random.next() * 3) }, () => random.pick(more));
  return {
    ...question,
    where: { $and: [question.where, ...some].filter((one) => Object.keys(one).length > 0) },
  };
}

// Another try would ask other questions.
describe(`both routes (seed ${SEED})`, { retry: 0 }, () => {
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

  it(
    'show a session the same rows where several conditions name one column',
    async () => {
      const before = asked.session;
      for (let index = 0; index < CASES; index += 1) {
        const user = random.pick(world.users);
        await compare(sessionOf(user.session), user.id, withMore(askSomething(random, world), user.id));
      }
      expect(asked.session - before).toBeGreaterThan(CASES / 16);
    },
    60_000 + CASES * 300,
  );

  it('show the master key the same rows and fields', { timeout: 60_000 + CASES * 300 }, async () => {
    const before = asked.master;
    for (let index = 0; index < CASES / 2; index += 1) await compare(MASTER, 'master');
    expect(asked.master - before).toBeGreaterThanOrEqual(CASES / 2);
  });
});
