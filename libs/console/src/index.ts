export { CallStatistics } from './call-statistics.js';
export { CONSOLE_IMPORTS, ConsoleModule } from './console.module.js';
export { LiveRecords } from './live-records.js';
export type { OidcSetting } from './oidc-sign-in.js';
export { LiveStreams } from './controllers/live.controller.js';
export { type ServiceReport, ServiceStatus } from './controllers/status.controller.js';
export { listGovernedClasses, type PolicyViewDependencies, showChange, showSurface } from './policy-view.js';
export {
  type AgentSurface,
  type ListedClasses,
  type ListPart,
  type PolicyChanges,
  type SimulatedTool,
  type SimulationCatalogue,
  type SimulationRequest,
  SimulationsBusy,
  SimulationService,
} from './controllers/explain.controller.js';
export { Overviews } from './overview.js';
