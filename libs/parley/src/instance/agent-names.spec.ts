import { describe, expect, it } from 'vitest';
import { StoreError } from '#data';
import { compilePolicy, type PolicyConfig } from '#policy';
import { warnOfDatabase, warnOfFastReads, warnOfNoClasses } from './agent-names.js';

async function warnings(
  uri: string | null,
  empty: boolean | StoreError,
  policy: PolicyConfig = { unlistedClasses: 'allow' },
): Promise<string[]> {
  const lines: string[] = [];
  const isEmpty = () => (typeof empty === 'boolean' ? Promise.resolve(empty) : Promise.reject(empty));
  const names = { isEmpty };
  const loaded = { config: { database: { uri, name: 'shop' } }, policy: compilePolicy(policy).policy };
  await warnOfDatabase(loaded, names, { warn: (line: string) => void lines.push(line) });
  return lines;
}

describe('a database without classes', () => {
  it('is said at the start, with what to write', async () => {
    expect(await warnings('mongodb://db/', true)).toEqual([
      expect.stringMatching(/^database\.name: the database 'shop' has no classes; write the name/),
    ]);
  });

  it('is one that has none of those that the policy lists', async () => {
    expect(await warnings('mongodb://db/', true, { classes: { Post: {} } })).toEqual([
      expect.stringMatching(/^database\.name: .* has none of the classes of policy\.classes; write the name/),
    ]);
  });

  it('is not said where the policy lists no class, which is another warning', async () => {
    expect(await warnings('mongodb://db/', true, {})).toEqual([]);
    const lines: string[] = [];
    const log = { warn: (line: string) => void lines.push(line) };
    for (const policy of [{}, { classes: { Post: {} } }, { unlistedClasses: 'allow' } as const])
      warnOfNoClasses(compilePolicy(policy).policy, log);
    expect(lines).toEqual([expect.stringMatching(/^policy\.classes lists no class.*parley init/)]);
  });

  it.each([
    ['one that has classes', 'mongodb://db/shop', false],
    ['the embedded one', 'embedded', true],
    ['none', null, true],
  ])('is not said of %s', async (_, uri, empty) => {
    expect(await warnings(uri, empty)).toEqual([]);
  });
});

describe('a database that cannot be used', () => {
  it('is said at the start, with the reason and without a credential', async () => {
    const cause = Object.assign(new Error('Authentication failed of s3cret@db'), { code: 18 });
    expect(await warnings('mongodb://u:s3cret@db/shop', new StoreError('failed', { cause }))).toEqual([
      expect.stringMatching(/^the database cannot be used: it refuses the user or the password; check user/),
    ]);
    expect(await warnings('mongodb://db/shop', new StoreError('unavailable'))).toEqual([
      expect.stringMatching(/^the database cannot be used: it does not answer; check/),
    ]);
  });

  it('is not said where something else failed', async () => {
    expect(await warnings('mongodb://db/shop', new StoreError('failed'))).toEqual([]);
  });
});

describe('fast reads', () => {
  const warned = (connection: { readonly fastReadsProblem: string | null } | null): string[] => {
    const lines: string[] = [];
    warnOfFastReads(connection, { warn: (line: string) => void lines.push(line) });
    return lines;
  };

  it('that the connection string rules out are said at the start, with the reason', () => {
    expect(warned({ fastReadsProblem: 'the connection string has compressors' })).toEqual([
      "database.fastReads: every read is the driver's, because the connection string has compressors",
    ]);
  });

  it('that are possible, or not wanted, are not said', () => {
    expect(warned({ fastReadsProblem: null })).toEqual([]);
    expect(warned(null)).toEqual([]);
  });
});
