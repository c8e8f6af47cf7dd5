import { Long, ObjectId } from 'bson';
import type { Document } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { badValue, mongoError } from '../errors.js';
import type { CommandContext, CommandHandler } from '../server/command.js';
import { flag } from './arguments.js';

/** What hello says of the set, from the view of the member that was asked. */
export function memberStatus(ctx: CommandContext): Document {
  const { replicas, store } = ctx.server;
  const { name, addresses, primary, term } = replicas;
  if (name === undefined) return {};
  const opTime = { ts: store.log.time, t: Long.fromNumber(term) };
  const isPrimary = primary === ctx.client.member;
  return {
    setName: name,
    setVersion: 1,
    secondary: !isPrimary,
    hosts: [...addresses],
    ...(primary === undefined ? {} : { primary: replicas.findAddress(primary) }),
    me: replicas.findAddress(ctx.client.member),
    // Drivers take the primary of the newest election for the true one.
    ...(isPrimary ? { electionId: new ObjectId(`7fffffff${term.toString(16).padStart(16, '0')}`) } : {}),
    lastWrite: { opTime, lastWriteDate: ctx.now, majorityOpTime: opTime, majorityWriteDate: ctx.now },
  };
}

export const replSetGetStatus: CommandHandler = (_command, ctx) => {
  const { replicas, startedAt } = ctx.server;
  if (replicas.name === undefined) throw mongoError(76, 'not running with --replSet');
  const { primary, term } = replicas;
  const state = (member: number): number => (member === primary ? 1 : 2);
  return {
    set: replicas.name,
    date: ctx.now,
    myState: state(ctx.client.member),
    term: Long.fromNumber(term),
    members: replicas.addresses.map((name, member) => ({
      _id: member,
      name,
      health: 1,
      state: state(member),
      stateStr: member === primary ? 'PRIMARY' : 'SECONDARY',
      uptime: Math.floor((Date.now() - startedAt.getTime()) / 1000),
      ...(member === ctx.client.member ? { self: true } : {}),
    })),
  };
};

/**
 * Another member becomes the primary. `closeConnections` is an addition to MongoDB's command: the connections of the member are
 * cut, as servers before 4.2 do it and as a crash would.
 */
export const replSetStepDown: CommandHandler = (command, ctx) => {
  const { replSetStepDown: seconds } = command;
  if (numberKind(seconds) === undefined || !(toDouble(seconds) > 0))
    throw badValue('stepdown period must be a positive number of seconds');
  const { server, client } = ctx;
  if (server.replicas.size === 1 && !flag(command, 'force')) {
    throw mongoError(
      262,
      'No electable secondaries caught up. Please use the replSetStepDown command with the argument {force: true} to force node to step down.',
    );
  }
  server.stepDown(client.member, toDouble(seconds), flag(command, 'closeConnections'), client.connectionId);
  return {};
};
