import { type FileHandle, readFile, rename, writeFile } from 'node:fs/promises';
import { readLine, type SealedLine } from '../chain/record-seal.js';
import { appendWhole, lastLine, openGuarded } from './guarded-file.js';

/** Bytes that are looked at for one batch. */
const READ_SIZE = 1_048_576;

/** Records on disk that wait for their place, in order; what was delivered is behind an offset kept beside it. */
export class SpoolFile {
  private handle: FileHandle | null = null;
  private size = 0;
  private offset = 0;
  /** One change at a time. */
  private queue: Promise<unknown> = Promise.resolve();

  /** @param maxBytes that the file may have */
  constructor(
    private readonly path: string,
    private readonly maxBytes: number,
  ) {}

  get isEmpty(): boolean {
    return this.size === this.offset;
  }

  get isFull(): boolean {
    return this.size >= this.maxBytes;
  }

  open(): Promise<void> {
    return this.inTurn(async () => {
      if (this.handle) return;
      const handle = await openGuarded(this.path);
      const { torn } = await lastLine(handle);
      this.size = (await handle.stat()).size - torn;
      if (torn > 0) await handle.truncate(this.size);
      const noted = Number(await readFile(this.offsetPath, 'utf8').catch(() => '0'));
      this.offset = Number.isSafeInteger(noted) && noted >= 0 && noted <= this.size ? noted : 0;
      this.handle = handle;
    });
  }

  /** On disk when it resolves. */
  append(records: readonly SealedLine[]): Promise<void> {
    return this.inTurn(async () => {
      const handle = this.opened();
      this.size += await appendWhole(handle, records.map(({ line }) => `${line}\n`).join(''));
      await handle.datasync();
    });
  }

  /** The oldest that wait; what cannot be read is passed over and counted. */
  next(limit: number): Promise<{ records: SealedLine[]; bytes: number; unreadable: number }> {
    return this.inTurn(async () => {
      const wanted = Math.min(READ_SIZE, this.size - this.offset);
      const whole = await this.linesAt(wanted);
      // One record longer than what is usually looked at.
      const text = whole.includes(0x0a) ? whole : await this.linesAt(this.size - this.offset);
      const records: SealedLine[] = [];
      let bytes = 0;
      let unreadable = 0;
      while (records.length < limit) {
        const end = text.indexOf(0x0a, bytes);
        if (end < 0) break;
        const line = text.toString('utf8', bytes, end);
        const record = readLine(line);
        if (record) records.push({ record, line });
        else unreadable += 1;
        bytes = end + 1;
      }
      return { records, bytes, unreadable };
    });
  }

  /** So many bytes have been delivered. */
  advance(bytes: number): Promise<void> {
    return this.inTurn(async () => {
      this.offset += bytes;
      if (this.isEmpty) await this.startAnew(Buffer.alloc(0));
      else if (this.offset > this.maxBytes / 2)
        await this.startAnew(await this.linesAt(this.size - this.offset));
      else await writeFile(this.offsetPath, String(this.offset), { mode: 0o600 });
    });
  }

  close(): Promise<void> {
    return this.inTurn(async () => {
      await this.handle?.close();
      this.handle = null;
    });
  }

  /** Offset first: whatever happens in between, records come twice rather than never. */
  private async startAnew(rest: Buffer): Promise<void> {
    await writeFile(this.offsetPath, '0', { mode: 0o600 });
    if (rest.length === 0) {
      await this.opened().truncate(0);
    } else {
      await writeFile(`${this.path}.new`, rest, { mode: 0o600, flush: true });
      await rename(`${this.path}.new`, this.path);
      await this.opened().close();
      this.handle = await openGuarded(this.path);
    }
    this.size = rest.length;
    this.offset = 0;
  }

  private async linesAt(length: number): Promise<Buffer> {
    const { buffer, bytesRead } = await this.opened().read(Buffer.alloc(length), 0, length, this.offset);
    return buffer.subarray(0, bytesRead);
  }

  private get offsetPath(): string {
    return `${this.path}.offset`;
  }

  private opened(): FileHandle {
    if (!this.handle) throw new Error('the spool is not open');
    return this.handle;
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.queue.then(work);
    this.queue = turn.catch(() => undefined);
    return turn;
  }
}
