import { UsageError } from './command-options.js';
import { ServiceClient, type ServiceOptions } from './service-client.js';
import { jsonText, textTable } from './text-output.js';

export interface DecisionOptions extends ServiceOptions {
  /** Of what was shown: a case that changed since is not decided. */
  readonly digest?: string;
  readonly reason?: string;
}

/** The pending approvals that the caller may decide. */
export async function listApprovals(options: ServiceOptions): Promise<void> {
  const { approvals, more } = await new ServiceClient(options).call('/approvals');
  if (!Array.isArray(approvals)) throw new UsageError('--url: what answers there is no Parley service');
  const cases = approvals as readonly Readonly<Record<string, unknown>>[];
  if (options.json) {
    process.stdout.write(jsonText(cases));
    if (more === true) process.stderr.write(MORE_WAIT);
    return;
  }
  const rows = cases.map(({ requester, ...one }) =>
    [
      one['id'],
      (requester as Readonly<Record<string, unknown>> | undefined)?.['agent'],
      one['tool'],
      one['class_name'],
      one['permission'],
      one['expires_at'],
    ].map(toCell),
  );
  const header = ['ID', 'AGENT', 'TOOL', 'CLASS', 'TIER', 'EXPIRES'];
  process.stdout.write(rows.length > 0 ? textTable(header, rows) : 'There are no pending approvals.\n');
  if (more === true) process.stderr.write(MORE_WAIT);
}

const MORE_WAIT = 'More calls wait than are listed: others follow once these are decided.\n';

/** One case with its preview and its digest. */
export async function showApproval(id: string, options: ServiceOptions): Promise<void> {
  process.stdout.write(jsonText(await new ServiceClient(options).call(toPath(id))));
}

/** Decides a case as it was shown. @throws UsageError without the digest of an approval */
export const decideApproval =
  (decision: 'approve' | 'deny') =>
  async (id: string, { reason, digest, ...options }: DecisionOptions): Promise<void> => {
    if (digest === undefined)
      throw new UsageError(
        '--digest is needed: parley approvals show ID prints it with what would be changed',
      );
    const body = { decision, digest, ...(reason !== undefined && { reason }) };
    process.stdout.write(jsonText(await new ServiceClient(options).call(toPath(id), body)));
  };

const toPath = (id: string) => `/approvals/${encodeURIComponent(id)}`;

const toCell = (value: unknown) => (typeof value === 'string' ? value : '-');
