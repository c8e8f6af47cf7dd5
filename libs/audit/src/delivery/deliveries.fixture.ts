import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { AuditChain, RecordSeal, type SealedLine } from '../chain/audit-chain.js';
import type { RecordDelivery } from './record-delivery.js';

export function createRecords(count: number, chain = new AuditChain(new RecordSeal())): SealedLine[] {
  return Array.from({ length: count }, (_, index) =>
    chain.append({ type: 'tool_call', at: '2026-01-01T00:00:00.000Z', tool: `tool-${index}` }),
  );
}

/** A destination that can be switched off, and that keeps what it took. */
export class SwitchableDelivery implements RecordDelivery {
  readonly name = 'place';
  readonly batch = 3;
  readonly taken: SealedLine[] = [];
  isUp = true;
  closed = false;
  /** When set, deliveries wait for it. */
  gate: Promise<void> | null = null;

  open(): Promise<null> {
    return this.isUp ? Promise.resolve(null) : Promise.reject(new Error('down'));
  }

  async deliver(records: readonly SealedLine[]): Promise<void> {
    await this.gate;
    if (!this.isUp) throw new Error('down');
    this.taken.push(...records);
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }
}

/** Keeps log lines. */
export class RecordingLog {
  readonly lines: string[] = [];
  log(line: string): void {
    this.lines.push(line);
  }
  warn(line: string): void {
    this.lines.push(line);
  }
}

export function temporaryFolder(): { readonly path: string; at(name: string): string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'parley-audit-'));
  return {
    path,
    at: (name) => join(path, name),
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** A server of this machine that counts the requests of each test. */
export function startCountingServer(answer: string) {
  const counted = { port: 0, requests: 0 };
  const server = createServer((_, response) => {
    counted.requests += 1;
    response.end(answer);
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    counted.port = (server.address() as AddressInfo).port;
  });
  beforeEach(() => void (counted.requests = 0));
  afterAll(() => void server.close());
  return counted;
}
