import { IsInt, IsString } from 'class-validator';
import { Convert } from '#schema';

const MAX_LIMIT = 200;
const DEFAULT_LIMIT = 50;

/** The `limit` of a query: 50 by default, at most 200. */
export function readLimit(value: unknown): number {
  const asked = Number(value);
  return Number.isSafeInteger(asked) && asked > 0 ? Math.min(asked, MAX_LIMIT) : DEFAULT_LIMIT;
}

/** The part of a list that a query asks for. */
export class PageQuery {
  @Convert(readLimit)
  @IsInt()
  limit = DEFAULT_LIMIT;

  /** The last entry before the page. */
  @IsString()
  after = '';
}
