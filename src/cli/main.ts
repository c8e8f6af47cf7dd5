import 'reflect-metadata';
import { Command } from 'commander';
import { oneLine } from '#audit';
import { StoreError } from '#data';
import { ConfigError } from '../config/config-faults.js';
import { runEmbedded } from './embedded.js';
import type { ExplainOptions } from './explain.js';
import type { CheckOptions } from './policy-check.js';
import type { DiffOptions } from './policy-diff.js';
import type { PolicyTestOptions } from './policy-test.js';
import type { RevokeOptions } from './revoke.js';
import { runSeed } from './seed.js';

const program = new Command('parley')
  .description('Serve Parse / MongoDB data to AI agents under a policy.')
  .showHelpAfterError();

program
  .command('serve')
  .description(
    'serve MCP over HTTP (configuration: PARLEY_CONFIG, default parley.yaml); without a command, this one runs',
  )
  .action(async () => {
    // Loaded only here, so that the other commands start at once.
    const { serve } = await import('../serve.js');
    await serve(process.env, process.cwd());
  });

program
  .command('stdio')
  .description('serve MCP on standard input and output, for the one client that started this process')
  .action(async () => {
    const { runStdio } = await import('./stdio.js');
    await runStdio(process.env, process.cwd());
  });

program
  .command('embedded')
  .description('run the development database alone, seeded if told')
  .option('--port <number>', 'port on 127.0.0.1 (0: a free one)', '27017')
  .option('--seed <file>', 'seed file to load at start')
  .option('--database <name>', 'database that the seed goes into', 'parley')
  .option('--data <file>', 'keep the data in this journal file (default: memory only)')
  .action(runEmbedded);

program
  .command('seed')
  .argument('<file>', 'seed file')
  .description('load a seed into an empty database (MONGODB_URI, or database.uri of the configuration)')
  .action(runSeed);

program
  .command('hash-key')
  .option('--generate', 'make a new key, and write it beside its hash')
  .description(
    'write the hash of an API key for the configuration (apiKeyHash); the key is read from standard input',
  )
  .action(async (options: { generate?: boolean }) => {
    const { runHashKey } = await import('./hash-key.js');
    await runHashKey(options);
  });

const CONFIG = ['--config <file>', 'configuration file (default: PARLEY_CONFIG, else parley.yaml)'] as const;
const JSON_OUTPUT = ['--json', 'write JSON instead of text'] as const;

program
  .command('explain')
  .argument('<tool>', 'name of a tool')
  .argument('<json>', 'its arguments, a JSON object')
  .requiredOption('--as <agent>', 'name of an agent of the configuration')
  .option('--user <id>', "whose session it is, for an agent that reads with its caller's (default: nobody's)")
  .option(...CONFIG)
  .option(...JSON_OUTPUT)
  .description('tell what would come of a call, gate by gate; reads the schema and touches nothing')
  .action(async (tool: string, text: string, options: ExplainOptions) => {
    const { runExplain } = await import('./explain.js');
    await runExplain(tool, text, options);
  });

program
  .command('revoke')
  .requiredOption('--issuer <url>', 'issuer of the tokens, as configured')
  .option('--subject <sub>', 'take back every token of this subject that was issued until now')
  .option('--client <id>', 'those that this client got')
  .option('--token <jti>', 'one token, by its id')
  .option('--for <seconds>', 'how long it is remembered: at least as long as a token lives', '86400')
  .option(...CONFIG)
  .description('take access tokens back on all replicas (revocationList)')
  .action(async (options: RevokeOptions) => {
    const { runRevoke } = await import('./revoke.js');
    await runRevoke(options);
  });

const policy = program.command('policy').description('check, test and compare policies');

policy
  .command('check')
  .option(...CONFIG)
  .option(...JSON_OUTPUT)
  .description('list every fault (exit code 1) and every warning of a configuration')
  .action(async (options: CheckOptions) => {
    const { runPolicyCheck } = await import('./policy-check.js');
    await runPolicyCheck(options);
  });

policy
  .command('test')
  .argument('<files...>', 'policy cases, YAML or JSON')
  .option(...CONFIG)
  .option(...JSON_OUTPUT)
  .description('run policy cases; exit code 1 when one does not hold')
  .action(async (files: string[], options: PolicyTestOptions) => {
    const { runPolicyTest } = await import('./policy-test.js');
    await runPolicyTest(files, options);
  });

policy
  .command('diff')
  .argument('<old>', 'configuration file')
  .argument('<new>', 'configuration file')
  .option(...JSON_OUTPUT)
  .option('--fail-on-widening', 'exit code 1 when an agent gains anything')
  .description('tell which agent gains or loses which tool, class, operation, field and row limit')
  .action(async (before: string, after: string, options: DiffOptions) => {
    const { runPolicyDiff } = await import('./policy-diff.js');
    await runPolicyDiff(before, after, options);
  });

try {
  // A default of its own, so that a mistyped command is told as such.
  const asked = process.argv.slice(2);
  await program.parseAsync(asked.length > 0 ? asked : ['serve'], { from: 'user' });
} catch (error) {
  process.stderr.write(`${told(error)}\n`);
  process.exitCode = 1;
}

function told(error: unknown): string {
  if (error instanceof StoreError) return `the database could not be read (${error.code})`;
  return error instanceof ConfigError ? error.message : oneLine((error as Error).message);
}
