export { ChangeSetsModule, ChangesModule } from './changes.module.js';
export { CHANGE_SETTINGS, type ChangeSettings } from './owned-sets.js';
