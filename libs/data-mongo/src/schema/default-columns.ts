import type { FieldSchema } from '#policy';

const string: FieldSchema = { type: 'String' };
const number: FieldSchema = { type: 'Number' };
const object: FieldSchema = { type: 'Object' };

/** Columns every class has. */
export const BUILT_IN_COLUMNS: Readonly<Record<string, FieldSchema>> = {
  objectId: string,
  createdAt: { type: 'Date' },
  updatedAt: { type: 'Date' },
  ACL: { type: 'ACL' },
};

/** Columns that Parse gives its own classes; passwords, login data and tokens are left out on purpose. */
export const SYSTEM_COLUMNS: Readonly<Record<string, Readonly<Record<string, FieldSchema>>>> = {
  _User: { username: string, email: string, emailVerified: { type: 'Boolean' } },
  _Role: {
    name: string,
    users: { type: 'Relation', targetClass: '_User' },
    roles: { type: 'Relation', targetClass: '_Role' },
  },
  _Session: {
    user: { type: 'Pointer', targetClass: '_User' },
    installationId: string,
    expiresAt: { type: 'Date' },
    createdWith: object,
  },
  _Installation: {
    installationId: string,
    deviceToken: string,
    channels: { type: 'Array' },
    deviceType: string,
    pushType: string,
    GCMSenderId: string,
    timeZone: string,
    localeIdentifier: string,
    badge: number,
    appVersion: string,
    appName: string,
    appIdentifier: string,
    parseVersion: string,
  },
  _Product: {
    productIdentifier: string,
    download: { type: 'File' },
    downloadName: string,
    icon: { type: 'File' },
    order: number,
    title: string,
    subtitle: string,
  },
  _Audience: { name: string, query: string, lastUsed: { type: 'Date' }, timesUsed: number },
};

/** Credentials that a schema row may name and no catalogue does. */
export const UNLISTED_COLUMNS: ReadonlySet<string> = new Set(['password', 'authData', 'sessionToken']);
