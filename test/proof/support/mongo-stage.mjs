// MongoDB as enterprises run it: a replica set with a login and TLS, a service on it, another one whose user may only read, and the
// faults that such a database has.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { MongoClient } from 'mongodb';
import { freePort } from '../../../tools/free-port.mjs';
import { startIssuer } from '../../bench/small-issuer.mjs';
import { Replica, SEED } from './chaos-stage.mjs';
import { root, source } from './sources.mjs';

const DATABASE = 'parley';
const PASSWORD = 'a p@ssword/of:the?proof';
const MEMBERS = 2;
/** @type {import('@parley/embedded-mongo').EmbeddedUser[]} */
const users = [
  { user: 'root', password: PASSWORD, roles: [{ role: 'root', db: 'admin' }] },
  { user: 'service', password: PASSWORD, roles: [{ role: 'readWrite', db: DATABASE }] },
  { user: 'reader', password: PASSWORD, roles: [{ role: 'read', db: DATABASE }] },
];

const READS = ['find', 'aggregate', 'count', 'getMore'];
const WRITES = ['insert', 'update', 'delete', 'findAndModify', 'bulkWrite'];
const OPERATIONS = [...READS, ...WRITES];
/** Not primary, a network that is gone, a shutdown, an operation that was interrupted. */
const PASSING = [6, 7, 89, 91, 189, 10107, 11600, 11602, 13435];
const UNCONFIRMED = [
  { code: 64, codeName: 'WriteConcernFailed', errmsg: 'waiting for replication timed out' },
  { code: 91, codeName: 'ShutdownInProgress', errmsg: 'Replication is being shut down' },
  { code: 100, codeName: 'UnsatisfiableWriteConcern', errmsg: 'Not enough data-bearing nodes' },
];

/**
 * Every fault by its name. Each resolves when the database serves again.
 * @param server the replica set
 * @param admins a connection of an administrator to each of its members
 * @param restart kills a service and starts it again
 */
function mongoFaults(server, admins, restart, random) {
  const onAll = (name, mode, data) =>
    Promise.all(
      admins.map((admin) => admin.command({ configureFailPoint: name, mode, ...(data && { data }) })),
    );
  const failing = async (milliseconds, mode, data, name = 'failCommand') => {
    await onAll(name, mode, data);
    await pause(milliseconds);
    await onAll(name, 'off');
  };
  const between = (least, most) => least + random.below(most - least + 1);
  const ofStream = (errorCode) => ({
    failCommands: ['getMore'],
    namespace: `${DATABASE}.$cmd.aggregate`,
    errorCode,
  });
  const often = (part) => ({ activationProbability: part });
  const stepDown = async (closeConnections) => {
    await server.stepDown({ seconds: 1, closeConnections });
    // The other member is elected after a moment, and this one may be so again.
    await pause(1_200);
  };
  return {
    'step-downs of the primary': () => stepDown(false),
    'step-downs that cut connections': () => stepDown(true),
    'connections cut': () =>
      failing(between(1_000, 3_000), often(0.4), { failCommands: OPERATIONS, closeConnection: true }),
    'connections cut behind a write that was done': () =>
      failing(between(1_000, 3_000), often(0.5), {}, 'onPrimaryTransactionalWrite'),
    'slow nodes': () =>
      failing(between(1_000, 4_000), often(0.5), {
        failCommands: OPERATIONS,
        blockConnection: true,
        blockTimeMS: between(200, 2_500),
      }),
    'hung sets': async () => {
      await server.pause();
      // Some hang longer than a tool may take.
      await pause(random.chance(0.25) ? between(25_000, 35_000) : between(1_000, 9_000));
      await server.resume();
    },
    'hung members': async () => {
      const member = random.below(MEMBERS);
      await server.pause(member);
      await pause(between(1_000, 6_000));
      await server.resume(member);
    },
    'starts of a service while the set hangs': async () => {
      await server.pause();
      await restart();
      await pause(between(1_000, 6_000));
      await server.resume();
    },
    'write concern errors': () =>
      failing(between(1_000, 3_000), often(0.6), {
        failCommands: WRITES,
        writeConcernError: random.pick(UNCONFIRMED),
      }),
    'operations refused': () =>
      failing(between(500, 2_500), often(0.7), { failCommands: OPERATIONS, errorCode: random.pick(PASSING) }),
    'cursors that died': () =>
      failing(2_000, 'alwaysOn', {
        failCommands: ['getMore'],
        namespace: `${DATABASE}.Fixed`,
        errorCode: 43,
      }),
    'change streams whose cursor died': () => failing(between(500, 3_000), 'alwaysOn', ofStream(43)),
    'change streams whose place was lost': () => failing(between(500, 3_000), 'alwaysOn', ofStream(286)),
  };
}

export async function startMongoStage(log, random) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-mongo-'));
  const { TestCertificates } = await source('libs/embedded-mongo/src/testing/certificates.ts');
  const certificates = new TestCertificates();
  const server = await EmbeddedMongo.start({
    members: MEMBERS,
    users,
    tls: { cert: certificates.text('server.pem'), key: certificates.text('server.key') },
  });
  const login = (user) => `mongodb://${user}:${encodeURIComponent(PASSWORD)}@`;
  const security = `tls=true&authSource=admin&tlsCAFile=${encodeURIComponent(certificates.path('ca.pem'))}`;
  // Of several hosts, which `URL` does not read.
  const hosts = server.uri.split('/')[2];
  const uriOf = (user) => `${login(user)}${hosts}/${DATABASE}?replicaSet=rs0&${security}`;
  const connect = (uri) => MongoClient.connect(uri);
  const clients = await Promise.all([
    connect(uriOf('root')),
    ...hosts.split(',').map((host) => connect(`${login('root')}${host}/?directConnection=true&${security}`)),
  ]);
  const [rows, ...admins] = clients;
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(SEED));
  await promisify(execFile)(process.execPath, [join(root, 'dist/bundle/cli.js'), 'seed', 'seed.json'], {
    cwd: folder,
    env: { PATH: process.env.PATH, MONGODB_URI: uriOf('service'), MONGODB_DATABASE: DATABASE },
  });
  log(`a replica set of ${MEMBERS} members with a login and TLS runs`);
  const issuer = await startIssuer('ES256');
  const shared = { folder, issuer: issuer.issuer, processes: 1 };
  const service = new Replica(0, await freePort(), {
    ...shared,
    mongodb: uriOf('service'),
    fastReads: true,
  });
  const reading = new Replica(1, await freePort(), { ...shared, mongodb: uriOf('reader'), approved: false });
  await service.start();
  await reading.start();
  log('a service runs, with fast reads, and one without whose user may only read');
  return {
    url: `${service.origin}/mcp`,
    origin: service.origin,
    reading: { url: `${reading.origin}/mcp`, origin: reading.origin },
    issuer,
    services: [service, reading],
    rows: rows.db(DATABASE),
    faults: mongoFaults(
      server,
      admins.map((admin) => admin.db('admin')),
      async () => {
        await reading.kill();
        await reading.start();
      },
      random,
    ),
    /** What no answer may contain: texts of the driver and of the server, addresses, users and names of files. */
    internal:
      /failpoint|mongodb:\/\/|Mongo\w*Error|E11000|ECONN|not primary|not authorized|127\.0\.0\.1|authSource|node_modules|\bat .*\.js:\d+/,
    end: async ({ keep }) => {
      await Promise.all(clients.map((client) => client.close()));
      await server.close();
      issuer.close();
      certificates.remove();
      if (keep) return folder;
      rmSync(folder, { recursive: true, force: true });
      return undefined;
    },
  };
}
