import { type INestApplicationContext, Logger } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { EventEmitter2 } from '@nestjs/event-emitter';

interface Emitter {
  emit(event: string | readonly string[], ...values: unknown[]): unknown;
}

const isEmitter = (value: unknown): value is Emitter =>
  typeof (value as { emit?: unknown } | null | undefined)?.emit === 'function';

/** By its name: the application may have a copy of the package of its own. */
function emitterOf(discovery: DiscoveryService): Emitter | null {
  for (const { name, instance } of discovery.getProviders()) {
    const made = instance as unknown;
    if (name === EventEmitter2.name && isEmitter(made)) return made;
  }
  return null;
}

/**
 * Publishes the events of an instance (`parse.agent.*`, `parley.audit`) on the application's `EventEmitter2`, where it has one: what
 * `@OnEvent` listens to. A listener that throws is logged and fails no call.
 */
export function publishEvents(context: INestApplicationContext, discovery: DiscoveryService): void {
  const application = emitterOf(discovery);
  if (application === null) return;
  const logger = new Logger('Parley');
  context.get(EventEmitter2).onAny((event: string | string[], ...values: unknown[]) => {
    try {
      application.emit(event, ...values);
    } catch (error) {
      logger.error(`a listener to '${String(event)}' failed: ${String(error)}`);
    }
  });
}
