/**
 * `npm run docs -- words`: the words of each hand-written page beside its budget, the longest excess first. Blocks of
 * code, generated and folded parts do not count. It tells where to cut, and no check fails by it.
 */
import { markdownPages, readPage, table } from './pages.js';

/** The words that the readers of a page should need, by the page. */
const BUDGETS: Readonly<Record<string, number>> = {
  'README.md': 600,
  'CHANGELOG.md': 800,
  'docs/README.md': 250,
  'docs/getting-started.md': 700,
  'docs/ai-sdk.md': 1000,
  'docs/train-your-production-agent.md': 1500,
  'docs/agents-elsewhere.md': 1000,
  'docs/gateway.md': 1000,
  'docs/concepts.md': 900,
  'docs/writing-a-team.md': 2200,
  'docs/failures.md': 800,
  'docs/recipes.md': 1800,
  'docs/tasks-and-models.md': 700,
  'docs/real-models.md': 1200,
  'docs/servers.md': 1000,
  'docs/train-on-a-gpu.md': 1200,
  'docs/watching-runs.md': 2500,
  'docs/trackers.md': 2000,
  'docs/using-trained-agents.md': 1200,
  'docs/in-a-browser.md': 300,
  'docs/questions.md': 1100,
  'docs/beyond-one-machine.md': 1500,
  'docs/estimators.md': 2500,
  'docs/losses.md': 1500,
  'docs/extending.md': 500,
  'docs/engine-library.md': 800,
  'docs/referee.md': 800,
  'docs/test-vectors.md': 400,
  'docs/reliability.md': 1000,
  'docs/security.md': 1000,
  'docs/findings.md': 3000,
  'docs/creditbench.md': 1000,
  'docs/paper.md': 400,
  'docs/the-paper.md': 1000,
  'docs/neighbours.md': 1000,
  'docs/benchmarks.md': 1500,
  'docs/how-the-engine-works.md': 3000,
};

/** The words of a page that a reader has to read. */
const wordsOf = (text: string): number =>
  text
    .replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
    .replaceAll(/^<!-- generated: [\s\S]*?^<!-- \/generated -->$/gm, '')
    .replaceAll(/^<!-- creditbench: [\s\S]*?^<!-- end -->$/gm, '')
    .replaceAll(/^<details>[\s\S]*?^<\/details>$/gm, '')
    .replaceAll(/<!--[\s\S]*?-->/g, '')
    .split(/\s+/)
    .filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

/** The table of all pages that have a budget. */
export function wordsTable(): string {
  const pages = markdownPages().flatMap((page) => {
    const budget = BUDGETS[page];
    return budget === undefined ? [] : [{ page, budget, words: wordsOf(readPage(page)) }];
  });
  const rows = pages
    .toSorted((a, b) => b.words - b.budget - (a.words - a.budget))
    .map(({ page, budget, words }) => [page, String(words), String(budget)]);
  const sum = (of: 'words' | 'budget') => String(pages.reduce((total, page) => total + page[of], 0));
  return table(['page', 'words', 'budget'], [...rows, ['all', sum('words'), sum('budget')]]);
}
