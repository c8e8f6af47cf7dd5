import { Injectable } from '@nestjs/common';
import { orThrow, refuse } from '#core';
import { listRefusedArgumentKeys, methodGate, suggestNames } from '#policy';
import { type AdmittingArguments, type Arguments, refuseArgument } from '../arguments/argument-class.js';
import { CheckedByData, ClassName, RequiredText, Text } from '../arguments/argument.decorators.js';
import { Tool } from '../declaration/tool.decorator.js';
import { BOOLEAN, describeSchema, OBJECT, objectOf, STRING, VALUE } from '../json-schema.js';
import { isDangerousMethodName, isMethodName } from '../methods/method-declaration.js';
import {
  asksForPreview,
  type CallableMethod,
  callableMethods,
  CallableMethods,
} from '../methods/method-registry.js';
import { simplify } from '../shaping/presented-rows.js';
import { type MethodCallingCall, ToolEnvironment } from '../tool.js';

/** Most methods that a refusal names. */
const MOST_NAMED = 20;

/** Never arguments of a method: `dry_run` is for the dispatcher, and Parley sets `agent`, never the caller. */
const RESERVED_ARGUMENTS = ['dry_run', 'agent'];

/** A declared method and the requested call, after every gate. */
interface Target {
  readonly className: string;
  readonly method: CallableMethod;
  readonly objectId: string | undefined;
  readonly args: Arguments;
  readonly dryRun: boolean;
}

class CallMethodArguments {
  static readonly admission: AdmittingArguments['admission'] = (className, call) =>
    (call as MethodCallingCall).methods.enter(className);

  @ClassName() class_name!: string;
  @RequiredText() method_name!: string;
  @Text() object_id?: string;
  /** Checked once the method is known, because its gates come first. */
  @CheckedByData(
    describeSchema(OBJECT, 'What the method takes, as its parameters say; dry_run: true previews.'),
  )
  arguments?: unknown;
}

@Injectable()
export class CallMethod {
  constructor(
    private readonly methods: CallableMethods,
    private readonly environment: ToolEnvironment,
  ) {}

  @Tool({
    name: 'call_method',
    title: 'Call a declared method',
    description:
      'Runs an action that the application declared on a class; get_schema lists them as agent_methods. Instance methods need ' +
      'object_id. With arguments.dry_run: true nothing is changed and you are told what would be.',
    category: 'mutation',
    use: 'method',
    timeout: 60,
    needs: ['methods'],
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    input: CallMethodArguments,
    output: objectOf(
      {
        class_name: STRING,
        method: STRING,
        object_id: STRING,
        result: VALUE,
        dry_run: BOOLEAN,
        supports_real_dry_run: BOOLEAN,
        would_call: OBJECT,
        note: STRING,
      },
      ['class_name', 'method'],
    ),
  })
  async call(args: CallMethodArguments, call: MethodCallingCall) {
    const target = await this.admit(args, call);
    const { className, method, objectId, dryRun } = target;
    const receiver = await this.receiver(target, call);
    const answer = {
      class_name: className,
      method: method.name,
      ...(objectId !== undefined && { object_id: objectId }),
    };
    if (dryRun && !method.supportsDryRun) return { ...answer, ...preview(target) };
    const result = await method.handler(target.args, {
      className,
      receiver,
      objectId: objectId ?? null,
      records: call.records,
      writes: method.permission === 'readonly' || dryRun ? null : call.methods.writes(),
      dryRun,
      signal: call.signal,
      progress: (update) => call.progress(update),
      agent: method.wantsAgent ? call.agent : null,
    });
    return { ...answer, result: simplify(await call.methods.present(result)) };
  }

  /** Every gate of a method call, in order; previews pass them too. */
  private async admit(args: CallMethodArguments, call: MethodCallingCall): Promise<Target> {
    const className = await call.methods.enter(args.class_name);
    const { method_name: name } = args;
    if (!isMethodName(name)) refuseArgument('method_name must be an identifier, at most 128 characters');
    if (isDangerousMethodName(name)) refuseArgument('method_name is blocked for security reasons');
    const objectId = args.object_id || undefined;
    if (objectId !== undefined) await call.methods.checkId(className, objectId);
    const method = this.methods.find(className, name);
    if (!method) return this.refuseUnknown(className, name, call);
    orThrow(methodGate(call.agent, { className, name, permission: method.permission }, this.environment));
    await call.methods.permit(className, method.permission);
    // A copy: what a preview changes in it is neither what was approved nor what the call is made with.
    const given = methodArguments(copyArguments(args.arguments));
    assertArgumentKeys(given, method);
    const { dry_run: asked, agent: _caller, ...rest } = given;
    const dryRun = asksForPreview(args);
    const passed = method.supportsDryRun && asked !== undefined ? { ...rest, dry_run: asked } : rest;
    return { className, method, objectId, args: Object.freeze(passed), dryRun };
  }

  /** Names only methods that this agent may call. */
  private async refuseUnknown(className: string, name: string, call: MethodCallingCall): Promise<never> {
    const known = await call.records.describe(className).catch(() => null);
    const declared = this.methods.of(className);
    const callable = known ? callableMethods(declared, known, call.agent, this.environment) : [];
    const names = callable.map((method) => method.name);
    const [near] = suggestNames(name, names);
    const hints = [
      ...(near === undefined ? [] : [`Did you mean '${near}'?`]),
      ...(names.length === 0 ? [] : [`It declares: ${names.slice(0, MOST_NAMED).join(', ')}`]),
    ];
    return refuseArgument(
      [`class '${className}' declares no method '${name}' for agents`, hints.join(' ')]
        .filter((part) => part !== '')
        .join('. '),
    );
  }

  /** The receiver of an instance method, read with this agent's rights. */
  private async receiver({ className, method, objectId }: Target, call: MethodCallingCall) {
    if (method.type === 'class') return null;
    if (objectId === undefined)
      return refuseArgument(`object_id is required by '${className}.${method.name}'`);
    const { rows } = await call.records.get(className, objectId);
    const row = rows[0];
    if (!row) throw refuse.objectNotFound(className, objectId);
    return row;
  }
}

/** Arguments of a client are JSON. An application that calls the tool in code may pass a function, which cannot be copied. */
function copyArguments(args: unknown): unknown {
  try {
    return structuredClone(args);
  } catch {
    return refuseArgument(
      'arguments must hold data alone: they contain a function, or another value that cannot be copied',
    );
  }
}

function methodArguments(written: unknown = {}): Arguments {
  const isObject = typeof written === 'object' && written !== null && !Array.isArray(written);
  return isObject ? (written as Arguments) : refuseArgument('arguments must be an object');
}

function assertArgumentKeys(given: Arguments, { permittedKeys, name }: CallableMethod): void {
  const refused = listRefusedArgumentKeys(given);
  if (refused.length > 0) refuseArgument(`arguments never accepted: ${refused.join(', ')}`);
  if (!permittedKeys) return;
  const others = Object.keys(given).filter(
    (key) => !permittedKeys.includes(key) && !RESERVED_ARGUMENTS.includes(key),
  );
  if (others.length > 0) refuseArgument(`'${name}' does not take: ${others.join(', ')}`);
}

function preview({ className, method, objectId, args }: Target) {
  return {
    dry_run: true,
    supports_real_dry_run: false,
    would_call: {
      class: className,
      method: method.name,
      type: method.type,
      ...(objectId !== undefined && { object_id: objectId }),
      args,
    },
    note: 'The method makes no preview of its own: this is what would be called. Nothing was run.',
  };
}
