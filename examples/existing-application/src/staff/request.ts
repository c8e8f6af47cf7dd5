import type { IncomingHttpHeaders } from 'node:http';
import type { Employee } from './staff.js';

/** What Express and Fastify have in common, and what the session guard adds. */
export interface Request {
  readonly headers: IncomingHttpHeaders;
  employee?: Employee;
}
