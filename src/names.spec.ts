import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

/** Part of the functions that may be named otherwise: of a specification, of a framework, of a catalogue of refusals. */
const TOLERATED_SHARE = 0.02;
/** Words that end like participles, and are none. */
const NO_PARTICIPLES =
  /^(?:need|feed|seed|embed|shed|speed|exceed|proceed|succeed|ping|string|sing|bring|nothing|cstring)$/;
const IRREGULAR =
  /^(?:shown|given|built|written|taken|known|seen|sent|kept|held|made|found|left|drawn|chosen|hidden|told|done|gone|heard|paid|said)$/;
/** Each member of this folder is the refusal it is called after. */
const REFUSALS = /\/refusals(?:\/|\.ts$)/;
const TESTS = /\.(?:spec|contract|fixture)\.|under-test|\/testing\/|\/contracts\/|^libs\/testing\//;

const folders = ['src', ...readdirSync('libs').map((lib) => join('libs', lib, 'src'))];
const sources = folders
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  )
  .filter((path) => path.endsWith('.ts') && !TESTS.test(path) && !REFUSALS.test(path))
  .map((path) => ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true));

function namesVerb(name: string): boolean {
  const [first = ''] = name.split(/(?=[A-Z])/);
  if (/[a-z]Of$/.test(name) || IRREGULAR.test(first)) return false;
  return NO_PARTICIPLES.test(first) || !/^[a-z]{2,}(?:ed|ing)$/.test(first);
}

/** Names of the functions and methods that a file declares, without those of decorators and components. */
function functionNames(file: ts.SourceFile): string[] {
  const names: string[] = [];
  const visit = (node: ts.Node): void => {
    const isFunction =
      ts.isFunctionDeclaration(node) ||
      ts.isMethodDeclaration(node) ||
      (ts.isVariableDeclaration(node) &&
        node.initializer !== undefined &&
        ts.isArrowFunction(node.initializer));
    if (isFunction && node.name && ts.isIdentifier(node.name) && /^[a-z]/.test(node.name.text))
      names.push(node.name.text);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return names;
}

/** Units of measure need no second word. */
const UNITS = new Set(['SECOND', 'MINUTE', 'HOUR', 'DAY', 'MIB']);
/** Alone they do not say of what: `LONGEST`, `HIDDEN`. */
const INCOMPLETE =
  /^(?:MOST|[A-Z]+EST|[A-Z]{3,}ED|SHOWN|KEPT|GONE|LEFT|LATE|OTHER|PLAIN|SHORT|LONG|SMALL|LARGE|USUAL|UNSAFE|LOCAL|OWN|NONE|NEVER|KNOWN|UNKNOWN|BEFORE|AFTER|MORE|WRITTEN)$/;

function isNumber(node: ts.Expression | undefined): boolean {
  if (!node) return false;
  if (ts.isNumericLiteral(node)) return !node.getText().startsWith('0x');
  if (ts.isPrefixUnaryExpression(node)) return isNumber(node.operand);
  return ts.isBinaryExpression(node) && (isNumber(node.left) || isNumber(node.right));
}

/** Constants of a file whose one word does not say what they bound or measure. */
function incompleteConstants(file: ts.SourceFile): string[] {
  const declarations = file.statements
    .filter((statement) => ts.isVariableStatement(statement))
    .flatMap((statement) => [...statement.declarationList.declarations]);
  return declarations
    .filter(({ name }) => ts.isIdentifier(name) && /^[A-Z]{2,}$/.test(name.text) && !UNITS.has(name.text))
    .filter(({ name, initializer }) => INCOMPLETE.test(name.getText()) || isNumber(initializer))
    .map(({ name }) => name.getText());
}

function exportedTypes(file: ts.SourceFile): string[] {
  return file.statements.flatMap((statement) => {
    const isType =
      ts.isClassDeclaration(statement) ||
      ts.isInterfaceDeclaration(statement) ||
      ts.isTypeAliasDeclaration(statement);
    const isExported = isType && ts.getCombinedModifierFlags(statement) & ts.ModifierFlags.Export;
    return isExported && statement.name ? [statement.name.text] : [];
  });
}

const specs = [...folders, 'test', 'examples']
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  )
  .filter((path) => /(?:spec|test|contract)\.ts$/.test(path) && !path.includes('node_modules'));

describe('titles of tests', () => {
  it('are read alone: none goes on from the test before it', () => {
    const dependent = specs.flatMap((path) =>
      [
        ...readFileSync(path, 'utf8').matchAll(
          /\bit(?:\.each\([^)]*\))?\(\s*['"`]((?:and|but|nor|neither|or|also|so|too) .*)/g,
        ),
      ].map(([, title]) => `${path}: ${title}`),
    );
    expect(specs.length).toBeGreaterThan(500);
    expect(dependent).toEqual([]);
  });
});

describe('names of the sources', () => {
  it('say what a function does or asks: participles and names that end in Of are rare', () => {
    const all = sources.flatMap((file) => functionNames(file).map((name) => `${file.fileName}: ${name}`));
    const others = all.filter((entry) => !namesVerb(entry.slice(entry.indexOf(': ') + 2)));
    expect(all.length).toBeGreaterThan(1000);
    const tolerated = Math.floor(all.length * TOLERATED_SHARE);
    expect(others.length > tolerated ? others : []).toEqual([]);
  });

  it('say with a second word what a constant bounds or measures', () => {
    const incomplete = sources.flatMap((file) =>
      incompleteConstants(file).map((name) => `${file.fileName}: ${name}`),
    );
    expect(incomplete).toEqual([]);
  });

  it('stand for one exported class or type each', () => {
    const places = new Map<string, Set<string>>();
    for (const file of sources)
      for (const name of exportedTypes(file))
        places.set(name, (places.get(name) ?? new Set<string>()).add(file.fileName));
    const doubles = [...places]
      .filter(([, files]) => files.size > 1)
      .map(([name, files]) => [name, ...files]);
    expect(doubles).toEqual([]);
  });
});
