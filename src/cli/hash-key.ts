import { newKey, createSlowHash } from '#auth';
import { UsageError } from './command-options.js';

/** Minimum characters; shorter keys can be guessed whatever the cost of a guess. */
const MIN_KEY_LENGTH = 12;
const MAX_KEY_LENGTH = 1_024;

async function readKey(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '');
}

/** A key is never an argument, because every process of the machine could read it. */
export async function runHashKey({ generate = false }: { readonly generate?: boolean }): Promise<void> {
  if (generate) {
    const { key, hash } = newKey();
    process.stdout.write(`key:  ${key}\nhash: ${hash}\n`);
    return;
  }
  const key = await readKey();
  if (!/^[\x21-\x7e]+$/.test(key) || key.length < MIN_KEY_LENGTH || key.length > MAX_KEY_LENGTH)
    throw new UsageError(`a key is ${MIN_KEY_LENGTH} to ${MAX_KEY_LENGTH} visible characters without spaces`);
  process.stdout.write(`${await createSlowHash(key)}\n`);
}
