import { readFileSync } from 'node:fs';
import { judgeCases, type JudgedCase, type PolicyCase, readPolicyCases } from '#dispatcher';
import { ConfigError, readYaml } from '#config';
import { loadWithPlugins } from '#parley/instance';
import { type OutputOptions, withConfig } from './command-options.js';
import { openConfiguredSimulation } from './simulation.js';
import { jsonText, textLines } from './text-output.js';

interface CaseResult extends JudgedCase {
  readonly file: string;
}

/** Runs files of policy cases; exit code 1 when one fails. */
export async function runPolicyTest(files: readonly string[], options: OutputOptions): Promise<void> {
  const read = files.map((file) => ({ file, cases: readCases(file) }));
  const env = withConfig(options.config);
  const simulation = await openConfiguredSimulation(await loadWithPlugins(env), env);
  const results: CaseResult[] = [];
  try {
    for (const { file, cases } of read)
      results.push(...(await judgeCases(cases, simulation)).map((judged) => ({ file, ...judged })));
  } finally {
    await simulation.close();
  }
  process.stdout.write(options.json ? jsonText(results) : describe(results));
  if (results.some(({ faults }) => faults.length > 0)) process.exitCode = 1;
}

/** @throws ConfigError listing every error of the file */
function readCases(file: string): PolicyCase[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    const message = code === 'ENOENT' ? 'no such file' : `cannot be read (${code})`;
    throw new ConfigError(file, [{ path: '', at: file, message }]);
  }
  const { value, errors: broken } = readYaml(text, file);
  if (broken.length > 0) throw new ConfigError(file, broken);
  const { cases, errors } = readPolicyCases(value);
  if (errors.length === 0) return cases;
  throw new ConfigError(
    file,
    errors.map((message) => ({ path: '', at: file, message })),
  );
}

function describe(results: readonly CaseResult[]): string {
  const failed = results.filter(({ faults }) => faults.length > 0);
  return textLines([
    ...results.map(
      ({ file, rule, faults }) => `${faults.length === 0 ? 'ok    ' : 'FAILED'} ${file}: ${rule}`,
    ),
    ...failed.flatMap(({ file, rule, faults }) => [
      `${file}: ${rule}`,
      ...faults.map((error) => `  ${error}`),
    ]),
    `${results.length - failed.length} held, ${failed.length} failed`,
  ]);
}
