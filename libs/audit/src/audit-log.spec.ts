import { ConsoleLogger, Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AuditRecord } from './audit-record.js';
import { LoggerAuditSink, LogMessage } from './audit-log.js';

const lines: string[] = [];

const entry = (members: Partial<AuditRecord>): AuditRecord => ({
  at: '2026-01-01T00:00:00.000Z',
  tool: 'query_class',
  args_keys: [],
  auth_type: 'session_token',
  using_master_key: false,
  permissions: 'readonly',
  agent_id: 'id',
  agent_depth: 0,
  agent_name: 'analyst',
  principal: 'user:u1',
  policy_version: 'v',
  success: true,
  duration_ms: 1,
  ...members,
});

describe('audit lines', () => {
  beforeEach(() => {
    lines.length = 0;
    Logger.overrideLogger(new ConsoleLogger());
    for (const level of ['log', 'warn', 'debug'] as const) {
      vi.spyOn(Logger.prototype, level).mockImplementation((message: unknown) => {
        lines.push(`${level} ${String(message)}`);
      });
    }
  });
  afterEach(() => {
    vi.restoreAllMocks();
    Logger.overrideLogger(new ConsoleLogger());
  });

  it.each<[Partial<AuditRecord>, string[]]>([
    [
      { auth_type: 'master_key', class_name: 'Album', rows: 3, request_id: 'r-1' },
      [
        'log call tool=query_class agent=analyst principal=user:u1 class=Album outcome=ok ms=1 rows=3 mode=master_key request_id=r-1',
      ],
    ],
    [
      { auth_type: 'acl_role', identity: 'editors', tenant_id: 'north side' },
      [
        'log call tool=query_class agent=analyst principal=user:u1 outcome=ok ms=1 tenant="north side" role=editors',
      ],
    ],
    [
      { auth_type: 'acl_user', identity: 'a\nb' },
      ['log call tool=query_class agent=analyst principal=user:u1 outcome=ok ms=1 user="a\\nb"'],
    ],
    [
      { auth_type: 'session_token' },
      ['log call tool=query_class agent=analyst principal=user:u1 outcome=ok ms=1'],
    ],
    [
      { success: false, error_code: 'access_denied', gate: 'class', cause: 'clp_denied' },
      [
        'warn call tool=query_class agent=analyst principal=user:u1 outcome=refused code=access_denied gate=class cause=clp_denied ms=1',
      ],
    ],
    [
      { success: false, error_code: 'internal_error', gate: 'handler' },
      [
        'warn call tool=query_class agent=analyst principal=user:u1 outcome=failed code=internal_error gate=handler ms=1',
      ],
    ],
    [
      { prompt_injection_phrase: 'canary-1' },
      ['warn call tool=query_class agent=analyst principal=user:u1 outcome=ok canary=canary-1 ms=1'],
    ],
  ])('are one for each call, with what an operator asks: %j', (members, expected) => {
    Logger.overrideLogger(new ConsoleLogger({ logLevels: ['log', 'warn'] }));
    new LoggerAuditSink().record(entry(members));
    expect(lines).toEqual(expected);
  });

  it('name no master key where there is no Parse', () => {
    const sink = new LoggerAuditSink(false);
    sink.record(entry({ auth_type: 'master_key', using_master_key: true }));
    sink.record(entry({ auth_type: 'acl_user', identity: 'u1' }));
    expect(lines.filter((line) => / mode=|auth_type=master_key|using_master_key=true/.test(line))).toEqual(
      [],
    );
    expect(lines.filter((line) => line.includes(' user=u1'))).toHaveLength(1);
  });

  it('have the whole record at debug level, and no second line', () => {
    new LoggerAuditSink().record(entry({ success: false, cause: 'clp_denied' }));
    expect(lines).toEqual([
      expect.stringMatching(/^warn call tool=query_class .*policy_version=v .*cause=clp_denied/),
    ]);
  });

  it('are written where no levels are set, which NestJS 11 calls disabled', () => {
    Logger.overrideLogger({ log: () => undefined, warn: () => undefined, error: () => undefined });
    vi.spyOn(Logger, 'isLevelEnabled').mockReturnValue(false);
    new LoggerAuditSink().record(entry({}));
    expect(lines).toEqual([expect.stringMatching(/^log call tool=query_class /)]);
  });

  it('are members, not text inside text, for a logger that writes JSON', () => {
    const message = new LogMessage('call', { tool: 'query_class', filters: { Album: ['genre'] } });
    expect(JSON.parse(JSON.stringify(message))).toEqual({
      message: 'call',
      tool: 'query_class',
      filters: { Album: ['genre'] },
    });
  });
});
