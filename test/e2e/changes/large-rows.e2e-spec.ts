import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { DatabaseView } from '../../support/database-dump.js';
import { decideApproval } from '../../support/decide-approval.js';
import { servePosts } from '../../support/posts-service.js';
import { callTool, type Service } from '../../support/service.js';

const MIB = 1_048_576;
const free = { permissions: 'admin', tenantId: 'acme', rateLimit: 1_000_000 };
const AGENTS = { writer: free, proposer: { ...free, writes: 'proposed' }, chief: free };
type AgentName = keyof typeof AGENTS;
const as = (agent: AgentName) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const SOON = { timeout: 20_000, interval: 50 };
const TOO_LARGE = 'one change set holds at most';

let view: DatabaseView;
let service: Service;
beforeAll(async () => {
  ({ service, view } = await servePosts(AGENTS, {
    approvals: { mode: 'desk', approvers: ['chief'], expiry: 60 },
    changes: { undo: 'agents', record: 'all' },
  }));
}, 90_000);

const posts = () => view.client.db('parley').collection<{ _id: string; title?: string }>('Post');
const call = (name: string, args: object, agent: AgentName = 'writer') =>
  callTool(service, name, args, as(agent));
const write = (tool: string, id: string, agent: AgentName = 'writer') =>
  call(
    tool,
    { class_name: 'Post', object_id: id, ...(tool === 'update_object' && { fields: { title: 'New' } }) },
    agent,
  );
const grow = (id: string, mebibytes: number) =>
  posts().updateOne({ _id: id }, { $set: { body: 'x'.repeat(mebibytes * MIB) } });

/** Asks for an undo, and approves it. */
async function undo(set: unknown) {
  const undone = call('undo_changes', { change_set: set });
  const id = await vi.waitUntil(async () => {
    const answer = await fetch(`${service.origin}/approvals`, { headers: as('chief') });
    const { approvals } = (await answer.json()) as { approvals: { id: string }[] };
    return approvals[0]?.id;
  }, SOON);
  await decideApproval(`${service.origin}/approvals/${id}`, as('chief'), { decision: 'approve' });
  return undone;
}

describe('A row that is nearly as large as a document may be', () => {
  it.each(['update_object', 'delete_object'])(
    'is left as it is where it could not be taken back, and the agent is told: %s',
    async (tool) => {
      await grow('p01', 15);
      const listed = async () => (await call('list_changes', {})).data['change_sets'];
      const before = await listed();
      for (const [agent, why] of [
        ['writer', TOO_LARGE],
        ['proposer', 'changes.maxBytes'],
      ] as const) {
        const { isError, text } = await write(tool, 'p01', agent);
        expect([agent, isError, text]).toEqual([agent, true, expect.stringContaining(why)]);
      }
      expect((await posts().findOne({ _id: 'p01' }))?.title).toBe('Post 1');
      expect(await listed()).toEqual(before);
    },
  );

  it.each([
    ['update_object', 2, 'p03'],
    ['delete_object', 2, 'p04'],
    ['update_object', 8, 'p05'],
    ['delete_object', 8, 'p06'],
  ])('can be taken back wherever it could be written: %s, %i MiB', async (tool, mebibytes, id) => {
    await grow(id, mebibytes);
    const before = await posts().findOne({ _id: id });
    const written = await write(tool, id);
    expect(written).toMatchObject({ isError: false });
    // An answer that were refused for its length would be asked for again.
    if (tool === 'update_object' && mebibytes > 4) expect(written.text).toContain('do not repeat it');
    expect(await posts().findOne({ _id: id })).not.toEqual(before);
    const { data } = await call('list_changes', { limit: 1 });
    const [set] = data['change_sets'] as { change_set: string }[];
    expect(await undo(set?.change_set)).toMatchObject({ isError: false });
    expect(await posts().findOne({ _id: id })).toEqual(before);
  });
});
