import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { Binary, MongoClient, type MongoClientOptions } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { EmbeddedMongo } from '../embedded-mongo.js';
import { TestCertificates } from '../testing/certificates.js';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const code = (number: number): unknown => expect.objectContaining({ code: number });

/** Runs `work` with a client of its own. */
async function connectTo<T>(
  uri: string,
  options: MongoClientOptions,
  work: (client: MongoClient) => Promise<T>,
): Promise<T> {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 5_000, ...options });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

describe('a server with users', () => {
  let server: EmbeddedMongo;
  beforeAll(async () => {
    server = await EmbeddedMongo.start({
      users: [
        { user: 'root', password: 'r00t', roles: [{ role: 'root', db: 'admin' }] },
        { user: 'writer', password: 'p@ss:wörd', roles: [{ role: 'readWrite', db: 'shop' }] },
        { user: 'reader', password: 'read', db: 'shop', roles: [{ role: 'read', db: 'shop' }] },
        { user: 'nobody', password: 'none', roles: [] },
        { user: 'comma,equals=', password: 'odd', roles: [{ role: 'readAnyDatabase', db: 'admin' }] },
      ],
    });
    await as('root', 'r00t', (client) => client.db('shop').collection('orders').insertOne({ n: 1 }));
  });
  afterAll(() => server.close());

  const as = <T>(
    username: string,
    password: string,
    work: (client: MongoClient) => Promise<T>,
    options: MongoClientOptions = {},
  ): Promise<T> => connectTo(server.uri, { auth: { username, password }, ...options }, work);

  it('lets in who proves the password with SCRAM-SHA-256', async () => {
    for (const [user, password] of [
      ['writer', 'p@ss:wörd'],
      ['comma,equals=', 'odd'],
    ] as const) {
      const found = await as(user, password, (client) =>
        client.db('shop').collection('orders').countDocuments(),
      );
      expect(found).toBe(1);
    }
    // Also where the driver names the mechanism, or the user is of another database than admin.
    const named = { authMechanism: 'SCRAM-SHA-256' as const };
    await as('writer', 'p@ss:wörd', (client) => client.db('shop').collection('orders').findOne(), named);
    await as('reader', 'read', (client) => client.db('shop').collection('orders').findOne(), {
      authSource: 'shop',
    });
  });

  it.each([
    ['a wrong password', 'writer', 'wrong', {}],
    ['a user that does not exist', 'somebody', 'wrong', {}],
    ['a user of another database', 'reader', 'read', {}],
    ['an empty proof of another mechanism', 'writer', 'p@ss:wörd', { authMechanism: 'SCRAM-SHA-1' }],
  ] as const)('refuses %s', async (_, user, password, options) => {
    const refused = as(user, password, (client) => client.db('shop').command({ ping: 1 }), options);
    await expect(refused).rejects.toThrow(
      'authMechanism' in options
        ? code(334)
        : expect.objectContaining({ code: 18, codeName: 'AuthenticationFailed' }),
    );
  });

  describe('takes as proof', () => {
    const sha = (bytes: Buffer) => createHash('sha256').update(bytes).digest();
    const mac = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest();
    const status = (client: MongoClient) => client.db('admin').command({ connectionStatus: 1 });
    const start = async (client: MongoClient, user: string, header = 'n,,') => {
      const bare = `n=${user},r=nonce-of-the-client`;
      const payload = new Binary(Buffer.from(header + bare));
      const answer = await client
        .db('admin')
        .command({ saslStart: 1, mechanism: 'SCRAM-SHA-256', payload, options: { skipEmptyExchange: true } });
      return { bare, first: Buffer.from(answer['payload'].value()).toString() };
    };
    /** The last message of a client, which may lie in one member. */
    const proof = (
      { bare, first }: { bare: string; first: string },
      password: string,
      lie: { c?: string; r?: string } = {},
    ) => {
      const [, r = '', s = '', i = ''] = /^r=(.+),s=(.+),i=(\d+)$/.exec(first) ?? [];
      const salted = pbkdf2Sync(password, Buffer.from(s, 'base64'), Number(i), 32, 'sha256');
      const key = mac(salted, 'Client Key');
      const final = `c=${lie.c ?? 'biws'},r=${lie.r ?? r}`;
      const signature = mac(sha(key), `${bare},${first},${final}`);
      return `${final},p=${Buffer.from(key.map((byte, at) => byte ^ signature[at]!)).toString('base64')}`;
    };
    const go = (client: MongoClient, text: string) =>
      client
        .db('admin')
        .command({ saslContinue: 1, conversationId: 1, payload: new Binary(Buffer.from(text)) });
    const alone = (work: (client: MongoClient) => Promise<void>) =>
      connectTo(server.uri, { maxPoolSize: 1 }, work);

    it('that of its own conversation, once', async () => {
      await alone(async (client) => {
        const begun = await start(client, 'root');
        const good = proof(begun, 'r00t');
        expect(begun.first).toMatch(/^r=nonce-of-the-client.{32},s=.+,i=15000$/);
        expect(await go(client, good)).toMatchObject({ done: true });
        await expect(go(client, good)).rejects.toThrow(code(17));
        await start(client, 'root');
        await expect(go(client, good)).rejects.toThrow(code(18));
      });
    });

    it.each([
      ['another nonce', { r: 'nonce-of-the-client' }],
      ['another header than the first message had', { c: 'eSws' }],
    ])('nothing with %s', async (_, lie) => {
      await alone(async (client) => {
        await expect(go(client, proof(await start(client, 'root'), 'r00t', lie))).rejects.toThrow(code(18));
        await expect(client.db('shop').collection('orders').findOne()).rejects.toThrow(code(13));
      });
    });

    it('nothing of a login that only began, or began again for another user', async () => {
      await alone(async (client) => {
        const reader = await start(client, 'nobody');
        await start(client, 'root');
        await expect(client.db('shop').collection('orders').findOne()).rejects.toThrow(code(13));
        await expect(go(client, proof(reader, 'none'))).rejects.toThrow(code(18));
        expect((await status(client))['authInfo'].authenticatedUsers).toEqual([]);
      });
    });

    it('that of the later user, where a connection logs in twice', async () => {
      await alone(async (client) => {
        await go(client, proof(await start(client, 'root'), 'r00t'));
        await go(client, proof(await start(client, 'nobody'), 'none'));
        expect((await status(client))['authInfo'].authenticatedUsers).toEqual([
          { user: 'nobody', db: 'admin' },
        ]);
        await expect(client.db('shop').collection('orders').findOne()).rejects.toThrow(code(13));
      });
    });
  });

  it('answers nothing but the handshake before a login', async () => {
    await connectTo(server.uri, {}, async (client) => {
      expect(await client.db('admin').command({ ping: 1 })).toMatchObject({ ok: 1 });
      expect(await client.db('admin').command({ hello: 1 })).toMatchObject({ isWritablePrimary: true });
      await expect(client.db('shop').collection('orders').findOne()).rejects.toThrow(
        expect.objectContaining({ code: 13, message: 'Command find requires authentication' }),
      );
      await expect(client.db('admin').command({ serverStatus: 1 })).rejects.toThrow(code(13));
    });
  });

  it('gives a reader no write, a writer no other database and nobody nothing', async () => {
    await as(
      'reader',
      'read',
      async (client) => {
        const orders = client.db('shop').collection('orders');
        expect(await orders.find().toArray()).toHaveLength(1);
        expect(await orders.aggregate([{ $count: 'n' }]).toArray()).toEqual([{ n: 1 }]);
        const message = expect.objectContaining({
          code: 13,
          codeName: 'Unauthorized',
          message: expect.stringMatching(/^not authorized on shop to execute command \{ insert: "orders"/),
        });
        await expect(orders.insertOne({ n: 2 })).rejects.toThrow(message);
        await expect(orders.updateOne({}, { $set: { n: 2 } })).rejects.toThrow(code(13));
        await expect(orders.deleteMany({})).rejects.toThrow(code(13));
        await expect(orders.drop()).rejects.toThrow(code(13));
        await expect(orders.createIndex({ n: 1 })).rejects.toThrow(code(13));
        await expect(orders.aggregate([{ $out: 'copy' }]).toArray()).rejects.toThrow(code(13));
      },
      { authSource: 'shop' },
    );
    await as('writer', 'p@ss:wörd', async (client) => {
      await client
        .db('shop')
        .collection('orders')
        .updateOne({ n: 1 }, { $set: { seen: true } });
      await expect(client.db('other').collection('x').insertOne({})).rejects.toThrow(code(13));
      await expect(client.db('other').collection('x').findOne()).rejects.toThrow(code(13));
      const merged = client
        .db('shop')
        .collection('orders')
        .aggregate([{ $merge: { into: { db: 'other', coll: 'x' } } }]);
      await expect(merged.toArray()).rejects.toThrow(code(13));
      await expect(client.db('shop').dropDatabase()).rejects.toThrow(code(13));
      const { databases } = await client.db().admin().listDatabases();
      expect(databases.map(({ name }) => name)).toEqual(['shop']);
    });
    await as('nobody', 'none', async (client) => {
      await expect(client.db('shop').collection('orders').findOne()).rejects.toThrow(code(13));
      await expect(client.db('shop').listCollections().toArray()).rejects.toThrow(code(13));
    });
  });

  it('says who is logged in and what they may do', async () => {
    const status = await as('writer', 'p@ss:wörd', (client) =>
      client.db('admin').command({ connectionStatus: 1, showPrivileges: true }),
    );
    expect(status['authInfo']).toMatchObject({
      authenticatedUsers: [{ user: 'writer', db: 'admin' }],
      authenticatedUserRoles: [{ role: 'readWrite', db: 'shop' }],
      authenticatedUserPrivileges: [
        {
          resource: { db: 'shop', collection: '' },
          actions: expect.arrayContaining(['find', 'insert', 'remove', 'update']),
        },
      ],
    });
  });
});

describe('a server without users', () => {
  it('refuses every login', async () => {
    const server = await EmbeddedMongo.start();
    const auth = { username: 'a', password: 'b' };
    const ping = connectTo(server.uri, { auth }, (client) => client.db('d').command({ ping: 1 }));
    await expect(ping).rejects.toThrow('Authentication failed');
    await server.close();
  });
});

describe('a server with a certificate', () => {
  const certificates = new TestCertificates();
  afterAll(() => certificates.remove());

  const tls = { cert: certificates.text('server.pem'), key: certificates.text('server.key') };
  const ca = certificates.text('ca.pem');
  const tlsCAFile = certificates.path('ca.pem');
  const ping = (client: MongoClient) => client.db('d').command({ ping: 1 });
  const options = { serverSelectionTimeoutMS: 1_000 };

  it('speaks TLS only, to clients that trust its authority', async () => {
    const server = await EmbeddedMongo.start({ tls });
    try {
      expect(server.uri).toMatch(/tls=true$/);
      expect(await connectTo(server.uri, { ...options, tlsCAFile }, ping)).toMatchObject({ ok: 1 });
      await expect(connectTo(server.uri, options, ping)).rejects.toThrow(/certificate/);
      await expect(connectTo(server.uri.replace('&tls=true', ''), options, ping)).rejects.toThrow(
        /closed|ECONNRESET|socket/i,
      );
    } finally {
      await server.close();
    }
  });

  it('asks for a certificate of the client where it is told to', async () => {
    const server = await EmbeddedMongo.start({ tls: { ...tls, ca } });
    try {
      const tlsCertificateKeyFile = certificates.path('client-both.pem');
      expect(
        await connectTo(server.uri, { ...options, tlsCAFile, tlsCertificateKeyFile }, ping),
      ).toMatchObject({ ok: 1 });
      await expect(connectTo(server.uri, { ...options, tlsCAFile }, ping)).rejects.toThrow(
        /certificate required|ECONNRESET|closed|EPIPE/i,
      );
    } finally {
      await server.close();
    }
  });
});

describe('a server that hangs', () => {
  it('accepts connections and requests, and answers them when it goes on', async () => {
    const server = await EmbeddedMongo.start();
    await connectTo(server.uri, {}, async (client) => {
      await client.db('d').collection('rows').insertOne({ n: 1 });
      await server.pause();
      const waiting = client.db('d').collection('rows').countDocuments();
      const early = await Promise.race([
        waiting,
        new Promise((resolve) => setTimeout(resolve, 300, 'nothing')),
      ]);
      expect(early).toBe('nothing');
      await expect(
        connectTo(server.uri, { serverSelectionTimeoutMS: 300 }, (other) =>
          other.db('d').command({ ping: 1 }),
        ),
      ).rejects.toThrow(/Server selection timed out/);
      await server.resume();
      expect(await waiting).toBe(1);
      await server.pause();
    });
    // Closing does not wait for what hangs.
    await server.close();
  });
});
