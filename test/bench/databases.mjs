// What several databases cost: a call of a class in a second one, and of one with a database for each tenant, against a class of the
// first one; and what a service holds after calls of a thousand tenants, each with its own database.
import { MongoClient } from 'mongodb';
import { compare, once } from './load.mjs';
import { call, startDatabase, startParley } from './works.mjs';

const TENANTS = 1000;
/** Of each tenant's database. */
const CLASSES = 5;
const names = Array.from({ length: TENANTS }, (_, at) => `tenant${at}`);
const unlimited = { rateLimit: 1_000_000_000 };

const collections = Array.from({ length: CLASSES }, (_, at) => `things${at}`);
const documents = (mark) =>
  Array.from({ length: 10 }, (_, at) => ({
    number: at,
    mark,
    title: `the ${at}th thing`,
    tags: ['a', 'b'],
    size: { width: at, height: 2 * at },
    createdAt: new Date(at * 1000),
  }));

const parley = (uri, named) =>
  startParley(
    {
      databases: {
        main: { uri, name: 'first', storage: 'plain' },
        ...(named && {
          second: { uri, name: 'second', storage: 'plain' },
          app: { uri, name: 'app_{tenant}', storage: 'plain' },
        }),
      },
      agents: Object.fromEntries(names.map((name) => [name, { ...unlimited, tenantId: name }])),
      auth: names.map((name) => ({ apiKey: `${name}-key`, agent: name })),
      policy: {
        classes: {
          First: { collection: 'things0' },
          ...(named && {
            Second: { database: 'second', collection: 'things0' },
            ...Object.fromEntries(
              collections.map((collection, at) => [`Own${at}`, { database: 'app', collection }]),
            ),
          }),
        },
      },
    },
    { flags: ['--expose-gc'] },
  );

const bodyOf = (className) => call('query_class', { class_name: className, limit: 10 });
const as = (name) => ({ 'x-mcp-api-key': `${name}-key` });

const database = await startDatabase({ seed: null });
const client = new MongoClient(database.url);
const fill = async (name, mark) => {
  for (const collection of collections)
    await client.db(name).collection(collection).insertMany(documents(mark));
};
await fill('first', 'first');
await fill('second', 'second');
for (const name of names) await fill(`app_${name}`, name);
await client.close();

const several = await parley(database.url, true);
const before = await several.memory();
const began = performance.now();
for (const name of names)
  for (let at = 0; at < CLASSES; at += 1) {
    const { text } = await once(several.url, bodyOf(`Own${at}`), as(name));
    if (!text.includes(`\\"${name}\\"`) && !text.includes(`"${name}"`))
      throw new Error(`wrong rows: ${text}`);
  }
const seconds = (performance.now() - began) / 1000;
const after = await several.memory();
const MB = 1024 * 1024;
console.log(
  `${TENANTS} tenants with ${CLASSES} classes each in ${seconds.toFixed(1)} s: ${(after.rss / MB).toFixed(0)} MB resident, ` +
    `${(after.rss / MB - before.rss / MB).toFixed(0)} MB more than before; ` +
    `${JSON.stringify(Object.fromEntries(Object.entries(after).map(([name, value]) => [name, Math.round(value / MB)])))}`,
);
const watching = new MongoClient(database.url);
const { connections } = await watching.db('admin').command({ serverStatus: 1 });
console.log(`connections at the database: ${connections?.current}`);
await watching.close();

const one = await parley(database.url, false);
const candidate = (service, className) => ({ ...service, body: bodyOf(className), headers: as('tenant0') });
const [alone, first, second, own] = await compare(
  [
    candidate(one, 'First'),
    candidate(several, 'First'),
    candidate(several, 'Second'),
    candidate(several, 'Own0'),
  ],
  { count: 1000 },
);
for (const [work, figure, beside] of [
  ['a class of the first database, beside a service of one', first, alone],
  ['a class of the second database, beside one of the first', second, first],
  ['a class with a database for each tenant, beside one of the first', own, first],
])
  console.log(
    `${work}: ${(figure.cpu / beside.cpu).toFixed(2)} (${figure.cpu.toFixed(0)} / ${beside.cpu.toFixed(0)} µs CPU)`,
  );

for (const process of [one, several, database]) await process.stop();
