import { afterEach, describe, expect, it, vi } from 'vitest';
import { TaskHandedOver, type TaskJob, type TaskQueue } from '../task-queue.js';

/** Queues of replicas that share their jobs; in one process there is one. */
export type MakeQueues = () => Promise<readonly TaskQueue[]>;

export function taskQueueContract(name: string, make: MakeQueues): void {
  describe(`${name} keeps the contract of a task queue`, () => {
    const open: TaskQueue[] = [];
    afterEach(async () => {
      await Promise.all(open.splice(0).map((queue) => queue.close()));
    });
    const queues = async () => {
      const made = await make();
      open.push(...made);
      return made;
    };

    it('assigns each job to one of its workers', async () => {
      const replicas = await queues();
      const seen: string[] = [];
      for (const replica of replicas)
        replica.work((job) => {
          seen.push(job.taskId);
          return Promise.resolve();
        });
      const ids = Array.from({ length: 12 }, (_, n) => `t${n}`);
      for (const taskId of ids) await replicas[0]?.push({ taskId, run: 1, owner: 'ada' });
      await vi.waitFor(() => expect([...seen].sort()).toEqual([...ids].sort()), 20_000);
    });

    it('keeps jobs that are added before there is a worker', async () => {
      const [queue] = await queues();
      await queue?.push({ taskId: 'early', run: 1, owner: 'ada' });
      const seen: TaskJob[] = [];
      queue?.work((job) => {
        seen.push(job);
        return Promise.resolve();
      });
      await vi.waitFor(() => expect(seen).toEqual([{ taskId: 'early', run: 1, owner: 'ada' }]), 20_000);
    });

    it('does not add a job again that waits or runs', async () => {
      const [queue] = await queues();
      let runs = 0;
      let release: (() => void) | undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      await queue?.push({ taskId: 'one', run: 1, owner: 'ada' });
      await queue?.push({ taskId: 'one', run: 1, owner: 'ada' });
      queue?.work(async () => {
        runs += 1;
        await held;
      });
      await vi.waitFor(() => expect(runs).toBe(1), 20_000);
      await queue?.push({ taskId: 'one', run: 1, owner: 'ada' });
      release?.();
      await queue?.push({ taskId: 'one', run: 2, owner: 'ada' });
      await vi.waitFor(() => expect(runs).toBe(2), 20_000);
    });

    it('leaves a place to others, and takes the jobs of principals in turn', async () => {
      const [queue] = await queues();
      const seen: string[] = [];
      let release: (() => void) | undefined;
      const gate = new Promise<void>((resolve) => (release = resolve));
      const count = (owner: string) => seen.filter((id) => id.startsWith(owner)).length;
      for (let n = 1; n <= 20; n += 1) await queue?.push({ taskId: `ada-${n}`, run: 1, owner: 'ada' });
      queue?.work(async ({ taskId, owner }) => {
        seen.push(taskId);
        if (owner === 'ada') await gate;
      });
      await vi.waitFor(() => expect(count('ada')).toBe(3), 20_000);
      await queue?.push({ taskId: 'eve-1', run: 1, owner: 'eve' });
      await queue?.push({ taskId: 'bob-1', run: 1, owner: 'bob' });
      await vi.waitFor(() => expect([count('eve'), count('bob')]).toEqual([1, 1]), 20_000);
      expect(count('ada')).toBe(3);
      release?.();
      await vi.waitFor(() => expect(count('ada')).toBe(20), 20_000);
    });

    it('continues with other jobs when a handler fails', async () => {
      const [queue] = await queues();
      const seen: string[] = [];
      queue?.work(({ taskId }) => {
        seen.push(taskId);
        return taskId === 'bad' && seen.length === 1
          ? Promise.reject(new TaskHandedOver())
          : Promise.resolve();
      });
      await queue?.push({ taskId: 'bad', run: 1, owner: 'ada' });
      await queue?.push({ taskId: 'good', run: 1, owner: 'ada' });
      await vi.waitFor(() => expect(seen).toContain('good'), 20_000);
    });

    it('waits for the handlers that run when it is drained', async () => {
      const [queue] = await queues();
      const seen: string[] = [];
      let release = () => undefined as void;
      const gate = new Promise<void>((resolve) => (release = resolve));
      queue?.work(async ({ taskId }) => {
        seen.push(`begun ${taskId}`);
        await gate;
        seen.push(`ended ${taskId}`);
      });
      await queue?.push({ taskId: 'slow', run: 1, owner: 'ada' });
      await vi.waitFor(() => expect(seen).toEqual(['begun slow']), 20_000);
      const drained = queue?.drain().then(() => seen.push('drained'));
      release();
      await drained;
      expect(seen).toEqual(['begun slow', 'ended slow', 'drained']);
    });

    it('waits for the handlers that run when it closes', async () => {
      const [queue] = await queues();
      let ended = false;
      let begun = false;
      queue?.work(async () => {
        begun = true;
        await new Promise((resolve) => setTimeout(resolve, 50));
        ended = true;
      });
      await queue?.push({ taskId: 'slow', run: 1, owner: 'ada' });
      await vi.waitFor(() => expect(begun).toBe(true), 20_000);
      await queue?.close();
      expect(ended).toBe(true);
    });
  });
}
