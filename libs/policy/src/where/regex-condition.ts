import { regexFault } from '../regex-safety.js';
import { blocked } from '../security-reason.js';

const MAX_CHARACTERS = 256;
const OPTIONS = /^[imx]{0,8}$/;

/** `$regex` with its `$options`, both judged. @throws Refused `security_blocked` */
export function regexCondition(pattern: unknown, options: unknown): Record<string, unknown> {
  if (typeof pattern !== 'string') throw blocked('where', 'invalid_regex');
  if (options !== undefined && (typeof options !== 'string' || !OPTIONS.test(options))) {
    throw blocked('where', 'invalid_regex');
  }
  if (Array.from(pattern).length > MAX_CHARACTERS) throw blocked('where', 'regex_too_long');
  const fault = regexFault(pattern, options);
  if (fault) throw blocked('where', fault);
  return { $regex: pattern, ...(options !== undefined && options !== '' && { $options: options }) };
}
