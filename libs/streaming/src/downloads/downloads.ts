import type { Agent, CallTelemetry } from '#agent';

/** Who wants a file, and how long they wait for it. */
export interface DownloadCall {
  readonly agent: Agent;
  /** Aborted when the client goes away or the service closes. */
  readonly signal: AbortSignal;
  /** `[A-Za-z0-9._-]{1,128}`, as sent. */
  readonly correlationId?: string;
  /** Absent where nothing is measured. */
  readonly telemetry?: CallTelemetry;
}

/** A file that is made while it is sent. */
export interface Download {
  /** Letters, digits, `_`, `-` and dots. */
  readonly fileName: string;
  readonly mimeType: string;
  /**
   * The file in pieces, each made when it is asked for. Ending it early ends whatever still runs for it; an error means
   * that the file is not whole. @throws Refused, Unauthorized
   */
  readonly pieces: AsyncGenerator<string, void, undefined>;
}

/** Files under ids that only their owner may use: for anybody else there is no such file. */
export abstract class Downloads {
  /** Reads nothing of the file yet. @throws Refused when the caller may not read it now */
  abstract open(id: string, call: DownloadCall): Promise<Download | undefined>;
  /** Takes the file back. @returns false when this caller has no such file */
  abstract revoke(id: string, agent: Agent): Promise<boolean>;
}
