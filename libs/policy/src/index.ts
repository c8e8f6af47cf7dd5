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
export { parseKeys } from './where/keys.js';
export {
  asksOtherClasses,
  type CrossClassQuery,
  mapCrossClass,
  type ResolveCrossClass,
} from './where/map-cross-class.js';
export { parseOrder, type SortKey } from './where/order.js';
export { translateWhere, type WhereOptions } from './where/translate-where.js';
export type { Pointer } from './where/typed-value.js';
