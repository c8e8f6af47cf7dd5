// Cloud code for tests: triggers that leave a trace, refuse on request, and say things nobody should be told.
const { Parse } = globalThis;
const SAID_BY_A_TRIGGER = 'trigger text with data of row 4711';

Parse.Cloud.beforeSave('Note', ({ object, user, master }) => {
  if (object.get('title') === 'refuse me') throw new Parse.Error(4711, SAID_BY_A_TRIGGER);
  object.set('stampedBy', user ? user.id : master ? 'master' : 'nobody');
});

Parse.Cloud.afterSave('Note', async ({ object, original }) => {
  await trace(original ? 'update' : 'create', object);
});

Parse.Cloud.beforeDelete('Note', ({ object }) => {
  if (object.get('title') === 'keep me') throw SAID_BY_A_TRIGGER;
});

Parse.Cloud.afterDelete('Note', ({ object }) => trace('delete', object));

Parse.Cloud.afterFind('Traced', ({ objects }) => {
  for (const object of objects) object.set('name', 'seen by Parse Server');
  return objects;
});

async function trace(kind, note) {
  const row = new Parse.Object('Trace');
  await row.save({ kind, note: note.id }, { useMasterKey: true });
}
