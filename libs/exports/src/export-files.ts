import { Logger } from '@nestjs/common';
import { Refused, refusals } from '#agent';
import { spendCall } from '#dispatcher';
import { PerPolicy, type Policies } from '#policy';
import { compileCanaries, lineWriter, type ToolRunner } from '#tools';
import { columnsOf } from './export-columns.js';
import { ExportFile } from './export-file.js';
import type { ExportJournal, Reader } from './export-journal.js';
import type { ExportTicket } from './export-ticket.js';
import type { ExportWalk, WalkedRow } from './export-walk.js';
import type { TicketOffice } from './ticket-office.js';

/** The tool that promises exports: who may not call it, reads none. */
const TOOL = 'export_data';

export interface ExportFilesParts {
  readonly office: TicketOffice;
  readonly walk: ExportWalk;
  readonly journal: ExportJournal;
  readonly runner: Pick<ToolRunner, 'list'>;
  readonly policies: Pick<Policies, 'of'>;
  /** Hears of a canary in an export. */
  readonly onCanary: (phrase: string, reader: Reader, className: string) => void;
}

/** Opens exports for their owners, under the gates of the tool that promised them. */
export class ExportFiles {
  private readonly logger = new Logger('Exports');
  private readonly canaries = new PerPolicy(({ switches: { promptInjectionCanaries: phrases } }) =>
    phrases.length > 0 ? compileCanaries(phrases) : null,
  );

  constructor(private readonly parts: ExportFilesParts) {}

  permits({ agent }: Pick<Reader, 'agent'>): boolean {
    return this.parts.runner.list({ agent }).some(({ name }) => name === TOOL);
  }

  /** @returns `undefined` when this agent has no such export. @throws Refused when it may not read it now */
  async open(id: string, reader: Reader): Promise<{ file: ExportFile; ticket: ExportTicket } | undefined> {
    const { office, walk, journal, policies } = this.parts;
    await spendCall(reader.agent, this.logger);
    const retryAfter = journal.admit();
    if (retryAfter !== null) throw new Refused(refusals.auditUnavailable(retryAfter));
    const ticket = await office.find(id, reader.agent);
    if (!ticket) return undefined;
    if (!this.permits(reader)) throw new Refused(refusals.toolFiltered(TOOL));
    const { order } = ticket;
    const columns = columnsOf(order, await walk.admit(order, reader));
    const { neutralizeFormulas } = policies.of(reader.agent).switches;
    const writer = lineWriter(order.format, columns, {
      neutralizeFormulas,
      wholeRows: order.columns.length === 0,
    });
    const inspect = (rows: readonly WalkedRow[]) => this.inspect(rows, reader, order.className);
    const file = new ExportFile({ id, ticket, reader, columns, writer, office, walk, journal, inspect });
    return { file, ticket };
  }

  /** Canaries are phrases of JSON text, whatever the format of the file. */
  private inspect(rows: readonly WalkedRow[], reader: Reader, className: string): string | undefined {
    const policy = this.parts.policies.of(reader.agent);
    const phrase = this.canaries.of(policy)?.(JSON.stringify(rows));
    if (phrase === undefined || phrase === null) return undefined;
    this.parts.onCanary(phrase, reader, className);
    if (policy.switches.canaryAction !== 'refuse') return phrase;
    throw new Refused(refusals.securityBlocked('canary', `canary: ${phrase}`));
  }
}
