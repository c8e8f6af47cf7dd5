// How the search of the site orders what it finds: pages that people use come before records of decisions, and a page about a word
// before one that mentions it. The site runs these functions in the browser from their text: nothing outside of them is there.

export const search = {
  provider: 'local',
  options: {
    miniSearch: {
      options: {
        /** `access_denied` and `ParleyCallsSlow` are words, and their parts are as well. */
        tokenize: (text) =>
          text.split(/[^\p{L}\p{N}_]+/u).flatMap((word) => {
            const parts = word.split(/_|(?<=\p{Ll})(?=\p{Lu})/u).filter(Boolean);
            return parts.length > 1 ? [word, ...parts] : parts;
          }),
        /** `deleted`, `deletes` and `deleting` are one word, and so are `policy` and `policies`; so is `deletin`, half typed. */
        processTerm: (term) =>
          /^(an?|the|of|to|in|is|are|was|were|and|or|how|do|i|my|for|with|on)$/i.test(term)
            ? null
            : term
                .toLowerCase()
                .replace(/(?<=[^s])s$/, '')
                .replace(/(?<=[aeiou].*)(?<=.{3})(ed|ing|(?<=.{4})in?|(?<=[sv])al)$/, '')
                .replace(/([bdgmnprt])\1$/, '$1')
                .replace(/(?<=.{3})(ie|y|e)$/, ''),
      },
      searchOptions: {
        /** Who asks for `MongoDB` does not ask for `mongo` and `db`. */
        tokenize: (text) =>
          text.split(/[^\p{L}\p{N}_]+/u).flatMap((word) => {
            const parts = word.split('_').filter(Boolean);
            return parts.length > 1 ? [word, ...parts] : parts;
          }),
        boost: { title: 3, titles: 2, text: 1 },
        // Pages with all words of a question come before those that repeat one of them, however short they are.
        bm25: { k: 3, b: 0.3, d: 0 },
        // Short words are the beginnings of other words, and other words with one letter changed.
        prefix: (term) => term.length > 3,
        fuzzy: (term) => (term.length > 5 ? 1 : false),
        boostDocument: (address, _term, { titles }) => {
          const weights = [
            [/^\/(#|$)|^\/(contributing|changelog)/, 0.15],
            [/^\/(security|embedded-mongo|examples)/, 0.3],
            [/^\/guide\/(migration|comparison)|^\/reference\/every-refusal/, 0.5],
            [/^\/operations\/(threat-model|advisories|scale|proof|performance|supply-chain)/, 0.5],
            // For those who write code.
            [/^\/guide\/(module|packages|plugins|testing|writing-tools)/, 0.8],
            [/^\/guide\//, 1.2],
            [/^\/operations\//, 1.5],
            [/^\/reference\//, 1.2],
          ];
          const [, weight = 1] = weights.find(([pages]) => pages.test(address)) ?? [];
          // What stands below the title of a page says what the page is about.
          return titles.length === 0 ? 1.6 * weight : weight;
        },
      },
    },
  },
};
