import { Logger } from '@nestjs/common';
import type { ReportBindingIssues } from '#policy';

/**
 * Logs which classes are refused because their rules do not match their fields: one line for each mistake as long as it
 * exists, and one line when all rules match again.
 */
export function misfitReport(log: Pick<Logger, 'warn'> = new Logger('Policy')): ReportBindingIssues {
  let told = '';
  return (faults) => {
    const lines = faults.map(
      ({ className, path, message }) => `class '${className}' is refused to agents: ${path}: ${message}`,
    );
    if (lines.join() === told) return;
    told = lines.join();
    for (const line of lines) log.warn(line);
    if (lines.length === 0) log.warn('every class fits its rules again');
  };
}
