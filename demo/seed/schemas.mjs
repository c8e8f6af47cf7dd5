const string = { type: 'String' };
const number = { type: 'Number' };
const boolean = { type: 'Boolean' };
const day = { type: 'Date' };
const list = { type: 'Array' };
const to = (targetClass) => ({ type: 'Pointer', targetClass });

const everyone = { '*': true };
const signedIn = { requiresAuthentication: true };

/** Permissions name every operation: one that is left out is permitted to nobody. */
const permissions = (read, write, protectedFields = {}) => ({
  find: read,
  get: read,
  count: read,
  create: write,
  update: write,
  delete: { 'role:admins': true },
  addField: {},
  protectedFields,
});

const managers = { 'role:managers': true };
const staff = { 'role:staff': true };
const admins = { 'role:admins': true };

export const SCHEMAS = [
  {
    className: 'Artist',
    fields: {
      name: string,
      country: string,
      foundedYear: number,
      genres: list,
      biography: string,
      archived: boolean,
    },
    classLevelPermissions: permissions(everyone, managers),
    indexes: { byName: { name: 1 } },
  },
  {
    className: 'Album',
    fields: {
      title: string,
      artist: to('Artist'),
      genre: string,
      released: day,
      trackCount: number,
      tags: list,
      description: string,
      cover: { type: 'File' },
      archived: boolean,
    },
    classLevelPermissions: permissions(everyone, managers),
    indexes: {
      byArtist: { artist: 1, released: -1 },
      byGenre: { genre: 1, released: -1 },
      words: { title: 'text', description: 'text' },
    },
  },
  {
    className: 'Song',
    fields: {
      title: string,
      album: to('Album'),
      trackNumber: number,
      durationSeconds: number,
      explicit: boolean,
      lyrics: string,
    },
    classLevelPermissions: permissions(everyone, managers),
    indexes: { byAlbum: { album: 1, trackNumber: 1 } },
  },
  {
    className: 'Store',
    fields: {
      name: string,
      orgId: string,
      city: string,
      location: { type: 'GeoPoint' },
      openingHours: { type: 'Object' },
      squareMetres: number,
      monthlyRent: number,
    },
    classLevelPermissions: permissions(everyone, managers, { '*': ['monthlyRent'], 'role:managers': [] }),
    indexes: { byPlace: { location: '2dsphere' }, byOrg: { orgId: 1 } },
  },
  {
    className: 'Listing',
    fields: {
      sku: { type: 'String', required: true },
      orgId: { type: 'String', required: true },
      album: to('Album'),
      format: string,
      price: number,
      costPrice: number,
      stock: { type: 'Number', defaultValue: 0 },
      internalNote: string,
      archived: boolean,
    },
    classLevelPermissions: permissions(everyone, managers, {
      '*': ['costPrice', 'internalNote'],
      'role:managers': [],
    }),
    indexes: { byAlbum: { album: 1 }, bySku: { sku: 1 }, byOrg: { orgId: 1, stock: 1 } },
  },
  {
    className: 'Customer',
    fields: {
      name: string,
      email: string,
      orgId: string,
      city: string,
      tier: string,
      joined: day,
      interests: list,
      internalNote: string,
      archived: boolean,
    },
    classLevelPermissions: permissions(signedIn, staff, { '*': ['email', 'internalNote'], 'role:staff': [] }),
    indexes: { byOrg: { orgId: 1, joined: -1 } },
  },
  {
    className: 'Order',
    fields: {
      number: string,
      orgId: string,
      customer: to('Customer'),
      store: to('Store'),
      status: string,
      orderedAt: day,
      total: number,
      itemCount: number,
      ExtRef: string,
    },
    classLevelPermissions: permissions(signedIn, staff),
    indexes: {
      byOrg: { orgId: 1, orderedAt: -1 },
      byCustomer: { customer: 1, orderedAt: -1 },
      byStatus: { status: 1, orderedAt: -1 },
    },
  },
  {
    className: 'OrderLine',
    fields: {
      order: to('Order'),
      orgId: string,
      listing: to('Listing'),
      quantity: number,
      unitPrice: number,
      unitCost: number,
    },
    classLevelPermissions: permissions(signedIn, staff, { '*': ['unitCost'], 'role:managers': [] }),
    indexes: { byOrder: { order: 1 }, byListing: { listing: 1 } },
  },
  {
    className: 'Review',
    fields: {
      album: to('Album'),
      customer: to('Customer'),
      orgId: string,
      rating: number,
      text: string,
      status: string,
      helpful: number,
      textVector: list,
    },
    classLevelPermissions: permissions(everyone, signedIn),
    indexes: { byAlbum: { album: 1, createdAt: -1 }, byStatus: { status: 1 } },
  },
  {
    className: 'Playlist',
    fields: {
      title: string,
      curator: to('_User'),
      songs: list,
      mood: string,
      followers: { type: 'Relation', targetClass: 'Customer' },
    },
    classLevelPermissions: permissions(everyone, signedIn),
    indexes: { byCurator: { curator: 1 } },
  },
  {
    className: 'SupplierContract',
    fields: {
      supplier: string,
      orgId: string,
      discountPercent: number,
      minimumOrder: number,
      renewsOn: day,
      accessCode: string,
      terms: string,
    },
    classLevelPermissions: permissions(admins, admins),
    indexes: {},
  },
  { className: '_User', fields: { orgId: string } },
];
