// How the search of the site orders what it finds: pages that people use come before records of decisions, and a page about a word
// before one that mentions it. The site runs these functions in the browser from their text: nothing outside of them is there.

export const search = {
  provider: 'local',
  options: {
    miniSearch: {
      options: {
        /** `access_denied` is a word, and its parts are as well. */
        tokenize: (text) =>
          text.split(/[^\p{L}\p{N}_]+/u).flatMap((word) => {
            const parts = word.split('_').filter(Boolean);
            return parts.length > 1 ? [word, ...parts] : parts;
          }),
      },
      searchOptions: {
        boost: { title: 4, titles: 2, text: 1 },
        // Short words are other words with one letter changed.
        fuzzy: (term) => (term.length > 5 ? 0.2 : false),
        processTerm: (term) =>
          /^(an?|the|of|to|in|is|and|or|how|do|i|my|for|with|on)$/i.test(term) ? null : term.toLowerCase(),
        boostDocument: (address, _term, { titles }) => {
          const weights = [
            [/^\/(#|$)|^\/(contributing|changelog)/, 0.15],
            [/^\/(security|embedded-mongo|examples)/, 0.3],
            [/^\/guide\/(migration|comparison)|^\/reference\/every-refusal/, 0.5],
            [/^\/operations\/(threat-model|advisories|scale|proof|performance|supply-chain)/, 0.5],
            [/^\/guide\//, 1.5],
            [/^\/operations\//, 1.3],
            [/^\/reference\//, 1.2],
          ];
          const [, weight = 1] = weights.find(([pages]) => pages.test(address)) ?? [];
          // What stands below the title of a page says what the page is about.
          return titles.length === 0 ? 2 * weight : weight;
        },
      },
    },
  },
};
