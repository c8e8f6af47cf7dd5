// Writes demo/seed.json: a music shop with two organisations, the data the demo server answers from.
// Everything is drawn from one seeded generator, so running this again changes nothing: `node demo/build-seed.mjs`.
import { writeFileSync } from 'node:fs';
import { roles, sessions, users } from './seed/access.mjs';
import { albums, artists, songs } from './seed/catalogue.mjs';
import { playlists, reviews } from './seed/community.mjs';
import { vectorOf } from './seed/likeness.mjs';
import { randomSource } from './seed/random.mjs';
import { SCHEMAS } from './seed/schemas.mjs';
import { customers, listings, orders, stores, supplierContracts } from './seed/trade.mjs';

const random = randomSource(33_45_78);

const Artist = artists(random, 60);
const Album = albums(random, Artist, 150);
const Song = songs(random, Album);
const Store = stores(random);
const Listing = listings(random, Album);
const Customer = customers(random, 220);
const traded = orders(random, Customer, Store, Listing, 480);
/** What find_similar compares; a review without words has none. */
function withVector(review) {
  const textVector = vectorOf(review.text);
  return textVector ? { ...review, textVector } : review;
}

const objects = {
  Artist,
  Album,
  Song,
  Store,
  Listing,
  Customer,
  Order: traded.orders,
  OrderLine: traded.lines,
  Review: reviews(random, Album, Customer, 300).map(withVector),
  Playlist: playlists(random, Song, Customer, 40),
  SupplierContract: supplierContracts(random),
};

/** One row to a line: small, and a change shows as the rows it touched. */
const rows = (list) => `[\n${list.map((row) => JSON.stringify(row)).join(',\n')}\n]`;

const sections = [
  `"schemas": ${rows(SCHEMAS)}`,
  `"users": ${rows(users())}`,
  `"roles": ${rows(roles())}`,
  `"sessions": ${rows(sessions())}`,
  `"objects": {\n${Object.entries(objects)
    .map(([className, list]) => `"${className}": ${rows(list)}`)
    .join(',\n')}\n}`,
];

writeFileSync(new URL('seed.json', import.meta.url), `{\n${sections.join(',\n')}\n}\n`);
