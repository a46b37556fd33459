import type { ListedRun } from '../../../../src/runs/analysis.js';

const SIGNS: Readonly<Record<ListedRun['state'], string>> = {
  running: '●',
  completed: '✓',
  stopped: '■',
  interrupted: '⏸',
  failed: '✕',
  unreadable: '?',
};

/** The state of a run, as a word with a sign, so that it needs no colour. */
export function StateBadge({ state }: { readonly state: ListedRun['state'] }) {
  return (
    <span class={`badge ${state}`}>
      <span aria-hidden="true">{SIGNS[state]}</span> {state}
    </span>
  );
}
