import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, MASTER } from '#core';
import { ProcessMessageBus } from '#state';
import { VerifiedOperators } from './verified-operators.js';

const AGENT = new Agent({ definition: compileAgentDefinition('chief'), principal: 'p', identity: MASTER });

describe('sessions that were verified', () => {
  it('are known while they are used, and no longer once they were not for ten minutes', () => {
    let now = 0;
    const verified = new VerifiedOperators(new ProcessMessageBus(), () => now);
    verified.keep('one', AGENT);
    for (let use = 0; use < 10; use += 1) {
      now += 599_000;
      expect(verified.find('one')).toBe(AGENT);
    }
    now += 601_000;
    expect(verified.find('one')).toBeUndefined();
  });

  it('are forgotten on every replica when they are signed out on one', async () => {
    const bus = new ProcessMessageBus();
    const [one, other] = [new VerifiedOperators(bus), new VerifiedOperators(bus)];
    for (const verified of [one, other]) verified.keep('id', AGENT);
    one.forget('id');
    expect(one.find('id')).toBeUndefined();
    await expect.poll(() => other.find('id')).toBeUndefined();
  });

  it('are bounded in number', () => {
    const verified = new VerifiedOperators(new ProcessMessageBus());
    for (let id = 0; id < 1_001; id += 1) verified.keep(String(id), AGENT);
    expect([verified.find('0'), verified.find('1000')]).toEqual([undefined, AGENT]);
  });
});
