import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { percent } from '../../core/format.js';
import { EMBEDDED_ID, type EmbeddedReport, type EmbeddedRun } from '../analysis/embedded.js';
import { pageDirectory } from '../page-directory.js';
import { embeddedJson, html, htmlTable, trusted } from './html.js';

/** The beginning of every report, by which `drmas report` recognises a file that it may overwrite. */
export const PAGE_START = '<!doctype html>\n<html lang="en" data-made-by="drmas report">';

/**
 * Renders one page: the dashboard's script and style with the data that they show. It needs no network; a content
 * security policy allows nothing but that script and style. Without JavaScript it shows a table of scores.
 * @throws RunError when the page of the dashboard was not built
 */
export async function renderPage(report: EmbeddedReport): Promise<string> {
  const built = pageDirectory();
  const style = await readFile(join(built, 'page.css'), 'utf8');
  // The end of a script's element must not stand inside it.
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
<p>Curves, tables and episodes are shown by the page's script, which does not run here.</p></div>
<script type="application/json" id="${EMBEDDED_ID}">${embeddedJson(report)}</script>
<script type="module">${trusted(script)}</script>
</body>
</html>
`;
  return PAGE_START + page.text;
}

function row({ listed }: EmbeddedRun): string[] {
  if (listed.state === 'unreadable') return [listed.name];
  const { name, recipe, estimator, seed, state, steps, first, last } = listed;
  const facts = [recipe, estimator, seed, state, steps].map((fact) => String(fact ?? ''));
  const scores = [first, last].map((score) => (score === null ? '' : percent(score.averageAtK)));
  return [name, ...facts, ...scores];
}

const hash = (text: string) => `sha256-${createHash('sha256').update(text).digest('base64')}`;
