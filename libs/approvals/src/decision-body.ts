import { IsIn, IsString, ValidateIf } from 'class-validator';
import type { ApprovalServiceRefusal, Verdict } from './approval-service.js';

/** The body of a request that decides an approval. */
export class DecisionBody {
  @IsIn(['approve', 'deny'], { message: 'decision must be approve or deny' })
  decision!: 'approve' | 'deny';

  @ValidateIf(({ reason }: DecisionBody) => reason !== undefined)
  @IsString({ message: 'reason must be text' })
  reason?: string;
}

export const verdictOf = ({ decision, reason }: DecisionBody): Verdict => ({
  approved: decision === 'approve',
  ...(reason !== undefined && { reason }),
});

const REFUSED: Readonly<
  Record<Exclude<ApprovalServiceRefusal, 'forbidden'>, readonly [status: number, error: string]>
> = {
  own_request: [403, "one's own request is decided by somebody else"],
  not_found: [404, 'no such approval'],
  decided_before: [409, 'this approval has been decided'],
};

/** @param who as the text calls the caller. @returns the HTTP status and the text of a refusal */
export function decisionRefused(
  refusal: ApprovalServiceRefusal,
  who: 'agent' | 'operator',
): readonly [status: number, error: string] {
  return refusal === 'forbidden' ? [403, `this ${who} may not decide approvals`] : REFUSED[refusal];
}
