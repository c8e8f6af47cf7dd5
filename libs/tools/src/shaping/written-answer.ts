import type { RowsText } from '#data';

type Answer = Readonly<Record<string, unknown>>;

interface WrittenMember {
  readonly name: string;
  readonly rows: RowsText;
}

const written = new WeakMap<Answer, WrittenMember>();

/**
 * An answer whose last member is a list of rows that were written as they were read. Looked at, the member becomes an ordinary
 * list, and the answer one like any other.
 */
export function withWrittenRows(members: Answer, name: string, rows: RowsText): Answer {
  const answer: Record<string, unknown> = { ...members };
  const become = (value: unknown): void => {
    written.delete(answer);
    Object.defineProperty(answer, name, { value, enumerable: true, configurable: true, writable: true });
  };
  Object.defineProperty(answer, name, {
    enumerable: true,
    configurable: true,
    get: () => {
      const list: unknown = JSON.parse(`[${rows.json.toString()}]`);
      become(list);
      return list;
    },
    set: become,
  });
  written.set(answer, { name, rows });
  return answer;
}

/** The rows of an answer that were written as they were read; undefined: there are none, or somebody has looked at them. */
export const findWrittenRows = (answer: Answer): WrittenMember | undefined => written.get(answer);

/** The answer as text, if its rows were written and nobody has looked at them. */
export function toWrittenAnswer(data: unknown): WrittenAnswer | null {
  if (data === null || typeof data !== 'object') return null;
  const member = written.get(data as Answer);
  // Members that were added later would stand behind the rows.
  if (!member || Object.keys(data).at(-1) !== member.name) return null;
  return new WrittenAnswer(data as Answer, member);
}

const NO_ROWS: readonly never[] = [];

/** The compact text of a whole answer of which the rows are text already: the JSON of its data. */
export class WrittenAnswer {
  /** Bytes of the text. */
  readonly bytes: number;
  /** The text up to the first row. */
  private readonly head: string;

  constructor(
    answer: Answer,
    private readonly member: WrittenMember,
  ) {
    const { name, rows } = member;
    const empty: Record<string, unknown> = {};
    for (const key of Object.keys(answer)) empty[key] = key === name ? NO_ROWS : answer[key];
    this.head = JSON.stringify(empty).slice(0, -END.length);
    this.bytes = Buffer.byteLength(this.head) + rows.json.length + END.length;
  }

  get text(): string {
    return `${this.head}${this.member.rows.json.toString()}${END}`;
  }

  /** The same as data. */
  get data(): Answer {
    return JSON.parse(this.text) as Answer;
  }

  /** The text as a JSON string. */
  get quoted(): readonly (string | Buffer)[] {
    const head = JSON.stringify(this.head).slice(0, -1);
    return [head, insideString(this.member.rows.json), `${END}"`];
  }

  /** The data as JSON. */
  get json(): readonly (string | Buffer)[] {
    return [this.head, this.member.rows.json, END];
  }
}

/** What closes the rows and their answer. */
const END = ']}';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** JSON in UTF-8 as it stands inside a JSON string. It contains no other characters to escape. */
function insideString(json: Buffer): Buffer {
  const { length } = json;
  const inside = Buffer.allocUnsafe(length * 2);
  let at = 0;
  for (let index = 0; index < length; index += 1) {
    const byte = json[index] as number;
    if (byte === QUOTE || byte === BACKSLASH) inside[at++] = BACKSLASH;
    inside[at++] = byte;
  }
  return inside.subarray(0, at);
}
