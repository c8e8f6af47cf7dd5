import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MongoTopologyClosedError } from 'mongodb';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { TestCertificates } from '../../../embedded-mongo/src/testing/certificates.js';
import { connectionProblem } from './connection-problem.js';
import { inspectMongo } from './inspect-mongo.js';
import { MongoConnection } from './mongo-connection.js';

const SECRET = 's3cretWord';

let certificates: TestCertificates;
let servers: Record<'plain' | 'users' | 'tls' | 'elsewhere' | 'mutual' | 'hung', EmbeddedMongo>;
beforeAll(async () => {
  certificates = new TestCertificates();
  certificates.issue('elsewhere', 'subjectAltName=DNS:elsewhere');
  const pair = (name: string) => ({
    cert: certificates.text(`${name}.pem`),
    key: certificates.text(`${name}.key`),
  });
  const start = (options: Parameters<typeof EmbeddedMongo.start>[0]) =>
    EmbeddedMongo.start({ inProcess: true, ...options });
  servers = {
    plain: await start({}),
    users: await start({
      users: [
        { user: 'reader', password: SECRET, roles: [{ role: 'read', db: 'shop' }] },
        { user: 'nobody', password: SECRET, roles: [] },
      ],
    }),
    tls: await start({ tls: pair('server') }),
    elsewhere: await start({ tls: pair('elsewhere') }),
    mutual: await start({ tls: { ...pair('server'), ca: certificates.text('ca.pem') } }),
    hung: await start({}),
  };
  await servers.hung.pause();
});
afterAll(async () => {
  for (const server of Object.values(servers)) await server.close();
  certificates.remove();
});

/** What is found when a URI is used. @param query of the URI */
async function problemOf(address: string, query = '', login = `x:${SECRET}@`): Promise<string> {
  const connection = new MongoConnection({
    uri: `mongodb://${login}${address}/shop?${query}`,
    // Several are tried at once, and one that fails takes all of it.
    timeout: 1_500,
  });
  try {
    await inspectMongo(connection, 5_000);
    return 'none';
  } catch (error) {
    const problem = connectionProblem(error);
    const text = `${problem?.found} -> ${problem?.remedy}`;
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain('\n');
    return text;
  } finally {
    await connection.close();
  }
}

const expectProblem = async (text: RegExp, ...used: Parameters<typeof problemOf>): Promise<void> =>
  expect(await problemOf(...used)).toMatch(text);

const at = (name: keyof typeof servers): string => `127.0.0.1:${servers[name].port}`;
const ca = (): string => `tls=true&tlsCAFile=${certificates.path('ca.pem')}`;

describe('what keeps a database from being used is said in one line, for', () => {
  it('a login that is wrong, is missing, or gives no right', async () => {
    await Promise.all([
      expectProblem(/^it refuses the user or the password -> check user/, at('users')),
      expectProblem(/^it asks for a login -> put user/, at('users'), '', ''),
      expectProblem(/lacks a right -> grant/, at('users'), 'authSource=admin', `nobody:${SECRET}@`),
      expectProblem(/^none$/, at('users'), 'authSource=admin', `reader:${SECRET}@`),
      expectProblem(/way of authentication -> check/, at('users'), 'authMechanism=SCRAM-SHA-1'),
    ]);
  });

  it('a socket of this machine that nobody listens at', async () => {
    const none = encodeURIComponent(certificates.path('no-mongodb.sock'));
    await expectProblem(/^nobody listens at its socket.* -> check the path of the socket/, none, '', '');
  });

  it('certificates that are not trusted, of another host, missing, or not there', async () => {
    const both = (name: string): string => `${ca()}&tlsCertificateKeyFile=${certificates.path(name)}`;
    writeFileSync(
      certificates.path('mixed.pem'),
      certificates.text('client.pem') + certificates.text('server.key'),
    );
    await Promise.all([
      expectProblem(/authority that is not trusted -> .*tlsCAFile/, at('tls'), 'tls=true', ''),
      expectProblem(/for another host name -> write a host name/, at('elsewhere'), ca(), ''),
      expectProblem(/certificate of the client -> .*tlsCertificateKeyFile/, at('mutual'), ca(), ''),
      expectProblem(/cannot be read -> check tlsCAFile/, at('tls'), 'tls=true&tlsCAFile=/nowhere.pem', ''),
      ...['client.pem', 'names', 'mixed.pem'].map((file) =>
        expectProblem(
          /certificate and key of database.uri cannot be used -> check that tlsCertificateKeyFile/,
          at('mutual'),
          `${both(file)}&tlsCertificateKeyFilePassword=${SECRET}`,
          '',
        ),
      ),
      expectProblem(/^none$/, at('mutual'), both('client-both.pem'), ''),
      expectProblem(/closes our connections -> check tls/, at('tls'), '', ''),
      expectProblem(/TLS/i, at('plain'), 'tls=true', ''),
      expectProblem(/^none$/, at('tls'), ca(), ''),
    ]);
  });

  it('addresses where nobody answers', async () => {
    await Promise.all([
      expectProblem(/^nobody listens at its address -> check host and port/, '127.0.0.1:1'),
      expectProblem(/^its host name is not known -> check the host/, 'no-such-host.invalid:27017'),
      expectProblem(/^it does not answer -> check/, at('hung'), '', ''),
      expectProblem(/^its replica set has no primary/, at('plain'), 'replicaSet=other', ''),
    ]);
  });

  it('an operation beside the one that could not connect', () => {
    expect(connectionProblem(new MongoTopologyClosedError('Topology is closed'))?.found).toBe(
      'it does not answer',
    );
  });

  it('nothing that is not about the connection', () => {
    expect(connectionProblem(new RangeError('surprise'))).toBeNull();
    expect(connectionProblem(null)).toBeNull();
  });
});

describe('the rights of the user', () => {
  it('are reading and writing of the database, each', async () => {
    const connection = new MongoConnection({
      uri: `mongodb://reader:${SECRET}@${at('users')}/shop?authSource=admin`,
    });
    try {
      expect(await inspectMongo(connection, 5_000)).toMatchObject({ rights: { read: true, write: false } });
    } finally {
      await connection.close();
    }
    const open = new MongoConnection({ uri: servers.plain.uri, database: 'shop' });
    try {
      expect(await inspectMongo(open, 5_000)).toMatchObject({ rights: null });
    } finally {
      await open.close();
    }
  });
});
