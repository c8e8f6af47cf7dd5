export * from './model/class-access.js';
export * from './model/class-policy.js';
export * from './model/class-schema.js';
export * from './model/field-names.js';
export * from './model/where.js';
