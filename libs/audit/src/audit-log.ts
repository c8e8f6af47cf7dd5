import { inspect } from 'node:util';
import { ConsoleLogger, Injectable, Logger, type LogLevel } from '@nestjs/common';
import { nameOutcome, replaceHidden } from '#core';
import { type ApprovalRecord, type AuditEvent, type AuditRecord, AuditSink } from './audit-record.js';

export type LogMembers = Readonly<Record<string, unknown>>;

/** A line of the log with members: `text name=value …` for people, a member each where lines are JSON. */
export class LogMessage {
  constructor(
    readonly text: string,
    readonly members: LogMembers,
  ) {}

  toString(): string {
    return `${oneLine(this.text)}${writeMembers(this.members)}`;
  }

  /** As the logger of Nest writes an object. */
  [inspect.custom](): string {
    return this.toString();
  }

  /** As a logger that writes JSON writes an object. */
  toJSON(): LogMembers {
    return { message: this.text, ...this.members };
  }
}

const BARE_VALUE = /^[\w.:/@+-]+$/;

/** ` name=value` for each member; a value with other characters is JSON. */
export function writeMembers(members: LogMembers): string {
  let line = '';
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    const isBare = typeof value === 'string' && BARE_VALUE.test(value);
    line += ` ${name}=${isBare ? value : oneLine(JSON.stringify(value))}`;
  }
  return line;
}

/** Visible ASCII, as nearly every line is: nothing in it is unsafe. */
const PLAIN_TEXT = /^[ -~]*$/;

/**
 * Untrusted text on one log line. What could forge a line, drive a terminal, or hide text from a person who has to decide on it is
 * escaped, not removed.
 */
export function oneLine(text: string): string {
  if (PLAIN_TEXT.test(text)) return text;
  const escape = (character: string) => character.split('').map(escapeUnit).join('');
  return replaceHidden(text, escape).replaceAll('\n', '\\n');
}

function escapeUnit(unit: string): string {
  const code = unit.charCodeAt(0);
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** Untrusted text on several lines of a terminal: unsafe characters are escaped. */
export function terminalText(text: string): string {
  return wellFormed(text).split('\n').map(oneLine).join('\n');
}

/** Replaces lone surrogates with the replacement character. */
export function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

/** The beginning of the second that was written last, and its text up to the milliseconds. */
let second = Number.NaN;
let text = '';

/**
 * The time now in ISO 8601. Records and log lines of every call have it, and writing a whole date is slow in V8: within a second
 * only the milliseconds change.
 */
export function isoNow(): string {
  const now = Date.now();
  const milliseconds = now % 1000;
  if (now - milliseconds !== second) {
    second = now - milliseconds;
    text = new Date(second).toISOString().slice(0, -'000Z'.length);
  }
  return `${text}${String(milliseconds).padStart(3, '0')}Z`;
}

/** What the logger of the application writes, in the versions of NestJS that Parley runs in. */
class LogLevels extends Logger {
  static isEnabled(level: LogLevel): boolean {
    const logger = this.staticInstanceRef;
    if (logger instanceof ConsoleLogger) return logger.isLevelEnabled(level);
    // NestJS 11 calls every level disabled while none are set; any that are set enable the highest.
    return Logger.isLevelEnabled(level) || !Logger.isLevelEnabled('fatal');
  }
}

/**
 * Writes a line for each call to the application's log, and for events. Calls that were refused or failed (with their private
 * cause), results with a canary, denied approvals and failed events are warnings. At debug level a line has the members of the record as well.
 */
@Injectable()
export class LoggerAuditSink extends AuditSink {
  private readonly logger = new Logger('Audit');

  /** @param servesParse false over plain collections alone, where no call has a master key */
  constructor(private readonly servesParse = true) {
    super();
  }

  record(entry: AuditRecord): void {
    const quiet = entry.success && entry.prompt_injection_phrase === undefined;
    const level = quiet ? 'log' : 'warn';
    if (!LogLevels.isEnabled(level)) return;
    const call = describeCall(entry, this.servesParse);
    const members = LogLevels.isEnabled('debug') ? { ...this.describe(entry), ...call } : call;
    this.logger[level](new LogMessage('call', members));
  }

  private describe(entry: AuditRecord): LogMembers {
    const { auth_type, using_master_key, ...others } = withoutTime(entry);
    const isMaster = auth_type === 'master_key' && !this.servesParse;
    return isMaster ? others : { ...others, auth_type, using_master_key };
  }

  override recordApproval(entry: ApprovalRecord): void {
    this.logger[entry.outcome === 'approve' ? 'log' : 'warn'](new LogMessage('approval', withoutTime(entry)));
  }

  /** An event that succeeded is written at debug level. */
  override recordEvent(event: AuditEvent): void {
    const level = event.success ? 'debug' : 'warn';
    if (LogLevels.isEnabled(level)) this.logger[level](new LogMessage(event.type, withoutTime(event)));
  }
}

/**
 * What an operator asks of a call. Its whole record is in the sinks.
 * @param servesParse false: there is no master key to name
 */
function describeCall(record: AuditRecord, servesParse: boolean): LogMembers {
  const { agent_name, auth_type, tenant_id, tool, class_name, error_code, gate, cause, rows } = record;
  const members: Record<string, unknown> = { tool, agent: agent_name, principal: record.principal };
  if (record.key_name !== undefined) members['key'] = record.key_name;
  if (class_name !== undefined) members['class'] = class_name;
  if (record.class_database !== undefined) members['database'] = record.class_database;
  members['outcome'] = record.success ? 'ok' : nameOutcome(record);
  if (error_code !== undefined) members['code'] = error_code;
  if (gate !== undefined) members['gate'] = gate;
  if (record.denial_kind !== undefined) members['denial_kind'] = record.denial_kind;
  if (cause !== undefined) members['cause'] = cause;
  if (record.prompt_injection_phrase !== undefined) members['canary'] = record.prompt_injection_phrase;
  members['ms'] = record.duration_ms;
  if (rows !== undefined) members['rows'] = rows;
  if (tenant_id !== undefined) members['tenant'] = tenant_id;
  // By which rights it ran, where no signed-in user made it.
  if (auth_type === 'master_key' && servesParse) members['mode'] = 'master_key';
  if (auth_type === 'acl_role') members['role'] = record.identity;
  if (auth_type === 'acl_user') members['user'] = record.identity;
  if (record.request_id !== undefined) members['request_id'] = record.request_id;
  if (record.correlation_id !== undefined) members['correlation_id'] = record.correlation_id;
  if (record.trace_id !== undefined) members['trace_id'] = record.trace_id;
  return members;
}

/** A record as members, without its time: the line has one. */
function withoutTime({ at: _at, ...members }: AuditRecord | ApprovalRecord | AuditEvent): LogMembers {
  return members;
}
