import { Injectable, Logger } from '@nestjs/common';
import { Tool, type ToolCall } from '@parley/server';
import { EventEmitter, once } from 'node:events';
import { z } from 'zod';

const Delivery = z.object({ from: z.string().min(1).max(80) });

@Injectable()
export class DeliveryTools {
  private readonly log = new Logger('Gate');
  private readonly gate = new EventEmitter();

  /** `signal` ends when the client cancels or goes away, and when the time is up: whatever a tool waits for must listen to it. */
  @Tool({ name: 'await_delivery', description: 'Waits for the next delivery.', timeout: 120 })
  async wait(_: object, call: ToolCall) {
    call.progress({ progress: 1, message: 'waiting at the gate' });
    try {
      const [from] = (await once(this.gate, 'arrived', { signal: call.signal })) as [string];
      return { from };
    } finally {
      if (call.signal.aborted) this.log.log('nobody waits any more');
    }
  }

  @Tool({ name: 'announce_delivery', description: 'Notifies those who wait at the gate.', input: Delivery })
  announce({ from }: z.output<typeof Delivery>) {
    return { heard: this.gate.emit('arrived', from) };
  }
}
