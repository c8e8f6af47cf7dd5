import { isDeepStrictEqual } from 'node:util';
import { type ParleyConfig, readTenantDatabases } from '#config';
import type { MongoConnection } from '#data-mongo';
import { connectFurther, type DatabasesConfig } from './open-database.js';

/** The databases beside the first one, as reloads of the configuration add, change and remove them. */
export class ReloadedDatabases {
  private opened = new Map<string, MongoConnection>();

  constructor(
    private readonly first: MongoConnection | null,
    private served: DatabasesConfig,
  ) {}

  /** Opens what a configuration has that is not served yet. @throws ConfigError for an address that cannot be one */
  prepare(config: ParleyConfig): void {
    this.discard();
    const added = Object.keys(config.furtherDatabases).filter((label) => this.hasChanged(label, config));
    for (const label of added) this.opened.set(label, connectFurther(label, config));
  }

  /** Serves what was prepared. @returns whether any database is another one now */
  adopt(config: ParleyConfig): boolean {
    const { opened } = this;
    const removed = Object.keys(this.served.furtherDatabases).filter(
      (label) => !Object.hasOwn(config.furtherDatabases, label),
    );
    for (const [label, connection] of opened) this.first?.replaceFurther(label, connection);
    for (const label of removed) this.first?.replaceFurther(label, null);
    this.opened = new Map();
    this.served = config;
    return opened.size + removed.length > 0;
  }

  private hasChanged(label: string, config: ParleyConfig): boolean {
    return !isDeepStrictEqual(readEntry(label, this.served), readEntry(label, config));
  }

  /** Of a configuration that was refused in the end. */
  private discard(): void {
    for (const connection of this.opened.values()) void connection.close();
    this.opened.clear();
  }
}

/** An entry, and which names of tenants' databases the others take. */
function readEntry(label: string, config: DatabasesConfig) {
  const entry = config.furtherDatabases[label];
  return entry && [entry, readTenantDatabases(entry.name, config)];
}
