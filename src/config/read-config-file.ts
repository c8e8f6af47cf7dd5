import { existsSync, readFileSync } from 'node:fs';
import { isPair, isScalar, isSeq, parseDocument, visit } from 'yaml';
import { ConfigError, type ConfigFault } from './config-faults.js';

export type Environment = Readonly<Record<string, string | undefined>>;

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** A plain (unquoted) value is typed after substitution as YAML would have typed it; a quoted one stays text. */
function retype(text: string): unknown {
  if (/^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (text === 'true' || text === 'false') return text === 'true';
  return text === 'null' ? null : text;
}

/**
 * Reads YAML or JSON with `${NAME}` and `${NAME:-default}` inside values replaced from the environment.
 * @throws ConfigError when the file is missing, is not YAML, or names variables that are not set
 */
export function readConfigFile(path: string, env: Environment): unknown {
  if (!existsSync(path)) throw new ConfigError(path, [{ path: '', message: 'no such file' }]);
  const document = parseDocument(readFileSync(path, 'utf8'), { prettyErrors: true });
  if (document.errors.length > 0) {
    throw new ConfigError(
      path,
      document.errors.map((error) => ({ path: '', message: error.message.split('\n', 1)[0] ?? 'not YAML' })),
    );
  }
  const faults: ConfigFault[] = [];
  visit(document, {
    Scalar: (key, node, ancestors) => {
      if (key === 'key' || typeof node.value !== 'string' || !node.value.includes('${')) return;
      const substituted = node.value.replace(REFERENCE, (_, name: string, fallback: string | undefined) => {
        const value = env[name] ?? fallback;
        if (value === undefined)
          faults.push({ path: pathOf(ancestors, key), message: `environment variable ${name} is not set` });
        return value ?? '';
      });
      node.value = node.type === 'PLAIN' ? retype(substituted) : substituted;
    },
  });
  if (faults.length > 0) throw new ConfigError(path, faults);
  return document.toJS() ?? {};
}

function pathOf(ancestors: readonly unknown[], key: unknown): string {
  const names: string[] = [];
  for (const [depth, ancestor] of ancestors.entries()) {
    if (isPair(ancestor) && isScalar(ancestor.key)) names.push(String(ancestor.key.value));
    if (!isSeq(ancestor)) continue;
    const next = ancestors[depth + 1];
    names.push(String(next === undefined ? key : ancestor.items.indexOf(next)));
  }
  return names.join('.');
}
