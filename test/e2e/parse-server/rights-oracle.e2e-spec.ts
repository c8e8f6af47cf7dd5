import { EmbeddedMongo } from '@parley/embedded-mongo';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GovernedRecordsSource, PrincipalResolver } from '#data';
import {
  loadSeed,
  MongoConnection,
  MongoPrincipalDirectory,
  MongoRecordReader,
  MongoSchemaCatalogue,
  parseSeed,
} from '#data-mongo';
import { AgentScopes, Policies, compilePolicy } from '#policy';
import { SeededRandom } from '../../support/oracle/seeded-random.js';
import {
  type Answer,
  askAggregate,
  askParley,
  askParse,
  sessionOf,
} from '../../support/oracle/rights-answers.js';
import { askSomething, type Question } from '../../support/oracle/rights-questions.js';
import { makeWorld, type World, type WorldClass } from '../../support/oracle/rights-world.js';
import {
  type ParseServerProcess,
  readClassesAnew,
  startParseServer,
} from '../../support/parse-server-process.js';

/** `npm run oracle` asks thousands, and names a seed to repeat. */
const CASES = Number(process.env['ORACLE_CASES'] ?? 200);
const SEED = Number(process.env['ORACLE_SEED'] ?? Math.floor(Math.random() * 1_000_000_000));

/** Milliseconds between a change of permissions and the next call: more than the age of any snapshot. */
const PAUSE = 75_000;

const random = new SeededRandom(SEED);
let passed = 0;
let embedded: EmbeddedMongo;
let connection: MongoConnection;
let parse: ParseServerProcess;
let source: GovernedRecordsSource;
let world: World;

beforeAll(async () => {
  embedded = await EmbeddedMongo.start();
  world = makeWorld(random, 20);
  connection = new MongoConnection({ uri: embedded.uri, database: 'oracle' });
  await loadSeed(connection, parseSeed(JSON.parse(JSON.stringify(world.seed))));
  const catalogue = new MongoSchemaCatalogue(connection, { now: () => performance.now() + passed });
  source = new GovernedRecordsSource(
    new AgentScopes(new Policies(compilePolicy({ unlistedClasses: 'allow' }).policy)),
    new MongoRecordReader(connection, catalogue),
    catalogue,
    new PrincipalResolver(new MongoPrincipalDirectory(connection)),
  );
  const uri = new URL(embedded.uri);
  uri.pathname = '/oracle';
  parse = await startParseServer(uri.toString());
});

afterAll(async () => {
  await parse?.close();
  await connection?.close();
  await embedded?.close();
});

/** Other permissions at both sides, and a pause in which nobody calls. */
async function changePermissions(one: WorldClass): Promise<void> {
  const permissions = world.permissionsAnew(one);
  const stored = '_metadata.class_permissions';
  await connection
    .collection('_SCHEMA')
    .updateOne(
      { _id: one.name },
      permissions ? { $set: { [stored]: permissions } } : { $unset: { [stored]: 1 } },
    );
  await readClassesAnew(parse);
  passed += PAUSE;
}

const byId = (rows: readonly Record<string, unknown>[]) =>
  [...rows].sort((left, right) => (String(left['objectId']) < String(right['objectId']) ? -1 : 1));

/** Order is compared only where one was asked for that no two rows share. */
function settled(answer: Answer, question: Question): Answer {
  if (answer.kind !== 'rows') return answer;
  const total = question.kind === 'find' && /^-?(objectId|rank)$/.test(question.order ?? '');
  return total ? answer : { kind: 'rows', rows: byId(answer.rows) };
}

/** A refusal says which rule spoke in words of its own; that one spoke is what must agree. */
function verdict(answer: Answer): unknown {
  return answer.kind === 'refused' ? 'refused' : answer;
}

/**
 * Where Parley says no and Parse Server says nothing: Parley judges an included class by its permissions alone, Parse
 * Server only when some row points into it; and a relation of an owner in a closed class is empty there.
 */
function refusedForNothing(parsed: Answer, parley: Answer, question: Question): boolean {
  if (parley.kind !== 'refused') return false;
  const nothing = parsed.kind === 'rows' && parsed.rows.length === 0;
  if (nothing && question.kind === 'find' && '$relatedTo' in question.where) return true;
  if (question.kind === 'count' || !question.include) return false;
  if (parsed.kind === 'missing') return true;
  const [first, second] = question.include.split('.') as [string, string?];
  const leadsSomewhere = (row: Record<string, unknown>) => {
    const included = row[first] as Record<string, unknown> | undefined;
    return included !== undefined && (second === undefined || included[second] !== undefined);
  };
  return parsed.kind === 'rows' && !parsed.rows.some(leadsSomewhere);
}

// Another try would ask other questions.
describe(`rights, measured against Parse Server (seed ${SEED})`, { retry: 0 }, () => {
  it(
    `shows ${CASES} random callers exactly the rows and fields that Parse Server shows them`,
    { timeout: 60_000 + CASES * 100 },
    async () => {
      const seen = { rows: 0, count: 0, missing: 0, refused: 0 };
      for (let index = 0; index < CASES; index += 1) {
        const user = random.pick(world.users);
        const changed = random.chance(0.1) ? random.pick(world.classes) : null;
        if (changed) await changePermissions(changed);
        const question = askSomething(random, changed ? { ...world, classes: [changed] } : world);
        const context = JSON.stringify({
          seed: SEED,
          index,
          user: user.id,
          changed: changed?.name,
          question,
        });
        const parsed = settled(await askParse(parse, user.session, question), question);
        for (const identity of [sessionOf(user.session), { kind: 'aclUser', userId: user.id } as const]) {
          const parley = settled(await askParley(source, identity, question), question);
          if (refusedForNothing(parsed, parley, question)) continue;
          expect({ context, answer: verdict(parley) }).toEqual({ context, answer: verdict(parsed) });
        }
        seen[parsed.kind] += 1;
      }
      // A world in which nothing happens would prove nothing.
      expect(Object.entries(seen).filter(([, times]) => times === 0)).toEqual([]);
    },
  );

  it('lets an aggregation reach the rows a find reaches, and no column that one of them hides', async () => {
    for (const { name } of world.classes) {
      const user = random.pick(world.users);
      const context = JSON.stringify({ seed: SEED, user: user.id, name });
      const found = await askParse(parse, user.session, { kind: 'find', className: name, where: {} });
      const rows = await askAggregate(source, sessionOf(user.session), name);
      if (found.kind !== 'rows') {
        expect({ context, rows }).toEqual({ context, rows: null });
        continue;
      }
      const shown = new Map(found.rows.map((row) => [String(row['objectId']), row]));
      const ids = rows?.map((row) => row['_id']).sort();
      expect({ context, ids }).toEqual({ context, ids: [...shown.keys()].sort() });
      for (const row of rows ?? []) {
        const columns = Object.keys(shown.get(String(row['_id'])) ?? {});
        const names = Object.keys(row).map((column) => FIELD_NAMES[column] ?? column.replace(/^_p_/, ''));
        const more = names.filter((name) => !columns.includes(name));
        expect({ context, more }).toEqual({ context, more: [] });
      }
    }
  });
});

const FIELD_NAMES: Readonly<Record<string, string>> = {
  _id: 'objectId',
  _created_at: 'createdAt',
  _updated_at: 'updatedAt',
};
