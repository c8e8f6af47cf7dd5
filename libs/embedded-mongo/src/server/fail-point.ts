import { isDocument, type Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { badValue, mongoError } from '../errors.js';

/** What a triggered failCommand does to one command. */
export interface Failure {
  readonly blockMs: number;
  readonly closeConnection: boolean;
  readonly error: { code: number; labels: string[] | undefined; extra: Document } | undefined;
  readonly writeConcernError: Document | undefined;
  readonly labels: string[] | undefined;
}

const numberOr = (value: unknown, fallback: number): number =>
  numberKind(value) === undefined ? fallback : toDouble(value);

/** The failCommand fail point: lets tests make chosen commands fail, block or lose their connection. */
export class FailPoint {
  private data: Document | undefined;
  private timesLeft = Infinity;
  private skipsLeft = 0;

  /** Errors: 2 for an unknown mode. */
  configure(mode: unknown, data: unknown): void {
    this.data = undefined;
    if (mode === 'off') return;
    this.timesLeft = Infinity;
    this.skipsLeft = 0;
    if (isDocument(mode)) {
      if (mode['times'] !== undefined) this.timesLeft = numberOr(mode['times'], 0);
      else if (mode['skip'] !== undefined) this.skipsLeft = numberOr(mode['skip'], 0);
      else throw badValue('a fail point mode is off, alwaysOn, {times: n} or {skip: n}');
    } else if (mode !== 'alwaysOn') {
      throw badValue('a fail point mode is off, alwaysOn, {times: n} or {skip: n}');
    }
    this.data = isDocument(data) ? data : {};
  }

  /** The failure this command has to suffer, if any. */
  trigger(command: string, appName: string | undefined): Failure | undefined {
    const data = this.data;
    const commands = data?.['failCommands'];
    if (!data || !Array.isArray(commands) || !commands.includes(command)) return undefined;
    if (data['appName'] !== undefined && data['appName'] !== appName) return undefined;
    if (this.skipsLeft > 0) {
      this.skipsLeft -= 1;
      return undefined;
    }
    if (this.timesLeft <= 0) return undefined;
    this.timesLeft -= 1;
    const labels = Array.isArray(data['errorLabels']) ? data['errorLabels'].map(String) : undefined;
    const code = data['errorCode'];
    const errInfo = data['errInfo'];
    const concern = data['writeConcernError'];
    return {
      blockMs: data['blockConnection'] === true ? numberOr(data['blockTimeMS'], 0) : 0,
      closeConnection: data['closeConnection'] === true,
      error:
        code === undefined
          ? undefined
          : { code: numberOr(code, 1), labels, extra: isDocument(errInfo) ? { errInfo } : {} },
      writeConcernError: isDocument(concern) ? concern : undefined,
      labels,
    };
  }
}

/** The error reply of a triggered fail point. */
export function failPointError(error: NonNullable<Failure['error']>): Error {
  const failure = mongoError(error.code, "Failing command via 'failCommand' failpoint", error.extra);
  if (error.labels) failure.labels = error.labels;
  return failure;
}
