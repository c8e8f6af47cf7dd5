import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { map, type Observable } from 'rxjs';

/** An interceptor as Nest knows it. It runs after every gate of Parley, and before the result is checked. */
@Injectable()
export class AsOf implements NestInterceptor<object, object> {
  intercept(_: ExecutionContext, next: CallHandler<object>): Observable<object> {
    return next.handle().pipe(map((result) => ({ ...result, as_of: new Date().toISOString() })));
  }
}
