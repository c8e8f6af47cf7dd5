import { isJsonObject } from '#core';

/** `{ __type: … }`: a value, whatever members it has. */
export function isTyped(value: Readonly<Record<string, unknown>>): boolean {
  return typeof value['__type'] === 'string';
}

export interface RowPointer {
  readonly className: string;
  readonly objectId: string;
}

export function isPointer(value: unknown): value is RowPointer {
  if (!isJsonObject(value) || value['__type'] !== 'Pointer') return false;
  return typeof value['className'] === 'string' && typeof value['objectId'] === 'string';
}
