import { APPROVALS, type Request } from './asked-service.js';
import { rowId, ROWS } from './vocabulary.js';
import { tenantsOf, type World } from './world.js';

const call = (name: string, args: object, tenant?: string): Request => ({
  method: 'tools/call',
  params: { name, arguments: args },
  ...(tenant !== undefined && { tenant }),
});

const KEY = 'the same key';
const create = {
  class_name: 'Ledger',
  fields: { lgrTitle: 'plain 1' },
  idempotency_key: KEY.replaceAll(' ', '-'),
};

/** What the person who asks did before as one of another tenant, under keys that it uses again. */
export function earlierRequests(world: World): readonly Request[] {
  const { earlier, agent } = world;
  if (!earlier) return [];
  const [other] = tenantsOf(world).filter((tenant) => tenant !== agent.tenantId);
  const row = { class_name: 'Ledger', fields: { lgrTitle: 'plain 1' } };
  return [
    call('create_object', create, other),
    call('query_class', { class_name: 'Ledger' }, other),
    { ...call('create_object', row, other), by: 'proposer' },
    {
      ...call('submit_changes', { title: 'a set', reason: 'it is needed' }, other),
      by: 'proposer',
      waits: true,
    },
  ];
}

/** The same as one of its own tenant, and again. */
export function keyedRequests({ earlier }: World): readonly Request[] {
  if (!earlier) return [];
  return [
    call('create_object', create),
    call('query_class', { class_name: 'Ledger' }),
    call('create_object', create),
    { method: APPROVALS, params: {} },
  ];
}

/** Writes of codes that only rows of others hold, in one of the worlds, and of one that a row of its own holds. */
export function codedRequests({ earlier }: World): readonly Request[] {
  if (!earlier) return [];
  return Array.from({ length: ROWS }, (_, index) => [
    call('update_object', {
      class_name: 'Orchard',
      object_id: rowId('Orchard', index),
      fields: { orcCode: `code ${ROWS + ((index + 1) % ROWS)}` },
    }),
    call('create_object', {
      class_name: 'Orchard',
      fields: { orcCode: `code ${ROWS + index}` },
      idempotency_key: `code-${index}`,
    }),
    call('create_object', { class_name: 'Orchard', fields: { orcCode: `code ${index}` } }),
  ]).flat();
}
