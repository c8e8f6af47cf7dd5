import type { StageTable } from '../stage.js';

export const windowStages: StageTable = {};
