import { beforeAll, describe, expect, it } from 'vitest';
import { as, GROUPING, NOTES_SEED, notesConfig } from '../../fixtures/notes.fixture.js';
import { callTool, type Service, startService } from '../../support/service.js';

let service: Service;
let open: Service;
beforeAll(async () => {
  [service, open] = await Promise.all([
    startService({ seed: NOTES_SEED, config: notesConfig() }),
    startService({
      seed: NOTES_SEED,
      config: notesConfig({ exposeExplain: true }),
    }),
  ]);
});

const call = (tool: string, args: object, headers = {}) =>
  callTool(service, tool, { class_name: 'Post', ...args }, headers);

describe('an explanation', () => {
  it('shows the stages, and the index that the constraint asked for', async () => {
    const answer = await callTool(service, 'explain_query', {
      class_name: 'Note',
      where: { words: { $gt: 5 } },
    });
    expect(answer.data).toEqual({
      class_name: 'Note',
      constraints: { words: { $gt: 5 } },
      explanation: { stage: 'COLLSCAN', direction: 'forward' },
    });
  });

  it('never repeats what the operator added', async () => {
    for (const where of [undefined, {}, { status: 'live' }, { objectId: 'p01' }]) {
      const answer = await call('explain_query', { where }, as('liveOnly'));
      expect(answer.isError).toBe(false);
      expect(answer.data).toMatchObject({
        constraints: where ?? {},
        explanation: { stage: expect.any(String) as string },
      });
      expect(JSON.stringify(answer.data['explanation'])).not.toMatch(
        /acme|orgId|archived|live|tenant|filter|bounds/i,
      );
    }
  });

  it('is the whole plan when the operator exposes plans, and still without internal columns', async () => {
    const answer = await callTool(open, 'explain_query', { class_name: 'Post', where: { status: 'live' } });
    expect(JSON.stringify(answer.data['explanation'])).toContain('indexBounds');
    expect(answer.wire).not.toMatch(/_rperm|_wperm|_hashed_password/);
  });
});

describe('a dry run', () => {
  it.each(GROUPING)('of %s shows the words of the caller and nothing of the operator', async (tool, args) => {
    const where = {
      likes: { $gt: 3 },
      author: { $inQuery: { className: 'Author', where: { name: 'Ann' } } },
    };
    const answer = await call(tool, { ...args, where, dry_run: true }, as('liveOnly'));
    expect(answer.data).toMatchObject({
      dry_run: true,
      class_name: 'Post',
      parameters: { field: expect.any(String) as string },
    });
    expect(answer.data['pipeline']).toMatchObject([
      { $match: where },
      { $group: {} },
      ...[{}, {}].slice(tool === 'group_by_date' ? 0 : 1),
    ]);
    expect(answer.wire).not.toMatch(/acme|orgId|archived/);
  });

  it('shows a pipeline that aggregate runs to the same groups', async () => {
    const args = { field: 'status', where: { likes: { $gt: 30 } }, sort: 'key_asc' };
    const shown = await call('group_by', { ...args, dry_run: true });
    const ran = await call('aggregate', { pipeline: shown.data['pipeline'] });
    const grouped = await call('group_by', args);
    expect(ran.data['results']).toEqual(
      (grouped.data['groups'] as { key: string; value: number }[]).map(({ key, value }) => ({
        _id: key,
        value,
      })),
    );
  });

  it.each(GROUPING)('of %s is refused wherever the run would be', async (tool, args) => {
    const refusals: [object, object, object][] = [
      [{ class_name: 'Contract' }, {}, { code: 'access_denied', details: { kind: 'hidden_class' } }],
      [{}, as('authorsOnly'), { code: 'access_denied', details: { kind: 'class_filter' } }],
      [{}, as('stateless'), { code: 'access_denied', details: { kind: 'tenant_scope' } }],
      [{ where: { orgId: 'globex' } }, {}, { code: 'access_denied', details: { kind: 'tenant_scope' } }],
      [{ field: 'internalNote' }, {}, { code: 'access_denied', details: { kind: 'field_denied' } }],
      [{ where: { internalNote: 'x' } }, {}, { code: 'access_denied', details: { kind: 'field_denied' } }],
      [{ where: { likes: { $size: 1 } } }, {}, { code: 'invalid_query' }],
      [{ where: { $where: '1' } }, {}, { rpcError: { code: -32602, message: 'Invalid params' } }],
      [{ field: 'authData' }, {}, { rpcError: { code: -32602, message: 'Invalid params' } }],
    ];
    for (const [given, headers, refusal] of refusals) {
      for (const dry_run of [true, false]) {
        expect(await call(tool, { ...args, ...given, dry_run }, headers)).toMatchObject(refusal);
      }
    }
  });
});
