import { compileClass, type SchemaNode } from '#schema';
import { isOptionsClass, type OptionsClass, readOptions, type Plain, type OptionType } from './option.js';

const listNames = (type: OptionsClass) => readOptions(type).keys();

/** The schema that a class of options is checked by. */
export function readSchema(type: OptionType): SchemaNode {
  return isOptionsClass(type)
    ? compileClass(type, { names: listNames, elsewhere: readElsewhere, patternWords: true })
    : type;
}

/** What a class of options says of keys that are taken for its own. */
const readElsewhere = (type: object): Readonly<Record<string, string>> | undefined =>
  (type as { readonly elsewhere?: Readonly<Record<string, string>> }).elsewhere;

/** The same schema for editors and other tools: with the words of the documentation and the defaults. */
export function readDocumentedSchema(type: OptionType): SchemaNode {
  if (!isOptionsClass(type)) return type;
  return compileClass(type, {
    names: listNames,
    describe: (within, name) => {
      const defaults = readDocumentedDefaults(within);
      return {
        description: withoutLinks(readOptions(within).get(name)?.text ?? ''),
        ...(name in defaults && { default: defaults[name] }),
      };
    },
  });
}

const withoutLinks = (text: string): string => text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');

const defaultValues = new WeakMap<object, object>();

/** The defaults of a section: the initial values of its class, as a plain object. */
export function readDefaults<T extends object>(type: OptionsClass<T>): Plain<T> {
  const known = defaultValues.get(type);
  if (known) return known as Plain<T>;
  const values = Object.entries(new type()).filter(([, value]) => value !== undefined);
  const defaults = Object.freeze(Object.fromEntries(values)) as Plain<T>;
  defaultValues.set(type, defaults);
  return defaults;
}

/** The defaults of a class, with those that are filled in elsewhere. */
export function readDocumentedDefaults(type: OptionsClass): Readonly<Record<string, unknown>> {
  const elsewhere = [...readOptions(type)].filter(([, option]) => option.default !== undefined);
  return {
    ...readDefaults(type),
    ...Object.fromEntries(elsewhere.map(([name, option]) => [name, option.default])),
  };
}
