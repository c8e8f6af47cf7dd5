import type { ConfigIssue } from '../config-error.js';
import type { ParleyConfig } from '../config.js';

/** Change sets outlive every process: what seals them must, too, and so must the place where they are kept. */
export function changesErrors({
  agents,
  changes,
  server,
  database,
  parse,
}: Pick<ParleyConfig, 'agents' | 'changes' | 'server' | 'database' | 'parse'>): ConfigIssue[] {
  const [proposing] = Object.entries(agents).flatMap(([name, { writes }]) =>
    writes === 'proposed' ? [`agents.${name}.writes`] : [],
  );
  const cause = proposing ?? (changes.record === 'all' ? 'changes.record' : undefined);
  if (cause === undefined) return [];
  const errors: ConfigIssue[] = [];
  const add = (path: string, message: string) => errors.push({ path, message, related: [cause] });
  if (server.stateKey === null)
    add('server.stateKey', `is needed with ${cause}: it seals the rows in change sets`);
  if (database.uri === null)
    add('database.uri', `is needed with ${cause}: change sets are kept and applied there`);
  if (parse.serverUrl !== null)
    errors.push({
      path: cause,
      message:
        'is not possible with parse.serverUrl: what goes through Parse Server cannot be applied as one',
      related: ['parse.serverUrl'],
    });
  return errors;
}
