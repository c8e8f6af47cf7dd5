import { accessSync, constants, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { isTruthy } from '#policy';
import { cutText, hasRedis } from '#core';
import { type ConfigIssue, describeUnreadable } from '../config-error.js';
import type { ParleyConfig } from '../config.js';
import type { Environment } from '../environment.js';
import { ServerSection, isLoopbackHost } from '../sections/server.js';

/** How many processes serve. */
export function processCount({ processes }: Pick<ServerSection, 'processes'>): number {
  return processes === 'cores' ? availableParallelism() : processes;
}

/** What several processes cannot do. */
function processErrors({ server, redis, audit }: ParleyConfig): ConfigIssue[] {
  if (processCount(server) === 1) return [];
  const errors: ConfigIssue[] = [];
  if (!hasRedis(redis))
    errors.push({
      path: 'server.processes',
      message: 'several processes share sessions, limits, approvals and tasks over Redis: set redis.url',
      related: ['redis.url'],
    });
  for (const [index, { kind }] of audit.sinks.entries())
    if (kind === 'file')
      errors.push({
        path: `audit.sinks.${index}.kind`,
        message: 'a file is written by one process: set server.processes to 1, or use mongodb or webhook',
        related: ['server.processes'],
      });
  return errors;
}

/** The host of a URL, or of an entry of `allowedHosts`, without its port; null: it is none. */
function hostIn(text: string): string | null {
  const url = text.includes('://') ? text : `http://${text}`;
  return URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, '') : null;
}

/**
 * Anonymous callers are those of this machine. Names by which others reach the service lead through a proxy, whose requests come
 * from this machine as well.
 */
export function anonymousErrors({ server, auth }: ParleyConfig, inApplication: boolean): ConfigIssue[] {
  // What listens at other addresses itself starts with no anonymous rule at all (`startErrors`).
  const isRefusedAnyway = !inApplication && !isLoopbackHost(server.host);
  if (isRefusedAnyway || !auth.some((rule) => 'anonymous' in rule)) return [];
  const names = [
    ...(server.publicUrl === null ? [] : [['server.publicUrl', server.publicUrl] as const]),
    ...server.allowedHosts.map((entry, index) => [`server.allowedHosts.${index}`, entry] as const),
  ];
  return names.flatMap(([path, text]) =>
    isLoopbackHost(hostIn(text) ?? '')
      ? []
      : [
          {
            path,
            message: `'${text}' is reached from other machines, whose requests a proxy sends from this one: set MCP_API_KEY or give auth rules without anonymous`,
            related: ['auth'],
          },
        ],
  );
}

/** Routes of the service beside MCP, which no option moves. */
const SINGLE_ROUTES = ['/health', '/ready', '/tools'];
const ROUTES_WITH_OTHERS_BELOW = [
  '/approvals',
  '/exports',
  '/console',
  '/.well-known/oauth-protected-resource',
];

/** Paths at which another route of the service answers. An application has its routes below the path of MCP. */
export function pathErrors({ server }: Pick<ParleyConfig, 'server'>, inApplication: boolean): ConfigIssue[] {
  const { path, healthPath } = server;
  if (inApplication) return [];
  const errors: ConfigIssue[] = [];
  if ([...SINGLE_ROUTES, '/approvals', '/exports'].includes(path))
    errors.push({ path: 'server.path', message: `is where ${path} of the service is served` });
  if (healthPath === null || healthPath === '/health') return errors;
  const taken =
    SINGLE_ROUTES.find((route) => healthPath === route) ??
    [path, ...ROUTES_WITH_OTHERS_BELOW].find((route) => `${healthPath}/`.startsWith(`${route}/`));
  if (taken !== undefined)
    errors.push({ path: 'server.healthPath', message: `is where ${taken} is served, which answers instead` });
  return errors;
}

/** Headers with `_` are not read: gateways fold such a name with that of another header. */
const READ_HEADER = /^[A-Za-z0-9!#$%&'*+.^`|~-]{1,128}$/;
/** As it arrives: without blanks at its ends. */
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;

/** A header that no request can have would refuse every request. */
export function customHeaderErrors({
  server: { requireCustomHeader: wanted },
}: Pick<ParleyConfig, 'server'>): ConfigIssue[] {
  if (wanted === null) return [];
  const [name = '', value] = typeof wanted === 'string' ? [wanted] : (Object.entries(wanted)[0] ?? []);
  const path = 'server.requireCustomHeader';
  if (!READ_HEADER.test(name))
    return [
      { path, message: `'${cutText(name, 40)}' is no name of a header that is read: letters, digits and -` },
    ];
  if (value !== undefined && !HEADER_VALUE.test(value))
    return [
      {
        path: `${path}.${name}`,
        message: 'must be ASCII text of 1 to 256 characters without blanks at its ends',
      },
    ];
  return [];
}

const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*,]+$/;
const DOMAIN = /^(?:\.[a-z0-9-]+)+$/;

/** What to write in place of an entry of `allowedOrigins` that no browser sends; null: browsers send it. */
function mistakeOfOrigin(entry: string): string | null {
  const text = entry.toLowerCase();
  if (text === '*') return "is no origin: list each one, as 'https://app.example.com' or '.example.com'";
  if (text === 'null') return 'is what every sandboxed page sends: it cannot be listed';
  if (text.startsWith('.'))
    return DOMAIN.test(text) ? null : "must be a domain with its subdomains, as '.example.com'";
  if (!/^https?:/.test(text))
    return ORIGIN.test(text)
      ? null
      : `must be a whole origin with its scheme, as 'https://${text.split(/[/:]/)[0]}'`;
  const sent = URL.canParse(text) ? new URL(text).origin : null;
  if (sent === null || text.includes('*')) return "must be an origin, as 'https://app.example.com'";
  return sent === text ? null : `is sent by browsers as '${sent}': write that`;
}

/** Entries of `allowedOrigins` that never match: the operator believes that a page may call, or that others may not. */
export function originErrors({ server }: ParleyConfig): ConfigIssue[] {
  return server.allowedOrigins.flatMap((entry, index) => {
    const mistake = mistakeOfOrigin(entry);
    return mistake === null
      ? []
      : [{ path: `server.allowedOrigins.${index}`, message: `'${entry}' ${mistake}` }];
  });
}

/** What serves: a listener that others may reach, or a pipe of one client. */
export type StartKind = 'http' | 'stdio';

/** Why it is no file that can be read; null: it is one. */
function findUnread(path: string): string | null {
  try {
    accessSync(path, constants.R_OK);
    return statSync(path).isFile() ? null : 'cannot be read: it is not a file';
  } catch (error) {
    return describeUnreadable(error);
  }
}

/**
 * Errors that stop a start: the server is switched off, or an address that others can reach does not require
 * credentials (docs/reference/configuration.md#binding).
 */
export function startErrors(config: ParleyConfig, env: Environment, kind: StartKind): ConfigIssue[] {
  const errors: ConfigIssue[] = [];
  const enabled = env['PARSE_MCP_ENABLED'];
  if (enabled !== undefined && enabled !== '' && !isTruthy(enabled))
    errors.push({ path: 'PARSE_MCP_ENABLED', message: `is '${enabled}': the server is switched off` });
  const { uri, seed } = config.database;
  const unread = uri === 'embedded' && seed !== null ? findUnread(seed) : null;
  if (unread !== null) errors.push({ path: 'database.seed', message: `the seed file ${seed} ${unread}` });
  if (kind === 'http') errors.push(...processErrors(config));
  const { host } = config.server;
  if (kind === 'stdio' || isLoopbackHost(host)) return errors;
  const anonymous = config.auth.some((rule) => 'anonymous' in rule);
  if (config.auth.length === 0 || anonymous)
    errors.push({
      path: 'server.host',
      message: `non-loopback address '${host}' needs authentication: set MCP_API_KEY or give auth rules without anonymous`,
      related: [anonymous ? 'auth' : 'auth.*'],
    });
  return errors;
}
