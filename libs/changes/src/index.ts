export { ChangeSetsModule, ChangesModule } from './changes.module.js';
export { CHANGE_SETTINGS, type ChangeSettings } from './owned-sets.js';
export {
  OperatorChanges,
  type OperatorQuery,
  type OperatorSet,
  type UndoPreview,
  type UndoTarget,
} from './operator-changes.js';
export type { ViewedEntry } from './shown-sets.js';
