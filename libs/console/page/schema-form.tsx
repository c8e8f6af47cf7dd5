import { isExactNumber, readJson } from '../../core/src/read-json.js';
import { cutText } from '../../core/src/text.js';
import { Field, Select, TextField } from './components.js';

export type Schema = Readonly<Record<string, unknown>>;
export type Arguments = Readonly<Record<string, unknown>>;

const readProperties = (schema: Schema) =>
  Object.entries((schema['properties'] ?? {}) as Record<string, Schema>);
const readRequired = (schema: Schema): readonly string[] =>
  Array.isArray(schema['required']) ? (schema['required'] as string[]) : [];

/** The required arguments of a tool, with values that show what belongs there. */
export function sampleArguments(schema: Schema): Record<string, unknown> {
  const properties = Object.fromEntries(readProperties(schema));
  return Object.fromEntries(readRequired(schema).map((name) => [name, createSample(properties[name] ?? {})]));
}

function createSample(schema: Schema): unknown {
  const { enum: choices, default: usual } = schema;
  if (usual !== undefined) return usual;
  if (Array.isArray(choices)) return choices[0];
  switch (readType(schema)) {
    case 'number':
    case 'integer':
      return 1;
    case 'boolean':
      return false;
    case 'array':
      return [];
    case 'object':
      return {};
    default:
      return '';
  }
}

function readType({ type }: Schema): unknown {
  return Array.isArray(type) ? type.find((one) => one !== 'null') : type;
}

/** How an argument is written in the form. Whatever has no better input is written as JSON. */
export function inputFor(schema: Schema): 'choice' | 'yes-no' | 'number' | 'text' | 'lines' | 'json' {
  const { enum: choices } = schema;
  if (Array.isArray(choices) && choices.every((one) => typeof one === 'string')) return 'choice';
  const type = readType(schema);
  if (type === 'boolean') return 'yes-no';
  if (type === 'integer' || type === 'number') return 'number';
  if (type === 'string') return 'text';
  if (type === 'array' && readType((schema['items'] ?? {}) as Schema) === 'string') return 'lines';
  return 'json';
}

/** @returns the arguments without those that are `undefined` */
export function withArgument(args: Arguments, name: string, value: unknown): Arguments {
  return Object.fromEntries(
    Object.entries({ ...args, [name]: value }).filter(([, held]) => held !== undefined),
  );
}

/** @throws SyntaxError for text that is no JSON, or whose numbers would be rounded */
function parseText(text: string): unknown {
  if (text.trim() === '') return undefined;
  const reading = readJson(text);
  if (reading.ok) return reading.value;
  throw new SyntaxError(reading.fault === 'syntax' ? 'This is no JSON.' : reading.why);
}

/** The arguments of a tool as inputs, from the tool's JSON Schema. */
export function SchemaForm(props: {
  schema: Schema;
  args: Arguments;
  /** Classes for the argument `class_name`. */
  classes: readonly string[];
  change: (args: Arguments) => void;
}) {
  const { schema, args, classes, change } = props;
  const required = readRequired(schema);
  const all = readProperties(schema);
  // Required arguments, then those that are given, then the others.
  const rank = (name: string) => (required.includes(name) ? 0 : 1);
  const sorted = all.toSorted(([one], [other]) => rank(one) - rank(other));
  const own = new Set(all.map(([name]) => name));
  const foreign = Object.keys(args).filter((name) => !own.has(name));
  if (all.length === 0) return <p class="quiet">This tool has no arguments.</p>;
  const input = ([name, one]: (typeof all)[number]) => (
    <ArgumentInput
      key={name}
      name={name}
      schema={one}
      required={required.includes(name)}
      value={args[name]}
      classes={name === 'class_name' ? classes : []}
      change={(value) => change(withArgument(args, name, value))}
    />
  );
  const shown = sorted.filter(([name]) => required.includes(name) || args[name] !== undefined);
  const hidden = sorted.filter((pair) => !shown.includes(pair));
  return (
    <>
      {shown.map(input)}
      {hidden.length > 0 && (
        <details open={shown.length === 0}>
          <summary>{`Optional arguments (${hidden.length})`}</summary>
          {hidden.map(input)}
        </details>
      )}
      {foreign.length > 0 && <p class="hint">{`Not in the schema: ${foreign.join(', ')}`}</p>}
    </>
  );
}

interface ArgumentProps {
  readonly name: string;
  readonly schema: Schema;
  readonly required: boolean;
  readonly value: unknown;
  readonly classes: readonly string[];
  readonly change: (value: unknown) => void;
}

const MOST_HINT = 160;

function ArgumentInput({ name, schema, required, value, classes, change }: ArgumentProps) {
  const about = typeof schema['description'] === 'string' ? schema['description'] : '';
  const hint = about === '' ? undefined : about.length > MOST_HINT ? `${cutText(about, MOST_HINT)}…` : about;
  const label = required ? `${name} *` : name;
  const kind = inputFor(schema);
  const given = typeof value === 'string' ? value : '';
  if (kind === 'choice' || classes.length > 0) {
    const listed = classes.length > 0 ? classes : (schema['enum'] as readonly string[]);
    const other = given !== '' && !listed.includes(given) ? [[given, `${given} (not listed)`] as const] : [];
    return (
      <Select
        label={label}
        {...(hint !== undefined && { hint })}
        value={given}
        options={[
          ['', required ? 'choose…' : 'not given'],
          ...listed.map((one) => [one, one] as const),
          ...other,
        ]}
        change={(text) => change(text === '' ? undefined : text)}
      />
    );
  }
  if (kind === 'yes-no')
    return (
      <Select
        label={label}
        {...(hint !== undefined && { hint })}
        value={typeof value === 'boolean' ? String(value) : ''}
        options={[
          ['', 'not given'],
          ['true', 'true'],
          ['false', 'false'],
        ]}
        change={(text) => change(text === '' ? undefined : text === 'true')}
      />
    );
  const write = (target: HTMLInputElement | HTMLTextAreaElement) => {
    try {
      change(readInput(kind, target.value));
      target.setCustomValidity('');
    } catch (error) {
      target.setCustomValidity((error as SyntaxError).message);
      target.reportValidity();
    }
  };
  if (kind === 'lines' || kind === 'json') {
    const text =
      value === undefined
        ? ''
        : kind === 'lines' && Array.isArray(value)
          ? value.join('\n')
          : JSON.stringify(value, null, 1);
    const what = kind === 'lines' ? 'One per line.' : 'JSON.';
    return (
      <Field label={label} hint={hint === undefined ? what : `${hint} ${what}`}>
        <textarea
          rows={kind === 'lines' ? 2 : 3}
          spellcheck={false}
          value={text}
          onChange={(event) => write(event.currentTarget)}
        />
      </Field>
    );
  }
  if (kind === 'number')
    return (
      <Field label={label} hint={hint}>
        <input
          type="number"
          step="any"
          value={typeof value === 'number' ? String(value) : ''}
          onChange={(event) => write(event.currentTarget)}
        />
      </Field>
    );
  return (
    <TextField label={label} hint={hint} value={given} onChange={(event) => write(event.currentTarget)} />
  );
}

/** @throws SyntaxError for text that is no JSON where JSON is written, and for numbers that would be rounded */
export function readInput(kind: ReturnType<typeof inputFor>, text: string): unknown {
  if (kind === 'text') return text === '' ? undefined : text;
  if (kind === 'number') {
    if (text === '') return undefined;
    if (isExactNumber(text)) return Number(text);
    throw new SyntaxError('Write it as text in the JSON: a number would be rounded.');
  }
  if (kind === 'lines') {
    const lines = text.split('\n').filter((line) => line !== '');
    return lines.length === 0 ? undefined : lines;
  }
  return parseText(text);
}
