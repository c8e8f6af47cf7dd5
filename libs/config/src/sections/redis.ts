import { findRedisUrlProblem, readRedisAddress, isJsonObject, type JsonObject } from '#core';
import type { ConfigIssue } from '../config-error.js';
import { ArrayMinSize, IsInt, IsString, Matches, Max, Min } from 'class-validator';
import { Nullable } from '#schema';
import { IsText, IsTexts, Nested, Option } from '../schema/option.js';

const PEM = /^\s*-----BEGIN [A-Z ]+-----/;

/** Certificates of the connection to Redis, as PEM text: mostly `${file:…}`. */
export class RedisTlsConfig {
  @Option('the authorities that signed the certificates of the servers; null: those that Node trusts')
  @IsText()
  @Nullable()
  readonly ca: string | null = null;

  @Option('the certificate that is shown to servers that ask for one, with `key`')
  @IsText()
  @Nullable()
  readonly cert: string | null = null;

  @Option('the private key of `cert`')
  @IsText()
  @Nullable()
  readonly key: string | null = null;
}

/** The section `redis`: what replicas share. */
export class RedisSection {
  @Option(
    '`redis://` or `rediss://`: the state that [replicas](replicas.md) share; null, without `sentinels` and `cluster`: the memory of this process',
  )
  @IsString()
  @Matches(/^rediss?:\/\//, { message: 'a URL with redis:// or rediss://' })
  @Nullable()
  readonly url: string | null = null;

  @Option('`host:port` of Redis Sentinels, in the place of `url`: the primary is the one that they name')
  @IsTexts()
  @ArrayMinSize(1)
  @Nullable()
  readonly sentinels: readonly string[] | null = null;

  @Option('the name under which the Sentinels watch the primary; needed with `sentinels`')
  @IsString()
  @Matches(/^[A-Za-z0-9_.-]{1,128}$/, { message: '1 to 128 letters, digits and _ . -' })
  @Nullable()
  readonly name: string | null = null;

  @Option('`host:port` of nodes of a Redis Cluster, in the place of `url`; name at least three that stay')
  @IsTexts()
  @ArrayMinSize(1)
  @Nullable()
  readonly cluster: readonly string[] | null = null;

  @Option(
    'the ACL user behind `sentinels` or in `cluster`; null: the default user. Part of the address in `url`',
  )
  @IsText()
  @Nullable()
  readonly username: string | null = null;

  @Option('the password of `username`, or of the default user')
  @IsText()
  @Nullable()
  readonly password: string | null = null;

  @Option('the password of the Sentinels themselves; null: they ask for none')
  @IsText()
  @Nullable()
  readonly sentinelPassword: string | null = null;

  @Option(
    '`{ ca, cert, key }`, `{}`: TLS to every server and Sentinel, with certificates of your own; null: TLS only where `url` is `rediss://`',
  )
  @Nested(RedisTlsConfig)
  @Nullable()
  readonly tls: RedisTlsConfig | null = null;

  @Option(
    'replicas of Redis that must hold a claim, a decision or a record before it counts; 0: a [fail-over](replicas.md#sentinel-and-cluster) may forget the last ones',
  )
  @IsInt()
  @Min(0)
  @Max(5)
  readonly waitForReplicas: number = 0;

  @Option('prefix of every key and channel; installations on one Redis need different ones')
  @IsString()
  @Matches(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$/, {
    message: 'a letter or digit, then letters, digits and _ . : -, 64 characters at most',
  })
  readonly prefix: string = 'parley';
}

const PLACES = ['url', 'sentinels', 'cluster'] as const;

/** Checks beyond the form of `redis`. A URL may hold a password: no error repeats it. */
export function redisErrors(redis: JsonObject): ConfigIssue[] {
  const errors: ConfigIssue[] = [];
  const add = (option: string, message: string, ...related: string[]) =>
    errors.push({ path: `redis.${option}`, message, related });
  const isGiven = (option: string) => redis[option] !== undefined && redis[option] !== null;
  const [first, second] = PLACES.filter(isGiven);
  if (first !== undefined && second !== undefined)
    add(second, `stands beside redis.${first}: keep one of them`, `redis.${first}`);
  const { url } = redis;
  const problem = typeof url === 'string' && /^rediss?:\/\//.test(url) ? findRedisUrlProblem(url) : undefined;
  if (problem !== undefined) add('url', problem);
  for (const option of ['sentinels', 'cluster'])
    for (const [at, address] of (Array.isArray(redis[option]) ? redis[option] : []).entries())
      if (typeof address === 'string' && readRedisAddress(address) === undefined)
        add(`${option}.${at}`, 'must be host:port');
  if (isGiven('sentinels') && !isGiven('name'))
    add('name', 'is needed with redis.sentinels', 'redis.sentinels');
  for (const option of ['name', 'sentinelPassword'])
    if (isGiven(option) && !isGiven('sentinels'))
      add(option, 'belongs to redis.sentinels, which is not given', 'redis.sentinels');
  for (const option of ['username', 'password'])
    if (isGiven(option) && !isGiven('sentinels') && !isGiven('cluster'))
      add(
        option,
        'belongs to redis.sentinels and redis.cluster: one server has it in redis.url',
        'redis.url',
      );
  if (isGiven('tls') && first === undefined) add('tls', 'there is no Redis', 'redis.url');
  const { tls } = redis;
  if (isJsonObject(tls))
    for (const option of ['ca', 'cert', 'key'])
      if (typeof tls[option] === 'string' && !PEM.test(tls[option]))
        add(`tls.${option}`, 'must be PEM text, such as ${file:redis.pem}');
  if (isJsonObject(tls) && (typeof tls['cert'] === 'string') !== (typeof tls['key'] === 'string'))
    add('tls', 'cert and key belong together');
  return errors;
}
