import type { Subscription } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { BusMessage, MessageBus } from '../ports/stores.js';

/** Two replicas that share one bus; over one process they are the same object. */
export type MakeReplicas = () => Promise<readonly [MessageBus, MessageBus]>;

export function messageBusContract(name: string, make: MakeReplicas): void {
  describe(`${name} keeps the contract of a message bus`, () => {
    const open: Subscription[] = [];
    afterEach(() => {
      for (const subscription of open.splice(0)) subscription.unsubscribe();
    });
    const listen = (bus: MessageBus, topic: string) => {
      const heard: BusMessage[] = [];
      const subscription = bus.messages(topic).subscribe((message) => heard.push(message));
      open.push(subscription);
      return { heard, subscription };
    };

    it('reaches every listener on every replica, that of the publisher included', async () => {
      const [here, there] = await make();
      const ears = [listen(here, 't'), listen(here, 't'), listen(there, 't')];
      await here.publish('t', { n: 1, deep: [{ a: null }] });
      for (const { heard } of ears)
        await vi.waitFor(() => expect(heard).toEqual([{ n: 1, deep: [{ a: null }] }]), 10_000);
    });

    it('keeps topics apart, however alike they are', async () => {
      const [here, there] = await make();
      const ears = ['t', 'T', 't:', 't*', ''].map((topic) => ({ topic, ...listen(there, topic) }));
      for (const { topic } of ears) await here.publish(topic, { topic });
      for (const { topic, heard } of ears) await vi.waitFor(() => expect(heard).toEqual([{ topic }]), 10_000);
    });

    it('delivers the messages of one publisher in their order', async () => {
      const [here, there] = await make();
      const { heard } = listen(there, 't');
      await Promise.all(Array.from({ length: 50 }, (_, n) => here.publish('t', { n })));
      await vi.waitFor(() => expect(heard).toHaveLength(50), 10_000);
      expect(heard.map(({ n }) => n)).toEqual(Array.from({ length: 50 }, (_, n) => n));
    });

    it('delivers nothing more to a listener that left, and everything to those that stay', async () => {
      const [here, there] = await make();
      const gone = listen(there, 't');
      const stays = listen(there, 't');
      gone.subscription.unsubscribe();
      await here.publish('t', { n: 1 });
      await vi.waitFor(() => expect(stays.heard).toHaveLength(1), 10_000);
      expect(gone.heard).toEqual([]);
    });

    it('lets a listener come back after everybody left', async () => {
      const [here, there] = await make();
      listen(there, 't').subscription.unsubscribe();
      const { heard } = listen(there, 't');
      await here.publish('t', { n: 1 });
      await vi.waitFor(() => expect(heard).toEqual([{ n: 1 }]), 10_000);
    });

    it('delivers a copy: what the publisher changes later is not delivered', async () => {
      const [here, there] = await make();
      const { heard } = listen(there, 't');
      const message = { list: [1] };
      await here.publish('t', message);
      message.list.push(2);
      await vi.waitFor(() => expect(heard).toEqual([{ list: [1] }]), 10_000);
    });
  });
}
