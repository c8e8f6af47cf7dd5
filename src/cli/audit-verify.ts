import {
  type ChainFault,
  type ChainHead,
  collectionSource,
  oneLine,
  RecordSeal,
  type Verification,
  verifyRecords,
} from '#audit';
import { loadConfig } from '#config';
import { auditCollections, auditFiles } from './audit-sources.js';
import { withConfig } from './named-config.js';
import { UsageError } from './usage-error.js';

export interface VerifyOptions {
  readonly config?: string;
  readonly mongo?: boolean;
  readonly head?: readonly string[];
  readonly partial?: boolean;
  readonly json?: boolean;
}

/** Verifies a history of records; exit code 1 when it does not hold. @throws Error when there is nothing to read */
export async function runAuditVerify(files: readonly string[], options: VerifyOptions): Promise<void> {
  const { config } = loadConfig(withConfig(options.config));
  const collections = files.length === 0 || options.mongo ? auditCollections(config) : [];
  try {
    const sources = [...auditFiles(files, config.audit), ...collections.map(collectionSource)];
    if (sources.length === 0)
      throw new UsageError('there are no audit files: name them, or configure audit.sinks');
    const result = await verifyRecords(sources, {
      seal: new RecordSeal(config.audit.chainKey),
      heads: (options.head ?? []).map(headOf),
      partial: options.partial ?? false,
    });
    process.stdout.write(options.json ? `${JSON.stringify(result, null, 2)}\n` : describe(result));
    if (result.faults.length > 0) process.exitCode = 1;
  } finally {
    await Promise.all(collections.map((collection) => collection.close()));
  }
}

/** @throws UsageError for what is no head */
function headOf(text: string): ChainHead {
  const [, chain, seq, hash] = /^([0-9a-f]+):(\d+):([0-9a-f]{64})$/.exec(text) ?? [];
  if (chain === undefined || hash === undefined) throw new UsageError('--head: expected chain:sequence:hash');
  return { chain, seq: Number(seq), hash };
}

const SHOWN = 20;

function describe({ faults, notes, records, chains }: Verification): string {
  const more = faults.length > SHOWN ? [`and ${faults.length - SHOWN} more`] : [];
  const lines = [
    ...faults.slice(0, SHOWN).map(faultLine),
    ...more,
    ...notes.map((note) => `note: ${faultLine(note)}`),
    ...chains.map(
      ({ chain, group, seq, ended, witnessed }) =>
        `chain ${chain} in ${group}: up to record ${seq}${ended ? ', where it ends' : ''}; ` +
        (witnessed === null ? 'no other place bears witness' : `witnessed up to record ${witnessed}`),
    ),
    faults.length === 0 ? `${records} records hold` : `${records} records, which do not hold`,
  ];
  return lines.map((line) => `${oneLine(line)}\n`).join('');
}

function faultLine({ kind, told, source, line, chain, seq }: ChainFault): string {
  const place = line === null ? source : `${source}:${line}`;
  const position = chain === undefined ? '' : ` [chain ${chain}, record ${seq}]`;
  return `${kind.toUpperCase()} ${place}: ${told}${position}`;
}
