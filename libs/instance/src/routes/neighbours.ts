import { Logger } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { UnreadAnswers } from '#streaming';
import type { Mounted } from './mount-edge.js';
import { type Neighbour, sendJson } from './neighbour.js';

const pathOf = (url: string) => url.split('?', 1)[0] ?? '';

/** Routes beside MCP, each at its path. */
export class Neighbours implements Mounted {
  private readonly logger = new Logger('Neighbours');

  constructor(
    private readonly routes: readonly Neighbour[],
    private readonly unread: Pick<UnreadAnswers, 'admit' | 'wrote'>,
  ) {}

  claims(url: string): boolean {
    return this.routeOf(pathOf(url)) !== undefined;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!(await this.unread.admit(request, response))) return;
    const path = pathOf(request.url ?? '');
    const route = this.routeOf(path);
    try {
      const below = path.slice(route?.path.length).replace(/\/$/, '');
      await route?.answer(request, response, below);
    } catch (error) {
      this.logger.error(`${route?.path} failed: ${String(error)}`);
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, { error: 'Internal error' });
    }
    this.unread.wrote(response);
  }

  private routeOf(path: string): Neighbour | undefined {
    return this.routes.find((route) => path === route.path || path.startsWith(`${route.path}/`));
  }
}
