#!/usr/bin/env node
import { launch } from '../launch/launch.js';

await launch('commands');
