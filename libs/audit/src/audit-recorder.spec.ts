import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { ProcessVersionedStore } from '#state';
import type { AuditRecord } from './audit-record.js';
import { AuditRecorder, type AuditRecorderOptions, RecentAuditTrail } from './audit-recorder.js';
import { RecordSeal } from './chain/audit-chain.js';
import { ChainAnchorStore } from './chain/chain-anchors.js';
import { RecordingLog, SwitchableDelivery } from './delivery/deliveries.fixture.js';
import { RefusingSinkWriter } from './delivery/sink-writers.js';
import type { RecordSource } from './verify/record-source.js';
import { verifyRecords } from './verify/verify-records.js';

const WAITING = { timeout: 20_000, interval: 10 };
const SEAL = new RecordSeal('a key of at least thirty-two characters');

const call = (options: Partial<AuditRecord> = {}): AuditRecord => ({
  at: '2026-01-01T00:00:00.000Z',
  tool: 'query_class',
  args_keys: [],
  auth_type: 'master_key',
  using_master_key: true,
  permissions: 'readonly',
  agent_id: 'id',
  agent_depth: 0,
  agent_name: 'analyst',
  principal: 'p',
  policy_version: 'v',
  success: true,
  duration_ms: 1,
  ...options,
});

function recorderOver(place: SwitchableDelivery, options: Partial<AuditRecorderOptions> = {}) {
  const log = new RecordingLog();
  const recent = new RecentAuditTrail();
  const recorder = new AuditRecorder({
    listeners: [],
    recent,
    writers: [new RefusingSinkWriter(place, 1_000, log)],
    seal: SEAL,
    anchors: null,
    replica: 'one',
    anchorInterval: 60_000,
    log,
    ...options,
  });
  return { recorder, log, recent };
}

const createSource = (name: string, place: SwitchableDelivery): RecordSource => ({
  name,
  group: 'files',
  async *read() {
    for (const [index, { line }] of place.taken.entries())
      yield await Promise.resolve({ line: index + 1, value: JSON.parse(line) as unknown, text: line });
  },
});
const findIssues = async (...places: SwitchableDelivery[]) =>
  (
    await verifyRecords(
      places.map((place, index) => createSource(String(index), place)),
      { seal: SEAL },
    )
  ).faults;
const listTypes = (place: SwitchableDelivery) => place.taken.map(({ record }) => record.type);

describe('the recorder of everything that happens', () => {
  it('begins a chain, puts every kind of record into it and ends it', async () => {
    const place = new SwitchableDelivery();
    const { recorder, recent } = recorderOver(place);
    await recorder.open();
    await recorder.record(call());
    await recorder.record(call({ tool: 'export_read' }));
    recorder.recordApproval({
      at: '2026-01-01T00:00:00.000Z',
      tool: 'delete_object',
      effective_permission: 'write',
      outcome: 'deny',
      principal: 'p',
      agent_name: 'writer',
      duration_ms: 5,
    });
    recorder.recordEvent({
      type: 'operator_action',
      at: '2026-01-01T00:00:00.000Z',
      success: true,
      action: 'reload',
    });
    await recorder.close();
    expect(listTypes(place)).toEqual([
      'chain_begin',
      'tool_call',
      'export_read',
      'approval',
      'operator_action',
      'chain_end',
    ]);
    expect(await findIssues(place)).toEqual([]);
    expect((await recent.search({ outcome: 'failure' })).entries).toMatchObject([{ type: 'approval' }]);
    expect(place.closed).toBe(true);
  });

  it('seals nothing where nothing is kept, and still numbers records in their order', async () => {
    const { recorder, recent } = recorderOver(new SwitchableDelivery(), { writers: [] });
    await recorder.open();
    expect(recorder.record(call({ tool: 'first' }))).toBeUndefined();
    expect(recorder.record(call({ tool: 'second' }))).toBeUndefined();
    const { entries } = await recent.search({});
    expect(entries.map(({ seq }) => seq)).toEqual([1, 0]);
    expect(entries.every(({ hash, prev }) => hash === undefined && prev === undefined)).toBe(true);
    expect(new Set(entries.map(({ chain }) => chain)).size).toBe(1);
    await recorder.close();
  });

  it('lets no call run while records cannot be kept, and records afterwards how many it refused', async () => {
    const place = new SwitchableDelivery();
    const { recorder } = recorderOver(place);
    await recorder.open();
    expect(recorder.admit()).toBeNull();
    place.isUp = false;
    await expect(recorder.record(call())).rejects.toThrow('place');
    expect([recorder.admit(), recorder.admit()]).toEqual([5, 5]);
    place.isUp = true;
    await vi.waitFor(() => expect([...recorder.states.values()]).toEqual(['up']), WAITING);
    expect(recorder.admit()).toBeNull();
    await recorder.record(call());
    expect(listTypes(place)).toEqual(['chain_begin', 'tool_call', 'outage', 'tool_call']);
    expect(place.taken[2]?.record).toMatchObject({ refused: 2, dropped: 0, success: false });
    expect(await findIssues(place)).toEqual([]);
    await recorder.close();
  });

  it.each(['rate_limit', 'audit', 'application', 'suspension', 'protocol'])(
    'keeps 500 refusals of a caller that does not wait by the gate %s, and every record of others, and counts the rest',
    async (gate) => {
      const place = Object.assign(new SwitchableDelivery(), { batch: 1_000 });
      let open = () => undefined as void;
      place.gate = new Promise((resolve) => (open = resolve));
      const { recorder } = recorderOver(place);
      void recorder.open();
      const limited = { success: false, gate, error_code: 'rate_limited' } as const;
      const record = async (options: Partial<AuditRecord>, begun = false) =>
        recorder.record(call(options), begun);
      const flood = Array.from({ length: 20_000 }, () => record(limited));
      const lost = Promise.allSettled(flood).then((all) => all.filter(({ status }) => status === 'rejected'));
      expect(recorder.admit()).toBeNull();
      // A handler that ran may end with the refusal of a call of its own.
      const others = [
        record({}),
        record({ ...limited, principal: 'q' }),
        record({ ...limited, tool: 'ran' }, true),
      ];
      open();
      await Promise.all(others);
      expect(await lost).toHaveLength(19_500);
      const kept = place.taken.map(({ record }) => record);
      const ofCaller = kept.filter((one) => one['gate'] === gate && one['principal'] === 'p');
      expect(ofCaller).toHaveLength(501);
      expect(ofCaller.at(-1)).toMatchObject({ tool: 'ran' });
      expect(kept.find(({ type }) => type === 'outage')).toMatchObject({ refused: 0, dropped: 19_500 });
      await record(limited);
      await recorder.close();
      expect(await findIssues(place)).toEqual([]);
    },
  );

  it('hears nothing of a listener that fails', async () => {
    const place = new SwitchableDelivery();
    const broken = {
      record: () => {
        throw new Error('listener');
      },
    } as never;
    const { recorder, log } = recorderOver(place, { listeners: [broken] });
    await recorder.open();
    await recorder.record(call());
    expect(listTypes(place)).toEqual(['chain_begin', 'tool_call']);
    expect(log.lines.join()).toContain('an audit listener failed');
    await recorder.close();
  });

  it('keeps private text short, and none of an error, which may quote a value', async () => {
    const place = new SwitchableDelivery();
    const { recorder } = recorderOver(place);
    await recorder.open();
    await recorder.record(call({ success: false, error_code: 'access_denied', cause: 'x'.repeat(9_000) }));
    await recorder.record(
      call({ success: false, error_code: 'internal_error', cause: 'dup key { ssn: 1 }' }),
    );
    const [, denied, failed] = place.taken.map(({ record }) => record);
    expect(denied?.['cause']).toHaveLength(501);
    expect(failed).not.toHaveProperty('cause');
    await recorder.close();
  });

  it('writes one line a record that drives no terminal, whatever a name holds', async () => {
    const place = new SwitchableDelivery();
    const { recorder } = recorderOver(place);
    await recorder.open();
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), async (text) => {
        await recorder.record(call({ tool: `a\r\n\u001b[2J\u202e\u2028${text}`, tenant_id: text }));
        const { line, record } = place.taken.at(-1)!;
        // eslint-disable-next-line no-control-regex
        expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2028\u2029]/);
        expect(SEAL.holds(JSON.parse(line) as typeof record, line)).toBe(true);
        // What UTF-8 can keep of it is the same record.
        const stored = JSON.parse(Buffer.from(JSON.stringify(record)).toString('utf8')) as typeof record;
        expect(SEAL.holds(stored)).toBe(true);
      }),
      { numRuns: 200 },
    );
    await recorder.close();
  });
});

describe('processes that share a store of anchors', () => {
  it('name each other, so that what is cut off one is missed by the other', async () => {
    const anchors = new ChainAnchorStore(new ProcessVersionedStore());
    const places = [new SwitchableDelivery(), new SwitchableDelivery()] as const;
    const [one, two] = places.map((place, index) =>
      recorderOver(place, { anchors, replica: String(index), anchorInterval: 15 }),
    );
    await one!.recorder.open();
    await two!.recorder.open();
    for (let index = 0; index < 5; index += 1) await one!.recorder.record(call());
    await vi.waitFor(
      () =>
        expect(JSON.stringify(places[1].taken.map(({ record }) => record['heads'] ?? []))).toContain(
          places[0].taken.at(-1)!.record.hash,
        ),
      WAITING,
    );
    expect(await findIssues(...places)).toEqual([]);
    const cut = new SwitchableDelivery();
    cut.taken.push(...places[0].taken.slice(0, 3));
    expect((await findIssues(cut, places[1]))[0]).toMatchObject({ kind: 'missing', seq: 3, source: '0' });
    await one!.recorder.close();
    await two!.recorder.close();
    const ended = places.map(({ taken }) => taken.length);
    expect(await findIssues(...places)).toEqual([]);
    // A record of the head of the other is no reason to announce one's own again.
    expect(Math.max(...ended)).toBeLessThan(40);
  });

  it('name the one before, which ended without a word', async () => {
    const anchors = new ChainAnchorStore(new ProcessVersionedStore());
    const before = new SwitchableDelivery();
    const crashed = recorderOver(before, { anchors, anchorInterval: 10 });
    await crashed.recorder.open();
    await crashed.recorder.record(call());
    await vi.waitFor(async () => expect((await anchors.heads())[0]).toMatchObject({ seq: 1 }), WAITING);
    const after = new SwitchableDelivery();
    const next = recorderOver(after, { anchors });
    await next.recorder.open();
    await next.recorder.record(call());
    expect(after.taken[0]?.record['heads']).toMatchObject([{ chain: before.taken[0]?.record.chain, seq: 1 }]);
    expect((await findIssues(after))[0]).toMatchObject({ kind: 'incomplete' });
    await next.recorder.close();
    await crashed.recorder.close();
  });
});
