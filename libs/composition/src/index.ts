export { type AgentChoice, type AgentChooser, ChosenAgents } from './chosen-agents.js';
export { AppModule, type ServiceParts } from './app.module.js';
export { builtPage } from './built-pages.js';
export { catalogueOf, directoryOf, parseConnectionOf } from './data-stores.js';
export { openDatabase, readSeedFile, type OpenDatabase } from './database/open-database.js';
export { Editions, type Edition } from './editions/editions.js';
export { followConfiguration, type ReadableAgain } from './editions/following.js';
export { checkFilterNames } from './filter-names.js';
export { mountEdges, type Mounted } from './http/mount-edge.js';
export { Readiness, type ReadyState } from './http/readiness.js';
export { stateKeys } from './input-rounds.js';
export {
  NOTHING_OBSERVED,
  fieldsOf,
  openObservability,
  showMetrics,
  type Observability,
} from './observe/observability.js';
export { loadWithPlugins, type LoadedService, type LoadedWithPlugins } from './plugins/load-with-plugins.js';
export { toolsOfPlugins } from './plugins/plugin-modules.js';
export { warnOfPostures } from './posture-warnings.js';
export { productVersion } from './product-version.js';
export { TaskService } from './tasks.js';
export { followLists } from './wire.js';
