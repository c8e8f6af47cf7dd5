export { ChangeSetsModule, ChangesModule } from './changes.module.js';
export { CHANGE_SETTINGS, type ChangeSettings } from './owned-sets.js';
export { OperatorChanges, type OperatorSet, type UndoPreview } from './operator-changes.js';
export type { OperatorQuery, UndoTarget } from './operator-queries.js';
export type { ViewedEntry } from './shown-sets.js';
