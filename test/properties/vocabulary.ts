import type { PolicyConfig } from '#policy';

/** How a column's values look, and so how they are written in a request. */
type Kind =
  | 'text'
  | 'number'
  | 'date'
  | 'place'
  | 'flag'
  | 'object'
  | 'texts'
  | 'pointer'
  | 'pointers'
  | 'relation'
  /** An object and a list that hold objects of other classes, unknown to the schema. */
  | 'bag'
  | 'pile'
  /** What a class is searchable by. */
  | 'vector'
  /** No two rows hold the same text: a unique index says so. */
  | 'code';

export interface Column {
  readonly name: string;
  readonly kind: Kind;
  /** Of pointers and relations. */
  readonly target?: ClassName;
}

export const CLASS_NAMES = ['Orchard', 'Farmer', 'Crate', 'Ledger', '_User'] as const;
export type ClassName = (typeof CLASS_NAMES)[number];
/** Classes whose policy and permissions vary. */
export const OWN_CLASSES = ['Orchard', 'Farmer', 'Crate', 'Ledger'] as const;

const column = (name: string, kind: Kind, target?: ClassName): Column => ({
  name,
  kind,
  ...(target && { target }),
});

/**
 * Every name stands for itself: none is part of another, or of what the service says of its own accord. They are spelled in
 * every way, and in each class there are columns that only their spelling tells apart.
 */
export const COLUMNS: Readonly<Record<ClassName, readonly Column[]>> = {
  Orchard: [
    column('orcTitle', 'text'),
    column('ORC_RANK', 'number'),
    column('oRCRANK', 'number'),
    column('orcWage', 'number'),
    column('orc_wage', 'number'),
    column('orcPlanted', 'date'),
    column('orc_planted', 'date'),
    column('orcSpot', 'place'),
    column('OrcFlag', 'flag'),
    column('orc_meta', 'object'),
    column('orcOrg', 'text'),
    column('orcTags2', 'texts'),
    column('orc_owner', 'pointer', '_User'),
    column('orcKeeper', 'pointer', 'Farmer'),
    column('ORC_BOXES', 'pointers', 'Crate'),
    column('orcPeers', 'relation', 'Crate'),
    column('orcBag', 'bag'),
    column('orcPile', 'pile'),
    column('orcPrice', 'text'),
    column('orcVector', 'vector'),
    column('orcCode', 'code'),
  ],
  Farmer: [
    column('frmTitle', 'text'),
    column('frm_age', 'number'),
    column('frmAge', 'number'),
    column('frm_mentor', 'pointer', 'Farmer'),
    column('FrmHome', 'pointer', 'Orchard'),
    column('frmOwner', 'pointer', '_User'),
    column('frmMeta', 'object'),
  ],
  Crate: [
    column('crtTitle', 'text'),
    column('crt_weight', 'number'),
    column('crtWeight', 'number'),
    column('crt_sealed', 'date'),
    column('crtFrom', 'pointer', 'Orchard'),
    column('crtKeeper', 'pointer', 'Farmer'),
    column('crtOwner', 'pointer', '_User'),
    column('crtBag', 'bag'),
    column('crtPile', 'pile'),
    column('crtPrice', 'text'),
  ],
  Ledger: [
    column('lgrTitle', 'text'),
    column('LgrSum', 'number'),
    column('lgrSum', 'number'),
    column('lgr_flag', 'flag'),
    column('lgrAbout', 'pointer', 'Orchard'),
    column('lgrOwner', 'pointer', '_User'),
    column('lgrPaid', 'relation', 'Farmer'),
  ],
  _User: [column('usr_nick', 'text'), column('usrNick', 'text'), column('usrPhone', 'number')],
};

/** The column that holds the tenant of a row. */
export const TENANT_COLUMN: Readonly<Record<ClassName, string>> = {
  Orchard: 'orc_org',
  Farmer: 'frmOrg',
  Crate: 'CRT_ORG',
  Ledger: 'lgrOrg',
  _User: 'usrOrg',
};
export const TENANTS = ['acme', 'ACME'] as const;
export const OWNER_COLUMN: Readonly<Record<(typeof OWN_CLASSES)[number], string>> = {
  Orchard: 'orc_owner',
  Farmer: 'frmOwner',
  Crate: 'crtOwner',
  Ledger: 'lgrOwner',
};

export const ROWS = 5;
const PREFIX: Readonly<Record<ClassName, string>> = {
  Orchard: 'oo',
  Farmer: 'ff',
  Crate: 'cc',
  Ledger: 'll',
  _User: 'uu',
};
export const rowId = (className: ClassName, index: number) => `${PREFIX[className]}row${index}`;
export const columnNames = (className: ClassName): readonly string[] => [
  ...COLUMNS[className].map(({ name }) => name),
  TENANT_COLUMN[className],
];
export const allColumns = (className: ClassName): readonly Column[] => [
  ...COLUMNS[className],
  { name: TENANT_COLUMN[className], kind: 'text' },
  { name: 'createdAt', kind: 'date' },
];
export const columnOf = (className: ClassName, name: string): Column | undefined =>
  COLUMNS[className].find((one) => one.name === name);

/** The signed-in user, and the role it holds. */
export const CALLER = rowId('_User', 0);
export const ROLE = 'pickers';
export const TOKEN = 'r:callers-own-session';

export type ClassConfigs = NonNullable<PolicyConfig['classes']>;
