// Runs the steps of a Dockerfile by hand, each stage in a folder, for machines without a container engine.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** @returns instructions as `{ name, rest }`, comments and continuations resolved */
export function readDockerfile(path) {
  const text = readFileSync(path, 'utf8')
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n\s*/g, ' ');
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name, rest] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
      if (name === undefined) throw new Error(`not an instruction: ${line}`);
      return { name, rest };
    });
}

/**
 * @param {string} root
 * @returns {{ root: string, folder: string, env: Record<string, string>, command: string[], health: string[], user: string }}
 */
const stageIn = (root) => ({ root, folder: '', env: {}, command: [], health: [], user: '' });

/**
 * @param context folder that is copied from, @param scratch folder that the stages are made in
 * @returns the last stage: its folder, environment, command, health check and user
 */
export function runDockerfile({ dockerfile, context, scratch, log }) {
  const stages = new Map();
  let stage = stageIn(scratch);
  for (const { name, rest } of readDockerfile(dockerfile)) {
    switch (name) {
      case 'ARG':
      case 'LABEL':
        break;
      case 'FROM': {
        const alias = / AS (\S+)$/.exec(rest)?.[1] ?? 'final';
        stage = stageIn(join(scratch, alias));
        stages.set(alias, stage);
        break;
      }
      case 'ENV':
        for (const [, key, value] of rest.matchAll(/(\w+)=(\S+)/g)) stage.env[key] = value;
        break;
      case 'WORKDIR':
        stage.folder = join(stage.root, rest);
        mkdirSync(stage.folder, { recursive: true });
        break;
      case 'COPY':
        copy(rest, stage, stages, context);
        break;
      case 'RUN': {
        log(`${name} ${rest}`);
        const { status } = spawnSync('sh', ['-c', rest], {
          cwd: stage.folder,
          stdio: ['ignore', 'ignore', 'inherit'],
        });
        if (status !== 0) throw new Error(`${rest} ended with ${status}`);
        break;
      }
      case 'USER':
        stage.user = rest;
        break;
      case 'EXPOSE':
        break;
      case 'HEALTHCHECK':
        stage.health = JSON.parse(rest.slice(rest.indexOf('[')));
        break;
      case 'CMD':
        stage.command = JSON.parse(rest);
        break;
      default:
        throw new Error(`${name} is not known here`);
    }
  }
  return stage;
}

function copy(rest, stage, stages, context) {
  const words = rest.split(/\s+/);
  const from = words[0].startsWith('--from=')
    ? stages.get(words.shift().slice('--from='.length)).root
    : context;
  const to = words.pop();
  for (const source of words) {
    const target = to.endsWith('/') ? join(stage.folder, to, basename(source)) : join(stage.folder, to);
    cpSync(join(from, source), target, { recursive: true, dereference: false });
  }
}
