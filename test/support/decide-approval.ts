/**
 * Decides an approval as somebody does who has just read it.
 * @param at address of the approval
 * @param headers the credential of the approver
 */
export async function decideApproval(
  at: string,
  headers: Record<string, string>,
  verdict: { readonly decision: 'approve' | 'deny'; readonly reason?: string },
): Promise<Response> {
  const shown = (await (await fetch(at, { headers })).json()) as { digest?: string };
  return fetch(at, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ digest: shown.digest ?? 'none was shown', ...verdict }),
  });
}
