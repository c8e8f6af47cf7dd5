import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { POSTS_CONFIG, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, type Service, startService } from '../../support/service.js';

/** What `npm run proof -- --part fuzz` found once, made small. A new finding is added here with the answer that it should have. */
interface FuzzedCase {
  readonly title: string;
  readonly tool: string;
  readonly arguments: unknown;
  /** Of the refusal; null: it is answered. */
  readonly code: string | null;
}

const CASES = JSON.parse(
  readFileSync(new URL('../../fixtures/fuzzed-cases.json', import.meta.url), 'utf8'),
) as readonly FuzzedCase[];

let service: Service;
beforeAll(async () => {
  service = await startService({ seed: POSTS_SEED, config: POSTS_CONFIG });
});

describe('an input that a fuzz found', () => {
  it.each(CASES)('$title', async ({ tool, arguments: args, code }) => {
    const answer = await callTool(service, tool, args);
    expect(answer.rpcError).toBeUndefined();
    expect({ isError: answer.isError, code: answer.code ?? null }).toEqual({ isError: code !== null, code });
    expect(answer.text).not.toMatch(/could not complete|does not answer|internal/);
  });
});
