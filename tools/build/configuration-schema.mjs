// Writes dist/parley.schema.json, the JSON Schema of parley.yaml, which the package and the image hold for editors.
import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import { configurationSchema } from '../../dist/libs/config/src/index.js';

const file = new URL('../../dist/parley.schema.json', import.meta.url);
writeFileSync(file, `${JSON.stringify(configurationSchema(), null, 2)}\n`);
