import { Agent, type AgentDefinition } from '#core';
import { StoreError } from '#data';
import { MongoRecordReader } from '#data-mongo';
import { catalogueOf, openDatabase } from '#parley/instance';
import type { LoadedConfig } from '#config';
import { bindPolicy, type ClassPolicy, isRefusal, tenantBinding, tenantWhere } from '#policy';
import { type Finding, ok, warn } from './finding.js';

/** Milliseconds for one class. A tenant that takes longer to find is not reported. */
const MAX_TIME = 2_000;

/** Agents whose `tenantId` is that of no row: they read nothing, and nothing says why. */
export async function checkTenants({ config, policy, agents }: LoadedConfig): Promise<Finding[]> {
  const bound = [...agents.values()].filter(({ tenantId }) => tenantId !== null);
  const isScoped = [...policy.classes.values()].some(({ tenantScope }) => tenantScope);
  if (bound.length === 0 || !isScoped || config.database.uri === null) return [];
  const database = await openDatabase(config);
  try {
    const mongo = database.connection;
    if (mongo === null) return [];
    const catalogue = catalogueOf({ mongo, parse: null }, () => policy);
    const schemas = await catalogue.snapshot();
    const scoped = [...bindPolicy(policy, schemas).classes.values()].filter(
      ({ className, tenantScope }) => tenantScope && schemas.get(className),
    );
    const reader = new MongoRecordReader(mongo, catalogue);
    const findings: Finding[] = [];
    for (const definition of bound) {
      const found = await lookUp(reader, definition, scoped);
      if (found.length > 0 && found.every((has) => !has))
        findings.push(
          warn(
            'agents.tenant',
            `'${definition.name}' has tenant ${JSON.stringify(definition.tenantId)}, and no row of ${scoped.map(({ className }) => className).join(', ')} has it`,
            `correct agents.${definition.name}.tenantId, unless its first row is still to come`,
          ),
        );
    }
    return findings.length > 0 ? findings : [ok('agents.tenant', 'every tenant of an agent has rows')];
  } catch (error) {
    // What the database does not answer is a finding on the database.
    if (error instanceof StoreError) return [];
    throw error;
  } finally {
    await database.close();
  }
}

/** Whether there is a row of the agent's tenant, for each class that limits it to one. */
async function lookUp(
  reader: MongoRecordReader,
  definition: AgentDefinition,
  scoped: readonly ClassPolicy[],
): Promise<boolean[]> {
  const agent = new Agent({ definition, principal: 'doctor' });
  const found: boolean[] = [];
  for (const policy of scoped) {
    const binding = tenantBinding(agent, policy);
    if (binding === null || isRefusal(binding)) continue;
    const where = tenantWhere(binding);
    try {
      const rows = await reader.find(
        { className: policy.className, where, keys: [], limit: 1 },
        { maxTimeMS: MAX_TIME, comment: 'parley doctor', signal: AbortSignal.timeout(2 * MAX_TIME) },
      );
      found.push(rows.length > 0);
    } catch (error) {
      if (!(error instanceof StoreError) || error.code === 'unavailable') throw error;
      found.push(true);
    }
  }
  return found;
}
