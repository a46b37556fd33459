// @module-tag verify
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCells } from '../creditbench/page.js';
import { jobsOf } from '../harness/declaration.js';
import { root } from '../harness/run-job.js';
import { readResults } from '../harness/stored-result.js';
import { questions } from '../questions/index.js';
import { PLANS } from './declared.js';
import { hasLatex, PACKAGES, paperTex, TEMPLATE, writePaper } from './paper.js';

const PATIENCE = 600_000;
let folder: string;
let tex: string;

async function stored() {
  const jobs = questions.flatMap(({ parts }) => parts.flatMap(jobsOf));
  return {
    root,
    questions,
    results: await readResults(join(root, 'research/results'), jobs),
    cells: await readCells(root),
  };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'drmas-paper-'));
  tex = paperTex(await stored());
}, PATIENCE);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the paper', () => {
  it('has each of its numbers from the results', () => {
    expect(tex).not.toMatch(/\{\{\w+(:[^}]*)?\}\}/);
    for (const unfilled of ['nothing yet', 'NaN', 'undefined', 'Infinity']) expect(tex).not.toContain(unfilled);
    const body = readFileSync(join(root, TEMPLATE), 'utf8').replace(/^.*\\begin\{document\}/s, '');
    const prose = body.replaceAll(/\{\{.*?\}\}/gs, '').replaceAll(/arXiv\s+[\d.]+/g, '');
    // A difference has a sign or an interval, a share a decimal and a per cent.
    expect(prose.match(/[+-]\d+\.\d|\d+\.\d+\s*(\\,)?\\%|\[[+-]?\d+\.\d+, /g)).toBeNull();
  });

  it('tells of each plan that declares runs', () => {
    const folder = join(root, 'research/plans');
    const declared = readdirSync(folder)
      .filter((file) => !/^Results: none of its own$/m.test(readFileSync(join(folder, file), 'utf8')))
      .map((file) => file.replace(/\.md$/, ''));
    expect([...PLANS.means, ...PLANS.others].map(({ name }) => name).sort()).toEqual(declared.sort());
  });

  it('tells of plans that failed, and of runs that are not there', () => {
    for (const plan of ['pools', 'why', 'stopping', 'shape', 'league', 'own-rates'])
      expect(tex).toContain(`\\code{${plan}}`);
    expect(tex).toContain('\\textbf{failed}');
  });

  it.skipIf(!hasLatex())(
    `has a PDF with a main text of four pages (needs pdflatex: ${PACKAGES})`,
    { timeout: PATIENCE },
    async () => {
      const built = writePaper(await stored(), folder);
      expect(built?.main).toBeLessThanOrEqual(4);
      expect(built?.pages).toBeGreaterThan(4);
      expect(built?.complaints).toEqual([]);
    },
  );
});
