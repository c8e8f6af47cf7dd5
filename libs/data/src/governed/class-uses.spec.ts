import { expect, it } from 'vitest';
import { Agent, compileAgentDefinition, refusals, Refused } from '#core';
import type { RecordSearcher } from '../record-search.js';
import { ClassUsesSource } from './class-uses.js';
import type { GovernedRecordsSource } from './governed-sources.js';

it('asks the database for nothing where the classes of an agent are refused', () => {
  const refused = new Refused(refusals.invalidQuery('no'));
  const records = {
    findScope: () => {
      throw refused;
    },
  };
  let asked = 0;
  const searcher = { canSearch: () => Promise.reject(new Error(`asked ${(asked += 1)} times`)) };
  const source = new ClassUsesSource(
    records as unknown as GovernedRecordsSource,
    searcher as unknown as RecordSearcher,
  );
  const agent = new Agent({ definition: compileAgentDefinition('reader', {}), principal: 'ada' });
  expect(() => source.of(agent)).toThrow(refused);
  expect(asked).toBe(0);
});
