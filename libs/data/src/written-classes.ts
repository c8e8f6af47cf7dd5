import { Injectable } from '@nestjs/common';
import { MessageBus } from '#state';
import type { ClassSchema } from '#policy';
import type { CachedPrincipalDirectory } from './identity/principal-directory.js';
import { SchemaCatalogue } from './schema-store.js';

const TOPIC = 'written-classes';

/** Parse keeps classes and their permissions in rows of this one. */
const SCHEMA_ROWS = '_SCHEMA';

/** Classes that something is remembered of. */
const REMEMBERED: ReadonlySet<string> = new Set(['_Session', '_User', '_Role']);

type Directory = Pick<CachedPrincipalDirectory, 'forgetClass'>;

/**
 * Tells all replicas which classes were written through this one, so that what they remember of them is read anew at once.
 * A replica that does not hear it reads anew when its own time is up.
 */
@Injectable()
export class WrittenClasses {
  constructor(private readonly bus: MessageBus) {}

  /** The catalogue, with news of it. */
  watchingSchemas(catalogue: SchemaCatalogue): SchemaCatalogue {
    this.hear((className) => {
      if (className === SCHEMA_ROWS) catalogue.invalidate();
    });
    return new AnnouncingCatalogue(catalogue, () => this.tell(SCHEMA_ROWS));
  }

  /** The directory, with news of it. */
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
    // Nothing depends on being heard.
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
