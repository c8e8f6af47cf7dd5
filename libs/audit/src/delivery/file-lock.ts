import { randomUUID } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { link, mkdir, open, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** Another process writes the file. */
export class FileHeld extends Error {
  override readonly name = 'FileHeld';

  /** @param lock the file that names the other process */
  constructor(
    readonly path: string,
    readonly lock: string,
    holder: string,
  ) {
    super(
      `${path} is written by ${holder}: give each service a path of its own. If that process has ended, delete ${lock}`,
    );
  }
}

interface Holder {
  readonly pid: number;
  /** When the process started, so that a later one with its number is not taken for it; null: not known here. */
  readonly started: string | null;
  /** Where process numbers mean the same. */
  readonly machine: string;
  readonly host: string;
  readonly token: string;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return null;
  }
}

function namespaceOfProcesses(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

/** The start of this machine and the namespace of its process numbers, where the system tells them; else its name. */
const MACHINE = `${readText('/proc/sys/kernel/random/boot_id') ?? hostname()} ${namespaceOfProcesses()}`;

/** The 20th field behind the name of the program, which may contain blanks. */
function readStartTime(pid: number): string | null {
  const text = readText(`/proc/${pid}/stat`);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? null;
}

function isRunning({ pid, started }: Holder): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Without the right to signal it, it runs.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  return started === null || readStartTime(pid) === null || readStartTime(pid) === started;
}

/** The tokens of the files that this process holds. */
const OWN_TOKENS = new Set<string>();

/** Null: it names nobody, as for a moment while it is written, or after a crash in that moment. */
function readHolder(text: string): Holder | null {
  try {
    const value = JSON.parse(text) as Partial<Holder> | null;
    return typeof value?.pid === 'number' && typeof value.token === 'string' ? (value as Holder) : null;
  } catch {
    return null;
  }
}

/** Whether the holder of a lock is known to write no more. On another machine that cannot be known. */
function hasEnded(holder: Holder | null): boolean {
  if (!holder) return true;
  if (holder.machine !== MACHINE) return false;
  return holder.pid === process.pid ? !OWN_TOKENS.has(holder.token) : !isRunning(holder);
}

const describe = ({ pid, machine, host }: Holder) =>
  pid === process.pid && machine === MACHINE
    ? 'another instance in this process'
    : `process ${pid} on ${host}`;

/** Milliseconds between two signs of life. */
const HEARTBEAT_INTERVAL = 2_000;

/** Whether a process that cannot be seen here still gives signs of life. */
async function beats(lock: string, beat: number): Promise<boolean> {
  const readTime = () =>
    stat(lock).then(
      ({ mtimeMs }) => mtimeMs,
      () => null,
    );
  const before = await readTime();
  await pause(4 * beat);
  return (await readTime()) !== before;
}

/** Attempts at a lock that names nobody. */
const MAX_NAMELESS_ATTEMPTS = 10;

/** The lock of a file, beside it. */
export const toLockPath = (path: string): string => `${path}.lock`;

/** Which running process holds a file, for people; null: none. */
export async function holderOfFile(path: string): Promise<string | null> {
  const holder = readHolder(await readFile(toLockPath(path), 'utf8').catch(() => ''));
  return holder && !hasEnded(holder) ? describe(holder) : null;
}

/**
 * Makes this process the only one that writes a file, until it releases it or ends. What an ended process of this machine left is taken over.
 * @param beat milliseconds between two signs of life for other machines, which see no process of this one
 * @returns releases it
 * @throws FileHeld
 */
export async function holdFile(path: string, beat = HEARTBEAT_INTERVAL): Promise<() => Promise<void>> {
  const lock = toLockPath(path);
  const token = randomUUID();
  const own: Holder = {
    pid: process.pid,
    started: readStartTime(process.pid),
    machine: MACHINE,
    host: hostname(),
    token,
  };
  await mkdir(dirname(lock), { recursive: true, mode: 0o700 });
  for (let attempt = 0; attempt < 2 * MAX_NAMELESS_ATTEMPTS; attempt += 1) {
    OWN_TOKENS.add(token);
    if (await createLock(lock, JSON.stringify(own))) {
      const beating = setInterval(
        () => void utimes(lock, new Date(), new Date()).catch(() => undefined),
        beat,
      );
      beating.unref();
      return () => {
        clearInterval(beating);
        return release(lock, token);
      };
    }
    OWN_TOKENS.delete(token);
    const text = await readFile(lock, 'utf8').catch(() => null);
    if (text === null) continue;
    const holder = readHolder(text);
    if (!holder && attempt < MAX_NAMELESS_ATTEMPTS) {
      // Another process is about to write who it is, unless it ended before.
      await pause(20);
      continue;
    }
    if (holder && !hasEnded(holder) && (holder.machine === MACHINE || (await beats(lock, beat))))
      throw new FileHeld(path, lock, describe(holder));
    await putAside(lock, text, token);
  }
  throw new FileHeld(path, lock, 'another process that starts');
}

async function createLock(lock: string, text: string): Promise<boolean> {
  const handle = await open(lock, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') return null;
    throw error;
  });
  if (!handle) return false;
  try {
    await handle.writeFile(text);
    return true;
  } finally {
    await handle.close();
  }
}

/** Removes what an ended process left, and nothing that another one has put in its place meanwhile. */
async function putAside(lock: string, left: string, token: string): Promise<void> {
  const aside = `${lock}.${token}`;
  if (
    !(await rename(lock, aside).then(
      () => true,
      () => false,
    ))
  )
    return;
  const taken = await readFile(aside, 'utf8').catch(() => left);
  if (taken === left) await rm(aside, { force: true });
  else {
    // It is of a process that lives; where a third one has taken the place meanwhile, that one holds the file.
    await link(aside, lock).catch(() => undefined);
    await rm(aside, { force: true });
  }
}

async function release(lock: string, token: string): Promise<void> {
  OWN_TOKENS.delete(token);
  const holder = readHolder(await readFile(lock, 'utf8').catch(() => ''));
  if (holder?.token === token) await rm(lock, { force: true });
}
