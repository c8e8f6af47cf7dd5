import type { StageTable } from '../stage.js';

export const graphLookupStages: StageTable = {};
