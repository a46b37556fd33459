import { useEffect, useRef, useState } from 'preact/hooks';
import type { FromTab, ToTab } from '../run/protocol.js';
import type { Chosen } from './address.js';
import { variants } from './address.js';
import { newRun, type RunView, runAfter } from './run-view.js';

/** The runs of the page and the actions of a visitor. */
export interface Runs {
  /** One a variant; undefined before the first start. */
  readonly views: readonly RunView[] | undefined;
  readonly paused: boolean;
  /** Stops the present runs and starts others. */
  start(chosen: Chosen): void;
  setPaused(paused: boolean): void;
}

export function useRuns(): Runs {
  const [views, setViews] = useState<readonly RunView[]>();
  const [paused, setPaused] = useState(false);
  const workers = useRef<readonly Worker[]>([]);
  const end = () => {
    for (const worker of workers.current) worker.terminate();
  };
  useEffect(() => end, []);

  const tell = (message: ToTab) => {
    for (const worker of workers.current) worker.postMessage(message);
  };
  return {
    views,
    paused,
    start({ seed, set, names }) {
      end();
      setPaused(false);
      setViews(variants.map(() => newRun));
      workers.current = variants.map(({ estimator }, index) => {
        const worker = new Worker(new URL('../run/worker.ts', import.meta.url), { type: 'module' });
        const take = (message: FromTab) => {
          if (workers.current[index] !== worker) return; // of a run that was ended meanwhile
          setViews((before) => before?.map((run, i) => (i === index ? runAfter(run, message) : run)));
        };
        worker.onmessage = ({ data }: MessageEvent<FromTab>) => take(data);
        worker.onerror = ({ message }) => take({ type: 'failed', message: `the worker failed: ${message}` });
        const warmStart = new URL('warm-start', document.baseURI).href;
        worker.postMessage({ type: 'start', settings: { estimator, seed, set, names }, warmStart } satisfies ToTab);
        return worker;
      });
    },
    setPaused(wanted) {
      tell({ type: wanted ? 'pause' : 'continue' });
      setPaused(wanted);
    },
  };
}
