export { bindPolicy, BoundPolicy, haveSameColumns } from './compile/bind-policy.js';
export { type BindingIssue, listMissingColumns } from './compile/bind-class.js';
export { HIDDEN_BY_DEFAULT } from './compile/compile-class.js';
export { compilePolicy, constraintIssue } from './compile/compile-policy.js';
export {
  CLASS_OPTIONS,
  type ClassDeclaration,
  narrowClassConfig,
  withDeclaredClasses,
} from './compile/merge-declarations.js';
export type {
  ClassConfig,
  MemberConfig,
  PolicyConfig,
  PropertyConfig,
  TenantScopeConfig,
} from './compile/policy-config.js';
export {
  fieldsNamed,
  isExposedToEveryTenant,
  lintPolicy,
  listsNoClass,
  NO_CLASS_LISTED,
  lintUniqueIndexes,
  unknownAgentNames,
  type UnknownName,
} from './lint/lint-policy.js';
export { describeMasks, listDisclosedMasks } from './masking/column-masks.js';
export { type MaskConfig, type MasksConfig } from './masking/compile-masks.js';
export { MASKED_TEXT, maskRow, type NamePseudonym } from './masking/mask-row.js';
export { holdsWithheld, redact, withholdUnreadable } from './masking/redact.js';
export { STORED_POINTER, withoutWithheldObjects } from './masking/withheld-objects.js';
export * from './model/class-access.js';
export * from './model/class-schema.js';
export * from './model/field-names.js';
export * from './model/known-options.js';
export * from './model/policy.js';
export * from './model/policy-issue.js';
export * from './model/tenant-database.js';
export { ALL_TEXT, noteColumn, type ValueType } from './model/value-type.js';
export {
  mergeFilters,
  listConstrainedFields,
  type CrossClassQuery,
  type RelationQuery,
  type GovernedPipeline,
  hasCrossClassQuery,
  isBase64,
  isPlainObject,
  isTyped,
  mapCrossClass,
  parseIsoDate,
  type TypedValue,
  type Where,
} from './model/where.js';
export { assertNothingDenied } from './pipeline/deny-rules.js';
export { governPipeline, type JoinScope, joinTargets } from './pipeline/govern-pipeline.js';
export { listProjectedNames } from './pipeline/project-stage.js';
export type { Pipeline } from './pipeline/stages.js';
export { validatePipeline } from './pipeline/validate-pipeline.js';
export { walkPipeline, type WalkOptions } from './pipeline/walk-pipeline.js';
export type { RowOperation } from './rights/class-permissions.js';
export type { ClassOperation, ReadOperation } from './rights/class-permissions.js';
export {
  directWriteGate,
  isProposal,
  type EnvironmentGates,
  envGate,
  isTruthy,
  mayUse,
  methodGate,
  rowWriteGate,
  rawWriteGate,
  readEnvironmentGates,
  schemaChangeGate,
  toolGate,
} from './rights/tool-gates.js';
export { admitsRow } from './write/admitted-row.js';
export { PolicyModule } from './policy.module.js';
export { TenantsByPolicy } from './scope/scope-tenants.js';
export { AgentScope, AgentScopes } from './scope/agent-scope.js';
export {
  excludeLists,
  isOwnRow,
  isTenantRefusal,
  type TenantBinding,
  tenantOperand,
  tenantBinding,
  tenantConflict,
  tenantWhere,
} from './scope/tenant.js';
export {
  allTextFields,
  listCountedTextFields,
  facetField,
  isRequestable,
  joinProjection,
  MAX_KEYS,
  noteKey,
  parseKeys,
  parseOrder,
  checkSearchedField,
  type RequestedSortKey,
  stringFields,
} from './where/requested-fields.js';
export { translateWhere } from './where/translate-where.js';
export { inferFieldType, isSameType, readNewClassFields, typeName } from './write/field-types.js';
export { NON_FINITE, refuseTornText } from './model/written-values.js';
export { planWrite, type WritePlan } from './write/plan-write.js';
export { listRefusedArgumentKeys } from './write/written-value.js';
