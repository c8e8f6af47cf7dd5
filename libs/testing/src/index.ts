/** The kit for application tests of tools, policies and agents (docs/guide/testing.md). */
export type { AccessRow } from './testing-application.js';
export type { AuditRecords } from './audit-records.js';
export { CallRefused, type Attempt, type ToolRefusal, type ToolResult } from './call-results.js';
export type { Caller } from './caller.js';
export { createTestingApplication, createTestingOver } from './create-testing-application.js';
export { policyMatrix, refused, type Cell, type MatrixRow, type Refusing } from './policy-matrix.js';
export type { RefusalCode } from './known-names.js';
export type { Question } from './scripted-person.js';
export { TestingDatabase } from './testing-database.js';
export type { As, TestingApplication } from './testing-application.js';
export type { SeedSource, TestingOptions } from './testing-options.js';
export type { UngovernedRows } from './testing-application.js';
