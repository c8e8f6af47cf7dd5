import type { StageTable } from '../stage.js';

export const densifyStages: StageTable = {};
