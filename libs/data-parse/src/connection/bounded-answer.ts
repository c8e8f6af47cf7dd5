import { parseServerFault } from './parse-faults.js';

/**
 * The body of an answer as JSON, read only as far as the limit.
 * @throws StoreError `failed` for an answer that is larger, or is not JSON
 */
export async function boundedJson(response: Response, maxBytes: number): Promise<unknown> {
  const text = await boundedText(response, maxBytes);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw parseServerFault('failed', `the answer (status ${response.status}) is not JSON`);
  }
}

async function boundedText(response: Response, maxBytes: number): Promise<string> {
  if (!response.body) return '';
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    // Leaving the loop cancels the stream.
    if (size > maxBytes) throw parseServerFault('failed', `the answer is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
