import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { FileHeld, holderOfFile, holdFile, toLockPath } from './file-lock.js';

const folder = mkdtempSync(join(tmpdir(), 'parley-locks-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const freshPath = () => join(folder, `${(files += 1)}.jsonl`);

/** A lock as it is written here, with what differs. */
async function leaveLock(path: string, differs: object): Promise<void> {
  const release = await holdFile(path);
  const written = JSON.parse(readFileSync(toLockPath(path), 'utf8')) as object;
  await release();
  writeFileSync(toLockPath(path), JSON.stringify({ ...written, token: 'of another', ...differs }));
}

/** The number of a process that has ended. */
async function startEndedProcess(): Promise<number> {
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'exit');
  return child.pid ?? 0;
}

describe('the lock of a file', () => {
  it('is of one holder at a time, in one process as well, until it is released', async () => {
    const path = freshPath();
    const release = await holdFile(path);
    await expect(holdFile(path)).rejects.toThrow(
      /is written by another instance in this process: give each service a path/,
    );
    expect(await holderOfFile(path)).toBe('another instance in this process');
    await release();
    expect(await holderOfFile(path)).toBeNull();
    await (
      await holdFile(path)
    )();
  });

  it('is of one of many that ask at once', async () => {
    const path = freshPath();
    const asked = await Promise.allSettled(Array.from({ length: 8 }, () => holdFile(path)));
    expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('is refused while another process of this machine holds it', async () => {
    const path = freshPath();
    const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    await leaveLock(path, { pid: other.pid, started: null });
    await expect(holdFile(path)).rejects.toThrow(new RegExp(`process ${other.pid} on`));
    other.kill('SIGKILL');
    await once(other, 'exit');
    await (
      await holdFile(path)
    )();
  });

  it.each([
    ['of a process that has ended', async () => ({ pid: await startEndedProcess() })],
    ['of an earlier process whose number a later one has', () => ({ pid: process.ppid, started: '1' })],
    ['of an earlier process with the number of this one', () => ({ pid: process.pid, started: '1' })],
  ])('is taken over from what was left: %s', async (_, differs) => {
    const path = freshPath();
    await leaveLock(path, await differs());
    expect(await holderOfFile(path)).toBeNull();
    const release = await holdFile(path);
    await expect(holdFile(path)).rejects.toThrow(FileHeld);
    await release();
  });

  it('is taken over where it names nobody', async () => {
    for (const text of ['', '{', 'null', '{"pid":"1"}']) {
      const path = freshPath();
      writeFileSync(toLockPath(path), text);
      const release = await holdFile(path);
      expect(await holderOfFile(path)).not.toBeNull();
      await release();
    }
  });

  it('is taken over from another machine without signs of life, as after the restart of a container', async () => {
    const path = freshPath();
    await leaveLock(path, { machine: 'another', host: 'replica-2' });
    const release = await holdFile(path, 20);
    expect(await holderOfFile(path)).not.toContain('replica-2');
    await release();
  });

  it('is refused while another machine gives signs of life, and names the file to delete', async () => {
    const path = freshPath();
    await leaveLock(path, { machine: 'another', host: 'replica-2' });
    let time = Date.now();
    const beating = setInterval(
      () => utimesSync(toLockPath(path), new Date(), new Date((time += 1_000))),
      10,
    );
    const refused = await holdFile(path, 20).catch(String);
    clearInterval(beating);
    expect(refused).toContain('on replica-2');
    expect(refused).toContain(`delete ${toLockPath(path)}`);
  });
});
