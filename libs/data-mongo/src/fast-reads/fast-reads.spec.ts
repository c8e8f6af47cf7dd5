import { EmbeddedMongo } from '@parley/embedded-mongo';
import fc from 'fast-check';
import { BSON, MongoClient } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { LazyAbort } from '#core';
import { PATIENT, storeErrorCode, unhurried } from '#data/contracts';
import { TestCertificates } from '../../../embedded-mongo/src/testing/certificates.js';
import { openRead } from '../connection/document-reads.js';
import { MongoConnection } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import { waitForConnection, type SentCommand, WireFront } from '../testing/wire-front.js';
import { fastReadsProblem } from './fast-reads.js';

const LIMITS = unhurried();
const DATABASE = 'shop';
const ROWS = 40;

/** The row of a number, as a caller reads it. */
async function numberRead(connection: MongoConnection, n: number, limits = LIMITS): Promise<unknown[]> {
  const read = openRead(connection, { collection: 'Row', filter: { n }, limit: 5 }, limits);
  try {
    return (await read.next()).map((bytes) => BSON.deserialize(bytes)['n'] as unknown);
  } finally {
    await read.close();
  }
}

const fill = async (connection: MongoConnection): Promise<void> => {
  const rows = Array.from({ length: ROWS }, (_, n) => ({ _id: `row${n}`, n, text: 'x'.repeat(n * 50) }));
  await connection.collection('Row').insertMany(rows);
};

/** Resolves to whether a connection beside the driver is opened within a second. */
const opens = async ({ fastReads }: MongoConnection): Promise<boolean> => {
  if (!fastReads) return false;
  const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 1_000));
  return Promise.race([waitForConnection(fastReads).then(() => true), late]);
};

describe('reads on connections beside the driver', PATIENT, () => {
  let server: EmbeddedMongo;
  let front: WireFront;
  let connection: MongoConnection;
  beforeAll(async () => {
    server = await EmbeddedMongo.start();
    front = await WireFront.start(server.uri);
    connection = new MongoConnection({ uri: front.uri, database: DATABASE, fastReads: true });
    await connection.ping(3_000);
    await fill(connection);
  });
  /** Also where the client was replaced, and nothing has connected it since. */
  const waitForReads = async () => {
    await connection.ping(3_000);
    if (connection.fastReads) await waitForConnection(connection.fastReads);
  };
  beforeEach(async () => {
    front.change = null;
    await waitForReads();
    front.sent.length = 0;
  });
  afterAll(async () => {
    await connection.close();
    await front.close();
    await server.close();
  });
  const finds = () => front.sent.filter(({ name }) => name === 'find').map(({ fast }) => fast);

  it('are off by default', async () => {
    const usual = new MongoConnection({ uri: front.uri, database: DATABASE });
    await usual.ping(3_000);
    expect(usual.fastReads).toBeNull();
    expect(usual.fastReadsProblem).toBeNull();
    expect(await numberRead(usual, 1)).toEqual([1]);
    expect(finds()).toEqual([false]);
    await usual.close();
  });

  it('wait for no connection: the driver reads until one is open, and where all are taken', async () => {
    const fresh = new MongoConnection({ uri: front.uri, database: DATABASE, fastReads: true });
    await fresh.ping(3_000);
    expect(await numberRead(fresh, 1)).toEqual([1]);
    expect(finds()).toEqual([false]);
    if (fresh.fastReads) await waitForConnection(fresh.fastReads);
    expect(await numberRead(fresh, 2)).toEqual([2]);
    expect(finds()).toEqual([false, true]);
    const taken = fresh.fastReads?.take();
    expect(await numberRead(fresh, 3)).toEqual([3]);
    expect(finds()).toEqual([false, true, false]);
    taken?.release();
    await fresh.close();
  });

  it('are at most as many as maxPoolSize', async () => {
    const before = front.fastConnections;
    const small = new MongoConnection({
      uri: `${front.uri}&maxPoolSize=2`,
      maxPoolSize: 2,
      database: DATABASE,
      fastReads: true,
    });
    await small.ping(3_000);
    const numbers = Array.from({ length: 30 }, (_, n) => n);
    for (let round = 0; round < 4; round += 1)
      expect(await Promise.all(numbers.map((n) => numberRead(small, n)))).toEqual(numbers.map((n) => [n]));
    expect(front.fastConnections - before).toBeLessThanOrEqual(2);
    expect(finds()).toContain(true);
    await small.close();
  });

  it('end what has not been used for maxIdleTimeMS, and everything when the connection is closed', async () => {
    const own = await WireFront.start(server.uri);
    const idle = new MongoConnection({ uri: `${own.uri}&maxIdleTimeMS=200`, fastReads: true });
    await idle.ping(3_000);
    if (idle.fastReads) await waitForConnection(idle.fastReads);
    expect(own.fastConnections).toBe(1);
    await vi.waitFor(() => expect(own.fastConnections).toBe(0), { timeout: 3_000 });
    if (idle.fastReads) await waitForConnection(idle.fastReads);
    expect(own.fastConnections).toBe(1);
    await idle.close();
    await vi.waitFor(() => expect(own.fastConnections).toBe(0));
    await own.close();
  });

  it.each([
    ['never comes', () => []],
    ['comes late', (answer: Buffer) => [...Array<Buffer>(40).fill(Buffer.alloc(0)), answer]],
  ])('of a caller who has gone end their connection when the answer %s', async (_when, delivered) => {
    const caller = new LazyAbort<Error>();
    front.change = (answer, { fast, command }) => {
      if (!fast || command['filter']?.n !== 7) return [answer];
      caller.abort(new Error('gone'));
      return delivered(answer);
    };
    const limits = { ...LIMITS, onAbort: (gone: () => void) => caller.onAbort(gone), signal: caller.signal };
    const before = front.fastConnections;
    const read = asStoreOperation(caller, () => numberRead(connection, 7, limits));
    expect(await storeErrorCode(read)).toBe('cancelled');
    expect(finds()).toEqual([true]);
    await vi.waitFor(() => expect(front.fastConnections).toBe(before - 1));
    const numbers = Array.from({ length: 20 }, (_, n) => n).filter((n) => n !== 7);
    expect(await Promise.all(numbers.map((n) => numberRead(connection, n)))).toEqual(numbers.map((n) => [n]));
  });

  it('end a connection on which bytes come that nobody asked for', async () => {
    let last: Buffer = Buffer.alloc(0);
    front.change = (answer, { fast }) => {
      if (fast) last = answer;
      return [answer];
    };
    expect(await numberRead(connection, 5)).toEqual([5]);
    expect(last.byteLength).toBeGreaterThan(0);
    front.push(last);
    await vi.waitFor(() => expect(front.fastConnections).toBe(0));
    expect(await numberRead(connection, 6)).toEqual([6]);
  });

  describe('get the rows that they asked for', () => {
    let earlier: Buffer = Buffer.alloc(0);
    const patched = (answer: Buffer, at: number, value: number): Buffer => {
      const copy = Buffer.from(answer);
      copy.writeInt32LE(value, at);
      return copy;
    };
    /** What a connection may deliver in place of an answer. The first two are the answer. */
    const DELIVERIES: Record<string, (answer: Buffer, random: number) => readonly Buffer[]> = {
      whole: (answer) => [answer],
      'in pieces': (answer, random) => {
        const at = 1 + (random % (answer.byteLength - 1));
        return [answer.subarray(0, at), answer.subarray(at)];
      },
      'byte by byte': (answer) =>
        Array.from({ length: 24 }, (_, at) => answer.subarray(at, at + 1)).concat(answer.subarray(24)),
      'an earlier answer': () => [earlier],
      'an earlier answer in front': (answer) => [earlier, answer],
      'an earlier answer behind': (answer) => [Buffer.concat([answer, earlier])],
      twice: (answer) => [answer, answer],
      'of another request': (answer, random) => [patched(answer, 8, random)],
      'another operation': (answer) => [patched(answer, 12, 1)],
      'more to come': (answer) => [patched(answer, 16, 2)],
      'another section': (answer) => [
        Buffer.concat([patched(answer, 0, answer.byteLength + 1), Buffer.of(1)]),
      ],
      'too long': (answer) => [patched(answer, 0, 0x7fffffff)],
      'a negative length': (answer) => [patched(answer, 0, -1)],
      'cut short': (answer, random) => [
        patched(answer.subarray(0, 21 + (random % 20)), 0, 21 + (random % 20)),
      ],
      'a document that is longer than the message': (answer) => [patched(answer, 21, answer.byteLength)],
      'not BSON': (answer) => [Buffer.concat([answer.subarray(0, 25), Buffer.of(0x55), answer.subarray(26)])],
      'a refusal': () => [],
    };
    const NAMES = Object.keys(DELIVERIES);
    const refusal = (answer: Buffer): Buffer => {
      const document = BSON.serialize({
        ok: 0,
        code: 91,
        errmsg: 'going down',
        codeName: 'ShutdownInProgress',
      });
      const header = Buffer.from(answer.subarray(0, 21));
      header.writeInt32LE(21 + document.byteLength, 0);
      return Buffer.concat([header, document]);
    };

    it('whatever their connections deliver', async () => {
      const met = new Map<string, number>();
      const plan = fc.array(
        fc.record({ delivery: fc.constantFrom(...NAMES), random: fc.integer({ min: 1, max: 1 << 20 }) }),
        { minLength: 6, maxLength: 16 },
      );
      await fc.assert(
        fc.asyncProperty(plan, async (planned) => {
          await waitForReads();
          const left = [...planned];
          front.change = (answer, { fast, name }: SentCommand) => {
            if (!fast || name !== 'find') return [answer];
            const next = left.pop();
            if (!next) return [answer];
            met.set(next.delivery, (met.get(next.delivery) ?? 0) + 1);
            const chunks =
              next.delivery === 'a refusal'
                ? [refusal(answer)]
                : DELIVERIES[next.delivery]?.(answer, next.random);
            earlier = answer;
            return chunks ?? [answer];
          };
          const asked = planned.map((_, at) => (at * 7) % ROWS);
          const four = asked.map((n, at) => ({ n, lane: at % 4 }));
          await Promise.all(
            [0, 1, 2, 3].map(async (lane) => {
              for (const { n } of four.filter((one) => one.lane === lane)) {
                expect(await numberRead(connection, n)).toEqual([n]);
                // Until another connection is open, the driver reads.
                await waitForReads();
              }
            }),
          );
        }),
        { numRuns: 25, examples: [[NAMES.map((delivery) => ({ delivery, random: 77 }))]] },
      );
      expect([...met.keys()].toSorted()).toEqual(NAMES.toSorted());
    });
  });
});

describe('connections beside the driver', PATIENT, () => {
  it.each([
    ['', null],
    ['retryReads=false', 'retryReads=false'],
    ['readPreference=nearest', 'readPreference=nearest'],
    ['compressors=zlib', 'compressors'],
    ['monitorCommands=true', 'monitorCommands=true'],
    ['loadBalanced=true', 'loadBalanced=true'],
    ['proxyHost=127.0.0.1', 'proxyHost'],
    ['ignoreUndefined=true', 'how values are written'],
  ])('are possible with "%s", or say why not', async (query, problem) => {
    const client = new MongoClient(`mongodb://127.0.0.1:1/?${query}`);
    const found = fastReadsProblem(client);
    if (problem === null) expect(found).toBeNull();
    else expect(found).toContain(problem);
    const connection = new MongoConnection({ uri: `mongodb://127.0.0.1:1/?${query}`, fastReads: true });
    expect(connection.fastReads === null).toBe(problem !== null);
    expect(connection.fastReadsProblem).toBe(found);
    await connection.close();
    await client.close();
  });

  it.each([
    ['user:secret@', '', null],
    ['user:s%C3%A4cret@', '', 'other characters'],
    ['user:secret@', 'authMechanism=SCRAM-SHA-256', null],
    ['user:secret@', 'authMechanism=SCRAM-SHA-1', 'SCRAM-SHA-1'],
    ['user@', 'authMechanism=MONGODB-X509&tls=true', 'MONGODB-X509'],
  ])('log in as "%s" with "%s", or say why not', async (user, query, problem) => {
    const client = new MongoClient(`mongodb://${user}127.0.0.1:1/?${query}`);
    if (problem === null) expect(fastReadsProblem(client)).toBeNull();
    else expect(fastReadsProblem(client)).toContain(problem);
    expect(fastReadsProblem(client) ?? '').not.toMatch(/s(e|%C3%A4|ä)cret/);
    await client.close();
  });

  describe('to a server with users', () => {
    let server: EmbeddedMongo;
    beforeAll(async () => {
      server = await EmbeddedMongo.start({
        users: [
          { user: 'root', password: 'r00t', roles: [{ role: 'root', db: 'admin' }] },
          { user: 'comma,equals=', password: 'p@ss: word', roles: [{ role: 'read', db: DATABASE }] },
          { user: 'elsewhere', password: 'read', db: DATABASE, roles: [{ role: 'read', db: DATABASE }] },
        ],
      });
      const root = as('root', 'r00t');
      await fill(root);
      await root.close();
    });
    afterAll(() => server.close());
    const as = (user: string, password: string, query = '', uri = server.uri): MongoConnection => {
      const address = new URL(uri);
      const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
      const options = [address.search.slice(1), query].filter((part) => part !== '').join('&');
      const full = `mongodb://${login}@${address.host}/?${options}`;
      return new MongoConnection({ uri: full, database: DATABASE, fastReads: true });
    };

    it.each([
      ['comma,equals=', 'p@ss: word', ''],
      ['comma,equals=', 'p@ss: word', 'authMechanism=SCRAM-SHA-256'],
      ['elsewhere', 'read', `authSource=${DATABASE}`],
    ])('log in as %s', async (user, password, query) => {
      const connection = as(user, password, query);
      await connection.ping(3_000);
      expect(await opens(connection)).toBe(true);
      expect(await numberRead(connection, 3)).toEqual([3]);
      await connection.close();
    });

    it('have no more rights than their user', async () => {
      const connection = as('elsewhere', 'read', `authSource=${DATABASE}`);
      await connection.ping(3_000);
      expect(await opens(connection)).toBe(true);
      const taken = connection.fastReads?.take();
      const refused = taken?.send({ find: 'Row', filter: {}, $db: 'other' }, LIMITS);
      await expect(refused).rejects.toMatchObject({ code: 13 });
      taken?.release();
      await connection.close();
    });

    it('are not used where the server does not prove that it knows the password', async () => {
      const front = await WireFront.start(server.uri);
      front.change = (answer, { fast, name }) => {
        const at = fast && name === 'saslContinue' ? answer.indexOf('v=') : -1;
        if (at === -1) return [answer];
        const copy = Buffer.from(answer);
        copy[at + 2] = copy[at + 2] === 65 ? 66 : 65;
        return [copy];
      };
      const connection = as('elsewhere', 'read', `authSource=${DATABASE}`, front.uri);
      await connection.ping(3_000);
      expect(await opens(connection)).toBe(false);
      expect(front.sent.some(({ fast, name }) => fast && name === 'saslContinue')).toBe(true);
      expect(await numberRead(connection, 3)).toEqual([3]);
      expect(front.sent.filter(({ name }) => name === 'find').map(({ fast }) => fast)).toEqual([false]);
      await connection.close();
      await front.close();
    });

    it('are not used with a wrong password, and the driver says so', async () => {
      const connection = as('elsewhere', 'wrong', `authSource=${DATABASE}`);
      expect(await storeErrorCode(asStoreOperation(undefined, () => numberRead(connection, 1)))).toBe(
        'failed',
      );
      expect(await opens(connection)).toBe(false);
      await connection.close();
    });
  });

  describe('to a server with TLS', () => {
    let certificates: TestCertificates;
    let server: EmbeddedMongo;
    beforeAll(async () => {
      certificates = new TestCertificates();
      certificates.issue('elsewhere', 'subjectAltName=DNS:elsewhere');
      server = await EmbeddedMongo.start({
        tls: {
          cert: certificates.text('server.pem'),
          key: certificates.text('server.key'),
          ca: certificates.text('ca.pem'),
        },
      });
    });
    afterAll(async () => {
      await server.close();
      certificates.remove();
    });
    const ofClient = () =>
      `&tlsCertificateKeyFile=${encodeURIComponent(certificates.path('client-both.pem'))}`;
    const secured = (more: string, host = 'localhost') =>
      new MongoConnection({
        uri: `mongodb://${host}:${server.port}/?directConnection=true&tls=true${more}`,
        database: DATABASE,
        timeout: 1_000,
        fastReads: true,
      });

    it.each(['localhost', '127.0.0.1'])('present the certificate of the client, at %s', async (host) => {
      const authority = `&tlsCAFile=${encodeURIComponent(certificates.path('ca.pem'))}`;
      const connection = secured(`${authority}${ofClient()}`, host);
      await connection.ping(3_000);
      expect(await opens(connection)).toBe(true);
      expect(await numberRead(connection, 3)).toEqual([]);
      await connection.close();
    });

    it('believe no certificate that the driver does not believe', async () => {
      const trusting = secured(`&tlsAllowInvalidCertificates=true${ofClient()}`);
      await trusting.ping(3_000);
      expect(await opens(trusting)).toBe(true);
      await trusting.close();
      const doubting = secured(ofClient());
      await expect(doubting.ping(3_000)).rejects.toMatchObject({ code: 'unavailable' });
      expect(await opens(doubting)).toBe(false);
      await doubting.close();
    });
  });

  describe('to a replica set', () => {
    let server: EmbeddedMongo;
    let connection: MongoConnection;
    beforeAll(async () => {
      server = await EmbeddedMongo.start({ members: 2 });
      const uri = server.uri.replace(/\?.*$/, '?replicaSet=rs0');
      connection = new MongoConnection({ uri, database: DATABASE, fastReads: true });
      await connection.ping(3_000);
      await fill(connection);
    });
    afterAll(async () => {
      await connection.close();
      await server.close();
    });

    it('lead to the primary, and end when it is another member', async () => {
      expect(await opens(connection)).toBe(true);
      const first = connection.fastReads?.take();
      const former = first?.server.port;
      for (const closeConnections of [false, true]) {
        await server.stepDown({ seconds: 1, closeConnections });
        await vi.waitFor(async () => expect(await numberRead(connection, 4)).toEqual([4]), {
          timeout: 10_000,
        });
        await new Promise((resolve) => setTimeout(resolve, 1_200));
      }
      first?.release();
      expect(first?.free).toBe(false);
      expect(await opens(connection)).toBe(true);
      const hello = await connection.db.command({ hello: 1 });
      const now = connection.fastReads?.take();
      expect(String(hello['primary'])).toContain(String(now?.server.port));
      expect([former, now?.server.port]).not.toContain(undefined);
      now?.release();
    });

    it('are not opened to a secondary', async () => {
      const hello = await connection.db.command({ hello: 1 });
      const secondary = (hello['hosts'] as string[]).find((host) => host !== hello['primary']);
      const direct = new MongoConnection({
        uri: `mongodb://${secondary}/?directConnection=true`,
        database: DATABASE,
        fastReads: true,
      });
      await direct.ping(3_000);
      expect(await opens(direct)).toBe(false);
      await direct.close();
    });
  });

  it('are opened again to a server that was away', async () => {
    const before = await EmbeddedMongo.start();
    const { port, uri } = before;
    const connection = new MongoConnection({ uri, database: DATABASE, fastReads: true, timeout: 1_000 });
    await connection.ping(3_000);
    expect(await opens(connection)).toBe(true);
    await before.close();
    expect(await storeErrorCode(asStoreOperation(undefined, () => numberRead(connection, 1)))).toBe(
      'unavailable',
    );
    const after = await EmbeddedMongo.start({ port });
    await vi.waitFor(async () => expect(await numberRead(connection, 1)).toEqual([]), { timeout: 20_000 });
    if (connection.fastReads) await waitForConnection(connection.fastReads);
    expect(await numberRead(connection, 1)).toEqual([]);
    await connection.close();
    await after.close();
  });

  it('do not keep a reader longer than the driver would when the server hangs', async () => {
    const server = await EmbeddedMongo.start();
    const connection = new MongoConnection({
      uri: `${server.uri}&socketTimeoutMS=300`,
      database: DATABASE,
      fastReads: true,
    });
    await connection.ping(3_000);
    expect(await opens(connection)).toBe(true);
    await server.pause();
    const began = performance.now();
    expect(await storeErrorCode(asStoreOperation(undefined, () => numberRead(connection, 1)))).toBe(
      'unavailable',
    );
    expect(performance.now() - began).toBeLessThan(5_000);
    await server.resume();
    await connection.close();
    await server.close();
  });
});
