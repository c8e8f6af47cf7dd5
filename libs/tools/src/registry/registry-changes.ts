import { Logger } from '@nestjs/common';
import { Observable, type Observer, type Operator, Subject, Subscriber, type Subscription } from 'rxjs';

/**
 * An Observable whose subscribers may throw: an error is logged, where RxJS would report it as an uncaught exception,
 * which ends the process. Piped observables behave alike.
 */
class ContainedObservable<T> extends Observable<T> {
  constructor(
    source: Observable<T>,
    private readonly report: (error: unknown) => void,
  ) {
    super((subscriber) => source.subscribe(subscriber));
  }

  override lift<R>(operator?: Operator<T, R>): Observable<R> {
    return new ContainedObservable(super.lift(operator as Operator<T, R>), this.report);
  }

  override subscribe(observerOrNext?: Partial<Observer<T>> | ((value: T) => void) | null): Subscription {
    // An operator's subscriber, which must be torn down with its own subscriber.
    if (observerOrNext instanceof Subscriber) return super.subscribe(observerOrNext);
    const given: Partial<Observer<T>> =
      typeof observerOrNext === 'function' ? { next: observerOrNext } : (observerOrNext ?? {});
    return super.subscribe({
      next: (value) => this.contained(() => given.next?.(value)),
      error: (error) => this.contained(() => (given.error ? given.error(error) : this.report(error))),
      complete: () => this.contained(() => given.complete?.()),
    });
  }

  private contained(notify: () => void): void {
    try {
      notify();
    } catch (error) {
      this.report(error);
    }
  }
}

/**
 * Notifies subscribers of changes of a registry. A subscriber that throws is logged, and the others still receive the
 * change.
 */
export class RegistryChanges {
  private readonly subject = new Subject<void>();

  /** Emits after every change. */
  readonly changes: Observable<void>;

  /** @param registry name for the log: `tools`, `prompts`, `resources` */
  constructor(registry: string) {
    const logger = new Logger(RegistryChanges.name);
    this.changes = new ContainedObservable(this.subject, (error) =>
      logger.error(`a subscriber to changes of the ${registry} failed: ${String(error)}`),
    );
  }

  announce(): void {
    this.subject.next();
  }
}
