import { type Document, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { badValue, mongoError } from '../errors.js';
import type { ClientInfo } from './access.js';

/** What a triggered failCommand does to one command. */
export interface Failure {
  readonly blockMs: number;
  readonly closeConnection: boolean;
  readonly error: { code: number; labels: string[] | undefined; extra: Document } | undefined;
  readonly writeConcernError: Document | undefined;
  readonly labels: string[] | undefined;
}

const MODES = 'a fail point mode is off, alwaysOn, {times: n}, {skip: n} or {activationProbability: p}';

const numberOr = (value: unknown, fallback: number): number =>
  numberKind(value) === undefined ? fallback : toDouble(value);

/** A fail point of MongoDB: how often it fires, and with which data. */
class FailPoint {
  private data: Document | undefined;
  private timesLeft = Infinity;
  private skipsLeft = 0;
  private probability = 1;

  /** Errors: 2 for an unknown mode. */
  configure(mode: unknown, data: unknown): void {
    this.data = undefined;
    if (mode === 'off') return;
    this.timesLeft = Infinity;
    this.skipsLeft = 0;
    this.probability = 1;
    if (isDocument(mode)) {
      if (mode['times'] !== undefined) this.timesLeft = numberOr(mode['times'], 0);
      else if (mode['skip'] !== undefined) this.skipsLeft = numberOr(mode['skip'], 0);
      else if (mode['activationProbability'] !== undefined)
        this.probability = numberOr(mode['activationProbability'], 0);
      else throw badValue(MODES);
    } else if (mode !== 'alwaysOn') {
      throw badValue(MODES);
    }
    this.data = isDocument(data) ? data : {};
  }

  /** The data of the fail point when it fires for something that `concerns` says it is for. */
  fire(concerns: (data: Document) => boolean): Document | undefined {
    const { data } = this;
    if (!data || !concerns(data)) return undefined;
    if (this.probability < 1 && Math.random() >= this.probability) return undefined;
    if (this.skipsLeft > 0) {
      this.skipsLeft -= 1;
      return undefined;
    }
    if (this.timesLeft <= 0) return undefined;
    this.timesLeft -= 1;
    return data;
  }
}

/** The fail points of one member: they let tests make chosen commands fail, block or lose their connection. */
export class FailPoints {
  private readonly known = {
    failCommand: new FailPoint(),
    onPrimaryTransactionalWrite: new FailPoint(),
    failGetMoreAfterCursorCheckout: new FailPoint(),
  };

  /** Errors: 2 for an unknown fail point or mode. */
  configure(name: unknown, mode: unknown, data: unknown): void {
    const names = Object.keys(this.known);
    if (!names.includes(String(name)))
      throw badValue(`only the fail points ${names.join(', ')} are known, not ${String(name)}`);
    this.known[name as keyof typeof this.known].configure(mode, data);
  }

  /** The failure this command has to suffer, if any. */
  ofCommand(command: string, namespace: string, client: ClientInfo): Failure | undefined {
    const data = this.known.failCommand.fire(({ failCommands, appName, namespace: only }) => {
      if (!Array.isArray(failCommands) || !failCommands.includes(command)) return false;
      if (appName !== undefined && appName !== client.appName) return false;
      return only === undefined || only === namespace;
    });
    if (!data) return undefined;
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

  /** What a retryable write has to suffer: the connection closes, after it is done or instead of it, or it fails. */
  ofWrite(): { readonly closes: boolean; readonly code: number | undefined } {
    const data = this.known.onPrimaryTransactionalWrite.fire(() => true);
    const code = data?.['failBeforeCommitExceptionCode'];
    return {
      closes: data !== undefined && data['closeConnection'] !== false,
      code: code === undefined ? undefined : numberOr(code, 1),
    };
  }

  /** Errors: the one that a getMore has to suffer, once it has its cursor. */
  checkGetMore(): void {
    const code = this.known.failGetMoreAfterCursorCheckout.fire(() => true)?.['errorCode'];
    if (code !== undefined) throw mongoError(numberOr(code, 1), 'Failing getMore via a fail point');
  }
}

/** The error reply of a triggered fail point, with the labels of MongoDB where it names none. */
export function failPointError(error: NonNullable<Failure['error']>, labels: string[] = []): Error {
  const failure = mongoError(error.code, "Failing command via 'failCommand' failpoint", error.extra);
  failure.labels = error.labels ?? labels;
  return failure;
}
