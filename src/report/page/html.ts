import { visible } from '../../core/format.js';

/** A piece of a page whose texts are escaped already. Only `html` and `trusted` make one. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Piece = Html | string | number | undefined | readonly Piece[];

/** A template whose values are escaped, so that nothing that a model or a user wrote becomes markup. */
export function html(parts: TemplateStringsArray, ...values: readonly Piece[]): Html {
  return new Html(parts.map((part, i) => (i === 0 ? part : textOf(values[i - 1]) + part)).join(''));
}

/** Our own script, style or data that must stand in the page as it is. */
export const trusted = (text: string): Html => new Html(text);

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

/** A value as JSON that may stand inside a script element: no `<` that could end it. */
export const embeddedJson = (value: unknown): Html => trusted(JSON.stringify(value).replaceAll('<', '\\u003c'));

/** A table with a header row; the first column is its rows' header. Empty where there are no rows. */
export function htmlTable(header: readonly string[], rows: readonly (readonly Piece[])[]): Html {
  if (rows.length === 0) return html``;
  const body = rows.map(
    ([first, ...cells]) => html`<tr><th scope="row">${first}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`,
  );
  const head = header.map((name) => html`<th scope="col">${name}</th>`);
  return html`<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}
