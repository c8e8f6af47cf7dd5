import type { ToolAnnotations } from './tool.js';

/** Reads the operator's own database: changes nothing, reaches nothing outside, may be repeated. */
export const READ_ONLY: ToolAnnotations = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };

/** The same, but what is looked for may be sent to the embeddings endpoint that the operator chose. */
export const READS_AND_EMBEDS: ToolAnnotations = { ...READ_ONLY, openWorldHint: true };
