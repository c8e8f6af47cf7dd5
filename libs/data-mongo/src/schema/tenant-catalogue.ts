import { type Observable, Subject } from 'rxjs';
import { describeClasses, type RenewedCatalogue, SchemaCatalogue } from '#data';
import type { ClassSchema, IndexSchema, SchemaSnapshot } from '#policy';
import { StoredSchemas } from '../storage/stored-classes.js';

/** Classes of tenants that are kept: of so many tenants, with so many columns. Those of equal classes are counted once. */
const MOST_TENANTS = 1_000;
const MOST_COLUMNS = 25_000;

type ReadCatalogue = RenewedCatalogue & { close(): void };

/** Both parts of what a tenant sees, as they were read. */
interface Joined {
  readonly base: SchemaSnapshot;
  readonly own: SchemaSnapshot;
  readonly both: SchemaSnapshot;
}

/** The classes of all, and those of the databases of one tenant. Each part is as old as any snapshot may be. */
export class TenantCatalogue extends SchemaCatalogue {
  private joined: Joined | null = null;

  constructor(
    private readonly base: RenewedCatalogue,
    readonly own: ReadCatalogue,
    private readonly isOwn: (database: string | undefined) => boolean,
  ) {
    super();
  }

  async snapshot(): Promise<SchemaSnapshot> {
    // Columns of the tenant refer to classes of all.
    const base = await this.base.snapshot();
    return this.join(base, await this.own.snapshot());
  }

  override snapshotNow(): SchemaSnapshot | null {
    const base = this.base.snapshotNow();
    const own = base && this.own.snapshotNow();
    return own && this.join(base, own);
  }

  override async lookAgain(known: SchemaSnapshot): Promise<SchemaSnapshot> {
    const { joined } = this;
    if (known !== joined?.both) return this.snapshot();
    const base = await this.base.lookAgain(joined.base);
    return this.join(base, await this.own.lookAgain(joined.own));
  }

  listIndexes(schema: ClassSchema): Promise<readonly IndexSchema[]> {
    return (this.isOwn(schema.database) ? this.own : this.base).listIndexes(schema);
  }

  invalidate(): void {
    this.base.invalidate();
  }

  private join(base: SchemaSnapshot, own: SchemaSnapshot): SchemaSnapshot {
    if (this.joined?.base === base && this.joined.own === own) return this.joined.both;
    const schemas = [base, own].flatMap((one) => one.classNames().flatMap((name) => one.get(name) ?? []));
    const { admits, away } = base as StoredSchemas;
    const both = new StoredSchemas(schemas, admits, new Set([...away, ...(own as StoredSchemas).away]));
    this.joined = { base, own, both };
    return both;
  }
}

/** A tenant, and the classes that were read last of it. */
interface KeptTenant {
  readonly catalogue: TenantCatalogue;
  /** Null: none were read yet. */
  classes: readonly ClassSchema[] | null;
}

/** The catalogues of the tenants that were asked for last. */
export class TenantCatalogues {
  private readonly kept = new Map<string, KeptTenant>();
  /** How many tenants hold a class. Its columns are there once. */
  private readonly held = new Map<ClassSchema, number>();
  private columns = 0;
  private readonly changed = new Subject<string>();
  /** Tenants of which other classes or columns were read than before. */
  readonly changes: Observable<string> = this.changed.asObservable();

  constructor(private readonly open: (tenant: string) => TenantCatalogue) {}

  find(tenant: string): TenantCatalogue {
    const known = this.kept.get(tenant);
    if (known) {
      this.kept.delete(tenant);
      this.kept.set(tenant, known);
      return known.catalogue;
    }
    const made: KeptTenant = { catalogue: this.open(tenant), classes: null };
    this.kept.set(tenant, made);
    made.catalogue.own.renewals.subscribe((snapshot) => {
      if (this.kept.get(tenant) !== made) return;
      const before = made.classes;
      const classes = snapshot.classNames().flatMap((name) => snapshot.get(name) ?? []);
      this.hold(made, classes);
      this.drop();
      if (before && describeClasses(before) !== describeClasses(classes)) this.changed.next(tenant);
    });
    this.drop();
    return made.catalogue;
  }

  /** The next call of each reads its classes again. */
  forget(): void {
    for (const { catalogue } of this.kept.values()) catalogue.own.forget();
  }

  private drop(): void {
    for (const [tenant, made] of this.kept) {
      if (this.kept.size <= MOST_TENANTS && (this.columns <= MOST_COLUMNS || this.kept.size === 1)) return;
      this.kept.delete(tenant);
      this.hold(made, []);
      made.catalogue.own.close();
    }
  }

  private hold(made: KeptTenant, classes: readonly ClassSchema[]): void {
    for (const schema of classes) {
      const tenants = this.held.get(schema) ?? 0;
      if (tenants === 0) this.columns += schema.fields.size;
      this.held.set(schema, tenants + 1);
    }
    for (const schema of made.classes ?? []) {
      const tenants = (this.held.get(schema) ?? 0) - 1;
      if (tenants > 0) this.held.set(schema, tenants);
      else {
        this.held.delete(schema);
        this.columns -= schema.fields.size;
      }
    }
    made.classes = classes;
  }
}
