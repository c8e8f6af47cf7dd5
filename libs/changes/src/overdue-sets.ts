import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { OwnedSets } from './owned-sets.js';

/** Milliseconds between two searches, and sets that one of them ends. */
const EVERY_MS = 300_000;
const AT_ONCE = 100;

/**
 * Ends sets whose time is over though nobody looks at them: their values are deleted, and their approvers are asked no more. Every process
 * does this, and one of them ends each set.
 */
@Injectable()
export class OverdueSets implements OnApplicationBootstrap, OnModuleDestroy {
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly owned: OwnedSets) {}

  onApplicationBootstrap(): void {
    // Without the database, the next search ends them.
    this.timer = setInterval(() => void this.end().catch(() => undefined), EVERY_MS).unref();
  }

  onModuleDestroy(): void {
    if (this.timer) clearInterval(this.timer);
  }

  end(): Promise<void> {
    return this.owned.expireAll({ limit: AT_ONCE });
  }
}
