import { cutText } from '#core';
import { ConsoleLogger, type LogLevel } from '@nestjs/common';
import type { Writable } from 'node:stream';
import type { DestinationStream, pino as Pino } from 'pino';
import { isoNow, type LogMembers, LogMessage, oneLine, writeMembers } from '#audit';
import type { LoggingConfig } from '#config';
import type { Observability } from '#telemetry';
import { secretsIn } from './configured-secrets.js';
import { sourceStack } from '../launch/source-stack.js';

const REDACTED_TEXT = '[redacted]';

/** Names of members and settings whose values are credentials, in any context. */
const SECRET_NAME =
  /^(?:authorization|proxy-authorization|cookie|set-cookie|x-mcp-api-key|x-parse-(?:session-token|master-key|rest-api-key|javascript-key)|api_?key|master_?key|rest_?api_?key|state_?key|session_?token|access_?token|refresh_?token|id_?token|client_?secret|password|passwd|secret|token)$/i;

/**
 * Credentials in running text, each pattern with a bounded length. `part`: what every match contains; most lines do not, and looking for it
 * costs a fraction of the pattern.
 */
const PATTERNS: readonly (readonly [pattern: RegExp, replacement: string, part?: string])[] = [
  // A URI with a user name or password in it.
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/@"'<>]{1,512}@/gi, `$1${REDACTED_TEXT}@`, '://'],
  [/\b(Bearer|Basic)\s{1,4}[A-Za-z0-9._~+/=-]{4,8192}/gi, `$1 ${REDACTED_TEXT}`],
  [/\beyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{1,8192}\.[A-Za-z0-9_-]{0,8192}/g, REDACTED_TEXT, 'eyJ'],
  [/\br:[A-Za-z0-9]{16,64}\b/g, `r:${REDACTED_TEXT}`, 'r:'],
  [
    /\b((?:proxy-)?authorization|(?:set-)?cookie|x-mcp-api-key|x-parse-(?:session-token|master-key|rest-api-key|javascript-key))(["']?\s{0,4}[:=]\s{0,4}["']?)[^\s"',;]{1,8192}/gi,
    `$1$2${REDACTED_TEXT}`,
  ],
  [
    /(["'])(api_?key|master_?key|state_?key|session_?token|access_?token|refresh_?token|client_?secret|password|passwd|secret|token)\1(\s{0,4}:\s{0,4})(["'])(?:(?!\4)[^\\]|\\.){0,8192}\4/gi,
    `$1$2$1$3$4${REDACTED_TEXT}$4`,
  ],
  [
    /\b(api_?key|master_?key|session_?token|access_?token|refresh_?token|client_?secret|password|passwd|secret|token)=[^\s&"',;]{1,8192}/gi,
    `$1=${REDACTED_TEXT}`,
    '=',
  ],
];

/** Minimum characters of a secret: a shorter one may occur by chance. */
const SHORTEST_SECRET = 8;
/** Maximum characters of one line; a longer line is cut before any pattern runs. */
const LONGEST_LINE = 65_536;
const MAX_DEPTH = 6;
/** Characters of a line that is remembered as clean, and the number of such lines. */
const LONGEST_CLEAN = 80;
const MOST_CLEAN = 200;

/** Types of values that hold no text. */
const PLAIN_TYPES: ReadonlySet<string> = new Set(['number', 'boolean', 'undefined']);

/** Removes credentials from log output: by member name, by pattern, and the known values of the configuration. */
export class Redaction {
  /** The longest first: one may be the prefix of another. */
  private secrets: readonly string[] = [];
  /** Short lines in which nothing was found: the same few are written with every call. */
  private readonly clean = new Set<string>();

  /** @param secrets known values; short ones are not searched */
  constructor(secrets: readonly string[] = []) {
    this.learn(secrets);
  }

  /** Removes these too from now on: one that is configured no more may still be in use elsewhere. */
  learn(secrets: readonly string[]): void {
    const long = secrets.filter((secret) => secret.length >= SHORTEST_SECRET);
    this.secrets = [...new Set([...this.secrets, ...long])].sort((one, other) => other.length - one.length);
    this.clean.clear();
  }

  text(line: string): string {
    if (this.clean.has(line)) return line;
    let safe = line.length > LONGEST_LINE ? `${cutText(line, LONGEST_LINE)}…` : line;
    for (const secret of this.secrets)
      if (safe.includes(secret)) safe = safe.replaceAll(secret, REDACTED_TEXT);
    for (const [pattern, replacement, part = ''] of PATTERNS)
      if (safe.includes(part)) safe = safe.replace(pattern, replacement);
    if (safe === line && line.length <= LONGEST_CLEAN) {
      if (this.clean.size >= MOST_CLEAN) this.clean.clear();
      this.clean.add(line);
    }
    return safe;
  }

  /**
   * Members as one line may hold them. All texts are looked through together: what is found in one of them is found in the whole as well.
   * Only where something is found, which is in few lines, each is looked through.
   */
  members(members: LogMembers): LogMembers {
    let texts = '';
    for (const [name, value] of Object.entries(members)) {
      if (typeof value === 'string') texts += ` ${value}`;
      else if (typeof value === 'object' ? value !== null : !PLAIN_TYPES.has(typeof value))
        return this.each(members);
      if (SECRET_NAME.test(name)) return this.each(members);
    }
    return this.isClean(texts) ? members : this.each(members);
  }

  private each(members: LogMembers): LogMembers {
    return this.value(members) as LogMembers;
  }

  private isClean(text: string): boolean {
    return (
      text.length <= LONGEST_LINE &&
      oneLine(text) === text &&
      !this.secrets.some((secret) => text.includes(secret)) &&
      PATTERNS.every(([pattern, , part = '']) => !text.includes(part) || text.search(pattern) === -1)
    );
  }

  /** The value as one line may hold it: no text in it drives a terminal. */
  value(value: unknown, depth = 0): unknown {
    if (typeof value === 'string') return oneLine(this.text(value));
    if (typeof value === 'bigint' || typeof value === 'symbol' || typeof value === 'function')
      return String(value);
    if (value === null || typeof value !== 'object') return value;
    if (value instanceof Error) return this.text(`${value.name}: ${value.message}`);
    if (depth >= MAX_DEPTH) return '[…]';
    if (Array.isArray(value)) return value.slice(0, 100).map((one) => this.value(one, depth + 1));
    const members = Object.entries(value).slice(0, 100);
    return Object.fromEntries(
      members.map(([name, member]) => [
        name,
        SECRET_NAME.test(name) ? REDACTED_TEXT : this.value(member, depth + 1),
      ]),
    );
  }
}

/** One log line, without credentials, and safe for a terminal. */
export interface LogLine {
  readonly level: LogLevel;
  readonly context: string;
  readonly message: string;
  readonly stack?: string;
  /** Members of the message, and context of the line: trace, correlation. */
  readonly fields: LogMembers;
}

/** Writes lines in one format. */
export type LineWriter = (line: LogLine) => void;

/** Lines for people: time, level, source, message and context. */
function plainLines(write: (text: string) => void): LineWriter {
  return ({ level, context, message, stack, fields }) => {
    const where = context === '' ? '' : `[${context}] `;
    const name = level === 'log' ? 'INFO' : level.toUpperCase();
    const after = stack === undefined ? '' : ` | ${stack}`;
    write(
      `${new Date().toISOString()} ${name.padStart(5)} ${where}${message}${writeMembers(fields)}${after}\n`,
    );
  };
}

/** The context of lines about calls. */
const CALLS = 'Audit';
/** Milliseconds that a line about a call waits for others. */
const MAX_GATHER_TIME = 10;
/** Maximum characters that wait. */
const MAX_WAITING_LENGTH = 65_536;

/**
 * Batches the lines of calls, those of refused ones too, because a write costs a considerable part of a call. Other lines are written
 * at once, after the waiting lines. The end of the process writes the waiting lines too.
 */
export function gatherLines(
  form: (destination: DestinationStream) => LineWriter,
  destination: DestinationStream,
): LineWriter {
  let held = '';
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const lines = held;
    held = '';
    if (lines !== '') destination.write(lines);
  };
  const write = form({ write: (text) => (held += text) });
  process.once('exit', flush);
  return (line) => {
    write(line);
    const isOfCall = line.context === CALLS && (line.level === 'log' || line.level === 'warn');
    const waits = isOfCall && held.length < MAX_WAITING_LENGTH;
    if (waits) timer ??= setTimeout(flush, MAX_GATHER_TIME).unref();
    else flush();
  };
}

const LEVELS = {
  verbose: 'trace',
  debug: 'debug',
  log: 'info',
  warn: 'warn',
  error: 'error',
  fatal: 'fatal',
} as const satisfies Record<LogLevel, string>;

/** One JSON object per line, for log collectors. */
const jsonLines =
  (pino: typeof Pino) =>
  (destination: DestinationStream): LineWriter => {
    const log = pino(
      {
        // The level is checked before a line is created.
        level: 'trace',
        base: { pid: process.pid },
        messageKey: 'message',
        timestamp: () => `,"time":"${isoNow()}"`,
        formatters: { level: (level) => ({ level }) },
      },
      destination,
    );
    // A child holds its context as it is written: of each call the lines are those of one context.
    const calls = log.child({ context: CALLS });
    return ({ level, context, message, stack, fields }) => {
      if (context === CALLS && stack === undefined) {
        calls[LEVELS[level]](fields, message);
        return;
      }
      const members = {
        ...(context !== '' && { context }),
        ...fields,
        ...(stack !== undefined && { stack }),
      };
      log[LEVELS[level]](members, message);
    };
  };

const NO_MEMBERS: LogMembers = {};

/** Contexts whose lines at log level are shown; those of the framework only report its start. */
const SHOWN_CONTEXTS = new Set<unknown>([CALLS, 'Parley']);

export interface ServiceLoggerOptions {
  readonly logLevels: LogLevel[];
  /** Default: plain lines on stderr. */
  readonly write?: LineWriter;
  readonly redaction?: Redaction;
  /** The current context of a line. Default none. */
  readonly fields?: () => LogMembers;
}

/** Nest's logger on stderr: stdout is reserved for protocols and command output. Every message is one line. */
export class ServiceLogger extends ConsoleLogger {
  private readonly write: LineWriter;
  private readonly redaction: Redaction;
  private fieldsNow: (() => LogMembers) | undefined;
  private readonly showsAll: boolean;

  constructor({ logLevels, write, redaction, fields }: ServiceLoggerOptions) {
    super({ logLevels, colors: false });
    this.write = write ?? plainLines((text) => void process.stderr.write(text));
    this.redaction = redaction ?? new Redaction();
    this.fieldsNow = fields;
    this.showsAll = logLevels.includes('debug');
  }

  /** From now on no line holds a credential of this configuration either, whatever else is wrong with it. */
  hideSecretsOf(config: unknown): void {
    this.redaction.learn(secretsIn(config));
  }

  /** From now on each line names the trace of the call that writes it. @param tracing null: nothing is traced */
  nameTraces(tracing: Observability['tracing']): void {
    if (tracing) this.fieldsNow = () => tracing.activeFields();
  }

  override log(message: unknown, ...rest: unknown[]): void {
    if (this.showsAll || SHOWN_CONTEXTS.has(rest.at(-1))) super.log(message, ...rest);
  }

  protected override printMessages(
    messages: unknown[],
    context = '',
    level: LogLevel = 'log',
    _stream?: 'stdout' | 'stderr',
    stack?: unknown,
  ): void {
    for (const message of messages) {
      const { text, members } = message instanceof LogMessage ? message : { text: message, members: null };
      const safe = typeof text === 'string' ? this.redaction.text(text) : this.redaction.value(text);
      const now = this.fieldsNow?.();
      const own = members ? this.redaction.members(members) : NO_MEMBERS;
      this.write({
        level,
        context: oneLine(context),
        message: oneLine(typeof safe === 'string' ? safe : (JSON.stringify(safe) ?? String(safe))),
        fields: now ? { ...now, ...own } : own,
        ...(typeof stack === 'string' && { stack: oneLine(this.redaction.text(sourceStack(stack))) }),
      });
    }
  }

  /** The stack is part of the line. */
  protected override printStackTrace(): void {}
}

/** From the most to the least urgent. */
const ORDER: readonly LogLevel[] = ['fatal', 'error', 'warn', 'log', 'debug', 'verbose'];

function levelsDownTo(level: LoggingConfig['level']): LogLevel[] {
  const least = level === 'info' ? 'log' : level;
  return ORDER.slice(0, ORDER.indexOf(least ?? 'log') + 1);
}

/** Written synchronously, so that the lines before a crash are kept. */
async function openJsonLines(write: ((text: string) => void) | undefined): Promise<LineWriter> {
  const { pino } = await import('pino');
  return gatherLines(
    jsonLines(pino),
    write ? { write } : pino.destination({ fd: process.stderr.fd, sync: true }),
  );
}

/** Bytes that may wait for who reads the log. */
const MAX_UNREAD = 1_048_576;

/** Writes without waiting for a reader: of a pipe that nobody reads, further lines are lost, and their number is written once it is read. */
export function writeUnlessUnread(output: Writable): (text: string) => void {
  let lost = 0;
  return (text) => {
    if (output.writableLength >= MAX_UNREAD) {
      lost += text.split('\n').length - 1;
      return;
    }
    if (lost > 0)
      output.write(`{"level":"warn","message":"${lost} lines of the log are lost: nobody read it"}\n`);
    lost = 0;
    output.write(text);
  };
}

export interface LoggerDependencies {
  /** Source of the secrets that lines must not contain. */
  readonly config: { readonly logging: LoggingConfig };
  /** The level when the configuration has none. */
  readonly level: NonNullable<LoggingConfig['level']>;
  /** Default: to stderr. */
  readonly write?: (text: string) => void;
}

/** The logger of the service. The JSON format is loaded only where it is used. */
export async function openLogger({ config, level, write }: LoggerDependencies): Promise<ServiceLogger> {
  const { format } = config.logging;
  const plain = format === 'plain' || (format === 'auto' && process.stderr.isTTY === true);
  return new ServiceLogger({
    logLevels: levelsDownTo(config.logging.level ?? level),
    write: plain
      ? plainLines(write ?? ((text) => void process.stderr.write(text)))
      : await openJsonLines(write),
    redaction: new Redaction(secretsIn(config)),
  });
}
