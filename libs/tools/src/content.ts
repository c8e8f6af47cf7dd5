/** A block of content as MCP tool results and prompts carry it (MCP 2025-11-25, server/tools#tool-result). */
export type ContentBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | {
      readonly type: 'resource_link';
      readonly uri: string;
      readonly name: string;
      readonly description?: string;
      readonly mimeType?: string;
    }
  | { readonly type: 'resource'; readonly resource: EmbeddedResource };

/** A resource inside an answer: text, or bytes in base64. */
export type EmbeddedResource = {
  readonly uri: string;
  readonly mimeType?: string;
  readonly _meta?: Readonly<Record<string, unknown>>;
} & ({ readonly text: string } | { readonly blob: string });

/**
 * Returned by a tool whose result is not plain data: its blocks are sent as they are. Size limit and canaries apply to
 * all of it. Anything else that a handler returns is data.
 */
export class ToolContent {
  /** @param data also sent as structured content where the tool declares an output schema */
  constructor(
    /** In the order they are shown. */
    readonly blocks: readonly ContentBlock[],
    /** The same for programs. Default none. */
    readonly data?: Readonly<Record<string, unknown>>,
  ) {}
}
