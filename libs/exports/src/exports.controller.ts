import { All, Controller, Inject, Req, Res } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { McpEdge, ROUTE_PATHS } from '#streaming';

/**
 * Files of exports. Their checks are a list of the edge, like those of MCP, and no guards: a file that is being sent is a
 * stream, which the edge counts, measures and ends at shutdown, and refusals before it have the form of those of MCP.
 */
@Controller(ROUTE_PATHS.exports)
export class ExportsController {
  constructor(@Inject(McpEdge) private readonly edge: McpEdge) {}

  @All('*id')
  serve(@Req() request: IncomingMessage, @Res() response: ServerResponse): Promise<void> {
    return this.edge.serveFile(request, response);
  }
}
