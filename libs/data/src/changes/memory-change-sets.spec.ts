import { changeSetsContract } from '../contracts/change-sets.contract.js';
import { MemoryChangeSets } from './memory-change-sets.js';

changeSetsContract('A process', () =>
  Promise.resolve({ sets: new MemoryChangeSets(), close: () => Promise.resolve() }),
);
