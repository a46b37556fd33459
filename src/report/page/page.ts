import { createHash } from 'node:crypto';
import { grouped } from '../../core/format.js';
import type { RunData } from '../run-data.js';
import { curves } from './curves.js';
import { embeddedJson, type Html, html, trusted } from './html.js';
import { inflationTable } from './inflation-table.js';
import { script } from './script.js';
import { style } from './style.js';
import { agentTable, evaluationTable, recipes, spikeTable, summary, troubleTable } from './tables.js';

/** The beginning of every report, by which `drmas report` recognises a file that it may overwrite. */
export const PAGE_START = '<!doctype html>\n<html lang="en" data-made-by="drmas report">';

/**
 * Renders one page about one or more runs. It needs no network; a content security policy allows only the page's
 * script.
 */
export function renderPage(runs: readonly RunData[]): string {
  const names = runs.map(({ name }) => name).join(', ');
  const allowed = `default-src 'none'; script-src '${hash(script)}'; style-src '${hash(style)}'; img-src data:; base-uri 'none'; form-action 'none'`;
  const page = html`
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${trusted(allowed)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${names} - drmas report</title>
<style>${trusted(style)}</style>
</head>
<body>
<h1>${names}</h1>
${summary(runs)}
${curves(runs)}
${agentTable(runs)}
${inflationTable(runs)}
${evaluationTable(runs)}
${spikeTable(runs)}
${troubleTable(runs)}
${episodes(runs)}
${recipes(runs)}
</body>
</html>
`;
  return PAGE_START + page.text;
}

function episodes(runs: readonly RunData[]): Html {
  const holds = runs.map(({ name, path, episodes: { shown, kept } }) => {
    const which =
      shown === kept
        ? `all ${grouped(kept)} episodes`
        : `${grouped(shown)} of ${grouped(kept)} episodes: whole groups, spread evenly over every file's tasks, those behind a spike first`;
    return html`<li>${name}: ${which}. On disk: ${path}/episodes</li>`;
  });
  const data = runs.map(({ name, episodes: { files, texts } }) => ({ name, files, texts }));
  return html`<h2 id="episodes">Episodes</h2>
<ul class="faint">${holds}</ul>
<p class="faint">A turn is green where its advantage is positive, red where it is negative, plain where it is zero or there is none.</p>
<div id="episode-browser"><p class="empty">Episodes are shown by the page's script, which does not run here, or there are none.</p></div>
<script type="application/json" id="episode-data">${embeddedJson(data)}</script>
<script>${trusted(script)}</script>`;
}

const hash = (text: string) => `sha256-${createHash('sha256').update(text).digest('base64')}`;
