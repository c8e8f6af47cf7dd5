import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/** Bytes of one secret: keys, passwords and certificates are far shorter. */
const LONGEST = 65_536;

/** Why a secret could not be read; names the file and never what is in it. */
export class SecretFileError extends Error {
  override readonly name = 'SecretFileError';
}

/**
 * The text of a file that holds one secret, without the line end that editors leave.
 * @throws SecretFileError
 */
export function readSecretFile(path: string): string {
  const bytes = readBounded(path);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new SecretFileError(`${path} is not UTF-8 text`);
  }
  const secret = text.replace(/\r?\n$/, '');
  // An empty key would count as none, which opens what the key was to close.
  if (secret.trim() === '') throw new SecretFileError(`${path} is empty`);
  if (secret.includes('\0')) throw new SecretFileError(`${path} is not text`);
  return secret;
}

function readBounded(path: string): Buffer {
  let descriptor: number;
  try {
    // A pipe without a writer must not block the start.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw unreadable(path, error);
  }
  try {
    if (!fstatSync(descriptor).isFile()) throw new SecretFileError(`${path} is not a file`);
    const buffer = Buffer.alloc(LONGEST + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read)
      read = readSync(descriptor, buffer, length, buffer.length - length, null);
    if (length > LONGEST) throw new SecretFileError(`${path} is longer than ${LONGEST} bytes`);
    return buffer.subarray(0, length);
  } catch (error) {
    throw error instanceof SecretFileError ? error : unreadable(path, error);
  } finally {
    closeSync(descriptor);
  }
}

function unreadable(path: string, error: unknown): SecretFileError {
  const { code } = error as NodeJS.ErrnoException;
  return new SecretFileError(`${path} cannot be read (${code ?? 'unknown'})`);
}
