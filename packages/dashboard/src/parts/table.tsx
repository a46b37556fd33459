import type { ComponentChild } from 'preact';

/** The most rows of a table of things that can be many; the table also shows the total number. */
const MOST_ROWS = 100;

interface TableProps {
  readonly title?: string;
  readonly header: readonly string[];
  readonly rows: readonly (readonly ComponentChild[])[];
  /** Shows the last rows if there are too many, and not the first ones. */
  readonly latest?: true;
}

/** A table whose first column heads its rows; draws nothing without rows. */
export function Table({ title, header, rows, latest }: TableProps) {
  if (rows.length === 0) return null;
  return (
    <section class="tabled">
      {title !== undefined && <h2>{title}</h2>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: who has no pointer scrolls it with the keyboard */}
      <section class="scroll" aria-label={title ?? header[0]} tabIndex={0}>
        <table>
          <thead>
            <tr>
              {header.map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {(latest ? rows.slice(-MOST_ROWS) : rows.slice(0, MOST_ROWS)).map(([first, ...cells], i) => (
              <tr key={i}>
                <th scope="row">{first}</th>
                {cells.map((cell, column) => (
                  <td key={header[column + 1]}>{cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {rows.length > MOST_ROWS && (
        <p class="faint">
          The {latest ? 'last' : 'first'} {MOST_ROWS} of {rows.length}; all stand in events.jsonl.
        </p>
      )}
    </section>
  );
}
