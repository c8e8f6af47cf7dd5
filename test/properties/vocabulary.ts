import type { PolicyConfig } from '#policy';

/** How a column's values look, and so how they are written in a request. */
type Kind =
  'text' | 'number' | 'date' | 'place' | 'flag' | 'object' | 'texts' | 'pointer' | 'pointers' | 'relation';

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

/** Every name stands for itself: none is part of another, or of what the service says of its own accord. */
export const COLUMNS: Readonly<Record<ClassName, readonly Column[]>> = {
  Orchard: [
    column('orcTitle', 'text'),
    column('orcRank', 'number'),
    column('orcWage', 'number'),
    column('orcPlanted', 'date'),
    column('orcSpot', 'place'),
    column('orcFlag', 'flag'),
    column('orcMeta', 'object'),
    column('orcTags', 'texts'),
    column('orcOwner', 'pointer', '_User'),
    column('orcKeeper', 'pointer', 'Farmer'),
    column('orcBoxes', 'pointers', 'Crate'),
    column('orcPeers', 'relation', 'Crate'),
  ],
  Farmer: [
    column('frmTitle', 'text'),
    column('frmAge', 'number'),
    column('frmMentor', 'pointer', 'Farmer'),
    column('frmHome', 'pointer', 'Orchard'),
    column('frmOwner', 'pointer', '_User'),
    column('frmMeta', 'object'),
  ],
  Crate: [
    column('crtTitle', 'text'),
    column('crtWeight', 'number'),
    column('crtSealed', 'date'),
    column('crtFrom', 'pointer', 'Orchard'),
    column('crtKeeper', 'pointer', 'Farmer'),
    column('crtOwner', 'pointer', '_User'),
  ],
  Ledger: [
    column('lgrTitle', 'text'),
    column('lgrSum', 'number'),
    column('lgrFlag', 'flag'),
    column('lgrAbout', 'pointer', 'Orchard'),
    column('lgrOwner', 'pointer', '_User'),
    column('lgrPaid', 'relation', 'Farmer'),
  ],
  _User: [column('usrNick', 'text'), column('usrPhone', 'number')],
};

/** The column that holds the tenant of a row. */
export const TENANT_COLUMN: Readonly<Record<ClassName, string>> = {
  Orchard: 'orcOrg',
  Farmer: 'frmOrg',
  Crate: 'crtOrg',
  Ledger: 'lgrOrg',
  _User: 'usrOrg',
};
export const TENANTS = ['acme', 'blue'] as const;
export const OWNER_COLUMN: Readonly<Record<(typeof OWN_CLASSES)[number], string>> = {
  Orchard: 'orcOwner',
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
