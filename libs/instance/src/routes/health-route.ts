import { Inject, Injectable } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isReading, type Neighbour, notFound, sendJson, wrongVerb } from './neighbour.js';
import { Readiness } from './readiness.js';

const READING = 'GET, HEAD';

/** Liveness, without credentials. It asks nothing of any dependency: a process that answers is not to be restarted because its database is away. */
@Injectable()
export class HealthRoute implements Neighbour {
  readonly path = '/health';

  async answer(request: IncomingMessage, response: ServerResponse, below: string): Promise<void> {
    if (below !== '') return notFound(response);
    if (!isReading(request)) return wrongVerb(response, READING);
    sendJson(response, 200, { status: 'ok', mcp_enabled: true });
  }
}

/** Readiness, without credentials and without details. */
@Injectable()
export class ReadyRoute implements Neighbour {
  readonly path = '/ready';

  constructor(@Inject(Readiness) private readonly readiness: Readiness) {}

  async answer(request: IncomingMessage, response: ServerResponse, below: string): Promise<void> {
    if (below !== '') return notFound(response);
    if (!isReading(request)) return wrongVerb(response, READING);
    const { ready, status, dependencies } = await this.readiness.look();
    sendJson(response, ready ? 200 : 503, { status, dependencies }, { 'Cache-Control': 'no-store' });
  }
}
