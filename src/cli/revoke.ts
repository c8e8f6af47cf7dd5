import { type RevokedBy, revocationName } from '#auth';
import { consoleIssuer, type ParleyConfig } from '#config';
import { hasRedis } from '#core';
import { openSharedState, SharedStateUnavailable, type VersionedStore } from '#state';
import { loadWithPlugins } from '#parley/instance';
import { UsageError, withConfig } from './command-options.js';

interface RevokeOptions {
  readonly issuer: string;
  readonly subject?: string;
  readonly client?: string;
  readonly token?: string;
  /** Seconds. */
  readonly for: string;
  readonly config?: string;
}

function readSubject({ subject, client, token }: RevokeOptions): [RevokedBy, string] {
  const given = Object.entries({ sub: subject, client, jti: token }).filter(([, value]) => value);
  const [only, ...others] = given;
  if (!only || others.length > 0)
    throw new UsageError('exactly one of --subject, --client, --token is needed');
  return only as [RevokedBy, string];
}

/** What asks for revocations of an issuer, and what accepts its tokens without asking. */
interface RevocationReach {
  readonly tokens: boolean;
  readonly sessions: boolean;
  /** Tokens are accepted whatever was revoked. */
  readonly isPartial: boolean;
}

function findReach(config: ParleyConfig, issuer: string): RevocationReach {
  // An issuer has one rule.
  const [rule] = config.auth.flatMap((one) =>
    'oauth' in one && one.oauth.issuer === issuer ? [one.oauth] : [],
  );
  const tokens = rule?.revocationList === true;
  const signsIn = config.console.oidc !== null && consoleIssuer(config) === issuer;
  return { tokens, sessions: signsIn && hasRedis(config.redis), isPartial: rule !== undefined && !tokens };
}

/** @throws Error where nothing would be revoked */
function assertReached({ tokens, sessions }: RevocationReach, issuer: string, by: RevokedBy): void {
  if (!tokens && !sessions)
    throw new Error(
      `no oauth rule of ${issuer} has revocationList: true, and no console that shares Redis signs people in there`,
    );
  if (!tokens && by === 'jti')
    throw new Error(
      `--token revokes nothing: no oauth rule of ${issuer} has revocationList: true, and a session of the console has no token id. End sessions with --subject`,
    );
}

/** What ended, on standard output; on standard error, with exit code 1, that tokens are still accepted. */
function report({ tokens, sessions, isPartial }: RevocationReach, issuer: string, by: RevokedBy): void {
  const ended = [
    ...(tokens ? [`tokens of ${issuer} issued until now`] : []),
    ...(sessions && by !== 'jti' ? [`console sessions of ${issuer} begun until now`] : []),
  ];
  process.stdout.write(`revoked: ${ended.join(', ')}\n`);
  if (!isPartial) return;
  process.stderr.write(`tokens stay valid: no oauth rule of ${issuer} has revocationList: true\n`);
  process.exitCode = 1;
}

/** What a revocation covers, in milliseconds and seconds since 1970. */
interface Revocation {
  /** Tokens issued up to this second are revoked. */
  readonly before: number;
  /** How long it is stored. Absent in those of earlier versions. */
  readonly until: number;
}

const chooseLater = (value: unknown, one: number) => (typeof value === 'number' ? Math.max(value, one) : one);

/** Adds to an earlier revocation of the same: a shorter one must not end a longer one. */
async function keep(store: VersionedStore, id: string, asked: Revocation, now: number): Promise<boolean> {
  if (await store.create(id, { ...asked }, asked.until - now)) return true;
  const earlier = await store.find(id);
  if (!earlier) return false;
  const before = chooseLater(earlier.value['before'], asked.before);
  const until = chooseLater(earlier.value['until'], asked.until);
  return store.replace(id, earlier.revision, { before, until }, until - now);
}

/** Revokes tokens issued and sessions of the console begun until now; later ones are valid. */
export async function runRevoke(options: RevokeOptions): Promise<void> {
  const [by, value] = readSubject(options);
  const seconds = Number(options.for);
  if (!Number.isFinite(seconds) || seconds <= 0) throw new UsageError('--for must be a number of seconds');
  const { config } = await loadWithPlugins(withConfig(options.config), process.cwd());
  const reach = findReach(config, options.issuer);
  assertReached(reach, options.issuer, by);
  const shared = await openSharedState({ ...config.redis, log: { warn: () => undefined } });
  try {
    const id = revocationName(options.issuer, by, value);
    // The later of the clocks here and of Redis: one that is behind must not spare the latest tokens.
    const now = Math.max(Date.now(), shared.clock());
    const asked = { before: Math.floor(now / 1000), until: now + seconds * 1000 };
    if (!(await keep(shared.revocations, id, asked, now)))
      throw new Error('somebody else revoked the same at this moment: try again');
    report(reach, options.issuer, by);
  } catch (error) {
    if (error instanceof SharedStateUnavailable) throw new Error('Redis cannot be reached', { cause: error });
    throw error;
  } finally {
    await shared.close();
  }
}
