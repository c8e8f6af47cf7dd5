import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RecordingLog, createRecords, temporaryFolder } from './deliveries.fixture.js';
import { examineFile } from './file-problem.js';
import { errorName } from './record-delivery.js';
import { JsonLinesFile, type JsonLinesOptions } from './record-files.js';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

const log = new RecordingLog();
const createFile = (options: Partial<JsonLinesOptions> = {}) =>
  new JsonLinesFile({
    path: folder.at('audit.jsonl'),
    maxBytes: 1_000_000,
    maxAge: null,
    fsync: 'always',
    log,
    ...options,
  });
const readLines = (path: string) => readFileSync(path, 'utf8').split('\n').slice(0, -1);

describe('a file of records', () => {
  it('holds one a line, is read by this user alone, and is gone on with after a restart', async () => {
    const records = createRecords(4);
    const first = createFile();
    expect(await first.open()).toBeNull();
    await first.deliver(records.slice(0, 2));
    await first.close();
    const second = createFile({ fsync: 'interval' });
    const { chain, seq, hash } = records[1]!.record;
    expect(await second.open()).toEqual({ chain, seq, hash });
    await second.deliver(records.slice(2));
    await second.close();
    expect(readLines(folder.at('audit.jsonl'))).toEqual(records.map(({ line }) => line));
    expect(statSync(folder.at('audit.jsonl')).mode & 0o777).toBe(0o600);
  });

  it('takes rights away from everybody else when it finds them', async () => {
    writeFileSync(folder.at('audit.jsonl'), '', { mode: 0o666 });
    const file = createFile();
    await file.open();
    expect(statSync(folder.at('audit.jsonl')).mode & 0o777).toBe(0o600);
    await file.close();
  });

  it('is put aside when it is full or old, and nothing is lost between', async () => {
    const records = createRecords(30);
    const file = createFile({ maxBytes: 1_024 });
    await file.open();
    for (const record of records) await file.deliver([record]);
    await file.close();
    const aside = readdirSync(folder.path).filter((name) => name !== 'audit.jsonl');
    expect(aside.length).toBeGreaterThan(3);
    const all = [...aside.sort(), 'audit.jsonl'].flatMap((name) => readLines(folder.at(name)));
    expect(all.sort()).toEqual(records.map(({ line }) => line).sort());
    const young = createFile({ maxAge: 0.001 });
    await young.open();
    await young.deliver(createRecords(1));
    await young.close();
    expect(readLines(folder.at('audit.jsonl'))).toHaveLength(1);
  });

  it('writes nothing twice that is delivered again', async () => {
    const records = createRecords(5);
    const file = createFile();
    await file.open();
    await file.deliver(records.slice(0, 3));
    await file.close();
    const again = createFile();
    await again.open();
    await again.deliver(records);
    await again.deliver(records.slice(3));
    await again.close();
    expect(readLines(folder.at('audit.jsonl'))).toEqual(records.map(({ line }) => line));
  });

  it('loses a line that a crash cut off, and says so', async () => {
    const [one, two] = createRecords(2);
    writeFileSync(folder.at('audit.jsonl'), `${one!.line}\n${two!.line.slice(0, 20)}`);
    const file = createFile();
    expect(await file.open()).toMatchObject({ seq: 0 });
    await file.deliver([two!]);
    await file.close();
    expect(readLines(folder.at('audit.jsonl'))).toEqual([one!.line, two!.line]);
    expect(log.lines.at(-1)).toContain('incomplete after a crash');
  });

  it('finds its last line however long that is', async () => {
    const [record] = createRecords(1);
    const long = JSON.stringify({ ...record!.record, cause: 'x'.repeat(200_000) });
    writeFileSync(folder.at('audit.jsonl'), `${record!.line}\n${long}\n`);
    const file = createFile();
    expect(await file.open()).toMatchObject({ seq: 0 });
    await file.close();
  });

  it('starts again when it was removed, and reports that somebody else wrote to it', async () => {
    const records = createRecords(4);
    const file = createFile();
    await file.open();
    await file.deliver(records.slice(0, 1));
    renameSync(folder.at('audit.jsonl'), folder.at('taken'));
    await file.deliver(records.slice(1, 2));
    expect(readLines(folder.at('audit.jsonl'))).toEqual([records[1]!.line]);
    expect(log.lines.at(-1)).toContain('moved or deleted');
    appendFileSync(folder.at('audit.jsonl'), 'forged\n');
    await file.deliver(records.slice(2));
    expect(log.lines.at(-1)).toContain('another process changed');
    await file.close();
  });
});

describe('what lies at the place of the file', () => {
  it.each<[string, () => void]>([
    ['a symbolic link', () => symlinkSync(folder.at('victim'), folder.at('audit.jsonl'))],
    ['a dangling link', () => symlinkSync(folder.at('nobody'), folder.at('audit.jsonl'))],
    ['a second name of another file', () => linkSync(folder.at('victim'), folder.at('audit.jsonl'))],
    ['a folder', () => mkdirSync(folder.at('audit.jsonl'))],
    ['a pipe', () => void spawnSync('mkfifo', [folder.at('audit.jsonl')])],
  ])('is refused when it is %s', async (_what, put) => {
    writeFileSync(folder.at('victim'), 'precious');
    put();
    await expect(createFile().open()).rejects.toThrow(/link|regular|folder|EISDIR|second/);
    expect(readFileSync(folder.at('victim'), 'utf8')).toBe('precious');
    expect(existsSync(folder.at('nobody'))).toBe(false);
  });

  it.each([
    ['a configuration', 'server: { port: 3001 }\naudit: {}'],
    ['a text without a line end', 'precious'],
    ['JSON of something else', '{"agents":{}}\n'],
  ])('is left as it is when it is %s', async (_what, text) => {
    writeFileSync(folder.at('audit.jsonl'), text, { mode: 0o644 });
    await expect(createFile().open()).rejects.toThrow('something else than audit records');
    await expect(examineFile(folder.at('audit.jsonl'))).rejects.toThrow('name a path of its own');
    expect(readFileSync(folder.at('audit.jsonl'), 'utf8')).toBe(text);
    expect(statSync(folder.at('audit.jsonl')).mode & 0o777).toBe(0o644);
  });

  it('is refused as well when it was put there while the service ran', async () => {
    writeFileSync(folder.at('victim'), 'precious');
    const file = createFile();
    await file.open();
    await file.deliver(createRecords(1));
    renameSync(folder.at('audit.jsonl'), folder.at('aside'));
    symlinkSync(folder.at('victim'), folder.at('audit.jsonl'));
    await expect(file.deliver(createRecords(1))).rejects.toThrow('symbolic link');
    expect(readFileSync(folder.at('victim'), 'utf8')).toBe('precious');
    await file.close();
  });
});

describe('the folder of the file', () => {
  it('is made with the file, also when it was removed while the service ran', async () => {
    const path = folder.at('one/two/audit.jsonl');
    const file = createFile({ path });
    await file.open();
    rmSync(folder.at('one'), { recursive: true });
    await file.deliver(createRecords(1));
    expect(readLines(path)).toHaveLength(1);
    await file.close();
  });

  it('is named with what to do about it where it cannot be made, before a start and at the start', async () => {
    writeFileSync(folder.at('a-file'), '');
    const path = folder.at('a-file/below/audit.jsonl');
    const problem = {
      found: `a part of ${folder.at('a-file/below')} is a file and no folder (ENOTDIR)`,
      remedy: 'name another path',
    };
    await expect(examineFile(path)).rejects.toMatchObject(problem);
    await expect(createFile({ path }).open()).rejects.toMatchObject(problem);
    expect(
      errorName(
        await createFile({ path })
          .open()
          .catch((error: unknown) => error),
      ),
    ).toBe(`${problem.found}: ${problem.remedy}`);
  });

  it.runIf(existsSync('/sys/kernel'))('is named where nothing may be made in it, root included', async () => {
    await expect(createFile({ path: '/sys/kernel/audit.jsonl' }).open()).rejects.toMatchObject({
      found: expect.stringMatching(/\((EACCES|EPERM|EROFS)\)$/) as string,
    });
  });

  it('is examined without a trace', async () => {
    await expect(examineFile(folder.at('one/two/audit.jsonl'))).resolves.toBeGreaterThan(0);
    expect(existsSync(folder.at('one'))).toBe(false);
  });
});

describe.runIf(existsSync('/dev/full'))('a disk that is full', () => {
  it('is reported as a failure', async () => {
    const { appendWhole } = await import('./record-files.js');
    const { open } = await import('node:fs/promises');
    const handle = await open('/dev/full', 'a');
    await expect(appendWhole(handle, 'line\n')).rejects.toMatchObject({ code: 'ENOSPC' });
    await handle.close();
  });
});
