/** The paper: LaTeX from research/paper/paper.template and the stored results, and a PDF where `pdflatex` is. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { levelComparisons } from '../creditbench/page.js';
import { PartResults, rareCallerInflation } from '../harness/analysis.js';
import { blindFigure } from '../harness/blind.js';
import { mechanismTable } from '../harness/mechanism.js';
import { fillPage } from '../harness/page.js';
import { exactText } from '../harness/text.js';
import { rateFactorFigure } from '../harness/waiting.js';
import { primaries } from '../questions/index.js';
import {
  creditRanks,
  declaredTable,
  heldCounts,
  PLANS,
  partOf,
  resultsOf,
  type Stored,
  shortText,
} from './declared.js';
import { classTable, levelsTable, sweepFigure, teamsTable } from './tables.js';
import { pgfplot, texOf } from './tex.js';

export const TEMPLATE = 'research/paper/paper.template';
/** The packages of Debian that build the PDF. */
export const PACKAGES = 'texlive-latex-base texlive-latex-recommended texlive-pictures texlive-fonts-recommended';

/** The tokens that only the paper has, by name; their values are LaTeX. */
function paperTokens(stored: Stored): Readonly<Record<string, (words: readonly string[]) => string>> {
  const { root, questions, results, cells } = stored;
  const area = (name: string) => fillPage(`{{fact:blind-pairs/${name}}}`, questions, results);
  const timed = questions
    .flatMap(({ parts }) => parts)
    .filter(({ waiting, variants }) => waiting !== undefined && variants.length > 2)
    .map((part) => new PartResults(part, results));
  const blind = partOf(stored, 'blind-pairs');
  const [counts, credit] = [heldCounts(stored), creditRanks(stored)];
  const panel = 'width=.5\\linewidth, height=4cm';
  const gain = 'gain, points';
  const plots: Readonly<Record<string, () => string>> = {
    rate: () =>
      pgfplot(rateFactorFigure(timed, 'grpo', 'drmas'), {
        axis: `${panel}, legend pos=north west`,
        y: 'steps of \\code{grpo} over \\code{drmas}',
      }),
    sweep: () =>
      pgfplot(sweepFigure(stored), { axis: `${panel}, ymax=128, ytick={0,20,...,100}, legend pos=north west` }),
    ownShare: () =>
      pgfplot(blindFigure(blind, results), {
        axis: `${panel}, legend pos=north east`,
        x: 'own share, \\%',
        y: gain,
        title: `AUC ${texOf(area('area'))}`,
      }),
    mismatch: () =>
      pgfplot(blindFigure(blind, results, 'mismatch'), {
        axis: panel,
        bare: true,
        x: 'mismatch of the means, $\\log_2(1 + (\\mu_k-\\mu)^2/\\sigma_k^2)$',
        y: gain,
        title: `AUC ${texOf(area('mismatch'))}`,
      }),
  };
  return {
    plot: ([name = '']) => {
      const plot = plots[name];
      if (plot === undefined) throw new Error(`the paper has no plot ${name}`);
      return plot();
    },
    declared: ([name = '']) => {
      if (name !== 'means' && name !== 'others') throw new Error(`there is no table of plans ${name}`);
      return declaredTable(stored, PLANS[name]);
    },
    held: () => `${counts.held}`,
    failed: () => `${counts.failed}`,
    classes: () => classTable(stored),
    teams: () => teamsTable(stored),
    mechanism: () => texOf(mechanismTable(resultsOf(stored, 'mechanism-pairs'))),
    ranked: ([id = '']) => texOf(fillPage(`{{part:${id}}}`, questions, results).split('\n\n').at(-1) ?? ''),
    seeds: ([id = '']) => `${partOf(stored, id).seeds.length}`,
    credit: ([name = '']) => {
      const one = credit.get(name);
      if (one === undefined) throw new Error(`CreditBench has no ${name}`);
      const { better, pairs } = one.gain;
      return texOf(`${shortText(one.gain)} points, ${better} of ${pairs} seeds, by Holm p = ${exactText(one.p)}`);
    },
    levels: ([side = '']) => {
      if (side === 'table') return levelsTable(stored);
      const zero = levelComparisons(cells).filter(({ other }) => other === 'constant,baseline=0');
      return `${zero.filter(({ verdict }) => verdict === side).length} of ${zero.length}`;
    },
    finite: ([called = '', all = '', groupSize = '']) =>
      rareCallerInflation({ called: Number(called), all: Number(all), groupSize: Number(groupSize) }).toFixed(2),
    version: () => (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version,
  };
}

/** The text of paper.tex. @throws Error naming a token that is unknown */
export function paperTex(stored: Stored): string {
  const own = paperTokens(stored);
  const template = readFileSync(join(stored.root, TEMPLATE), 'utf8');
  return template.replaceAll(/\{\{(\w+)(?::([^}]*))?\}\}/g, (token, name: string, rest = '') => {
    const fill = own[name];
    if (fill !== undefined) return fill(String(rest).split('/'));
    return texOf(fillPage(token, stored.questions, stored.results, primaries));
  });
}

/** A built paper. */
export interface BuiltPaper {
  readonly pdf: string;
  /** The page on which the main text ends, and all pages. */
  readonly main: number;
  readonly pages: number;
  /** The reports of LaTeX about lines that are too wide and labels that are missing. */
  readonly complaints: readonly string[];
}

export const hasLatex = (): boolean => spawnSync('pdflatex', ['--version']).status === 0;

/**
 * Writes paper.tex into a folder, and builds paper.pdf there if `pdflatex` is there.
 * @returns undefined without `pdflatex`
 * @throws Error with the end of the log if LaTeX fails
 */
export function writePaper(stored: Stored, folder: string): BuiltPaper | undefined {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'paper.tex'), paperTex(stored));
  if (!hasLatex()) return undefined;
  // The second run knows the labels of the first, and the third the pages that these moved.
  for (let i = 0; i < 3; i++) {
    const words = ['-interaction=nonstopmode', '-halt-on-error', 'paper.tex'];
    const { status, stdout } = spawnSync('pdflatex', words, { cwd: folder, encoding: 'latin1' });
    if (status !== 0) throw new Error(`pdflatex failed:\n${stdout.slice(-2000)}`);
  }
  const log = readFileSync(join(folder, 'paper.log'), 'latin1');
  const labels = readFileSync(join(folder, 'paper.aux'), 'latin1');
  return {
    pdf: join(folder, 'paper.pdf'),
    main: Number(/\\newlabel\{end-of-main\}\{\{[^}]*\}\{(\d+)\}/.exec(labels)?.[1]),
    pages: Number(/Output written on paper\.pdf \((\d+) page/.exec(log.replaceAll('\n', ''))?.[1]),
    complaints: log.match(/^(Overfull \\hbox|LaTeX Warning: (Reference|Citation|There were undefined)).*$/gm) ?? [],
  };
}
