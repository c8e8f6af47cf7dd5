import { ORGS } from './access.mjs';
import { date, DAYS, euros, later, moment, pointer, salesDay } from './parse-json.mjs';
import { CITIES, GENRES, personName } from './words.mjs';

const FORMATS = { vinyl: [24, 8], cd: [13, 4], cassette: [10, 3], digital: [8, 2] };

const NOTES = [
  'Do not discount: supplier dispute 4471 is still open.',
  'Buy-back agreed below cost, keep confidential.',
  'Overstock from the spring fair, clear quietly.',
  'Cover art licence unresolved, ask legal first.',
];

const CUSTOMER_NOTES = [
  'Returned five orders in a row, decline further credit.',
  'Owner of a competing shop, watch price requests.',
  'Bad debt written off in 2025.',
];

/** Rows of one shop organisation are for its own people. */
const ownersOnly = (orgId) => ({
  [`role:${orgId}`]: { read: true },
  'role:managers': { read: true, write: true },
});

export function stores(random) {
  return CITIES.flatMap((city, index) => {
    const orgId = ORGS[index % ORGS.length];
    const latitude = Math.round(random.near(48, 1.5) * 1e4) / 1e4;
    const longitude = Math.round(random.near(15, 3) * 1e4) / 1e4;
    return {
      objectId: random.id(),
      name: `${orgId === 'harbor' ? 'Harbor Records' : 'Northside Sounds'} ${city}`,
      orgId,
      city,
      location: { __type: 'GeoPoint', latitude, longitude },
      openingHours: { weekdays: '10:00-19:00', saturday: '10:00-17:00' },
      squareMetres: random.int(60, 240),
      monthlyRent: random.int(18, 60) * 100,
      createdAt: moment(random, random.int(0, 20)),
    };
  });
}

export function listings(random, records) {
  let serial = 1000;
  return records.flatMap((album) =>
    ORGS.filter(() => random.chance(0.75)).flatMap((orgId) =>
      random.sample(Object.keys(FORMATS), random.int(1, 2)).map((format) => {
        const [usual, spread] = FORMATS[format];
        const price = euros(Math.round(random.near(usual, spread)) - 0.01);
        serial += 1;
        return {
          objectId: random.id(),
          sku: `${orgId.slice(0, 1).toUpperCase()}-${format.slice(0, 2).toUpperCase()}-${serial}`,
          orgId,
          album: pointer('Album', album.objectId),
          format,
          price,
          costPrice: euros(price * random.near(0.58, 0.12)),
          stock: format === 'digital' ? 9999 : random.chance(0.12) ? 0 : random.int(1, 40),
          ...(random.chance(0.05) && { internalNote: random.pick(NOTES) }),
          ...((album.archived || random.chance(0.06)) && { archived: true }),
          createdAt: later(album.createdAt, random.int(0, 20)),
        };
      }),
    ),
  );
}

export function customers(random, count) {
  return Array.from({ length: count }, (_, index) => {
    const orgId = random.chance(0.6) ? 'northside' : 'harbor';
    const createdAt = moment(random, random.int(0, DAYS - 30));
    return {
      objectId: random.id(),
      name: personName(random),
      email: `customer${String(index + 1).padStart(3, '0')}@example.com`,
      orgId,
      city: random.pick(CITIES),
      tier: random.weighted({ standard: 70, silver: 20, gold: 8, trade: 2 }),
      joined: date(createdAt),
      interests: random.sample(GENRES, random.int(0, 3)),
      ...(random.chance(0.04) && { internalNote: random.pick(CUSTOMER_NOTES) }),
      ...(random.chance(0.05) && { archived: true }),
      ACL: ownersOnly(orgId),
      createdAt,
    };
  });
}

/** Orders with their lines; a line's price is what the listing cost then. */
export function orders(random, buyers, shops, offers, count) {
  const days = Array.from({ length: count }, () => salesDay(random)).sort((left, right) => left - right);
  const lines = [];
  const placed = days.map((day, index) => {
    const customer = random.popular(buyers);
    const { orgId } = customer;
    const objectId = random.id();
    const createdAt = moment(random, day);
    const bought = random.sample(
      offers.filter((offer) => offer.orgId === orgId),
      Number(random.weighted({ 1: 40, 2: 30, 3: 18, 4: 8, 5: 4 })),
    );
    const own = bought.map((offer) => ({
      objectId: random.id(),
      order: pointer('Order', objectId),
      orgId,
      listing: pointer('Listing', offer.objectId),
      quantity: random.chance(0.85) ? 1 : random.int(2, 4),
      unitPrice: offer.price,
      unitCost: offer.costPrice,
      ACL: ownersOnly(orgId),
      createdAt,
    }));
    lines.push(...own);
    const recent = day > DAYS - 21;
    return {
      objectId,
      number: `${orgId.slice(0, 1).toUpperCase()}${String(20_000 + index)}`,
      orgId,
      customer: pointer('Customer', customer.objectId),
      store: pointer('Store', random.pick(shops.filter((shop) => shop.orgId === orgId)).objectId),
      status: random.weighted(
        recent ? { pending: 40, paid: 30, shipped: 30 } : { delivered: 86, returned: 7, cancelled: 7 },
      ),
      orderedAt: date(createdAt),
      total: euros(own.reduce((sum, line) => sum + line.quantity * line.unitPrice, 0)),
      itemCount: own.reduce((sum, line) => sum + line.quantity, 0),
      ExtRef: `ERP-${random.int(100_000, 999_999)}`,
      ACL: ownersOnly(orgId),
      createdAt,
    };
  });
  return { orders: placed, lines };
}

const SUPPLIERS = [
  'Pressing Plant Osterwick',
  'Bluebird Distribution',
  'Two Rivers Import',
  'Paperboat Sleeves',
  'Kestrel Logistics',
  'Ninth Floor Licensing',
];

/** The class nobody but the operator should ever see. */
export function supplierContracts(random) {
  return ORGS.flatMap((orgId) =>
    SUPPLIERS.map((supplier) => ({
      objectId: random.id(),
      supplier,
      orgId,
      discountPercent: random.int(8, 45),
      minimumOrder: random.int(5, 60) * 100,
      renewsOn: date(`2027-0${random.int(1, 9)}-01T00:00:00.000Z`),
      accessCode: `SECRET-${random.id().toUpperCase()}`,
      terms: `Confidential: ${supplier} grants ${orgId} most-favoured prices and may not be named to third parties.`,
      ACL: { 'role:admins': { read: true, write: true } },
      createdAt: moment(random, random.int(0, 40)),
    })),
  );
}
