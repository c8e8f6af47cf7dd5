/** Whether the outermost object of a valid JSON text names a member twice, however the name is spelled. */
export function hasRepeatedMember(json: string): boolean {
  const seen = new Set<string>();
  let depth = 0;
  let expectsName = false;
  for (let at = 0; at < json.length; at++) {
    const character = json[at];
    if (character === '"') {
      const end = endOfString(json, at);
      if (depth === 1 && expectsName) {
        const name = JSON.parse(json.slice(at, end + 1)) as string;
        if (seen.has(name)) return true;
        seen.add(name);
        expectsName = false;
      }
      at = end;
    } else if (character === '{' || character === '[') {
      depth += 1;
      expectsName = depth === 1;
    } else if (character === '}' || character === ']') depth -= 1;
    else if (character === ',' && depth === 1) expectsName = true;
  }
  return false;
}

/** Index of the quote that closes the string which begins at `start`. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at;
}
