import type { ContentBlock } from '#tools';
import type { Dialect } from '../protocol-versions.js';

/** A block as a revision knows it: what it has no form for is told as text. */
export function blockIn(dialect: Dialect, block: ContentBlock): ContentBlock {
  if (block.type === 'audio' && dialect.version < '2025-03-26')
    return { type: 'text', text: `[audio, ${block.mimeType}]` };
  if (block.type === 'resource_link' && dialect.version < '2025-06-18')
    return { type: 'text', text: `${block.name}: ${block.uri}` };
  return block;
}
