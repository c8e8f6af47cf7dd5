import 'reflect-metadata';
import { Command, CommanderError } from 'commander';
import { oneLine } from '#audit';
import { StoreError } from '#data';
import { connectionProblem } from '#data-mongo';
import { productVersion } from '#parley/instance';
import { ConfigError, configurationSchema, dotEnv } from '#config';
import { demoConfig } from './demo.js';
import { type StartOptions, UsageError, withStartOptions } from './command-options.js';
import { jsonText } from './text-output.js';

/** Commands that serve data; the others check an existing configuration, or take none. */
const SHOWS_THE_DEMO = ['serve', 'stdio', 'explain', 'chat', 'console', 'tool'];

const program = new Command('parley')
  .description('Serve Parse / MongoDB data to AI agents under a policy.')
  .version(productVersion(), '-v, --version', 'print the version')
  .showHelpAfterError('(parley COMMAND --help lists what it takes)')
  .exitOverride()
  .hook('preAction', (_program, command) => {
    // A client on a pipe that goes away ends its service in order.
    if (command.name() !== 'stdio') process.stdout.on('error', endWithoutReader);
    Object.assign(process.env, dotEnv(process.env, process.cwd()));
    const named = command.opts<{ config?: string }>().config !== undefined;
    if (named || !SHOWS_THE_DEMO.includes(command.name())) return;
    const demo = demoConfig(process.env, process.cwd());
    if (demo === null) return;
    process.env['PARLEY_CONFIG'] = demo;
    process.stderr.write('There is no parley.yaml here: this is the demo.\n');
  });

/** What reads the output has read enough (`| head`): the rest is for nobody. An output that is cut for another reason is an error. */
function endWithoutReader({ code = 'unknown' }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE') process.exit();
  process.stderr.write(`the output cannot be written (${code})\n`);
  process.exit(1);
}

const CONFIG = ['--config <file>', 'configuration file (default: PARLEY_CONFIG, else parley.yaml)'] as const;
const JSON_OUTPUT = ['--json', 'write JSON instead of text'] as const;

/** The action of a command, whose code is loaded only when it runs: the others start fast. */
const run =
  <Given extends unknown[]>(load: () => Promise<(...given: Given) => Promise<void>>) =>
  async (...given: Given): Promise<void> =>
    (await load())(...given);

program
  .command('serve')
  .option(...CONFIG)
  .option('--port <number>', 'instead of server.port; 0: a free one')
  .description(
    'serve MCP over HTTP (configuration: PARLEY_CONFIG, else parley.yaml, else the demo); without a command, this one runs',
  )
  .action(async (options: StartOptions) => {
    const env = withStartOptions(options);
    const { serve } = await import('../serve.js');
    await serve(env, process.cwd());
  });

program
  .command('stdio')
  .option(...CONFIG)
  .option('--port <number>', 'as of serve; a pipe listens nowhere')
  .description('serve MCP on standard input and output, for the one client that started this process')
  .action(async (options: StartOptions) => {
    const { runStdio } = await import('./stdio.js');
    await runStdio(withStartOptions(options), process.cwd());
    // Lines of the log that nobody reads would keep the process.
    process.stdout.write('', () => process.exit());
  });

program
  .command('embedded')
  .description('run the development database alone, empty or with a seed')
  .option('--port <number>', 'port on 127.0.0.1 (0: a free one)', '27017')
  .option('--seed <file>', 'seed file to load at start')
  .option('--database <name>', 'database that the seed goes into', 'parley')
  .option('--data <file>', 'keep the data in this journal file (default: memory only)')
  .option(
    '--fsync <when>',
    'write changes to disk before they are answered (always) or up to 100 ms after (interval)',
    'interval',
  )
  .option('--members <number>', 'members of its replica set, each with a port of its own', '1')
  .action(run(async () => (await import('./embedded.js')).runEmbedded));

program
  .command('seed')
  .argument('<file>', 'seed file')
  .description('load a seed into an empty database (MONGODB_URI, or database.uri of the configuration)')
  .action(run(async () => (await import('./seed.js')).runSeed));

program
  .command('init')
  .option('--uri <uri>', 'database to read, mongodb://HOST/DATABASE (default: MONGODB_URI)')
  .option(
    '--out <file>',
    'file to write, never over an existing one; -: standard output (default: parley.yaml, with --database: -)',
  )
  .option(
    '--database <name>',
    'a database beside the first one of the configuration, whose classes are written',
  )
  .option('--tenant <tenant>', 'with --database, where each tenant has its own: whose is read')
  .option(...CONFIG)
  .description('read a live database and write a first configuration for it, with what looks secret left out')
  .action(run(async () => (await import('./init.js')).runInit));

program
  .command('schema')
  .description('write the JSON Schema of parley.yaml, for editors that complete and check it')
  .action(() => {
    process.stdout.write(jsonText(configurationSchema()));
  });

program
  .command('hash-key')
  .option('--generate', 'make a new key, and write it beside its hash')
  .description(
    'write the hash of an API key for the configuration (apiKeyHash); the key is read from standard input',
  )
  .action(run(async () => (await import('./hash-key.js')).runHashKey));

program
  .command('keys')
  .option(...CONFIG)
  .option(...JSON_OUTPUT)
  .description('list the rules of auth: name, kind, agent, end, and the last call by the audit records')
  .action(run(async () => (await import('./keys.js')).runKeys));

const AGENT = ['--agent <name>', 'agent of the configuration (default: the only one)'] as const;

program
  .command('explain')
  .argument('<tool>', 'name of a tool')
  .argument('<json>', 'its arguments, a JSON object')
  .option(...AGENT)
  .option(
    '--user <id>',
    "whose session it is, for an agent that reads with its caller's, and the user in row filters (default: nobody's)",
  )
  .option('--tenant <id>', 'the tenant of the caller (default: that of the agent)')
  .option('--claims <json>', 'claims of the caller, a JSON object (default: none)')
  .option(...CONFIG)
  .option(...JSON_OUTPUT)
  .description('simulate a call, gate by gate, and send nothing; exit code 1 when it would be refused')
  .action(run(async () => (await import('./explain.js')).runExplain));

program
  .command('doctor')
  .option(...CONFIG)
  .option(...JSON_OUTPUT)
  .option('--all', 'also every option in force, with where its value comes from')
  .description('look at configuration, files, databases and limits; exit code 1 when something fails')
  .action(run(async () => (await import('./doctor.js')).runDoctor));

program
  .command('chat')
  .option(...AGENT)
  .option(...CONFIG)
  .description('ask questions in plain words; a language model answers them with the tools of an agent')
  .action(run(async () => (await import('./chat.js')).runChat));

program
  .command('console')
  .option(...AGENT)
  .option(...CONFIG)
  .description('a JavaScript prompt with the tools of an agent')
  .action(run(async () => (await import('./console.js')).runConsole));

program
  .command('tool')
  .argument('[name]', 'name of a tool')
  .argument('[json]', 'its arguments, a JSON object (default: {})')
  .option('--list', 'list the tools of the agent instead')
  .option(...AGENT)
  .option(...CONFIG)
  .description(
    'call one tool; its result is JSON on stdout. Exit codes: 0 done, 1 refused or failed, 2 wrong usage',
  )
  .action(run(async () => (await import('./tool.js')).runTool));

program
  .command('revoke')
  .requiredOption('--issuer <url>', 'issuer of the tokens, as configured')
  .option('--subject <sub>', 'revoke every token issued to this subject until now')
  .option('--client <id>', 'revoke every token issued to this client until now')
  .option('--token <jti>', 'revoke one token, by its id')
  .option('--for <seconds>', 'how long the revocation is stored: at least the lifetime of a token', '86400')
  .option(...CONFIG)
  .description('revoke access tokens (revocationList) and console sessions on all replicas')
  .action(run(async () => (await import('./revoke.js')).runRevoke));

/** Options of a command that asks a running service. */
const withService = (command: Command) =>
  command
    .option('--url <url>', 'of the service (default: PARLEY_URL, else that of the configuration)')
    .option(...CONFIG);

withService(program.command('status'))
  .option(...JSON_OUTPUT)
  .description('whether a running service is ready; with an operator’s PARLEY_API_KEY also its status')
  .action(run(async () => (await import('./status.js')).runStatus));

const agents = program
  .command('agents')
  .description(
    'list, suspend and resume the agents of a running service; PARLEY_API_KEY holds the key of an operator',
  );

withService(agents.command('list'))
  .option(...JSON_OUTPUT)
  .description('the agents, and which are suspended: since when, by whom and why')
  .action(run(async () => (await import('./agents.js')).listAgents));

for (const [action, what] of [
  ['suspend', 'refuse every call of an agent at once, on all replicas, until it is resumed'],
  ['resume', 'let a suspended agent call again'],
] as const)
  withService(
    agents.command(action).argument('<name>').option('--reason <text>', 'for operators and the audit record'),
  )
    .description(what)
    .action(run(async () => (await import('./agents.js')).changeAgent(action)));

const approvals = program
  .command('approvals')
  .description(
    'list and decide pending approvals of a running service; PARLEY_API_KEY holds the key of an approver',
  );

withService(approvals.command('list'))
  .option(...JSON_OUTPUT)
  .description('pending approvals, the next one to expire first')
  .action(run(async () => (await import('./approvals.js')).listApprovals));

withService(approvals.command('show').argument('<id>'))
  .description('one pending approval: what would be changed, and its digest')
  .action(run(async () => (await import('./approvals.js')).showApproval));

for (const decision of ['approve', 'deny'] as const)
  withService(
    approvals
      .command(decision)
      .argument('<id>')
      .option('--digest <digest>', 'of what was shown: a case that changed since is not decided')
      .option('--reason <text>', 'for the agent and the audit record'),
  )
    .description(`${decision} a pending approval as it was shown`)
    .action(run(async () => (await import('./approvals.js')).decideApproval(decision)));

const changes = program
  .command('changes')
  .description(
    'list change sets of a running service and take them back; PARLEY_API_KEY holds the key of an operator',
  );

withService(
  changes
    .command('list')
    .option('--agent <name>', 'whose sets')
    .option('--key <name>', 'with a row that was written by the credential of this name')
    .option('--class <name>', 'with a row of this class')
    .option(
      '--since <time>',
      'applied (or opened, where not applied) at this time or later: a date, or a time with its zone',
    )
    .option('--until <time>', 'the same before this time')
    .option('--state <state>', 'waiting, open, submitted, applied, undone, denied, discarded or expired'),
)
  .option(...JSON_OUTPUT)
  .description('change sets, newest first')
  .action(run(async () => (await import('./changes.js')).listChanges));

withService(changes.command('show').argument('<id>'))
  .description('one change set, row by row')
  .action(run(async () => (await import('./changes.js')).showChanges));

withService(changes.command('discard').argument('<id>'))
  .description('drop a change set that is not applied')
  .action(run(async () => (await import('./changes.js')).discardChanges));

for (const decision of ['approve', 'deny'] as const)
  withService(
    changes
      .command(decision)
      .argument('<id>')
      .option('--digest <text>', 'of what parley approvals show printed')
      .option('--reason <text>', 'for the agent'),
  )
    .description(`${decision} a change set that waits, as it was shown`)
    .action(run(async () => (await import('./changes.js')).decideChanges(decision)));

withService(
  changes
    .command('undo')
    .argument('[id]')
    .option('--agent <name>', 'take back what this agent wrote within a time')
    .option('--key <name>', 'only the rows that were written by the credential of this name')
    .option('--since <time>', 'a date, or a time with its zone; included')
    .option('--until <time>', 'the same, not included (default: now)')
    .option('--dry-run', 'only list what would be taken back, and what is in conflict')
    .option('--skip-conflicts', 'leave out rows that somebody has changed since'),
)
  .option(...JSON_OUTPUT)
  .description('take back one change set, or what an agent wrote within a time')
  .action(run(async () => (await import('./changes.js')).undoChanges));

program
  .command('completion')
  .argument('<shell>', 'bash, zsh or fish')
  .description('a script by which a shell completes commands and options: source <(parley completion bash)')
  .action(async (shell: string) => {
    const { writeCompletion } = await import('./completion.js');
    writeCompletion(shell, program);
  });

program
  .command('usage')
  .requiredOption('--since <time>', 'a date, or a time with its zone; included')
  .option('--until <time>', 'the same, not included (default: now)')
  .option('--csv', 'write CSV instead of text')
  .option(...CONFIG)
  .option(...JSON_OUTPUT)
  .description('calls, rows, tokens and cost by day, agent and tenant, from the audit records')
  .action(run(async () => (await import('./usage.js')).runUsage));

const policy = program.command('policy').description('check, test and compare policies');

policy
  .command('check')
  .option(...CONFIG)
  .option(...JSON_OUTPUT)
  .option('--strict', 'exit code 1 for warnings as well')
  .description('list every error (exit code 1) and every warning of a configuration')
  .action(run(async () => (await import('./policy-check.js')).runPolicyCheck));

policy
  .command('test')
  .argument('<files...>', 'policy cases, YAML or JSON')
  .option(...CONFIG)
  .option(...JSON_OUTPUT)
  .description('run policy cases; exit code 1 when one does not hold')
  .action(run(async () => (await import('./policy-test.js')).runPolicyTest));

policy
  .command('diff')
  .argument('<old>', 'configuration file')
  .argument('<new>', 'configuration file')
  .option(...JSON_OUTPUT)
  .option('--fail-on-widening', 'exit code 1 when an agent gains anything')
  .description('show which agent gains or loses which tool, class, operation, field and row limit')
  .action(run(async () => (await import('./policy-diff.js')).runPolicyDiff));

policy
  .command('suggest')
  .option('--file <files...>', 'audit files (default: the sinks of the configuration)')
  .option('--from <time>', 'only records since then: a date, or a time with its zone')
  .option(
    '--named-classes',
    'take the classes that calls named or joined for all that they need, also where they may have used others',
  )
  .option(...CONFIG)
  .option(...JSON_OUTPUT)
  .description(
    'write the narrowest policy that the recorded calls would have passed, as a diff; it changes no file',
  )
  .action(run(async () => (await import('./policy-suggest.js')).runPolicySuggest));

const audit = program.command('audit').description('verify and search audit records');
const AUDIT_FILES = ['[files...]', 'audit files (default: the sinks of the configuration)'] as const;

audit
  .command('verify')
  .argument(...AUDIT_FILES)
  .option(...CONFIG)
  .option('--mongo', 'the mongodb sinks of the configuration as well')
  .option('--head <head...>', 'a head that was kept elsewhere: chain:sequence:hash')
  .option('--partial', 'beginnings and chains that are not given are notes, not errors')
  .option(...JSON_OUTPUT)
  .description('name the first record that was altered, removed or moved; exit code 1 when there is one')
  .action(run(async () => (await import('./audit.js')).runAuditVerify));

audit
  .command('search')
  .argument(...AUDIT_FILES)
  .option(...CONFIG)
  .option('--from <time>', 'a date, or a time with its zone; included')
  .option('--to <time>', 'the same, not included')
  .option('--type <type>', 'tool_call, approval, authentication, …')
  .option('--agent <name>')
  .option('--tool <name>')
  .option('--class <name>', 'the class that a call named')
  .option('--object-id <id>', 'of the row that a call wrote, with audit.objects: id')
  .option('--object-digest <digest>', 'of the row that a call wrote')
  .option('--principal <name>')
  .option('--key <name>', 'of the key of the caller')
  .option('--tenant <id>')
  .option('--outcome <outcome>', 'success or failure')
  .option('--gate <name>', 'the gate that refused')
  .option('--code <code>', 'code of a refusal')
  .option('--address <address>', 'network address of a refused caller')
  .option('--correlation-id <id>')
  .option('--request-id <id>', '`X-Request-Id` of the request')
  .option('--trace-id <id>')
  .option('--limit <number>', 'entries of a page, at most 200', '50')
  .option('--cursor <cursor>', 'of the page before')
  .option(...JSON_OUTPUT)
  .description('find audit records, newest first')
  .action(run(async () => (await import('./audit.js')).runAuditSearch));

/**
 * `help COMMAND` as `COMMAND --help`, and no help of a command that there is not: commander would show that of the group that lacks
 * it.
 */
function withoutHelpCommand(args: readonly string[]): readonly string[] {
  const at = args.indexOf('help');
  let group: Command = program;
  for (const [index, word] of args.entries()) {
    if (group.commands.length === 0) return args;
    if (index === at) return withoutHelpCommand([...args.slice(0, at), ...args.slice(at + 1), '--help']);
    if (word.startsWith('-')) continue;
    const named = group.commands.find((command) => command.name() === word);
    if (!named) return args.slice(0, index + 1);
    group = named;
  }
  return args;
}

/** The program of the `parley` command. @param args default: those of the process */
export async function runCommandLine(args: readonly string[] = process.argv.slice(2)): Promise<void> {
  try {
    // Not a default command of commander, so that a mistyped command is reported.
    await program.parseAsync(args.length > 0 ? withoutHelpCommand(args) : ['serve'], { from: 'user' });
  } catch (error) {
    process.exitCode = findExitCode(error);
    // Commander has written the message already.
    if (!(error instanceof CommanderError)) process.stderr.write(`${readMessage(error)}\n`);
  }
}

/** 0 success, 1 a finding, refusal or failure, 2 wrong usage (docs/reference/configuration.md#commands). */
function findExitCode(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  return error instanceof UsageError ? 2 : 1;
}

function readMessage(error: unknown): string {
  if (error instanceof StoreError) {
    const problem = connectionProblem(error);
    const why = problem === null ? '' : `: ${problem.found}; ${problem.remedy}`;
    return `the database could not be read (${error.code})${why}`;
  }
  return error instanceof ConfigError ? error.message : oneLine((error as Error).message);
}
