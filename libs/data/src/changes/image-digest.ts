import { createHash } from 'node:crypto';
import type { RowImage } from './row-transactions.js';

/** Identifies a row as it is stored. */
export const digestImage = (image: RowImage): string =>
  createHash('sha256').update(image).digest('base64url');
