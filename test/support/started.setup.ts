import { afterAll } from 'vitest';
import { endStarted } from './started.js';

afterAll(endStarted);
