import { Logger } from '@nestjs/common';

const logger = new Logger('RowRights');
const reported = new Set<string>();

/** Row rights that nobody could read, and that so left everybody out: a line for each type of value, once per process. */
export function reportMalformed(type: string): void {
  if (reported.has(type)) return;
  reported.add(type);
  logger.warn(
    `[SECURITY] a row inside a row has _rperm of type ${type} instead of a list: nobody is shown such rows`,
  );
}
