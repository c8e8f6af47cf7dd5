export { CONSOLE_IMPORTS, ConsoleModule } from './console.module.js';
export { LiveRecords } from './live-records.js';
export { LiveStreams } from './live-streams.js';
export { type ServiceReport, ServiceStatus } from './service-status.js';
export {
  type SimulatedTool,
  type SimulationCatalogue,
  type SimulationRequest,
  SimulationsBusy,
  SimulationService,
} from './simulation-service.js';
