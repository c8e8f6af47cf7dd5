import { date, DAYS, later, moment, pointer } from './parse-json.mjs';
import {
  albumDescription,
  albumTitle,
  bandName,
  biography,
  COUNTRIES,
  GENRES,
  lyrics,
  songTitle,
} from './words.mjs';

const TAGS = ['live', 'debut', 'reissue', 'limited', 'remastered', 'double', 'instrumental', 'concept'];

/** Different from everything drawn before, so that a name tells one row. */
function unique(seen, draw) {
  for (;;) {
    const text = draw();
    if (!seen.has(text)) {
      seen.add(text);
      return text;
    }
  }
}

export function artists(random, count) {
  const names = new Set();
  return Array.from({ length: count }, () => {
    const name = unique(names, () => bandName(random));
    const country = random.pick(COUNTRIES);
    const foundedYear = random.int(1979, 2022);
    return {
      objectId: random.id(),
      name,
      country,
      foundedYear,
      genres: random.sample(GENRES, random.int(1, 3)),
      biography: biography(random, name, country, foundedYear),
      ...(random.chance(0.05) && { archived: true }),
      createdAt: moment(random, random.int(0, 60)),
    };
  });
}

export function albums(random, bands, count) {
  const titles = new Set();
  return Array.from({ length: count }, () => {
    const artist = random.popular(bands);
    const title = unique(titles, () => albumTitle(random));
    const genre = random.pick(artist.genres);
    const released = new Date(
      Date.UTC(random.int(Math.max(artist.foundedYear, 1990), 2026), random.int(0, 9), random.int(1, 28)),
    );
    const createdAt = moment(random, random.int(0, DAYS - 60));
    return {
      objectId: random.id(),
      title,
      artist: pointer('Artist', artist.objectId),
      genre,
      released: date(released.toISOString()),
      trackCount: random.int(4, 8),
      tags: random.sample(TAGS, random.int(0, 3)),
      description: albumDescription(random, title, artist.name, genre),
      ...(random.chance(0.7) && {
        cover: { __type: 'File', name: `${title.toLowerCase().replace(/\W+/g, '-')}.jpg` },
      }),
      ...(random.chance(0.06) && { archived: true }),
      createdAt,
      ...(random.chance(0.3) && { updatedAt: later(createdAt, random.int(1, 50)) }),
    };
  });
}

export function songs(random, records) {
  return records.flatMap((album) =>
    Array.from({ length: album.trackCount }, (_, index) => ({
      objectId: random.id(),
      title: songTitle(random),
      album: pointer('Album', album.objectId),
      trackNumber: index + 1,
      durationSeconds: Math.round(random.near(225, 110)),
      explicit: random.chance(0.04),
      ...(random.chance(0.15) && { lyrics: lyrics(random) }),
      createdAt: album.createdAt,
    })),
  );
}
