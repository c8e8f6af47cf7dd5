export const GENRES = ['ambient', 'folk', 'jazz', 'electronic', 'rock', 'soul', 'classical', 'hiphop'];

export const COUNTRIES = ['Austria', 'Portugal', 'Iceland', 'Ghana', 'Japan', 'Brazil', 'Canada', 'Estonia'];

export const CITIES = ['Lindenau', 'Marhaven', 'Osterwick', 'Pellingen', 'Quillbrook', 'Rosental'];

const COLOURS = [
  'Copper',
  'Velvet',
  'Paper',
  'Amber',
  'Cobalt',
  'Quiet',
  'Salted',
  'Second',
  'Wooden',
  'Electric',
];
const THINGS = [
  'Lanterns',
  'Meridian',
  'Orchards',
  'Ferries',
  'Staircase',
  'Kestrels',
  'Almanac',
  'Cartographers',
  'Tramlines',
  'Greenhouse',
  'Barometer',
  'Postcards',
];
const MOMENTS = [
  'Before Rain',
  'After Closing',
  'at Low Tide',
  'in Translation',
  'for Beginners',
  'by Candlelight',
  'of the Ninth Floor',
  'Without Maps',
];
const VERBS = [
  'Leaving',
  'Counting',
  'Carrying',
  'Forgetting',
  'Painting',
  'Borrowing',
  'Waking',
  'Following',
];
const OBJECTS = [
  'the Harbour',
  'Small Hours',
  'Your Window',
  'Two Rivers',
  'an Empty Station',
  'the Last Bus',
  'Snow',
  'Every Name',
  'the Long Way',
  'Blue Smoke',
];
const GIVEN = [
  'Mara',
  'Teo',
  'Ines',
  'Juno',
  'Bela',
  'Oskar',
  'Lumi',
  'Rafa',
  'Edda',
  'Nilo',
  'Svea',
  'Tarek',
  'Yuki',
  'Amara',
  'Piet',
  'Zora',
];
const INITIALS = 'ABCDEFGHKLMNPRSTVWZ';

const upper = (text) => text[0].toUpperCase() + text.slice(1);

export const bandName = (random) =>
  `${random.chance(0.5) ? 'The ' : ''}${random.pick(COLOURS)} ${random.pick(THINGS)}`;

export const albumTitle = (random) =>
  random.chance(0.5)
    ? `${random.pick(THINGS)} ${random.pick(MOMENTS)}`
    : `${random.pick(VERBS)} ${random.pick(OBJECTS)}`;

export const songTitle = (random) =>
  random.chance(0.6)
    ? `${random.pick(VERBS)} ${random.pick(OBJECTS)}`
    : `${random.pick(COLOURS)} ${random.pick(THINGS)}`;

/** A given name and an initial: nobody in particular. */
export const personName = (random) => `${random.pick(GIVEN)} ${random.pick(INITIALS)}.`;

const MOODS = ['patient', 'restless', 'bright', 'smoky', 'unhurried', 'playful', 'austere', 'tender'];
const SOUNDS = [
  'upright piano',
  'tape loops',
  'brushed drums',
  'a borrowed cello',
  'hand claps',
  'a broken organ',
  'close harmonies',
  'analogue bass',
];
const PLACES = [
  'a disused ferry terminal',
  'one long winter',
  'a kitchen above a bakery',
  'three nights on the road',
  'a school gymnasium',
  'the back room of a record shop',
];

export const albumDescription = (random, title, artist, genre) =>
  `${title} finds ${artist} in a ${random.pick(MOODS)} mood. Recorded in ${random.pick(PLACES)}, it sets ` +
  `${random.pick(SOUNDS)} against ${random.pick(SOUNDS)} and comes out as ${genre} that is ${random.pick(MOODS)} ` +
  `at first and ${random.pick(MOODS)} in the end.`;

export const biography = (random, name, country, year) =>
  `${name} started in ${country} in ${year} with ${random.pick(SOUNDS)} and little else. Known for ` +
  `${random.pick(MOODS)} concerts, they write most songs in ${random.pick(PLACES)} and still answer letters by hand.`;

export const lyrics = (random) =>
  Array.from(
    { length: 4 },
    () =>
      `${upper(random.pick(VERBS).toLowerCase())} ${random.pick(OBJECTS)}, ${random.pick(MOODS)} and ${random.pick(MOODS)}`,
  ).join('\n');

const PRAISE = [
  'Plays well from the first track to the last.',
  'The pressing is quiet and the sleeve is lovely.',
  'Bought it for one song and stayed for the rest.',
  'A gift that went down very well.',
];
const SHRUGS = [
  'Fine for a Sunday, not more.',
  'Two strong songs and some filler.',
  'Good music, careless packaging.',
];
const COMPLAINTS = [
  'The sleeve arrived bent.',
  'Side B skips on my copy.',
  'Not what the description promised.',
  'Delivery took three weeks.',
];

export const reviewText = (random, rating) => {
  const first = rating >= 4 ? PRAISE : rating === 3 ? SHRUGS : COMPLAINTS;
  return `${random.pick(first)} ${random.chance(0.4) ? random.pick(rating >= 3 ? SHRUGS : COMPLAINTS) : `${upper(random.pick(MOODS))} and ${random.pick(MOODS)}.`}`;
};
