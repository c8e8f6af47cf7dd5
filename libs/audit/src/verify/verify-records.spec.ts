import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ChainHead } from '../audit-record.js';
import { AuditChain, RecordSeal } from '../chain/audit-chain.js';
import { fileSource, type RecordSource } from './record-source.js';
import { type VerifyOptions, verifyRecords } from './verify-records.js';

const at = '2026-01-01T00:00:00.000Z';
const PLAIN = new RecordSeal();

/** One process that wrote `calls` calls, as lines. */
function writeChain(calls: number, heads: readonly ChainHead[] = [], seal = PLAIN) {
  const chain = new AuditChain(seal);
  const lines = [chain.append({ type: 'chain_begin', at, heads }).line];
  for (let call = 0; call < calls; call += 1)
    lines.push(chain.append({ type: 'tool_call', at, tool: `tool-${call}`, rows: call }).line);
  return { id: chain.id, lines, chain, head: () => chain.head as ChainHead };
}

const source = (name: string, lines: readonly string[], group = 'files'): RecordSource => ({
  name,
  group,
  async *read() {
    for (const [index, text] of lines.entries()) {
      let value: unknown;
      try {
        value = JSON.parse(text);
      } catch {
        value = undefined;
      }
      yield await Promise.resolve({ line: index + 1, value, text });
    }
  },
});

const verify = (sources: readonly RecordSource[], options: Partial<VerifyOptions> = {}) =>
  verifyRecords(sources, { seal: PLAIN, ...options });

async function firstFault(sources: readonly RecordSource[], options: Partial<VerifyOptions> = {}) {
  const { faults } = await verify(sources, options);
  const [first] = faults;
  return first && `${first.kind} ${first.source}:${first.line} #${first.seq}`;
}

describe('another key than that of the records', () => {
  it('is one fault for each chain, and no word of altered records', async () => {
    const [one, two] = [writeChain(20), writeChain(20)];
    const { faults } = await verify([source('log', [...one.lines, ...two.lines])], {
      seal: new RecordSeal('k'.repeat(32)),
    });
    expect(faults.map(({ kind, line }) => `${kind} ${line}`)).toEqual(['other_key 1', 'other_key 22']);
    expect(faults[0]?.message).toContain('audit.chainKey');
  });
});

describe('a history that nobody touched', () => {
  it('holds: one file, files put aside, replicas in one file, replicas that saw each other', async () => {
    const one = writeChain(20);
    expect(await firstFault([source('a', one.lines)])).toBeUndefined();
    expect(
      await firstFault([source('a', one.lines.slice(0, 7)), source('b', one.lines.slice(7))]),
    ).toBeUndefined();
    expect(
      await firstFault([source('b', one.lines.slice(7)), source('a', one.lines.slice(0, 7))]),
    ).toBeUndefined();
    const two = writeChain(20, [one.head()]);
    const mixed = one.lines.flatMap((line, index) => [line, two.lines[index] as string]);
    expect(await firstFault([source('both', mixed)])).toBeUndefined();
    expect(await firstFault([source('a', one.lines), source('b', two.lines)])).toBeUndefined();
    const result = await verify([source('a', one.lines), source('b', two.lines)]);
    expect(result).toMatchObject({
      records: 42,
      chains: [
        { seq: 20, witnessed: 20 },
        { seq: 20, witnessed: null },
      ],
    });
  });

  it('holds in two places at once', async () => {
    const { lines } = writeChain(5);
    expect(await firstFault([source('a', lines), source('mongodb', lines, 'mongodb')])).toBeUndefined();
  });
});

describe('a file that somebody filled', () => {
  it('is read to its end: lines of any length, values of any depth', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'parley-records-'));
    const path = join(folder, 'records.jsonl');
    const [first = '', second = ''] = writeChain(1).lines;
    const deep = `${first.slice(0, -1)},"deep":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
    writeFileSync(path, `${first}\r\n${second}\n${deep}\n`);
    for (let part = 0; part < 65; part += 1) appendFileSync(path, 'x'.repeat(1_048_576));
    appendFileSync(path, '\nno end');
    const { faults } = await verify([fileSource(path)]);
    rmSync(folder, { recursive: true });
    expect(faults.map(({ kind, line }) => `${kind} ${line}`)).toEqual(
      expect.arrayContaining(['altered 3', 'unreadable 4', 'unreadable 5']),
    );
  });
});

describe('a history of many chains', () => {
  it('never hides behind beginnings that are not given that its end was cut off', async () => {
    const begun = Array.from({ length: 1_200 }, () => writeChain(1).lines.slice(1)).flat();
    const one = writeChain(3);
    const part = [source('a', [...begun, ...one.lines.slice(0, -1)])];
    const { faults, notes } = await verify(part, { partial: true, heads: [one.head()] });
    expect(faults).toMatchObject([{ kind: 'missing', chain: one.id, seq: 3 }]);
    expect(notes.every(({ kind }) => kind === 'incomplete')).toBe(true);
    expect(notes.length).toBeGreaterThan(0);
  });

  it('is read to its end, however often a chain is named by others', async () => {
    const one = writeChain(3);
    const often = Array.from({ length: 200_000 }, () => one.head());
    const { faults, chains } = await verify([source('a', [...one.lines, ...writeChain(0, often).lines])]);
    expect(faults).toEqual([]);
    expect(chains[0]).toMatchObject({ chain: one.id, seq: 3, witnessed: 3 });
  });
});

describe('verifying names the first record', () => {
  const { lines, id, head } = writeChain(10);
  const replaceLine = (index: number, line: string) => lines.with(index, line);
  const without = (...gone: number[]) => lines.filter((_, index) => !gone.includes(index));

  it.each<[string, readonly string[], string]>([
    ['that was edited', replaceLine(4, lines[4]!.replace('"rows":3', '"rows":4')), 'altered log:5 #4'],
    ['that was edited and sealed again', resealRecord(4, { rows: 99 }), 'altered log:6 #5'],
    [
      'whose text reads otherwise',
      replaceLine(4, lines[4]!.replace('{', '{"tool":"other",')),
      'altered log:5 #4',
    ],
    ['that was removed', without(4), 'missing log:5 #4'],
    ['of several that were removed', without(4, 5, 6, 8), 'missing log:5 #4'],
    ['that was moved up', lines.with(5, lines[6]!).with(6, lines[5]!), 'reordered log:6 #6'],
    ['that stands twice', [...lines, lines[3]!], 'repeated log:12 #3'],
    ['that is no record', [...lines.slice(0, 3), 'what?', ...lines.slice(3)], 'unreadable log:4 #undefined'],
    ['that was never sealed', replaceLine(2, '{"at":"x","tool":"y"}'), 'unreadable log:3 #undefined'],
    ['after a beginning that is gone', without(0, 1), 'incomplete log:1 #2'],
  ])('%s', async (_what, tampered, expected) => {
    expect(await firstFault([source('log', tampered)])).toBe(expected);
  });

  function resealRecord(index: number, change: object): string[] {
    const { hash: _hash, ...record } = JSON.parse(lines[index]!) as Record<string, unknown>;
    return lines.with(index, PLAIN.seal({ ...record, ...change } as never).line);
  }

  it('cut off the end, when a head was kept elsewhere', async () => {
    const cut = [source('log', lines.slice(0, 8))];
    expect(await firstFault(cut)).toBeUndefined();
    expect(await firstFault(cut, { heads: [head()] })).toBe('missing log:null #8');
  });

  it('cut off the end, when the next process of the same replica saw it', async () => {
    const next = writeChain(2, [head()]);
    expect(await firstFault([source('log', [...lines.slice(0, 9), ...next.lines])])).toBe(
      'missing log:null #9',
    );
  });

  it('cut off the end of one place, when another place has it', async () => {
    const sources = [source('log', lines.slice(0, 6)), source('mongodb', lines, 'mongodb')];
    expect(await firstFault(sources)).toBe('missing log:null #6');
  });

  it('of a chain that was rewritten from some place on', async () => {
    const forged = lines.slice(0, 5);
    let prev = (JSON.parse(lines[4]!) as ChainHead).hash;
    for (let seq = 5; seq <= 10; seq += 1) {
      const { record, line } = PLAIN.seal({
        type: 'tool_call',
        at,
        tool: 'nothing',
        chain: id,
        seq,
        prev,
      } as never);
      forged.push(line);
      prev = record.hash;
    }
    expect(await firstFault([source('log', forged)])).toBeUndefined();
    expect(await firstFault([source('log', forged)], { heads: [head()] })).toBe('contradicted log:null #10');
    const keyed = new RecordSeal('k'.repeat(32));
    expect(await firstFault([source('log', forged)], { seal: keyed })).toBe('other_key log:1 #0');
  });

  it('of two files that were spliced, or of an old one in the place of a new one', async () => {
    const other = writeChain(10);
    const spliced = [...lines.slice(0, 5), ...other.lines.slice(5)];
    expect(await firstFault([source('log', spliced)])).toBe('incomplete log:6 #5');
    const next = writeChain(3, [head()]);
    const old = writeChain(10);
    const swapped = [source('log', old.lines), source('next', next.lines)];
    expect((await verify(swapped)).faults).toMatchObject([{ kind: 'incomplete', chain: id }]);
  });

  it('never of a chain that is missing altogether, when only a part was given', async () => {
    const next = writeChain(3, [head()]);
    const part = [source('next', next.lines.slice(1))];
    const { faults, notes } = await verify(part, { partial: true });
    expect(faults).toEqual([]);
    expect(notes.map(({ kind }) => kind)).toContain('incomplete');
  });
});

describe('no change of a history with a kept head goes unnoticed', () => {
  const { lines, head } = writeChain(12);
  const change = fc.oneof(
    fc.record({ kind: fc.constant('remove' as const), at: fc.nat(12) }),
    fc.record({ kind: fc.constant('double' as const), at: fc.nat(12) }),
    fc.record({ kind: fc.constant('swap' as const), at: fc.nat(11) }),
    fc.record({ kind: fc.constant('cut' as const), at: fc.nat(12) }),
    fc.record({ kind: fc.constant('flip' as const), at: fc.nat(12), character: fc.nat(400) }),
  );

  function applyChange(
    to: readonly string[],
    { kind, at: index, ...rest }: typeof change extends fc.Arbitrary<infer C> ? C : never,
  ) {
    const result = [...to];
    switch (kind) {
      case 'remove':
        result.splice(index, 1);
        break;
      case 'double':
        result.splice(index, 0, to[index] ?? '');
        break;
      case 'swap':
        if (result.length > index + 1) result.splice(index, 2, to[index + 1]!, to[index]!);
        break;
      case 'cut':
        result.length = Math.min(result.length, index);
        break;
      case 'flip': {
        const line = to[index] ?? '';
        const place = (rest as { character: number }).character % (line.length || 1);
        const other = line[place] === 'x' ? 'y' : 'x';
        if (line) result[index] = line.slice(0, place) + other + line.slice(place + 1);
      }
    }
    return result;
  }

  it('whatever the change', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
        const tampered = changes.reduce<readonly string[]>(applyChange, lines).filter((line) => line !== '');
        fc.pre(tampered.join('\n') !== lines.join('\n'));
        const { faults } = await verify([source('log', tampered)], { heads: [head()] });
        expect(faults.length).toBeGreaterThan(0);
      }),
      { numRuns: 300 },
    );
  });
});
