import { afterEach, expect, it, vi } from 'vitest';
import { ageClock } from './age-clock.js';

afterEach(() => vi.restoreAllMocks());

/** Sets the clock of the machine; that of the process goes on. */
const setClock = (ahead: number) => {
  const now = Date.now.bind(Date);
  vi.spyOn(Date, 'now').mockImplementation(() => now() + ahead);
};

it('makes everything older when the clock of the machine is set forward, as after a suspension', () => {
  const before = ageClock();
  setClock(75_000);
  expect(ageClock() - before).toBeGreaterThanOrEqual(74_999);
});

it('makes nothing younger when the clock of the machine is set back', () => {
  setClock(200_000);
  const before = ageClock();
  vi.restoreAllMocks();
  setClock(-3_600_000);
  expect(ageClock()).toBeGreaterThanOrEqual(before);
});

it('notices a suspension also after the clock of the machine was set back', () => {
  ageClock();
  setClock(-3_600_000);
  const before = ageClock();
  vi.restoreAllMocks();
  setClock(-3_600_000 + 75_000);
  expect(ageClock() - before).toBeGreaterThanOrEqual(74_999);
});

it('runs as the clock of the process however often it is read', () => {
  const [began, elapsed] = [ageClock(), performance.now()];
  for (let read = 0; read < 100_000; read += 1) ageClock();
  expect(ageClock() - began - (performance.now() - elapsed)).toBeLessThan(5);
});
