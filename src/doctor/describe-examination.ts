import { oneLine } from '#audit';
import type { Examination } from './examine.js';
import type { Level } from './finding.js';
import { MASK } from './masked-config.js';

/** Shorter texts stand in reports by chance. */
const SHORTEST_SECRET = 8;

const count = ({ findings }: Examination, level: Level) =>
  findings.filter((finding) => finding.level === level).length;

const ORDER: readonly Level[] = ['fail', 'warn', 'ok'];

/**
 * For people: findings with their remedies, what fails first, a line that counts, and the configuration in force.
 * @param all also options that nobody set
 */
export function describeExamination(examination: Examination, { all = false } = {}): string {
  const findings = ORDER.flatMap((level) => examination.findings.filter((one) => one.level === level));
  const shown = examination.config.filter(({ origin }) => all || origin !== 'default');
  const left = examination.config.length - shown.length;
  const lines = [
    ...findings.flatMap(({ check, level, found, remedy }) => [
      `${level.padEnd(4)}  ${check.padEnd(22)}  ${found}`,
      ...(remedy === undefined ? [] : [`${''.padEnd(30)}-> ${remedy}`]),
    ]),
    '',
    `${count(examination, 'ok')} ok, ${count(examination, 'warn')} warnings, ${count(examination, 'fail')} failures`,
    ...(examination.config.length === 0 ? [] : ['']),
    ...shown.map(({ path, value, origin }) => `${path} = ${JSON.stringify(value)}  (${origin})`),
    ...(left === 0 ? [] : [`${left} options have their defaults: --all tells them`]),
  ];
  return lines.map((line) => `${oneLine(withoutSecrets(line, examination.secrets))}\n`).join('');
}

/** For programs: `{ findings, config, counts }`. */
export function examinationJson(examination: Examination): string {
  const { secrets, findings, config } = examination;
  const counts = {
    ok: count(examination, 'ok'),
    warn: count(examination, 'warn'),
    fail: count(examination, 'fail'),
  };
  const clean = (_: string, value: unknown) =>
    typeof value === 'string' ? withoutSecrets(value, secrets) : value;
  return `${JSON.stringify({ findings, config, counts }, clean, 2)}\n`;
}

/** The last net: whatever a finding quotes, no secret of the configuration leaves in it. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= SHORTEST_SECRET)
    .reduce((clean, secret) => clean.replaceAll(secret, MASK), text);
}
