export { assertNamesOf } from './agent-names.js';
export { closeWithin } from './closing.js';
export { openConsole } from './console.js';
export type { ReadableAgain } from './configuration-changes.js';
export {
  type AclMatchStage,
  aclReadMatchStage,
  aclWriteMatchStage,
  type ApplicationConnection,
  ApplicationConnectionError,
  type ApplicationMongoClient,
  type ApplicationMongooseConnection,
  useApplicationConnection,
} from '#data-mongo';
export {
  connectTo,
  EmbeddedDatabase,
  type EmbeddedDatabaseOptions,
  openDatabase,
  openWithConnections,
  type OpenDatabase,
  readSeedFile,
} from './data/open-database.js';
export { catalogueOf, createDirectory, createParseConnection } from './data/adapters.module.js';
export { UngovernedData, type UngovernedQuery, type UngovernedRecords } from './data/ungoverned-data.js';
export { InstanceModule, OFFERED_PROVIDERS } from './instance.module.js';
export { productVersion } from '../package-files.js';
export { ParleyInstance } from './parley-instance.js';
export {
  beforePlugins,
  type LoadedService,
  type LoadedWithPlugins,
  type LoadOptions,
  loadWithPlugins,
  promptsOfPlugins,
  toolsOfPlugins,
} from './plugins.js';
export { EMBEDDED_URI } from './data/installation.js';
export { type CodeConversationOptions, Conversations, readModelSettings } from './conversations.js';
export { type Mounted, mountEdges, RoutesApplication } from './routes/routes-application.js';
export { InstanceProvidersModule } from './routes/routes.module.js';
export { Readiness, type ReadyState } from './routes/readiness.js';
export {
  openSimulation,
  type SimulatedInstance,
  SimulatedDirectory,
  simulateInstance,
} from './simulation.js';
