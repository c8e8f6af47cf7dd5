import { ageClock, Refused } from '#core';
import { assertOptions, type OptionNames } from '#policy';
import type {
  AggregateOptions,
  AutocompleteRequest,
  FacetRequest,
  FindOptions,
  GovernedClassWrites,
  GovernedMethods,
  GovernedRecords,
  GovernedSearch,
  GovernedWrites,
  TextSearchRequest,
  WriteOptions,
} from '../governed-access.js';
import type { GovernedCall } from './governed-call.js';

/** An access, and the call that it was opened for. */
interface OpenedAccess<Access> {
  readonly access: Access;
  readonly call: Pick<GovernedCall, 'scope' | 'lookAgain'>;
}

type Opening<Access> = OpenedAccess<Access> | Promise<OpenedAccess<Access>>;

/**
 * Milliseconds for which an opened access is used. A call may go on for long (as a task, after an approval, as the changes of a
 * resource): then its rights are those of now.
 */
const LONGEST_USE = 1_000;

/**
 * Opens governed access at first use and keeps it for a short time. A question that names a class or column which is not known is
 * asked again when the database has it by now: an answer without it would be wrong without a sign.
 */
abstract class DeferredAccess<Access> {
  private opened: Opening<Access> | null = null;
  private openedAt = Infinity;
  /** Whether a question that was answered may be asked again. */
  protected abstract readonly repeatsAnswers: boolean;

  constructor(private readonly open: () => Opening<Access>) {}

  /** Calls a method of the opened access. A rejection that a tool does not await does not end the process. */
  through<Result>(use: (access: Access) => Promise<Result>): Promise<Result> {
    const opened = this.current();
    const result =
      opened instanceof Promise
        ? opened.then((now) => this.useAccess(now, use))
        : this.useAccess(opened, use);
    // Node ends the process at an unhandled rejection, so any agent that may call such a tool could end it.
    result.catch(doNothing);
    return result;
  }

  private current(): Opening<Access> {
    if (this.opened && ageClock() - this.openedAt < LONGEST_USE) return this.opened;
    // While it is being opened, it is not old.
    this.openedAt = Infinity;
    let opening: Opening<Access>;
    try {
      opening = this.open();
    } catch (error) {
      // An access that cannot be opened rejects where it is used.
      opening = Promise.reject(error as Error);
    }
    this.opened = opening;
    if (opening instanceof Promise)
      void opening.then(
        () => this.keep(opening),
        () => this.forget(opening),
      );
    else this.openedAt = ageClock();
    return opening;
  }

  private keep(opening: Opening<Access>): void {
    if (this.opened === opening) this.openedAt = ageClock();
  }

  /** The next question opens it again. */
  private forget(opening: Opening<Access>): void {
    if (this.opened === opening) this.opened = null;
  }

  private async useAccess<Result>(
    { access, call }: OpenedAccess<Access>,
    use: (access: Access) => Promise<Result>,
  ): Promise<Result> {
    const { missing } = call.scope;
    const before = missing.count;
    const answer = use(access);
    let isAnswered = false;
    try {
      const result = await answer;
      if (missing.count === before || !this.repeatsAnswers) return result;
      isAnswered = true;
    } catch (error) {
      if (missing.count === before || !isRefusedRequest(error)) throw error;
    }
    const isKnownNow = call.lookAgain();
    // A good answer is not lost because the classes cannot be read at the moment.
    if (!(await (isAnswered ? isKnownNow.catch(() => false) : isKnownNow))) return answer;
    this.opened = null;
    return use((await this.current()).access);
  }
}

const doNothing = (): void => undefined;

/** Refusals of what was asked, before anything was written. */
const OF_REQUESTS: ReadonlySet<string> = new Set(['invalid_argument', 'invalid_query', 'access_denied']);

const isRefusedRequest = (error: unknown): boolean =>
  error instanceof Refused && OF_REQUESTS.has(error.refusal.code);

/** The options that a method takes, and their place among its arguments. */
interface MethodOptions {
  readonly at: number;
  readonly names: Readonly<Record<string, true>>;
}

/** Every method of an access, named once: the compiler knows when one is missing. True: it takes no options. */
type Methods<Access> = Readonly<Record<keyof Access, true | MethodOptions>>;

/**
 * The access whose methods open it when they are called. An option that a method does not have is an error.
 * @param name for messages
 * @param repeats whether an answer may be asked for again
 */
function defer<Access>(
  methods: Methods<Access>,
  { name, repeats }: { readonly name: string; readonly repeats: boolean },
): new (open: () => Opening<Access>) => Access {
  class Deferred extends DeferredAccess<Access> {
    protected override get repeatsAnswers(): boolean {
      return repeats;
    }
  }
  for (const [method, options] of Object.entries<true | MethodOptions>(methods)) {
    Object.defineProperty(Deferred.prototype, method, {
      value(this: Deferred, ...args: unknown[]) {
        return this.through((access) => {
          if (options !== true) assertOptions(`${name}.${method}`, args[options.at], options.names);
          return (access[method as keyof Access] as AsyncMethod).apply(access, args);
        });
      },
    });
  }
  return Deferred as unknown as new (open: () => Opening<Access>) => Access;
}

type AsyncMethod = (...args: unknown[]) => Promise<unknown>;

const WHERE = { where: true } as const;
const COLUMNS = { keys: true, include: true } as const;
const FIND = {
  at: 1,
  names: {
    ...WHERE,
    ...COLUMNS,
    limit: true,
    skip: true,
    order: true,
    after: true,
    applyCanonicalFilter: true,
    expectsScan: true,
    ceiling: true,
    tellsMore: true,
    atMost: true,
  } satisfies OptionNames<FindOptions>,
};
const AGGREGATE = {
  at: 2,
  names: {
    ...WHERE,
    applyCanonicalFilter: true,
    rewriteLookups: true,
    autoLimit: true,
    atMost: true,
  } satisfies OptionNames<AggregateOptions>,
};

export const DeferredRecords = defer<GovernedRecords>(
  {
    find: FIND,
    page: FIND,
    count: { at: 1, names: { ...WHERE, applyCanonicalFilter: true } },
    get: { at: 2, names: COLUMNS },
    getMany: { at: 2, names: COLUMNS },
    samples: true,
    aggregate: AGGREGATE,
    checkAggregate: { at: 2, names: WHERE },
    explain: { at: 1, names: WHERE },
    admit: true,
    classes: true,
    describe: true,
    indexes: true,
  },
  { name: 'records', repeats: true },
);

const QUERY = { query: true, limit: true } as const;

export const DeferredSearch = defer<GovernedSearch>(
  {
    text: {
      at: 1,
      names: {
        ...QUERY,
        fields: true,
        highlightField: true,
        filter: true,
      } satisfies OptionNames<TextSearchRequest>,
    },
    autocomplete: {
      at: 1,
      names: { ...QUERY, field: true, fuzzy: true } satisfies OptionNames<AutocompleteRequest>,
    },
    facets: { at: 1, names: { ...QUERY, facets: true } satisfies OptionNames<FacetRequest> },
    likeness: true,
  },
  { name: 'search', repeats: true },
);

const WRITE = { idempotencyKey: true } satisfies OptionNames<WriteOptions>;

export const DeferredWrites = defer<GovernedWrites>(
  {
    create: { at: 2, names: WRITE },
    update: { at: 3, names: WRITE },
    delete: { at: 2, names: WRITE },
    admit: true,
    judge: true,
  },
  { name: 'writes', repeats: false },
);

export const DeferredClassWrites = defer<GovernedClassWrites>(
  { createClass: true, deleteClass: true },
  { name: 'classes', repeats: false },
);

export const DeferredMethods = defer<Omit<GovernedMethods, 'writes'>>(
  { enter: true, checkId: true, permit: true, present: true },
  { name: 'methods', repeats: true },
);
