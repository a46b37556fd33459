import { constants, setPriority } from 'node:os';
import { RUNS } from '../../dashboard/report.js';
import { startWatching } from '../../dashboard/watch.js';
import { defineCommand, optionalArgument } from '../define-command.js';
import { allowHost, integer, port, text } from '../flags.js';
import { AWAITED, awaitRun } from '../open-dashboard.js';

export const watch = defineCommand({
  name: 'watch',
  description: 'serve a live dashboard of runs: curves, trouble, episodes',
  details:
    'serves a dashboard of a run, an ablation or a folder of runs until Ctrl-C. It writes no files of runs, and takes no lock. Only this machine can open it, unless you set `--host` and a token',
  arguments: [optionalArgument('folder', `a run, an ablation or a folder of runs (default: ${RUNS})`)],
  flags: {
    port: port('port (default: 7373, or a free one)'),
    host: text('address', 'address to listen on; an address beyond this machine needs a token (default: 127.0.0.1)'),
    token: text('text', 'the token that a browser must send (default: DRMAS_TOKEN of the environment)'),
    allowHost,
    threads: integer(1, 'kernel threads for answers in the dashboard (default: 1)'),
  },
  examples: [
    'drmas watch',
    'drmas watch runs/first',
    'DRMAS_TOKEN=a-long-secret-of-yours drmas watch runs --host 0.0.0.0',
  ],
  async run({ stdout, signal, environment }, [folder = RUNS], { allowHost, ...options }) {
    giveWay();
    const isAwaited = folder === AWAITED && process.connected;
    const watched = isAwaited ? undefined : folder;
    const server = await startWatching({ folder: watched, environment, allowedHosts: allowHost, ...options });
    const { url, runs, close } = server;
    if (isAwaited) awaitRun(process, server.show);
    stdout.write(`${url}\n${runs} ${runs === 1 ? 'run' : 'runs'} in ${folder}; press Ctrl-C to stop\n`);
    await new Promise<void>((ended) => {
      if (signal.aborted) ended();
      signal.addEventListener('abort', () => ended(), { once: true });
      process.once('disconnect', ended); // the training process that started it has ended
    });
    await close();
    return 0;
  },
});

/** Lowers the priority of this process, so that a training comes first. */
function giveWay(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // The system does not allow it: the priority stays.
  }
}
