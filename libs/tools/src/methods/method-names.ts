const METHOD_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}[!?=]?$/;

export function isMethodName(value: string): boolean {
  return METHOD_NAME.test(value);
}

/** Names that reach into the language, the process or the framework instead of the domain; lower case. */
const DANGEROUS = new Set([
  // inherited members and prototypes
  '__proto__',
  'constructor',
  'prototype',
  'tostring',
  'tolocalestring',
  'valueof',
  'hasownproperty',
  'isprototypeof',
  'propertyisenumerable',
  '__definegetter__',
  '__definesetter__',
  '__lookupgetter__',
  '__lookupsetter__',
  // evaluation and reflection
  'eval',
  'evaluate',
  'instance_eval',
  'class_eval',
  'module_eval',
  'instance_exec',
  'class_exec',
  'define_method',
  'method_missing',
  'function',
  'reflect',
  'proxy',
  'apply',
  'bind',
  'call',
  'send',
  '__send__',
  'public_send',
  'invoke',
  'instance_variable_get',
  'instance_variable_set',
  'const_get',
  // the process and the machine
  'exec',
  'execute',
  'execsync',
  'execfile',
  'spawn',
  'spawnsync',
  'fork',
  'shell',
  'system',
  'syscall',
  'child_process',
  'process',
  'global',
  'globalthis',
  'require',
  'import',
  'load',
  'exit',
  'abort',
  'kill',
  // the framework's life cycle, and thenables
  'onmoduleinit',
  'onmoduledestroy',
  'onapplicationbootstrap',
  'onapplicationshutdown',
  'beforeapplicationshutdown',
  'configure',
  'then',
  'catch',
  'finally',
]);

/** Refused even when declared, in any case. */
export function isDangerousMethodName(name: string): boolean {
  return DANGEROUS.has(name.toLowerCase().replace(/[!?=]$/, ''));
}
