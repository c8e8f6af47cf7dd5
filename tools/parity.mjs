// `npm run parity`: asks the MongoDB in MONGODB_URI and the embedded database the same, and prints where they differ.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BSON, MongoClient } from 'mongodb';
import { CASES, DOCUMENTS } from './parity-cases.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const SUITES = ['contracts.spec.ts', 'plain-contracts.spec.ts', 'read/commands.spec.ts'].map(
  (name) => `libs/data-mongo/src/${name}`,
);
const TIMEOUT = 5_000;

/**
 * Ends with one line that has no credential.
 * @returns {never}
 */
function unusable(line) {
  process.stderr.write(`parity: ${line}\n`);
  process.exit(2);
}

/** Answers and errors as text that keeps the types of values. */
async function answersOf(uri) {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: TIMEOUT, appName: 'parley parity' });
  const db = client.db(`parley_parity_${randomBytes(6).toString('hex')}`);
  try {
    await client.db('admin').command({ ping: 1 });
    const answers = new Map();
    for (const [title, run] of Object.entries(CASES)) {
      /** @type {import('mongodb').Collection<{ _id: number }>} */
      const rows = db.collection('rows');
      await rows.drop().catch(() => undefined);
      await rows.insertMany(DOCUMENTS.map((document) => ({ ...document })));
      const answer = await run(rows, db).then(
        (value) => BSON.EJSON.stringify(value ?? null, { relaxed: false }),
        (error) => `error ${error.code ?? error.name}`,
      );
      answers.set(title, answer);
    }
    return answers;
  } finally {
    await db.dropDatabase().catch(() => undefined);
    await client.close();
  }
}

/** The tests of the contract suites that fail. @param uri null: with the embedded database */
function failuresOf(uri) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-parity-'));
  const file = join(folder, 'report.json');
  const { MONGODB_URI: _given, ...env } = process.env;
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const args = [
    'run',
    '--project',
    'unit',
    '--maxWorkers=1',
    '--reporter=json',
    `--outputFile=${file}`,
    ...SUITES,
  ];
  try {
    spawnSync(process.execPath, [vitest, ...args], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...env, ...(uri && { MONGODB_URI: uri }) },
    });
    const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
    const failed = testResults.flatMap(({ name, status, assertionResults }) => [
      ...(status === 'failed' && assertionResults.length === 0 ? [name] : []),
      ...assertionResults.filter((one) => one.status === 'failed').map(({ fullName }) => fullName),
    ]);
    const ran = ({ status }) => status === 'passed' || status === 'failed';
    // A suite without a test that ran has the same failures as any other.
    const silent = SUITES.filter(
      (suite) =>
        !testResults.some(({ name, assertionResults }) => name.endsWith(suite) && assertionResults.some(ran)),
    );
    return {
      failed: new Set(failed),
      silent,
      total: testResults.flatMap(({ assertionResults }) => assertionResults).filter(ran).length,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const uri = process.env['MONGODB_URI'];
if (!uri || uri === 'embedded')
  unusable('set MONGODB_URI to a MongoDB for tests, such as mongodb://127.0.0.1:27017');
const { EmbeddedMongo } = await import(
  new URL('../libs/embedded-mongo/dist/index.js', import.meta.url).href
).catch(() => unusable('build first: npm run build'));
const theirs = await answersOf(uri).catch((error) =>
  unusable(`MONGODB_URI does not answer (${error.codeName ?? error.name}): check its address, login and TLS`),
);
const embedded = await EmbeddedMongo.start();
const ours = await answersOf(embedded.uri);
await embedded.close();

const differences = [];
for (const [title, answer] of theirs) {
  if (ours.get(title) !== answer)
    differences.push(`${title}\n    MongoDB:  ${answer}\n    embedded: ${ours.get(title)}`);
}
process.stdout.write(`${theirs.size} questions compared, ${differences.length} differ\n`);
if (!process.argv.includes('--questions')) {
  const [there, here] = [failuresOf(uri), failuresOf(null)];
  for (const suite of new Set([...there.silent, ...here.silent]))
    differences.push(`not compared, no test of it ran: ${suite}`);
  for (const name of there.failed)
    if (!here.failed.has(name)) differences.push(`fails with MongoDB alone: ${name}`);
  for (const name of here.failed)
    if (!there.failed.has(name)) differences.push(`fails with the embedded database alone: ${name}`);
  process.stdout.write(`${there.total} tests of the contract suites compared\n`);
}
for (const difference of differences) process.stdout.write(`  ${difference}\n`);
process.stdout.write(differences.length === 0 ? 'no difference\n' : `${differences.length} differences\n`);
process.exit(differences.length === 0 ? 0 : 1);
