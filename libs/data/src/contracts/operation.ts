import type { OperationContext } from '../record-store.js';

/** A long test timeout: stores are real databases, and the machine may be busy. */
export const PATIENT = { timeout: 60_000 };

/** Limits that no case reaches, unless it narrows them. */
export function unhurried(limits: Partial<OperationContext> = {}): OperationContext {
  return { maxTimeMS: 30_000, comment: 'contract', signal: new AbortController().signal, ...limits };
}

/** The code of the StoreError that a promise rejects with; null when it does not reject. */
export async function storeErrorCode(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
    return null;
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}
