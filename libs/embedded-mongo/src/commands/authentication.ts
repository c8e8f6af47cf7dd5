import { Binary } from 'bson';
import { isDocument, type Document } from '../bson/document.js';
import { mongoError, typeMismatch } from '../errors.js';
import { listPrivileges, type EmbeddedUser } from '../server/access.js';
import type { CommandContext, CommandHandler } from '../server/command.js';
import { flag } from './arguments.js';

const MECHANISM = 'SCRAM-SHA-256';

function readPayload(command: Document): string {
  const { payload } = command;
  if (payload instanceof Binary) return Buffer.from(payload.value()).toString('utf8');
  if (typeof payload === 'string') return Buffer.from(payload, 'base64').toString('utf8');
  throw typeMismatch("BSON field 'payload' must be binary data");
}

const binary = (text: string): Binary => new Binary(Buffer.from(text));

/** Begins a login. Errors: 18, also where the server has no users; 334 for another mechanism. */
export const saslStart: CommandHandler = (command, ctx) => {
  const { users } = ctx.server;
  if (!users) throw mongoError(18, 'Authentication failed.');
  const { mechanism } = command;
  if (mechanism !== MECHANISM) {
    throw mongoError(334, `Received authentication for mechanism ${String(mechanism)} which is not enabled`);
  }
  const conversation = users.begin(ctx.db, readPayload(command));
  const options = command['options'];
  const short = isDocument(options) && flag(options, 'skipEmptyExchange');
  ctx.client.login = { conversation, short };
  return { conversationId: 1, done: false, payload: binary(conversation.serverFirst) };
};

/** Errors: 17 without a begun login, 18 for a wrong password. */
export const saslContinue: CommandHandler = (command, ctx) => {
  const login = ctx.client.login;
  if (!login) throw mongoError(17, 'No SASL session state found');
  const { conversation, short } = login;
  if (conversation.proven) {
    // The empty exchange with which older clients end the conversation.
    ctx.client.login = undefined;
    ctx.client.user = conversation.user;
    return { conversationId: 1, done: true, payload: binary('') };
  }
  try {
    const payload = binary(conversation.finish(readPayload(command)));
    if (short) {
      ctx.client.login = undefined;
      ctx.client.user = conversation.user;
    }
    return { conversationId: 1, done: short, payload };
  } catch (error) {
    ctx.client.login = undefined;
    throw error;
  }
};

/** Neither X.509 nor another mechanism of this command exists here. */
export const authenticate: CommandHandler = () => {
  throw mongoError(18, 'Authentication failed.');
};

export const logout: CommandHandler = (_command, ctx) => {
  ctx.client.user = undefined;
  return {};
};

/** What hello answers to a client that wants to log in: the mechanisms, and the first answer of a login that came with it. */
export function loginOffer(command: Document, ctx: CommandContext): Document {
  const { users } = ctx.server;
  const { saslSupportedMechs: asked, speculativeAuthenticate: early } = command;
  const offer: Document = {};
  if (typeof asked === 'string' && users) {
    const dot = asked.indexOf('.');
    if (users.has(asked.slice(0, dot), asked.slice(dot + 1))) offer['saslSupportedMechs'] = [MECHANISM];
  }
  if (isDocument(early) && users) {
    try {
      const db = typeof early['db'] === 'string' ? early['db'] : 'admin';
      offer['speculativeAuthenticate'] = saslStart(early, { ...ctx, db });
    } catch {
      // A login that fails early is left out: the client then begins one that says why.
    }
  }
  return offer;
}

const toName = ({ user, db = 'admin' }: EmbeddedUser): Document => ({ user, db });

export const connectionStatus: CommandHandler = (command, ctx) => {
  const { user } = ctx.client;
  return {
    authInfo: {
      authenticatedUsers: user ? [toName(user)] : [],
      authenticatedUserRoles: user ? user.roles.map(({ role, db }) => ({ role, db })) : [],
      ...(flag(command, 'showPrivileges')
        ? { authenticatedUserPrivileges: user ? listPrivileges(user) : [] }
        : {}),
    },
  };
};
