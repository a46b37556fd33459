import { constants, setPriority } from 'node:os';
import { RUNS } from '../../report/find-runs.js';
import { startWatching } from '../../watch/watch-server.js';
import { defineCommand, optionalArgument } from '../define-command.js';
import { integer, text } from '../flags.js';

export const watch = defineCommand({
  name: 'watch',
  description: 'a live dashboard of runs in the browser: curves, trouble, episodes',
  details:
    'serves a dashboard of a run, an ablation or a folder of them (default: `runs/`) to the browser, until Ctrl-C. It reads their files and disturbs no training; this machine alone can open it, unless `--host` and `--token` say otherwise',
  arguments: [optionalArgument('folder', `a run, an ablation or a folder of runs (default: ${RUNS})`)],
  flags: {
    port: integer(0, 'port to listen at (default: 7373, or a free one)'),
    host: text('address', 'address to listen at; beyond this machine it needs --token (default: 127.0.0.1)'),
    token: text('text', 'what a browser must know to open it, 12 characters or more'),
    threads: integer(1, 'threads that compute what agents answer in the dashboard (default: 1)'),
  },
  examples: ['drmas watch', 'drmas watch runs/first', 'drmas watch runs --host 0.0.0.0 --token a-long-secret-of-yours'],
  async run({ stdout, signal }, [folder = RUNS], { port, host, token, threads }) {
    giveWay();
    const { url, runs, close } = await startWatching({ folder, port, host, token, threads });
    stdout.write(`${url}\n${runs} ${runs === 1 ? 'run' : 'runs'} in ${folder}; Ctrl-C ends it\n`);
    await new Promise<void>((ended) => {
      if (signal.aborted) ended();
      signal.addEventListener('abort', () => ended(), { once: true });
      process.once('disconnect', ended); // the training that started it has gone
    });
    await close();
    return 0;
  },
});

/** Whoever watches never takes a processor from a training that wants it. */
function giveWay(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A system that does not allow it: then all are served alike.
  }
}
