// The public surface of each package, from the declarations that the build made: `etc/NAME.api.md` contains it, and
// `npm run api` rewrites that file. Without `--renew` a surface that is not the written one is a failure: nobody changes it unnoticed.
// A member that nothing is said of is one with and without.
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packages, root } from './packages.mjs';

const COMPILER = {
  target: 'es2023',
  module: 'nodenext',
  lib: ['es2023'],
  types: ['node'],
  strict: true,
  experimentalDecorators: true,
  // Of what is installed; our own declarations were checked when they were made.
  skipLibCheck: true,
};

/** What a person who reads the report or hovers over a name would miss; the rest is the style of TSDoc, which is not ours. */
const FAULTS = new Set(['ae-undocumented', 'ae-internal-missing-underscore', 'ae-unresolved-link']);

/** As if installed: one package of ours meets another as its users do. */
const made = join(root, 'dist', 'api', 'node_modules');

/** Where the one declaration file of a package, or of a subpath of it, is written. */
export const declarationsOf = ({ folder, subpath = 'index' }) =>
  join(made, '@parley', folder, `${subpath}.d.ts`);

/**
 * What is extracted of a package: itself, then each of its subpaths, which may build on it.
 * @returns {{ folder: string, entry: string, subpath?: string }[]}
 */
export const surfacesOf = ({ folder, entry, subpaths = {} }) => [
  { folder, entry },
  ...Object.entries(subpaths).map(([subpath, from]) => ({ folder, entry: from, subpath })),
];

/** @param {{ folder: string, subpath?: string }} surface */
const reportOf = ({ folder, subpath }) => (subpath === undefined ? folder : `${folder}-${subpath}`);

/**
 * Compares the surface with its report and writes one declaration file of it.
 * @param {{ folder: string, entry: string, subpath?: string }} surface
 * @param {{ renew?: boolean }} options
 * @returns {{ changed: boolean, faults: string[] }}
 * @throws Error when the declarations cannot be read
 */
export function extractApi({ folder, entry, subpath }, { renew = false } = {}) {
  const report = join(root, 'etc');
  const temporary = join(root, 'dist', 'api');
  const declarations = declarationsOf({ folder, subpath });
  for (const needed of [report, temporary, dirname(declarations)]) mkdirSync(needed, { recursive: true });
  const start = join(root, 'dist', `${entry}.d.ts`);
  const config = ExtractorConfig.prepare({
    packageJsonFullPath: join(root, 'package.json'),
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: start,
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            ...COMPILER,
            // A package of ours that another uses is met as its users meet it, not as sources.
            paths: { '@parley/*': [join(made, '@parley', '*', 'index.d.ts')] },
          },
          files: [start],
        },
      },
      apiReport: {
        enabled: true,
        reportFolder: report,
        reportTempFolder: temporary,
        reportFileName: `${reportOf({ folder, subpath })}.api.md`,
      },
      docModel: { enabled: false },
      tsdocMetadata: { enabled: false },
      dtsRollup: { enabled: true, untrimmedFilePath: declarations },
      messages: {
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Error } },
        extractorMessageReporting: {
          default: { logLevel: ExtractorLogLevel.Warning },
          'ae-missing-release-tag': { logLevel: ExtractorLogLevel.None },
          // A type of the surface may be built of others without a name of their own; the report shows those that have one.
          'ae-forgotten-export': { logLevel: ExtractorLogLevel.None },
        },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      },
    },
  });
  const faults = [];
  const errors = [];
  const { apiReportChanged, errorCount } = Extractor.invoke(config, {
    localBuild: renew,
    messageCallback(message) {
      message.handled = true;
      const place = `${message.sourceFilePath ?? ''}:${message.sourceFileLine ?? ''}`;
      if (FAULTS.has(message.messageId)) faults.push(`${place} ${message.text}`);
      if (message.logLevel === ExtractorLogLevel.Error) errors.push(`${place} ${message.text}`);
    },
  });
  if (errorCount > 0) throw new Error(errors.join('\n'));
  return { changed: apiReportChanged, faults };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const renew = process.argv.includes('--renew');
  let failed = false;
  for (const one of packages)
    for (const surface of surfacesOf(one)) {
      const { changed, faults } = extractApi(surface, { renew });
      for (const fault of faults) console.error(`${reportOf(surface)}: ${fault}`);
      if (changed && !renew)
        console.error(
          `the public surface of ${one.manifest().name} is not that of etc/${reportOf(surface)}.api.md; if it is meant to be: npm run api`,
        );
      failed ||= faults.length > 0 || (changed && !renew);
    }
  process.exitCode = failed ? 1 : 0;
}
