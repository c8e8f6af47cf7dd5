import { type SimulatedCall, createSimulatedFor, type StoreCommand } from '#dispatcher';
import { loadWithPlugins } from '#parley/instance';
import { chooseAgent, type OutputOptions, readObject, withConfig } from './command-options.js';
import { openConfiguredSimulation } from './simulation.js';
import { jsonText, textTable, textLines } from './text-output.js';

interface ExplainOptions extends OutputOptions {
  /** A name of the configuration; optional where there is only one agent. */
  readonly agent?: string;
  readonly user?: string;
  readonly tenant?: string;
  /** A JSON object. */
  readonly claims?: string;
}

/** Simulates a call, gate by gate, and sends nothing. Exit code 1 where it would be refused. */
export async function runExplain(tool: string, text: string, options: ExplainOptions): Promise<void> {
  const args = readObject(text, 'the arguments');
  const { user, tenant } = options;
  const claims = options.claims === undefined ? undefined : readObject(options.claims, 'the claims');
  const env = withConfig(options.config);
  const simulation = await openConfiguredSimulation(
    await loadWithPlugins(env),
    env,
    user === undefined ? {} : { user },
  );
  try {
    const [, chosen] = chooseAgent(simulation.agents, options.agent);
    const agent = createSimulatedFor(chosen, {
      ...(user !== undefined && { user }),
      ...(tenant !== undefined && { tenant }),
      ...(claims && { claims }),
    });
    const simulated = await simulation.simulator.simulate(agent, tool, args);
    const output = options.json ? jsonText(simulated) : describeSimulation(simulated);
    process.stdout.write(output);
    if (!simulated.allowed) process.exitCode = 1;
  } finally {
    await simulation.close();
  }
}

/**
 * A simulated call as text: verdict, gates in their order, injected limits, the commands that the database would have
 * received.
 */
function describeSimulation(simulated: SimulatedCall): string {
  return [verdict(simulated), gates(simulated), limits(simulated), masks(simulated), commands(simulated)]
    .filter((part) => part !== '')
    .join('\n');
}

function verdict({ tool, agent, allowed, asksApproval, refusal }: SimulatedCall): string {
  const came = allowed ? `allowed${asksApproval ? ', once a person approved it' : ''}` : 'refused';
  const lines = [`${tool} as ${agent}: ${came}`];
  if (refusal) {
    const { code, details, message, cause, opaque } = refusal;
    lines.push(`  code     ${code}${details?.kind ? `, kind ${details.kind}` : ''}`);
    if (details?.denied_field !== undefined) lines.push(`  field    ${details.denied_field}`);
    lines.push(`  told     ${opaque ? 'Invalid params' : message}`);
    if (cause !== undefined) lines.push(`  because  ${cause}`);
  }
  return textLines(lines);
}

function gates({ passed, refusal }: SimulatedCall): string {
  return textTable(
    ['GATE', 'VERDICT', 'ABOUT'],
    [
      ...passed.map(({ gate, subject = '' }) => [gate, 'passed', subject]),
      ...(refusal ? [[refusal.gate, 'refused', refusal.details?.denied_field ?? '']] : []),
    ],
  );
}

function limits({ injected }: SimulatedCall): string {
  if (injected.length === 0) return '';
  return textTable(
    ['INJECTED INTO', 'BY', 'ROWS MUST MEET'],
    injected.map(({ className, origin, where }) => [className, origin, JSON.stringify(where)]),
  );
}

function masks({ masked }: SimulatedCall): string {
  if (masked.length === 0) return '';
  return textTable(
    ['MASKED IN', 'FIELD', 'AS'],
    masked.map(({ className, field, mask }) => [className, field, mask]),
  );
}

function commands(simulated: SimulatedCall): string {
  if (simulated.commands.length === 0) return '';
  return textTable(
    ['WOULD BE SENT', 'TO', ''],
    simulated.commands.flatMap((command) => [
      [
        command.command,
        command.query.className,
        command.database ? `of the database ${command.database}` : '',
      ],
      ...details(command).map(([name, value]) => ['', name, JSON.stringify(value)]),
    ]),
  );
}

/** Members of the query that have a value. */
function details({ query }: StoreCommand): [string, unknown][] {
  return Object.entries(query).filter(
    ([name, value]) => name !== 'className' && !(Array.isArray(value) && value.length === 0),
  );
}
