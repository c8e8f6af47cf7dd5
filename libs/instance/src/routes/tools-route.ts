import { Inject, Injectable } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Authenticator } from '#auth';
import { describeTool, dialectOf, LEGACY_VERSIONS } from '#dispatcher';
import { McpEdge, NotServed } from '#streaming';
import { ToolRunner } from '#tools';
import {
  callerOf,
  isReading,
  type HttpRoute,
  notFound,
  sendJson,
  tellRefused,
  wrongVerb,
} from './http-routes.js';

const LATEST = dialectOf('legacy', LEGACY_VERSIONS[0]);

/** The caller's tools as a bare list, for people and scripts. */
@Injectable()
export class ToolsRoute implements HttpRoute {
  readonly path = '/tools';

  constructor(
    @Inject(Authenticator) readonly authenticator: Authenticator,
    @Inject(ToolRunner) private readonly runner: ToolRunner,
    @Inject(McpEdge) readonly edge: McpEdge,
  ) {}

  async answer(request: IncomingMessage, response: ServerResponse, below: string): Promise<void> {
    if (below !== '') return notFound(response);
    if (!isReading(request)) return wrongVerb(response, 'GET, HEAD');
    try {
      const agent = await callerOf(request, response, this);
      const tools = this.runner.list({ agent }).map((tool) => describeTool(tool, LATEST));
      sendJson(response, 200, tools);
    } catch (error) {
      if (!(error instanceof NotServed)) throw error;
      tellRefused(response, error);
    }
  }
}
