import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { percent, significant } from '../../../base/host.js';
import { EMBEDDED_ID, type EmbeddedReport, type EmbeddedRun, type ScorePoint } from '../../../runs/analysis.js';
import { pageDirectory } from '../page-directory.js';
import { embeddedJson, html, htmlTable, trusted } from './html.js';

/** The first bytes of a report. `drmas report` overwrites only files that start with them. */
export const PAGE_START = '<!doctype html>\n<html lang="en" data-made-by="drmas report">';

/**
 * Renders one page: the dashboard's script and style with their data. The page needs no network; its content security
 * policy allows only that script and style. Without JavaScript it shows a table of scores.
 * @throws RunError when the page of the dashboard was not built
 */
export async function renderPage(report: EmbeddedReport): Promise<string> {
  const built = pageDirectory();
  const style = await readFile(join(built, 'page.css'), 'utf8');
  // `</script` must not occur inside the script element.
  const script = (await readFile(join(built, 'page.js'), 'utf8')).replaceAll('</script', '<\\/script');
  const allowed = `default-src 'none'; script-src '${hash(script)}'; style-src '${hash(style)}'; img-src data:; base-uri 'none'; form-action 'none'`;
  const page = html`
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${trusted(allowed)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${report.folder} - drmas report</title>
<style>${trusted(style)}</style>
</head>
<body>
<div id="app"><h1>${report.folder}</h1>
${htmlTable(['run', 'recipe', 'estimator', 'seed', 'state', 'steps', 'score at first', 'score at last'], report.runs.map(row))}
<p>The page's script shows curves, tables and episodes; it does not run here.</p></div>
<script type="application/json" id="${EMBEDDED_ID}">${embeddedJson(report)}</script>
<script type="module">${trusted(script)}</script>
</body>
</html>
`;
  return PAGE_START + page.text;
}

function row({ listed }: EmbeddedRun): string[] {
  if (listed.state === 'unreadable') return [listed.name];
  const { name, recipe, estimator, seed, state, steps, first, last, headline } = listed;
  const facts = [recipe, estimator, seed, state, steps].map((fact) => String(fact ?? ''));
  const shown = ({ averageAtK, reward }: ScorePoint) =>
    headline === 'reward' ? `reward ${significant(reward ?? 0)}` : percent(averageAtK);
  const scores = [first, last].map((score) => (score === null ? '' : shown(score)));
  return [name, ...facts, ...scores];
}

const hash = (text: string) => `sha256-${createHash('sha256').update(text).digest('base64')}`;
