import {
  Controller,
  type DynamicModule,
  Get,
  Inject,
  type INestApplicationContext,
  Module,
  Req,
  Res,
  UseGuards,
} from '@nestjs/common';
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ConfigVersions } from '#config';
import { provideFromInstance } from '#core';
import { InstanceProvidersModule, productVersion, Readiness } from '#parley/instance';
import { ArrivalGuard, McpEdge, ROUTE_PATHS } from '#streaming';

/** The path of the page. */
export const START_PAGE = '/';

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:38rem;margin:3rem auto;padding:0 1rem;color:#1c2430;background:#fff}' +
  'code{background:#eef1f5;padding:.1em .3em;border-radius:3px;overflow-wrap:anywhere}a{color:#0b57a4}' +
  '@media(prefers-color-scheme:dark){body{color:#dde3ea;background:#14181d}code{background:#242b33}a{color:#7db7f0}}';

const computeDigest = (text: string) => createHash('sha256').update(text).digest('base64');

/** A page without scripts: nothing is loaded, sent or framed. */
const HEADERS = {
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${computeDigest(STYLE)}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  Vary: 'Accept',
};

/** What anybody may know: no more than the routes without credentials return. */
interface StartPage {
  readonly name: 'Parley';
  readonly protocol: 'MCP';
  readonly version: string;
  /** The path of MCP at this address, or its public URL. */
  readonly mcp: string;
  readonly status: 'ready' | 'unavailable' | 'draining';
  readonly links: Readonly<Record<string, string>>;
}

/** Says what is served here: a page for browsers, JSON for others. It needs no credentials. */
@Controller(START_PAGE)
@UseGuards(ArrivalGuard)
class StartPageController {
  constructor(
    @Inject(Readiness) private readonly readiness: Pick<Readiness, 'look'>,
    @Inject(ConfigVersions) private readonly versions: Pick<ConfigVersions, 'current'>,
  ) {}

  @Get()
  async read(@Req() request: IncomingMessage, @Res() response: ServerResponse): Promise<void> {
    const page = await this.page();
    const wantsHtml = /\btext\/html\b/i.test(request.headers.accept ?? '');
    const text = wantsHtml ? renderHtml(page) : JSON.stringify(page);
    response.writeHead(200, {
      'Content-Type': `${wantsHtml ? 'text/html' : 'application/json'}; charset=utf-8`,
      'Content-Length': Buffer.byteLength(text),
      ...HEADERS,
    });
    // Node sends no body in an answer to HEAD.
    response.end(text);
  }

  private async page(): Promise<StartPage> {
    const { server, console: operators } = this.versions.current.config;
    const { status } = await this.readiness.look();
    return {
      name: 'Parley',
      protocol: 'MCP',
      version: productVersion(),
      mcp: server.publicUrl ?? server.path,
      status,
      links: {
        tools: ROUTE_PATHS.tools,
        health: ROUTE_PATHS.health,
        ready: ROUTE_PATHS.ready,
        ...(operators.operators !== null && { console: '/console' }),
      },
    };
  }
}

const LINK_TEXTS: Readonly<Record<string, string>> = {
  tools: 'The tools that you may call (with your key)',
  health: 'Whether the process runs',
  ready: 'Whether it can answer calls',
  console: 'The console, for operators',
};

const STATUS_TEXTS: Readonly<Record<StartPage['status'], string>> = {
  ready: 'It is ready.',
  unavailable: 'It runs, but something that it needs does not answer.',
  draining: 'It is about to end, and accepts no new calls.',
};

function renderHtml({ mcp, version, status, links }: StartPage): string {
  const where = mcp.startsWith('/') ? ' at this address' : '';
  const items = Object.entries(links).map(
    ([name, path]) => `<li><a href="${escapeHtml(path)}">${escapeHtml(LINK_TEXTS[name] ?? name)}</a></li>`,
  );
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Parley</title>` +
    `<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">` +
    `<style>${STYLE}</style></head><body><main><h1>Parley</h1>` +
    `<p>This is an MCP server: AI agents read and change data here, under rules. ${STATUS_TEXTS[status]}</p>` +
    `<p>Connect an MCP client by <em>Streamable HTTP</em> to <code>${escapeHtml(mcp)}</code>${where}.</p>` +
    `<ul>${items.join('')}</ul><p>Version ${escapeHtml(version)}</p></main></body></html>\n`
  );
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escapeHtml = (text: string) => text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '');

/** The page of the service. In an application of somebody else `/` belongs to that application. */
@Module({
  controllers: [StartPageController],
  providers: [ConfigVersions, McpEdge, Readiness].map(provideFromInstance),
})
export class StartPageModule {
  static register(app: INestApplicationContext): DynamicModule {
    return { module: StartPageModule, imports: [InstanceProvidersModule.register(app, [ConfigVersions])] };
  }
}
