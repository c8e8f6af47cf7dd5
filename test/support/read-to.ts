import type { Locator } from 'playwright-core';
import { expect } from 'vitest';

const PATIENT = { timeout: 20_000 };

/** Waits until a button of a decision takes a press, on a page whose clock is installed. */
export async function ready(one: Locator): Promise<void> {
  await one.waitFor();
  const { clock } = one.page();
  await expect
    .poll(async () => {
      await clock.runFor(300);
      return one.getAttribute('aria-disabled');
    }, PATIENT)
    .toBe('false');
}

/** Reads from the start of the page, part by part, until this button is in view and takes a press. */
export async function readTo(one: Locator): Promise<void> {
  const page = one.page();
  await one.waitFor();
  await expect.poll(() => page.getByText('Loading…').count(), PATIENT).toBe(0);
  await page.evaluate('scrollTo(0, 0)');
  const [width, height] = await page.evaluate<[number, number]>('[innerWidth, innerHeight]');
  await page.mouse.move(width / 2, height / 2);
  for (;;) {
    await page.clock.runFor(400);
    const { y, height: high } = (await one.boundingBox()) ?? { y: Infinity, height: 0 };
    if (y + high <= height) return ready(one);
    const [before, end] = await page.evaluate<[number, number]>(
      '[scrollY, document.documentElement.scrollHeight - innerHeight]',
    );
    expect(before).toBeLessThan(end - 1);
    await page.mouse.wheel(0, height / 3);
    await expect.poll(() => page.evaluate('scrollY'), PATIENT).not.toBe(before);
  }
}
