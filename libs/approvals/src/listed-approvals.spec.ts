import { expect, it } from 'vitest';
import { ArgumentDigest } from '#audit';
import { Agent, compileAgentDefinition, MASTER } from '#core';
import { MAX_LISTED, MAX_PENDING, processState } from '#state';
import { createDraft } from '#state/contracts';
import { ApprovalService } from './approval-service.js';

const chief = new Agent({
  definition: compileAgentDefinition('chief', { permissions: 'admin', tenantId: 'acme' }),
  identity: MASTER,
  principal: 'the chief',
});

it('Approvers see cases of every requester, however many others wait', async () => {
  const state = processState();
  const service = new ApprovalService(
    undefined as never,
    undefined as never,
    state,
    { recordApproval: () => undefined },
    new ArgumentDigest('a key'),
    { approvers: ['chief'] },
    undefined as never,
    undefined as never,
  );
  const list = async (changeSet?: string) => {
    const listed = await service.list(chief, changeSet);
    return listed.ok ? listed.value.approvals : [];
  };
  const open = async (principal: string, subject: string, more: object = {}) => {
    const { requester } = createDraft();
    const draft = createDraft({ ...more, subject, requester: { ...requester, principal } });
    return (await state.approvals.open(draft, 60_000)).opened.id;
  };
  const floods = ['a', 'b', 'c', 'd', 'e'];
  for (const principal of floods)
    for (let n = 0; n < MAX_PENDING; n += 1) await open(principal, `${principal} ${n}`);
  const last = await open('f', 'the only one');
  const ofSet = await open('f', 'a set', { changeSet: 's1' });

  const listed = await list();
  expect(listed).toHaveLength(MAX_LISTED);
  expect(listed.map(({ id }) => id)).toContain(last);
  const times = listed.map(({ expires_at }) => expires_at);
  expect(times).toEqual(times.toSorted());
  expect((await list('s1')).map(({ id }) => id)).toEqual([ofSet]);
  expect(await list('s2')).toEqual([]);

  const isCut = async (changeSet?: string) => {
    const listed = await service.list(chief, changeSet);
    return listed.ok && listed.value.more === true;
  };
  expect([await isCut(), await isCut('s1'), await isCut('s2')]).toEqual([true, false, false]);
});
