import { Get, Inject, Res } from '@nestjs/common';
import type { ServerResponse } from 'node:http';
import { CurrentOperator, OperatorController } from '../console.guards.js';
import { LiveStreams } from '../live-streams.js';
import type { Operator } from '../operator-gate.js';

/** Streams calls, refusals and decisions of every replica as they are recorded. */
@OperatorController('console/api/live')
export class LiveController {
  constructor(@Inject(LiveStreams) private readonly streams: LiveStreams) {}

  @Get()
  watch(@CurrentOperator() operator: Operator, @Res() response: ServerResponse): void {
    this.streams.serve(operator, response);
  }
}
