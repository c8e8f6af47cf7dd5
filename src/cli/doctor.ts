import { describeExamination, examinationJson, examine } from '../doctor/examine.js';
import { type OutputOptions, withConfig } from './command-options.js';

interface DoctorOptions extends OutputOptions {
  readonly all?: boolean;
}

/** Checks a deployment before or beside its service; exit code 1 when a check fails. */
export async function runDoctor({ config, json, all = false }: DoctorOptions): Promise<void> {
  const examination = await examine(withConfig(config), process.cwd());
  process.stdout.write(json ? examinationJson(examination) : describeExamination(examination, { all }));
  if (examination.findings.some(({ level }) => level === 'fail')) process.exitCode = 1;
}
