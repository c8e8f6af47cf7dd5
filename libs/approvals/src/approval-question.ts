import type { FormQuestion } from '#agent';
import { oneLine } from '#audit';
import type { ApprovalRequest } from '#dispatcher';

const SCHEMA = Object.freeze({
  type: 'object',
  properties: {
    approve: { type: 'boolean', description: 'Whether the operation may run as shown' },
  },
  required: ['approve'],
});

/** Characters of the preview that stand in the message, for hosts that show nothing else. */
const MAX_TOLD = 2_000;

/** The question whether a call may run. */
export function approvalQuestion(
  { tool, effectivePermission }: Pick<ApprovalRequest, 'tool' | 'effectivePermission'>,
  shown: Readonly<Record<string, unknown>>,
): FormQuestion {
  return {
    kind: 'form',
    message:
      `Approve the ${effectivePermission} operation '${tool.name}'? Review the change before you decide.\n\n` +
      told(shown),
    schema: SCHEMA,
    meta: { 'parse.tool': tool.name, 'parse.permission': effectivePermission, 'parse.preview': shown },
    acceptedAsIs: true,
  };
}

/** Stored text cannot break out of its line, whatever it holds. */
function told(shown: Readonly<Record<string, unknown>>): string {
  const lines = JSON.stringify(shown, null, 2).split('\n').map(oneLine).join('\n');
  return lines.length > MAX_TOLD ? `${lines.slice(0, MAX_TOLD)}…` : lines;
}
