import { All, Head, Inject, Param } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { type NodeHttpAdapter, notServed } from '#streaming';
import { OperatorController } from '../console.guards.js';

/** The API answers no HEAD. Registered before its controllers, whose GET would answer it. */
@OperatorController('console')
export class HeadController {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost<NodeHttpAdapter>) {}

  @Head(['session', 'api/*rest'])
  refuse(@Param('rest') rest: string | undefined): never {
    throw refusalOf(this.host.httpAdapter, rest === undefined ? 'session' : `api/${rest}`);
  }
}

/** Refuses all other paths and methods, to operators alone: nobody else is told which exist. Registered last. */
@OperatorController('console')
export class OtherPathsController {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost<NodeHttpAdapter>) {}

  @All('*rest')
  refuse(@Param('rest') rest = ''): never {
    throw refusalOf(this.host.httpAdapter, rest);
  }
}

function refusalOf(adapter: NodeHttpAdapter, path: string) {
  const methods = /^(?:session$|api\/)/.test(path) ? adapter.methodsOf(`/console/${path}`) : [];
  const allowed = methods.filter((method) => method !== 'HEAD');
  return allowed.length > 0 ? notServed(405, { Allow: allowed.join(', ') }) : notServed(404);
}
