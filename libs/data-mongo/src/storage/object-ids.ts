import { randomInt } from 'node:crypto';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Ten letters and digits, as Parse Server generates them. */
export function newObjectId(): string {
  return Array.from({ length: 10 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
}

/** Parse JSON of a pointer. The member order is the stored one, because MongoDB compares documents by it. */
interface Pointer {
  readonly __type: 'Pointer';
  readonly className: string;
  readonly objectId: string;
}

const POINTER_STRING = /^([A-Za-z_]\w*)\$(.+)$/s;

export function pointerTo(className: string, objectId: string): Pointer {
  return { __type: 'Pointer', className, objectId };
}

/** The stored form of a pointer column: `Class$id`. */
export function pointerString(className: string, objectId: string): string {
  return `${className}$${objectId}`;
}

export function isPointerString(value: unknown): value is string {
  return typeof value === 'string' && POINTER_STRING.test(value);
}

export function parsePointerString(value: unknown): Pointer | null {
  const match = typeof value === 'string' ? POINTER_STRING.exec(value) : null;
  return match ? pointerTo(match[1] as string, match[2] as string) : null;
}

export function isPointer(value: unknown): value is Pointer {
  return typeof value === 'object' && value !== null && (value as { __type?: unknown }).__type === 'Pointer';
}

export const POINTER_PREFIX = '_p_';

export function pointerColumn(field: string): string {
  return POINTER_PREFIX + field;
}

export function isPointerColumn(column: string): boolean {
  return column.startsWith(POINTER_PREFIX);
}
