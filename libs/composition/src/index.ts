export { type AgentChoice, agentWithin, chosenAgent, type CodeChoice } from './agent-choice.js';
export { approvedBy } from './approvals.js';
export { type AdmissionRequest, admittedBy, type AgentChooser, chosenBy } from './chosen-agents.js';
export { AppModule, type ServiceParts } from './app.module.js';
export { builtPage } from './built-pages.js';
export { catalogueOf, directoryOf, parseConnectionOf } from './data-stores.js';
export { EmbeddedDatabase, type EmbeddedDatabaseOptions } from './database/embedded-database.js';
export { openDatabase, readSeedFile, type OpenDatabase } from './database/open-database.js';
export { Editions, type Edition } from './editions/editions.js';
export { followConfiguration, type ReadableAgain } from './editions/following.js';
export { assertNamesOf, checkFilterNames } from './filter-names.js';
export { mountEdges, type Mounted } from './http/mount-edge.js';
export type { Neighbour } from './http/neighbour.js';
export { Neighbours } from './http/neighbours.js';
export { neighboursOf, type ServiceNeighbours } from './http/service-neighbours.js';
export { Readiness, type ReadyState } from './http/readiness.js';
export { resourceUrlOf } from './oauth.js';
export { ServedAt } from './served-at.js';
export { stateKeys } from './input-rounds.js';
export {
  NOTHING_OBSERVED,
  fieldsOf,
  openObservability,
  showMetrics,
  type Observability,
} from './observe/observability.js';
export {
  loadWithPlugins,
  type LoadedService,
  type LoadedWithPlugins,
  type LoadOptions,
} from './plugins/load-with-plugins.js';
export { toolsOfPlugins } from './plugins/plugin-modules.js';
export { rehearseInstance } from './rehearsal/rehearse-instance.js';
export { openRehearsalRoom, type RehearsalRoom, type RehearsalSetting } from './rehearsal/rehearsal-room.js';
export { rehearsedIdentity, RehearsingDirectory } from './rehearsal/rehearsing-directory.js';
export { warnOfPostures } from './posture-warnings.js';
export { productVersion } from './product-version.js';
export { TaskService } from './tasks.js';
export { UngovernedData, type UngovernedQuery, type UngovernedRecords } from './ungoverned-data.js';
export { followLists } from './wire.js';
