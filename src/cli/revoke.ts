import { type RevokedBy, revocationName } from '#auth';
import { consoleIssuer, type ParleyConfig } from '#config';
import { hasRedis } from '#core';
import { openSharedState, SharedStateUnavailable, type VersionedStore } from '#state';
import { loadWithPlugins } from '#parley/instance';
import { UsageError, withConfig } from './command-options.js';

export interface RevokeOptions {
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

/** Whether somebody asks for revocations of an issuer: a rule of its tokens, or the sessions of the console. */
function asksForRevocations(config: ParleyConfig, issuer: string): boolean {
  const hasRule = config.auth.some(
    (rule) => 'oauth' in rule && rule.oauth.issuer === issuer && rule.oauth.revocationList === true,
  );
  return hasRule || (consoleIssuer(config) === issuer && hasRedis(config.redis));
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
  if (!asksForRevocations(config, options.issuer))
    throw new Error(
      `no oauth rule of ${options.issuer} has revocationList: true, and no console that shares Redis signs people in there`,
    );
  const shared = await openSharedState({ ...config.redis, log: { warn: () => undefined } });
  try {
    const id = revocationName(options.issuer, by, value);
    // The later of the clocks here and of Redis: one that is behind must not spare the latest tokens.
    const now = Math.max(Date.now(), shared.clock());
    const asked = { before: Math.floor(now / 1000), until: now + seconds * 1000 };
    if (!(await keep(shared.revocations, id, asked, now)))
      throw new Error('somebody else revoked the same at this moment: try again');
    process.stdout.write(`revoked: tokens of ${options.issuer} issued until now\n`);
  } catch (error) {
    if (error instanceof SharedStateUnavailable) throw new Error('Redis cannot be reached', { cause: error });
    throw error;
  } finally {
    await shared.close();
  }
}
