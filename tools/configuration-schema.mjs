// Prints the JSON Schema of a configuration file (parley.yaml), for editors: node tools/configuration-schema.mjs > parley.schema.json
import { build } from './build.mjs';

const status = build({ ifNeeded: true });
if (status !== 0) process.exit(status);
const { configurationSchema } = await import('../dist/libs/config/src/config.js');
process.stdout.write(`${JSON.stringify(configurationSchema(), null, 2)}\n`);
