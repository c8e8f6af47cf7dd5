import { describe, expect, it } from 'vitest';
import { AuditChain, RecordSeal, type SealedLine } from '../chain/audit-chain.js';
import { WaitingRefusals } from './waiting-refusals.js';

const refuse = (chain: AuditChain): SealedLine =>
  chain.append({ type: 'tool_call', at: '2026-01-01T00:00:00.000Z', principal: 'p', success: false });

describe('the places of refusals that wait', () => {
  it('are given back by the records that took them, also when these were read from disk, and by no others', () => {
    const places = new WaitingRefusals(2);
    const [earlier, chain] = [new AuditChain(new RecordSeal()), new AuditChain(new RecordSeal())];
    const left = [refuse(earlier), refuse(earlier)];
    const ran = refuse(chain);
    const counted = [refuse(chain), refuse(chain)];
    for (const line of counted) places.add(line);
    places.remove([...left, ran]);
    expect(places.isExcess(ran.record)).toBe(true);
    const [first] = structuredClone(counted);
    places.remove([first as SealedLine]);
    expect(places.isExcess(ran.record)).toBe(false);
    places.add(refuse(chain));
    places.remove([first as SealedLine]);
    expect(places.isExcess(ran.record)).toBe(true);
  });
});
