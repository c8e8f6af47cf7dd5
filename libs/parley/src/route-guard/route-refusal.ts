import { HttpException } from '@nestjs/common';
import { type ErrorCode, type Refusal, toSentCode } from '#core';

/** The JSON body of a refusal on a route of the application, in the words that a tool refuses with. */
export interface RefusalBody {
  /** For people and models. */
  readonly error: string;
  /** For programs. Absent where a tool shows no reason, and for a caller who is not known. */
  readonly error_code?: string;
  /** Seconds. */
  readonly retry_after?: number;
  /** As `parse.details` of a tool. */
  readonly details?: Refusal['details'];
  /** What else the failed result of a tool has. */
  readonly [member: string]: unknown;
}

/** A refusal of Parley on a route of the application. Its response is a `RefusalBody`. */
export class ParleyHttpException extends HttpException {
  /** @internal Made by `ParleyGuard`. */
  constructor(
    status: number,
    /** What the caller receives. */
    readonly body: RefusalBody,
    /** Headers of the answer, such as `WWW-Authenticate` and `Retry-After`. */
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(body, status);
  }
}

const STATUS: Readonly<Record<ErrorCode, number>> = {
  access_denied: 403,
  permission_denied: 403,
  tool_filtered: 403,
  approval_denied: 403,
  security_blocked: 403,
  invalid_argument: 400,
  invalid_query: 400,
  pointer_shape_mismatch: 400,
  parse_error: 503,
  not_found: 404,
  conflict: 409,
  timeout: 504,
  rate_limited: 429,
  cancelled: 503,
  not_implemented: 501,
  audit_unavailable: 503,
  internal_error: 500,
};

/** The text of an object that is not there, however its agent may not see it. */
const ABSENT = 'Parse error: Object not found';

function statusOf({ code, opaque, message }: Refusal): number {
  if (opaque) return 400;
  return code === 'parse_error' && message.startsWith(ABSENT) ? 404 : (STATUS[code as ErrorCode] ?? 422);
}

/** @param challenge headers for a caller who would be permitted more with other credentials */
export function refusedOverHttp(
  refusal: Refusal,
  challenge?: Readonly<Record<string, string>>,
): ParleyHttpException {
  const { code, message, retryAfter, details, body, opaque, wordsOnly } = refusal;
  const reasons = !opaque && !wordsOnly;
  return new ParleyHttpException(
    statusOf(refusal),
    {
      error: message,
      ...(reasons && { error_code: toSentCode(code) }),
      ...(retryAfter !== undefined && { retry_after: retryAfter }),
      ...(reasons && details && { details }),
      ...body,
    },
    {
      ...(retryAfter !== undefined && { 'Retry-After': String(Math.max(1, Math.ceil(retryAfter))) }),
      ...challenge,
    },
  );
}
