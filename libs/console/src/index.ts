export { ConsoleApp } from './console-app.js';
export { LiveRecords } from './live-records.js';
export { liveRoutes, LiveStreams } from './routes/live-routes.js';
export { OperatorGate, OperatorNotes } from './operator-gate.js';
export { OperatorSessions } from './operator-sessions.js';
export { PageFiles } from './page-files.js';
export {
  explainRoutes,
  type SimulationCatalogue,
  SimulationService,
  type SimulationRequest,
  SimulationsBusy,
  type SimulatedTool,
} from './routes/explain-routes.js';
export type { Route } from './route.js';
export { approvalRoutes } from './routes/approval-routes.js';
export { auditRoutes } from './routes/audit-routes.js';
export { policyRoutes } from './routes/policy-routes.js';
export { statusRoutes, workRoutes } from './routes/status-routes.js';
export { type ServiceReport, ServiceStatus } from './service-status.js';
export { SignIn } from './sign-in.js';
