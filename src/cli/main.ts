import 'reflect-metadata';
import { Command } from 'commander';
import { ConfigError } from '../config/config-faults.js';
import { runEmbedded } from './embedded.js';
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

try {
  // A default of its own, so that a mistyped command is told as such.
  const asked = process.argv.slice(2);
  await program.parseAsync(asked.length > 0 ? asked : ['serve'], { from: 'user' });
} catch (error) {
  process.stderr.write(`${error instanceof ConfigError ? error.message : (error as Error).message}\n`);
  process.exitCode = 1;
}
