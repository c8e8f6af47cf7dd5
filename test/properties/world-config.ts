import { stringify } from 'yaml';
import type { ClassConfig, MaskConfig, PolicyConfig } from '#policy';
import type { WorldDatabase } from './asked-service.js';
import { plainConfig } from './plain-world.js';
import { FILTER_LIMIT, LEFT_OUT, LIMITED_BY } from './sight.js';
import {
  allColumns,
  CALLER,
  CLASS_NAMES,
  type ClassConfigs,
  type ClassName,
  ROLE,
  TENANT_COLUMN,
} from './vocabulary.js';
import type { AgentLimits, ClassRules, MaskSpec, World } from './world.js';
import { databasesConfig } from './world-databases.js';

type Json = Record<string, unknown>;

/** Characters that an `ending` leaves. */
export const KEPT = 3;

function classConfig(className: ClassName, rules: ClassRules, { claimed, spread }: World): ClassConfig {
  const properties = allColumns(className).map(({ name, kind, target }) => [
    name,
    { description: `INFO${name}`, ...(kind === 'pointers' && target && { targetClass: target }) },
  ]);
  const { hidden, tenant, searchable } = rules;
  return {
    description: `INFO${className}`,
    visible: rules.visible,
    hidden: hidden === 'exceptMaster' ? { except: 'masterKey' } : hidden === 'always',
    largeFields: rules.largeFields,
    properties: Object.fromEntries(properties),
    ...(rules.fields && { fields: rules.fields }),
    ...(rules.joinFields && { joinFields: rules.joinFields }),
    masks: Object.fromEntries(
      Object.entries(rules.masks).map(([name, { form, openToAdmin, member }]) => [
        member === null ? name : `${name}.${member}`,
        maskConfig(form, openToAdmin),
      ]),
    ),
    ...(rules.canonical &&
      className !== '_User' && { canonicalFilter: { [LIMITED_BY[className]]: { $lte: FILTER_LIMIT } } }),
    ...(searchable && {
      searchable: {
        field: 'orcVector',
        ...((rules.fields?.includes('orcTitle') ?? true) && { textFields: ['orcTitle'] }),
        filterFields: ['oRCRANK', ...(searchable.tenant ? [TENANT_COLUMN[className]] : [])],
      },
    }),
    ...(spread && { database: spread[className] }),
    ...(tenant && {
      tenantScope: {
        field: TENANT_COLUMN[className],
        ...(claimed && { from: { claim: TENANT_CLAIM } }),
        ...(tenant.bypass && { bypass: ['admin'] }),
      },
    }),
  };
}

function maskConfig(form: MaskSpec['form'], openToAdmin: boolean): MaskConfig {
  const rule = form === 'ending' ? { mask: { keep: KEPT } } : form;
  return openToAdmin ? { readonly: rule, admin: 'none' } : rule;
}

const MASKING_KEY = 'a secret that no agent may ever learn';

function policyOf(world: World): PolicyConfig {
  const classes: ClassConfigs = Object.fromEntries(
    CLASS_NAMES.map((name) => {
      const rules = classConfig(name, world.classes[name], world);
      return [name, world.storage === 'plain' ? { ...rules, ...plainConfig(name, rules) } : rules];
    }),
  );
  const { refuseUnlisted = false, ...switches } = world.switches;
  const unlistedClasses = refuseUnlisted || world.storage === 'plain' ? 'refuse' : 'allow';
  return { ...switches, unlistedClasses, suppressMasterKeyWarning: true, maskingKey: MASKING_KEY, classes };
}

/** The row filters of an agent or sub-agent, as its options take them. */
export function filtersOf({ filtered, filteredByDefault }: AgentLimits): Record<string, Json> {
  const ids = CLASS_NAMES.map(LEFT_OUT);
  return {
    ...Object.fromEntries(filtered.map((name) => [name, { [LIMITED_BY[name]]: { $lte: FILTER_LIMIT } }])),
    ...(filteredByDefault && { default: { objectId: { $nin: ids } } }),
  };
}

/** The claim that names the tenant of a caller, where tenants are claimed. */
export const TENANT_CLAIM = 'org';

export const AGENT_KEY = 'key-of-the-agent';

/** @param database without an endpoint that makes vectors of texts no text is searched by its meaning */
export function configOf(world: World, database: WorldDatabase): string {
  const { agent } = world;
  const { posture } = agent;
  const identity =
    posture === 'user'
      ? { user: CALLER }
      : posture === 'role'
        ? { role: ROLE }
        : posture === 'master'
          ? 'master'
          : { session: 'caller' };
  const asked = {
    permissions: agent.permissions,
    tenantId: world.claimed ? null : agent.tenantId,
    identity,
    clientMode: posture === 'client',
    masterAtlas: agent.masterAtlas,
    rateLimit: 1_000_000_000,
    filters: filtersOf(agent),
    ...(agent.tools && { tools: agent.tools }),
    ...(agent.classes && { classes: agent.classes }),
  };
  const other = { permissions: 'admin', tenantId: agent.tenantId, rateLimit: 1_000_000_000 };
  return stringify(
    {
      server: { port: 0, stateKey: 'the key that seals what both worlds keep' },
      // The same for both: what they ask is compared as well.
      audit: { digestKey: 'the digests of both worlds compare' },
      ...databasesConfig(world, database),
      agents: {
        asked: { ...asked, ...(world.proposed && { writes: 'proposed' }) },
        ...(world.earlier && {
          proposer: { permissions: 'write', writes: 'proposed', rateLimit: 1_000_000_000 },
        }),
        ...(world.proposed && {
          proposer: { ...other, writes: 'proposed' },
          chief: other,
          // What it takes back it writes at once.
          operator: asked,
        }),
      },
      ...(world.earlier && { approvals: { mode: 'desk', approvers: ['asked'] } }),
      ...(world.proposed && {
        approvals: { mode: 'desk', approvers: ['asked', 'chief'] },
        changes: { undo: 'agents', record: 'all' },
      }),
      auth: [{ apiKey: AGENT_KEY, agent: 'asked' }],
      policy: policyOf(world),
      ...(database.embeddings !== undefined && {
        embeddings: { endpoint: database.embeddings, model: 'small', dimensions: 3 },
      }),
    },
    { aliasDuplicateObjects: false },
  );
}
