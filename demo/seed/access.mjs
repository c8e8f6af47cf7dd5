import { hashSync } from 'bcryptjs';

export const ORGS = ['northside', 'harbor'];

/** One password for all demo accounts; a fixed salt keeps the file the same on every run. */
const PASSWORD_HASH = hashSync('demo-password', '$2b$10$NineTracksOnSideAAndB.');

const ACCOUNTS = [
  ['uDemoAdmin', 'admin', null, ['admins']],
  ['uNorthMgr1', 'north.manager', 'northside', ['managers', 'northside']],
  ['uNorthClk1', 'north.clerk', 'northside', ['staff', 'northside']],
  ['uHarborMg1', 'harbor.manager', 'harbor', ['managers', 'harbor']],
  ['uHarborCl1', 'harbor.clerk', 'harbor', ['staff', 'harbor']],
  ['uAuditor01', 'auditor', null, ['auditors']],
  ['uCurator01', 'curator.one', 'northside', []],
  ['uCurator02', 'curator.two', 'harbor', []],
];

export const CURATORS = ['uCurator01', 'uCurator02', 'uNorthMgr1', 'uHarborCl1'];

export function users() {
  return ACCOUNTS.map(([objectId, username, orgId]) => ({
    objectId,
    username,
    email: [username, 'example.com'].join('@'),
    passwordHash: PASSWORD_HASH,
    ...(orgId && { orgId }),
    createdAt: '2024-11-01T08:00:00.000Z',
  }));
}

/** Members of a child role hold their parent's rights too: admins are managers, managers are staff. */
const CHILDREN = { staff: ['managers', 'auditors'], managers: ['admins'] };

export function roles() {
  return ['admins', 'managers', 'staff', 'auditors', ...ORGS].map((name) => ({
    name,
    users: ACCOUNTS.filter(([, , , member]) => member.includes(name)).map(([objectId]) => objectId),
    roles: CHILDREN[name] ?? [],
    ACL: { '*': { read: true }, 'role:admins': { read: true, write: true } },
    createdAt: '2024-11-01T08:00:00.000Z',
  }));
}

/** Tokens of the demo accounts, for trying what each of them may see. */
export function sessions() {
  return ACCOUNTS.map(([objectId, username]) => ({
    sessionToken: `r:demo-${username.replace('.', '-')}`,
    user: objectId,
    expiresAt: '2099-01-01T00:00:00.000Z',
    createdAt: '2024-11-01T08:00:00.000Z',
  }));
}
