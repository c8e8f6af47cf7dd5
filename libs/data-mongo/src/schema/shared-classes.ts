import { createHash } from 'node:crypto';
import { serialize } from 'node:v8';
import type { ClassSchema } from '#policy';
import { listKinds } from '../storage/plain-scalars.js';
import { readLayout } from '../storage/plain-storage.js';

/** Classes after which those that nobody holds any more are forgotten. */
const SWEPT_AT = 1_000;

/** Classes of tenants' databases: where two are equal in everything, how values are stored included, both tenants hold one object. */
export class SharedClasses {
  private readonly classes = new Map<string, WeakRef<ClassSchema>>();
  private sweptAt = SWEPT_AT;

  /** The class that is equal to this one; this one where there is none yet. */
  share(schema: ClassSchema): ClassSchema {
    const layout = readLayout(schema);
    const key = createHash('sha256')
      .update(serialize([schema, layout, listKinds(schema.fields)]))
      .digest('base64');
    const known = this.classes.get(key)?.deref();
    if (known) return known;
    if (this.classes.size >= this.sweptAt) this.sweep();
    this.classes.set(key, new WeakRef(schema));
    return schema;
  }

  private sweep(): void {
    for (const [key, held] of this.classes) if (held.deref() === undefined) this.classes.delete(key);
    this.sweptAt = Math.max(SWEPT_AT, 2 * this.classes.size);
  }
}
