import { Get, Inject, Param, Req, Res } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { notServed } from '#streaming';
import { ArrivalGuard, ConsoleController } from '../console.guards.js';
import { type PageFile, PageFiles } from '../page-files.js';

/** The page holds the sign-in form and no data, so it needs no authentication. */
@ConsoleController('console', ArrivalGuard)
export class PageController {
  constructor(@Inject(PageFiles) private readonly page: PageFiles) {}

  @Get()
  async html(@Req() request: IncomingMessage, @Res() response: ServerResponse): Promise<void> {
    sendFile(request, response, await this.page.html());
  }
}

const KEPT = 'public, max-age=31536000, immutable';

/** Scripts and styles of the page. */
@ConsoleController('console/assets')
export class PageFilesController {
  constructor(@Inject(PageFiles) private readonly page: PageFiles) {}

  @Get(':version/:name')
  async file(
    @Param('version') version: string,
    @Param('name') name: string,
    @Req() request: IncomingMessage,
    @Res() response: ServerResponse,
  ): Promise<void> {
    const file = await this.page.asset(version, name);
    if (!file) throw notServed(404);
    response.setHeader('Cache-Control', KEPT);
    sendFile(request, response, file);
  }
}

function sendFile(request: IncomingMessage, response: ServerResponse, file: PageFile): void {
  const takesBrotli = /\bbr\b/.test(String(request.headers['accept-encoding'] ?? ''));
  const bytes = takesBrotli ? file.brotli : file.plain;
  response.writeHead(200, {
    'Content-Type': file.type,
    'Content-Length': bytes.length,
    Vary: 'Accept-Encoding',
    ...(takesBrotli && { 'Content-Encoding': 'br' }),
  });
  response.end(request.method === 'HEAD' ? undefined : bytes);
}
