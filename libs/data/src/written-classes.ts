import { Injectable } from '@nestjs/common';
import { MessageBus } from '#state';
import type { ClassSchema } from '#policy';
import type { CachedPrincipalDirectory } from './identity/principal-directory.js';
import { SchemaCatalogue } from './schema-store.js';

const TOPIC = 'written-classes';

/** Parse stores classes and their permissions in rows of this class. */
const SCHEMA_ROWS = '_SCHEMA';

/** Classes whose contents are cached. */
const REMEMBERED: ReadonlySet<string> = new Set(['_Session', '_User', '_Role']);

type Directory = Pick<CachedPrincipalDirectory, 'forgetClass'>;

/**
 * Publishes to all replicas which classes were written through this one, so that they invalidate what they cached of them. A
 * replica that misses the message reads again when its own cache expires.
 */
@Injectable()
export class WrittenClasses {
  constructor(private readonly bus: MessageBus) {}

  /** Wraps the catalogue so that its changes are published. */
  watchingSchemas(catalogue: SchemaCatalogue): SchemaCatalogue {
    this.hear((className) => {
      if (className === SCHEMA_ROWS) catalogue.invalidate();
    });
    return new AnnouncingCatalogue(catalogue, () => this.tell(SCHEMA_ROWS));
  }

  /** Wraps the directory so that its changes are published. */
  watchingRows(directory: Directory): Directory {
    this.hear((className) => {
      if (REMEMBERED.has(className)) directory.forgetClass(className);
    });
    return {
      forgetClass: (className) => {
        directory.forgetClass(className);
        if (REMEMBERED.has(className)) this.tell(className);
      },
    };
  }

  private hear(written: (className: string) => void): void {
    this.bus.messages(TOPIC).subscribe(({ className }) => {
      if (typeof className === 'string') written(className);
    });
  }

  private tell(className: string): void {
    // The message is an optimisation: no result depends on its delivery.
    this.bus.publish(TOPIC, { className }).catch(() => undefined);
  }
}

class AnnouncingCatalogue extends SchemaCatalogue {
  constructor(
    private readonly catalogue: SchemaCatalogue,
    private readonly announce: () => void,
  ) {
    super();
  }

  snapshot() {
    return this.catalogue.snapshot();
  }

  indexesOf(schema: ClassSchema) {
    return this.catalogue.indexesOf(schema);
  }

  invalidate(): void {
    this.catalogue.invalidate();
    this.announce();
  }
}
