// `npm run audit`: asks the registry for known vulnerabilities of the lockfile, and compares them with the written verdicts
// (tools/audit-verdicts.json). Ends with 0 when each line has a verdict that still holds, with 1 when one lacks it, and with 2 when
// the registry could not be asked: then nothing is known. `--folder` names another project.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
export const VERDICTS = join(root, 'tools/audit-verdicts.json');

const KINDS = ['not affected', 'not packed', 'accepted'];

/**
 * @param {string} output what `npm audit --json` wrote
 * @returns {{ id: string, package: string, severity: string, title: string, url: string, range: string }[] | null} null: the
 * registry did not answer
 */
export function advisoriesOf(output) {
  let report;
  try {
    report = JSON.parse(output);
  } catch {
    return null;
  }
  const { vulnerabilities, metadata } = report ?? {};
  if (report?.error || typeof vulnerabilities !== 'object' || vulnerabilities === null || !metadata)
    return null;
  const found = new Map();
  for (const { via } of Object.values(vulnerabilities))
    // A text names another package of the list, which has the advisory.
    for (const one of via.filter((entry) => typeof entry === 'object')) {
      const id = /GHSA(-[0-9a-z]{4}){3}/.exec(one.url ?? '')?.[0] ?? String(one.source);
      found.set(`${id} ${one.name}`, {
        id,
        package: one.name,
        severity: one.severity,
        title: one.title,
        url: one.url,
        range: one.range,
      });
    }
  return [...found.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, one]) => one);
}

/**
 * @param verdicts entries `{ advisory, package, verdict, reason, until }`
 * @param today YYYY-MM-DD
 * @returns {{ issues: string[], lines: string[] }} what has to be done, and what was decided
 */
export function judge(advisories, verdicts, today) {
  const issues = verdicts.flatMap((one) => {
    const name = `${one.advisory} of ${one.package}`;
    if (!KINDS.includes(one.verdict)) return [`${name}: the verdict must be one of: ${KINDS.join(', ')}`];
    if (typeof one.reason !== 'string' || one.reason.length < 20)
      return [`${name}: the verdict needs a reason, in a sentence`];
    if (!/^\d{4}-\d{2}-\d{2}$/.test(one.until ?? '')) return [`${name}: until must be a date: YYYY-MM-DD`];
    if (!advisories.some(({ id, package: of }) => id === one.advisory && of === one.package))
      return [`${name}: the registry names it no more: remove the verdict`];
    if (one.until < today) return [`${name}: the verdict was good until ${one.until}: look again`];
    return [];
  });
  const lines = [];
  for (const { id, package: of, severity, title, range, url } of advisories) {
    const verdict = verdicts.find((one) => one.advisory === id && one.package === of);
    if (verdict)
      lines.push(`${id} ${of} (${severity}): ${verdict.verdict}, until ${verdict.until}: ${verdict.reason}`);
    else
      issues.push(
        `${id} ${of} ${range} (${severity}): ${title}. Update the package, or write a verdict into tools/audit-verdicts.json (${url})`,
      );
  }
  return { issues, lines };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const at = process.argv.indexOf('--folder');
  const cwd = at < 0 ? root : process.argv[at + 1];
  const verdicts = JSON.parse(readFileSync(at < 0 ? VERDICTS : join(cwd, 'audit-verdicts.json'), 'utf8'));
  const run = spawnSync('npm', ['audit', '--json', '--package-lock-only', '--fetch-retries=1'], {
    cwd,
    encoding: 'utf8',
    maxBuffer: 64 * 1_048_576,
  });
  const advisories = advisoriesOf(run.stdout ?? '');
  if (advisories === null) {
    const said = (run.stderr ?? '')
      .split('\n')
      .find((line) => /audit (?!endpoint)|ENOTFOUND|ECONN|\b[45]\d\d\b/.test(line));
    console.error(
      `FAIL the registry did not answer the audit${said ? `: ${said.replace(/^npm (warn|error) /, '')}` : ''}`,
    );
    console.error('Nothing was checked. Run the command where the registry serves audits.');
    process.exit(2);
  }
  const { issues, lines } = judge(advisories, verdicts, new Date().toISOString().slice(0, 10));
  for (const line of lines) console.log(`ok   ${line}`);
  for (const issue of issues) console.error(`FAIL ${issue}`);
  console.log(`${advisories.length} advisories, ${lines.length} with a verdict`);
  process.exit(issues.length === 0 ? 0 : 1);
}
