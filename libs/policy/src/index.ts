export { missingColumns, type MissingColumn } from './binding/named-columns.js';
export type { BindingFault } from './binding/bind-class.js';
export { bindPolicy, BoundPolicy, type PolicyBinding } from './binding/bind-policy.js';
export { compileClass, HIDDEN_BY_DEFAULT, type PolicyFault } from './compile/compile-class.js';
export { type CompiledPolicy, compilePolicy, constraintFault } from './compile/compile-policy.js';
export {
  type ClassConfig,
  POLICY_CONFIG_SCHEMA,
  type PolicyConfig,
  type PropertyConfig,
  type TenantScopeConfig,
  BUDGET_CONFIG_SCHEMA,
} from './compile/policy-config.js';
export {
  type EnvironmentGates,
  envGate,
  type GatedTool,
  isTruthy,
  readEnvironmentGates,
  toolGate,
  mayUse,
} from './gates/tool-gates.js';
export { fieldsNamed } from './lint/fields-named.js';
export { type KnownNames, unknownAgentNames, type UnknownName } from './lint/agent-names.js';
export { isExposedToEveryTenant, lintPolicy } from './lint/lint-policy.js';
export * from './model/class-access.js';
export * from './model/class-policy.js';
export * from './model/class-schema.js';
export * from './model/field-names.js';
export * from './model/internal-fields.js';
export * from './model/where.js';
export { assertNothingDenied } from './pipeline/deny-rules.js';
export { governPipeline, joinTargets, type JoinScope } from './pipeline/govern-pipeline.js';
export type { Pipeline, Stage } from './pipeline/stages.js';
export { validatePipeline } from './pipeline/validate-pipeline.js';
export { walkPipeline, type WalkOptions } from './pipeline/walk-pipeline.js';
export { isAskable, parseKeys } from './where/keys.js';
export {
  asksOtherClasses,
  type CrossClassQuery,
  mapCrossClass,
  type ResolveCrossClass,
} from './where/map-cross-class.js';
export { parseOrder, type SortKey } from './where/order.js';
export { translateWhere, type WhereOptions } from './where/translate-where.js';
export {
  columnOf,
  type ColumnMasks,
  describeMasks,
  type PathMask,
  toldMasks,
} from './masking/column-masks.js';
export type { MaskConfig, MaskForm, MasksConfig } from './masking/mask-config.js';
export { MASKED, maskRow, type NamePseudonym } from './masking/mask-row.js';
export { holdsWithheld, redact, type Withheld } from './redaction/redact.js';
export { noneWithheldAt } from './redaction/withheld-inside.js';
export { withholdUnreadable } from './redaction/embedded-rights.js';
export type { RowOperation } from './rights/access-rights.js';
export type { ClassOperation, ReadOperation } from './rights/class-permissions.js';
export {
  allTextFields,
  countedTextFields,
  facetField,
  searchedField,
  stringFields,
} from './search/searched-fields.js';
export { PerPolicy } from './edition/per-policy.js';
export { Policies } from './edition/policies.js';
export { AgentScope, AgentScopes, type ReportMisfits } from './scope/agent-scope.js';
export { suggestNames } from './scope/suggest-names.js';
export { type JoinProjection, joinProjection } from './scope/join-projection.js';
export {
  isOwnRow,
  isTenantRefusal,
  type TenantBinding,
  tenantBinding,
  tenantConflict,
  tenantWhere,
} from './scope/tenant.js';
export type { Pointer } from './where/typed-value.js';
export { fieldTypeOf, isSameType, typeName } from './write/field-type.js';
export { methodGate, type GatedMethod } from './gates/method-gates.js';
export { rawWriteGate, schemaChangeGate } from './write/writable-classes.js';
export { readNewClassFields } from './write/new-class-fields.js';
export { planWrite, type WriteContext, type WritePlan } from './write/plan-write.js';
export { refusedArgumentKeys } from './write/refused-keys.js';
export { type ClassDeclaration, narrowClassConfig, withDeclaredClasses } from './compile/declared-classes.js';
