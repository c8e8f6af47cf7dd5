import {
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsNumber,
  IsPositive,
  IsString,
  Matches,
  Max,
  Min,
  MinLength,
} from 'class-validator';
import { Nullable } from '#schema';
import { AnyOf, IsText, IsTexts, Nested, Option } from '../schema/option.js';

/** So many within so many seconds. */
export class RateLimitConfig {
  @Option('maximum number within one window', { required: true })
  @IsInt()
  @Min(1)
  readonly limit!: number;

  @Option('seconds', { required: true })
  @IsNumber()
  @IsPositive()
  readonly window!: number;
}

/** The section `server`: the address, the limits and the path of MCP. */
export class ServerSection {
  @Option('address to listen on; see [binding](#binding)')
  @IsText()
  readonly host: string = '127.0.0.1';

  @Option('the port; 0: any free one')
  @IsInt()
  @Min(0)
  @Max(65_535)
  readonly port: number = 3001;

  @Option(
    '[processes](processes.md) behind the port; `cores`: one for each core of the machine. More than one needs [Redis](#redis)',
  )
  @AnyOf({ type: 'integer', minimum: 1, maximum: 256 }, { const: 'cores' })
  readonly processes: number | 'cores' = 1;

  @Option('the path of MCP')
  @IsString()
  @Matches(/^\/(?:[A-Za-z0-9/_-]*[A-Za-z0-9_-])?$/, {
    message: 'a path: /, then letters, digits and / _ -, and no / at its end',
  })
  readonly path: string = '/mcp';

  @Option(
    'the URL of `path` for clients, if it differs from the first `audience` of [OAuth](oauth.md); used in challenges and metadata',
  )
  @IsString()
  @Matches(/^https?:\/\//, { message: 'a URL with http:// or https://' })
  @Nullable()
  readonly publicUrl: string | null = null;

  @Option(
    '`GET /` says what is served here, where MCP is and whether it is ready, without credentials; false: 404. Of the service alone, and not where `path` is `/`',
  )
  @IsBoolean()
  readonly startPage: boolean = true;

  @Option(
    'another path at which `GET /health` answers, for load balancers that want one, and no other route does. Of the service alone; null: none',
  )
  @IsString()
  @Matches(/^\/[A-Za-z0-9/_.-]*$/, { message: 'a path: /, then letters, digits and / _ . -' })
  @Nullable()
  readonly healthPath: string | null = null;

  @Option('maximum bytes of one request')
  @IsInt()
  @Min(1)
  readonly maxBodySize: number = 1_048_576;

  @Option(
    'false: every answer is one JSON body, whatever `Accept` names: no progress, no listening streams, no subscriptions, and in revisions with sessions no questions to the client',
  )
  @IsBoolean()
  readonly streaming: boolean = true;

  @Option('seconds between two heartbeats on a stream; 0 or less: none')
  @IsNumber()
  @Max(86_400)
  readonly heartbeatInterval: number = 2;

  @Option(
    'calls of one principal that run concurrently in a process. Twice as many wait up to 10 s for one of them to end; further ones are refused (`rate_limited`); null: unbounded',
  )
  @IsInt()
  @Min(1)
  @Nullable()
  readonly maxRunningCalls: number | null = 20;

  @Option(
    'maximum bytes of the text of a result, a resource or a prompt; what is larger is [cut, with how to go on](tools.md#large-results), or refused. 262144 suits the context of a model; `agents.X.maxResultBytes` says otherwise for one agent',
  )
  @IsInt()
  @Min(4096)
  @Max(4_194_304)
  readonly maxResultBytes: number = 4_194_304;

  @Option(
    '[streamed answers](streaming.md#limits), and separately listening streams, that are served concurrently, a quarter of each to one principal; null: unbounded',
  )
  @IsInt()
  @Min(1)
  @Nullable()
  readonly maxConcurrentDispatchers: number | null = 100;

  @Option(
    'maximum open connections; further ones are closed. Headers must arrive within 15 s, whole requests within 60 s',
  )
  @IsInt()
  @Min(1)
  readonly maxConnections: number = 10_000;

  @Option(
    'exact origins, or `.example.com` for a domain and its subdomains, whose [pages](connect.md#web-pages) may call; empty: no page of another origin can read an answer, and requests that name an origin are refused while anonymous callers are admitted on a loopback address, unless it is a loopback one',
  )
  @IsTexts()
  readonly allowedOrigins: readonly string[] = [];

  @Option('`Host` names accepted besides loopback ones')
  @IsTexts()
  readonly allowedHosts: readonly string[] = [];

  @Option('a header name, or one name with its exact value')
  @AnyOf(
    { type: 'null' },
    { type: 'string', minLength: 1 },
    { type: 'object', minProperties: 1, maxProperties: 1, additionalProperties: { type: 'string' } },
  )
  readonly requireCustomHeader: string | Readonly<Record<string, string>> | null = null;

  @Option('refuses chunked bodies with 411')
  @IsBoolean()
  readonly requireContentLength: boolean = true;

  @Option('seconds that a client has to answer a request, approvals included')
  @IsNumber()
  @IsPositive()
  @Max(86_400)
  readonly approvalTimeout: number = 300;

  @Option(
    'encrypts the state that clients return in the next round of a call; at least 32 characters; null: a random key that replicas share over Redis',
  )
  @IsString()
  @MinLength(32)
  @Nullable()
  readonly stateKey: string | null = null;

  @Option('earlier keys: state that they encrypted is still accepted')
  @IsArray()
  @IsString({ each: true })
  @MinLength(32, { each: true })
  readonly previousStateKeys: readonly string[] = [];

  @Option(
    '`strict`: every message except `initialize` needs the id of a session of the caller, in revisions with sessions: 400 without an id, 404 with any other. `lenient`: such messages are served, and an id that is not a session of the caller is used only as a label',
  )
  @IsIn(['lenient', 'strict'])
  readonly sessions: 'lenient' | 'strict' = 'lenient';

  @Option(
    'seconds in which running calls and tasks must end when the process is [asked to end](replicas.md#ending-one)',
  )
  @IsNumber()
  @Min(0)
  @Max(3600)
  readonly drainTimeout: number = 30;

  @Option(
    '`{ limit, window }` (seconds) per remote address, before authentication, over all routes that need credentials; an IPv6 caller is counted by its /64',
  )
  @Nested(RateLimitConfig)
  @Nullable()
  readonly preAuthRateLimit: RateLimitConfig | null = null;

  @Option(
    'per principal, over all replicas: every message except `ping` and calls of tools, which have [their own](agents.md), and every request to routes beside MCP. Above it: 429 with `Retry-After`. null: no limit',
  )
  @Nested(RateLimitConfig)
  @Nullable()
  readonly requestRateLimit: RateLimitConfig | null = Object.freeze({ limit: 1200, window: 60 });
}

const LOOPBACK_HOSTS = new Set(['127.0.0.1', '::1', 'localhost']);

export function isLoopbackHost(host: string): boolean {
  return LOOPBACK_HOSTS.has(host);
}

/** Where something private may be sent: encrypted, or within this machine. */
export function isSafeAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || isLoopbackHost(hostname.replace(/^\[|\]$/g, ''));
}
