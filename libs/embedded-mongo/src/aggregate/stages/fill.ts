import type { StageTable } from '../stage.js';

export const fillStages: StageTable = {};
