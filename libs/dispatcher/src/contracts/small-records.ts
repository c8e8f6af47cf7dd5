import { type CallContext, type ClassFilterSite, refusals, Refused, TIERS } from '#agent';
import type { GovernedClass, GovernedRecords, GovernedSearch } from '#data';
import { type FieldSchema, FieldNames, type ReadOperation } from '#policy';
import { RecordsSource } from '../records-source.js';

export interface SmallClass {
  readonly fields: Readonly<Record<string, FieldSchema>>;
  /** Fields the agent may read; absent: all. */
  readonly readable?: readonly string[];
  readonly visible?: boolean;
  /** Absent: all three. */
  readonly reads?: readonly ReadOperation[];
}

function governed(className: string, small: SmallClass): GovernedClass {
  const fields = new Map(Object.entries(small.fields));
  return {
    className,
    schema: { className, fields, indexes: [], classLevelPermissions: null },
    policy: {
      className,
      hiding: 'no',
      visible: small.visible ?? false,
      description: null,
      usage: null,
      fields: small.readable ?? null,
      joinFields: null,
      largeFields: [],
      canonicalFilter: null,
      tenantScope: null,
      allowCollscan: false,
      searchable: null,
      searchIndex: 'default',
      masks: new Map(),
      properties: new Map(),
      aliases: new Map(),
      names: new FieldNames(new Map(), fields),
    },
    fields: small.readable ?? [...fields.keys()],
    masks: new Map(),
    reads: new Set(small.reads ?? ['find', 'count', 'get']),
    methodTiers: new Set(TIERS),
  };
}

const notSearched = () => Promise.reject(new Error('nothing is searched here'));

/** Of calls that search nothing. */
export const NO_SEARCH: GovernedSearch = {
  text: notSearched,
  autocomplete: notSearched,
  facets: notSearched,
  likeness: notSearched,
};

const SITE: ClassFilterSite = 'Class';

/** What an agent may know of a few classes; classes outside its filter are refused as the class gate refuses them. */
export class SmallRecords extends RecordsSource {
  constructor(private readonly known: Readonly<Record<string, SmallClass>>) {
    super();
  }

  for({ agent }: CallContext): GovernedRecords {
    const classes = Object.entries(this.known)
      .filter(([className]) => agent.shape.classes.permits(className))
      .map(([className, small]) => governed(className, small));
    const notServed = () => Promise.reject(new Error('rows are not served here'));
    return {
      find: notServed,
      page: notServed,
      count: notServed,
      get: notServed,
      getMany: notServed,
      samples: notServed,
      aggregate: notServed,
      checkAggregate: notServed,
      explain: notServed,
      admit: notServed,
      indexes: notServed,
      classes: () => Promise.resolve(classes),
      describe: (className) => {
        const found = classes.find((candidate) => candidate.className === className);
        if (found) return Promise.resolve(found);
        return Promise.reject(new Refused(refusals.classFiltered(String(className), SITE)));
      },
    };
  }
}
