import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import { oneLine } from '#audit';
import { judgeCase, type PolicyCase, readPolicyCases, createSimulatedFor } from '#dispatcher';
import { ConfigError, inexactNumbers } from '#config';
import { loadWithPlugins, type SimulatedInstance } from '#parley/instance';
import { withConfig } from './command-options.js';
import { openConfiguredSimulation } from './simulation.js';
import { jsonText } from './text-output.js';

export interface PolicyTestOptions {
  readonly config?: string;
  readonly json?: boolean;
}

interface CaseResult {
  readonly file: string;
  readonly rule: string;
  /** Differences from the expectation of the case; empty when it passes. */
  readonly faults: readonly string[];
}

/** Runs files of policy cases; exit code 1 when one fails. */
export async function runPolicyTest(files: readonly string[], options: PolicyTestOptions): Promise<void> {
  const cases = files.flatMap((file) => readCases(file).map((policyCase) => ({ file, policyCase })));
  const env = withConfig(options.config);
  const simulation = await openConfiguredSimulation(await loadWithPlugins(env), env);
  const results: CaseResult[] = [];
  try {
    for (const { file, policyCase } of cases)
      results.push({ file, rule: policyCase.rule, faults: await listErrors(policyCase, simulation) });
  } finally {
    await simulation.close();
  }
  process.stdout.write(options.json ? `${jsonText(results)}\n` : describe(results));
  if (results.some(({ faults }) => faults.length > 0)) process.exitCode = 1;
}

/** @throws ConfigError listing every error of the file */
function readCases(file: string): PolicyCase[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    throw new ConfigError(file, [{ path: '', message: 'the file cannot be read' }]);
  }
  const document = parseDocument(text);
  const broken = [
    ...document.errors.map(({ message }) => message.split('\n', 1)[0] ?? 'not YAML'),
    ...inexactNumbers(document).map(({ path, message }) => `${path} ${message}`),
  ];
  const { cases, errors } =
    broken.length > 0 ? { cases: [], errors: broken } : readPolicyCases(document.toJS());
  if (errors.length === 0) return cases;
  throw new ConfigError(
    file,
    errors.map((message) => ({ path: '', message })),
  );
}

async function listErrors(
  policyCase: PolicyCase,
  { agents, simulator }: SimulatedInstance,
): Promise<string[]> {
  const agent = agents.get(policyCase.agent);
  if (!agent) return [`the configuration has no agent '${policyCase.agent}'`];
  const { tool, arguments: args, caller } = policyCase;
  return judgeCase(policyCase, await simulator.simulate(createSimulatedFor(agent, caller), tool, args));
}

function describe(results: readonly CaseResult[]): string {
  const failed = results.filter(({ faults }) => faults.length > 0);
  return [
    ...results.map(
      ({ file, rule, faults }) => `${faults.length === 0 ? 'ok    ' : 'FAILED'} ${file}: ${rule}`,
    ),
    ...failed.flatMap(({ file, rule, faults }) => [
      `${file}: ${rule}`,
      ...faults.map((error) => `  ${error}`),
    ]),
    `${results.length - failed.length} held, ${failed.length} failed`,
  ]
    .map((line) => `${oneLine(line)}\n`)
    .join('');
}
