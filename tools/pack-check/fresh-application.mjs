// An application of another team.
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OutsideFolder } from './outside-folder.mjs';

const SOURCES = fileURLToPath(new URL('application', import.meta.url));
const KIT = fileURLToPath(new URL('kit', import.meta.url));
const MONGOOSE = fileURLToPath(new URL('mongoose', import.meta.url));

export class FreshApplication extends OutsideFolder {
  /**
   * @param {{ module: 'module' | 'commonjs', dependencies: Record<string, string>, compiler?: object }} shape
   */
  constructor({ module, dependencies, compiler = {} }) {
    super();
    this.dependencies = dependencies;
    cpSync(SOURCES, this.folder, { recursive: true });
    this.hasKit = '@parley/testing' in dependencies;
    if (this.hasKit) cpSync(KIT, join(this.folder, 'src'), { recursive: true });
    this.hasMongoose = 'mongoose' in dependencies;
    if (this.hasMongoose) cpSync(MONGOOSE, join(this.folder, 'src'), { recursive: true });
    this.write('package.json', { name: 'fresh', private: true, type: module, dependencies });
    this.write('tsconfig.built.json', { extends: './tsconfig.json', compilerOptions: compiler });
  }

  compile() {
    return this.run('node_modules/.bin/tsc', ['-p', 'tsconfig.built.json']);
  }
}
