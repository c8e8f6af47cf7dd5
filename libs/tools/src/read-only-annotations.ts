import type { ToolAnnotations } from './tool.js';

/** Reads the operator's own database: changes nothing, reaches nothing outside, may be repeated. */
export const READ_ONLY: ToolAnnotations = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };
