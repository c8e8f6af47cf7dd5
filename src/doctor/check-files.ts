import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { VARIABLES_FROM_FILES, type Environment } from '#config';
import type { ConfigSources } from './masked-config.js';
import { type Finding, fail, ok, warn } from './finding.js';

const OTHERS_READ = 0o004;
const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const STICKY_BIT = 0o1000;

export interface FilesInUse {
  /** Null: there is no file, and the defaults apply. */
  readonly config: string | null;
  readonly plugins: readonly string[];
  readonly secrets: readonly string[];
  /** Options whose secret is in the configuration itself. */
  readonly literalSecrets: readonly string[];
}

/** The files of secrets, by reference and by `NAME_FILE`. */
export function secretFiles(env: Environment, { references }: Pick<ConfigSources, 'references'>): string[] {
  const named = VARIABLES_FROM_FILES.flatMap((name) => env[`${name}_FILE`] ?? []);
  const referred = references.filter(({ kind }) => kind === 'file').map(({ name }) => name);
  return [...new Set([...named, ...referred])].filter((path) => path !== '').map((path) => resolve(path));
}

/** Checks who may change the files of the service, and who may read its secrets. */
export function checkFiles({ config, plugins, secrets, literalSecrets }: FilesInUse): Finding[] {
  const governing = config === null ? plugins : [config, ...plugins];
  const findings = [
    ...governing.flatMap((path) => writable('files.writable', path)),
    ...secrets.flatMap((path) => [...writable('files.writable', path), ...readable('files.secret', path)]),
  ];
  if (config !== null && literalSecrets.length > 0) {
    findings.push(
      warn(
        'files.literal_secret',
        `${config} holds secrets itself: ${literalSecrets.join(', ')}`,
        'write ${file:PATH} or ${NAME} in their place',
      ),
      ...readable('files.secret', config),
    );
  }
  const checked = [...governing, ...secrets];
  if (findings.length > 0 || checked.length === 0) return findings;
  return [
    ok(
      'files',
      `written by nobody else${secrets.length > 0 ? ', secrets read by nobody else' : ''}: ${checked.join(', ')}`,
    ),
  ];
}

/** Whether only trusted users can write these files: checking them runs their code with our rights. */
export function areTrusted(paths: readonly string[]): boolean {
  return paths.every((path) => writable('', path).every(({ level }) => level !== 'fail'));
}

function readMode(path: string): number | null {
  try {
    return statSync(path).mode;
  } catch {
    return null;
  }
}

function writable(check: string, path: string): Finding[] {
  const mode = readMode(path);
  if (mode === null) return [];
  const folder = dirname(path);
  const folderMode = readMode(folder) ?? 0;
  if (mode & OTHERS_WRITE)
    return [fail(check, `everyone on this machine may write ${path}`, `chmod o-w ${path}`)];
  if (folderMode & OTHERS_WRITE && !(folderMode & STICKY_BIT))
    return [fail(check, `everyone on this machine may replace ${path}`, `chmod o-w ${folder}`)];
  return mode & GROUP_WRITES ? [warn(check, `its group may write ${path}`, `chmod g-w ${path}`)] : [];
}

function readable(check: string, path: string): Finding[] {
  const mode = readMode(path);
  return mode !== null && mode & OTHERS_READ
    ? [
        warn(
          check,
          `everyone on this machine may read ${path}`,
          `chmod o-r ${path}, or defaultMode: 0440 of a mounted secret`,
        ),
      ]
    : [];
}
