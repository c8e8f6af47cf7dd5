import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deriveAgent, Refused, sessionIdentity, Unauthorized } from '#core';
import { ProcessVersionedStore, SharedStateUnavailable, steadyClock } from '#state';
import { processSecret } from '#dispatcher';
import { ExportTicketStore } from './export-tickets.js';
import {
  agentOf,
  download,
  exportsUnderTest,
  createOrder,
  promise,
  readParts,
  SECRET,
  songs,
  callOf,
} from './testing/exports.fixture.js';

const ANN = agentOf('ann');
const matchRefusal = (refusal: object) => ({ refusal: expect.objectContaining(refusal) as unknown });

describe('an export', () => {
  it('has every row once, in the order of ids, up to its limit, whatever the number of batches', async () => {
    const counts = fc.integer({ min: 0, max: 2500 });
    const limits = fc.option(fc.integer({ min: 1, max: 2600 }));
    await fc.assert(
      fc.asyncProperty(counts, limits, async (count, limit) => {
        const rows = songs(count);
        const room = exportsUnderTest(rows);
        const text = (await download(room, await promise(room, ANN, createOrder({ limit })), ANN)).join('');
        const titles = rows.slice(0, limit ?? count).map(({ title }) => title);
        expect(text.split('\r\n')).toEqual(['title', ...titles, '']);
        expect(room.audit.entries).toMatchObject([
          { success: true, rows: titles.length, tool: 'export_read', principal: 'ann' },
        ]);
      }),
      { numRuns: 25 },
    );
  });

  it('is the same read in parts, each of whole lines and never above its bytes, and never holds a hidden field', async () => {
    const title = fc.string({ maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(title, { maxLength: 40 }),
        fc.integer({ min: 200, max: 900 }),
        fc.constantFrom('csv' as const, 'ndjson' as const, 'markdown' as const),
        fc.boolean(),
        async (titles, partBytes, format, chosen) => {
          const rows = songs(titles.length, (index) => titles[index] as string);
          const room = exportsUnderTest(rows, { partBytes });
          const order = createOrder({ format, ...(!chosen && { columns: [] }) });
          const id = await promise(room, ANN, order);
          const whole = (await download(room, id, ANN)).join('');
          const parts = await readParts(room, id, ANN);
          expect(parts.join('')).toBe(whole);
          for (const part of parts) expect(Buffer.byteLength(part)).toBeLessThanOrEqual(partBytes);
          expect(whole).not.toContain(SECRET);
          expect(whole).not.toContain('secret');
        },
      ),
      { numRuns: 40 },
    );
  });

  it('asks nothing of the store before its first piece, and nothing more while no further one is taken', async () => {
    const room = exportsUnderTest(songs(5000));
    const id = await promise(room, ANN);
    const opened = await room.downloads.open(id, { agent: ANN, signal: new AbortController().signal });
    expect(room.reader.queries).toEqual([]);
    await opened?.pieces.next();
    expect(room.reader.queries).toHaveLength(1);
    await opened?.pieces.return();
    expect(room.reader.queries).toHaveLength(1);
    expect(room.audit.entries).toMatchObject([{ success: false, error_code: 'cancelled', rows: 1000 }]);
  });

  it('ends with the session of its reader, between two batches', async () => {
    const room = exportsUnderTest(songs(3000));
    const reader = agentOf('ann', {}, sessionIdentity('r:1'));
    room.sessions.open.add('r:1');
    const id = await promise(room, reader);
    room.reader.before = () => room.sessions.open.clear();
    await expect(download(room, id, reader)).rejects.toBeInstanceOf(Unauthorized);
    expect(room.reader.queries).toHaveLength(1);
    expect(room.audit.entries).toMatchObject([{ success: false, gate: 'identity', rows: 1000 }]);
  });

  it.each([
    ['a row too many', { settings: { maxRows: 1500 } }, { code: 'invalid_query' }],
    [
      'a canary, where finding one refuses',
      { policy: { promptInjectionCanaries: ['Song 1200'], canaryAction: 'refuse' as const } },
      { code: 'security_blocked' },
    ],
  ])('is broken off for %s', async (_, options, refusal) => {
    const room = exportsUnderTest(songs(3000), options);
    await expect(download(room, await promise(room, ANN), ANN)).rejects.toMatchObject(matchRefusal(refusal));
    expect(room.audit.entries).toMatchObject([{ success: false, error_code: refusal.code, rows: 1000 }]);
  });

  it('is broken off when the data budget of its owner is used up, and begun no more', async () => {
    const room = exportsUnderTest(songs(5000));
    const modest = agentOf('ann', { budget: { rows: 1500 } });
    const id = await promise(room, modest);
    const exhausted = matchRefusal({ code: 'rate_limited', gate: 'budget' });
    await expect(download(room, id, modest)).rejects.toMatchObject(exhausted);
    expect(room.audit.entries).toMatchObject([{ success: false, rows: 2000 }]);
    await expect(download(room, id, modest)).rejects.toMatchObject(exhausted);
    expect(room.reader.queries).toHaveLength(2);
  });

  it('is charged with its bytes', async () => {
    const room = exportsUnderTest(songs(2000));
    const modest = agentOf('ann', { budget: { bytes: 100 } });
    await expect(download(room, await promise(room, modest), modest)).rejects.toMatchObject(
      matchRefusal({ gate: 'budget' }),
    );
    expect(room.audit.entries).toMatchObject([{ success: false, rows: 1000 }]);
  });

  it('reports a canary that does not refuse to the operator', async () => {
    const room = exportsUnderTest(songs(10), { policy: { promptInjectionCanaries: ['song 3'] } });
    await download(room, await promise(room, ANN), ANN);
    expect(room.canaries).toEqual(['song 3']);
    expect(room.audit.entries).toMatchObject([{ success: true, prompt_injection_phrase: 'song 3' }]);
  });

  it('is broken off when it is taken back', async () => {
    const room = exportsUnderTest(songs(3000));
    const id = await promise(room, ANN);
    room.reader.before = () => void room.tickets.revoke(id, ANN);
    await expect(download(room, id, ANN)).rejects.toMatchObject(matchRefusal({ code: 'cancelled' }));
  });

  it('is broken off when a changed configuration would admit its reader otherwise, whole or in parts', async () => {
    const room = exportsUnderTest(songs(3000));
    const id = await promise(room, ANN);
    room.reader.before = () => void room.returning.add(ANN);
    const changed = matchRefusal({ code: 'cancelled', message: expect.stringContaining('policy') as string });
    for (const read of [download, readParts]) {
      room.returning.clear();
      room.reader.queries.length = 0;
      await expect(read(room, id, ANN)).rejects.toMatchObject(changed);
      expect(room.reader.queries).toHaveLength(1);
    }
  });

  it('is broken off when its reader is gone', async () => {
    const room = exportsUnderTest(songs(3000));
    const reading = new AbortController();
    room.reader.before = () => reading.abort();
    const id = await promise(room, ANN);
    await expect(download(room, id, ANN, reading.signal)).rejects.toMatchObject(
      matchRefusal({ code: 'cancelled' }),
    );
    expect(room.reader.queries).toHaveLength(1);
  });

  it('never goes round in circles when a store does not walk on', async () => {
    const room = exportsUnderTest(songs(2000));
    const find = room.reader.find.bind(room.reader);
    room.reader.find = (query) => find({ ...query, where: {} });
    await expect(download(room, await promise(room, ANN), ANN)).rejects.toThrow('order of their ids');
  });

  it('never lacks the value of a column that its table does not know: it is broken off, in every format', async () => {
    const rows = songs(1500).map((row, index) => (index === 1200 ? { ...row, late: 'a value' } : row));
    const room = exportsUnderTest(rows, { policy: { classes: { Song: {} } } });
    for (const format of ['csv', 'markdown', 'ndjson'] as const)
      for (const columns of [[], [{ header: 'title', path: 'title' }]]) {
        const id = await promise(room, ANN, createOrder({ format, columns }));
        for (const read of [download, readParts]) {
          const text = read(room, id, ANN).then((pieces) => pieces.join(''));
          if (columns.length > 0) expect(await text).not.toContain('late');
          else if (format === 'ndjson') expect(await text).toContain('"late":"a value"');
          else await expect(text).rejects.toThrow(/s001200' has the column 'late'.* as ndjson/);
        }
      }
  });

  it('is refused when the tool, the class or the rate is closed to its owner by then', async () => {
    const room = exportsUnderTest(songs(3));
    const id = await promise(room, ANN);
    const signal = new AbortController().signal;
    const open = (agent: ReturnType<typeof agentOf>) => room.downloads.open(id, { agent, signal });
    await expect(open(agentOf('ann', { tools: { except: ['export_data'] } }))).rejects.toMatchObject(
      matchRefusal({ code: 'tool_filtered' }),
    );
    await expect(open(agentOf('ann', { classes: { except: ['Song'] } }))).rejects.toMatchObject(
      matchRefusal({ code: 'access_denied' }),
    );
    const hurried = agentOf('ann', { rateLimit: 1 });
    await open(hurried);
    await expect(open(hurried)).rejects.toMatchObject(matchRefusal({ code: 'rate_limited' }));
    expect(room.reader.queries).toEqual([]);
  });

  it('whose columns changed between two parts is not put together', async () => {
    const [store, keys] = [new ProcessVersionedStore(), processSecret()];
    const common = { partBytes: 300, store, keys };
    const wide = exportsUnderTest(songs(30), { ...common, policy: { classes: { Song: {} } } });
    const narrow = exportsUnderTest(songs(30), common);
    const id = await promise(wide, ANN, createOrder({ columns: [] }));
    const read = ({ resources, records }: typeof wide, uri: string) =>
      resources.read(uri, callOf(records, ANN));
    const next = (await read(wide, `export://${id}`))?.[1]?.uri as string;
    expect(await read(wide, next)).toHaveLength(2);
    await expect(read(narrow, next)).rejects.toMatchObject(matchRefusal({ code: 'invalid_query' }));
    expect(JSON.stringify(await read(narrow, `export://${id}`))).not.toContain(SECRET);
    expect(await read(wide, `${next}A`)).toBeUndefined();
  });
});

describe('the ticket of an export', () => {
  it('that was taken back makes room for another', async () => {
    const room = exportsUnderTest([], { settings: { maxPerOwner: 2 } });
    const [kept, back] = [await promise(room, ANN), await promise(room, ANN)];
    await room.tickets.revoke(back, ANN);
    await promise(room, ANN);
    expect(await room.tickets.find(kept, ANN)).toBeDefined();
    expect(await room.tickets.open(ANN)).toHaveLength(2);
  });

  it('is found by its owner alone: same principal, tenant and agent, and no sub-agent', async () => {
    const { tickets } = exportsUnderTest([]);
    const agent = agentOf('ann', { tenantId: 'acme' });
    const id = (await tickets.promise(createOrder(), { agent })).uri.slice('export://'.length);
    expect(await tickets.find(id, agentOf('ann', { tenantId: 'acme' }))).toBeDefined();
    const others = [
      agentOf('bob', { tenantId: 'acme' }),
      agentOf('ann', { tenantId: 'globex' }),
      agentOf('ann'),
      agentOf('ann', { tenantId: 'acme' }, undefined, 'other'),
      deriveAgent(agent),
    ];
    for (const other of others) {
      expect(await tickets.find(id, other)).toBeUndefined();
      expect(await tickets.revoke(id, other)).toBe(false);
      expect(await tickets.open(other)).toEqual([]);
    }
    await expect(tickets.promise(createOrder(), { agent: deriveAgent(agent) })).rejects.toBeInstanceOf(
      Refused,
    );
    expect(await tickets.revoke(id, agent)).toBe(true);
    expect(await tickets.find(id, agent)).toBeUndefined();
  });

  it('is refused for now while the state that replicas share cannot be reached', async () => {
    const down = () => Promise.reject(new SharedStateUnavailable());
    for (const away of ['find', 'create'] as const) {
      const exports = Object.assign(new ProcessVersionedStore(), { [away]: down });
      const tickets = new ExportTicketStore(
        { clock: steadyClock, exports },
        { lifetime: 60_000, maxRows: 10, maxPerOwner: 2 },
        { downloads: null },
      );
      await expect(tickets.promise(createOrder(), { agent: ANN })).rejects.toMatchObject(
        matchRefusal({ code: 'rate_limited', retryAfter: expect.any(Number) as unknown }),
      );
    }
  });

  it('never stands beside more than the allowed number, and the oldest give way', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 0, max: 12 }),
        async (most, asked) => {
          const { tickets } = exportsUnderTest([], { settings: { maxPerOwner: most } });
          const uris: string[] = [];
          for (let n = 0; n < asked; n += 1)
            uris.push((await tickets.promise(createOrder(), { agent: ANN })).uri);
          const open = (await tickets.open(ANN)).map(({ uri }) => uri);
          expect(open.toSorted()).toEqual(uris.slice(-most).toSorted());
          expect(new Set(uris).size).toBe(asked);
        },
      ),
      { numRuns: 30 },
    );
  });
});
