/**
 * The search of the documentation site. VitePress sends these functions to the browser as text, so each can use nothing
 * but its arguments.
 */
export const search = {
  options: {
    /** The term of a word in a page or a query; null for words that stand in each question, such as `how do I`. */
    processTerm(word: string): string | null {
      const idle =
        /^(a|about|an|and|are|as|at|be|by|can|do|does|for|from|has|have|how|i|if|in|into|is|it|its|me|my|of|on|or|our|so|some|that|the|their|them|then|there|this|to|use|using|was|we|what|when|where|which|while|who|why|with|without|you|your)$/;
      const term = word.toLowerCase();
      if (idle.test(term)) return null;
      // `agents` finds `agent`; `loss` stays.
      return term.length > 3 ? term.replace(/(?<=[^su])s$/, '') : term;
    },
  },
  searchOptions: {
    fuzzy: 0.1,
    prefix: true,
    boost: { title: 4, titles: 2, text: 1 },
    /** Guides come before references, and references before research. */
    boostDocument(id: string): number {
      if (/\/(lab-notes|decisions|research|project)\//.test(id)) return 0.1;
      if (/\/(findings|creditbench|paper|the-paper|neighbours|benchmarks)\.html/.test(id)) return 0.15;
      if (/\/(reference\/|referee\.html)/.test(id)) return 0.4;
      return /\/(getting-started|questions)\.html/.test(id) ? 1.5 : 1;
    },
  },
};
