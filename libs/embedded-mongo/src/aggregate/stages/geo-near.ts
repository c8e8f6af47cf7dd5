import type { StageTable } from '../stage.js';

export const geoStages: StageTable = {};
