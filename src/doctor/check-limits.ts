import type { LoadedConfig } from '#config';
import { type Finding, ok, warn } from './finding.js';

/** Bytes of a body beyond which a hundred callers fill the memory of a usual container. */
const LARGE_BODY = 16 * 1024 * 1024;
const MANY_CALLS_A_SECOND = 1_000;

/** Limits that the operator opened; all others hold as docs/limits.md says. */
export function checkLimits({ config, agents, policy }: LoadedConfig): Finding[] {
  const { server, exports: exportConfig } = config;
  const findings: Finding[] = [];
  if (server.maxConcurrentDispatchers === null)
    findings.push(
      warn(
        'limits.dispatchers',
        'any number of answers is streamed at once',
        'set server.maxConcurrentDispatchers',
      ),
    );
  if (server.maxBodySize > LARGE_BODY)
    findings.push(
      warn('limits.body', `a request may be ${server.maxBodySize} bytes long`, 'lower server.maxBodySize'),
    );
  for (const { name, rate } of agents.values()) {
    if (rate && rate.limit / rate.window > MANY_CALLS_A_SECOND)
      findings.push(
        warn(
          'limits.rate',
          `'${name}' may call ${rate.limit} times in ${rate.window} s`,
          `lower agents.${name}.rateLimit`,
        ),
      );
  }
  const budgets = [...agents.values()].filter(({ budget }) => budget).length;
  findings.push(
    ok(
      'limits',
      `bodies of ${server.maxBodySize} bytes, ${server.maxConcurrentDispatchers ?? 'unbounded'} streams, exports of ` +
        `${exportConfig.maxRows} rows; ${budgets} of ${agents.size} agents and ${policy.tenantBudget ? 'every tenant' : 'no tenant'} have a data budget`,
    ),
  );
  return findings;
}
