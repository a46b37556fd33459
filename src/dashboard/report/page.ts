import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { RunError } from '@drmas/engine/errors';
import { percent, significant, visible } from '@drmas/engine/host';
import { EMBEDDED_ID, type EmbeddedReport, type EmbeddedRun, type ScorePoint } from '../../runs/analysis.js';

/** The first bytes of a report. `drmas report` overwrites only files that start with them. */
export const PAGE_START = '<!doctype html>\n<html lang="en" data-made-by="drmas report">';

/** The directory of the built page. @throws RunError when the page is not built */
export function pageDirectory(): string {
  const root = dirname(createRequire(import.meta.url).resolve('drmas/package.json'));
  const directory = join(root, 'dist', 'dashboard');
  if (existsSync(join(directory, 'index.html'))) return directory;
  throw new RunError(`the page of the dashboard is not in ${directory}; build it with \`npm run build\``);
}

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

/** A piece of a page whose texts are escaped. Only `html` and `trusted` create one. */
class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Piece = Html | string | number | undefined | readonly Piece[];

/** The template tag that escapes its values, so that no text of a model or a user becomes markup. */
function html(parts: TemplateStringsArray, ...values: readonly Piece[]): Html {
  return new Html(parts.map((part, i) => (i === 0 ? part : textOf(values[i - 1]) + part)).join(''));
}

/**
 * A script, style or data of this package that goes into the page unescaped. Never pass texts of models or users.
 */
const trusted = (text: string): Html => new Html(text);

function textOf(piece: Piece): string {
  if (piece instanceof Html) return piece.text;
  if (piece === undefined) return '';
  if (typeof piece === 'object') return piece.map(textOf).join('');
  return escapeText(String(piece));
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeText(text: string): string {
  return visible(text).replaceAll(/[&<>"']/g, (character) => entities[character] ?? character);
}

/** A value as JSON for the inside of a script element, without any `<`, which could end that element. */
const embeddedJson = (value: unknown): Html => trusted(JSON.stringify(value).replaceAll('<', '\\u003c'));

/** A table with a header row, whose first column heads its rows. Empty when there are no rows. */
function htmlTable(header: readonly string[], rows: readonly (readonly Piece[])[]): Html {
  if (rows.length === 0) return html``;
  const body = rows.map(
    ([first, ...cells]) => html`<tr><th scope="row">${first}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`,
  );
  const head = header.map((name) => html`<th scope="col">${name}</th>`);
  return html`<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}
