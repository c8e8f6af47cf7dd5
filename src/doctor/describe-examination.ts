import { oneLine } from '#audit';
import type { Examination } from './examine.js';
import type { Level } from './finding.js';
import { MASK } from './masked-config.js';

/** Shorter texts stand in reports by chance. */
const SHORTEST_SECRET = 8;

const count = ({ findings }: Examination, level: Level) =>
  findings.filter((finding) => finding.level === level).length;

/** For people: the configuration in force, findings with their remedies, and a last line that counts. */
export function describeExamination(examination: Examination): string {
  const lines = [
    ...examination.config.map(({ path, value, origin }) => `${path} = ${JSON.stringify(value)}  (${origin})`),
    '',
    ...examination.findings.flatMap(({ check, level, found, remedy }) => [
      `${level.padEnd(4)}  ${check.padEnd(22)}  ${found}`,
      ...(remedy === undefined ? [] : [`${''.padEnd(30)}-> ${remedy}`]),
    ]),
    '',
    `${count(examination, 'ok')} ok, ${count(examination, 'warn')} warnings, ${count(examination, 'fail')} failures`,
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
