import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigWatch, type FileReading, type Reloaded } from './reloader.js';

describe('a watch over the configuration file', () => {
  let folder: string;
  let file: string;
  let reloads: number;
  let during: () => void;
  let watch: ConfigWatch;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'parley-watch-'));
    file = join(folder, 'parley.yaml');
    writeFileSync(file, 'one');
    reloads = 0;
    during = () => undefined;
    watch = new ConfigWatch(file, {
      reload: ({ isSame }: FileReading): Promise<Reloaded> => {
        reloads += 1;
        during();
        return Promise.resolve(isSame() ? 'adopted' : 'unsettled');
      },
    });
    // What the start read is looked at once more: it may have changed before the watch began.
    await look(2);
    reloads -= 1;
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  async function look(times: number): Promise<void> {
    for (let time = 0; time < times; time += 1) await watch.look();
  }

  it('has nothing read while nothing changes', async () => {
    await look(5);
    writeFileSync(file, 'one');
    await look(5);
    expect(reloads).toBe(0);
  });

  it('has a change read once it is the same at two looks, and not before', async () => {
    writeFileSync(file, 'tw');
    await look(1);
    writeFileSync(file, 'two');
    await look(1);
    expect(reloads).toBe(0);
    await look(4);
    expect(reloads).toBe(1);
  });

  it('leaves a change alone that was taken back before it settled', async () => {
    writeFileSync(file, 'two');
    await look(1);
    writeFileSync(file, 'one');
    await look(1);
    writeFileSync(file, 'two');
    await look(1);
    expect(reloads).toBe(0);
  });

  it('does not count as read what changed while it was read', async () => {
    writeFileSync(file, 'two');
    during = () => writeFileSync(file, `three ${reloads}`);
    await look(2);
    expect(reloads).toBe(1);
    during = () => undefined;
    await look(2);
    expect(reloads).toBe(2);
    await look(4);
    expect(reloads).toBe(2);
  });

  it.each([
    [
      'another file that is renamed over it',
      () => {
        writeFileSync(`${file}.new`, 'two');
        renameSync(`${file}.new`, file);
      },
    ],
    [
      'the target of a link to a folder, as mounted ConfigMaps are',
      () => {
        rmSync(file);
        for (const [name, text] of [
          ['a', 'one'],
          ['b', 'two'],
        ] as const) {
          mkdirSync(join(folder, name));
          writeFileSync(join(folder, name, 'parley.yaml'), text);
        }
        symlinkSync('a', join(folder, 'data'));
        symlinkSync(join('data', 'parley.yaml'), file);
        symlinkSync('b', join(folder, 'next'));
        renameSync(join(folder, 'next'), join(folder, 'data'));
      },
    ],
    ['nothing: it is gone', () => rmSync(file)],
  ])('notices %s', async (_, change) => {
    change();
    await look(3);
    expect(reloads).toBe(1);
    await look(3);
    expect(reloads).toBe(1);
  });

  it('has the file read at once when somebody says so, changed or not', async () => {
    await watch.loadNow();
    expect(reloads).toBe(1);
    writeFileSync(file, 'two');
    await watch.loadNow();
    expect(reloads).toBe(2);
    await look(3);
    expect(reloads).toBe(2);
  });
});
