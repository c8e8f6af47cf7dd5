export { type AgentChoice, agentWithin, chosenAgent, type CodeChoice } from './auth/agent-choice.js';
export { type AdmissionRequest, admittedBy, type AgentChooser, chosenBy } from './auth/chosen-agents.js';
export { resourceUrlOf } from './auth/oauth-rules.js';
export { assertNamesOf } from './agent-names.js';
export { type ClosingStep, closeWithin } from './closing.js';
export type { ReadableAgain } from './configuration-changes.js';
export { EmbeddedDatabase, type EmbeddedDatabaseOptions } from './data/embedded-database.js';
export { openDatabase, readSeedFile, type OpenDatabase } from './data/open-database.js';
export { catalogueOf, directoryOf, parseConnectionOf } from './data/stores.module.js';
export { UngovernedData, type UngovernedQuery, type UngovernedRecords } from './data/ungoverned-data.js';
export { instanceModule, type InstanceOptions } from './instance.module.js';
export { fieldsOf } from './observability.js';
export { builtPage, productVersion } from './package-files.js';
export { type InstanceSetting, ParleyInstance } from './parley-instance.js';
export {
  loadWithPlugins,
  type LoadedService,
  type LoadedWithPlugins,
  type LoadOptions,
} from './plugins/load-with-plugins.js';
export { toolsOfPlugins } from './plugins/plugin-modules.js';
export { mountEdges, type Mounted } from './routes/mount-edge.js';
export type { Neighbour } from './routes/neighbour.js';
export { Neighbours } from './routes/neighbours.js';
export { Readiness, type ReadyState } from './routes/readiness.js';
export { neighboursOf, type ServiceNeighbours } from './routes/routes.module.js';
export { rehearseInstance } from './simulation/rehearse-instance.js';
export { openRehearsalRoom, type RehearsalRoom, type RehearsalSetting } from './simulation/rehearsal-room.js';
export { rehearsedIdentity, RehearsingDirectory } from './simulation/rehearsing-directory.js';
