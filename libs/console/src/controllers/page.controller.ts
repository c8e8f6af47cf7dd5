import { All, Get, Head, Inject, Param, Req, Res } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';
import { ArrivalGuard, type NodeHttpAdapter, notServed } from '#streaming';
import { ConsoleController, OperatorController } from '../console.guards.js';
import { pathOfConsole, readPlace } from '../operator-sessions.js';

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};
const SERVED_FILES = /^[a-z][a-z0-9-]*\.(js|css|svg)$/;
const compress = promisify(brotliCompress);

/** A file with its content type and encodings. */
export interface PageFile {
  readonly type: string;
  readonly plain: Buffer;
  readonly brotli: Buffer;
}

interface Page {
  readonly html: string;
  /** Digest of all files. */
  readonly version: string;
  readonly assets: ReadonlyMap<string, PageFile>;
}

/**
 * Reads and compresses the files of the page at the first request. Their URLs contain a digest of all files, so that
 * browsers can cache them without mixing builds.
 */
export class PageFiles {
  private loading: Promise<Page> | null = null;
  /** By the path of the console, of which an instance has few. */
  private readonly written = new Map<string, Promise<PageFile>>();

  /** @param folder with `index.html`, scripts and styles */
  constructor(private readonly folder: string) {}

  /** @param path of the console, which the addresses in it begin with. Default `/console` */
  async html(path = '/console'): Promise<PageFile> {
    const page = await this.page();
    let written = this.written.get(path);
    if (!written) {
      const assets = escapeHtml(`${path}/assets/${page.version}`);
      const text = page.html.replaceAll('%ASSETS%', () => assets);
      this.written.set(path, (written = preparePage('text/html; charset=utf-8', Buffer.from(text))));
    }
    return written;
  }

  /** @returns `undefined` for an unknown file, or one of another version */
  async asset(version: string, name: string): Promise<PageFile | undefined> {
    const page = await this.page();
    return version === page.version ? page.assets.get(name) : undefined;
  }

  private page(): Promise<Page> {
    this.loading ??= this.read().catch((error: unknown) => {
      this.loading = null;
      throw error;
    });
    return this.loading;
  }

  private async read(): Promise<Page> {
    const names = (await readdir(this.folder)).filter((name) => SERVED_FILES.test(name)).sort();
    const contents = await Promise.all(names.map((name) => readFile(join(this.folder, name))));
    const html = await readFile(join(this.folder, 'index.html'), 'utf8');
    const digest = createHash('sha256').update(html);
    for (const [at, name] of names.entries()) digest.update(name).update(contents[at] as Buffer);
    const version = digest.digest('base64url').slice(0, 16);
    const files = names.map(async (name, at): Promise<[string, PageFile]> => {
      const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] as string;
      return [name, await preparePage(type, contents[at] as Buffer)];
    });
    return { version, html, assets: new Map(await Promise.all(files)) };
  }
}

const escapeHtml = (text: string) => text.replaceAll(/["&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);

async function preparePage(type: string, plain: Buffer): Promise<PageFile> {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length };
  return { type, plain, brotli: await compress(plain, { params }) };
}

/** The page holds the sign-in form and no data, so it needs no authentication. */
@ConsoleController('console', ArrivalGuard)
export class PageController {
  constructor(@Inject(PageFiles) private readonly page: PageFiles) {}

  @Get()
  async html(@Req() request: IncomingMessage, @Res() response: ServerResponse): Promise<void> {
    sendFile(request, response, await this.page.html(pathOfConsole(readPlace(request))));
  }
}

const CACHE_FOREVER = 'public, max-age=31536000, immutable';

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
    response.setHeader('Cache-Control', CACHE_FOREVER);
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

/** The API answers no HEAD. Registered before its controllers, whose GET would answer it. */
@OperatorController('console')
export class HeadController {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost<NodeHttpAdapter>) {}

  @Head(['session', 'api/*rest'])
  refuse(@Param('rest') rest: string | undefined): never {
    throw findRefusal(this.host.httpAdapter, rest === undefined ? 'session' : `api/${rest}`);
  }
}

/** Refuses all other paths and methods, to operators alone: nobody else learns which exist. Registered last. */
@OperatorController('console')
export class OtherPathsController {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost<NodeHttpAdapter>) {}

  @All('*rest')
  refuse(@Param('rest') rest = ''): never {
    throw findRefusal(this.host.httpAdapter, rest);
  }
}

function findRefusal(adapter: NodeHttpAdapter, path: string) {
  const methods = /^(?:session$|api\/)/.test(path) ? adapter.listMethods(`/console/${path}`) : [];
  const allowed = methods.filter((method) => method !== 'HEAD');
  return allowed.length > 0 ? notServed(405, { Allow: allowed.join(', ') }) : notServed(404);
}
