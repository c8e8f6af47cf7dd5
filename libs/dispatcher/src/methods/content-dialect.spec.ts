import { describe, expect, it } from 'vitest';
import type { ContentBlock } from '#tools';
import { blockIn } from './call-tool.js';
import { findDialect } from '../protocol.js';

const audio: ContentBlock = { type: 'audio', data: 'AA==', mimeType: 'audio/wav' };
const link: ContentBlock = { type: 'resource_link', uri: 'note://a', name: 'a' };
const image: ContentBlock = { type: 'image', data: 'AA==', mimeType: 'image/png' };

describe('content blocks by revision', () => {
  it.each([
    ['2024-11-05', audio, { type: 'text', text: '[audio, audio/wav]' }],
    ['2025-03-26', audio, audio],
    ['2025-03-26', link, { type: 'text', text: 'a: note://a' }],
    ['2025-06-18', link, link],
    ['2024-11-05', image, image],
  ])('in %s a %j is sent as %j', (version, block, sent) => {
    expect(blockIn(findDialect('legacy', version), block)).toEqual(sent);
  });

  it('are sent as they are in the stateless era', () => {
    for (const block of [audio, link, image]) {
      expect(blockIn(findDialect('modern', '2026-07-28'), block)).toBe(block);
    }
  });
});
