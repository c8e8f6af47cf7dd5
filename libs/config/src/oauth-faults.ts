import { isScopeName, isTrustworthyUrl } from '#auth';
import { noAgent } from './errors/no-agent.js';
import type { ConfigFault } from './config-faults.js';
import { isSection, type Section } from './section.js';

/** What a schema cannot say of `auth.*.oauth`, and of the URL that its clients know. */
export function oauthFaults(config: Section, agents: ReadonlySet<string>): ConfigFault[] {
  const rules = (config['auth'] as unknown[]).flatMap((rule, index) => {
    const oauth = isSection(rule) ? rule['oauth'] : undefined;
    return isSection(oauth) ? [{ oauth, path: `auth.${index}.oauth` }] : [];
  });
  if (rules.length === 0) return [];
  const issuers = rules.map(({ oauth }) => oauth['issuer']);
  return [
    ...rules.flatMap(({ oauth, path }, at): ConfigFault[] => [
      ...addressFaults(oauth, path),
      ...scopeFaults(oauth, path, agents),
      ...(oauth['revocationList'] === true && !hasRedis(config)
        ? [
            {
              path: `${path}.revocationList`,
              message: 'needs redis.url: an operator writes it from elsewhere',
              related: ['redis.url'],
            },
          ]
        : []),
      ...(issuers.indexOf(issuers[at]) < at
        ? [{ path: `${path}.issuer`, message: 'has a rule already: two would judge the same tokens' }]
        : []),
    ]),
    ...resourceFaults(
      config,
      rules.map(({ oauth }) => oauth),
    ),
  ];
}

function hasRedis({ redis }: Section): boolean {
  return isSection(redis) && typeof redis['url'] === 'string';
}

function addressFaults(oauth: Section, path: string): ConfigFault[] {
  const { issuer, jwksUri, introspection } = oauth;
  const endpoint = isSection(introspection) ? introspection['endpoint'] : undefined;
  const addresses = { issuer, jwksUri, 'introspection.endpoint': endpoint };
  return Object.entries(addresses).flatMap(([name, url]) =>
    typeof url !== 'string' || (isTrustworthyUrl(url) && (name !== 'issuer' || !url.includes('?')))
      ? []
      : [{ path: `${path}.${name}`, message: 'must be an https URL (http only on this machine)' }],
  );
}

function scopeFaults(oauth: Section, path: string, agents: ReadonlySet<string>): ConfigFault[] {
  const { scopes, requiredScopes } = oauth;
  const faults: ConfigFault[] = [];
  const assertScope = (at: string, name: unknown) => {
    // Names of digits alone would be sorted to the front, and the order of scopes has a meaning.
    if (typeof name === 'string' && (!isScopeName(name) || /^\d+$/.test(name)))
      faults.push({ path: `${path}.${at}`, message: `'${name}' cannot be the name of a scope` });
  };
  for (const [scope, agent] of Object.entries(isSection(scopes) ? scopes : {})) {
    assertScope('scopes', scope);
    if (typeof agent === 'string' && !agents.has(agent))
      faults.push({ path: `${path}.scopes.${scope}`, ...noAgent(agent, agents) });
  }
  if (Array.isArray(requiredScopes)) for (const name of requiredScopes) assertScope('requiredScopes', name);
  return faults;
}

/** The audiences of a rule that could be the URL of this service. */
export function resourceUrls(audience: unknown): string[] {
  const all: unknown[] = Array.isArray(audience) ? audience : [audience];
  return all.filter((one): one is string => typeof one === 'string' && isResourceUrl(one));
}

function isResourceUrl(text: string): boolean {
  return isTrustworthyUrl(text) && !/[?"\\\s]/.test(text);
}

function resourceFaults(config: Section, rules: readonly Section[]): ConfigFault[] {
  const server = isSection(config['server']) ? config['server'] : {};
  const given = server['publicUrl'] ?? null;
  const path = 'server.publicUrl';
  if (typeof given === 'string')
    return isResourceUrl(given)
      ? []
      : [{ path, message: 'must be an https URL (http only on this machine)' }];
  const [first, ...others] = new Set(rules.map(({ audience }) => resourceUrls(audience)[0]));
  if (first === undefined)
    return [
      {
        path,
        message: 'is needed where the first audience is not the URL of this service',
        related: ['auth.*'],
      },
    ];
  return others.length === 0
    ? []
    : [{ path, message: 'is needed where issuers have different audiences', related: ['auth.*'] }];
}
