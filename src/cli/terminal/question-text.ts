import { oneLine, terminalText } from '#audit';
import { isJsonObject, type JsonObject, member } from '#dispatcher';

/**
 * The question of a call as it is shown, line by line. Of an approval everything that would happen is shown, however long, and
 * which operation it is stands last, where nothing can scroll it away.
 */
export function questionLines(params: JsonObject): string[] {
  const message = String(params['message']);
  const meta = params['_meta'];
  const preview = member(meta, 'parse.preview');
  if (!isJsonObject(preview)) return [terminalText(message)];
  const [asked = ''] = message.split('\n', 1);
  const shown = JSON.stringify(preview, null, 2).split('\n').map(oneLine);
  const operation = `${String(member(meta, 'parse.tool'))} (${String(member(meta, 'parse.permission'))})`;
  return [oneLine(asked), ...shown, oneLine(`May ${operation} run as shown?`)];
}
