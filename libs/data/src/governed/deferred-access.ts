import { ageClock, Refused, type Tier } from '#core';
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
  ProposedWrite,
  TextRequest,
  TextSearchRequest,
  WriteOptions,
} from '../governed-access.js';
import type { GovernedCall } from './row-rules.js';

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
class DeferredAccess<Access> {
  private opened: Opening<Access> | null = null;
  private openedAt = Infinity;
  /** Whether a question that was answered may be asked again. */
  protected readonly repeatsAnswers: boolean = true;

  constructor(private readonly open: () => Opening<Access>) {}

  /** Calls a method of the opened access. A rejection that a tool does not await does not end the process. */
  protected through<Result>(use: (access: Access) => Promise<Result>): Promise<Result> {
    const opened = this.current();
    const result =
      opened instanceof Promise ? opened.then((now) => this.used(now, use)) : this.used(opened, use);
    // Node ends the process at an unhandled rejection, so any agent that may call such a tool could end it.
    result.catch(nothing);
    return result;
  }

  private current(): Opening<Access> {
    if (this.opened && ageClock() - this.openedAt < LONGEST_USE) return this.opened;
    // While it is being opened, it is not old.
    this.openedAt = Infinity;
    const opening = opened(this.open);
    this.opened = opening;
    if (opening instanceof Promise)
      void opening.then(
        () => this.keep(opening),
        () => this.forget(opening),
      );
    else this.keep(opening);
    return opening;
  }

  private keep(opening: Opening<Access>): void {
    if (this.opened === opening) this.openedAt = ageClock();
  }

  /** The next question opens it again. */
  private forget(opening: Opening<Access>): void {
    if (this.opened === opening) this.opened = null;
  }

  private async used<Result>(
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

/** An access that cannot be opened rejects where it is used. */
function opened<Access>(open: () => Opening<Access>): Opening<Access> {
  try {
    return open();
  } catch (error) {
    return Promise.reject(error as Error);
  }
}

const nothing = (): void => undefined;

/** Refusals of what was asked, before anything was written. */
const OF_REQUESTS: ReadonlySet<string> = new Set(['invalid_argument', 'invalid_query', 'access_denied']);

const isRefusedRequest = (error: unknown): boolean =>
  error instanceof Refused && OF_REQUESTS.has(error.refusal.code);

export class DeferredRecords extends DeferredAccess<GovernedRecords> implements GovernedRecords {
  find(className: unknown, options?: FindOptions) {
    return this.through((records) => records.find(className, options));
  }

  page(className: unknown, options?: FindOptions, text?: TextRequest) {
    return this.through((records) => records.page(className, options, text));
  }

  count(className: unknown, options?: Pick<FindOptions, 'where' | 'applyCanonicalFilter'>) {
    return this.through((records) => records.count(className, options));
  }

  get(className: unknown, objectId: unknown, options?: Pick<FindOptions, 'keys' | 'include'>) {
    return this.through((records) => records.get(className, objectId, options));
  }

  getMany(className: unknown, objectIds: readonly string[], options?: Pick<FindOptions, 'keys' | 'include'>) {
    return this.through((records) => records.getMany(className, objectIds, options));
  }

  samples(className: unknown, limit: number) {
    return this.through((records) => records.samples(className, limit));
  }

  aggregate(className: unknown, pipeline: unknown, options?: AggregateOptions) {
    return this.through((records) => records.aggregate(className, pipeline, options));
  }

  checkAggregate(className: unknown, pipeline: unknown, options?: Pick<AggregateOptions, 'where'>) {
    return this.through((records) => records.checkAggregate(className, pipeline, options));
  }

  explain(className: unknown, options?: Pick<FindOptions, 'where'>) {
    return this.through((records) => records.explain(className, options));
  }

  admit(className: unknown) {
    return this.through((records) => records.admit(className));
  }

  classes() {
    return this.through((records) => records.classes());
  }

  describe(className: unknown) {
    return this.through((records) => records.describe(className));
  }

  indexes(className: unknown) {
    return this.through((records) => records.indexes(className));
  }
}

export class DeferredWrites extends DeferredAccess<GovernedWrites> implements GovernedWrites {
  protected override readonly repeatsAnswers = false;

  create(className: unknown, fields: unknown, options?: WriteOptions) {
    return this.through((access) => access.create(className, fields, options));
  }

  update(className: unknown, objectId: unknown, fields: unknown, options?: WriteOptions) {
    return this.through((access) => access.update(className, objectId, fields, options));
  }

  delete(className: unknown, objectId: unknown, options?: WriteOptions) {
    return this.through((access) => access.delete(className, objectId, options));
  }

  judge(write: ProposedWrite) {
    return this.through((access) => access.judge(write));
  }
}

export class DeferredSearch extends DeferredAccess<GovernedSearch> implements GovernedSearch {
  text(className: unknown, request: TextSearchRequest) {
    return this.through((access) => access.text(className, request));
  }

  autocomplete(className: unknown, request: AutocompleteRequest) {
    return this.through((access) => access.autocomplete(className, request));
  }

  facets(className: unknown, request: FacetRequest) {
    return this.through((access) => access.facets(className, request));
  }

  likeness(className: unknown) {
    return this.through((access) => access.likeness(className));
  }
}

export class DeferredClassWrites extends DeferredAccess<GovernedClassWrites> implements GovernedClassWrites {
  protected override readonly repeatsAnswers = false;

  createClass(className: unknown, fields?: unknown) {
    return this.through((access) => access.createClass(className, fields));
  }

  deleteClass(className: unknown) {
    return this.through((access) => access.deleteClass(className));
  }
}

export class DeferredMethods
  extends DeferredAccess<Omit<GovernedMethods, 'writes'>>
  implements GovernedMethods
{
  constructor(
    open: () => Opening<Omit<GovernedMethods, 'writes'>>,
    private readonly openWrites: () => GovernedWrites,
  ) {
    super(open);
  }

  enter(className: unknown) {
    return this.through((access) => access.enter(className));
  }

  checkId(className: string, objectId: string) {
    return this.through((access) => access.checkId(className, objectId));
  }

  permit(className: string, permission: Tier, type: 'instance' | 'class') {
    return this.through((access) => access.permit(className, permission, type));
  }

  writes(): GovernedWrites {
    return this.openWrites();
  }

  present(result: unknown) {
    return this.through((access) => access.present(result));
  }
}
