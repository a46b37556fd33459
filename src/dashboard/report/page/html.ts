import { visible } from '../../../base/host.js';

/** A piece of a page whose texts are escaped. Only `html` and `trusted` create one. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Piece = Html | string | number | undefined | readonly Piece[];

/** The template tag that escapes its values, so that no text of a model or a user becomes markup. */
export function html(parts: TemplateStringsArray, ...values: readonly Piece[]): Html {
  return new Html(parts.map((part, i) => (i === 0 ? part : textOf(values[i - 1]) + part)).join(''));
}

/**
 * A script, style or data of this package that goes into the page unescaped. Never pass texts of models or users.
 */
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

/** A value as JSON for the inside of a script element, without any `<`, which could end that element. */
export const embeddedJson = (value: unknown): Html => trusted(JSON.stringify(value).replaceAll('<', '\\u003c'));

/** A table with a header row, whose first column heads its rows. Empty when there are no rows. */
export function htmlTable(header: readonly string[], rows: readonly (readonly Piece[])[]): Html {
  if (rows.length === 0) return html``;
  const body = rows.map(
    ([first, ...cells]) => html`<tr><th scope="row">${first}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`,
  );
  const head = header.map((name) => html`<th scope="col">${name}</th>`);
  return html`<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}
