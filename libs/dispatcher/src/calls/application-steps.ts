import {
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
} from '@nestjs/common';
import { endWith, last, map, type Observable, tap } from 'rxjs';

/** Steps on either side of Parley's own. */
export interface BeforeAndAfter<Step> {
  readonly before: readonly Step[];
  readonly after: readonly Step[];
}

/** The guards and interceptors of an application for the calls of all tools, in their order. */
export interface ApplicationSteps {
  readonly guards: BeforeAndAfter<CanActivate>;
  readonly interceptors: BeforeAndAfter<NestInterceptor>;
}

/** A place in the list for steps of an application. */
export abstract class ApplicationPlace {
  abstract choose(steps: ApplicationSteps): readonly (CanActivate | NestInterceptor)[];
}

/** Around every guard: they see refusals, and change no answer. */
@Injectable()
export class InterceptorsBefore extends ApplicationPlace {
  choose({ interceptors }: ApplicationSteps): readonly NestInterceptor[] {
    return interceptors.before.map((interceptor) => new ObservingInterceptor(interceptor));
  }
}

/** Ahead of every gate, the rate limit included. */
@Injectable()
export class GuardsBefore extends ApplicationPlace {
  choose({ guards }: ApplicationSteps): readonly CanActivate[] {
    return guards.before;
  }
}

/** Behind the gates that need nobody's decision: no approval is requested for a call that they refuse. */
@Injectable()
export class GuardsAfter extends ApplicationPlace {
  choose({ guards }: ApplicationSteps): readonly CanActivate[] {
    return guards.after;
  }
}

/** Around the handler: what they make of a result is limited in size and searched like any result. */
@Injectable()
export class InterceptorsAfter extends ApplicationPlace {
  choose({ interceptors }: ApplicationSteps): readonly NestInterceptor[] {
    return interceptors.after;
  }
}

/**
 * Runs an interceptor of an application around the gates. It can refuse a call. Its values are not answered: the gates
 * have not judged them, and no refusal becomes a result.
 */
class ObservingInterceptor implements NestInterceptor {
  constructor(private readonly inner: NestInterceptor) {}

  async intercept(call: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    let end = (): unknown => {
      throw new Error(`${this.inner.constructor.name} did not call next.handle()`);
    };
    const behind = () =>
      next.handle().pipe(
        tap({
          next: (outcome: unknown) => (end = () => outcome),
          error: (error: unknown) => {
            end = () => {
              throw error;
            };
          },
        }),
      );
    const observed = await this.inner.intercept(call, { handle: behind });
    // One that emits nothing has observed the call as well.
    return observed.pipe(
      endWith(null),
      last(),
      map(() => end()),
    );
  }
}
