import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { McpEdge } from './mcp-edge.js';

/** The checks of the MCP endpoint before authentication: host, rate limit, origin. */
@Injectable()
export class ArrivalGuard implements CanActivate {
  constructor(@Inject(McpEdge) private readonly edge: McpEdge) {}

  /** @throws NotServed */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const refused = await this.edge.refusalFor(http.getRequest(), http.getResponse());
    if (refused) throw refused;
    return true;
  }
}
