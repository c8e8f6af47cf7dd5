#!/usr/bin/env node
// `npx parley …` from a checkout: builds when the sources are newer than dist/, then runs the command line.
import { build } from './build/build.mjs';

const status = build({ ifNeeded: true });
if (status !== 0) process.exit(status);
await import('../dist/bundle/cli.js');
