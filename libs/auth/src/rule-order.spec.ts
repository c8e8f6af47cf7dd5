import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileAgentDefinition, MASTER } from '#core';
import { AnonymousRule, ApiKeyRule, CallerSessionRule, ParseSessionRule } from './auth-rules.js';
import { type AuthRule, RuleAuthenticator } from './authenticator.js';
import { AuthenticationUnavailable } from './errors.js';
import { createSlowHash, hashPlainKey, newKey, parseKeyHash, SlowComparisons } from './key-hash.js';
import { NamedRule } from './named-rule.js';

const definitions = Object.fromEntries(
  ['slow', 'plain', 'digest', 'user'].map((name) => [name, compileAgentDefinition(name)]),
);
const findDefinition = (name: string) => definitions[name] as ReturnType<typeof compileAgentDefinition>;

const owners = {
  ownerOfSession: (token: string) =>
    Promise.resolve(token === 'r:ada' ? { userId: 'ada', expiresAt: null } : null),
};

const generated = newKey();
const from = (headers: Record<string, string>) => ({ headers, remoteAddress: '203.0.113.7', method: 'POST' });
const withKey = (key: string) => from({ 'x-mcp-api-key': key });

async function createRules(slowKey: string): Promise<AuthRule[]> {
  return [
    new ApiKeyRule(parseKeyHash(await createSlowHash(slowKey)), findDefinition('slow'), MASTER),
    new ApiKeyRule(hashPlainKey('plain-key'), findDefinition('plain'), MASTER),
    new ApiKeyRule(parseKeyHash(generated.hash), findDefinition('digest'), MASTER),
    new ParseSessionRule(findDefinition('user'), owners),
  ];
}

describe('the order of the rules', () => {
  it('decides who a caller is, also where the first rule that knows the key is the slow one', async () => {
    const rules = await createRules('plain-key');
    const authenticateName = async (key: string, order: readonly AuthRule[]) =>
      (await new RuleAuthenticator(order).authenticate(withKey(key))).definition.name;
    for (let again = 0; again < 2; again += 1) {
      expect(await authenticateName('plain-key', rules)).toBe('slow');
      expect(await authenticateName('plain-key', rules.toReversed())).toBe('plain');
      expect(await authenticateName(generated.key, rules)).toBe('digest');
    }
  });

  it('does not make a right key of a cheap rule, or a session, wait for a flood of unknown keys', async () => {
    const authenticator = new RuleAuthenticator(await createRules('slow-key'));
    const flood = Array.from({ length: 200 }, (_, at) =>
      authenticator.authenticate(withKey(`wrong-${at}`)).catch((error: unknown) => error),
    );
    const found = [];
    for (const request of [
      withKey('plain-key'),
      withKey(generated.key),
      from({ 'x-parse-session-token': 'r:ada' }),
    ])
      found.push((await authenticator.authenticate(request)).definition.name);
    expect(found).toEqual(['plain', 'digest', 'user']);
    expect(await flood.at(-1)).toBeInstanceOf(AuthenticationUnavailable);
  }, 60_000);
});

describe('rules that are found by the digest of a key', () => {
  const definitionAt = (at: number) => compileAgentDefinition(`agent-${at}`);
  const keys = ['one', 'two', 'three'];
  const kinds: readonly ((at: number, key: string) => AuthRule)[] = [
    (at, key) => new ApiKeyRule(hashPlainKey(key), definitionAt(at), MASTER),
    (at, key) => new NamedRule(kinds[0]!(at, key), { name: `key-${at}` }),
    (at, key) => new NamedRule(kinds[0]!(at, key), { name: `key-${at}`, expires: '2020-01-01' }),
    (at, key) => new CallerSessionRule(kinds[0]!(at, key), owners),
    (at) => new ParseSessionRule(definitionAt(at), owners),
    (at) => new AnonymousRule(definitionAt(at), MASTER),
  ];
  const lists = fc.array(fc.tuple(fc.nat(kinds.length - 1), fc.constantFrom(...keys)), { maxLength: 8 });
  const shown = fc.record(
    {
      'x-mcp-api-key': fc.constantFrom(...keys, 'unknown'),
      authorization: fc.constantFrom(...keys.map((key) => `Bearer ${key}`)),
      'x-parse-session-token': fc.constantFrom('r:ada', 'r:nobody'),
    },
    { requiredKeys: [] },
  );

  /** A rule that does not say which key it recognises. */
  function withoutDigest(rule: AuthRule): AuthRule {
    return Object.defineProperty(Object.create(rule) as AuthRule, 'keyDigest', { value: undefined });
  }

  it('admit and refuse the callers that the rules admit and refuse when each is asked in its order', async () => {
    const outcomes = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(lists, shown, async (list, headers) => {
        const rules = list.map(([kind, key], at) => kinds[kind]!(at, key));
        const request = {
          headers: { host: 'localhost', ...headers },
          remoteAddress: '127.0.0.1',
          method: 'POST',
        };
        const ask = (asked: readonly AuthRule[]) =>
          new RuleAuthenticator(asked).authenticate(request).then(
            ({ definition, keyName }) => `${definition.name} ${keyName}`,
            (error: unknown) => String(error),
          );
        const found = await ask(rules);
        expect(found).toBe(await ask(rules.map(withoutDigest)));
        const kind = found.startsWith('agent') ? 'admitted' : 'refused';
        outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1);
      }),
      { numRuns: 1_000 },
    );
    expect(Math.min(outcomes.get('admitted') ?? 0, outcomes.get('refused') ?? 0)).toBeGreaterThan(100);
  });

  it('of other keys are not asked', async () => {
    const asked: string[] = [];
    class Counted extends ApiKeyRule {
      override recognise(...request: Parameters<ApiKeyRule['recognise']>) {
        asked.push(this.keyDigest ?? '');
        return super.recognise(...request);
      }
    }
    const rules = keys.map((key) => new Counted(hashPlainKey(key), findDefinition('plain'), MASTER));
    await new RuleAuthenticator(rules).authenticate(withKey('two'));
    expect(asked).toEqual([rules[1]?.keyDigest]);
  });
});

describe('slow comparisons', () => {
  const hash = {
    kind: 'scrypt',
    text: 'scrypt:…',
    N: 2 ** 14,
    r: 8,
    p: 1,
    salt: Buffer.from('salt'),
    hash: Buffer.from('hash'),
  } as const;
  const unknown = { network: '203.0.113.7', recognisedElsewhere: false };

  /** Compares with the key `right`, when asked to. */
  function holdComparisons() {
    const compared: string[] = [];
    const waiting: (() => void)[] = [];
    const comparisons = new SlowComparisons((key) => {
      compared.push(key);
      return new Promise((resolve) => waiting.push(() => resolve(key === 'right')));
    });
    const waitForTurn = () => new Promise((resolve) => setImmediate(resolve));
    const goOn = async () => {
      await waitForTurn();
      for (const next of waiting.splice(0)) next();
      await waitForTurn();
    };
    return { comparisons, compared, goOn };
  }

  it('are made once for a key, however many callers show it at the same time', async () => {
    const { comparisons, compared, goOn } = holdComparisons();
    const verdicts = Promise.all([1, 2, 3].map(() => comparisons.matches('right', hash, unknown)));
    await goOn();
    expect(await verdicts).toEqual([true, true, true]);
    expect(compared).toEqual(['right']);
  });

  it('serve the networks that wait in turn', async () => {
    const { comparisons, compared, goOn } = holdComparisons();
    for (let at = 0; at < 20; at += 1)
      comparisons.matches(`flood-${at}`, hash, unknown).catch(() => undefined);
    const verdict = comparisons.matches('right', hash, {
      network: '198.51.100.1',
      recognisedElsewhere: false,
    });
    await goOn();
    await goOn();
    expect(compared.length).toBeLessThanOrEqual(6);
    expect(await verdict).toBe(true);
  });

  it('of a right key stay known while thousands of wrong ones are tried', async () => {
    const comparisons = new SlowComparisons((key) => Promise.resolve(key === 'right'));
    expect(await comparisons.matches('right', hash, unknown)).toBe(true);
    expect(
      await comparisons.matches('of-another-rule', hash, { ...unknown, recognisedElsewhere: true }),
    ).toBe(false);
    for (let at = 0; at < 3_000; at += 1) await comparisons.matches(`wrong-${at}`, hash, unknown);
    expect(comparisons.isKnown('right', hash)).toBe(true);
    expect(comparisons.isKnown('of-another-rule', hash)).toBe(true);
    expect(comparisons.isKnown('wrong-0', hash)).toBe(false);
  });
});
