import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AuditRecord } from './audit-record.js';
import { LoggerAuditSink } from './audit-recorder.js';

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
    vi.spyOn(Logger, 'isLevelEnabled').mockReturnValue(true);
    for (const level of ['log', 'warn', 'debug'] as const) {
      vi.spyOn(Logger.prototype, level).mockImplementation((message: unknown) => {
        lines.push(`${level} ${String(message)}`);
      });
    }
  });
  afterEach(() => vi.restoreAllMocks());

  it.each<[Partial<AuditRecord>, string[]]>([
    [{ auth_type: 'master_key' }, ['log query_class mode=master_key']],
    [{ auth_type: 'acl_role', identity: 'editors' }, ['log query_class role=editors']],
    [{ auth_type: 'acl_user', identity: 'u1' }, ['log query_class user=u1']],
    [{ auth_type: 'session_token' }, []],
    [{ auth_type: 'master_key', success: false }, []],
    [{ auth_type: 'acl_role', identity: 'a\nb' }, ['log query_class role=a\\nb']],
  ])('name the authentication mode of a successful run: %j', (members, expected) => {
    new LoggerAuditSink().record(entry(members));
    expect(lines.filter((line) => line.startsWith('log '))).toEqual(expected);
  });

  it('name no master key where there is no Parse', () => {
    const sink = new LoggerAuditSink(false);
    sink.record(entry({ auth_type: 'master_key' }));
    sink.record(entry({ auth_type: 'acl_user', identity: 'u1' }));
    expect(lines.filter((line) => line.startsWith('log '))).toEqual(['log query_class user=u1']);
  });

  it('warn of a refused run with its private cause', () => {
    new LoggerAuditSink().record(entry({ success: false, cause: 'clp_denied' }));
    expect(lines).toEqual([expect.stringMatching(/^warn \{.*"cause":"clp_denied"/)]);
  });
});
