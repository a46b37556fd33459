import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { GroupPage, GroupQuery, GroupRow } from '../../../../src/runs/analysis.js';
import { useSource } from '../../run-store.js';

/** Rows of one request; the server's maximum. */
const PAGE = 200;
/** Typing within this time is one question. */
const PATIENCE_MS = 200;

/** The groups that match, as far as they were looked at. */
export interface Groups {
  /** The counts of the first reply; undefined before it. */
  readonly counts: Omit<GroupPage, 'offset' | 'rows'> | undefined;
  readonly rows: ReadonlyMap<number, GroupRow>;
  readonly problem: string | undefined;
  /** Fetches the rows that are to be seen. */
  readonly onRange: (first: number, last: number) => void;
}

/** Loads groups page by page while the user scrolls. */
export function useGroups(run: string, query: GroupQuery | undefined): Groups {
  const source = useSource();
  const [state, setState] = useState<Omit<Groups, 'onRange'>>({
    counts: undefined,
    rows: new Map(),
    problem: undefined,
  });
  const asked = useRef(new Set<number>());
  const current = useRef('');
  const key = JSON.stringify([run, query]);

  const fetchPage = useCallback(
    (page: number) => {
      if (query === undefined || asked.current.has(page)) return;
      asked.current.add(page);
      source.groups(run, query, page * PAGE).then(
        ({ rows, offset, ...counts }) => {
          if (current.current !== key) return; // a newer request has replaced this one
          setState((before) => {
            const all = new Map(before.rows);
            for (const [i, row] of rows.entries()) all.set(offset + i, row);
            return { counts, rows: all, problem: undefined };
          });
        },
        (error: Error) => {
          if (current.current === key) setState((before) => ({ ...before, problem: error.message }));
        },
      );
    },
    [source, key],
  );

  useEffect(() => {
    current.current = key;
    asked.current = new Set();
    const timer = setTimeout(() => {
      setState({ counts: undefined, rows: new Map(), problem: undefined });
      fetchPage(0);
    }, PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [key, fetchPage]);

  const onRange = useCallback(
    (first: number, last: number) => {
      if (last < first || current.current !== key) return;
      for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page++) fetchPage(page);
    },
    [key, fetchPage],
  );
  return { ...state, onRange };
}
