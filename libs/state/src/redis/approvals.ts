import { hash, randomUUID } from 'node:crypto';
import {
  type ApprovalCase,
  ApprovalStore,
  ApprovalStoreFull,
  type ApprovalDraft,
  type CaseDecision,
  MAX_LISTED,
  MAX_PENDING,
} from '../ports/approvals.js';
import { DECIDED_SHARE, steadyClock } from '../ports/stores.js';
import { parseStoredObject, type RedisConnection, RedisScript } from './redis-connection.js';
import { RedisShares } from './shares.js';

/** The clock of Redis decides when a case expires: the clocks of the replicas may differ. */
const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** Writes the case unless another one is open for the subject by now; the expired case that was read there does not count. */
const OPEN = new RedisScript(`${NOW}
local open = redis.call('GET', KEYS[1])
if open and open ~= ARGV[2] then return { open, 0 } end
for i = 3, 5 do redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now) end
if redis.call('ZCARD', KEYS[4]) >= tonumber(ARGV[5]) then return { '', 0 } end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[4])
redis.call('HSET', KEYS[2], 'draft', ARGV[3], 'ttl', ARGV[4], 'requestedAt', now, 'expiresAt', now + ARGV[4], 'status', 'pending')
redis.call('PEXPIRE', KEYS[2], ARGV[4])
for i = 3, 5 do
  redis.call('ZADD', KEYS[i], now + ARGV[4], ARGV[1])
  if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[i], ARGV[4]) end
end
return { ARGV[1], now }`);

const DECIDE = new RedisScript(`${NOW}
local status = redis.call('HGET', KEYS[2], 'status')
if not status then return 'unknown' end
if status ~= 'pending' then return 'decided_before' end
redis.call('HSET', KEYS[2], 'status', ARGV[2], 'decision', ARGV[3])
if ARGV[2] == 'approved' then
  redis.call('HSET', KEYS[2], 'expiresAt', now + ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
end
for i = 3, 5 do redis.call('ZREM', KEYS[i], ARGV[1]) end
return 'decided'`);

const USE = new RedisScript(`
if redis.call('HGET', KEYS[2], 'status') ~= 'approved' then return 0 end
redis.call('HSET', KEYS[2], 'status', 'used')
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1`);

/** The cases that have not expired, the next to expire first. */
const LIST = new RedisScript(`${NOW}
return redis.call('ZRANGEBYSCORE', KEYS[1], now, '+inf', 'LIMIT', ARGV[2], ARGV[1])`);

const COUNT = new RedisScript(`${NOW}
return redis.call('ZCOUNT', KEYS[1], now, '+inf')`);

/** Cases for all replicas. They outlive every process until they expire. */
export class RedisApprovalStore extends ApprovalStore {
  private readonly decided: RedisShares;

  /**
   * @param shared milliseconds since 1970 on the clock of Redis, as this process knows it
   * @param now the same on the clock of this process, in which the times of a case are returned
   * @param share of decided cases of each requester
   */
  constructor(
    private readonly redis: RedisConnection,
    private readonly shared: () => number = steadyClock,
    private readonly now: () => number = steadyClock,
    share = DECIDED_SHARE,
  ) {
    super();
    this.decided = new RedisShares(redis, 'approval', share);
  }

  async open(draft: ApprovalDraft, ttl: number): Promise<{ opened: ApprovalCase; isNew: boolean }> {
    const id = randomUUID();
    for (;;) {
      const seen = await this.redis.send((redis) => redis.get(this.part('subject', draft.subject)));
      const open = seen === null ? undefined : await this.find(seen);
      if (open && open.status !== 'used') return { opened: open, isNew: false };
      const [stored, openedAt] = (await this.run(OPEN, id, draft, [
        seen ?? '',
        JSON.stringify(draft),
        ttl,
        MAX_PENDING,
      ])) as [string, number];
      if (stored === '') throw new ApprovalStoreFull();
      // Otherwise another call was faster, and its case is returned.
      if (stored === id) {
        const requestedAt = openedAt - this.behind;
        const opened = {
          ...draft,
          id,
          requestedAt,
          expiresAt: requestedAt + ttl,
          status: 'pending' as const,
        };
        return { opened, isNew: true };
      }
    }
  }

  async find(id: string): Promise<ApprovalCase | undefined> {
    return readCase(id, await this.readStored(id), this.behind);
  }

  async listPending(tenant: string | number | null, skip = 0): Promise<readonly ApprovalCase[]> {
    const index = this.tenantIndex(tenant);
    const ids = (await this.redis.send((redis) => LIST.run(redis, [index], [MAX_LISTED, skip]))) as string[];
    const found = await Promise.all(ids.map((id) => this.find(id)));
    return found.filter((one) => one?.status === 'pending') as ApprovalCase[];
  }

  async countPending(): Promise<number> {
    return Number(await this.redis.send((redis) => COUNT.run(redis, [this.allPending], [])));
  }

  async decide(id: string, decision: CaseDecision): Promise<'decided' | 'decided_before' | 'unknown'> {
    const fields = await this.readStored(id);
    const known = readCase(id, fields, this.behind);
    if (!known) return 'unknown';
    const status = decision.approved ? 'approved' : 'denied';
    const ttl = Number(fields['ttl']);
    // Counted first: when that fails there is no decision, and the approver may try again.
    await this.decided.take(known.requester.principal, this.part('case', id), { ttl });
    const answer = await this.run(DECIDE, id, known, [status, JSON.stringify(decision), ttl]);
    return answer === 'decided' || answer === 'decided_before' ? answer : 'unknown';
  }

  async use(id: string): Promise<boolean> {
    const known = await this.find(id);
    return known !== undefined && (await this.run(USE, id, known, [])) === 1;
  }

  private readStored(id: string): Promise<Record<string, string>> {
    return this.redis.send((redis) => redis.hgetall(this.part('case', id)));
  }

  /** Milliseconds that the clock of this process is behind that of Redis. */
  private get behind(): number {
    return Math.round(this.shared() - this.now());
  }

  private run(
    script: RedisScript,
    id: string,
    { subject, requester }: ApprovalDraft,
    args: readonly (string | number)[],
  ): Promise<unknown> {
    const keys = [
      this.part('subject', subject),
      this.part('case', id),
      this.tenantIndex(requester.tenant),
      this.part('of', requester.principal),
      this.allPending,
    ];
    return this.redis.runDurably(script, keys, [id, ...args]);
  }

  private get allPending(): string {
    return this.redis.key('approvals', 'desk', 'pending');
  }

  private tenantIndex(tenant: string | number | null): string {
    return this.part('tenant', JSON.stringify(tenant));
  }

  /** All keys are on one node of a cluster: a decision changes several of them in one step. */
  private part(kind: string, name: string): string {
    return this.redis.key('approvals', 'desk', `${kind}:${hash('sha256', name, 'base64url')}`);
  }
}

/**
 * Returns no case for data that is not a case, or for an expired one.
 * @param behind milliseconds that the clock of this process is behind that of Redis
 */
function readCase(id: string, fields: Record<string, string>, behind: number): ApprovalCase | undefined {
  const draft = parseStoredObject(fields['draft']);
  const { status } = fields;
  const [requestedAt, expiresAt] = [Number(fields['requestedAt']), Number(fields['expiresAt'])];
  if (!draft || !isStatus(status) || !Number.isFinite(requestedAt) || !Number.isFinite(expiresAt))
    return undefined;
  const decision = parseStoredObject(fields['decision']) as CaseDecision | undefined;
  return {
    ...(draft as unknown as ApprovalDraft),
    id,
    requestedAt: requestedAt - behind,
    expiresAt: expiresAt - behind,
    status,
    ...(decision && { decision }),
  };
}

function isStatus(text: unknown): text is ApprovalCase['status'] {
  return text === 'pending' || text === 'approved' || text === 'denied' || text === 'used';
}
